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

from dataclasses import dataclass, replace

import numpy as np

from manyways.errors import SettingError
from manyways.model.differences import other_meaning
from manyways.model.graph import closed_components, reachable
from manyways.model.mdp import MDP
from manyways.model.occupancy import chain, flow_residual, long_run_occupancy, state_occupancy
from manyways.objectives import SetObjective
from manyways.objectives.base import SMOOTHING
from manyways.plans.certificate import Certificate, Check
from manyways.plans.checker import (
    EXACT_UP_TO,
    ExactModel,
    ProvedPlan,
    ProvedSet,
    SetProof,
    divergence,
    gap_bound,
    prove_plans,
    spare,
)
from manyways.plans.planset import PlanSet
from manyways.plans.proofs import prove_set
from manyways.polytope import Criterion, Floor, Polytope, ShortestWay, feasible_plan, floors_of, shortest_way
from manyways.types import Bools, Floats, Sparse

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
        rewards: (k,) values under the criterion; distances: (k, k); objective: what is found, each with how far it may be
            off.
        floors: how far plans are below the limits at most, relative to the size of their terms.
        way: by which share a way to the goal may be shorter than the shortest one that is claimed.
        missing: about how many plans, the best policy included, nothing is proved although they reach few enough states.
        optimum: the value of the best policy that is known.
        bound: no policy has a higher value.
        gap: an upper bound on the Frank-Wolfe gap; infinite if its computation was interrupted.
        sizes: (k,) what each plan would be worth if costs were gains, and `size` the same of the best policy: what
            tolerances are relative to.
        worth: the size of the terms of which the objective is made.
    """

    exact: bool
    off: float
    shares: float
    rewards: Floats
    reward_errors: Floats
    distances: Floats
    distance_errors: Floats
    objective: float
    floors: float | None
    way: float | None
    missing: int
    optimum: float
    bound: float
    gap: float
    sizes: Floats
    size: float
    worth: float

    @property
    def tolerance(self) -> float:
        return EQUAL if self.exact else PLAIN_EQUAL

    @property
    def checks(self) -> tuple[Check, ...]:
        """What must hold of the policies, occupancies and vectors, whatever else is claimed."""
        checks = (
            Check("policies", self.shares, SHARES),
            Check("occupancies", self.off, EQUAL),
            Check("proofs", float(self.missing), 0.0),
            Check("optimum proved", abs(self.bound - self.optimum) / self.size, self.tolerance),
        )
        if self.floors is not None:
            checks = (*checks, Check("limits", max(self.floors, 0.0), self.tolerance))
        if self.way is not None:
            checks = (*checks, Check("shortest way", self.way, self.tolerance))
        if not self.exact:
            return checks
        return (
            *checks,
            Check("rewards proved", float((self.reward_errors / self.sizes).max()), EQUAL),
            Check("distances proved", float(self.distance_errors.max()), EQUAL),
        )


def examine(
    claim: Claim,
    policies: Floats,
    x: Floats,
    proof: SetProof,
    proved: ProvedSet,
) -> Findings:
    """Prove what the vectors of a proof say about (k, N) policies and occupancies. Nothing is solved.

    Args:
        claim: what was planned for.
        policies, x: (k, N) policies and their occupancies.
        proof: the vectors.
        proved: what they prove about the plans (`prove_plans`).
    """
    model, best, objective, criterion = proved.model, proved.best, claim.objective, claim.criterion
    mdp, top = model.mdp, claim.optimum
    plans = [plan for plan in proved.plans if plan is not None]
    exact = len(plans) == len(proved.plans)
    if exact:
        x_proved = np.stack([plan.x for plan in plans])
        off = max(float(np.abs(plan.x - row).sum()) + plan.error for plan, row in zip(plans, x, strict=True))
        rewards, reward_errors = _values(model, plans, criterion, top)
        distances, distance_errors = _distances(plans, objective)
    else:
        x_proved, off = x, max(_plain_error(model, *pair) for pair in zip(policies, x, strict=True))
        rewards, reward_errors = criterion.values_of(x @ mdp.reward, x, mdp, top), np.zeros(len(x))
        distances, distance_errors = objective.distances(x), np.zeros((len(x), len(x)))
    missing = sum(
        plan is None and _provable(model, policy, policy > 0)
        for plan, policy in zip(proved.plans, policies, strict=True)
    )
    missing += best is None and _provable(model, proof.best, np.ones(mdp.n_choices, bool))
    own, sizes = criterion.own_floors(mdp), _sizes(claim, mdp, x)
    bound = model.upper_bound(model.reward, proof.optimum, own, proof.optimum_multipliers) * model.unit
    return Findings(
        exact=exact,
        off=off,
        shares=_share_error(mdp, policies),
        rewards=rewards,
        reward_errors=reward_errors,
        distances=distances,
        distance_errors=distance_errors,
        objective=objective.value(x_proved),
        floors=_below_floors(claim, model, plans if exact else None, x),
        way=None
        if claim.shortest is None
        else _shorter_way(model, claim.shortest, x_proved[list(claim.free)], proof.way),
        missing=missing,
        optimum=_plain_optimum(model, claim, proof)
        if best is None
        else float(_values(model, [best], criterion, top, lower=True)[0][0]),
        bound=criterion.value_bound(bound, top),
        gap=_gap(claim, proved, x, proof),
        sizes=sizes,
        size=float(sizes.max()) if best is None else float(_sizes(claim, mdp, best.x[None])[0]),
        worth=float(_or_median(mdp, x @ np.abs(mdp.reward)).max()) + objective.diversity_weight,
    )


def _provable(model: ExactModel, policy: Floats, used: Bools) -> bool:
    """Whether vectors must prove what an (N,) policy earns: so few states are reached with the choices `used` (N,), and in
    the long run it does not end in one of several parts of the model, which the vectors cannot tell apart."""
    if int(model.reach(model.mdp.start > 0, used).sum()) > EXACT_UP_TO:
        return False
    return model.discount < 1 or _parts_in_the_end(chain(model.mdp, policy), model.mdp) == 1


def _parts_in_the_end(p: Sparse, mdp: MDP) -> int:
    """The number of recurrent classes of a chain within reach of the start."""
    component, closed = closed_components(p)
    return np.unique(component[reachable(p, mdp.start > 0) & closed[component]]).size


def _plain_optimum(model: ExactModel, claim: Claim, proof: SetProof) -> float:
    """What the best policy of the proof earns, in plain arithmetic; minus infinity if that is not known."""
    x = proof.best_x
    if x is None or not np.isfinite(x).all() or _plain_error(model, proof.best, x) > EQUAL:
        return -np.inf
    return float(claim.criterion.values_of(x[None] @ model.mdp.reward, x[None], model.mdp, claim.optimum)[0])


@dataclass(frozen=True, eq=False)
class Claim:
    """What a set of plans was planned for, on the model whose reward is maximised.

    Attributes:
        objective, criterion: what is maximised, and what the value of a plan is.
        optimum: the highest value of any policy, as claimed. It is taken for true only where the vectors do not prove
            what the best policy earns; a criterion may define the reward of the model by it.
        floors: what every plan meets.
        free: the plans that must meet them; plans that a user kept need not.
        shortest: what is claimed about the shortest way to the goal.
    """

    objective: SetObjective
    criterion: Criterion
    optimum: float
    floors: tuple[Floor, ...] = ()
    free: tuple[int, ...] = ()
    shortest: ShortestWay | None = None


def claim_of(plans: PlanSet, mdp: MDP) -> tuple[MDP, Claim]:
    """The model whose reward the plans maximise, from the model itself, and what they claim about it."""
    planned = plans.criterion.planned(mdp, plans.optimal_reward)
    objective = plans.maximised.on(planned, plans.behaviour.on(planned))
    floors = floors_of(plans.limits, plans.criterion, mdp, plans.optimal_reward)
    free = tuple(i for i in range(plans.k) if i not in plans.kept)
    shortest = shortest_way(plans.limits, planned)
    return planned, Claim(objective, plans.criterion, plans.optimal_reward, floors, free, shortest)


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
    # Both models have the same numbers and labels. What plans are compared and preferred by is numbered as in the plans' own:
    # actions may be in another order in a file of another format.
    own = plans.mdp if mdp is plans.mdp else replace(plans.mdp, ends=mdp.ends)
    try:
        planned, claim = claim_of(plans, own)
        proof = plans.proof
        if proof is None or not _fits(proof, plans, claim):
            polytope, given = _feasible_set(planned, claim), (plans.policies, plans.occupancies)
            proof, _ = prove_set(polytope, claim.objective, *given, shortest=claim.shortest)
    except SettingError:  # limits that no plan of this model can keep, or that mean nothing on it
        return Certificate((model, Check("limits", np.inf, 0.0)))
    proved = prove_plans(ExactModel(planned, plans.criterion.discount), plans.policies, proof)
    found = examine(claim, plans.policies, plans.occupancies, proof, proved)
    checks = (*found.checks, *_level_of_limits(plans), *compared_with(found, plans))
    return Certificate((model, Check("names and ends", float(len(other_meaning(mdp, plans.mdp))), 0.0), *checks))


def _feasible_set(planned: MDP, claim: Claim) -> Polytope:
    """Where the plans had to lie; used only for plans without vectors."""
    polytope = Polytope(planned, claim.criterion)
    own = claim.criterion.own_floors(planned)
    ceiling = polytope.optimum
    if own:
        ceiling = polytope.within(own, feasible_plan(polytope, own, [ceiling]), randomised=True).optimum
    if not claim.floors:
        return polytope
    return polytope.within(claim.floors, feasible_plan(polytope, claim.floors, [ceiling]), ceiling=ceiling)


def _level_of_limits(plans: PlanSet) -> tuple[Check, ...]:
    """Whether the least value that is claimed follows from the slack."""
    limits, best = plans.limits, plans.optimal_reward
    if limits.slack is None:
        return ()
    level = best - limits.slack * abs(best)
    off = np.inf if limits.floor is None else abs(limits.floor - level) / max(abs(best), abs(level), 1e-300)
    return (Check("slack", float(off), EQUAL),)


def compared_with(found: Findings, plans: PlanSet) -> tuple[Check, ...]:
    """How far the claims of a plan set are from what is found."""
    worth, allowed = found.worth, found.tolerance
    # With the vectors of the file the same number comes out; new ones prove it a little differently.
    same_vectors = SAME_VECTORS if plans.proof is not None else allowed
    rising = float(np.max(np.diff(plans.rewards), initial=0.0))
    return (
        Check("rewards", _beyond(found.rewards, plans.rewards, found.reward_errors, found.sizes), allowed),
        Check("distances", _beyond(found.distances, plans.distances, found.distance_errors, 1.0), allowed),
        Check("objective", _beyond(found.objective, plans.objective, 0.0, worth), allowed),
        Check("optimal reward", _beyond(found.bound, plans.optimal_reward, 0.0, found.size), allowed),
        Check("gap", 0.0 if found.gap <= plans.gap else (found.gap - plans.gap) / worth, same_vectors),
        Check("best first", rising / float(found.sizes.max()) if np.isfinite(rising) else np.inf, allowed),
    )


def _fits(proof: SetProof, plans: PlanSet, claim: Claim) -> bool:
    """Whether the vectors have the shapes that the plans need."""
    n, m, k = plans.mdp.n_states, plans.mdp.n_choices, plans.k
    own = len(claim.criterion.own_floors(plans.mdp))
    parts = [part for part in (*proof.plans, proof.best_plan) if part is not None]
    if len(parts) <= len(proof.plans) and n <= EXACT_UP_TO:  # some are missing
        return False
    return bool(
        len(proof.plans) == k
        and (proof.best_plan is not None or (proof.best_x is not None and proof.best_x.shape == (m,)))
        and proof.best.shape == (m,)
        and proof.optimum_multipliers.shape == (own,)
        and (proof.gap is None or proof.gap_multipliers.shape == (k, len(claim.floors)))
        and proof.optimum.shape[1:] == (n,)
        and (proof.gap is None or proof.gap.shape == (k, n))
        and (claim.shortest is None or (proof.way is not None and proof.way.shape[1:] == (n,)))
        and all(p.h.shape[1:] == (n,) and p.w.shape[1:] == (m,) and p.y.shape == (n,) for p in parts)
    )


def _sizes(claim: Claim, mdp: MDP, x: Floats) -> Floats:
    """(k, N) -> (k,): what tolerances of values are relative to."""
    return _or_median(mdp, claim.criterion.earned(mdp, x, claim.optimum))


def _or_median(mdp: MDP, sizes: Floats) -> Floats:
    """The sizes or, where one is zero, the median reward of the model."""
    if sizes.min() > 0:
        return sizes
    some = np.abs(mdp.reward[mdp.reward != 0])
    return np.where(sizes > 0, sizes, float(np.median(some)) if some.size else 1.0)


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


def _values(
    model: ExactModel, plans: list[ProvedPlan], criterion: Criterion, best: float, *, lower: bool = False
) -> tuple[Floats, Floats]:
    """(k,) middles, or lower ends, and half widths of the values of plans under a criterion."""
    x = np.stack([plan.x for plan in plans])
    ends = np.array([plan.reward for plan in plans]).T * model.unit
    low, high = (criterion.values_of(end, x, model.mdp, best) for end in ends)
    # A criterion may also depend on how often episodes end, which is known to within the error of x.
    per_error = criterion.sensitivity(model.mdp, x) * np.array([plan.error for plan in plans])
    per_error = np.where(per_error < 1, per_error / np.maximum(1 - per_error, 1e-300), np.inf)
    wobble = np.where(per_error > 0, np.abs((low + high) / 2 - best) * per_error, 0.0)
    error = (high - low) / 2 + wobble
    return (low if lower else (low + high) / 2), error


def _below_floors(claim: Claim, model: ExactModel, plans: list[ProvedPlan] | None, x: Floats) -> float | None:
    """How far plans are below the floors at most, relative to the size of their terms."""
    below = []
    for i in claim.free:
        for floor in claim.floors:
            if plans is None:
                below.append(floor.shortfall(model.mdp, x[i]))
            else:
                size = abs(floor.level) + float(np.abs(floor.weights(model.mdp)) @ x[i])
                below.append(-spare(model, plans[i], floor)[0] / size if size > 0 else 0.0)
    return max(below) if below else None


def _shorter_way(model: ExactModel, shortest: ShortestWay, x: Floats, values: Floats | None) -> float:
    """By which share of it, or of a step, a way to the goal may be shorter than claimed. How often a shorter way ends is
    not known; it is taken to end as often as the plans do."""
    if values is None:
        return np.inf
    above, ended = model.upper_bound(shortest.costs, values), float((x @ shortest.ends).min(initial=1.0))
    return 0.0 if above <= 0 else above / ended / max(shortest.length, 1.0) if ended > 0 else np.inf


def _gap(claim: Claim, proved: ProvedSet, x: Floats, proof: SetProof) -> float:
    """An upper bound on how much more than x any points that meet the floors have along the gradient."""
    if proof.gap is None:
        return float("inf")
    objective, floors, model = claim.objective, claim.floors, proved.model
    duals, form = [dual[None] for dual in proof.gap], objective.mean_form
    plans = [plan for plan in proved.plans if plan is not None]
    if len(plans) == len(proved.plans) and form is not None:
        parts = (objective.compared, duals, SMOOTHING, floors, proof.gap_multipliers, proved.slopes)
        return gap_bound(model, plans, form, *parts) * model.unit
    gradient = objective.gradient(x) / model.unit
    rows = zip(gradient, duals, proof.gap_multipliers, x, strict=True)
    return sum(model.upper_bound(row, h, floors, m) - float(row @ now) for row, h, m, now in rows) * model.unit


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
    if discount == 1 and _parts_in_the_end(chain(mdp, policy), mdp) > 1:
        return max(wrong, float(np.abs(long_run_occupancy(mdp, policy) - x).sum()))
    return wrong
