"""Sweeps on a copy of the model whose states are numbered in the order in which they are met.

Sweeps visit the states outwards from the reference. In a large model that is numbered otherwise, every step is a cache
miss, and most of the time is spent waiting for memory. So the first solve, which is slow, ends with a copy of the model,
made when it is needed, whose states are numbered in the order of that solve. Later orders are close to it, and greedy passes
run about three times as fast. The copy needs the memory of the model once more.
"""

from __future__ import annotations

from copy import copy
from threading import Lock

import numpy as np
from scipy import sparse

from manyways.model.mdp import MDP
from manyways.polytope.oracle import Pause
from manyways.polytope.sweeps import SolveState, Sweeps
from manyways.polytope.vertex import Answer, Vertex
from manyways.types import Floats, Ints


class RenumberedSweeps:
    """The oracle of one model and one discount (1 for the average)."""

    def __init__(self, mdp: MDP, discount: float, pause: Pause | None = None) -> None:
        self._sweeps = Sweeps(mdp, discount, pause)
        self._first: Answer | None = None
        self._copied = False
        self._copying = Lock()

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if name != "_copying"}

    def __setstate__(self, state: dict[str, object]) -> None:
        vars(self).update(state, _copying=Lock())

    def twin(self) -> RenumberedSweeps:
        """The same oracle, of the same copy, with work space of its own. Threads may ask for twins at the same time."""
        with self._copying:
            if self._first is not None and not self._copied:
                self._copy(self._first)
        other, sweeps = copy(self), self._sweeps
        other._sweeps = Sweeps(sweeps.mdp, sweeps.discount, sweeps.pause)
        return other

    def best(self, c: Floats, warm: Vertex | None = None) -> Answer:
        """The vertex of highest <c, rho> for an (N,) c; after the first solve its memory is the answer on the copy."""
        if self._first is None:
            self._first = self._sweeps.best(c, warm)
            return self._first
        if not self._copied:
            self._copy(self._first)
        found = self._sweeps.best(c[self._choices], self._on_copy(warm))
        occupancy = np.empty(len(c))
        occupancy[self._choices] = found.occupancy
        choices = np.empty(len(self._states), np.int64)
        choices[self._states] = self._choices[np.asarray(found.choices)]
        dual = None
        if found.dual is not None:
            dual = np.empty(len(self._states))
            dual[self._states] = found.dual
        return Answer(occupancy, choices, value=found.value, bound=found.bound, dual=dual, memory=found)

    def _copy(self, first: Answer) -> None:
        """From now on, sweep a copy that is numbered in the order of the first answer."""
        sweeps = self._sweeps
        self._states = sweeps.order_of(first.memory)
        renumbered, self._choices = renumber(sweeps.mdp, self._states)
        self._choice_inside = np.empty(renumbered.n_choices, np.int64)
        self._choice_inside[self._choices] = np.arange(renumbered.n_choices)
        self._sweeps, self._copied = Sweeps(renumbered, sweeps.discount, sweeps.pause), True

    def _on_copy(self, warm: Vertex | None) -> Vertex | None:
        """A warm start in the numbers of the copy."""
        if warm is None or warm.choices is None:
            return None
        if isinstance(warm, Answer) and isinstance(warm.memory, Answer):
            return warm.memory
        vertex = Vertex(warm.occupancy[self._choices], self._choice_inside[warm.choices[self._states]])
        if isinstance(warm, Answer) and isinstance(warm.memory, SolveState):  # the first answer
            memory = warm.memory.renumbered(self._states, self._choice_inside)
            return Answer(vertex.occupancy, vertex.choices, value=warm.value, bound=warm.bound, memory=memory)
        return vertex


def renumber(mdp: MDP, states: Ints) -> tuple[MDP, Ints]:
    """The same model with state states[i] as its i-th (names, labels and layout left behind), and for each choice
    its number in `mdp`."""
    number = np.empty(mdp.n_states, np.int32)
    number[states] = np.arange(mdp.n_states)
    counts = np.diff(mdp.first_choice)[states]
    first = np.concatenate([[0], np.cumsum(counts)])
    choices = np.repeat(mdp.first_choice[states] - first[:-1], counts) + np.arange(mdp.n_choices)
    rows = mdp.transitions[choices]
    transitions = sparse.csr_array((rows.data, number[rows.indices], rows.indptr), shape=rows.shape)
    transitions.sort_indices()
    parts = transitions, mdp.reward[choices], first, mdp.start[states], mdp.actions[choices], mdp.action_names
    return MDP(*parts), choices
