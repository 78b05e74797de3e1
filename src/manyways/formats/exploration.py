"""`explore`: a model from Python functions, with its states enumerated breadth first; `explore_into`: the same, straight into
an HDF5 file."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from manyways.errors import ModelError, check_integer
from manyways.formats.hdf5 import writing_model
from manyways.model.mdp import MDP
from manyways.model.variables import checked_variables, fields_of
from manyways.types import Bools, Floats, Ints, Sparse

SUMS_TO_ONE = 1e-9
STATES_PER_REPORT = 1000
STATES_PER_PIECE = 10_000


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
    found = _Exploration(start, most_states, first_actions)
    pieces = list(found.pieces(actions, outcomes, progress))
    begins = np.cumsum([0, *(piece.transitions.nnz for piece in pieces)])
    parts = [
        [piece.transitions.data for piece in pieces],
        [piece.transitions.indices for piece in pieces],
        [np.zeros(1, np.int64)]
        + [begin + piece.transitions.indptr[1:] for begin, piece in zip(begins[:-1], pieces, strict=True)],
    ]
    data, indices, indptr = (np.concatenate(part) for part in parts)
    return MDP.from_csr(
        sparse.csr_array((data, indices, indptr), shape=(len(indptr) - 1, len(found.states))),
        np.concatenate([piece.rewards for piece in pieces]),
        np.cumsum([0, *np.concatenate([piece.counts for piece in pieces])]),
        start=found.start(),
        actions=np.concatenate([piece.actions for piece in pieces]),
        action_names=[str(action) for action in found.action_number],
        state_names=[state_name(state) for state in found.states],
        labels={label: found.marked(has) for label, has in (labels or {}).items()},
        variables=fields_of(found.states, variables),
        averaged=found.averaged,
        name=name,
    )


def explore_into(
    path: str | PathLike[str],
    start: Hashable | Mapping[Hashable, float],
    actions: Callable[[Any], Iterable[Hashable]],
    outcomes: Callable[[Any, Any], Iterable[tuple[float, Hashable, float]]],
    *,
    most_states: int = 1_000_000_000,
    labels: Mapping[str, Callable[[Any], bool]] | None = None,
    progress: Callable[[int, int], None] | None = None,
    state_name: Callable[[Any], str] | None = None,
    first_actions: Iterable[Hashable] = (),
    variables: Sequence[str] | None = None,
) -> Path:
    """Explore a model like `explore`, straight into an HDF5 file; returns its path.

    Only the states are kept in memory, each once; choices and transitions, of which there are many more, go to the file as
    they are found. `manyways.read` reads it, and `manyways plan FILE --engine petsc` plans for it without ever having all of
    it on one machine.

    Args:
        path: the file, which should end in .h5. It is complete or, after an error or interrupt, unchanged.
        start, actions, outcomes, most_states, labels, progress, first_actions, variables: as for `explore`.
        state_name: state -> its name; without it, the states have no names.
    """
    found, path = _Exploration(start, most_states, first_actions), Path(path)
    with writing_model(path, most_states) as writer:
        for piece in found.pieces(actions, outcomes, progress):
            writer.add_states(piece.counts, piece.transitions, piece.rewards, piece.actions)
        writer.append("start", found.start())
        for number, has in enumerate((labels or {}).values()):
            writer.append(f"label{number}", found.marked(has))
        given = fields_of(found.states, variables)
        for number, values in enumerate(checked_variables(given, len(found.states)).values()):
            writer.append(f"variable{number}", values)
        if state_name is not None:
            for at in range(0, len(found.states), STATES_PER_PIECE):
                writer.append_names([state_name(state) for state in found.states[at : at + STATES_PER_PIECE]])
        names = [str(action) for action in found.action_number]
        writer.finish(names, labels=list(labels or {}), variables=list(given))
    return path


@dataclass(frozen=True, eq=False)
class _Piece:
    """The choices of some consecutive states: (s,) how many each state has; their (n, states so far) transitions, (n,)
    rewards and (n,) actions."""

    counts: Ints
    transitions: Sparse
    rewards: Floats
    actions: Ints


class _Exploration:
    """The states and actions found so far, and the choices of the states that are explored but not yet taken away."""

    def __init__(
        self, start: Hashable | Mapping[Hashable, float], most_states: int, first_actions: Iterable[Hashable]
    ) -> None:
        self.most_states = check_integer("most_states", most_states, 1)
        self.states: list[Hashable] = []
        self.action_number: dict[Hashable, int] = {action: i for i, action in enumerate(first_actions)}
        self._number: dict[Hashable, int] = {}
        self._first = dict(start) if isinstance(start, Mapping) else {start: 1.0}
        self.averaged = False
        """Whether the reward of some outcome depends on the next state."""
        self._chosen = 0
        self._clear()
        for state in self._first:
            self.number(state)

    def pieces(
        self,
        actions: Callable[[Any], Iterable[Hashable]],
        outcomes: Callable[[Any, Any], Iterable[tuple[float, Hashable, float]]],
        progress: Callable[[int, int], None] | None,
    ) -> Iterator[_Piece]:
        """Explore all states, breadth first, and give their choices in order."""
        at = 0
        while at < len(self.states):
            state = self.states[at]
            offered = list(dict.fromkeys(actions(state)))
            if not offered:
                raise ModelError(f"state {_short(state)} has no action; give it one that stays there, or that restarts")
            self._counts.append(len(offered))
            for action in offered:
                self._add_choice(at, action, outcomes(state, action))
            at += 1
            if progress is not None and at % STATES_PER_REPORT == 0:
                progress(at, len(self.states))
            if at % STATES_PER_PIECE == 0 or at == len(self.states):
                yield self._taken()

    def start(self) -> Floats:
        """(S,) the distribution of the first state."""
        chances = np.zeros(len(self.states))
        for state, chance in self._first.items():
            chances[self.number(state)] = chance
        return chances

    def marked(self, has: Callable[[Any], bool]) -> Bools:
        """(S,) the states for which a function is true."""
        return np.fromiter(map(has, self.states), bool, len(self.states))

    def number(self, state: Hashable) -> int:
        """The number of a state; the next number for a new state."""
        known = self._number.setdefault(state, len(self.states))
        if known == len(self.states):
            if known >= self.most_states:
                raise ModelError(
                    f"the model has more than {self.most_states:,} states ({self._chosen:,} choices so far, the next "
                    f"state is {_short(state)}); raise most_states, or use a smaller model"
                )
            self.states.append(state)
        return known

    def _add_choice(self, at: int, action: Hashable, outcomes: Iterable[Any]) -> None:
        total = earned = 0.0
        rewards = set()
        for outcome in outcomes:
            chance, target, reward = _checked(outcome, self.states[at], action)
            total += chance
            if chance > 0:
                self._targets.append(self.number(target))
                self._weights.append(chance)
                earned += chance * reward
                rewards.add(reward)
        if abs(total - 1) > SUMS_TO_ONE:
            where = f"action {_short(action)} in state {_short(self.states[at])}"
            raise ModelError(
                f"the probabilities of {where} sum to {total:.10g}, expected 1; outcomes are (probability, next state, reward)"
            )
        self._begins.append(len(self._targets))
        self._actions.append(self.action_number.setdefault(action, len(self.action_number)))
        self._rewards.append(earned)
        self.averaged |= len(rewards) > 1
        self._chosen += 1

    def _taken(self) -> _Piece:
        shape = len(self._begins) - 1, len(self.states)
        matrix = sparse.csr_array((self._weights, self._targets, self._begins), shape=shape)
        matrix.sum_duplicates()
        taken = _Piece(np.array(self._counts), matrix, np.array(self._rewards), np.array(self._actions))
        self._clear()
        return taken

    def _clear(self) -> None:
        self._counts: list[int] = []
        self._actions: list[int] = []
        self._rewards: list[float] = []
        self._begins: list[int] = [0]
        self._targets: list[int] = []
        self._weights: list[float] = []


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
