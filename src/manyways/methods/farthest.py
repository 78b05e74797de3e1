"""The plan that is farthest from given ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from manyways.methods.ascent import Watch
from manyways.methods.vertex_ascent import VertexAscent
from manyways.objectives import SetObjective
from manyways.objectives.divergence import divergences_from
from manyways.polytope import Polytope, Vertex
from manyways.preferences import Preferences

HEATS = ((1.0, 0.35, 1e-3), (10.0, 1.0, 0.1, 1e-3))
"""Two schedules: which of them finds the plan farther away depends on the model."""


SCATTERED, WORK = 24, 200_000
"""So many plans for random preferences are candidates; fewer in models in which they would have more states together."""


@dataclass(frozen=True)
class _Climbing(VertexAscent):
    """A search for one plan. If the farthest one found equals a given plan, that is the answer."""

    parts_copies: ClassVar[bool] = False


def scattered_plans(polytope: Polytope, seed: int, watch: Watch | None = None) -> list[Vertex]:
    """The best plans for random preferences, added to the known reward: plans all over the limits.

    A search that climbs from plan to plan may miss a way that is far from all of them; one of these is often near it.
    """
    mdp, x = polytope.mdp, polytope.optimum.occupancy
    count = int(min(SCATTERED, WORK // mdp.n_states))
    typical = float(x @ np.abs(mdp.reward - x @ mdp.reward)) / 2 or abs(float(x @ mdp.reward)) or 1.0
    if not count:
        return []
    draws = Preferences().on(mdp, typical).draw(count, np.random.default_rng(seed))
    found = []
    for number in range(count):
        if watch is not None:
            watch.check()
        answer = polytope.best(mdp.reward + draws.rewards([number])[0], polytope.optimum)
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
    found = list(candidates)
    for stages in HEATS:
        method = _Climbing(starts=1, stages=stages, exchanges=False)
        ascent = method.run(polytope, least, len(plans) + 1, seed, watch or Watch(), plans)
        found.append(Vertex(ascent.point[0], None if ascent.choices is None else ascent.choices[0]))
    images = [least.compared.forward(plan.occupancy) for plan in plans]
    away = [divergences_from(least.compared.forward(plan.occupancy), images).min() for plan in found]
    return found[int(np.argmax(away))]
