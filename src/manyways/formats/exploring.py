"""`explore`: a model from three Python functions, its states enumerated breadth first."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any

import numpy as np
from scipy import sparse

from manyways.errors import ModelError, check_whole
from manyways.mdp import MDP

SUMS_TO_ONE = 1e-9
TELL_EVERY = 1000


def explore(
    start: Hashable | Mapping[Hashable, float],
    actions: Callable[[Any], Iterable[Hashable]],
    outcomes: Callable[[Any, Any], Iterable[tuple[float, Hashable, float]]],
    *,
    most_states: int = 1_000_000,
    labels: Mapping[str, Callable[[Any], bool]] | None = None,
    name: str = "model",
    progress: Callable[[int, int], None] | None = None,
) -> MDP:
    """Build a model by asking what can happen, from the start on.

    Args:
        start: the first state, or a mapping from first states to probabilities.
        actions: state -> the actions it offers.
        outcomes: state, action -> (probability, next state, reward) of everything that can happen; a next state may
            come up several times.
        most_states: give up beyond so many.
        labels: name -> which states have it.
        name: of the model.
        progress: called now and then with the number of states explored and found.

    States and actions are anything hashable; their `str` becomes their name. States are numbered as they are found.

    Example:
        >>> mdp = explore(0, lambda s: ["on", "back"], lambda s, a: [(1.0, (s + (1 if a == "on" else -1)) % 5, -1.0)])
    """
    check_whole("most_states", most_states, 1)
    first = dict(start) if isinstance(start, Mapping) else {start: 1.0}
    number: dict[Hashable, int] = {}
    queue: list[Hashable] = []
    action_number: dict[Hashable, int] = {}

    def found(state: Hashable) -> int:
        known = number.get(state)
        if known is not None:
            return known
        if len(queue) >= most_states:
            raise ModelError(
                f"exploring found more than {most_states:,} states ({len(row_state):,} choices so far, at state "
                f"{_short(state)}); give a larger most_states, or a coarser state"
            )
        number[state] = len(queue)
        queue.append(state)
        return number[state]

    row_state: list[int] = []
    row_action: list[int] = []
    row_reward: list[float] = []
    begins, targets, weights = [0], [], []
    for state in first:
        found(state)
    at = 0
    while at < len(queue):
        state = queue[at]
        offered = list(dict.fromkeys(actions(state)))
        if not offered:
            raise ModelError(f"state {_short(state)} offers no action; give it one that stays, or that starts again")
        for action in offered:
            total = earned = 0.0
            for outcome in outcomes(state, action):
                chance, target, reward = _checked(outcome, state, action)
                total += chance
                if chance > 0:
                    targets.append(found(target))
                    weights.append(chance)
                    earned += chance * reward
            if abs(total - 1) > SUMS_TO_ONE:
                raise ModelError(
                    f"the probabilities of action {_short(action)} in state {_short(state)} sum to {total:.10g}, expected 1"
                )
            begins.append(len(targets))
            row_state.append(at)
            row_action.append(action_number.setdefault(action, len(action_number)))
            row_reward.append(earned)
        at += 1
        if progress is not None and at % TELL_EVERY == 0:
            progress(at, len(queue))
    matrix = sparse.csr_array((weights, targets, begins), shape=(len(row_state), len(queue)))
    matrix.sum_duplicates()
    chances = np.zeros(len(queue))
    for state, chance in first.items():
        chances[number[state]] = chance
    return MDP.from_csr(
        matrix,
        row_reward,
        np.searchsorted(row_state, np.arange(len(queue) + 1)),
        start=chances,
        actions=row_action,
        action_names=[str(action) for action in action_number],
        state_names=[str(state) for state in queue],
        labels={label: np.fromiter(map(has, queue), bool, len(queue)) for label, has in (labels or {}).items()},
        name=name,
    )


def _checked(outcome: Any, state: Hashable, action: Hashable) -> tuple[float, Hashable, float]:
    where = f"of action {_short(action)} in state {_short(state)}"
    try:
        chance, target, reward = outcome
        chance, reward = float(chance), float(reward)
        hash(target)
    except (TypeError, ValueError):
        raise ModelError(
            f"an outcome {where} is {_short(outcome)}, expected (probability, next state, reward) with a hashable state"
        ) from None
    if not (0 <= chance <= 1 + SUMS_TO_ONE) or not math.isfinite(reward):
        raise ModelError(
            f"an outcome {where} has probability {chance:g} and reward {reward:g}; expected 0 to 1, and a finite reward"
        )
    return chance, target, reward


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
