"""The plan that is farthest from given ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from manyways.behaviours import LinearMap
from manyways.methods.ascent import Watch
from manyways.methods.vertex_ascent import VertexAscent
from manyways.objectives import SetObjective
from manyways.objectives.divergence import divergences_from
from manyways.polytope import Polytope, Vertex
from manyways.preferences import Preferences
from manyways.types import Floats

HEATS = ((1.0, 0.35, 1e-3), (10.0, 1.0, 0.1, 1e-3))
"""Two schedules: which of them finds the plan farther away depends on the model."""


SCATTERED, WORK = 24, 200_000
"""So many plans for random preferences are candidates; fewer in models in which they would have more states together."""
VISITED, AVOIDED = 1e-3, 1e3
"""The time from which on a place counts as visited, and what a step in a place to avoid costs, in units of what the optimal plan
earns per step."""
CHANGED_UP_TO, CHANGES = 100, 3
"""In models of up to so many states, actions of plans are changed one by one, up to so many times."""


@dataclass(frozen=True)
class _Climbing(VertexAscent):
    """A search for one plan. If the farthest one found equals a given plan, that is the answer."""

    parts_copies: ClassVar[bool] = False


def scattered_plans(polytope: Polytope, seed: int, watch: Watch | None = None) -> list[Vertex]:
    """The best plans for random preferences, added to the known reward: plans all over the limits.

    A search that climbs from plan to plan may miss a way that is far from all of them; one of these is often near it.
    """
    mdp, x = polytope.mdp, polytope.optimum.occupancy
    count = _affordable(polytope)
    typical = float(x @ np.abs(mdp.reward - x @ mdp.reward)) / 2 or abs(float(x @ mdp.reward)) or 1.0
    if not count:
        return []
    draws = Preferences().on(mdp, typical).draw(count, np.random.default_rng(seed))
    return _best_plans(polytope, (mdp.reward + draws.rewards([number])[0] for number in range(count)), watch)


def _avoiding_plans(
    polytope: Polytope, compared: LinearMap, plans: Sequence[Vertex], watch: Watch | None
) -> list[Vertex]:
    """Where plans are compared by few places: the best plan that avoids each place that given plans visit, and the best
    that avoids all places that only some of them visit.

    Limits are met by a search for multipliers, which cannot see a way that spends little time in the place that makes it
    different: staying there always seems better. A ban on the other ways does not have this gap.
    """
    if compared.places > _affordable(polytope):
        return []
    mdp = polytope.mdp
    visited = np.stack([compared.forward(plan.occupancy) for plan in plans]) > VISITED
    some, all_ = visited.any(axis=0), visited.all(axis=0)
    bans = np.concatenate([np.eye(compared.places)[some], [some & ~all_]])
    penalty = AVOIDED * max(float(polytope.optimum.occupancy @ np.abs(mdp.reward)), 1e-12)
    return _best_plans(
        polytope, (mdp.reward - penalty * row for row in compared.backward(bans.astype(np.float64)) if row.any()), watch
    )


def _affordable(polytope: Polytope) -> int:
    return int(min(SCATTERED, WORK // polytope.mdp.n_states))


def _best_plans(polytope: Polytope, costs: Iterable[Floats], watch: Watch | None) -> list[Vertex]:
    found = []
    for c in costs:
        if watch is not None:
            watch.check()
        answer = polytope.best(c, polytope.optimum)
        found.append(Vertex(answer.occupancy, answer.choices))
    return found


def farthest_plan(
    polytope: Polytope,
    least: SetObjective,
    plans: Sequence[Vertex],
    seed: int,
    watch: Watch | None = None,
    candidates: Sequence[Vertex] = (),
) -> Vertex:
    """The plan found whose least distance from the given plans is largest.

    Args:
        polytope: where plans lie.
        least: the least distance of a set, and nothing else, such as `LeastDivergence(inf)` on the model.
        plans: at least one.
        seed: of every random draw.
        watch: ends the search early, with the best plan so far.
        candidates: further plans that may be the farthest.
    """
    found = [*candidates, *_avoiding_plans(polytope, least.compared, plans, watch)]
    for stages in HEATS:
        method = _Climbing(starts=1, stages=stages, exchanges=False)
        ascent = method.run(polytope, least, len(plans) + 1, seed, watch or Watch(), plans)
        found.append(Vertex(ascent.point[0], None if ascent.choices is None else ascent.choices[0]))
    images = [least.compared.forward(plan.occupancy) for plan in plans]

    def away(plan: Vertex) -> float:
        return float(divergences_from(least.compared.forward(plan.occupancy), images).min())

    farthest = max(found, key=away)
    if polytope.mdp.n_states <= CHANGED_UP_TO:
        return max((_changed(polytope, plan, away, watch) for plan in (farthest, *plans)), key=away)
    return farthest


def _changed(polytope: Polytope, plan: Vertex, away: Callable[[Vertex], float], watch: Watch | None) -> Vertex:
    """The plan with single actions changed, within the limits, as long as that leads farther away.

    A search for multipliers finds plans at the edge of what is possible together. What is possible by itself, such as running slowly
    in one state, may lie inside, where no multiplier leads.
    """
    mdp, reached = polytope.mdp, away(plan)
    for _ in range(CHANGES):
        if plan.choices is None:
            break
        if watch is not None:
            watch.check()
        time = np.add.reduceat(plan.occupancy, mdp.first_choice[:-1])
        busy = np.argsort(-time, kind="stable")[:CHANGED_UP_TO]
        better = None
        for state in busy[time[busy] > VISITED].tolist():
            for x in range(mdp.first_choice[state], mdp.first_choice[state + 1]):
                choices = np.array(plan.choices)
                if choices[state] == x:
                    continue
                choices[state] = x
                trial = polytope.vertex_of_one_class(choices)
                if trial is not None and polytope.meets_floors(trial.occupancy) and away(trial) > reached + 1e-9:
                    better, reached = trial, away(trial)
        if better is None:
            break
        plan = better
    return plan
