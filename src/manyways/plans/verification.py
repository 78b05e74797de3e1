"""`verify`: recompute everything that a plan set claims, from the model alone.

No number of the method or of a solver is taken on trust. Optimality is shown by weak duality: a function of the states
proves an upper bound on the reward of any policy, whoever found it.

Right after planning, `examine` computes what is claimed, so comparing the claims with it would compare numbers with
themselves. The certificate of `plan` therefore holds only the checks of `Findings.checks`, which can fail; `verify` adds
the comparisons with what a file claims.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from manyways.methods import Halted
from manyways.model.graph import closed_components, reachable
from manyways.model.mdp import MDP
from manyways.model.occupancy import chain, first_best, state_occupancy
from manyways.objectives import SetObjective
from manyways.plans.certificate import Certificate, Check
from manyways.plans.planset import PlanSet
from manyways.polytope import Polytope, Vertex
from manyways.types import Floats

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
        optimum: the best reward found.
        bound: no policy has a higher reward than this; proved by weak duality.
        gap: the Frank-Wolfe gap (Algorithm 2, line 7), a proved upper bound; infinite if its computation was
            interrupted.
        scale: the size of rewards, which tolerances are relative to.
    """

    infeasibility: float
    misrealisation: float
    rewards: Floats
    distances: Floats
    objective: float
    optimum: float
    bound: float
    gap: float
    scale: float

    @property
    def checks(self) -> tuple[Check, ...]:
        """What must hold of the policies and occupancies, whatever is claimed about them."""
        return (
            Check("feasibility", self.infeasibility, FEASIBLE),
            Check("policies", self.misrealisation, EQUAL),
            Check("optimum proved", (self.bound - self.optimum) / self.scale, PROVED),
            Check("no plan above the optimum", max(float(self.rewards.max()) - self.bound, 0.0) / self.scale, PROVED),
        )


def examine(
    polytope: Polytope,
    objective: SetObjective,
    policies: Floats,
    x: Floats,
    tell: Callable[[int], None] = lambda _: None,
) -> Findings:
    """Compute all of `Findings` for (k, N) policies and occupancies.

    The gap takes most of the time: one solve for each plan, before which `tell` is called with the plan's number.
    """
    mdp = polytope.mdp
    return Findings(
        infeasibility=_worst([polytope.residual(row) for row in x]),
        misrealisation=_worst([_realisation_error(polytope, *pair) for pair in zip(policies, x, strict=True)]),
        rewards=x @ mdp.reward,
        distances=objective.distances(x),
        objective=objective.value(x),
        optimum=polytope.optimum.value,
        bound=polytope.optimum.bound,
        gap=_gap(polytope, objective.gradient(x), policies, x, tell),
        scale=max(float(np.abs(mdp.reward).max()), 1e-300),
    )


def verify(mdp: MDP, plans: PlanSet) -> Certificate:
    """Recompute feasibility, policies, rewards, distances, objective, optimum and gap.

    Args:
        mdp: the model to check against; usually `plans.mdp`, or the same model read again.
        plans: what is claimed.
    """
    same = mdp.digest == plans.mdp.digest
    model = Check("model", 0.0 if same else 1.0, 0.0)
    shape = plans.policies.shape
    if not same or len(shape) != 2 or shape[1] != mdp.n_choices or plans.occupancies.shape != shape:
        return Certificate((model, Check("shape", 1.0, 0.0)))
    if not (np.isfinite(plans.policies).all() and np.isfinite(plans.occupancies).all()):
        return Certificate((model, Check("feasibility", np.inf, FEASIBLE)))
    polytope = Polytope(mdp, plans.criterion)
    objective = plans.maximised.on(mdp, plans.behaviour.on(mdp))
    found = examine(polytope, objective, plans.policies, plans.occupancies)
    worth = found.scale + objective.diversity_weight
    return Certificate(
        (
            model,
            *found.checks,
            Check("rewards", _off(found.rewards, plans.rewards) / found.scale, EQUAL),
            Check("distances", _off(found.distances, plans.distances), EQUAL),
            Check("objective", abs(found.objective - plans.objective) / worth, EQUAL),
            Check("optimal reward", abs(found.bound - plans.optimal_reward) / found.scale, PROVED),
            Check("gap", _excess(found.gap, plans.gap) / worth, PROVED),
        )
    )


def _gap(polytope: Polytope, gradient: Floats, policies: Floats, x: Floats, tell: Callable[[int], None]) -> float:
    """How much more than (k, N) x any points promise along the gradient; each plan's own policy is the warm start."""
    gap = 0.0
    try:
        for i, (row, policy, now) in enumerate(zip(gradient, policies, x, strict=True)):
            tell(i)
            here = Vertex(now, first_best(polytope.mdp, policy))
            gap += polytope.best(row, here).bound - float(row @ now)
    except Halted:  # the plans are valid; only how good they are together stays unknown
        return float("inf")
    return gap


def _excess(found: float, claimed: float) -> float:
    return 0.0 if found <= claimed else found - claimed  # both may be infinite


def _worst(errors: list[float]) -> float:
    return float(np.max(errors))  # unlike max(), this returns NaN if there is one


def _off(found: Floats, claimed: Floats) -> float:
    return float(np.abs(found - claimed).max()) if found.shape == claimed.shape else float("inf")


def _realisation_error(polytope: Polytope, policy: Floats, x: Floats) -> float:
    """How far the policy, run from the start, is from having the occupancy x.

    A feasible x whose shares are the policy's is stationary under it. If the policy's chain has one recurrent class
    within reach of the start, its long-run occupancy is unique, so nothing needs to be solved.
    """
    mdp = polytope.mdp
    shares = float(np.abs(policy * state_occupancy(mdp, x)[mdp.choice_state] - x).max())
    total = np.add.reduceat(policy, mdp.first_choice[:-1])
    wrong = max(shares, float(np.abs(total - 1).max()), float(-policy.min()))
    if not wrong <= EQUAL:  # also if it is NaN
        return wrong if np.isfinite(wrong) else float("inf")
    if polytope.criterion.discount == 1:
        p = chain(mdp, policy)
        component, closed = closed_components(p)
        ends = np.unique(component[reachable(p, mdp.start > 0) & closed[component]])
        if ends.size > 1:
            return max(wrong, float(np.abs(polytope.criterion.occupancy(mdp, policy) - x).max()))
    return wrong
