"""No clones: a set in which no two plans are much nearer than a third plan could be.

A mean of distances is content with two groups of twins. After the search, the nearer of two plans is compared with the plan
that is farthest from all others (`methods.farthest`): if that one is more than `CLONE` times as far away as the twin, it
takes the twin's place. Distances are at most ln 2, so pairs further apart than ln 2 / CLONE need no such search.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from manyways.methods.ascent import Watch
from manyways.methods.farthest import farthest_plan, scattered_plans
from manyways.objectives import SetObjective
from manyways.polytope import Polytope, Vertex
from manyways.types import Floats

CLONE = 5.0
APART_OF_MEAN = 3.0


def without_clones(
    polytope: Polytope,
    least: SetObjective,
    plans: Sequence[Vertex],
    fixed: int,
    seed: int,
    watch: Watch,
    apart: float | None = None,
) -> tuple[list[Vertex], int | None]:
    """Replace plans that are clones of others.

    Args:
        polytope: where plans lie.
        least: the least distance of a set, and nothing else.
        plans: at least one, the best first among the free ones.
        fixed: how many of them, the first ones, stay.
        seed: of every random draw.
        watch: ends the search early.
        apart: if given, plans nearer than this to another one are left out where no plan further away is found; so are those
            nearer than a third of the mean distance of the set, unless some plans stay: who replaces a plan wants another one.

    Returns:
        The plans, and the number of the one that a further plan would be like, if plans were left out.
    """
    found, like = list(plans), None
    scattered: list[Vertex] | None = None
    for _ in range(2 * len(plans)):
        if len(found) == 1:
            break
        distances = least.distances(np.stack([plan.occupancy for plan in found]))
        i, j, distance = _nearest(distances, fixed)
        enough = 0.0 if apart is None else apart
        if apart is not None and not fixed:
            enough = max(apart, distances[np.triu_indices(len(found), 1)].mean() / APART_OF_MEAN)
        if j < 0 or distance >= max(np.log(2) / CLONE, enough):
            break
        rest = [plan for number, plan in enumerate(found) if number != j]
        if apart is not None and scattered is None:  # only where the number of ways is claimed: this takes time
            scattered = scattered_plans(polytope, seed, watch)
        new = farthest_plan(polytope, least, rest, seed, watch, scattered or ())
        away = float(least.distances(np.stack([plan.occupancy for plan in (*rest, new)]))[-1, :-1].min())
        if away > CLONE * distance or distance < enough <= away:
            found[j] = new
        elif distance < enough:
            found, like = rest, i
        else:
            break
    return found, like


def _nearest(distances: Floats, fixed: int) -> tuple[int, int, float]:
    """The nearest pair, its second plan free, and its distance; (-1, -1, inf) if there is none."""
    apart = distances + np.diag(np.full(len(distances), np.inf))
    apart[:, :fixed] = np.inf
    apart[np.tril_indices(len(apart))] = np.inf  # the later plan of a pair goes
    i, j = np.unravel_index(int(np.argmin(apart)), apart.shape)
    return (int(i), int(j), float(apart[i, j])) if np.isfinite(apart[i, j]) else (-1, -1, np.inf)
