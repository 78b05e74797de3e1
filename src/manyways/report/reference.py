"""The best plan of a model, with which the page compares the plans of a set."""

from __future__ import annotations

from manyways.describe import Survey, survey_of
from manyways.describe.survey import negligible
from manyways.planning import plan
from manyways.plans.planset import PlanSet

MOST_STATES = 50_000
"""In larger models the best plan is shown only if it is one of the set."""


def best_of(plans: PlanSet, survey: Survey) -> tuple[Survey, int] | None:
    """A survey and the number in it of a plan that no other is better than; None if finding it would take too long."""
    best = int(plans.rewards.argmax())
    if plans.optimal_reward - plans.rewards[best] <= negligible(plans):
        return survey, best
    if plans.mdp.n_states > MOST_STATES:
        return None
    return survey_of(plan(plans.mdp, 1, criterion=plans.criterion)), 0
