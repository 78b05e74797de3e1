"""The exceptions that manyways raises on purpose.

Every one is a `ManywaysError`; those caused by what the caller handed in are also `ValueError`s, so
that code which knows nothing of manyways still catches them. Each message says what was expected,
what was found, where, and what to do about it: the command line prints it as its one sentence.
"""

from __future__ import annotations


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
