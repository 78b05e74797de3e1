"""`verify`: recompute everything that a plan set claims, from the model alone.

No number of the method or of a solver is taken on trust. Optimality is shown by weak duality: a
function of the states proves an upper bound on what any policy can have, whoever found it.
"""

from __future__ import annotations

import numpy as np

from manyways.mdp import MDP, Floats
from manyways.objective import Objective
from manyways.occupancy import chain, state_occupancy
from manyways.planset import Certificate, Check, PlanSet
from manyways.polytope import Average, Polytope
from manyways.structure import closed_components, reachable

FEASIBLE = 1e-9
EQUAL = 1e-8
PROVED = 1e-6


def verify(mdp: MDP, plans: PlanSet) -> Certificate:
    """Recompute feasibility, policies, rewards, distances, objective, optimum and gap.

    Args:
        mdp: the model to check against; usually `plans.mdp`, or the same model read anew.
        plans: what is claimed.
    """
    same = mdp.digest == plans.mdp.digest
    checks = [Check("model", 0.0 if same else 1.0, 0.0)]
    if not same or plans.policies.shape[1] != mdp.n_choices or plans.occupancies.shape != plans.policies.shape:
        return Certificate((*checks, Check("shape", 1.0, 0.0)))
    polytope = Polytope(mdp, plans.criterion)
    objective = Objective(mdp, plans.tradeoff, plans.behaviour)
    x = plans.occupancies
    rewards = x @ mdp.reward
    distances = objective.distances(x)
    best = polytope.best(mdp.reward)
    scale = max(np.abs(mdp.reward).max(), 1e-300)
    gap = stationarity_gap(polytope, objective, x)
    checks += [
        Check("feasibility", max(polytope.residual(row) for row in x), FEASIBLE),
        Check(
            "policies", max(_realisation_error(polytope, *pair) for pair in zip(plans.policies, x, strict=True)), EQUAL
        ),
        Check("rewards", _off(rewards, plans.rewards) / scale, EQUAL),
        Check("distances", _off(distances, plans.distances), EQUAL),
        Check("objective", abs(objective.value(x) - plans.objective) / (scale + plans.tradeoff), EQUAL),
        Check("optimum", max(best.bound - plans.optimal_reward, plans.optimal_reward - best.bound) / scale, PROVED),
        Check("no plan above the optimum", max(float(rewards.max() - best.bound), 0.0) / scale, PROVED),
        Check("gap", max(gap - plans.gap, 0.0) / (scale + plans.tradeoff), PROVED),
    ]
    return Certificate(tuple(checks))


def stationarity_gap(polytope: Polytope, objective: Objective, x: Floats) -> float:
    """The Frank-Wolfe gap at (k, N) occupancies (Algorithm 2, line 7), as a proved upper bound."""
    gradient = objective.gradient(x)
    return float(sum(polytope.best(row).bound - row @ now for row, now in zip(gradient, x, strict=True)))


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
