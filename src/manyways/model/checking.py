"""Checks of a model's parts. Each returns the part in its final form, read-only, or raises a `ModelError`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from manyways.errors import ModelError
from manyways.types import Floats, Ints, Sparse

ROUNDING = 1e-6
"""Probabilities that miss their sum by less than this are taken as rounded (files often print six digits)."""


def frozen(array: ArrayLike, dtype: Any) -> NDArray[Any]:
    """A read-only array of the given type; a copy unless it was one already."""
    given = np.asarray(array)
    if given.dtype == dtype and not given.flags.writeable and given.flags.c_contiguous:
        return given
    copy = np.array(given, dtype=dtype, order="C")
    copy.flags.writeable = False
    return copy


def integers(values: ArrayLike, what: str) -> Ints:
    """A one-dimensional array of 64-bit integers."""
    try:
        array = np.asarray(values)
    except (ValueError, OverflowError) as error:
        raise ModelError(f"{what} must be a list of integers: {error}") from None
    if array.ndim != 1 or not (np.issubdtype(array.dtype, np.integer) or array.size == 0):
        raise ModelError(f"{what} must be a list of integers, found {array.dtype} of shape {array.shape}")
    if array.size and array.max() > np.iinfo(np.int64).max:
        raise ModelError(f"{what} must be below 2**63, found {array.max()}")
    return array.astype(np.int64)


def rises(begin: NDArray[Any]) -> bool:
    """Whether no entry is below the one before it. (Differences could overflow, comparisons cannot.)"""
    return bool((begin[1:] >= begin[:-1]).all())


def check_text(**named: Iterable[Any]) -> None:
    """Refuse names with lone surrogates, which Python strings can hold but no UTF-8 file and no page can."""
    for what, given in named.items():
        names = [str(name) for name in given]
        try:
            "".join(names).encode()
        except UnicodeEncodeError:
            bad = next(name for name in names if any("\ud800" <= character <= "\udfff" for character in name))
            raise ModelError(
                f"the name of {what} {bad[:60]!r} cannot be encoded as UTF-8; give it another name"
            ) from None


def checked_transitions(given: Any, where: Callable[[int], str], state_name: Callable[[int], str]) -> Sparse:
    """(N, S) canonical CSR (sorted, merged, no stored zeros) whose rows sum to one.

    Args:
        given: a scipy.sparse matrix.
        where: choice -> its action and state, for messages.
        state_name: state -> its name, for messages.
    """
    matrix = _own_csr(given)
    bad = np.flatnonzero(~(np.isfinite(matrix.data) & (matrix.data >= 0)))
    if bad.size:
        choice = int(np.searchsorted(matrix.indptr, bad[0], side="right") - 1)
        raise ModelError(
            f"the probability of reaching {state_name(int(matrix.indices[bad[0]]))!r} by {where(choice)} is "
            f"{matrix.data[bad[0]]}; probabilities must be finite and not negative"
        )
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    total = np.asarray(matrix.sum(axis=1)).ravel()
    off = np.abs(total - 1)
    if (off > ROUNDING).any():
        worst = int(np.argmax(off))
        raise ModelError(f"the probabilities of {where(worst)} sum to {total[worst]:.10g}, expected 1")
    # Only rows that really miss are scaled: scaling others would change their bits, and with them the digest.
    scale = np.where(off > 1e-12, 1 / total, 1.0)
    matrix.data *= np.repeat(scale, np.diff(matrix.indptr))
    for array in (matrix.data, matrix.indices, matrix.indptr):
        array.flags.writeable = False
    return matrix


def _own_csr(matrix: Sparse) -> Sparse:
    """A copy as CSR whose parts fit together; scipy would read past the ends of arrays that do not."""
    copy: Sparse = sparse.csr_array(matrix, dtype=np.float64, copy=True)
    if not rises(copy.indptr):  # which scipy does not notice where the last entry is negative
        raise ModelError("the transitions are not a proper CSR matrix: the beginnings of its rows do not rise")
    try:
        copy.check_format(full_check=True)
    except ValueError as error:
        raise ModelError(f"the transitions are not a proper CSR matrix: {error}") from None
    return copy


def checked_start(given: ArrayLike, n_states: int, state_name: Callable[[int], str]) -> Floats:
    """(S,) the start distribution."""
    start = np.array(given, dtype=np.float64)
    if start.shape != (n_states,):
        raise ModelError(f"the start distribution must have {n_states} entries, found shape {start.shape}")
    bad = np.flatnonzero(~(np.isfinite(start) & (start >= 0)))
    if bad.size:
        raise ModelError(f"the start probability of state {state_name(int(bad[0]))!r} is {start[bad[0]]}")
    if abs(start.sum() - 1) > ROUNDING:
        raise ModelError(f"the start distribution sums to {start.sum():.10g}, expected 1")
    if abs(start.sum() - 1) > 1e-12:
        start /= start.sum()
    return frozen(start, np.float64)


def checked_reward(given: ArrayLike, n_choices: int, where: Callable[[int], str]) -> Floats:
    """(N,) finite rewards."""
    reward = frozen(given, np.float64)
    if reward.shape != (n_choices,):
        raise ModelError(
            f"the reward must have one number for each of the {n_choices} choices, found shape {reward.shape}"
        )
    bad = np.flatnonzero(~np.isfinite(reward))
    if bad.size:
        raise ModelError(f"the reward of {where(int(bad[0]))} is {reward[bad[0]]}; rewards must be finite")
    return reward


def checked_ends(ends: Mapping[str, ArrayLike], transitions: Sparse, start: Floats) -> dict[str, Floats]:
    """By name, (N,) probabilities that a step ends an episode in this way.

    Ends exclude each other, and each leads back to the start, so the (N, S) transitions to the (S,) start must have at
    least their total probability.
    """
    n_choices, total = transitions.shape[0], np.zeros(transitions.shape[0])
    checked: dict[str, Floats] = {}
    for name, given in ends.items():
        try:
            chance = np.asarray(given)
        except (TypeError, ValueError, OverflowError):
            chance = np.asarray(None)
        if chance.dtype.kind not in "biuf" or chance.shape != (n_choices,):
            raise ModelError(
                f"the end {name!r} must have {n_choices} probabilities, found {chance.dtype} of shape {chance.shape}"
            )
        checked[str(name)] = chance = frozen(chance, np.float64)
        if not (np.isfinite(chance).all() and chance.min() >= 0):
            raise ModelError(f"the probabilities of the end {name!r} must be finite and not negative")
        total += chance
    ending = np.flatnonzero(total > 0)
    back = transitions[ending]
    possible = len(ending) * np.count_nonzero(start) <= back.nnz  # otherwise the product would not fit into memory
    if possible and len(ending):
        needed = sparse.csr_array(total[ending][:, None]) @ sparse.csr_array(start[None, :])
        possible = (needed - back).max() <= ROUNDING
    if not possible:
        raise ModelError("a choice ends an episode with a higher probability than it leads back to the start")
    return checked
