"""Linear maps from the N choices of a model to the B places in which plans are compared.

A map spreads the time of each choice over the places: it is non-negative and its columns sum to one, so the image of a
distribution is a distribution. `Grouping` is the cheap case in which every choice counts in one place.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from manyways.errors import SettingError
from manyways.types import Floats, Ints, Sparse

SUMS_TO_ONE = 1e-9


class LinearMap(ABC):
    """A map from (N,) occupancies to (B,) images, and its transpose."""

    @property
    def groups(self) -> Ints | None:
        """(N,) the place of each choice, if every choice counts in one place; otherwise None."""
        return None

    @property
    def identity(self) -> bool:
        """Whether it changes nothing."""
        return False

    @property
    @abstractmethod
    def most_terms(self) -> int:
        """How many choices count in one place at most, or places in one choice: a bound on the rounding of images."""

    @abstractmethod
    def forward(self, x: Floats) -> Floats:
        """(..., N) -> (..., B): the images of occupancies."""

    @abstractmethod
    def backward(self, y: Floats) -> Floats:
        """(..., B) -> (..., N): the transpose, which turns worths of places into worths of choices."""


@dataclass(frozen=True, eq=False)
class Grouping(LinearMap):
    """Every choice counts in one place, given by `place` (N,), integers from 0."""

    place: Ints

    def __post_init__(self) -> None:
        groups = np.asarray(self.place)
        if groups.ndim != 1 or groups.dtype.kind not in "iu" or (groups.size and groups.min() < 0):
            raise SettingError(
                f"groups must be a list of integers of at least 0, found {groups.dtype} of shape {groups.shape}"
            )
        object.__setattr__(self, "place", np.ascontiguousarray(groups, dtype=np.int64))

        object.__setattr__(self, "_identity", bool((self.place == np.arange(len(self.place))).all()))
        object.__setattr__(self, "_size", int(self.place.max(initial=-1)) + 1)

    @property
    def groups(self) -> Ints:
        return self.place

    @property
    def identity(self) -> bool:
        return self._identity  # pyright: ignore[reportAttributeAccessIssue]

    @property
    def most_terms(self) -> int:
        return int(np.bincount(self.place).max(initial=1))

    def forward(self, x: Floats) -> Floats:
        if self.identity:
            return x
        if x.ndim == 1:
            return np.bincount(self.place, weights=x, minlength=self._size).astype(np.float64)  # pyright: ignore[reportAttributeAccessIssue]
        return np.stack([self.forward(row) for row in x])

    def backward(self, y: Floats) -> Floats:
        return y if self.identity else y[..., self.place]


@dataclass(frozen=True, eq=False)
class Mixing(LinearMap):
    """A choice may count in several places: `matrix` (B, N), sparse, non-negative, with columns that sum to one."""

    matrix: Sparse

    def __post_init__(self) -> None:
        matrix = sparse.csr_array(self.matrix, dtype=np.float64)
        if matrix.ndim != 2 or not np.isfinite(matrix.data).all() or (matrix.nnz and matrix.data.min() < 0):
            raise SettingError("the matrix of a behaviour must have finite entries, none of them negative")
        off = np.abs(np.asarray(matrix.sum(axis=0)).ravel() - 1)
        if not (off <= SUMS_TO_ONE).all():
            worst = int(np.argmax(off))
            raise SettingError(
                f"the columns of a behaviour's matrix must sum to one, since they share out a choice's time; that of "
                f"choice {worst} misses it by {off[worst]:.3g}"
            )
        object.__setattr__(self, "matrix", matrix)
        object.__setattr__(self, "_transpose", sparse.csr_array(matrix.T))

    @property
    def most_terms(self) -> int:
        return int(max(np.diff(part.indptr).max(initial=1) for part in (self.matrix, self._transpose)))  # pyright: ignore[reportAttributeAccessIssue]

    def forward(self, x: Floats) -> Floats:
        return np.asarray((self.matrix @ np.asarray(x).T).T)

    def backward(self, y: Floats) -> Floats:
        return np.asarray((self._transpose @ np.asarray(y).T).T)  # pyright: ignore[reportAttributeAccessIssue]
