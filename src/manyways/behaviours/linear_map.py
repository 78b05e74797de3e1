"""Linear maps from the N choices of a model to the B places in which plans are compared.

A map spreads the time of each choice over the places: it is non-negative and its columns sum to one, so the image of a
distribution is a distribution. `Grouping` is the cheap case in which every choice counts in one place. `Mixing` is any
sparse matrix. `Walking` is a power of a sparse matrix that is never formed, because it would be dense.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

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
    def places(self) -> int:
        """B, the number of places."""

    @property
    @abstractmethod
    def most_terms(self) -> int:
        """A bound on rounding: every entry of an image has a relative error of at most this many units of rounding (2^-53),
        to first order, and so has every entry of `backward` relative to the sum of the sizes of its terms.

        This is the number of operations on the way of a number through the map. For a sum of products it is the largest
        number of terms: how many choices count in one place, or places in one choice.
        """

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
    def places(self) -> int:
        return self._size  # pyright: ignore[reportAttributeAccessIssue]

    @property
    def most_terms(self) -> int:
        return int(np.bincount(self.place).max(initial=1))

    def forward(self, x: Floats) -> Floats:
        if self.identity:
            return x
        if x.ndim == 1:
            return np.bincount(self.place, weights=x, minlength=self.places).astype(np.float64)
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
    def places(self) -> int:
        return self.matrix.shape[0]

    @property
    def most_terms(self) -> int:
        return int(max(np.diff(part.indptr).max(initial=1) for part in (self.matrix, self._transpose)))  # pyright: ignore[reportAttributeAccessIssue]

    def forward(self, x: Floats) -> Floats:
        return np.asarray((self.matrix @ np.asarray(x).T).T)

    def backward(self, y: Floats) -> Floats:
        return np.asarray((self._transpose @ np.asarray(y).T).T)  # pyright: ignore[reportAttributeAccessIssue]


@dataclass(frozen=True, eq=False)
class Walking(LinearMap):
    """Time is carried on by a random walk: `place` (N,) is where the walk of a choice begins, an integer from 0.

    In each of the `steps` the walk stays or moves along an edge of `graph` (B, B), all with the same probability. With A
    the adjacency matrix of the graph, ones on its diagonal, and D the diagonal matrix of its row sums, the image is

        (A D^-1)^steps G x = D (D^-1 A)^steps D^-1 G x

    for the grouping G by `place`. So both directions repeat the same mean over neighbours, D^-1 A, and nothing but this
    matrix is stored. Numbers below 1e-308 are lost, which is far below what any bound on rounding has to cover.
    """

    place: Ints
    graph: Sparse
    steps: int
    _grouping: Grouping = field(init=False, repr=False)
    _means: Sparse = field(init=False, repr=False)
    _degree: Floats = field(init=False, repr=False)
    _most_terms: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        edges: Sparse = sparse.csr_array(self.graph != 0, dtype=np.float64)
        if (edges != edges.T).nnz or edges.diagonal().any():
            raise SettingError("the graph of a walk must be symmetric, without edges from a place to itself")
        means: Sparse = sparse.csr_array(edges + sparse.eye_array(edges.shape[0]))
        degree = np.diff(means.indptr)
        means.data /= np.repeat(degree, degree)
        # Each step adds up to `degree` products with rounded factors; two more operations are the scaling by D.
        by_step = int(degree.max(initial=0)) + 1
        together = int(np.bincount(self.place).max(initial=1))
        object.__setattr__(self, "_grouping", Grouping(self.place))
        object.__setattr__(self, "_means", means)
        object.__setattr__(self, "_degree", degree.astype(np.float64))
        object.__setattr__(self, "_most_terms", together + self.steps * by_step + 2)

    @property
    def places(self) -> int:
        return len(self._degree)

    @property
    def most_terms(self) -> int:
        return self._most_terms

    def forward(self, x: Floats) -> Floats:
        start = self._grouping.forward(x)
        return self._degree * self.mean_nearby((start / self._degree).T).T

    def backward(self, y: Floats) -> Floats:
        return self.mean_nearby(y.T)[self.place].T

    def mean_nearby(self, values: Floats) -> Floats:
        """(B, ...) -> (B, ...): the mean of a value of each place over where a walk from there ends."""
        for _ in range(self.steps):
            values = self._means @ values
        return values
