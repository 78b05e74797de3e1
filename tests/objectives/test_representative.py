"""The expected best of the set, against all sets of all deterministic policies."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

import manyways as mw
from problems import random_accessible_mdp, vertices


def best_of_all_sets(mdp: mw.MDP, k: int, plans: np.ndarray, rewards: np.ndarray) -> float:
    """The highest mean best-of-k value over rewards (M, N)."""
    worth = plans @ (mdp.reward + rewards).T
    return max(worth[list(chosen)].max(axis=0).mean() for chosen in combinations(range(len(plans)), min(k, len(plans))))


def small_models(count: int, seed: int):
    rng = np.random.default_rng(seed)
    while count:
        mdp = random_accessible_mdp(rng, kind=str(rng.choice(["dense", "sparse", "stop", "restart"])))
        policies = np.prod(np.diff(mdp.first_choice).astype(float))
        if policies <= 200:
            count -= 1
            yield mdp


def test_small_models_reach_the_best_of_all_sets():
    """At least 95 of 100, and none is above it."""
    reached = []
    for number, mdp in enumerate(small_models(100, 11)):
        k = 2 + number % 2
        aim, every = mw.Representative(draws=60, unit=1.0), vertices(mdp, mw.Average())
        floor = float(np.quantile(every @ mdp.reward, 0.5)) if number % 4 > 1 else -1e3
        plans = mw.plan(mdp, k, objective=aim, floor=floor)
        rewards = aim.preferences.on(mdp, 1.0).draw(60, np.random.default_rng(0)).rewards(range(60))
        best = best_of_all_sets(mdp, k, every[every @ mdp.reward >= floor - 1e-9], rewards)
        assert plans.objective <= best + 1e-9 * (1 + abs(best))
        worth = plans.occupancies @ (mdp.reward + rewards).T
        assert plans.objective == pytest.approx(worth.max(axis=0).mean())
        reached.append(plans.objective >= best - 1e-9 * (1 + abs(best)))
    assert sum(reached) >= 95


def test_one_plan_is_the_best_plan():
    mdp = mw.room_world(9, 2)
    plans = mw.plan(mdp, 1, objective=mw.Representative())
    assert plans.rewards[0] == pytest.approx(plans.optimal_reward)


def test_every_plan_is_within_the_slack_and_proved():
    plans = mw.plan(mw.room_world(9, 2, seed=3), 5, objective=mw.Representative(), slack=0.05)
    assert plans.rewards.min() >= 0.95 * plans.optimal_reward - 1e-12
    assert plans.certificate.ok
    assert plans.status.converged


def test_kept_plans_are_served_around():
    mdp = mw.room_world(9, 2, seed=3)
    first = mw.plan(mdp, 3, objective=mw.Representative())
    again = mw.plan(mdp, 4, objective=mw.Representative(), keep=first.policies[1:2])
    np.testing.assert_array_equal(again.policies[again.kept[0]], first.policies[1])
    alone = mw.plan(mdp, 1).occupancies
    worth = mw.Representative(unit=again.maximised.unit).on(mdp, mw.StateActions().on(mdp))
    assert again.objective > worth.value(np.vstack([alone, first.occupancies[1:2]]))


def test_threads_change_nothing():
    mdp = mw.room_world(11, 2)
    one, two = (
        mw.plan(mdp, 4, objective=mw.Representative(), method=mw.VertexAscent(starts=2, workers=workers))
        for workers in (1, 2)
    )
    np.testing.assert_array_equal(one.policies, two.policies)


@pytest.mark.parametrize(
    "prior",
    [
        mw.Preferences(),
        mw.Preferences(over=[mw.Labels(["door"]), mw.Actions()], strength=0.3),
        mw.PossibleRewards(np.eye(3, mw.room_world(9, 2, seed=3).n_states)),
    ],
)
def test_a_plan_file_keeps_the_prior(prior, tmp_path):
    plans = mw.plan(mw.room_world(9, 2, seed=3), 3, objective=mw.Representative(prior, draws=20))
    loaded = mw.load(plans.save(tmp_path / "plans.mw"))
    assert repr(loaded.maximised) == repr(plans.maximised)
    assert mw.verify(loaded.mdp, loaded).ok
    again = mw.plan(loaded.mdp, 3, objective=loaded.maximised)
    np.testing.assert_array_equal(again.policies, plans.policies)
