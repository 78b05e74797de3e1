"""Vectors that several processes share, each having a part of the entries.

Objectives, floors and methods compute with vectors over all choices of a model: element by element, and by sums, products and
maxima over all entries. A `SharedVector` does the first on the part that this process has, and the second over the parts of
all processes, so that the same code plans for a model of which no process has more than a part. What is neither is refused,
because it would silently give each process another answer, and processes that go different ways wait for each other forever.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from manyways.types import Floats


class Reductions(Protocol):
    """What processes compute together: each gives its own numbers, and all get the same result."""

    def sum(self, values: Any) -> Any: ...
    def max(self, values: Any) -> Any: ...
    def min(self, values: Any) -> Any: ...


ELEMENT_BY_ELEMENT: set[Callable[..., Any]] = {
    np.where,
    np.zeros_like,
    np.ones_like,
    np.copy,
    np.stack,
    np.vstack,
    np.broadcast_to,
}
"""Functions of numpy, beside the universal ones, that treat the entries of the last axis alike."""
OVER_ALL: dict[np.ufunc, str] = {
    np.add: "sum",
    np.maximum: "max",
    np.minimum: "min",
    np.logical_or: "max",
    np.logical_and: "min",
}
"""Universal functions whose reduction over all entries follows from those over the parts."""


class SharedVector(np.ndarray):
    """An array (..., n) of which this process has n entries along the last axis, and other processes of the `team` more.

    Reductions and products along the last axis are over all processes, which must call them together.
    """

    team: Reductions | None = None

    def __array_finalize__(self, origin: Any) -> None:
        self.team = getattr(origin, "team", None)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None, **options: Any) -> Any:
        team: Any = next(x.team for x in (*inputs, *(out or ())) if isinstance(x, SharedVector))
        if out is not None:
            options["out"] = tuple(plain(x) for x in out)
        found = getattr(ufunc, method)(*(plain(x) for x in inputs), **options)
        if ufunc is np.matmul and method == "__call__":
            along_last = isinstance(inputs[0], SharedVector) or np.ndim(plain(inputs[1])) == 1
            return team.sum(found) if along_last else shared(found, team)
        if method == "reduce":
            axis = options.get("axis", 0)
            if axis is not None and inputs[0].ndim > 1 and axis not in (-1, inputs[0].ndim - 1):
                return shared(found, team)
            if ufunc not in OVER_ALL or (ufunc is np.add and options.get("initial")):
                _refuse(f"{ufunc.__name__}.reduce")
            together = getattr(team, OVER_ALL[ufunc])(found)
            return np.asarray(together, dtype=bool)[()] if np.asarray(found).dtype == bool else together
        if method not in ("__call__", "reduceat"):
            _refuse(f"{ufunc.__name__}.{method}")
        return out[0] if out is not None else shared(found, team)

    def __array_function__(self, function: Any, types: Any, arguments: Any, options: Any) -> Any:
        if function in (np.sum, np.max, np.min, np.any, np.all):
            return super().__array_function__(function, types, arguments, options)
        if function is np.delete and options.get("axis") == 0:
            return shared(np.delete(plain(self), arguments[1], axis=0), self.team)
        if function not in ELEMENT_BY_ELEMENT or options.get("axis", 0) != 0:
            _refuse(function.__name__)
        return shared(function(*_all_plain(arguments), **options), self.team)

    def _refused(self, *_: Any, **__: Any) -> Any:
        _refuse("this method")

    mean = var = std = argmax = argmin = argsort = sort = cumsum = prod = nonzero = dot = partition = trace = _refused  # pyright: ignore[reportAssignmentType]


def _refuse(what: str) -> None:
    raise TypeError(f"{what} is not defined for vectors that several processes share")


def shared(part: Any, team: Reductions | None) -> Any:
    """The part of a vector that this process has; the array itself is not copied."""
    vector = np.asarray(part).view(SharedVector)
    vector.team = team
    return vector


def plain(vector: Any) -> Any:
    """The part of a shared vector as an ordinary array; anything else is returned as it is."""
    return vector.view(np.ndarray) if isinstance(vector, SharedVector) else vector


def shared_like(vector: Any, part: Floats) -> Any:
    """The part as a shared vector of the same team, if `vector` is one; otherwise the array itself."""
    return shared(part, vector.team) if isinstance(vector, SharedVector) else part


def _all_plain(arguments: Any) -> list[Any]:
    return [_all_plain(x) if isinstance(x, (list, tuple)) else plain(x) for x in arguments]


def over_all(vector: Any, found: Floats) -> Floats:
    """Sums that were found from the part of `vector` that this process has, added up over all processes."""
    team = getattr(vector, "team", None)
    return found if team is None else team.sum(found)
