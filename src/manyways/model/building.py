"""From what callers hand in to the arrays of a model: matrices, lists of transitions, names, starts."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from manyways.errors import ModelError
from manyways.model.checking import integers, rises
from manyways.types import Bools, Floats, Ints, Sparse


def matrix_of(transitions: Any) -> Sparse:
    """(N, S) CSR from anything that scipy takes."""
    try:
        matrix: Sparse = sparse.csr_array(transitions, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ModelError(f"transitions must be an (N, S) matrix: {error}") from None
    if matrix.ndim != 2:
        raise ModelError(f"transitions must be an (N, S) matrix, found shape {matrix.shape}")
    return matrix


def csr_of(data: NDArray[Any], indices: NDArray[Any], begin: NDArray[Any], n_states: int) -> Sparse:
    """(N, S) CSR from its parts, checked first: scipy would read past the ends of arrays that do not fit."""
    for what, array in (("next states", indices), ("beginnings of rows", begin)):
        if array.ndim != 1 or array.dtype.kind not in "iu":  # scipy would truncate 0.5 to 0
            raise ModelError(f"the {what} must be integers, found {array.dtype} of shape {array.shape}")
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


def ranks(begin: Ints, n_choices: int) -> Ints:
    """(N,) the position of each choice within its state."""
    index = np.arange(n_choices)
    index -= begin[np.clip(np.searchsorted(begin, index, side="right") - 1, 0, None)] if begin.size else 0
    return np.maximum(index, 0)


def default_action_names(actions: Ints) -> list[str]:
    """`a0`, `a1`, ... up to the largest action number; numbers far larger than the model are refused."""
    largest = int(actions.max(initial=0))
    if largest >= most_actions(actions.size):
        raise ModelError(
            f"an action has the number {largest:,}, which is too large for a model with {actions.size:,} choices; "
            "number the actions from 0, or give action_names"
        )
    return [f"a{i}" for i in range(largest + 1)]


def most_actions(n_choices: int) -> int:
    """How many action names a model of this size may have."""
    return max(1000, 100 * n_choices)


def expected_reward(matrix: Sparse, reward: Any) -> Any:
    """Turn a sparse R(s, a, s') into its expectation (N,); an (N,) reward is returned as it is."""
    if not sparse.issparse(reward):
        return reward
    if reward.shape != matrix.shape:
        raise ModelError(
            f"a reward per transition must have the transitions' shape {matrix.shape}, found {reward.shape}"
        )
    with np.errstate(all="ignore"):  # the model refuses rewards that are not finite
        return np.asarray(matrix.multiply(sparse.csr_array(reward)).sum(axis=1)).ravel()


def depends_on_next(matrix: Sparse, reward: Any) -> bool:
    """Whether a sparse R(s, a, s') has different rewards for the next states of some choice."""
    if not sparse.issparse(reward) or reward.shape != matrix.shape:
        return False
    with np.errstate(all="ignore"):
        values = sparse.csr_array(reward)
        mean, square = (np.asarray(matrix.multiply(part).sum(axis=1)).ravel() for part in (values, values.power(2)))
        return bool((square - mean**2 > 1e-9 * square).any())


def numbered(
    transitions: Iterable[tuple[Hashable, Hashable, Hashable, float, float]],
) -> tuple[dict[Hashable, int], dict[Hashable, int], Ints, Floats]:
    """Number the states and actions in a list of (state, action, next state, probability, reward).

    Returns:
        The numbers of the states and of the actions in the order of their first appearance; (3, T) the numbers of
        state, action and next state; (2, T) probabilities and rewards.
    """
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
        raise ModelError("the model is empty: there are no transitions")
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


def summed_by_choice(
    s: Ints, a: Ints, t: Ints, p: Floats, r: Floats, n_states: int, n_actions: int, *, as_given: bool = False
) -> tuple[Sparse, Floats, Ints, Ints, bool]:
    """From T transitions in any order, by their numbers of state, action and next state: the (N, S) transitions, the (N,)
    expected rewards, the (S + 1,) first choices, the (N,) actions, and whether any reward depends on the next state.

    The choices of a state are in the order of their actions' numbers or, `as_given`, of their first transitions.
    A choice whose transitions all have one reward has exactly that reward, whatever rounding makes of its probabilities.
    """
    keys, given, choice = np.unique(s * n_actions + a, return_index=True, return_inverse=True)
    if as_given:
        order = np.lexsort((given, keys // n_actions))
        keys, choice = keys[order], np.argsort(order)[choice]
    matrix = sparse.csr_array((p, (choice, t)), shape=(len(keys), n_states))
    reward = np.bincount(choice, weights=np.multiply(p, r, where=p != 0, out=np.zeros_like(p)), minlength=len(keys))
    possible = np.flatnonzero(p != 0)
    some = np.zeros(len(keys))
    some[choice[possible]] = r[possible]
    varied = np.zeros(len(keys), bool)
    varied[choice[possible[r[possible] != some[choice[possible]]]]] = True
    first = np.searchsorted(keys // n_actions, np.arange(n_states + 1))
    return matrix, np.where(varied, reward, some), first, keys % n_actions, bool(varied.any())


def start_or_first(start: ArrayLike | None, n_states: int) -> Any:
    """The given start, or all of it in state 0."""
    if start is not None:
        return start
    first = np.zeros(n_states)
    first[:1] = 1.0
    return first


def start_from_states(start: Any, states: Mapping[Hashable, int]) -> Floats | None:
    """(S,) from a state, or from a mapping of states to probabilities."""
    if start is None:
        return None
    weights = start if isinstance(start, Mapping) else {start: 1.0}
    distribution = np.zeros(len(states))
    for state, weight in weights.items():
        if state not in states:
            raise ModelError(f"the start names state {state!r}, which no transition mentions")
        distribution[states[state]] += weight
    return distribution


def mask_of(given: Any, count: int, what: str) -> Bools:
    """(count,) a mask from a mask, from indices, or from one index; `what` is what messages call them: "states"."""
    try:
        array = np.atleast_1d(np.asarray(given))
    except ValueError as error:
        raise ModelError(f"{what} must be a list of integers, or a mask: {error}") from None
    if array.dtype == bool:
        if array.shape != (count,):
            raise ModelError(f"a mask of {what} must have {count} entries, found shape {array.shape}")
        return array
    index = integers(array, what)
    if index.size and not (index.min() >= 0 and index.max() < count):
        raise ModelError(f"{what} must lie in 0..{count - 1}, found {index.min()}..{index.max()}")
    mask = np.zeros(count, bool)
    mask[index] = True
    return mask


def members_mask(members: Iterable[Hashable], states: Mapping[Hashable, int], label: str) -> Bools:
    """(S,) which states a label lists."""
    mask = np.zeros(len(states), bool)
    for state in members:
        if state not in states:
            raise ModelError(f"label {label!r} names state {state!r}, which no transition mentions")
        mask[states[state]] = True
    return mask
