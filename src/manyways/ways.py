"""How many really different ways there are: plans added one by one, each as far as possible from all before it.

The first plan is the best one. Each further plan is the one found whose least distance from the plans before it is
largest, among all plans within the limits. The distances fall; where the next one would be smaller than `apart`, there are
no more ways that anybody would call different. Choosing the farthest point again and again is within a factor of two of
the best choice of as many points (Gonzalez, Theoretical Computer Science 38, 1985).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from os import PathLike

import numpy as np

from manyways.behaviours import BEHAVIOURS, Behaviour, Near, StateActions
from manyways.errors import SettingError, check_integer, check_number
from manyways.formats import read
from manyways.methods import Progress, Watch
from manyways.methods.farthest import farthest_plan, scattered_plans
from manyways.model.mdp import MDP
from manyways.model.occupancy import deterministic
from manyways.objectives import LeastDivergence
from manyways.plans.guarantee import ways_found
from manyways.polytope import CRITERIA, Criterion, Limits, Polytope, Vertex, way_lengths
from manyways.tasks import asked_limits, default_criterion, settled_task
from manyways.types import Floats


@dataclass(frozen=True, eq=False)
class Ways:
    """Really different ways through a model.

    Attributes:
        mdp, criterion, limits, behaviour: what was asked.
        apart: how far ways must be apart.
        policies: (w, N) the ways, in the order in which they were found; the first is the best plan.
        values: (w,) their values.
        steps: (w,) their mean numbers of steps to the goal, if these are limited; otherwise None.
        distances: the least distance of each further plan from those before it, the first that was too near included.
        like: the way (counted from 0) that the next plan would be most like; None if the search ended before that.
    """

    mdp: MDP
    criterion: Criterion
    limits: Limits
    behaviour: Behaviour
    apart: float
    policies: Floats
    values: Floats
    steps: Floats | None
    distances: tuple[float, ...]
    like: int | None

    def __len__(self) -> int:
        return len(self.policies)

    @property
    def sentence(self) -> str:
        """How many ways there are, in plain words."""
        found = ways_found(len(self), self.limits)
        if self.like is None:
            return f"At least {found}; more were not looked for."
        return f"{found}; one more would be like way {self.like + 1} (distance {self.distances[-1]:.2f})."


def how_many(
    source: MDP | str | PathLike[str],
    slack: float | None = None,
    behaviour: Behaviour | None = None,
    apart: float | None = None,
    *,
    floor: float | None = None,
    longer: float | None = None,
    criterion: Criterion | None = None,
    most: int = 12,
    seed: int = 0,
    progress: Callable[[Progress], None] | None = None,
) -> Ways:
    """Find really different ways, one by one, until the next would be too near to one of them.

    Args:
        source: a model, or anything that `read` takes.
        slack, floor, longer: the limits, as for `plan`; within 10 % of the best plan by default.
        behaviour: what counts as different; by default `Near()` on maps and `StateActions()` elsewhere.
        apart: the least distance of two ways, in nats of at most 0.693; by default that of the behaviour, 0.1 for `Near`.
        criterion: as for `plan`.
        most: stop at this many.
        seed: of every random draw.
        progress: called with a `Progress` for each way found.
    """
    check_integer("most", most, 1)
    if apart is not None and not 0 < check_number("apart", apart) < np.log(2):
        raise SettingError(f"the least distance of two ways must be above 0 and below 0.693 (ln 2), found {apart:g}")
    discounted = criterion is not None and CRITERIA.check(criterion).discount < 1
    mdp = read(source, absorbing=discounted)
    criterion = default_criterion(mdp) if criterion is None else criterion
    kind = (Near() if mdp.layout is not None else StateActions()) if behaviour is None else BEHAVIOURS.check(behaviour)
    apart = kind.apart if apart is None else apart
    asked = asked_limits(slack, floor, longer, randomised=False)
    task = settled_task(Polytope(mdp, criterion), LeastDivergence(), asked)
    worth = LeastDivergence(inf).on(task.polytope.mdp, kind.on(mdp))
    watch, distances, like = Watch(None, progress), [], None
    ways: list[Vertex] = [task.polytope.optimum]
    scattered = scattered_plans(task.polytope, seed)
    while len(ways) < most:
        watch.tell(len(ways), most, distances[-1] if distances else float("nan"), "looking for another way")
        new = farthest_plan(task.polytope, worth, ways, seed, candidates=scattered)
        row = worth.distances(np.stack([v.occupancy for v in (*ways, new)]))[-1, :-1]
        distances.append(float(row.min()))
        if distances[-1] < apart:
            like = int(np.argmin(row))
            break
        ways.append(new)
    x = np.stack([way.occupancy for way in ways])
    policies = np.stack([deterministic(mdp, way.choices) for way in ways if way.choices is not None])
    values = task.criterion.values(mdp, x)
    steps = None if task.limits.way is None else way_lengths(mdp, x)
    return Ways(mdp, task.criterion, task.limits, kind, apart, policies, values, steps, tuple(distances), like)
