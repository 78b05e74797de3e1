"""Checks of what requests contain."""

from __future__ import annotations

from math import isfinite
from typing import Any

from manyways.web.events import Refused


def integer(name: str, value: Any, least: int, most: int) -> int:
    """Return an integer; raises `Refused` and names it unless it is in [least, most]. Takes 3.0, as JSON has one number."""
    if isinstance(value, float) and isfinite(value) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise Refused(f"{name} must be an integer from {least} to {most}")
    return value


def share(given: Any) -> float | None:
    """The share by which new plans may be worse than the best one; the page sends null for no such limit."""
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given < 1e300:
        raise Refused("the share that plans may give up must be a number of at least 0")
    return float(given)
