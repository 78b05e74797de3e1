"""The best set among the plans that a search has met.

A climb keeps one set and changes one plan at a time. Objectives that are not sums over pairs, such as the least distance,
have many sets from which no such step leads up: moving a plan that is not in the nearest pair changes nothing. All
vertices that the starts have met are therefore collected as candidates, and sets of them are improved by swapping a
member for a candidate until no swap helps, from the sets that the starts ended with and, in small models, from random
ones. Objectives judge all swaps of a member at once from distances that are computed once (`objectives.Candidates`).

In small models the candidates are completed by the policies that differ from them in one action, breadth first, up to
MOST_IN_SMALL: there these are often all deterministic policies. Oracles cannot find all of them, whatever the costs: within
limits, a deterministic plan may lie below the hull of the others.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

import numpy as np

from manyways.model.mdp import MDP
from manyways.model.occupancy import first_best
from manyways.objectives import Candidates, SetObjective
from manyways.polytope import Polytope, Vertex
from manyways.types import Floats, Ints

SAME = 1e-9
"""Occupancies that differ by no more than this are one plan."""
SMALL = 20
"""Models with fewer states are small: there candidates and sets cost next to nothing."""
MOST, MOST_IN_SMALL, RANDOM_SETS = 64, 128, 24
TRIED, SQUARINGS = 8, 40
"""At most so many policies are screened for each candidate: within narrow limits, most of them are too poor."""
WORK = 1e7
"""Candidates are so few that all their distances take about this many logarithms."""
RISE = 1e-10


def most_candidates(mdp: MDP) -> int:
    """How many candidates cost little."""
    return MOST_IN_SMALL if mdp.n_states < SMALL else min(MOST, int(np.sqrt(WORK / mdp.n_choices)))


def recombined(
    polytope: Polytope,
    objective: SetObjective,
    sets: Sequence[Sequence[Vertex]],
    met: Iterable[Vertex],
    fixed: int,
    rng: np.random.Generator,
) -> list[Vertex]:
    """The best set found among the candidates.

    Args:
        polytope, objective: what is searched.
        sets: the sets to start from, each of k plans of which the `fixed` first ones stay.
        met: further candidates; the first ones count if there are too many.
        fixed: how many plans stay.
        rng: draws the random sets.
    """
    pool = _Pool(len(sets[0][0].occupancy))
    starts = [np.array([pool.number(vertex) for vertex in plans]) for plans in sets]
    small = polytope.mdp.n_states < SMALL
    most = most_candidates(polytope.mdp)
    for vertex in met:
        if len(pool.plans) < most:
            pool.number(vertex)
    if small:
        _complete(polytope, pool, most)
    candidates = objective.candidates(np.stack([vertex.occupancy for vertex in pool.plans]))
    k, stay = len(starts[0]), starts[0][:fixed]
    others = np.setdiff1d(np.arange(len(pool.plans)), stay)
    if small and len(others) >= k - fixed:
        starts += [np.append(stay, rng.choice(others, k - fixed, replace=False)) for _ in range(RANDOM_SETS)]
    ends = [_swapped(candidates, members, fixed) for members in starts]
    values = [objective.value(candidates.rows[members]) for members in ends]
    return [pool.plans[j] for j in ends[int(np.argmax(values))]]


def best_of_pool(objective: SetObjective, fixed: Sequence[Vertex], pool: Sequence[Vertex], k: int) -> list[Vertex]:
    """The best set of k plans found among a pool, the fixed ones first: one after the other, then by swaps."""
    distinct = _Pool(len(pool[0].occupancy))
    stay = [distinct.number(vertex) for vertex in fixed]
    for vertex in pool:
        distinct.number(vertex)
    candidates = objective.candidates(np.stack([vertex.occupancy for vertex in distinct.plans]))
    members = np.array(stay, dtype=np.int64)
    while len(members) < k:
        grown = np.append(members, 0)
        members = np.append(members, int(np.argmax(candidates.contributions(grown, len(members)))))
    return [distinct.plans[j] for j in _swapped(candidates, members, len(fixed))]


class _Pool:
    """Distinct plans, each with a number."""

    def __init__(self, size: int) -> None:
        self.plans: list[Vertex] = []
        self._rows: Floats = np.empty((0, size))

    def is_new(self, occupancy: Floats) -> bool:
        return not len(self._same(occupancy))

    def number(self, vertex: Vertex) -> int:
        """The number of a plan, which is added if it is new."""
        same = self._same(vertex.occupancy)
        if len(same):
            return int(same[0])
        self.plans.append(vertex)
        self._rows = np.vstack([self._rows, vertex.occupancy])
        return len(self.plans) - 1

    def _same(self, occupancy: Floats) -> Ints:
        """The numbers of plans with this occupancy: one or none."""
        return np.flatnonzero(np.abs(self._rows - occupancy).max(axis=1) <= SAME)


def _complete(polytope: Polytope, pool: _Pool, most: int) -> None:
    """Add policies that differ from a candidate in one action, then in two and so on, until there are `most` or no more.

    Those that miss the floors are no candidates, but lead to others: where staying in one state is best, all policies that
    are like it may be poor. All are screened roughly, many at once; candidates are then computed exactly.
    """
    mdp, tried = polytope.mdp, 0
    waiting: deque[tuple[Ints, Floats]] = deque()
    for plan in pool.plans:  # where only the occupancy is known, any choice will do in states that are not visited
        own = first_best(mdp, plan.occupancy) if plan.choices is None else np.asarray(plan.choices, np.int64)
        waiting.append((own, plan.occupancy))
    seen = {choices.tobytes() for choices, _ in waiting}
    while waiting and len(pool.plans) < most and tried < TRIED * most:
        own, time = waiting.popleft()
        taken = own[mdp.choice_state]
        near = []
        for choice in np.flatnonzero((time[taken] > SAME) & (taken != np.arange(mdp.n_choices))):
            changed = np.array(own, dtype=np.int64)
            changed[mdp.choice_state[choice]] = choice
            if changed.tobytes() not in seen:
                seen.add(changed.tobytes())
                near.append(changed)
        if not near:
            continue
        tried += len(near)
        for changed, rough in zip(near, _rough_occupancies(polytope, np.stack(near)), strict=True):
            waiting.append((changed, rough))
            if polytope.meets_floors(rough) and pool.is_new(rough):
                vertex = polytope.vertex_of_one_class(changed)
                if vertex is not None and polytope.meets_floors(vertex.occupancy) and len(pool.plans) < most:
                    pool.number(vertex)


def _rough_occupancies(polytope: Polytope, choices: Ints) -> Floats:
    """(C, S) policies of a small model -> (C, N) their occupancies, wrong where chains mix very slowly.

    The long run is a high power of the chain that waits in every second step; so waiting, it has no period.
    """
    mdp, discount = polytope.mdp, polytope.criterion.discount
    p = mdp.transitions.toarray()[choices]
    if discount < 1:
        system = np.eye(mdp.n_states) - discount * p.transpose(0, 2, 1)
        visits = np.linalg.solve(system, np.broadcast_to((1 - discount) * mdp.start, choices.shape)[..., None])[..., 0]
    else:
        p = (p + np.eye(mdp.n_states)) / 2
        for _ in range(SQUARINGS):
            p = p @ p
            p /= p.sum(axis=2, keepdims=True)
        visits = mdp.start @ p
    occupancies = np.zeros((len(choices), mdp.n_choices))
    np.put_along_axis(occupancies, choices, visits, axis=1)
    return occupancies


def _swapped(candidates: Candidates, members: Ints, fixed: int) -> Ints:
    """(k,) -> (k,): members swapped for candidates, one after the other, until no swap raises the value; plans that are
    equal are parted at any price."""
    members, k = members.copy(), len(members)
    idle, i = 0, fixed
    while idle < k - fixed:
        worth = candidates.contributions(members, i)
        least = worth[members[i]] + RISE * abs(worth[members[i]])
        if members[i] in np.delete(members, i):
            least = -np.inf  # any other plan is better than the same one twice
        worth[members] = -np.inf
        best = int(np.argmax(worth))
        idle += 1
        if worth[best] > least:
            members[i], idle = best, 0
        i = i + 1 if i + 1 < k else fixed
    return members
