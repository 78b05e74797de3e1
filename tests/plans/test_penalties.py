"""A huge penalty on a choice that no plan takes changes nothing: neither optimum, nor plans, nor certificate."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

import manyways as mw
from manyways import MDP
from manyways.plans.checker import ExactModel
from rational import ExactMdp, hard_model
from shared import WORLDS


def with_forbidden(mdp: MDP, state: int, reward: float) -> MDP:
    """The model with one more action in a state, which stays there for this reward."""
    matrix, at = mdp.transitions, int(mdp.first_choice[state + 1])
    row = np.zeros((1, mdp.n_states))
    row[0, state] = 1.0
    return dataclasses.replace(
        mdp,
        transitions=sparse.csr_array(sparse.vstack([matrix[:at], sparse.csr_array(row), matrix[at:]])),
        reward=np.insert(mdp.reward, at, reward),
        first_choice=mdp.first_choice + (np.arange(mdp.n_states + 1) > state),
        actions=np.insert(mdp.actions, at, len(mdp.action_names)),
        action_names=(*mdp.action_names, "forbidden"),
        source=None,
    )


def random_model(n: int, penalty: float | None) -> MDP:
    """Three actions a state, three successors each, normal rewards; perhaps a self-loop with a penalty."""
    rng = np.random.default_rng(1)
    rows = []
    for s in range(n):
        for a in range(3):
            targets, weights, reward = rng.choice(n, 3, replace=False), rng.dirichlet(np.ones(3)), float(rng.normal())
            rows += [(s, a, int(t), float(p), reward) for t, p in zip(targets, weights, strict=True)]
        if s == 7 and penalty is not None:
            rows.append((s, "loop", s, 1.0, penalty))
    return MDP.from_transitions(rows)


@pytest.mark.parametrize("n", [60, 150, 2500])
def test_the_optimum_of_a_random_model(n):
    true = mw.Polytope(random_model(n, None)).optimum.value
    for p in range(3, 16) if n < 1000 else (6, 10, 15):
        found = mw.Polytope(random_model(n, -(10.0**p))).optimum
        assert found.value == pytest.approx(true, rel=1e-10)
        assert found.bound == pytest.approx(true, rel=1e-6)


@pytest.mark.parametrize("path", WORLDS, ids=lambda path: path.stem)
def test_the_twenty_worlds(path):
    mdp = mw.read(path)
    start, k = int(np.argmax(mdp.start)), 2 if path.stem.startswith("four") else 6
    usual, *others = (mw.plan(with_forbidden(mdp, start, -(10.0**p)), k, 8.0) for p in range(3, 16))
    for plans in others:
        np.testing.assert_array_equal(plans.policies, usual.policies)
        np.testing.assert_allclose(plans.rewards, usual.rewards, rtol=1e-12)
        assert plans.certificate.ok
        assert plans.status.converged
        for here, there in zip(plans.certificate.checks, usual.certificate.checks, strict=True):
            assert here.name == there.name
            assert here.error == pytest.approx(there.error, abs=1e-11)


def test_claims_are_not_hidden_behind_a_penalty():
    """All of these were verified by version 0.1.0."""
    rows = [("a", "left", "b", 1.0, 1.0), ("a", "right", "c", 1.0, 0.0), ("b", "back", "a", 1.0, 0.5)]
    rows += [("c", "back", "a", 1.0, 0.5), ("c", "stay", "c", 1.0, -1e12)]
    plans = mw.plan(MDP.from_transitions(rows), 2, 1.0)
    assert plans.optimal_reward == pytest.approx(0.75)
    assert plans.certificate.ok
    for field, value, check in (
        ("optimal_reward", 900_000.0, "optimal reward"),
        ("rewards", plans.rewards + 9000, "rewards"),
        ("objective", plans.objective + 5000, "objective"),
    ):
        wrong = mw.verify(plans.mdp, dataclasses.replace(plans, **{field: value}))
        assert check in {failed.name for failed in wrong.failed}


def test_small_changes_of_nine_rooms_are_noticed():
    plans = mw.plan("nine-rooms:7", 6, 8.0)
    for field, value in (
        ("rewards", plans.rewards + 1e-6 * (np.arange(6) == 2)),
        ("rewards", plans.rewards - 1e-6 * (np.arange(6) == 2)),
        ("optimal_reward", plans.optimal_reward + 1e-4),
        ("optimal_reward", plans.optimal_reward - 1e-4),
        ("optimal_reward", plans.optimal_reward * (1 + 1e-6)),
        ("gap", 0.0),
        ("policies", plans.policies + 1e-7 * (np.arange(plans.mdp.n_choices) == 5)),
    ):
        assert not mw.verify(plans.mdp, dataclasses.replace(plans, **{field: value})).ok, field


def test_links_too_weak_for_subtraction_are_still_links():
    """A state left with a probability of 1e-300 was a raw RuntimeError of scipy's."""
    mdp = MDP.from_transitions(
        [("a", "x", "b", 1e-300, 1.0), ("a", "x", "a", 1.0, 1.0), ("b", "y", "a", 1.0, 0.0)], name="slow"
    )
    assert mw.Polytope(mdp).optimum.value == pytest.approx(1.0)
    mdp = MDP.from_transitions(
        [(s, a, t, p, float(a)) for s in (0, 1) for a in (0, 1) for t, p in ((1 - s, 1e-200), (s, 1.0))]
    )
    plans = mw.plan(mdp, 2, 1.0)
    assert plans.status.converged == plans.certificate.ok


def test_links_down_to_the_smallest_doubles_end_in_plans_or_in_a_sentence():
    """Every state seemed a worse place to cut the chain than the last one, and policy iteration ran forever."""
    none = np.inf
    exponents = [
        *([0, none, 109, none], [0, 216, none, 293], [0, none, 288, none]),
        *([198, 0, 37, 274], [291, 0, 267, none]),
        *([151, 148, 0, none], [none, 282, 0, none]),
        *([none, 200, none, 0], [none, 244, none, 0], [5, 211, 199, 0]),
    ]
    rows = 10.0 ** -np.array(exponents, dtype=float)
    reward = [-1.435, 0.189, 0.729, 1.344, 0.945, -1.252, 1.968, 0.84, 0.129, -0.761]
    model = mw.MDP.from_csr(rows / rows.sum(axis=1, keepdims=True), reward, [0, 3, 5, 7, 10])
    try:
        plans = mw.plan(model, 2, 1.0, method=mw.VertexAscent(starts=1), time_limit_s=3)
    except mw.ManywaysError:
        return
    assert plans.certificate.ok or not plans.status.converged


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("link", [1e-12, 2.0**-40])
def test_stiff_models_are_verified_or_say_that_they_are_not(seed, link):
    rng = np.random.default_rng(seed)
    rows = []
    for s in range(6):
        for a in range(2):
            target, reward = int(rng.integers(6)), float(rng.normal())
            rows += [(s, a, target, link, reward), (s, a, s, 1 - link, reward)]
        rows += [(s, "home", 0, 1.0, 0.0), (s, "on", (s + 1) % 6, 1.0, 0.0)]
    plans = mw.plan(MDP.from_transitions(rows), 2, 1.0)
    assert plans.status.converged == plans.certificate.ok
    assert mw.verify(plans.mdp, plans).ok == plans.certificate.ok


@pytest.mark.parametrize(
    "size", [2.0**-996, 2.0**-664, 2.0**664, 2.0**996]
)  # about 1e-300 to 1e300; powers of 2 break ties alike
@pytest.mark.parametrize("criterion", [mw.Average(), mw.Discounted(0.9)], ids=str)
def test_very_large_and_very_small_rewards(size, criterion):
    usual = random_model(12, None)
    scaled = dataclasses.replace(usual, reward=usual.reward * size, source=None)
    plans, same = mw.plan(usual, 2, 1.0, criterion=criterion), mw.plan(scaled, 2, size, criterion=criterion)
    assert same.certificate.ok
    np.testing.assert_array_equal(same.policies, plans.policies)
    np.testing.assert_allclose(same.rewards / size, plans.rewards, rtol=1e-9)
    assert not mw.verify(scaled, dataclasses.replace(same, rewards=same.rewards * (1 + 1e-6))).ok


@pytest.mark.parametrize("discount", [0.999999, 1 - 1e-9, 1 - 1e-12])
def test_discounts_near_one(discount):
    """Bounds of version 0.1.0 lay below the true optimum, or certificates failed."""
    for seed in range(30):
        mdp = hard_model(np.random.default_rng(seed), "plain")
        exact = ExactMdp.of(mdp, discount)
        plans = mw.plan(mdp, 2, 1.0, criterion=mw.Discounted(discount))
        optimum, _ = exact.best(exact.reward)
        assert plans.certificate.ok
        model = ExactModel(mdp, discount)
        assert Fraction(model.upper_bound(model.reward, plans.proof.optimum)) * Fraction(model.unit) >= optimum
        assert plans.optimal_reward * (1 - discount) == pytest.approx(float(optimum), rel=1e-9)
