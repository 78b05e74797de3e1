"""One trip: an episode of a policy from its start to its end, as a chain with an end.

A step of choice x ends the trip with chance e(x), in a way that may count as reaching the goal; otherwise it goes on. Trips
are those of `model.episodes`, or, in a model whose goal does not lead back to the start, ways to the states labelled "goal",
the first step there included. All numbers come from sparse direct solves: nothing is simulated.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import SuperLU

from manyways.errors import SolverError
from manyways.model.episodes import GOAL, episode_ends, goal_ends, restart_steps
from manyways.model.graph import levels_towards
from manyways.model.mdp import MDP
from manyways.model.occupancy import TOO_SLOW, factors_of
from manyways.model.search import reachable
from manyways.types import Bools, Floats, Ints, Sparse


@dataclass(frozen=True, eq=False)
class Trips:
    """How the trips of a model end, whatever the policy.

    Attributes:
        mdp: the model.
        ends: (N,) the chance that the step of each choice ends the trip.
        goal: (N,) the chance that it ends it at the goal.
        named_goal: whether there is a goal; otherwise every end counts as one.
        restarts: whether the end of one trip is the start of the next.
        at_end: (N,) the choices whose step is no part of the way: it only leads back to the start.
    """

    mdp: MDP
    ends: Floats
    goal: Floats
    named_goal: bool
    restarts: bool
    at_end: Bools

    def of(self, policy: Floats) -> Trip:
        """The trips of an (N,) policy."""
        whole = self.everywhere(policy)
        met = reachable(whole.step, whole.start > 0)
        met[-1] = True
        if met.all():
            return whole
        return Trip(np.flatnonzero(met[:-1]), whole.step[met][:, met], whole.start[met], whole.goal[met])

    def everywhere(self, policy: Floats) -> Trip:
        """The trips of an (N,) policy, with the states that they never meet."""
        mdp, end = self.mdp, self.mdp.n_states
        taken = sparse.csr_array(
            (np.append(policy, 1.0), np.arange(mdp.n_choices + 1), np.append(mdp.first_choice, mdp.n_choices + 1)),
            shape=(end + 1, mdp.n_choices + 1),
        )
        step = sparse.csr_array(taken @ self.with_end)
        step.eliminate_zeros()
        goal = np.append(np.add.reduceat(policy * self.goal, mdp.first_choice[:-1]), 0.0)
        return Trip(np.arange(end), step, np.append(mdp.start, 0.0), goal)

    @cached_property
    def with_end(self) -> Sparse:
        """(N + 1, S + 1) the transitions, with the end as one more state, and its only choice to stay there."""
        mdp, matrix = self.mdp, self.mdp.transitions
        ends = np.repeat(self.ends, np.diff(matrix.indptr))
        left = matrix.data - (ends * mdp.start[matrix.indices] if self.restarts else ends * matrix.data)
        left[left <= 1e-12 * matrix.data] = 0.0  # rounding
        going_on = sparse.csr_array(
            (left, matrix.indices, np.append(matrix.indptr, matrix.nnz)), (mdp.n_choices + 1, mdp.n_states + 1)
        )
        rows = np.append(np.flatnonzero(self.ends), mdp.n_choices)
        ending = sparse.csr_array(
            (np.append(self.ends[rows[:-1]], 1.0), (rows, np.full(len(rows), mdp.n_states))), going_on.shape
        )
        return sparse.csr_array(going_on + ending)


@dataclass(frozen=True, eq=False)
class Trip:
    """The trips of one policy: the R states that it meets, in order, and after them the end.

    Attributes:
        states: (R,) the numbers of the states in the model.
        step: (R + 1, R + 1) CSR, the chance of each next state; the last one is the end, which is never left.
        start: (R + 1,) distribution of the first state.
        goal: (R + 1,) the chance that the step from each state ends the trip at the goal.
    """

    states: Ints
    step: Sparse
    start: Floats
    goal: Floats

    @cached_property
    def surely_ends(self) -> bool:
        return bool(self._ending.all())

    @property
    def may_be_lost(self) -> Bools:
        """(R + 1,) the states from which the trip may never end."""
        return reachable(self.step.T.tocsr(), ~self._ending)

    @cached_property
    def _ending(self) -> Bools:
        """(R + 1,) the states from which the trip may end."""
        return reachable(self.step.T.tocsr(), np.arange(len(self.start)) == len(self.states))

    @cached_property
    def _system(self) -> tuple[Ints, SuperLU]:
        """The states from which a trip may end, and the factors of I - P on them, with the end and what never ends cut off."""
        kept = np.flatnonzero(self._ending)
        last = len(kept) - 1
        if last == len(self.states):
            return kept, factors_of(self.step, cut_at=np.array([last]))
        rows = self.step[kept]
        lost = rows @ (~self._ending).astype(np.float64)  # towards states from which no trip ends: as if it ended there
        leaving = np.flatnonzero(lost)
        away = sparse.csr_array((lost[leaving], (leaving, np.full(len(leaving), last))), shape=(last + 1, last + 1))
        return kept, factors_of(sparse.csr_array(rows[:, kept] + away), cut_at=np.array([last]))

    def solved(self, per_step: Floats) -> Floats:
        """(R + 1,) or (R + 1, m) numbers per step -> their expected sum over the rest of a trip from each state, counting only
        steps from which the trip may still end."""
        kept, factors = self._system
        own = np.array(per_step[kept], dtype=np.float64)
        own[-1] = 0.0
        found = np.zeros(per_step.shape)
        found[kept] = factors.solve(own)
        return found

    @cached_property
    def visits(self) -> Floats:
        """(R,) the expected number of visits to each state, of those from which the trip may end."""
        kept, factors = self._system
        found = np.zeros(len(self.start))
        first = self.start[kept].copy()
        first[-1] = 0.0
        visits = factors.solve(first, trans="T")
        if not visits.min() >= -1e-6 * max(float(np.abs(visits).max()), 1.0):
            raise SolverError(TOO_SLOW)  # with no digit left that means anything, a number of visits may be negative
        found[kept] = np.maximum(visits, 0.0)
        return found[:-1]

    @cached_property
    def reaches(self) -> float:
        """The chance that a trip ends at the goal."""
        chance = float(self.visits @ self.goal[:-1])
        if self.surely_ends and chance > 1 - 1e-9 and (self.goal[:-1] == self.ends[:-1]).all():
            return 1.0  # without rounding: it ends, and all ends are goals
        return min(max(chance, 0.0), 1.0)

    @property
    def ends(self) -> Floats:
        """(R + 1,) the chance that the step from each state ends the trip."""
        return self.step @ (np.arange(len(self.start)) == len(self.states)).astype(np.float64)

    def until(self, targets: Bools) -> Trip:
        """The trips that end as soon as they meet one of the states marked in (S,) `targets`, which is now their goal."""
        met = np.append(targets[self.states], False)
        step = self.step.copy()
        step.data[np.repeat(met, np.diff(step.indptr))] = 0.0
        at = np.flatnonzero(met)
        end = sparse.csr_array((np.ones(len(at)), (at, np.full(len(at), len(self.states)))), shape=step.shape)
        step = sparse.csr_array(step + end)
        step.eliminate_zeros()
        return Trip(self.states, step, self.start, met.astype(np.float64))

    def meets(self, targets: Bools) -> float:
        """The chance that a trip meets one of the states marked in (S,) `targets`."""
        return self.until(targets).reaches if targets[self.states].any() else 0.0


def trips_of(mdp: MDP) -> Trips | None:
    """How the trips of a model end; None if it has neither episodes nor a goal."""
    ends = episode_ends(mdp)
    if ends is not None:
        goal = goal_ends(mdp)
        named = GOAL in mdp.labels or GOAL in mdp.ends
        return Trips(mdp, ends, ends if goal is None else goal, named, True, restart_steps(mdp, ends))
    if GOAL not in mdp.labels or not mdp.labels[GOAL].any():
        return None
    at_goal = mdp.labels[GOAL][mdp.choice_state]
    return Trips(mdp, at_goal.astype(np.float64), at_goal.astype(np.float64), True, False, at_goal)


def fewest_steps(mdp: MDP) -> int | None:
    """The number of steps that a trip takes at least; None if the model has no trips, or none can end."""
    trips = trips_of(mdp)
    if trips is None:
        return None
    ending = np.logical_or.reduceat(trips.ends > 0, mdp.first_choice[:-1])
    levels = levels_towards(mdp, ending)[mdp.start > 0]
    return int(levels[levels >= 0].min()) + 1 if (levels >= 0).any() else None
