"""`explore`: a model from three Python functions, its states enumerated breadth first."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any

import numpy as np
from scipy import sparse

from manyways.errors import ModelError, check_integer
from manyways.model.mdp import MDP
from manyways.types import Sparse

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
    check_integer("most_states", most_states, 1)
    first = dict(start) if isinstance(start, Mapping) else {start: 1.0}
    found = _Found(most_states)
    for state in first:
        found.number(state)
    at = 0
    while at < len(found.states):
        state = found.states[at]
        offered = list(dict.fromkeys(actions(state)))
        if not offered:
            raise ModelError(f"state {_short(state)} offers no action; give it one that stays, or that starts again")
        for action in offered:
            found.add_choice(at, action, outcomes(state, action))
        at += 1
        if progress is not None and at % TELL_EVERY == 0:
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
        state_names=[str(state) for state in found.states],
        labels={
            label: np.fromiter(map(has, found.states), bool, len(chances)) for label, has in (labels or {}).items()
        },
        name=name,
    )


class _Found:
    """The states and choices met so far."""

    def __init__(self, most_states: int) -> None:
        self.most_states = most_states
        self.states: list[Hashable] = []
        self.action_number: dict[Hashable, int] = {}
        self.owner: list[int] = []
        self.actions: list[int] = []
        self.rewards: list[float] = []
        self._number: dict[Hashable, int] = {}
        self._begins: list[int] = [0]
        self._targets: list[int] = []
        self._weights: list[float] = []

    def number(self, state: Hashable) -> int:
        """The number of a state, a new one if it was not met before."""
        known = self._number.setdefault(state, len(self.states))
        if known == len(self.states):
            if known >= self.most_states:
                raise ModelError(
                    f"exploring found more than {self.most_states:,} states ({len(self.owner):,} choices so far, at "
                    f"state {_short(state)}); give a larger most_states, or a coarser state"
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
            f"an outcome {where} has probability {chance:g} and reward {reward:g}; expected 0 to 1, and a finite reward"
        )
    return chance, target, reward


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
