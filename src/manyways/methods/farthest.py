"""The plan that is farthest from given ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from manyways.methods.ascent import Watch
from manyways.methods.vertex_ascent import VertexAscent
from manyways.objectives import SetObjective
from manyways.polytope import Polytope, Vertex

HEATS = ((1.0, 0.35, 1e-3), (10.0, 1.0, 0.1, 1e-3))
"""Two schedules: which of them finds the plan farther away depends on the model."""


def farthest_plan(
    polytope: Polytope, least: SetObjective, plans: Sequence[Vertex], seed: int, watch: Watch | None = None
) -> Vertex:
    """The plan found whose least distance from the given plans is largest.

    Args:
        polytope: where plans lie.
        least: the least distance of a set, and nothing else, such as `LeastDivergence(inf)` on the model.
        plans: at least one.
        seed: of every random draw.
        watch: ends the search early, with the best plan so far.
    """
    best, farthest = plans[0], -np.inf
    for stages in HEATS:
        method = VertexAscent(starts=1, stages=stages, exchanges=False)
        found = method.run(polytope, least, len(plans) + 1, seed, watch or Watch(), plans)
        rows = [plan.occupancy for plan in plans]
        away = float(least.distances(np.stack([*rows, found.point[0]]))[-1, :-1].min())
        if away > farthest:
            best = Vertex(found.point[0], None if found.choices is None else found.choices[0])
            farthest = away
    return best
