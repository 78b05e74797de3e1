"""First visits: the chance of one, and the steps until it, from the start distribution of one plan's chain.

Both are the solution of one sparse linear system in which the target keeps whoever enters it. States that cannot get
there are left out, because they would make it singular: their chance is zero.
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
"""For more states than these, new factors cost less than a solution for each."""


@dataclass(frozen=True, eq=False)
class Run:
    """A plan from the start to its first goal: the R states that it can meet on the way, and the chain on them.

    What comes after the goal is no part of it: a plan may go from there to where the goal is out of reach.

    Attributes:
        states: (R,) their numbers in the model.
        step: (R, R) CSR, the chance of each next state.
        start: (R,) distribution of the first state.
    """

    states: Ints
    step: Sparse
    start: Floats


def run_of(mdp: MDP, step: Sparse, goal: Bools) -> Run:
    """(S, S) the chain of a plan -> the same on what it meets up to its first state in (S,) `goal`."""
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
    """The chance that a run meets its goal, (R,) `target`; or some other `target` before its goal, (R,) `before`.

    None where the numbers do not allow to tell (a chance of leaving that is lost in rounding). `surely_ends` says that
    the goal is known to be met from wherever it gets: then no state has to be left out.
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
    """The way from the start to a goal that is surely reached.

    Attributes:
        inside: (I,) positions, among the run's states, of those that are no goal.
        visits: (I,) expected number of visits to each before the goal.
        factors: of the system; what remains to be solved goes quickly.
    """

    inside: Ints
    visits: Floats
    factors: Any

    @property
    def steps(self) -> float:
        return float(self.visits.sum())

    def chances(self, states: Ints) -> Floats:
        """(D,) for each of (D,) positions among the run's states the chance that a round passes it.

        Expected visits are the chance of a first one times the visits that follow when one is there.
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
        """The chance that a round meets any of (D,) positions among the run's states, none of them a goal.

        Visits to them are the first one's place, times the visits that follow from there.
        """
        place = np.searchsorted(self.inside, states)
        unit = np.zeros((len(self.inside), len(place)))
        unit[place, np.arange(len(place))] = 1.0
        return float(np.linalg.solve(self.factors.solve(unit)[place].T, self.visits[place]).sum())


def chance_of_visiting(run: Run, whole: Round | None, goal: Bools, target: Bools) -> float | None:
    """The chance that the way to the (R,) `goal` meets the (R,) `target`, of which the goal may be a part."""
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
    """The rounds of a run that meets its goal, (R,) `goal`, with certainty; None if it may not, or if that takes for ever."""
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
    """LU factors of I - among, None if it is singular in floating point."""
    system = sparse.eye_array(among.shape[0], format="csr") - among
    try:
        return splu(system.tocsc())
    except RuntimeError:
        return None
