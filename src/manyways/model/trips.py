"""One trip: an episode of a policy from its start to its end, as a chain with an end.

A step of choice x ends the trip with chance e(x), in a way that may count as reaching the goal; otherwise it goes on. Trips
are those of `model.episodes`, or, in a model whose goal does not lead back to the start, ways to the states labelled "goal",
the first step there included. Nothing is simulated: numbers come from sparse direct solves, and where there is a deadline that
is not far beyond the mean length of a trip, from following the distribution of its state step by step.

A deadline keeps out what practically never happens. A trip may get, with a chance of 1e-14, to a place that it leaves after 1e17
steps only: it surely arrives, but its mean length says nothing, and I - P is singular in double precision.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import SuperLU

from manyways.errors import SolverError
from manyways.kernels import chains
from manyways.model.episodes import GOAL, episode_ends, goal_ends, restart_steps
from manyways.model.graph import levels_towards
from manyways.model.mdp import MDP
from manyways.model.occupancy import TOO_SLOW, factors_of
from manyways.model.search import reachable
from manyways.types import Bools, Floats, Ints, Sparse

FAR = 56
"""If every mean length of the rest of a trip is at most 1 / 56 of the deadline, fewer than 1e-8 of all trips are late: of those on
their way, at most 1 / e are so e mean lengths later."""
LONGEST = 1e5
"""For a mean length, trips break off after so many steps on average."""
NEVER = 1e-6
"""A plan that reaches the goal less often than this practically never does; one that misses it less often, practically always."""
UNFINISHED, HARDLY = 1e-13, 1e-20
"""Trips are followed until fewer than this are on their way, and not on from a state where fewer than that are."""


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

    def passing(self, trip: Trip) -> Floats:
        """(R + 1,) how many steps of the way the step from each state of a trip is: 1, or 0 where it only leads back."""
        return np.append(~self.at_end[self.mdp.first_choice[trip.states]], False).astype(np.float64)

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
    def _ending_part(self) -> tuple[Ints, Sparse]:
        """The states from which a trip may end, and the chain on them, in which a trip ends where it is lost."""
        kept = np.flatnonzero(self._ending)
        last = len(kept) - 1
        if last == len(self.states):
            return kept, self.step
        rows = self.step[kept]
        lost = rows @ (~self._ending).astype(np.float64)
        leaving = np.flatnonzero(lost)
        away = sparse.csr_array((lost[leaving], (leaving, np.full(len(leaving), last))), shape=(last + 1, last + 1))
        return kept, sparse.csr_array(rows[:, kept] + away)

    @cached_property
    def _system(self) -> tuple[Ints, SuperLU]:
        """The states from which a trip may end, and the factors of I - P on them, with the end and what never ends cut off."""
        kept, step = self._ending_part
        return kept, factors_of(step, cut_at=np.array([len(kept) - 1]))

    @cached_property
    def length(self) -> float:
        """The mean number of steps until a trip ends or is lost, if it breaks off after `LONGEST` steps on average."""
        kept, step = self._ending_part
        own = np.ones(len(kept))
        own[-1] = 0.0
        return float(self.start[kept] @ factors_of(step, 1 - 1 / LONGEST, cut_at=np.array([len(kept) - 1])).solve(own))

    def within(self, deadline: int, passing: Floats) -> Arrivals:
        """What has become of trips after `deadline` steps; `passing` (R + 1,) is from `Trips.passing`."""
        return self._never_late(passing) if self._ends_long_before(deadline) else self._followed(deadline, passing)

    def _ends_long_before(self, deadline: int) -> bool:
        """Whether the deadline is far beyond the mean length of the rest of a trip from every state."""
        try:
            rest = self.solved(np.ones(len(self.start)))
        except SolverError:
            return False
        return bool(rest.min() >= 0 and FAR * rest.max() <= deadline)

    def _never_late(self, passing: Floats) -> Arrivals:
        chance = self.reaches
        if chance <= 0:
            return Arrivals(0.0, np.nan, self.visits)
        on_the_way = np.clip(self.solved(self.goal), 0.0, 1.0) * passing
        return Arrivals(chance, float(self.visits @ on_the_way[:-1]) / chance, self.visits)

    def _followed(self, deadline: int, passing: Floats) -> Arrivals:
        now, then, visits, arrived = (
            self.start.copy(),
            np.zeros(len(self.start)),
            np.zeros(len(self.states)),
            np.zeros(2),
        )
        chain = self.step.indptr, self.step.indices, self.step.data
        chains.followed(*chain, self.goal, now, then, deadline, HARDLY, UNFINISHED, visits, arrived)
        there = self.goal * (1 - passing)  # at the goal, from where a step only leads back, a trip has arrived already
        just_now = float(now[:-1] @ there[:-1])
        chance = float(arrived[0]) + just_now
        steps = float(arrived[1] - visits @ there[:-1]) + just_now * deadline
        return Arrivals(min(chance, 1.0), steps / chance if chance > 0 else np.nan, visits)

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


@dataclass(frozen=True, eq=False)
class Arrivals:
    """What has become of the trips of a policy by a deadline.

    Attributes:
        chance: the chance that a trip has reached the goal.
        steps: the mean number of steps of those that have; NaN if none has.
        visits: (R,) the expected number of visits to each state.
    """

    chance: float
    steps: float
    visits: Floats


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
