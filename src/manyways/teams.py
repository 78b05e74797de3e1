"""Plans as a team: several agents, each running one plan at the same time, with independent luck.

What a team can do is computed, not simulated:

*Closed doors.* With a closure that no agent knows of, the chance that at least one agent reaches the goal in time is one minus
the product of the chances that each is late.

*Targets in unknown places.* The chance that at least one agent has been in a place in time, and the mean time until the first
of them is there, come from the distributions of the time of each agent's first visit.

*Congestion.* Agents that set out at random times are in one state with the chance <n_i, n_j>, n_i the share of time of agent i
in each state; see `objectives.congestion`. If one of the two waits a step at each meeting, each of them as often as the other,
agent i waits m_i / 2 steps for each step of its plan, m_i = sum_{j != i} <n_i, n_j>, and earns r_i / (1 + m_i / 2) per step
instead of r_i. A step of waiting earns nothing.

"In time" is twice the mean time of the fastest plan to the goal, unless another deadline is given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from manyways.errors import SettingError, SolverError, check_integer
from manyways.kernels.threads import one_blas_thread
from manyways.methods import Progress, Watch
from manyways.model.closures import Closure, closures
from manyways.model.mdp import MDP
from manyways.model.occupancy import state_occupancy
from manyways.model.trips import Trip, Trips, trips_of
from manyways.objectives.congestion import on_the_way
from manyways.plans import PlanSet
from manyways.types import Bools, Floats

DEADLINE = 2.0
"""By default the deadline is this many times the mean time of the fastest plan."""
MOST_NUMBERS = 2**26
"""States times places of the first visits of one agent: 512 MiB. In larger models, places are left out."""


@dataclass(frozen=True, eq=False)
class Team:
    """What k agents can do together; NaN where a model has no trips.

    Attributes:
        deadline: the number of steps within which things count.
        reaches: (J,) for each closure, the chance that at least one agent reaches the goal in time.
        closures: their names.
        seen: the expected share of places that at least one agent visits in time.
        first_visit: the mean number of steps until the first agent visits a place, at most the deadline, over all places.
        meetings: the expected number of meetings per step, of any two agents, anywhere but at the start and the goal.
        reward: the mean reward per step of an agent.
        delayed: the same if one of the two waits a step at each meeting.
        places: how many places were counted.
    """

    deadline: int
    reaches: Floats
    closures: tuple[str, ...]
    seen: float
    first_visit: float
    meetings: float
    reward: float
    delayed: float
    places: int


def team(
    plans: PlanSet,
    agents: Sequence[int] | None = None,
    *,
    closed: Sequence[Closure] | None = None,
    places: Floats | None = None,
    deadline: int | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Team:
    """What agents can do together that run plans of a set at the same time.

    Args:
        plans: the set.
        agents: the plan of each agent, counted from 0; one agent for each plan by default.
        closed: what may be closed without anybody knowing; see `closures` for the default.
        places: (P, S) masks of the places in which a target may be; by default each state on the way that some policy can
            reach.
        deadline: the number of steps within which things count; by default twice the mean time of the fastest plan.
        progress: called with a `Progress` for each closure.
    """
    mdp, trips = plans.mdp, trips_of(plans.mdp)
    numbers = list(range(plans.k)) if agents is None else [check_integer("the plan of an agent", a, 0) for a in agents]
    if not numbers or max(numbers) >= plans.k:
        raise SettingError(f"agents must be plans of the set, 0 to {plans.k - 1}, found {numbers}")
    here = state_occupancy(mdp, plans.occupancies[numbers]) * on_the_way(mdp)
    met = here @ here.sum(axis=0) - np.sum(here**2, axis=1)  # (agents,) meetings of each with any other
    rewards = plans.occupancies[numbers] @ mdp.reward
    met_and_earned = float(met.sum()) / 2, float(rewards.mean()), float((rewards / (1 + met / 2)).mean())
    if trips is None:
        return Team(0, np.empty(0), (), float("nan"), float("nan"), *met_and_earned, 0)
    watch = Watch(None, progress)
    chosen = tuple(closures(mdp) if closed is None else closed)
    with one_blas_thread():
        ways = {i: trips.of(plans.policies[i]) for i in set(numbers)}
        if deadline is None:
            times = [_time(trips, way) for way in ways.values()]
            fastest = min(times) if np.isfinite(times).any() else mdp.n_states / 2
            deadline = max(1, round(DEADLINE * fastest))
        targets = _places(mdp) if places is None else np.asarray(places, bool)
        late = {i: _first_visits(way, targets, deadline) for i, way in ways.items()}
        together = np.prod([late[i] for i in numbers], axis=0)  # (deadline + 1, P): nobody has been there yet
        missed = np.ones((len(chosen), len(numbers)))
        for row, closure in enumerate(chosen):
            watch.check()
            ends = trips_of(closure.applied(mdp))
            known = {i: _in_time(ends, plans.policies[i], deadline) for i in set(numbers)} if ends is not None else {}
            missed[row] = [1 - known.get(i, 0.0) for i in numbers]
            watch.tell(row + 1, len(chosen), float("nan"), "closing")
    return Team(
        deadline,
        1 - missed.prod(axis=1),
        tuple(closure.name for closure in chosen),
        float((1 - together[-1]).mean()) if len(targets) else float("nan"),
        float(together[:-1].sum(axis=0).mean()) if len(targets) else float("nan"),
        *met_and_earned,
        len(targets),
    )


def _time(trips: Trips, way: Trip) -> float:
    """The mean number of steps of a trip to the goal; infinite if it may never end, or practically never does."""
    try:
        return float(way.visits @ ~_at_end(trips, way)) if way.surely_ends else np.inf
    except SolverError:
        return np.inf


def _places(mdp: MDP) -> Bools:
    """(P, S) each state that is neither start nor goal, and where nobody pays a penalty for being."""
    states = np.flatnonzero(on_the_way(mdp) & ~mdp.labels.get("wall", np.zeros(mdp.n_states, bool)))
    if len(states) * mdp.n_states > MOST_NUMBERS:
        return np.zeros((0, mdp.n_states), bool)
    return np.arange(mdp.n_states) == states[:, None]


def _at_end(trips: Trips, trip: Trip) -> Bools:
    """(R,) the states of a trip that only lead back to the start: a step there takes no time."""
    return trips.at_end[trips.mdp.first_choice[trip.states]]


def _in_time(trips: Trips, policy: Floats, deadline: int) -> float:
    """The chance that a trip reaches the goal within so many steps."""
    trip = trips.of(policy)
    now, reached = trip.start.copy(), 0.0
    backwards = trip.step.T.tocsr()
    for _ in range(deadline):
        reached += float(now @ trip.goal)
        now = backwards @ now
    there = trip.goal[:-1] * _at_end(trips, trip)
    return min(reached + float(now[:-1] @ there), 1.0)


def _first_visits(trip: Trip, targets: Bools, deadline: int) -> Floats:
    """(deadline + 1, P) the chance that no state of each place was met in the first 0, 1, ... steps of a trip."""
    absent = np.vstack([~targets[:, trip.states].T, np.ones((1, len(targets)), bool)]).astype(np.float64)
    now = trip.start[:, None] * absent
    found = np.empty((deadline + 1, len(targets)))
    found[0] = now.sum(axis=0)
    backwards = trip.step.T.tocsr()
    for step in range(1, deadline + 1):
        now = (backwards @ now) * absent
        found[step] = now.sum(axis=0)
    return found
