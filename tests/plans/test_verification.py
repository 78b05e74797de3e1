"""`verify`: it accepts what is true, and every single check can fail."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import manyways as mw
from manyways.formats.text_maps import world_from_text
from manyways.plans import Check
from manyways.plans.verification import examine
from manyways.polytope import Answer, Oracle, Vertex
from shared import paper_objective

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
    assert repr(mw.verify(SMALL, plans)) == "Certificate(ok, 10 checks)"
    wrong = dataclasses.replace(plans, objective=0.0)
    assert repr(mw.verify(SMALL, wrong)) == "Certificate(FAILED: objective, 10 checks)"


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
    ("occupancies", lambda x: 1.001 * x, {"feasibility", "rewards"}),
    ("occupancies", lambda x: changed(x, (0, 0), 1e-6), {"feasibility"}),
    ("occupancies", lambda x: changed(x, (-1, -1), -0.1), {"feasibility"}),
    ("occupancies", lambda x: x[::-1], {"policies", "rewards"}),
    ("occupancies", lambda x: np.repeat(x[:1], len(x), axis=0), {"policies", "distances", "objective"}),
    ("occupancies", all_time_in_the_goal, {"feasibility", "no plan above the optimum"}),
    ("occupancies", lambda x: x[:, :-1], {"shape"}),
    ("occupancies", lambda x: x[:-1], {"shape"}),
    ("policies", uniform_policies, {"policies"}),
    ("policies", lambda p: p[::-1], {"policies"}),
    ("policies", lambda p: changed(p, (1, 0), 1e-6), {"policies"}),
    ("policies", lambda p: p * 0, {"policies"}),
    ("policies", lambda p: p[:, :-1], {"shape"}),
    ("policies", lambda p: p[:-1], {"shape"}),
    ("policies", lambda p: p[0], {"shape"}),
    ("rewards", lambda r: changed(r, 0, 1e-3), {"rewards"}),
    ("rewards", lambda r: r[::-1], {"rewards"}),
    ("rewards", lambda r: r[:-1], {"rewards"}),
    ("distances", lambda d: changed(d, (0, 1), 1e-6), {"distances"}),
    ("distances", lambda d: d * 0, {"distances"}),
    ("distances", lambda d: d[:-1], {"distances"}),
    ("objective", lambda f: f + 1e-3, {"objective"}),
    ("objective", lambda f: f - 1e-3, {"objective"}),
    ("maximised", lambda aim: mw.MeanDivergence(aim.tradeoff + 1e-3), {"objective"}),
    ("behaviour", lambda _: mw.States(), {"distances", "objective"}),
    ("criterion", lambda _: mw.Discounted(0.5), {"feasibility"}),
    ("optimal_reward", lambda r: 1.01 * r, {"optimal reward"}),
    ("optimal_reward", lambda r: 0.99 * r, {"optimal reward"}),
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
    seen = {name for _, _, names in TAMPERED for name in names} | {"gap", "optimum proved"}
    assert {check.name for check in mw.verify(SMALL, plans).checks} <= seen


class Loose:
    """An oracle around another one that proves less than it should."""

    def __init__(self, oracle: Oracle) -> None:
        self.oracle = oracle

    def best(self, c: np.ndarray, warm: Vertex | None = None) -> Answer:
        found = self.oracle.best(c, warm)
        return dataclasses.replace(found, bound=found.bound + 1e-3 * np.abs(c).max())


def test_an_optimum_that_is_not_proved_is_caught_right_after_planning(plans):
    objective = paper_objective(SMALL, 8.0)
    for wrap, expected in ((None, []), (Loose, ["optimum proved"])):
        found = examine(mw.Polytope(SMALL, wrap=wrap), objective, plans.policies, plans.occupancies)
        assert [check.name for check in found.checks if not check.ok] == expected


def test_no_check_of_a_new_set_compares_a_number_with_itself(plans):
    """Each can fail with other policies or occupancies, whatever is claimed about them."""
    failing = set()
    for field, tamper, _ in TAMPERED:
        if field in {"occupancies", "policies"} and tamper(getattr(plans, field)).shape == plans.policies.shape:
            parts = {"policies": plans.policies, "occupancies": plans.occupancies}
            parts[field] = tamper(parts[field])
            found = examine(mw.Polytope(SMALL), paper_objective(SMALL, 8.0), *parts.values())
            failing |= {check.name for check in found.checks if not check.ok}
    assert failing | {"optimum proved"} == {check.name for check in plans.certificate.checks}


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
    name = "feasibility" if field in {"occupancies", "policies"} else field
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
    assert failures(plans, mdp) == ({"policies"} if caught else set())
