"""The sets that the team study compares, one plan for each agent, and its trials: what each set does as a team.

Within the slack: the default (representative) set, mean and least divergence, mean divergence with `Near`, random plans (all
five as in the preference study, see `contestants`), and three that were made for teams: plans for closures, plans that avoid
meetings, plans that see much. Without limits: the paper's Frank-Wolfe at the paper's tradeoff. The base line is as many copies
of the best plan.

*In time* is twice the mean time of the best plan, the same for all sets of a world. Values of closed worlds are per step, of
the best plan of the set, relative to a plan that was made with the closure known. Rewards are relative to the best plan.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from manyways.behaviours import States
from manyways.model.mdp import MDP
from manyways.model.occupancy import policy_of
from manyways.objectives import Congestion, Coverage, Representative
from manyways.objectives.divergence import pairwise_divergences
from manyways.planning import plan_or_interrupt
from manyways.plans import PlanSet
from manyways.polytope import Average
from manyways.preferences import Preferences
from manyways.studies.contestants import (
    FRANK_WOLFE,
    LEAST,
    MEAN,
    NEAR,
    PLANNED,
    RANDOM_PLANS,
    REPRESENTATIVE,
    Planned,
    random_plans,
    within_slack,
)
from manyways.studies.persons import SLACK, World, world_of
from manyways.studies.study_worlds import closing, possible_closures
from manyways.surviving import survival
from manyways.teams import team
from manyways.types import Floats

COPIES, CLOSURES, CONGESTION, COVERAGE = "copies of the best plan", "closures", "congestion", "coverage"


def team_row(settings: Mapping[str, Any]) -> dict[str, Any]:
    """What `k` agents do together that run the plans of one set; `slack` is None for sets without limits."""
    slack = settings["slack"]
    world, began = world_of(settings["source"], SLACK if slack is None else slack), time.perf_counter()
    plans = TEAM_SETS[settings["set"]](world, settings["k"], settings["seed"])
    seconds = time.perf_counter() - began
    mdp, best = world.mdp, _best_plan(world.mdp)
    deadline = team(best, closed=(), places=np.zeros((0, mdp.n_states))).deadline
    closed = possible_closures(mdp)
    found, outcomes = team(plans, closed=closed, deadline=deadline), survival(plans, closed)
    return {
        "deadline": deadline,
        "closures": len(closed),
        "reaches": float(found.reaches.mean()),
        "reaches_worst": float(found.reaches.min()),
        "best_value": float(outcomes.best_values.mean() / outcomes.replanned.values.mean()),
        "seen": found.seen,
        "first_visit": found.first_visit / deadline,
        "meetings": found.meetings,
        "reward": found.reward / best.optimal_reward,
        "delayed": found.delayed / best.optimal_reward,
        "seconds": seconds,
    }


def _best_plan(mdp: MDP) -> PlanSet:
    return plan_or_interrupt(mdp, 1, 0.0, criterion=Average())


def _copies(world: World, k: int, seed: int) -> PlanSet:
    del seed  # nothing is random
    best = _best_plan(world.mdp)
    return _measured(best, np.repeat(best.policies, k, axis=0), np.repeat(best.occupancies, k, axis=0))


def _random_plans(world: World, k: int, seed: int) -> PlanSet:
    x = random_plans(world, k, seed)
    return _measured(_best_plan(world.mdp), np.stack([policy_of(world.mdp, row) for row in x]), x)


def _measured(best: PlanSet, policies: Floats, x: Floats) -> PlanSet:
    """A set of given plans for the model of another one, to be measured only: it has no certificate."""
    return replace(
        best,
        policies=policies,
        occupancies=x,
        rewards=x @ best.mdp.reward,
        distances=pairwise_divergences(x),
        certificate=None,
        proof=None,
    )


def _for_closures(world: World, k: int, seed: int) -> PlanSet:
    prior = Preferences.closures(**closing(world.mdp))
    return within_slack(objective=Representative(prior))(world, k, seed)


TEAM_SETS: dict[str, Planned] = {
    COPIES: _copies,
    FRANK_WOLFE: PLANNED[FRANK_WOLFE],
    REPRESENTATIVE: PLANNED[REPRESENTATIVE],
    MEAN: PLANNED[MEAN],
    LEAST: PLANNED[LEAST],
    NEAR: PLANNED[NEAR],
    CLOSURES: _for_closures,
    CONGESTION: within_slack(objective=Congestion()),
    COVERAGE: within_slack(objective=Coverage(), behaviour=States()),
    RANDOM_PLANS: _random_plans,
}
"""By name: every set of the study."""
DIVERSE = (REPRESENTATIVE, MEAN, LEAST, NEAR)
"""Sets that are diverse by themselves, made without a thought of teams."""
NO_SLACK = (COPIES, FRANK_WOLFE)
"""Sets that do not depend on the slack: the best plan is within any, Frank-Wolfe at the paper's tradeoff within none."""
