"""`explore`: a model from Python functions, with its states enumerated breadth first."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from manyways.errors import ModelError, check_integer
from manyways.model.mdp import MDP
from manyways.model.variables import fields_of
from manyways.types import Sparse

SUMS_TO_ONE = 1e-9
STATES_PER_REPORT = 1000


def explore(
    start: Hashable | Mapping[Hashable, float],
    actions: Callable[[Any], Iterable[Hashable]],
    outcomes: Callable[[Any, Any], Iterable[tuple[float, Hashable, float]]],
    *,
    most_states: int = 1_000_000,
    labels: Mapping[str, Callable[[Any], bool]] | None = None,
    name: str = "model",
    progress: Callable[[int, int], None] | None = None,
    state_name: Callable[[Any], str] = str,
    first_actions: Iterable[Hashable] = (),
    variables: Sequence[str] | None = None,
) -> MDP:
    """Build a model from functions, exploring all states that can be reached from the start.

    States and actions are any hashable objects. States are numbered in the order in which they are found. The fields of
    states that are tuples, named tuples, dataclasses or mappings become the `variables` of the model.

    Args:
        start: the first state, or a mapping from first states to probabilities.
        actions: state -> its actions.
        outcomes: state, action -> (probability, next state, reward) of each possible outcome; a next state may occur
            several times.
        most_states: raise a `ModelError` if there are more states than this.
        labels: name -> a function from a state to whether it has the label.
        name: of the model.
        progress: called every 1000 states with the numbers of states explored and found.
        state_name: state -> its name.
        first_actions: actions that are numbered first, in this order, even if no state has them; all others are numbered
            in the order in which they are found. The name of an action is its `str`.
        variables: what to call the fields of states that are plain tuples; `x1`, `x2`, ... by default.

    Example:
        >>> mdp = explore(0, lambda s: ["on", "back"], lambda s, a: [(1.0, (s + (1 if a == "on" else -1)) % 5, -1.0)])
    """
    check_integer("most_states", most_states, 1)
    first = dict(start) if isinstance(start, Mapping) else {start: 1.0}
    found = _Found(most_states, first_actions)
    for state in first:
        found.number(state)
    at = 0
    while at < len(found.states):
        state = found.states[at]
        offered = list(dict.fromkeys(actions(state)))
        if not offered:
            raise ModelError(f"state {_short(state)} has no action; give it one that stays there, or that restarts")
        for action in offered:
            found.add_choice(at, action, outcomes(state, action))
        at += 1
        if progress is not None and at % STATES_PER_REPORT == 0:
            progress(at, len(found.states))
    chances = np.zeros(len(found.states))
    for state, chance in first.items():
        chances[found.number(state)] = chance
    return MDP.from_csr(
        found.transitions(),
        found.rewards,
        np.searchsorted(found.owner, np.arange(len(found.states) + 1)),
        start=chances,
        actions=found.actions,
        action_names=[str(action) for action in found.action_number],
        state_names=[state_name(state) for state in found.states],
        labels={
            label: np.fromiter(map(has, found.states), bool, len(chances)) for label, has in (labels or {}).items()
        },
        variables=fields_of(found.states, variables),
        name=name,
    )


class _Found:
    """The states and choices found so far."""

    def __init__(self, most_states: int, first_actions: Iterable[Hashable]) -> None:
        self.most_states = most_states
        self.states: list[Hashable] = []
        self.action_number: dict[Hashable, int] = {action: i for i, action in enumerate(first_actions)}
        self.owner: list[int] = []
        self.actions: list[int] = []
        self.rewards: list[float] = []
        self._number: dict[Hashable, int] = {}
        self._begins: list[int] = [0]
        self._targets: list[int] = []
        self._weights: list[float] = []

    def number(self, state: Hashable) -> int:
        """The number of a state; the next number for a new state."""
        known = self._number.setdefault(state, len(self.states))
        if known == len(self.states):
            if known >= self.most_states:
                raise ModelError(
                    f"the model has more than {self.most_states:,} states ({len(self.owner):,} choices so far, the next "
                    f"state is {_short(state)}); raise most_states, or use a smaller model"
                )
            self.states.append(state)
        return known

    def add_choice(self, at: int, action: Hashable, outcomes: Iterable[Any]) -> None:
        total = earned = 0.0
        for outcome in outcomes:
            chance, target, reward = _checked(outcome, self.states[at], action)
            total += chance
            if chance > 0:
                self._targets.append(self.number(target))
                self._weights.append(chance)
                earned += chance * reward
        if abs(total - 1) > SUMS_TO_ONE:
            where = f"action {_short(action)} in state {_short(self.states[at])}"
            raise ModelError(
                f"the probabilities of {where} sum to {total:.10g}, expected 1; outcomes are (probability, next state, reward)"
            )
        self._begins.append(len(self._targets))
        self.owner.append(at)
        self.actions.append(self.action_number.setdefault(action, len(self.action_number)))
        self.rewards.append(earned)

    def transitions(self) -> Sparse:
        matrix = sparse.csr_array(
            (self._weights, self._targets, self._begins), shape=(len(self.owner), len(self.states))
        )
        matrix.sum_duplicates()
        return matrix


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
            f"an outcome {where} has probability {chance:g} and reward {reward:g}; expected a probability from 0 to 1 "
            "and a finite reward"
        )
    return chance, target, reward


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
