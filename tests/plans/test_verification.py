"""`verify`: it accepts what is true, and every single check can fail."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

import manyways as mw
from manyways.formats.text_maps import world_from_text
from manyways.plans import Check
from manyways.plans.checker import ExactModel

TEXT = "S..#.\n..#..\n....G"
SMALL = world_from_text(TEXT, "small")
DIFFERENT = world_from_text(TEXT, "small", step_reward=-1.3)


def small_plans(k: int = 3, **settings: Any) -> mw.PlanSet:
    return mw.plan(SMALL, k, 8.0, **({"method": mw.FrankWolfe()} | settings))


@pytest.fixture(scope="module")
def plans() -> mw.PlanSet:
    return small_plans()


@pytest.fixture(scope="module")
def unfinished() -> mw.PlanSet:
    """Random plans, far from stationary."""
    plans = small_plans(time_limit_s=1e-9)
    assert plans.gap > 1
    return plans


def failures(plans: mw.PlanSet, mdp: mw.MDP = SMALL) -> set[str]:
    certificate = mw.verify(mdp, plans)
    failed = {check.name for check in certificate.checks if not check.ok}
    assert certificate.ok == (not failed)
    assert all(name in repr(certificate) for name in failed)
    return failed


# ---- what is true is accepted -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("k", "criterion", "behaviour", "method"),
    [
        *product([1, 2, 4], [mw.Average(), mw.Discounted(0.9)], [mw.StateActions()], [mw.FrankWolfe()]),
        *product([2], [mw.Average(), mw.Discounted(0.5)], [mw.States(), mw.Labels()], [mw.FrankWolfe()]),
        *product([2], [mw.Average(), mw.Discounted(0.9)], [mw.StateActions()], [mw.ProjectedGradient(iterations=3)]),
        *product([2], [mw.Average(), mw.Discounted(0.9)], [mw.StateActions()], [mw.FrankWolfe(iterations=0)]),
    ],
    ids=str,
)
def test_good_sets_pass(k, criterion, behaviour, method):
    plans = small_plans(k, criterion=criterion, behaviour=behaviour, method=method)
    assert failures(plans) == set()
    assert plans.certificate.ok
    assert set(plans.certificate.checks) <= set(mw.verify(SMALL, plans).checks)


def test_a_set_passes_against_the_same_model_made_anew(plans):
    assert failures(plans, world_from_text(TEXT, "by another name")) == set()


def test_a_gap_may_be_claimed_larger_than_it_is(plans):
    assert failures(dataclasses.replace(plans, gap=plans.gap + 1)) == set()


def test_certificate_reads_well(plans):
    assert repr(mw.verify(SMALL, plans)) == "Certificate(ok, 14 checks)"
    wrong = dataclasses.replace(plans, objective=0.0)
    assert repr(mw.verify(SMALL, wrong)) == "Certificate(FAILED: objective, 14 checks)"


@pytest.mark.parametrize(("error", "ok"), [(0.0, True), (0.5, True), (0.51, False), (np.inf, False), (np.nan, False)])
def test_a_check_passes_up_to_its_tolerance(error, ok):
    assert Check("some", error, 0.5).ok is ok


# ---- what is not is caught --------------------------------------------------------------------


def changed(x: np.ndarray, place: Any, amount: float) -> np.ndarray:
    x = x.copy()
    x[place] += amount
    return x


def all_time_in_the_goal(x: np.ndarray) -> np.ndarray:
    dream = np.zeros_like(x)
    dream[:, np.argmax(SMALL.reward)] = 1.0
    return dream


def uniform_policies(policies: np.ndarray) -> np.ndarray:
    return np.repeat((1 / np.diff(SMALL.first_choice))[SMALL.choice_state][None], len(policies), axis=0)


# What is tampered with, how, and which checks must fail at least.
TAMPERED: list[tuple[str, Callable[[Any], Any], set[str]]] = [
    ("occupancies", lambda x: 1.001 * x, {"occupancies"}),
    ("occupancies", lambda x: changed(x, (0, 0), 1e-6), {"occupancies"}),
    ("occupancies", lambda x: changed(x, (0, 0), 2e-9), {"occupancies"}),
    ("occupancies", lambda x: changed(x, (-1, -1), -0.1), {"occupancies"}),
    ("occupancies", lambda x: x[::-1], {"occupancies"}),
    ("occupancies", lambda x: np.repeat(x[:1], len(x), axis=0), {"occupancies"}),
    ("occupancies", all_time_in_the_goal, {"occupancies"}),
    ("occupancies", lambda x: x[:, :-1], {"shape"}),
    ("occupancies", lambda x: x[:-1], {"shape"}),
    ("policies", uniform_policies, {"occupancies"}),
    ("policies", lambda p: p[::-1], {"occupancies"}),
    ("policies", lambda p: changed(p, (1, 0), 1e-6), {"policies"}),
    ("policies", lambda p: changed(p, (1, 0), 1e-9), {"policies"}),
    ("policies", lambda p: p * 0, {"policies"}),
    ("policies", lambda p: p[:, :-1], {"shape"}),
    ("policies", lambda p: p[:-1], {"shape"}),
    ("policies", lambda p: p[0], {"shape"}),
    ("rewards", lambda r: changed(r, 0, 1e-3), {"rewards"}),
    ("rewards", lambda r: r * (1 + 1e-6), {"rewards"}),
    ("rewards", np.sort, {"best first"}),
    ("rewards", lambda r: r[::-1], {"rewards"}),
    ("rewards", lambda r: r[:-1], {"rewards"}),
    ("distances", lambda d: changed(d, (0, 1), 1e-6), {"distances"}),
    ("distances", lambda d: d * 0, {"distances"}),
    ("distances", lambda d: d[:-1], {"distances"}),
    ("objective", lambda f: f + 1e-3, {"objective"}),
    ("objective", lambda f: f - 1e-3, {"objective"}),
    ("objective", lambda f: f * (1 + 1e-6), {"objective"}),
    ("maximised", lambda aim: mw.MeanDivergence(aim.tradeoff + 1e-3), {"objective"}),
    ("behaviour", lambda _: mw.States(), {"distances", "objective"}),
    ("criterion", lambda _: mw.Discounted(0.5), {"occupancies"}),
    ("optimal_reward", lambda r: 1.01 * r, {"optimal reward"}),
    ("optimal_reward", lambda r: 0.99 * r, {"optimal reward"}),
    ("optimal_reward", lambda r: r * (1 + 1e-6), {"optimal reward"}),
    ("mdp", lambda _: DIFFERENT, {"model"}),
]


@pytest.mark.parametrize(("field", "tamper", "expected"), TAMPERED)
def test_tampering_is_caught(plans, field, tamper, expected):
    tampered = dataclasses.replace(plans, **{field: tamper(getattr(plans, field))})
    assert expected <= failures(tampered)


def test_tampering_with_one_number_fails_that_check_alone(plans):
    for field in ("rewards", "distances", "objective"):
        tampered = dataclasses.replace(plans, **{field: getattr(plans, field) + 1e-3})
        assert failures(tampered) == {field}


def test_a_set_that_is_not_stationary_cannot_claim_to_be(unfinished):
    assert failures(unfinished) == set()
    assert failures(dataclasses.replace(unfinished, gap=unfinished.gap / 2)) == {"gap"}
    assert failures(dataclasses.replace(unfinished, gap=0.0)) == {"gap"}


def test_every_check_has_been_seen_to_fail(plans):
    seen = {name for _, _, names in TAMPERED for name in names}
    seen |= {"gap", "optimum proved", "rewards proved", "distances proved", "proofs", "names and ends"}
    assert {check.name for check in mw.verify(SMALL, plans).checks} <= seen


def test_vectors_that_prove_too_little_are_caught(plans):
    """Nothing that is stated from them is false, but the intervals are wide."""
    noise = np.random.default_rng(0)

    def vague(v: np.ndarray) -> np.ndarray:
        return v * (1 + 1e-6 * noise.normal(size=v.shape))

    proof = plans.proof
    spoiled = {
        "optimum proved": dataclasses.replace(proof, optimum=vague(proof.optimum)),
        "rewards proved": dataclasses.replace(
            proof, plans=tuple(dataclasses.replace(part, h=vague(part.h)) for part in proof.plans)
        ),
        "distances proved": dataclasses.replace(
            proof, plans=tuple(dataclasses.replace(part, w=vague(part.w)) for part in proof.plans)
        ),
    }
    for name, vectors in spoiled.items():
        assert name in failures(dataclasses.replace(plans, proof=vectors))


def test_vectors_that_do_not_fit_are_made_anew(plans):
    for proof in (None, dataclasses.replace(plans.proof, plans=plans.proof.plans[:1])):
        assert failures(dataclasses.replace(plans, proof=proof, gap=plans.gap + 1e-9)) == set()


def test_verifying_with_stored_vectors_solves_nothing(plans, monkeypatch):
    monkeypatch.setattr(mw.Polytope, "best", lambda *_: pytest.fail("a solver was called"))
    assert failures(plans) == set()


def test_a_set_that_fails_its_certificate_is_not_called_converged(monkeypatch):
    monkeypatch.setattr("manyways.plans.verification.EQUAL", 1e-30)
    plans = small_plans(method=mw.VertexAscent())
    assert plans.status is mw.Status.NOT_VERIFIED
    assert not plans.status.converged
    assert not plans.certificate.ok


def test_another_model_is_caught(plans):
    assert "model" in failures(plans, DIFFERENT)
    assert "model" in failures(plans, mw.four_rooms(0))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("field", ["occupancies", "policies", "rewards", "distances"])
@pytest.mark.parametrize("row", [0, -1])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_numbers_that_are_none_are_caught(plans, field, bad, row):
    tampered = getattr(plans, field).copy()
    tampered[row, ...] = bad
    name = "occupancies" if field in {"occupancies", "policies"} else field
    assert name in failures(dataclasses.replace(plans, **{field: tampered}))


@pytest.mark.parametrize("field", ["objective", "optimal_reward", "gap"])
def test_claims_that_are_no_number_are_caught(plans, field):
    name = {"optimal_reward": "optimal reward"}.get(field, field)
    assert failures(dataclasses.replace(plans, **{field: float("nan")})) == {name}


# ---- feasible, and yet not what the policy does -----------------------------------------------


def hub_and_two_rooms() -> mw.MDP:
    """From the hub one goes left or right; in either room one may stay for ever, or return."""
    return mw.MDP.from_transitions(
        [
            ("hub", "go left", "left", 1.0, 0.0),
            ("hub", "go right", "right", 1.0, 0.0),
            ("left", "stay", "left", 1.0, 1.0),
            ("left", "return", "hub", 1.0, 0.0),
            ("right", "stay", "right", 1.0, 1.0),
            ("right", "return", "hub", 1.0, 0.0),
        ]
    )


@pytest.mark.parametrize(("left_share", "caught"), [(0.5, False), (0.9, True), (0.1, True), (1.0, True)])
def test_a_policy_that_ends_elsewhere_is_caught(left_share, caught):
    """Staying in both rooms makes any split between them stationary; the hub decides which one it is."""
    mdp = hub_and_two_rooms()
    policy = np.array([0.5, 0.5, 1.0, 0.0, 1.0, 0.0])
    claimed = np.array([0.0, 0.0, left_share, 0.0, 1 - left_share, 0.0])
    assert mw.Polytope(mdp).residual(claimed) == 0.0
    honest = mw.plan(mdp, 1, 1.0, method=mw.FrankWolfe())
    rewards = np.array([claimed @ mdp.reward])
    plans = dataclasses.replace(honest, policies=policy[None], occupancies=claimed[None], rewards=rewards)
    assert failures(plans, mdp) == ({"occupancies"} if caught else set())


def test_a_file_without_vectors_cannot_claim_more():
    """Vectors that are missing, or that prove nothing, are no licence to claim any optimum up to the bound."""
    plans = mw.plan("four-rooms:0", 2, 8.0)
    zeros = np.zeros((1, plans.mdp.n_states))
    high = ExactModel(plans.mdp, 1.0).upper_bound(plans.mdp.reward, zeros)
    assert high > 10 * plans.optimal_reward
    wrong = replace(plans.proof.best_plan, h=np.full_like(plans.proof.best_plan.h, 1e9))
    for best_plan, best_x in ((None, None), (wrong, None), (None, plans.occupancies[0])):
        proof = replace(plans.proof, best_plan=best_plan, optimum=zeros, best_x=best_x)
        assert not mw.verify(plans.mdp, replace(plans, optimal_reward=high, proof=proof)).ok
    honest = replace(plans, proof=replace(plans.proof, best_plan=None, plans=(None, None)))
    assert mw.verify(plans.mdp, honest).ok, "new vectors are made"


def test_rewards_of_a_slow_chain_need_vectors():
    """A distribution that is stationary to 1e-12 may be far from the stationary one."""
    rows = [("a", "go", "b", 1e-12, 1.0), ("a", "go", "a", 1 - 1e-12, 1.0)]
    rows += [("b", "go", "a", 2e-12, 0.0), ("b", "go", "b", 1 - 2e-12, 0.0)]
    plans = mw.plan(mw.MDP.from_transitions(rows, start="a"), 1)
    assert plans.rewards == pytest.approx([2 / 3])
    assert plans.certificate.ok
    wrong = {"occupancies": np.array([[1.0, 0.0]]), "rewards": np.ones(1), "optimal_reward": 1.0, "objective": 1.0}
    for parts in (plans.proof.plans, (None,)):
        assert not mw.verify(plans.mdp, replace(plans, **wrong, proof=replace(plans.proof, plans=parts))).ok


def test_large_models_state_the_best_policy_in_plain_arithmetic(monkeypatch):
    for module in ("checker", "proofs", "verification"):
        monkeypatch.setattr(f"manyways.plans.{module}.EXACT_UP_TO", 10)
    plans = mw.plan("four-rooms:0", 2, 8.0)
    assert plans.proof.best_plan is None
    assert plans.certificate.ok
    again = mw.PlanSet.from_bytes(plans.to_bytes(), "again")
    np.testing.assert_array_equal(again.proof.best_x, plans.proof.best_x)
    assert mw.verify(again.mdp, again).ok
    for best_x in (plans.occupancies[1], 0.5 * plans.proof.best_x, np.full_like(plans.proof.best_x, np.nan)):
        assert not mw.verify(again.mdp, replace(again, proof=replace(again.proof, best_x=best_x))).ok
    assert not mw.verify(again.mdp, replace(again, optimal_reward=1.001 * plans.optimal_reward)).ok


def test_vectors_that_prove_nothing_are_noticed(plans):
    broken = replace(plans.proof.plans[0], y=np.zeros_like(plans.proof.plans[0].y))
    proof = replace(plans.proof, plans=(broken, *plans.proof.plans[1:]))
    assert "proofs" in {check.name for check in mw.verify(SMALL, replace(plans, proof=proof)).failed}


@pytest.mark.parametrize("longest", [None, 1e3, 1e7])
def test_tolerances_of_values_per_episode_do_not_grow_with_the_longest_episode(longest):
    plans = mw.plan("nine-rooms:3", 2, 2.0, criterion=mw.Episodic(longest))
    assert plans.certificate.ok
    small = 1e-8 * plans.optimal_reward
    for wrong in ({"optimal_reward": plans.optimal_reward + small}, {"rewards": plans.rewards - small}):
        assert not mw.verify(plans.mdp, replace(plans, **wrong)).ok
