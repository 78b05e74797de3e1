"""`verify`: recompute everything that a plan set claims, from the model alone.

No number of the method or of a solver is taken on trust. Optimality is shown by weak duality: a
function of the states proves an upper bound on what any policy can have, whoever found it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from manyways.arrays import Floats
from manyways.mdp import MDP
from manyways.methods import Halted
from manyways.objective import Objective
from manyways.occupancy import chain, first_best, state_occupancy
from manyways.planset import Certificate, Check, PlanSet
from manyways.polytope import Average, Polytope, Vertex
from manyways.structure import closed_components, reachable

FEASIBLE = 1e-9
EQUAL = 1e-8
PROVED = 1e-6


@dataclass(frozen=True, eq=False)
class Findings:
    """What the model says about k policies and their occupancies.

    Attributes:
        infeasibility: the largest violation of any constraint by an occupancy.
        misrealisation: how far the policies are from having these occupancies.
        rewards, distances, objective: recomputed.
        optimum: no policy's reward is above this; proved by weak duality.
        gap: the Frank-Wolfe gap (Algorithm 2, line 7), also a proved upper bound; infinite if the search for it
            was interrupted.
    """

    infeasibility: float
    misrealisation: float
    rewards: Floats
    distances: Floats
    objective: float
    optimum: float
    gap: float


def examine(
    polytope: Polytope,
    objective: Objective,
    policies: Floats,
    x: Floats,
    tell: Callable[[int], None] = lambda _: None,
) -> Findings:
    """Compute all of `Findings` for (k, N) policies and occupancies.

    The gap takes most of the time: a solve per plan, after each of which `tell` is called.
    """
    rewards, distances = x @ polytope.mdp.reward, objective.distances(x)
    gradient = objective.gradient(x)
    return Findings(
        infeasibility=_worst([polytope.residual(row) for row in x]),
        misrealisation=_worst([_realisation_error(polytope, *pair) for pair in zip(policies, x, strict=True)]),
        rewards=rewards,
        distances=distances,
        objective=objective.combine(rewards, distances),
        optimum=polytope.optimum.bound,
        gap=_gap(polytope, gradient, policies, x, tell),
    )


def verify(mdp: MDP, plans: PlanSet) -> Certificate:
    """Recompute feasibility, policies, rewards, distances, objective, optimum and gap.

    Args:
        mdp: the model to check against; usually `plans.mdp`, or the same model read anew.
        plans: what is claimed.
    """
    same = mdp.digest == plans.mdp.digest
    checks = (Check("model", 0.0 if same else 1.0, 0.0),)
    shape = plans.policies.shape
    if not same or len(shape) != 2 or shape[1] != mdp.n_choices or plans.occupancies.shape != shape:
        return Certificate((*checks, Check("shape", 1.0, 0.0)))
    if not (np.isfinite(plans.policies).all() and np.isfinite(plans.occupancies).all()):
        return Certificate((*checks, Check("feasibility", np.inf, FEASIBLE)))
    polytope = Polytope(mdp, plans.criterion)
    objective = Objective(mdp, plans.tradeoff, plans.behaviour)
    return compare(plans, examine(polytope, objective, plans.policies, plans.occupancies))


def compare(plans: PlanSet, found: Findings) -> Certificate:
    """Hold what is claimed against what was found."""
    scale = max(float(np.abs(plans.mdp.reward).max()), 1e-300)
    return Certificate(
        (
            Check("model", 0.0, 0.0),
            Check("feasibility", found.infeasibility, FEASIBLE),
            Check("policies", found.misrealisation, EQUAL),
            Check("rewards", _off(found.rewards, plans.rewards) / scale, EQUAL),
            Check("distances", _off(found.distances, plans.distances), EQUAL),
            Check("objective", abs(found.objective - plans.objective) / (scale + plans.tradeoff), EQUAL),
            Check("optimum", abs(found.optimum - plans.optimal_reward) / scale, PROVED),
            Check("no plan above the optimum", max(float(found.rewards.max()) - found.optimum, 0.0) / scale, PROVED),
            Check("gap", _excess(found.gap, plans.gap) / (scale + plans.tradeoff), PROVED),
        )
    )


def _gap(polytope: Polytope, gradient: Floats, policies: Floats, x: Floats, tell: Callable[[int], None]) -> float:
    """How much more than (k, N) x any points promise along the gradient; each plan's own policy is the warm start."""
    mdp, gap = polytope.mdp, 0.0
    try:
        for i, (row, policy, now) in enumerate(zip(gradient, policies, x, strict=True)):
            tell(i)
            here = Vertex(now, float(row @ now), np.inf, first_best(mdp, policy))
            gap += polytope.best(row, here).bound - here.value
    except Halted:  # the plans are there; only how good they are together stays unknown
        return float("inf")
    return gap


def _excess(found: float, claimed: float) -> float:
    return 0.0 if found <= claimed else found - claimed  # both may be infinite


def _worst(errors: list[float]) -> float:
    return float(np.max(errors))  # unlike max(), lets a NaN through


def _off(found: Floats, claimed: Floats) -> float:
    return float(np.abs(found - claimed).max()) if found.shape == claimed.shape else float("inf")


def _realisation_error(polytope: Polytope, policy: Floats, x: Floats) -> float:
    """How far the policy, run from the start, is from having the occupancy x.

    A feasible x whose shares are the policy's is stationary under it. If the policy's chain has one
    recurrent class within reach of the start, its long-run occupancy is unique, so nothing needs solving.
    """
    mdp = polytope.mdp
    shares = float(np.abs(policy * state_occupancy(mdp, x)[mdp.choice_state] - x).max())
    total = np.add.reduceat(policy, mdp.first_choice[:-1])
    wrong = max(shares, float(np.abs(total - 1).max()), float(-policy.min()))
    if not wrong <= EQUAL:  # also where it is not a number
        return wrong if np.isfinite(wrong) else float("inf")
    if isinstance(polytope.criterion, Average):
        p = chain(mdp, policy)
        component, closed = closed_components(p)
        ends = np.unique(component[reachable(p, mdp.start > 0) & closed[component]])
        if ends.size > 1:
            return max(wrong, float(np.abs(polytope.criterion.occupancy(mdp, policy) - x).max()))
    return wrong
