"""The exceptions that manyways raises on purpose.

Every one is a `ManywaysError`; those caused by what the caller handed in are also `ValueError`s, so
that code which knows nothing of manyways still catches them. Each message says what was expected,
what was found, where, and what to do about it: the command line prints it as its one sentence.
"""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any


class ManywaysError(Exception):
    """Anything that manyways reports on purpose."""


class ModelError(ManywaysError, ValueError):
    """The model is not a Markov decision process that can be planned with."""


class NotWeaklyAccessible(ModelError):
    """The long-run average depends on where one starts, so `Average()` has no single answer."""


class SettingError(ManywaysError, ValueError):
    """A setting (k, tradeoff, discount, a method's parameter) is out of its range."""


class EmptyDomain(SettingError):
    """No occupancy is as large as demanded everywhere; `largest` is the largest demand that can be met."""

    def __init__(self, message: str, largest: float) -> None:
        super().__init__(message)
        self.largest = largest


class SourceError(ManywaysError, ValueError):
    """A model's source (file, map, name) cannot be read."""


class PlanFileError(ManywaysError, ValueError):
    """A plan file is missing, damaged, of another version, or not a plan file at all."""


class OutputError(ManywaysError, ValueError):
    """A result cannot be written where it was asked for."""


class SolverError(ManywaysError, RuntimeError):
    """A numerical solver failed on a valid problem; the message carries its own account."""


def check_whole(name: str, value: Any, least: int) -> int:
    """A whole number from `least` on, or a `SettingError` that says which setting is none."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise SettingError(f"{name} must be a whole number from {least} on, found {value!r}")
    return int(value)


def check_number(name: str, value: Any, least: float = -math.inf, most: float = math.inf) -> float:
    """A finite number in [least, most], or a `SettingError` that says which setting is none."""
    if not _is_number(value) or not least <= float(value) <= most:
        bounds = f" from {least:g} on" if most == math.inf else f" from {least:g} to {most:g}"
        shown = repr(value) if len(repr(value)) <= 60 else repr(value)[:57] + "..."
        raise SettingError(f"{name} must be a finite number{bounds if least > -math.inf else ''}, found {shown}")
    return float(value)


def _is_number(value: Any) -> bool:
    try:
        return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:  # a whole number beyond all floats
        return False
