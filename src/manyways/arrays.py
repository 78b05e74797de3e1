"""Array types, and what callers hand in turned into them: checked, typed, read-only."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from manyways.errors import ModelError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Sparse = Any
"""A scipy.sparse array; scipy ships no types that would say so."""


def frozen(array: ArrayLike, dtype: Any) -> NDArray[Any]:
    """A read-only array of the given type; a copy unless it was one already."""
    given = np.asarray(array)
    if given.dtype == dtype and not given.flags.writeable and given.flags.c_contiguous:
        return given
    copy = np.array(given, dtype=dtype, order="C")
    copy.flags.writeable = False
    return copy


def matrix_of(transitions: Any) -> Sparse:
    """(N, S) CSR from anything that scipy takes."""
    try:
        matrix: Sparse = sparse.csr_array(transitions, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ModelError(f"transitions must be an (N, S) matrix: {error}") from None
    if matrix.ndim != 2:
        raise ModelError(f"transitions must be an (N, S) matrix, found shape {matrix.shape}")
    return matrix


def integers(values: ArrayLike, what: str) -> Ints:
    array = np.asarray(values)
    if array.ndim != 1 or not (np.issubdtype(array.dtype, np.integer) or array.size == 0):
        raise ModelError(f"{what} must be a list of whole numbers, found {array.dtype} of shape {array.shape}")
    return array.astype(np.int64)


def expected_reward(matrix: Sparse, reward: Any) -> Any:
    """Fold a sparse R(s, a, s') into the expectation; an (N,) reward passes through."""
    if not sparse.issparse(reward):
        return reward
    if reward.shape != matrix.shape:
        raise ModelError(
            f"a reward per transition must have the transitions' shape {matrix.shape}, found {reward.shape}"
        )
    return np.asarray(matrix.multiply(sparse.csr_array(reward)).sum(axis=1)).ravel()


def start_or_first(start: ArrayLike | None, n_states: int) -> Any:
    if start is not None:
        return start
    first = np.zeros(n_states)
    first[:1] = 1.0
    return first


def start_from_states(start: Any, states: Mapping[Hashable, int]) -> Floats | None:
    if start is None:
        return None
    weights = start if isinstance(start, Mapping) else {start: 1.0}
    distribution = np.zeros(len(states))
    for state, weight in weights.items():
        if state not in states:
            raise ModelError(f"the start names state {state!r}, which no transition mentions")
        distribution[states[state]] += weight
    return distribution


def members_mask(members: Iterable[Hashable], states: Mapping[Hashable, int], label: str) -> Bools:
    mask = np.zeros(len(states), bool)
    for state in members:
        if state not in states:
            raise ModelError(f"label {label!r} names state {state!r}, which no transition mentions")
        mask[states[state]] = True
    return mask
