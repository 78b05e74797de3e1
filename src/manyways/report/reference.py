"""The best plan of a model, with which the page compares the plans of a set."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from manyways.describe import Measure, Survey, measures, survey_of
from manyways.describe.survey import negligible
from manyways.planning import plan
from manyways.plans.planset import PlanSet

MOST_STATES = 50_000
"""In larger models the best plan is shown only if it is one of the set."""


@dataclass(frozen=True, eq=False)
class Reference:
    """A plan that no other is better than.

    Attributes:
        survey: a set that holds it.
        plan: its number in that set, counted from 0.
        measured: the measures of that set.
        several: whether more plans of the page are known to be as good.
    """

    survey: Survey
    plan: int
    measured: list[Measure]
    several: bool

    @property
    def values(self) -> dict[str, float | None]:
        """What is measured of it, by the name of the measure."""
        return {measure.name: measure.values[self.plan] for measure in self.measured}


def best_of(plans: PlanSet, survey: Survey, measured: list[Measure]) -> Reference | None:
    """A plan that no other is better than: of the plans of the set that are equally good, the one that is best in the other
    measures, the first of them first. None if finding it would take too long."""
    equal = np.flatnonzero(plans.optimal_reward - plans.rewards <= negligible(plans)).tolist()
    if equal:
        ranked = [measure for measure in measured[2:] if measure.better]
        return Reference(
            survey, max(equal, key=lambda i: [_rank(measure, i) for measure in ranked]), measured, len(equal) > 1
        )
    if plans.mdp.n_states > MOST_STATES:
        return None
    alone = survey_of(plan(plans.mdp, 1, criterion=plans.criterion))
    return Reference(alone, 0, measures(alone), several=False)


def _rank(measure: Measure, plan: int) -> float:
    """The better, the larger; a plan without the measure comes last."""
    value = measure.values[plan]
    return -np.inf if value is None else measure.better * float(f"{value:.6g}")
