"""What is certain and what is free: how much time any plan within the limits spends somewhere, at least and at most.

For each label, region, action or feature the least and the largest share of time are linear problems over the plans that
keep the limits, and their duals prove them: no plan within the limits, randomised or not, lies outside. Steps per trip to
the end of an episode are ratios of two such sums, found by a few linear problems each (Dinkelbach).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from os import PathLike

import numpy as np
from numpy.typing import ArrayLike

from manyways.describe.wording import counted, percent, quoted
from manyways.errors import SettingError
from manyways.formats import read
from manyways.model.episodes import episode_ends
from manyways.model.mdp import MDP
from manyways.model.regions import find_regions
from manyways.objectives import MeanDivergence
from manyways.plans import PlanSet
from manyways.polytope import CRITERIA, Answer, Criterion, Limits, Polytope, on_twins
from manyways.tasks import asked_limits, default_criterion, settled_task
from manyways.types import Floats

CERTAIN = 0.95
"""A place in which every plan takes more steps per trip than this counts as being on every plan's way."""
ROUNDS, SETTLED = 50, 1e-10


@dataclass(frozen=True)
class Range:
    """How much time plans within the limits spend somewhere.

    Attributes:
        name: the label, region, action or feature.
        least, most: shares of time that no plan leaves.
        steps: the least and the largest mean number of steps per trip, from one start to the next; None in models without
            episodes. The largest is infinite if a plan may stay there.
        word: how time there is spoken of: "in" a place, "on" an action.
    """

    name: str
    least: float
    most: float
    steps: tuple[float, float] | None
    word: str = "in"

    @property
    def sentence(self) -> str:
        """What it means, in plain words."""
        where = f"{self.word} {quoted(self.name)}"
        if self.most <= 1e-9:
            return f"No plan within the limits spends any time {where}."
        if self.steps is not None and self.steps[0] > CERTAIN:
            return f"Every plan within the limits spends at least {counted(self.steps[0], 'step')} per trip {where}."
        if self.most - self.least <= 1e-9:
            return f"Every plan within the limits spends {percent(self.most)} of the time {where}."
        if self.least <= 1e-9:
            return f"Between none and {percent(self.most)} of the time {where}: yours to choose."
        return f"Between {percent(self.least)} and {percent(self.most)} of the time {where}."


@dataclass(frozen=True, eq=False)
class Freedom:
    """The ranges of a model within limits.

    Attributes:
        mdp: the model.
        best: the highest value of any plan.
        criterion, limits: what the value of a plan is, and how much of it plans may give up.
        ranges: the widest first.
        weights: by name, (N,) what each choice counts.
    """

    mdp: MDP
    best: float
    criterion: Criterion
    limits: Limits
    ranges: tuple[Range, ...]
    weights: Mapping[str, Floats]


def freedom(
    source: MDP | str | PathLike[str],
    slack: float | None = None,
    *,
    floor: float | None = None,
    longer: float | None = None,
    criterion: Criterion | None = None,
    by: str | Mapping[str, ArrayLike] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Freedom:
    """The least and the largest share of time that plans within the limits spend in each place.

    Args:
        source: a model, or anything that `read` takes.
        slack, floor, longer: the limits, as for `plan`; within 10 % of the best plan by default.
        criterion: as for `plan`.
        by: "labels", "regions" of a map, "actions", or weights by name, (N,) or (S,). By default the labels of the model; if
            it has none, the regions of its map or its actions.
        progress: called with the number of ranges found and of all.

    Example:
        >>> for found in freedom("nine-rooms:7", slack=0.05).ranges:
        ...     print(found.sentence)
    """
    discounted = criterion is not None and CRITERIA.check(criterion).discount < 1
    mdp = read(source, absorbing=discounted)
    criterion = default_criterion(mdp) if criterion is None else criterion
    task = settled_task(Polytope(mdp, criterion), MeanDivergence(), asked_limits(slack, floor, longer, randomised=True))
    weights = _weights(mdp, by)
    named = any(mask.any() for mask in mdp.labels.values())
    word = "on" if by == "actions" or (by is None and not named and mdp.layout is None) else "in"
    ends = None if task.criterion.discount < 1 else episode_ends(mdp)
    begun = iter(range(len(weights)))

    def find(own: Polytope, place: tuple[str, Floats]) -> Range:
        if progress is not None:
            progress(next(begun), len(weights))
        return _range(own, *place, ends, word)

    found = on_twins(find, task.polytope, list(weights.items()))
    ranges = sorted(found, key=lambda r: r.least - r.most)
    return Freedom(mdp, task.best, task.criterion, task.limits, tuple(ranges), weights)


def freedom_of(plans: PlanSet, by: Mapping[str, ArrayLike]) -> list[Range]:
    """The ranges of time in places, given by their names and (S,) states, within the limits of a plan set: the widest first,
    without steps per trip."""
    asked = replace(plans.limits, floor=None if plans.limits.slack is not None else plans.limits.floor, way=None)
    polytope = Polytope(plans.mdp, plans.criterion)
    task = settled_task(polytope, MeanDivergence(), replace(asked, randomised=True))
    places = list(_weights(plans.mdp, by).items())
    found = on_twins(lambda own, place: _range(own, *place, None, "in"), task.polytope, places)
    return sorted(found, key=lambda r: r.least - r.most)


def _range(polytope: Polytope, name: str, weights: Floats, ends: Floats | None, word: str) -> Range:
    most = polytope.best(weights)
    least = polytope.best(-weights)
    low, high = 0.0 - least.bound, most.bound  # unlike -0.0, 0.0 - 0.0 has no sign
    if weights.min() >= 0:
        low, high = max(0.0, low), min(max(high, 0.0), float(weights.max()))
    steps = None
    if ends is not None:
        shortest = polytope.best(ends)
        fewest, most_steps = -_ratio(polytope, -weights, ends, shortest), _ratio(polytope, weights, ends, shortest)
        steps = (max(fewest, 0.0) if weights.min() >= 0 else fewest), most_steps
    return Range(name, float(low), float(high), steps, word)


def _ratio(polytope: Polytope, weights: Floats, ends: Floats, start: Answer) -> float:
    """The largest <weights, x> / <ends, x> of any plan; infinite if a plan may never end an episode and gain by it."""
    plan, value = start, float(weights @ start.occupancy) / max(float(ends @ start.occupancy), 1e-300)
    for _ in range(ROUNDS):
        plan = polytope.best(weights - value * ends, plan)
        ended = float(ends @ plan.occupancy)
        if ended <= 1e-12:
            return np.inf if plan.value > SETTLED else value
        reached = float(weights @ plan.occupancy) / ended
        if reached <= value + SETTLED * (1 + abs(value)):
            # What the bound of the last problem leaves open, per trip.
            return max(reached, value) + max(plan.bound, 0.0) / ended
        value = reached
    return value


def _weights(mdp: MDP, by: str | Mapping[str, ArrayLike] | None) -> dict[str, Floats]:
    """(N,) weights by name."""
    if isinstance(by, Mapping):
        return {str(name): _row(mdp, name, given) for name, given in by.items()}
    labels = {label: mask[mdp.choice_state] for label, mask in mdp.labels.items() if mask.any()}
    by = by or ("labels" if labels else "regions" if mdp.layout is not None else "actions")
    if by == "labels":
        groups = labels
    elif by == "regions":
        regions = find_regions(mdp)
        groups = {name: (regions.of_state == i)[mdp.choice_state] for i, name in enumerate(regions.names)}
    elif by == "actions":
        groups = {name: mdp.actions == i for i, name in enumerate(mdp.action_names)}
    else:
        raise SettingError(f"expected labels, regions or actions, found {by!r}")
    if not groups:
        raise SettingError(f"{mdp.name} has no {by}; ask by labels, regions or actions")
    return {name: mask.astype(np.float64) for name, mask in groups.items()}


def _row(mdp: MDP, name: object, given: ArrayLike) -> Floats:
    row = np.asarray(given, dtype=np.float64)
    row = row[mdp.choice_state] if row.shape == (mdp.n_states,) != (mdp.n_choices,) else row
    if row.shape != (mdp.n_choices,) or not np.isfinite(row).all():
        raise SettingError(
            f"the weights {name!r} must be a number for each of the {mdp.n_states} states or {mdp.n_choices} choices, "
            f"found shape {row.shape}"
        )
    return row
