"""Time per feature: linear measures of a user's own.

Each column of the matrix is what one unit of time in a state (or on a choice) counts for the features. Plans are compared
as distributions, so all columns must sum to the same number. The matrix is divided by its largest column sum, and where
a column sums to less, the rest counts for one more feature, "other". With column sums c_x and the largest of them c,

    image_f = sum_x matrix[f, x] / c * time_x        image_other = sum_x (1 - c_x / c) * time_x

So the unit of the features does not matter, but their proportions do: a feature that is a hundred times as large as all
others decides alone. Scale features to comparable sizes first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from manyways.behaviours.base import BEHAVIOURS, Behaviour
from manyways.behaviours.linear_map import Mixing
from manyways.errors import SettingError
from manyways.model.mdp import MDP
from manyways.types import Sparse

LONGEST_LIST = 6


@BEHAVIOURS.add
@dataclass(frozen=True, eq=False, repr=False)
class Features(Behaviour):
    """Compare how much of each feature plans have; see the head of this module.

    Attributes:
        matrix: (F, S) by state or (F, N) by choice: non-negative numbers, as an array or a scipy sparse matrix. It is kept
            as an array, or as the tuple (data, indices, indptr, shape) of a sparse matrix, which plan files can hold.
        names: the F features, all different.
    """

    matrix: Any
    names: Sequence[str]

    def __post_init__(self) -> None:
        matrix, names = _kept(self.matrix), tuple(map(str, self.names))
        shape = matrix[3] if isinstance(matrix, tuple) else matrix.shape
        entries = matrix[0] if isinstance(matrix, tuple) else matrix
        if len(shape) != 2 or not np.isfinite(entries).all() or (entries < 0).any():
            raise SettingError(
                "the matrix of features must have two dimensions and finite entries, none of them negative"
            )
        if len(names) != shape[0] or len(set(names)) < len(names):
            raise SettingError(
                f"expected {shape[0]} different names, one for each row of the matrix, found {names!r:.200}"
            )
        object.__setattr__(self, "matrix", matrix)
        object.__setattr__(self, "names", names)

    def on(self, mdp: MDP) -> Mixing:
        matrix = _sparse(self.matrix)
        if matrix.shape[1] not in (mdp.n_states, mdp.n_choices):
            raise SettingError(
                f"the matrix of features must have a column for each of the {mdp.n_states} states or of the "
                f"{mdp.n_choices} choices of {mdp.name}, found {matrix.shape[1]} columns"
            )
        total = np.asarray(matrix.sum(axis=0)).ravel()
        if not total.max(initial=0.0) > 0:
            raise SettingError("the matrix of features has no entry above 0, so all plans would be alike")
        share = total / total.max()
        matrix: Sparse = sparse.csr_array(matrix / total.max())
        rest = np.where(share < 1 - 1e-12, 1 - share, 0.0)
        if rest.any():
            matrix = sparse.csr_array(sparse.vstack([matrix, sparse.csr_array(rest[None, :])]))
        return Mixing(matrix if matrix.shape[1] == mdp.n_choices else matrix[:, mdp.choice_state])

    def describe(self) -> str:
        listed = self.names[:LONGEST_LIST]
        more = f" and {len(self.names) - LONGEST_LIST} more" if len(self.names) > LONGEST_LIST else ""
        return f"how much plans have of the features {', '.join(listed)}{more}"

    def __repr__(self) -> str:
        return f"Features(a matrix of {len(self.names)} rows, {list(self.names)!r:.200})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Features) or self.names != other.names:
            return False
        one, two = _sparse(self.matrix), _sparse(other.matrix)
        return one.shape == two.shape and not (one != two).nnz

    def __hash__(self) -> int:
        return hash(self.names)


def _kept(given: Any) -> Any:
    """An array, or the tuple of a sparse matrix."""
    try:
        if sparse.issparse(given) or isinstance(given, tuple):
            matrix = _sparse(given)
            matrix.check_format()  # a file may hold anything
            return matrix.data, matrix.indices, matrix.indptr, matrix.shape
        return np.array(given, dtype=np.float64)
    except (TypeError, ValueError, IndexError) as error:
        raise SettingError(f"the matrix of features must be an array or a sparse matrix: {str(error)[:200]}") from None


def _sparse(kept: Any) -> Sparse:
    """The CSR matrix of an array, a sparse matrix, or the tuple of one."""
    if isinstance(kept, tuple):
        data, indices, indptr, shape = kept
        return sparse.csr_array((data, indices, indptr), shape=tuple(shape), dtype=np.float64)
    return sparse.csr_array(kept, dtype=np.float64)
