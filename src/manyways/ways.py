"""How many really different ways there are: plans added one by one, each as far as possible from all before it.

The first plan is the best one. Each further plan is the one found whose least distance from the plans before it is
largest, among all plans within the limits. Where the next distance would be smaller than `apart`, there are no more ways
that anybody would call different. Choosing the farthest point again and again is within a factor of two of
the best choice of as many points (Gonzalez, Theoretical Computer Science 38, 1985).

That factor may hide ways: a set chosen at once can have more plans that are apart. So before the count ends, `plan`'s own
search looks for one plan more, and where it finds a larger set, the count goes on from that set. `how_many` therefore never
finds fewer ways than `plan` does when it is asked for one more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from os import PathLike

import numpy as np

from manyways.behaviours import BEHAVIOURS, Behaviour, StateActions, States
from manyways.errors import SettingError, check_integer, check_number
from manyways.formats import read
from manyways.methods import Progress, VertexAscent, Watch
from manyways.methods.clones import without_clones
from manyways.methods.farthest import farthest_plan, scattered_plans
from manyways.model.mdp import MDP
from manyways.objectives import LeastDivergence, SetObjective
from manyways.plans.guarantee import ways_found
from manyways.polytope import CRITERIA, Criterion, Limits, Polytope, Vertex, way_lengths
from manyways.tasks import Task, asked_limits, default_aim, default_criterion, settled_task
from manyways.types import Floats


@dataclass(frozen=True, eq=False)
class Ways:
    """Really different ways through a model.

    Attributes:
        mdp, criterion, limits, behaviour: what was asked.
        apart: how far ways must be apart.
        policies: (w, N) the ways: first the best of them, then each time the one farthest from those before it.
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
        return f"{found}; a search for one more only found one like way {self.like + 1} (distance {self.distances[-1]:.2f})."

    @property
    def counted_as(self) -> str:
        """What counts as different, in plain words."""
        what = f"What is compared: {self.behaviour.describe()}."
        if self.mdp.layout is None or not isinstance(self.behaviour, (StateActions, States)):
            return what
        return f"{what} Plans that take the same way, and differ only from cell to cell, count as different ways."


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
        behaviour: what counts as different, as for `plan`: `StateActions()` by default. On maps `Near(2.0)` counts only
            ways that are apart by more than a few cells.
        apart: the least distance of two ways, in nats of at most 0.693; by default that of the behaviour, mostly 0.1.
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
    kind = StateActions() if behaviour is None else BEHAVIOURS.check(behaviour)
    apart = kind.apart if apart is None else apart
    asked = asked_limits(slack, floor, longer, randomised=False)
    task = settled_task(Polytope(mdp, criterion), default_aim(VertexAscent())(), asked)
    least = LeastDivergence(inf).on(task.polytope.mdp, kind.on(mdp))
    watch, like, too_near = Watch(None, progress), None, []
    ways: list[Vertex] = [task.polytope.optimum]
    scattered = scattered_plans(task.polytope, seed)
    while len(ways) < most:
        watch.tell(len(ways), most, float("nan"), "looking for another way")
        new = farthest_plan(task.polytope, least, ways, seed, candidates=scattered)
        row = _distances(least, [*ways, new])[-1, :-1]
        if row.min() >= apart:
            ways.append(new)
            continue
        larger = _chosen_at_once(task, least, len(ways) + 1, apart, seed)
        if len(larger) <= len(ways):
            like, too_near = int(np.argmin(row)), [float(row.min())]
            break
        ways = larger
    policies, x = (np.stack(part) for part in zip(*map(task.polytope.realised, ways), strict=True))
    apart_by = _distances(least, ways)
    return Ways(
        mdp=mdp,
        criterion=task.criterion,
        limits=task.limits,
        behaviour=kind,
        apart=apart,
        policies=policies,
        values=task.criterion.values(mdp, x),
        steps=None if task.limits.way is None else way_lengths(mdp, x),
        distances=tuple(float(apart_by[i, :i].min()) for i in range(1, len(ways))) + tuple(too_near),
        like=like,
    )


def _chosen_at_once(task: Task, least: SetObjective, k: int, apart: float, seed: int) -> list[Vertex]:
    """The plans that `plan` finds when it is asked for k and for no two that are nearer than `apart`: first the best of them,
    then each time the one farthest from those before it."""
    aim = task.aim.on(task.polytope.mdp, least.compared)
    ascent = VertexAscent().run(task.polytope, aim, k, seed, Watch(), [])
    choices = [None] * k if ascent.choices is None else ascent.choices
    plans = [Vertex(x, own) for own, x in zip(choices, ascent.point, strict=True)]
    plans.sort(key=lambda plan: -float(plan.occupancy @ task.polytope.mdp.reward))
    found, _ = without_clones(task.polytope, least, plans, 0, seed, Watch(), apart)
    found.sort(key=lambda plan: -float(plan.occupancy @ task.polytope.mdp.reward))
    distances, order = _distances(least, found), [0]
    while len(order) < len(found):
        rest = [i for i in range(len(found)) if i not in order]
        order.append(max(rest, key=lambda i: float(distances[i, order].min())))
    return [found[i] for i in order]


def _distances(least: SetObjective, plans: list[Vertex]) -> Floats:
    return least.distances(np.stack([plan.occupancy for plan in plans]))
