"""First visits in the Markov chain of a plan, from the start distribution: their probability and the steps until then.

Both come from one sparse linear system in which the target is absorbing. States that cannot reach the target are left
out, because they would make the system singular; their probability is zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from manyways.model.graph import reachable
from manyways.model.mdp import MDP
from manyways.types import Bools, Floats, Ints, Sparse

SOLVED_AT_ONCE = 64
"""With more target states than this, factorising a new system is faster than solving once for each of them."""


@dataclass(frozen=True, eq=False)
class Run:
    """A plan from the start to its first goal: the R states that it can meet on the way, and the chain on them.

    What happens after the goal is left out, because a plan may go from there to states that never reach the goal.

    Attributes:
        states: (R,) the numbers of the states in the model.
        step: (R, R) CSR, the chance of each next state.
        start: (R,) distribution of the first state.
    """

    states: Ints
    step: Sparse
    start: Floats


def run_of(mdp: MDP, step: Sparse, goal: Bools) -> Run:
    """(S, S) the chain of a plan -> the chain on the states that it can meet up to its first state in (S,) `goal`."""
    before = step.copy()
    before.data[np.repeat(goal, np.diff(step.indptr))] = 0.0
    before.eliminate_zeros()
    states = np.flatnonzero(reachable(before, mdp.start > 0))
    if len(states) < mdp.n_states:
        step = step[states][:, states]
    return Run(states, step, mdp.start[states])


def chance_of_reaching(
    run: Run, target: Bools, before: Bools | None = None, *, surely_ends: bool = False
) -> float | None:
    """The chance that a run enters (R,) `target`, or enters it before any state in (R,) `before`.

    `surely_ends` says that every state is known to lead to one of the two, so that no state has to be left out. Returns
    None if rounding hides the answer, as for a chance of leaving a state that is lost beside 1.
    """
    inside = np.flatnonzero(~(target if before is None else target | before))
    rows = run.step[inside]
    arriving, among = rows @ target.astype(float), rows[:, inside]
    at_once, first = float(run.start[target].sum()), run.start[inside]
    if not surely_ends:
        can = reachable(among.T.tocsr(), arriving > 0)
        if can.all() and before is None:
            return 1.0
        if not can.all():
            among, arriving, first = among[can][:, can], arriving[can], first[can]
    if not first.any():
        return at_once
    factors = _factors(among)
    found = np.inf if factors is None else at_once + float(first @ factors.solve(arriving))
    return min(max(found, 0.0), 1.0) if -1e-6 < found < 1 + 1e-6 else None


@dataclass(frozen=True, eq=False)
class Round:
    """The way from the start to a goal that is reached with probability 1.

    Attributes:
        inside: (I,) positions, among the states of the run, of those that are not goals.
        visits: (I,) expected number of visits to each before the goal.
        factors: LU factors of the linear system, with which further systems are solved quickly.
    """

    inside: Ints
    visits: Floats
    factors: Any

    @property
    def steps(self) -> float:
        return float(self.visits.sum())

    def chances(self, states: Ints) -> Floats:
        """(D,) positions among the states of the run -> (D,) the chance that a round passes each of them.

        The expected visits to a state are the chance of entering it times the expected visits when starting in it.
        """
        found = np.zeros(len(states))
        place = np.searchsorted(self.inside, states)
        place = np.minimum(place, max(len(self.inside) - 1, 0))
        known = np.flatnonzero(self.inside[place] == states) if len(self.inside) else np.empty(0, np.int64)
        if known.size:
            unit = np.zeros((len(self.inside), known.size))
            unit[place[known], np.arange(known.size)] = 1.0
            again = self.factors.solve(unit)[place[known], np.arange(known.size)]
            found[known] = self.visits[place[known]] / again
        return np.clip(found, 0.0, 1.0)

    def chance(self, states: Ints) -> float:
        """(D,) positions among the states of the run, none of them a goal -> the chance that a round passes any of them.

        With h the distribution of the first of these states to be entered and V the matrix of expected visits when
        starting in each of them, the expected visits are h V; this is solved for h.
        """
        place = np.searchsorted(self.inside, states)
        unit = np.zeros((len(self.inside), len(place)))
        unit[place, np.arange(len(place))] = 1.0
        return float(np.linalg.solve(self.factors.solve(unit)[place].T, self.visits[place]).sum())


def chance_of_visiting(run: Run, whole: Round | None, goal: Bools, target: Bools) -> float | None:
    """The chance that the way to (R,) `goal` meets (R,) `target`, which may include goals."""
    if not target.any():
        return 0.0
    if whole is not None and (target[goal].all() or run.start[~target].sum() <= 0):
        return 1.0
    if whole is not None and not target[goal].any() and np.count_nonzero(target) <= SOLVED_AT_ONCE:
        found = whole.chance(np.flatnonzero(target))
        if -1e-6 < found < 1 + 1e-6:
            return min(max(found, 0.0), 1.0)
    return chance_of_reaching(run, target, goal & ~target, surely_ends=whole is not None)


def round_to(run: Run, goal: Bools) -> Round | None:
    """The way to (R,) `goal`; None if it may not be reached, or if the expected steps are not finite numbers."""
    inside = np.flatnonzero(~goal)
    if not inside.size:
        return Round(inside, np.empty(0), None)
    rows = run.step[inside]
    among = rows[:, inside]
    if not reachable(among.T.tocsr(), rows @ goal.astype(float) > 0).all():
        return None
    factors = _factors(among)
    if factors is None:
        return None
    visits = factors.solve(run.start[inside], trans="T")
    return Round(inside, np.maximum(visits, 0.0), factors) if np.isfinite(visits).all() else None


def _factors(among: Sparse) -> Any:
    """LU factors of I - among; None if it is singular in floating point."""
    system = sparse.eye_array(among.shape[0], format="csr") - among
    try:
        return splu(system.tocsc())
    except RuntimeError:
        return None
