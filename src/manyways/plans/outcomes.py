"""What becomes of one policy in a model in which something is closed, and the best that can be done there.

*Stuck.* In a model without trips a plan is stuck where the closure keeps it forever in a state or a loop that it would leave
with nothing closed. What it earns there says nothing: standing still may be cheap.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy import sparse

from manyways.errors import ManywaysError, NotWeaklyAccessible, SolverError
from manyways.model.closures import Closure
from manyways.model.graph import closed_components, end_components, levels_towards, reachable_from_start
from manyways.model.mdp import MDP
from manyways.model.occupancy import (
    chain,
    choices_towards,
    deterministic,
    first_best,
    long_run_occupancy,
    state_occupancy,
)
from manyways.model.surest import largest_total, surest_policy
from manyways.model.trips import NEVER, Trips, trips_of
from manyways.polytope import Criterion, Polytope
from manyways.types import Bools, Floats, Ints

OVER_VALUE = 1e3
"""Not to be stuck counts as much more than the whole range of the values of long runs."""
NEARLY_ALL = 0.99
"""A plan is said to be stuck in a place if it is so in at least this share of the cases in which it is stuck at all."""


class Outcome(NamedTuple):
    """What becomes of one policy: see `surviving.Outcomes`."""

    reaches: float
    steps: float
    values: float
    returns: float
    stuck: float
    place: float


NOTHING = Outcome(np.nan, np.nan, np.nan, np.nan, np.nan, np.nan)


class Setting(NamedTuple):
    """A model in which something is closed; with nothing closed, `model` and `plain` are one.

    Attributes:
        model, plain: the closed model, and the same with nothing closed.
        trips: those of the closed model, if it has any.
        failing: (N,) the chance that the step of each choice fails.
    """

    model: MDP
    plain: MDP
    trips: Trips | None
    failing: Floats

    @staticmethod
    def of(mdp: MDP, closure: Closure | None = None) -> Setting:
        if closure is None:
            return Setting(mdp, mdp, trips_of(mdp), np.zeros(mdp.n_choices))
        model = closure.applied(mdp)
        return Setting(model, mdp, trips_of(model), closure.failing(mdp))


def outcome_of(setting: Setting, criterion: Criterion, policy: Floats, deadline: int) -> Outcome:
    """What becomes of a policy; NaN where that cannot be computed."""
    mdp, trips = setting.model, setting.trips
    if trips is None:
        try:
            value = float(criterion.values(mdp, criterion.occupancy(mdp, policy)[None])[0])
            stuck, place = _stuck(setting, policy)
        except SolverError:
            return NOTHING
        return Outcome(np.nan, np.nan, value if np.isfinite(value) else np.nan, np.nan, stuck, place)
    trip = trips.of(policy)
    found = trip.within(deadline, trips.passing(trip))
    earned = np.add.reduceat(policy * mdp.reward, mdp.first_choice[:-1])[trip.states]
    returns = float(found.visits @ earned) if found.chance >= 1 - NEVER else np.nan
    if trip.surely_ends and trips.restarts and criterion.discount == 1:
        # The long run is one trip after another.
        visits = np.zeros(mdp.n_states)
        visits[trip.states] = found.visits
        time = policy * visits[mdp.choice_state]
        value = float(criterion.values(mdp, (time / time.sum())[None])[0])
        return Outcome(found.chance, found.steps, value, returns, 0.0, np.nan)
    try:
        value = float(criterion.values(mdp, criterion.occupancy(mdp, policy)[None])[0])
    except SolverError:
        value = np.nan
    return Outcome(found.chance, found.steps, value if np.isfinite(value) else np.nan, returns, 0.0, np.nan)


def _stuck(setting: Setting, policy: Floats) -> tuple[float, float]:
    """The chance that a policy is stuck in the end, and the state where it is so most of the time, if it is nearly always stuck
    there or in a loop through it; NaN otherwise."""
    if not (setting.failing * policy).any():
        return 0.0, np.nan
    component, closed = closed_components(chain(setting.model, policy))
    free = chain(setting.plain, policy)
    source = np.repeat(np.arange(free.shape[0]), np.diff(free.indptr))
    leaving = np.zeros(len(closed), bool)
    leaving[component[source[(component[source] != component[free.indices]) & (free.data > 0)]]] = True
    time = state_occupancy(setting.model, long_run_occupancy(setting.model, policy))
    time = np.where((closed & leaving)[component], time, 0.0)
    if time.sum() <= NEVER:
        return 0.0, np.nan
    place = int(time.argmax())
    there = float(time[component == component[place]].sum())
    return float(time.sum()), float(place) if there >= NEARLY_ALL * time.sum() else np.nan


def best_by_value(setting: Setting, criterion: Criterion) -> Floats | None:
    """(N,) the policy of the highest value; None if none was found.

    It never takes what surely fails where something else can be done: whoever knows of the closure does not stand in front of it.
    """
    model, mdp = setting.model, setting.plain
    surely = setting.failing >= 1 - 1e-12
    stands = np.logical_and.reduceat(surely, mdp.first_choice[:-1])
    allowed = ~surely | stands[mdp.choice_state]
    part = model if allowed.all() else model.part(np.ones(model.n_states, bool), allowed)
    kept = reachable_from_start(part)
    chosen = allowed & kept[mdp.choice_state]
    part = part if kept.all() else part.restricted_to(kept)
    try:
        try:
            polytope = Polytope(part, criterion)
        except NotWeaklyAccessible:
            if setting.trips is None:
                found = _best_long_run(part, stands[kept])
                return _with_rest(model, chosen, found)
            polytope = Polytope(_never_lost(part, trips_of(part)), criterion)
        _, best = criterion.settled(polytope)
        return _with_rest(model, chosen, polytope.realised(best.vertex)[0])
    except ManywaysError:
        return None


def best_on_trips(setting: Setting, reward: Floats) -> Floats | None:
    """(N,) the policy that reaches the goal most surely and, if it does so for certain, with the largest sum of (N,) `reward`; None
    if none was found."""
    if setting.trips is None:
        return None
    try:
        return surest_policy(setting.trips, reward)
    except SolverError:
        return None


def _with_rest(model: MDP, chosen: Bools, found: Floats) -> Floats:
    """A policy for some of the choices, with any choice in the states that are left out."""
    policy = np.zeros(model.n_choices)
    policy[model.first_choice[:-1]] = 1.0
    own = np.zeros(model.n_states, bool)
    own[model.choice_state[chosen]] = True
    policy[own[model.choice_state]] = 0.0
    policy[chosen] = found
    return policy


def _best_long_run(mdp: MDP, stands: Bools) -> Floats:
    """(N,) the policy of the highest mean reward in a model in which the long run depends on where a plan ends up.

    Each set of states in which a plan may stay forever has a best long run of its own. Where to end up is a stopping problem, in
    which stopping in such a set earns that. Of costs, stopping where only what fails can be done (S,) `stands` is worth much less.
    """
    settled = np.full(mdp.n_states, -np.inf)
    staying: Ints = np.full(mdp.n_states, -1, np.int64)
    for states in end_components(mdp):
        inside = np.zeros(mdp.n_states, bool)
        inside[states] = True
        rows = inside[mdp.choice_state] & (mdp.transitions @ (~inside).astype(np.float64) <= 0)
        part = replace(mdp, start=inside / len(states)).part(inside, rows)
        answer = Polytope(part).optimum
        policy = Polytope(part).realised(answer)[0]
        settled[states] = float(answer.occupancy @ part.reward)
        staying[states] = np.flatnonzero(rows)[first_best(part, policy)]
    known = np.isfinite(settled)
    low, high = float(settled[known].min()), float(settled[known].max())
    span = max(high - low, 1e-6)
    going_on = OVER_VALUE * span if mdp.costs else 0.0
    prize = np.where(known, settled - low + 1e-3 * span + np.where(stands, 0.0, going_on), 0.0)
    return _stopping(mdp, np.isfinite(settled), prize, staying)


def _stopping(mdp: MDP, may_stop: Bools, prize: Floats, staying: Ints) -> Floats:
    """(N,) the policy that goes where stopping has the largest expected prize, and stays there with the choices `staying`."""
    owner = np.append(mdp.choice_state, np.flatnonzero(may_stop))  # to stop is one choice more, the last of its state
    order = np.argsort(owner, kind="stable")
    first_choice = np.append(0, np.cumsum(np.diff(mdp.first_choice) + may_stop))
    stopping = sparse.csr_array((np.count_nonzero(may_stop), mdp.n_states))
    step = sparse.csr_array(sparse.vstack([mdp.transitions, stopping]))[order]
    gain = np.append(np.zeros(mdp.n_choices), prize[may_stop])[order]
    shift = first_choice[:-1] - mdp.first_choice[:-1]
    first = np.where(may_stop, first_choice[1:] - 1, choices_towards(mdp, may_stop) + shift)
    _, choice = largest_total(first_choice, step, gain, first)
    stops = may_stop & (choice == first_choice[1:] - 1)
    return deterministic(mdp, np.where(stops, staying, choice - shift))


def _never_lost(mdp: MDP, trips: Trips | None) -> MDP:
    """The model in which a trip begins again where it can no longer end, so that the long-run mean does not depend on the
    start."""
    if trips is None or not trips.restarts:
        return mdp
    ending = np.logical_or.reduceat(trips.ends > 0, mdp.first_choice[:-1])
    lost = levels_towards(mdp, ending) < 0
    if not lost.any() or (mdp.start[lost] > 0).any():
        return mdp
    return replace(mdp, transitions=mdp.leading_back(lost[mdp.choice_state]), source=None)
