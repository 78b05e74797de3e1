"""The exceptions that manyways raises on purpose, and checks of numbers that raise them.

Every one is a `ManywaysError`. Those caused by what the caller handed in are also `ValueError`s, so that code that
knows nothing of manyways still catches them. A message says what was expected, what was found, where, and what to do.
"""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any


class ManywaysError(Exception):
    """Any error that manyways raises on purpose.

    `str(error)` is the message for Python callers, `error.on_command_line` the one that the command line prints. They
    differ only where the remedy does: in Python it is an argument, on the command line an option.

    Args:
        message: the part that both share.
        in_python: the rest of the message for Python callers.
        on_command_line: the rest of the message for the command line.
    """

    def __init__(self, message: str, *, in_python: str = "", on_command_line: str = "") -> None:
        super().__init__(message + in_python)
        self.on_command_line = message + (on_command_line or in_python)


class ModelError(ManywaysError, ValueError):
    """The model is not a Markov decision process that can be planned with."""


class NotWeaklyAccessible(ModelError):
    """The long-run average depends on the start state, so `Average()` has no single answer."""


class SettingError(ManywaysError, ValueError):
    """A setting (k, tradeoff, discount, a method's parameter) is out of range or of the wrong kind."""


class EmptyDomain(SettingError):
    """No occupancy is as large as required everywhere; `largest` is the largest requirement that can be met."""

    def __init__(self, message: str, largest: float = math.nan) -> None:
        super().__init__(message)
        self.largest = largest


class SourceError(ManywaysError, ValueError):
    """The source of a model (file, map, name) cannot be read."""


class PlanFileError(ManywaysError, ValueError):
    """A plan file is missing, damaged, of an unknown version, or not a plan file."""


class OutputError(ManywaysError, ValueError):
    """A result cannot be written to the requested place."""


class SolverError(ManywaysError, RuntimeError):
    """A numerical solver failed on a valid problem; the message contains the solver's own."""


def check_integer(name: str, value: Any, least: int) -> int:
    """Return `value` as an int; raise a `SettingError` naming the setting unless it is an integer of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise SettingError(f"{name} must be an integer of at least {least}, found {_shown(value)}")
    return int(value)


def check_number(name: str, value: Any, least: float = -math.inf, most: float = math.inf) -> float:
    """Return `value` as a float; raise a `SettingError` naming the setting unless it is finite and in [least, most]."""
    if not _is_number(value) or not least <= float(value) <= most:
        bounds = f" of at least {least:g}" if most == math.inf else f" from {least:g} to {most:g}"
        raise SettingError(
            f"{name} must be a finite number{bounds if least > -math.inf else ''}, found {_shown(value)}"
        )
    return float(value)


def _is_number(value: Any) -> bool:
    try:
        return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:  # an integer too large for a float
        return False


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
