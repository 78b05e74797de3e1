"""How well a set of plans serves people whose preferences nobody wrote down.

A person prefers w, drawn from a prior, so a plan is worth <r + w, rho> to them. What they could gain at most over the best
plan for the known reward alone is found by one solve each, among all plans within the limits of the set (within the default
limits of `plan` if it has none):

    share = sum over persons (best of the set - best plan) / sum over persons (best of all - best plan)

Nobody has to take a plan that is worse for them than the best plan for the known reward, so no gain is negative. The
persons are drawn anew, so the share says nothing too good about the persons for whom the set was made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from manyways.errors import check_integer
from manyways.kernels.threads import one_blas_thread
from manyways.methods import Progress, Watch
from manyways.objectives import Representative
from manyways.objectives.representative import RepresentativeOnModel
from manyways.plans import PlanSet
from manyways.polytope import Polytope
from manyways.preferences import PreferencePrior
from manyways.tasks import asked_limits, settled_task
from manyways.types import Floats

ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Serving:
    """How well a set of plans serves people with preferences.

    Attributes:
        share: of the gain that was possible within the limits, how much the best of the set brings, over all persons.
        worst_tenth: the same for the tenth of the persons who are served worst.
        gains: (M,) what each person gains by the set over the best plan, in units of the reward per step.
        possible: (M,) what they could gain at most.
    """

    share: float
    worst_tenth: float
    gains: Floats
    possible: Floats


@dataclass(frozen=True, eq=False)
class Audience:
    """Who takes which plan of a set.

    Attributes:
        shares: (k,) the share of persons to whom each plan is worth most.
        wishes: (k, N) their mean preference, as a reward of choices; zero where nobody takes the plan.
    """

    shares: Floats
    wishes: Floats


def served(
    plans: PlanSet,
    preferences: PreferencePrior | None = None,
    persons: int = 100,
    seed: int = 1_000_000,
    progress: Callable[[Progress], None] | None = None,
) -> Serving:
    """Measure how well a set serves people with preferences.

    Args:
        plans: the set.
        preferences: the prior; by default that for which the set was made, or `Preferences()`.
        persons: how many persons are drawn.
        seed: of the draws; another one than that of the plans.
        progress: called with a `Progress` for each person.
    """
    check_integer("persons", persons, 1)
    polytope, worth = _drawn(plans, preferences, persons, seed)
    watch = Watch(None, progress)
    with one_blas_thread():
        base = worth.worths(polytope.optimum.occupancy)
        gains = np.maximum(worth.worths(plans.occupancies).max(axis=0) - base, 0.0)
        possible = gains.copy()
        for number in range(persons):
            costs = worth.costs_of_one(number)
            best = polytope.best(costs, polytope.optimum)
            possible[number] = max(float(costs @ best.occupancy) - base[number], gains[number])
            watch.tell(number + 1, persons, float("nan"), "asking persons")
    nothing = possible <= ROUNDING * (np.abs(base) + worth.unit)
    gains[nothing] = possible[nothing] = 0.0
    shares = np.divide(gains, possible, out=np.ones(persons), where=possible > 0)
    worst = np.argsort(shares, kind="stable")[: max(persons // 10, 1)]
    scale = plans.criterion.planned_per_reward
    return Serving(_ratio(gains, possible), _ratio(gains[worst], possible[worst]), gains / scale, possible / scale)


def audience(plans: PlanSet, preferences: PreferencePrior | None = None, persons: int = 400, seed: int = 0) -> Audience:
    """Who takes which plan: persons are drawn from the prior, and each takes the plan that is worth most to them."""
    _, worth = _drawn(plans, preferences, check_integer("persons", persons, 1), seed)
    with one_blas_thread():
        taken = worth.worths(plans.occupancies).argmax(axis=0)
    count = np.bincount(taken, minlength=plans.k)
    scale = plans.criterion.planned_per_reward
    wishes = np.zeros((plans.k, plans.mdp.n_choices))
    for i in np.flatnonzero(count):
        wishes[i] = worth.draws.reward((taken == i) / count[i]) / scale
    return Audience(count / persons, wishes)


def _drawn(
    plans: PlanSet, preferences: PreferencePrior | None, persons: int, seed: int
) -> tuple[Polytope, RepresentativeOnModel]:
    """All plans within the limits, and what plans are worth to some persons."""
    own = plans.maximised if isinstance(plans.maximised, Representative) else Representative()
    aim = Representative(preferences or own.preferences, persons, seed, own.unit)
    limits = plans.limits
    floor = None if limits.slack is not None else limits.floor
    asked = asked_limits(limits.slack, floor, limits.longer, limits.randomised)
    task = settled_task(Polytope(plans.mdp, plans.criterion), aim, asked)
    settled = replace(aim, unit=getattr(task.aim, "unit", None))
    return task.polytope, settled.on(task.polytope.mdp, plans.behaviour.on(plans.mdp))


def _ratio(gains: Floats, possible: Floats) -> float:
    """1 if nothing is possible: then nothing is missed."""
    return float(gains.sum() / possible.sum()) if possible.sum() > 0 else 1.0
