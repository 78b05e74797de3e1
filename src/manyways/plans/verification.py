"""`verify`: check everything that a plan set claims, from the model and the vectors in the file alone.

No number of the method or of a solver is taken on trust. `plans.checker` proves intervals for the rewards and divergences
and upper bounds for the optimum and the gap, with all rounding errors bounded; the vectors that it needs are stored with
the plans (`plans.proofs`). Where plans reach too many states for exact vectors, rewards and divergences are recomputed
from the occupancies in plain arithmetic, with wider tolerances, and the checks "rewards proved" and "distances proved" are
missing from the certificate.

Tolerances are relative to what the plans earn, never to the largest number in the model: one forbidden choice may cost
10^10 times as much as all others. docs/verification.md lists what is covered.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from manyways.model.graph import closed_components, reachable
from manyways.model.mdp import MDP
from manyways.model.occupancy import chain, flow_residual, long_run_occupancy, state_occupancy
from manyways.objectives import SetObjective
from manyways.objectives.base import SMOOTHING
from manyways.plans.certificate import Certificate, Check
from manyways.plans.checker import ExactModel, ProvedPlan, ProvedSet, SetProof, divergence, gap_bound, prove_plans
from manyways.plans.planset import PlanSet
from manyways.plans.proofs import prove_set
from manyways.polytope import Polytope
from manyways.types import Floats

EQUAL, PLAIN_EQUAL = 1e-9, 1e-6
"""How far claims may be from what is found, relative to what the plans earn: if it is proved with bounded rounding errors,
and if it is recomputed in plain arithmetic."""
SAME_VECTORS = 1e-12
SHARES = 1e-10
"""How far the probabilities of a policy may be from summing to one."""


@dataclass(frozen=True, eq=False)
class Findings:
    """What is found about k policies and their occupancies.

    Attributes:
        exact: whether all of it is proved with bounded rounding errors.
        off: how far the occupancies are from those of the policies, in the 1-norm.
        shares: how far the policies are from summing to one in each state.
        rewards: (k,), distances: (k, k), objective: what is found, each with how far it may be off.
        optimum: the reward of the best policy that is known.
        bound: no policy has a higher reward.
        gap: an upper bound on the Frank-Wolfe gap; infinite if its computation was interrupted.
        sizes: (k,) the mean |reward| along each plan, and `size` along the best policy: what tolerances are relative to.
    """

    exact: bool
    off: float
    shares: float
    rewards: Floats
    reward_errors: Floats
    distances: Floats
    distance_errors: Floats
    objective: float
    optimum: float
    bound: float
    gap: float
    sizes: Floats
    size: float

    @property
    def tolerance(self) -> float:
        return EQUAL if self.exact else PLAIN_EQUAL

    @property
    def checks(self) -> tuple[Check, ...]:
        """What must hold of the policies, occupancies and vectors, whatever else is claimed."""
        checks = (
            Check("policies", self.shares, SHARES),
            Check("occupancies", self.off, EQUAL),
            Check("optimum proved", abs(self.bound - self.optimum) / self.size, self.tolerance),
        )
        if not self.exact:
            return checks
        return (
            *checks,
            Check("rewards proved", float((self.reward_errors / self.sizes).max()), EQUAL),
            Check("distances proved", float(self.distance_errors.max()), EQUAL),
        )


def examine(
    objective: SetObjective,
    policies: Floats,
    x: Floats,
    proof: SetProof,
    proved: ProvedSet,
    optimum: float,
) -> Findings:
    """Prove what the vectors of a proof say about (k, N) policies and occupancies. Nothing is solved.

    Args:
        objective: what was planned for.
        policies, x: (k, N) policies and their occupancies.
        proof: the vectors.
        proved: what they prove about the plans (`prove_plans`).
        optimum: the highest reward of any policy as somebody claims it; it is used only where the vectors do not prove
            what the best policy earns.
    """
    model, best = proved.model, proved.best
    mdp = model.mdp
    plans = [plan for plan in proved.plans if plan is not None]
    exact = len(plans) == len(proved.plans)
    earned = np.abs(mdp.reward)
    sizes = _sizes(mdp, x @ earned)
    if exact:
        x_proved = np.stack([plan.x for plan in plans])
        off = max(float(np.abs(plan.x - row).sum()) + plan.error for plan, row in zip(plans, x, strict=True))
        rewards, reward_errors = (part * model.unit for part in _middles([plan.reward for plan in plans]))
        distances, distance_errors = _distances(plans, objective)
    else:
        x_proved, off = x, max(_plain_error(model, *pair) for pair in zip(policies, x, strict=True))
        rewards, reward_errors = x @ mdp.reward, np.zeros(len(x))
        distances, distance_errors = objective.distances(x), np.zeros((len(x), len(x)))
    return Findings(
        exact=exact,
        off=off,
        shares=_share_error(mdp, policies),
        rewards=rewards,
        reward_errors=reward_errors,
        distances=distances,
        distance_errors=distance_errors,
        objective=objective.value(x_proved),
        optimum=optimum if best is None else best.reward[0] * model.unit,
        bound=model.upper_bound(model.reward, proof.optimum) * model.unit,
        gap=_gap(model, objective, plans if exact else None, x, proof),
        sizes=sizes,
        size=float(sizes.max()) if best is None else float(_sizes(mdp, (best.x @ earned)[None])[0]),
    )


def verify(mdp: MDP, plans: PlanSet) -> Certificate:
    """Check model, policies, occupancies, rewards, distances, objective, optimum, gap and order of a plan set.

    The vectors stored with the plans are used; a set without any (from a file of version 0.1.0) gets new ones first.

    Args:
        mdp: the model to check against; usually `plans.mdp`, or the same model read again.
        plans: what is claimed.
    """
    same = mdp.digest == plans.mdp.digest
    model = Check("model", 0.0 if same else 1.0, 0.0)
    shape = plans.policies.shape
    fits = len(shape) == 2 and shape[1] == mdp.n_choices and plans.occupancies.shape == shape
    if not same or not fits:
        return Certificate((model,) if fits else (model, Check("shape", 1.0, 0.0)))
    if not (np.isfinite(plans.policies).all() and np.isfinite(plans.occupancies).all()):
        return Certificate((model, Check("occupancies", np.inf, EQUAL)))
    objective = plans.maximised.on(mdp, plans.behaviour.on(mdp))
    proof = plans.proof
    if proof is None or not _fits(proof, plans):
        polytope = Polytope(mdp, plans.criterion)
        proof, _ = prove_set(polytope, objective, plans.policies, plans.occupancies)
    proved = prove_plans(ExactModel(mdp, plans.criterion.discount), plans.policies, proof)
    found = examine(objective, plans.policies, plans.occupancies, proof, proved, plans.optimal_reward)
    return Certificate((model, *found.checks, *compared_with(found, plans, objective)))


def compared_with(found: Findings, plans: PlanSet, objective: SetObjective) -> tuple[Check, ...]:
    """How far the claims of a plan set are from what is found."""
    worth, allowed = float(found.sizes.max()) + objective.diversity_weight, found.tolerance
    # With the vectors of the file the same number comes out; new ones prove it a little differently.
    same_vectors = SAME_VECTORS if plans.proof is not None else allowed
    rising = float(np.max(np.diff(plans.rewards), initial=0.0))
    return (
        Check("rewards", _beyond(found.rewards, plans.rewards, found.reward_errors, found.sizes), allowed),
        Check("distances", _beyond(found.distances, plans.distances, found.distance_errors, 1.0), allowed),
        Check("objective", _beyond(found.objective, plans.objective, 0.0, worth), allowed),
        Check("optimal reward", _beyond(found.bound, plans.optimal_reward, 0.0, found.size), allowed),
        Check("gap", 0.0 if found.gap <= plans.gap else (found.gap - plans.gap) / worth, same_vectors),
        Check("best first", rising / worth if np.isfinite(rising) else np.inf, allowed),
    )


def _fits(proof: SetProof, plans: PlanSet) -> bool:
    """Whether the vectors have the shapes that the plans need."""
    n, m, k = plans.mdp.n_states, plans.mdp.n_choices, plans.k
    parts = [part for part in (*proof.plans, proof.best_plan) if part is not None]
    return bool(
        len(proof.plans) == k
        and proof.best.shape == (n,)
        and (proof.best >= plans.mdp.first_choice[:-1]).all()
        and (proof.best < plans.mdp.first_choice[1:]).all()
        and proof.optimum.shape[1:] == (n,)
        and (proof.gap is None or proof.gap.shape == (k, n))
        and all(p.h.shape[1:] == (n,) and p.w.shape[1:] == (m,) and p.y.shape == (n,) for p in parts)
    )


def _sizes(mdp: MDP, earned: Floats) -> Floats:
    """What tolerances are relative to: the mean |reward| of each plan or, where that is zero, the model's median."""
    if earned.min() > 0:
        return earned
    some = np.abs(mdp.reward[mdp.reward != 0])
    return np.where(earned > 0, earned, float(np.median(some)) if some.size else 1.0)


def _distances(plans: list[ProvedPlan], objective: SetObjective) -> tuple[Floats, Floats]:
    """(k, k) middles and half widths of the divergences."""
    k = len(plans)
    found, errors = np.zeros((k, k)), np.zeros((k, k))
    for i, a in enumerate(plans):
        for j in range(i + 1, k):
            low, high = divergence(a, plans[j], objective.compared)
            found[i, j] = found[j, i] = (low + high) / 2
            errors[i, j] = errors[j, i] = (high - low) / 2
    return found, errors


def _middles(intervals: list[tuple[float, float]]) -> tuple[Floats, Floats]:
    """Middles and half widths of an array of intervals."""
    low, high = np.moveaxis(np.array(intervals, dtype=np.float64), -1, 0)
    return (low + high) / 2, (high - low) / 2


def _gap(
    model: ExactModel, objective: SetObjective, plans: list[ProvedPlan] | None, x: Floats, proof: SetProof
) -> float:
    """An upper bound on how much more than x any points have along the gradient."""
    if proof.gap is None:
        return float("inf")
    duals, tradeoff = [dual[None] for dual in proof.gap], objective.tradeoff_of_mean
    if plans is not None and tradeoff is not None:
        return gap_bound(model, plans, tradeoff / model.unit, objective.compared, duals, SMOOTHING) * model.unit
    gradient = objective.gradient(x) / model.unit
    above = (model.upper_bound(row, h) - float(row @ now) for row, h, now in zip(gradient, duals, x, strict=True))
    return sum(above) * model.unit


def _beyond(found: Floats | float, claimed: Floats | float, error: Floats | float, size: Floats | float) -> float:
    """How far a claim lies outside what is found, relative to a size; infinite if it has another shape."""
    if np.shape(found) != np.shape(claimed):
        return float("inf")
    off = np.abs(np.subtract(found, claimed)) - error
    return float(np.max(np.maximum(off, 0.0) / size)) if np.isfinite(off).all() else float("inf")


def _share_error(mdp: MDP, policies: Floats) -> float:
    """How far the rows are from being policies."""
    total = np.add.reduceat(policies, mdp.first_choice[:-1], axis=1)
    return max(float(np.abs(total - 1).max()), float(-policies.min()), 0.0)


def _plain_error(model: ExactModel, policy: Floats, x: Floats) -> float:
    """How far the policy, run from the start, is from having the occupancy x, in plain arithmetic.

    A feasible x whose shares are the policy's is stationary under it. If the policy's chain has one recurrent class within
    reach of the start, its long-run occupancy is unique, so nothing needs to be solved.
    """
    mdp, discount = model.mdp, model.discount
    shares = float(np.abs(policy * state_occupancy(mdp, x)[mdp.choice_state] - x).sum())
    wrong = max(shares, flow_residual(mdp, x, discount))
    if not wrong <= EQUAL:  # also if it is NaN
        return wrong if np.isfinite(wrong) else float("inf")
    if discount == 1:
        p = chain(mdp, policy)
        component, closed = closed_components(p)
        ends = np.unique(component[reachable(p, mdp.start > 0) & closed[component]])
        if ends.size > 1:
            return max(wrong, float(np.abs(long_run_occupancy(mdp, policy) - x).sum()))
    return wrong
