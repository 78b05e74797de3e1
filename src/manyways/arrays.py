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

ROUNDING = 1e-6
"""Probabilities that miss what they should sum to by less are taken as rounded (files print six digits)."""


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
    try:
        array = np.asarray(values)
    except (ValueError, OverflowError) as error:
        raise ModelError(f"{what} must be a list of whole numbers: {error}") from None
    if array.ndim != 1 or not (np.issubdtype(array.dtype, np.integer) or array.size == 0):
        raise ModelError(f"{what} must be a list of whole numbers, found {array.dtype} of shape {array.shape}")
    if array.size and array.max() > np.iinfo(np.int64).max:
        raise ModelError(f"{what} must be below 2**63, found {array.max()}")
    return array.astype(np.int64)


def rises(begin: NDArray[Any]) -> bool:
    """Whether no entry is below the one before it; the difference of two could be too large to be held."""
    return bool((begin[1:] >= begin[:-1]).all())


def csr_of(data: NDArray[Any], indices: NDArray[Any], begin: NDArray[Any], n_states: int) -> Sparse:
    """(N, S) CSR from its parts, looked at first: scipy would run over the ends of arrays that do not fit."""
    for what, array in (("next states", indices), ("beginnings of rows", begin)):
        if array.ndim != 1 or array.dtype.kind not in "iu":  # scipy would cut 0.5 off to 0
            raise ModelError(f"the {what} must be whole numbers, found {array.dtype} of shape {array.shape}")
    if data.shape != indices.shape:
        raise ModelError(f"there are {data.size} probabilities for {indices.size} next states")
    if not len(begin) or begin[0] != 0 or begin[-1] != len(indices) or not rises(begin):
        raise ModelError(
            f"the beginnings of the rows do not rise from 0 to the number of transitions, which is {len(indices)}"
        )
    if indices.size and not (indices.min() >= 0 and indices.max() < n_states):
        raise ModelError(
            f"next states must lie in 0..{n_states - 1}, found {indices.min()} to {indices.max()}; states count from 0"
        )
    return sparse.csr_array((data, indices, begin), shape=(len(begin) - 1, n_states))


def own_csr(matrix: Sparse) -> Sparse:
    """A copy of a matrix as CSR; scipy would run over the ends of arrays that do not fit."""
    copy: Sparse = sparse.csr_array(matrix, dtype=np.float64, copy=True)
    if not rises(copy.indptr):  # which scipy overlooks where the last entry is negative
        raise ModelError("the transitions are not a proper CSR matrix: the beginnings of its rows do not rise")
    try:
        copy.check_format(full_check=True)
    except ValueError as error:
        raise ModelError(f"the transitions are not a proper CSR matrix: {error}") from None
    return copy


def chances_of_ends(ends: Mapping[str, ArrayLike], transitions: Sparse, start: Floats) -> dict[str, Floats]:
    """By name, (N,) chances that exclude each other, and that the (N, S) transitions to the (S,) start leave room for."""
    n_choices, total = transitions.shape[0], np.zeros(transitions.shape[0])
    checked: dict[str, Floats] = {}
    for name, given in ends.items():
        try:
            chance = np.asarray(given)
        except (TypeError, ValueError, OverflowError):
            chance = np.asarray(None)
        if chance.dtype.kind not in "biuf" or chance.shape != (n_choices,):
            raise ModelError(
                f"the end {name!r} must have {n_choices} chances, found {chance.dtype} of shape {chance.shape}"
            )
        checked[str(name)] = chance = frozen(chance, np.float64)
        if not (np.isfinite(chance).all() and chance.min() >= 0):
            raise ModelError(f"the chances of the end {name!r} must be finite and not negative")
        total += chance
    # Whoever ends an episode begins another, so that the start is reached with at least the chance of an end.
    ending = np.flatnonzero(total > 0)
    led = transitions[ending]
    possible = len(ending) * np.count_nonzero(start) <= led.nnz  # or it would take more memory than the model
    if possible and len(ending):
        again = sparse.csr_array(total[ending][:, None]) @ sparse.csr_array(start[None, :])
        possible = (again - led).max() <= ROUNDING
    if not possible:
        raise ModelError("a choice ends an episode with a greater chance than it leads back to the start")
    return checked


def ranks(begin: Ints, n_choices: int) -> Ints:
    """(N,) the place of each choice in its state."""
    index = np.arange(n_choices)
    index -= begin[np.clip(np.searchsorted(begin, index, side="right") - 1, 0, None)] if begin.size else 0
    return np.maximum(index, 0)


def made_up_names(actions: Ints) -> list[str]:
    """`a0`, `a1`, ... up to the largest action number, which must not be out of all proportion."""
    largest = int(actions.max(initial=0))
    most = most_actions(actions.size)
    if largest >= most:
        raise ModelError(
            f"an action has the number {largest:,}, which is too large for a model with {actions.size:,} choices; "
            "number the actions from 0 on, or give action_names"
        )
    return [f"a{i}" for i in range(largest + 1)]


def most_actions(n_choices: int) -> int:
    return max(1000, 100 * n_choices)


def check_text(**named: Iterable[Any]) -> None:
    """Half a character (a lone surrogate) can be in a string of Python's, but in no file and on no page."""
    for what, given in named.items():
        names = [str(name) for name in given]
        try:
            "".join(names).encode()
        except UnicodeEncodeError:
            bad = next(name for name in names if any("\ud800" <= character <= "\udfff" for character in name))
            raise ModelError(
                f"the name of {what} {bad[:60]!r} is no text that UTF-8 can hold; give it another name"
            ) from None


def expected_reward(matrix: Sparse, reward: Any) -> Any:
    """Fold a sparse R(s, a, s') into the expectation; an (N,) reward passes through."""
    if not sparse.issparse(reward):
        return reward
    if reward.shape != matrix.shape:
        raise ModelError(
            f"a reward per transition must have the transitions' shape {matrix.shape}, found {reward.shape}"
        )
    with np.errstate(all="ignore"):  # the model refuses what is not finite
        return np.asarray(matrix.multiply(sparse.csr_array(reward)).sum(axis=1)).ravel()


def numbered(
    transitions: Iterable[tuple[Hashable, Hashable, Hashable, float, float]],
) -> tuple[dict[Hashable, int], dict[Hashable, int], Ints, Floats]:
    """(state, action, next state, probability, reward) by row -> the states and actions as they first appear, and by
    column (3, T) their numbers and (2, T) probabilities and rewards."""
    states: dict[Hashable, int] = {}
    actions: dict[Hashable, int] = {}
    rows = []
    for number, row in enumerate(transitions):
        if len(row) != 5:
            raise ModelError(
                f"transition {number} has {len(row)} entries, expected 5: (state, action, next_state, probability, reward)"
            )
        source, action, target, probability, reward = row
        numbers = (
            states.setdefault(source, len(states)),
            actions.setdefault(action, len(actions)),
            states.setdefault(target, len(states)),
        )
        rows.append((*numbers, probability, reward))
    if not rows:
        raise ModelError("the model is empty: there is not one transition")
    amounts = np.array([row[3:] for row in rows], dtype=np.float64).T
    for bad in np.flatnonzero(~(np.isfinite(amounts[0]) & (amounts[0] >= 0)))[:1]:
        source, action, target = (
            str(list(names)[i]) for names, i in zip((states, actions, states), rows[bad][:3], strict=True)
        )
        raise ModelError(
            f"the probability of reaching {target!r} by action {action!r} in state {source!r} is {amounts[0, bad]}; "
            "probabilities must be finite and not negative"
        )
    return states, actions, np.array([row[:3] for row in rows], dtype=np.int64).T, amounts


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
