"""The checker against exact rational arithmetic: what it states is true, whatever vectors it is given."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

import manyways as mw
from manyways.plans.checker import ExactModel, PlanProof, divergence, gap_bound, prove_plan
from manyways.plans.proofs import prove
from rational import KINDS, ORDINARY, ExactMdp, decimal, hard_model
from rational import divergence as exact_divergence

DISCOUNTS = (1.0, 1.0, 0.9, 0.3, 0.999, 1 - 1e-6, 1 - 1e-9)
SMOOTHING = 1e-12


def random_policies(rng: np.random.Generator, mdp: mw.MDP, optimal: list[int], k: int) -> list[np.ndarray]:
    """The optimal policy, then deterministic and randomised ones."""
    found = [np.zeros(mdp.n_choices)]
    found[0][optimal] = 1.0
    while len(found) < k:
        policy = np.zeros(mdp.n_choices)
        deterministic = rng.random() < 0.6
        for begin, end in zip(mdp.first_choice[:-1], mdp.first_choice[1:], strict=True):
            if deterministic:
                policy[rng.integers(begin, end)] = 1.0
            else:
                policy[begin:end] = rng.dirichlet(np.ones(end - begin))
        found.append(policy)
    return found


def spoiled(rng: np.random.Generator, proof: PlanProof) -> PlanProof:
    """Vectors that somebody has changed, a little or completely."""
    way = int(rng.integers(4))

    def change(v: np.ndarray) -> np.ndarray:
        if way == 0:
            return v * (1 + 1e-9 * rng.normal(size=v.shape))
        if way == 1:
            return v + rng.normal(size=v.shape) * 10.0 ** rng.uniform(-14, 2) * (np.abs(v).max() + 1)
        return v * rng.uniform(0, 2) if way == 2 else rng.permutation(v.ravel()).reshape(v.shape)

    y = np.abs(change(proof.y))
    return PlanProof(change(proof.h), change(proof.w), y, int(rng.integers(len(y))) if way == 3 else proof.reference)


def statements(seed: int, kind: str, *, spoil: bool) -> list[tuple[str, bool | None]]:
    """All that can be stated about a random model: what, and whether it is true; None if nothing was stated.

    Of plans with several recurrent classes nothing needs to be stated: what is, must be true.
    """
    rng = np.random.default_rng(seed)
    mdp, discount = hard_model(rng, kind), DISCOUNTS[rng.integers(len(DISCOUNTS))]
    exact, model = ExactMdp.of(mdp, discount), ExactModel(mdp, discount)
    optimum, optimal = exact.best(exact.reward)
    policies = random_policies(rng, mdp, optimal, int(rng.integers(2, 4)))
    true = [exact.occupancy(policy) for policy in policies]
    rough = [np.array([float(p) for p in x]) for x in true]
    proofs = [prove(model, policy, x) for policy, x in zip(policies, rough, strict=True)]
    if spoil:
        proofs = [None if proof is None else spoiled(rng, proof) for proof in proofs]
    found: list[tuple[str, bool | None]] = []
    bound = None if proofs[0] is None else model.upper_bound(mdp.reward, proofs[0].h)
    found.append(("optimum", None if bound is None else bound >= optimum))
    plans = [None if proof is None else prove_plan(model, p, proof) for p, proof in zip(policies, proofs, strict=True)]
    single = [discount < 1 or len(exact.classes(policy)) == 1 for policy in policies]
    for plan, x, expected in zip(plans, true, single, strict=True):
        if plan is None:
            found += [("reward", None), ("occupancy", None)] if expected else []
            continue
        reward = sum((a * b for a, b in zip(x, exact.reward, strict=True)), Fraction(0))
        found.append(("reward", Fraction(plan.reward[0]) <= reward <= Fraction(plan.reward[1])))
        off = sum((abs(Fraction(float(a)) - b) for a, b in zip(plan.x, x, strict=True)), Fraction(0))
        found.append(("occupancy", off <= Fraction(plan.error)))
    compared = mw.StateActions().on(mdp)
    for (a, x), (b, y) in combinations(zip(plans, true, strict=True), 2):
        if a is None or b is None:
            found += [("divergence", None)] if all(single) else []
            continue
        low, high = divergence(a, b, compared)
        found.append(("divergence", Decimal(low) <= exact_divergence(x, y) <= Decimal(high)))
    if all(plan is not None for plan in plans):
        found.append(("gap", _gap_holds(rng, exact, model, plans, true, spoil)))
    return found


def _gap_holds(rng, exact, model, plans, true, spoil) -> bool:
    """The stated gap against the one with exact gradients and exact optima."""
    k, size = len(plans), max(float(np.median(np.abs(model.reward))), 1e-300)
    tradeoff = size * 10.0 ** rng.uniform(-2, 2)
    compared = mw.StateActions().on(exact.mdp)
    worth = mw.MeanDivergence(tradeoff).on(exact.mdp, compared)
    gradient = worth.gradient(np.stack([plan.x for plan in plans]), SMOOTHING)
    duals, gap = [], Decimal(0)
    for i in range(k):
        slopes = []
        for x in range(exact.mdp.n_choices):
            total = Decimal(0)
            for j in range(k):
                if j != i:
                    p, q, d = decimal(true[i][x]), decimal(true[j][x]), Decimal(SMOOTHING)
                    total += (2 * (p + d) / (p + q + 2 * d)).ln()
            slopes.append(exact.reward[x] / k + Fraction(Decimal(tradeoff) * total / Decimal(k * (k - 1))))
        best, choices = exact.best(slopes)
        policy = np.zeros(exact.mdp.n_choices)
        policy[choices] = 1.0
        proof = prove(model, policy, np.array([float(p) for p in exact.occupancy(policy)]), gradient[i])
        h = np.zeros((1, exact.mdp.n_states)) if proof is None else proof.h
        duals.append(h * rng.uniform(0, 2) if spoil else h)
        own = sum((a * b for a, b in zip(slopes, true[i], strict=True)), Fraction(0))
        gap += decimal(best - own)
    stated = gap_bound(model, plans, worth.mean_form, compared, duals, SMOOTHING)
    return stated == np.inf or Decimal(stated) >= gap - Decimal(10) ** -40 * Decimal(tradeoff)


@pytest.mark.parametrize("kind", KINDS)
def test_every_statement_is_true(kind):
    counts: Counter[tuple[str, bool | None]] = Counter()
    for seed in range(40):
        counts.update(statements(seed, kind, spoil=False))
    print(f"\n{kind}: " + ", ".join(f"{what} {value}: {n}" for (what, value), n in sorted(counts.items(), key=str)))
    assert not any(value is False for _, value in counts)
    stated, silent = (sum(n for (_, v), n in counts.items() if (v is None) == empty) for empty in (False, True))
    assert stated >= (0.99 if kind in ORDINARY else 0.9) * (stated + silent)


@pytest.mark.parametrize("kind", KINDS)
def test_every_statement_from_spoiled_vectors_is_true(kind):
    counts: Counter[tuple[str, bool | None]] = Counter()
    for seed in range(1000, 1025):
        counts.update(statements(seed, kind, spoil=True))
    assert not any(value is False for _, value in counts)


SURPLUS = ExactModel.surplus
BROKEN = {
    "no error bounds": {
        "_ends": lambda total: (total[:, 0] + total[:, 1],) * 2,
        "down": np.asarray,
        "up": np.asarray,
        "ExactModel.surplus": lambda *given: (sum(SURPLUS(*given)) / 2,) * 2,
    },
    "flow residuals ignored": {"_size": lambda interval: 0 * interval[0]},
    "divergence of x taken as exact": {"_wobble": lambda _: 0.0},
}


@pytest.mark.parametrize("parts", BROKEN.values(), ids=BROKEN)
def test_a_broken_checker_is_noticed(parts, monkeypatch):
    """The comparison can fail: with parts of the checker broken on purpose, false statements are found."""
    for name, broken in parts.items():
        monkeypatch.setattr(f"manyways.plans.checker.{name}", broken)
    for seed in range(1000, 1200):
        if any(value is False for _, value in statements(seed, KINDS[seed % len(KINDS)], spoil=True)):
            return
    pytest.fail("nothing false was found")


def test_intervals_of_ordinary_plans_are_a_few_units_in_the_last_place_wide():
    for name, criterion in (("nine-rooms:0", mw.Average()), ("four-rooms:1", mw.Discounted(0.99))):
        plans = mw.plan(name, 3, 8.0, criterion=criterion)
        model = ExactModel(plans.mdp, criterion.discount)
        for policy, x in zip(plans.policies, plans.occupancies, strict=True):
            found = prove_plan(model, policy, prove(model, policy, x))
            low, high = found.reward
            assert 0 < high - low <= 1e-13 * abs(low)
            assert found.error <= 1e-13
            np.testing.assert_allclose(found.x, x, atol=1e-9)


def test_a_penalty_on_a_choice_that_no_plan_takes_does_not_widen_anything():
    """The widths are scaled by what the plan earns, not by the largest number in the model."""
    widths = []
    for penalty in (-1.0, -1e15):
        mdp = mw.MDP.from_transitions(
            [("a", "go", "b", 1.0, 0.5), ("b", "back", "a", 1.0, 1.0), ("b", "fall", "b", 1.0, penalty)]
        )
        model, policy = ExactModel(mdp), np.array([1.0, 1.0, 0.0])
        proof = prove(model, policy, np.array([0.5, 0.5, 0.0]))
        found = prove_plan(model, policy, proof)
        assert found.reward[0] <= 0.75 <= found.reward[1]
        assert 0.75 <= model.upper_bound(mdp.reward, proof.h) <= 0.75 * (1 + 1e-12)
        widths.append(found.reward[1] - found.reward[0])
    assert widths[0] == widths[1]


def test_nothing_is_stated_about_plans_with_several_recurrent_classes():
    rows = [("hub", "toss", "left", 0.5, 0.0), ("hub", "toss", "right", 0.5, 0.0)]
    rows += [(side, "stay", side, 1.0, 1.0) for side in ("left", "right")]
    mdp = mw.MDP.from_transitions(rows)
    model, policy = ExactModel(mdp), np.ones(3)
    for reference in range(3):
        proof = PlanProof(np.zeros((2, 3)), np.array([[0, 0.5, 0.5], [0, 0, 0]]), np.array([1.0, 1.0, 1.0]), reference)
        assert prove_plan(model, policy, proof) is None


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e200])
@pytest.mark.parametrize("field", ["h", "w", "y"])
def test_nothing_is_stated_from_vectors_that_are_not_finite(field, bad):
    mdp = mw.room_world(9, 2)
    optimum, model = mw.Polytope(mdp).optimum, ExactModel(mdp)
    policy = np.zeros(mdp.n_choices)
    policy[optimum.choices] = 1.0
    proof = prove(model, policy, optimum.occupancy)
    vectors = {name: np.array(getattr(proof, name)) for name in ("h", "w", "y")}
    vectors[field].flat[0] = bad
    assert prove_plan(model, policy, PlanProof(**vectors, reference=proof.reference)) is None
    if field == "h":
        assert model.upper_bound(mdp.reward, vectors["h"]) == np.inf
