"""From one plan to another: what changing over costs in each state, and how long one must watch to tell two plans apart.

*Changing over* from plan a to plan b in state s costs what b still earns from there less than a would:

    cost(s) = to_come_a(s) - to_come_b(s)

What is to come is the rest of the return of a trip, where trips exist; with values per step every step counts what plan a
earns in its time, so that a detour costs its time as well. Discounted, it is the discounted sum. Otherwise it is the bias,
relative to the start. At the start of a trip the cost is that of b against a; where both are on the same way it is nothing;
where b would turn back it is more. No cost is negative if a is the best plan.

Plan b never comes to some states of plan a, and what it would do there says little. Where that does not surely lead back to
where plan b does come, nothing is said of the cost.

*Telling plans apart.* Whoever watches an agent, but does not know which plan it follows, is wrong with a chance of at most
b^n / 2 after n trips, where b is the Bhattacharyya coefficient of the trips of both plans: the sum over all trips of the
square root of the product of their chances. It comes from one linear system (without trips, step by step). On a map one sees
where an agent goes; in other models also what it does.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf, log

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from manyways.errors import SettingError, SolverError
from manyways.kernels.threads import one_blas_thread
from manyways.model.graph import closed_components
from manyways.model.mdp import MDP
from manyways.model.occupancy import chain, factors_of, state_occupancy, stationary_distributions
from manyways.model.search import reachable
from manyways.model.trips import Trips, trips_of
from manyways.plans import PlanSet
from manyways.polytope import Criterion, Episodic
from manyways.types import Bools, Floats, Ints, Sparse

WRONG = 0.05
"""Plans count as told apart if the chance of taking one for the other is at most this."""
FREE = 0.005
"""Changing over costs next to nothing if it costs at most this share of the most that is to come anywhere on the first plan's way."""
COUNTED_STEPS = 1000


@dataclass(frozen=True, eq=False)
class Switching:
    """Changing over from one plan to another.

    Attributes:
        first, second: the plans, counted from 0.
        cost: (S,) what changing over in each state costs, in reward; NaN where the first plan never is, and where the second
            one is lost.
        free: (S,) the states of the first plan in which it costs next to nothing.
        lost: (S,) the states of the first plan to which the second one never comes, and from which it does not surely find
            back to where it does come.
        mean: the mean cost over the time of the first plan where the second one is not lost; NaN if it is nowhere known.
        counts_time: whether the cost includes what the first plan would have earned in the time that a detour takes.
        watched: how many trips one must watch to tell the plans apart, wrong at most once in 20 times; infinite if nobody
            ever can.
        counted_in: "trips", or "steps" in models without trips.
    """

    first: int
    second: int
    cost: Floats
    free: Bools
    lost: Bools
    mean: float
    counts_time: bool
    watched: float
    counted_in: str


def switching(plans: PlanSet, first: int, second: int) -> Switching:
    """What changing over from one plan to another costs, and how long one must watch to tell them apart.

    Args:
        plans: the set.
        first, second: the plans, counted from 0.
    """
    for number in (first, second):
        if not 0 <= number < plans.k:
            raise SettingError(f"there are plans 0 to {plans.k - 1}, found {number}")
    mdp, trips, criterion = plans.mdp, trips_of(plans.mdp), plans.criterion
    with one_blas_thread():
        met = reachable(chain(mdp, plans.policies[first]), mdp.start > 0)
        lost = met & _lost(mdp, trips, plans.policies[second])
        ahead = _ahead(mdp, trips, criterion, plans.policies[first], plans.policies[second])
        cost = np.where(met & ~lost, ahead[0] - ahead[1], np.nan)
        free = met & (cost <= FREE * max(float(np.nanmax(np.abs(ahead[0][met]), initial=0.0)), 1e-300))
        watched = _watched(mdp, trips, plans.policies[first], plans.policies[second])
    time = np.where(lost, 0.0, state_occupancy(mdp, plans.occupancies[first]))
    known = time > 0
    mean = float(cost[known] @ time[known]) / float(time.sum()) if known.any() else np.nan
    counts_time = trips is not None and criterion.discount == 1 and not isinstance(criterion, Episodic)
    counted_in = "steps" if trips is None else "trips"
    return Switching(first, second, cost, free, lost, mean, counts_time, watched, counted_in)


def _lost(mdp: MDP, trips: Trips | None, policy: Floats) -> Bools:
    """(S,) the states to which a plan never comes, and from which it does not surely find back to where it does come, or to the
    goal."""
    own = reachable(chain(mdp, policy), mdp.start > 0)
    astray = over = np.zeros(mdp.n_states, bool)
    step, there = chain(mdp, policy), own
    if trips is not None:
        trip = trips.everywhere(policy)
        step, there, over = trip.step, np.append(own, True), trips.at_end[mdp.first_choice[:-1]]
        astray = (trip.ends - trip.goal > 1e-12) & ~there
    outside = step.copy()
    outside.data[np.repeat(there, np.diff(outside.indptr))] = 0.0  # whoever is there has found back
    outside.eliminate_zeros()
    back = outside.T.tocsr()
    return (
        reachable(back, astray | ~reachable(back, there))[: mdp.n_states] & ~over
    )  # where it is over, all plans do the same


def _ahead(mdp: MDP, trips: Trips | None, criterion: Criterion, first: Floats, second: Floats) -> Floats:
    """(2, S) what is still to come from each state with each plan; NaN where it is not defined."""
    found = np.full((2, mdp.n_states), np.nan)
    worth_of_time = 0.0
    for row, policy in zip(found, (first, second), strict=True):
        reward = np.add.reduceat(policy * mdp.reward, mdp.first_choice[:-1])
        try:
            if criterion.discount < 1:
                row[:] = factors_of(chain(mdp, policy), criterion.discount).solve(reward)
            elif trips is None:
                row[:] = _bias(chain(mdp, policy), mdp.start, reward)
                row[:] -= float(mdp.start @ row)
            else:
                if policy is first and not isinstance(criterion, Episodic):
                    worth_of_time = float(criterion.values(mdp, criterion.occupancy(mdp, policy)[None])[0])
                row[:] = _rest_of_trip(trips, policy, reward - worth_of_time)
        except SolverError:
            pass
    return found


def _rest_of_trip(trips: Trips, policy: Floats, reward: Floats) -> Floats:
    """(S,) the expected rest of the return of a trip from each state; NaN where a trip may never end."""
    trip = trips.everywhere(policy)
    found = trip.solved(np.append(reward, 0.0))[:-1]
    return np.where(trip.may_be_lost[:-1], np.nan, found)


def _bias(p: Sparse, start: Floats, reward: Floats) -> Floats:
    """(S,) the bias of a chain whose start leads to one recurrent class, up to a constant; NaN where another class may be met."""
    component, closed = closed_components(p)
    classes = np.unique(component[reachable(p, start > 0) & closed[component]])
    unknown = np.full(p.shape[0], np.nan)
    if len(classes) != 1:
        return unknown
    own = component == classes[0]
    others = closed[component] & ~own
    known = ~reachable(p.T.tocsr(), others) if others.any() else np.ones(len(start), bool)
    part = np.flatnonzero(known)
    among = p[part][:, part]
    share = stationary_distributions(among, component[part], own[part])
    gain, reference = float(share @ reward[part]), int(np.argmax(share))
    unknown[part] = factors_of(among, cut_at=np.array([reference])).solve(reward[part] - gain)
    return unknown


# ---- telling plans apart ----------------------------------------------------------------------


def _watched(mdp: MDP, trips: Trips | None, first: Floats, second: Floats) -> float:
    """The number of trips, or of steps, after which plans are told apart."""
    step = mdp.transitions if trips is None else trips.with_end
    likeness = (
        _likeness_seen(mdp, step, first, second) if mdp.layout is None else _likeness_of_ways(mdp, step, first, second)
    )
    if trips is None:
        return _steps_needed(likeness, mdp.start)
    coefficient = _along_trips(likeness, np.append(mdp.start, 0.0))
    return inf if coefficient >= 1 - 1e-12 else max(1.0, ceil(log(2 * WRONG) / log(max(coefficient, 1e-300))))


def _likeness_of_ways(mdp: MDP, step: Sparse, first: Floats, second: Floats) -> Sparse:
    """The square roots of the products of the chances of each step, for whoever sees where it leads; rows of `step` are choices,
    and after them the end, if there is one."""
    one, other = (_by_state(mdp, step, policy) @ step for policy in (first, second))
    product = sparse.csr_array(one.multiply(other))
    product.data = np.sqrt(product.data)
    return product


def _likeness_seen(mdp: MDP, step: Sparse, first: Floats, second: Floats) -> Sparse:
    """The same for whoever also sees which action is taken."""
    same = _first_of_the_same(mdp)
    one, other = (np.bincount(same, weights=policy, minlength=mdp.n_choices) for policy in (first, second))
    return sparse.csr_array(_by_state(mdp, step, np.sqrt(one * other)) @ step)


def _by_state(mdp: MDP, step: Sparse, weights: Floats) -> Sparse:
    """(S, N) or, with an end, (S + 1, N + 1): the weight of each choice in the row of its state, and 1 for the end."""
    ends = step.shape[0] - mdp.n_choices
    first = np.append(mdp.first_choice, [mdp.n_choices + 1] * ends)
    data = np.append(weights, np.ones(ends))
    return sparse.csr_array((data, np.arange(len(data)), first), shape=(len(first) - 1, len(data)))


def _first_of_the_same(mdp: MDP) -> Ints:
    """(N,) the first choice of the same state that has the same name and leads to the same states with the same chances."""
    found, seen = np.arange(mdp.n_choices), dict[tuple[int, str, bytes, bytes], int]()
    for choice in range(mdp.n_choices):
        row = slice(mdp.transitions.indptr[choice], mdp.transitions.indptr[choice + 1])
        where, chance = mdp.transitions.indices[row], mdp.transitions.data[row]
        key = (int(mdp.choice_state[choice]), mdp.action_name(choice), where.tobytes(), chance.tobytes())
        found[choice] = seen.setdefault(key, choice)
    return found


def _along_trips(likeness: Sparse, start: Floats) -> float:
    """The Bhattacharyya coefficient of trips, given that of each step; the last state is the end."""
    end = len(start) - 1
    may_end = reachable(likeness.T.tocsr(), np.arange(end + 1) == end)
    kept = np.flatnonzero(reachable(likeness, start > 0) & may_end)
    if end not in kept:
        return 0.0
    inner = kept[:-1]
    among = sparse.eye_array(len(inner), format="csc") - likeness[inner][:, inner].tocsc()
    try:
        ending = likeness[inner] @ (np.arange(end + 1) == end).astype(np.float64)
        return float(start[inner] @ splu(among).solve(ending))
    except RuntimeError:  # singular: trips that never end are alike
        return 1.0


def _steps_needed(likeness: Sparse, start: Floats) -> float:
    """After many steps the likeness falls at a constant rate, so that the rest of them need not be counted."""
    back, alike, rate = likeness.T.tocsr(), start, 0.0
    for step in range(1, COUNTED_STEPS + 1):
        after = back @ alike
        left, rate = float(after.sum()), float(after.sum() / alike.sum())
        if left <= 2 * WRONG:
            return float(step)
        alike = after
    if rate >= 1 - 1e-9:
        return inf
    return float(COUNTED_STEPS + ceil(log(2 * WRONG / float(alike.sum())) / log(rate)))
