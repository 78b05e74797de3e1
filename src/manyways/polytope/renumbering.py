"""Sweeps on a copy of a large model whose states are numbered in the order in which they are met.

Sweeps visit the states outwards from the reference. In a large model that is numbered otherwise, every step is a cache
miss, and most of the time is spent waiting for memory. So before the first solve the model is copied, with its states numbered
along cheap ways to the best reward (`ways`). The orders of most solves are close to it, and greedy passes run about
three times as fast. The copy needs the memory of the model once more.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from threading import Lock

import numpy as np
from scipy import sparse

from manyways.kernels.orders import walk as breadth_first
from manyways.kernels.threads import cores, side_by_side
from manyways.model.mdp import MDP
from manyways.polytope.large_sweeps import LargeSweeps
from manyways.polytope.oracle import Pause
from manyways.polytope.paired_sweeps import THREADS_FROM, PairedSweeps
from manyways.polytope.policy_iteration import PolicyIteration
from manyways.polytope.vertex import Answer, Vertex
from manyways.polytope.ways import Ways
from manyways.types import Floats, Ints

PAIRED_FROM = 30_000
"""States. Smaller models fit into the processor's cache."""
PARTS = 8
"""In so many pieces, costs are copied by several threads."""


class RenumberedSweeps:
    """The oracle of one model and one discount (1 for the average)."""

    def __init__(self, mdp: MDP, discount: float, pause: Pause | None = None) -> None:
        self._discount, self._pause = discount, pause
        self._copied = _Copied(mdp, PolicyIteration(mdp, discount))
        self._sweeps: LargeSweeps | None = None

    def twin(self) -> RenumberedSweeps:
        """The same oracle, of the same copy, with work space of its own."""
        other = copy(self)
        other._sweeps = None
        return other

    def best(self, c: Floats, warm: Vertex | None = None) -> Answer:
        """The vertex of highest <c, rho> for an (N,) c. Its memory is the answer on the copy."""
        inside = self._copied()
        if self._sweeps is None:
            self._sweeps = self.oracle_of(inside.mdp)
        found = self._sweeps.best(_taken(c, inside.choices), self._on_copy(inside, warm))
        inner = np.asarray(found.choices)
        own = inside.choices[inner]
        choices = np.empty(len(inside.states), np.int64)
        choices[inside.states] = own
        occupancy = np.zeros(len(c))
        occupancy[own] = found.occupancy[inner]  # no time is spent on other choices
        dual = None
        if found.dual is not None:
            dual = np.empty(len(inside.states))
            dual[inside.states] = found.dual
        return Answer(occupancy, choices, value=found.value, bound=found.bound, dual=dual, memory=found)

    def oracle_of(self, mdp: MDP) -> LargeSweeps:
        """The oracle of the copy."""
        if self._discount == 1 and mdp.n_states >= PAIRED_FROM:
            return PairedSweeps(mdp, self._pause)
        return LargeSweeps(mdp, self._discount, self._pause)

    @staticmethod
    def _on_copy(inside: _Copy, warm: Vertex | None) -> Vertex | None:
        """A warm start in the numbers of the copy."""
        if warm is None or warm.choices is None:
            return None
        if isinstance(warm, Answer) and isinstance(warm.memory, Answer):
            return warm.memory
        return Vertex(warm.occupancy[inside.choices], inside.number[warm.choices[inside.states]])


@dataclass(frozen=True, eq=False)
class _Copy:
    """A copy of a model.

    Attributes:
        mdp: the copy, without names.
        states: (S,) the state in the model of each state of the copy.
        choices: (N,) the choice in the model of each choice of the copy.
        number: (N,) the choice of the copy for each choice of the model.
    """

    mdp: MDP
    states: Ints
    choices: Ints
    number: Ints


class _Copied:
    """The copy of a model, made when it is first asked for, by whatever thread. It depends on the model only."""

    def __init__(self, mdp: MDP, exact: PolicyIteration) -> None:
        self._mdp, self._exact = mdp, exact
        self._copy: _Copy | None = None
        self._lock = Lock()

    def __call__(self) -> _Copy:
        with self._lock:
            if self._copy is None:
                ways, reward = Ways(self._mdp), np.array(self._mdp.reward)
                target = self._exact.most_paying(reward)
                ways.find(reward, target, -np.inf)
                states = _by_steps(int(self._mdp.choice_state[target]), ways)
                mdp, choices = renumber(self._mdp, states)
                number = np.empty(mdp.n_choices, np.int64)
                number[choices] = np.arange(mdp.n_choices)
                self._copy = _Copy(mdp, states, choices, number)
            return self._copy

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, object]) -> None:
        vars(self).update(state, _lock=Lock())


def _taken(c: Floats, choices: Ints) -> Floats:
    """c[choices], by several threads where that takes as long as a pass over the states."""
    found = np.empty(len(choices))
    parts = list(zip(np.array_split(choices, PARTS), np.array_split(found, PARTS), strict=True))
    threads = cores() if len(choices) >= THREADS_FROM else 1
    side_by_side(lambda part: np.take(c, part[0], out=part[1], mode="clip"), parts, threads)
    return found


def _by_steps(place: int, ways: Ways) -> Ints:
    """(S,) the states breadth first along the tree of cheapest ways to a place. By cost, what is hard to enter would be far from its
    neighbours."""
    walk, child, sibling = (np.empty(len(ways.ahead), np.uint32) for _ in range(3))
    walk[0] = place
    breadth_first(walk, ways.ahead, child, sibling)
    return walk.astype(np.int64)


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
