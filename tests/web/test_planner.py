"""What the planning process plans: the settings of the old set, except for those in the request."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import manyways as mw
from manyways.conversation import Round
from manyways.objectives import OBJECTIVES
from manyways.report.offers import offers_of
from manyways.web.planner import PlanRequest, _plan, set_label


@dataclass(frozen=True)
class BestReward(mw.Objective):
    """The best reward of the set; it has no tradeoff."""

    def on(self, mdp, compared):
        return BestRewardOnModel(mdp, compared)


class BestRewardOnModel(mw.SetObjective):
    def value(self, x):
        return float((x @ self.mdp.reward).max())

    def gradient(self, x, smoothing=0.0):
        del smoothing
        return 0 * x + self.mdp.reward * (x @ self.mdp.reward == self.value(x))[:, None]


@pytest.fixture
def best_reward(monkeypatch) -> BestReward:
    monkeypatch.setattr(OBJECTIVES, "_classes", dict(OBJECTIVES._classes))
    mw.register(BestReward)
    return BestReward()


def planned(old: mw.PlanSet, **settings: Any) -> mw.PlanSet:
    asked = {"k": 2, "tradeoff": 3.0, "slack": None, "seed": 1, "keep": (), "time_limit_s": 60} | settings
    return mw.PlanSet.from_bytes(_plan(PlanRequest(old.to_bytes(), **asked), lambda _: None).archive, "planned")


def test_the_settings_of_the_old_set_are_kept(plans):
    old = mw.plan(
        plans.mdp, 2, 8.0, method=mw.FrankWolfe(), criterion=mw.Discounted(0.9), behaviour=mw.States(), time_limit_s=0.1
    )
    new = planned(old, seed=7)
    assert (new.method, new.criterion, new.behaviour) == (old.method, old.criterion, old.behaviour)
    assert new.maximised == mw.MeanDivergence(3.0)
    assert (new.k, new.seed, new.mdp.digest) == (2, 7, old.mdp.digest)
    assert new.limits == old.limits == mw.Limits()


def test_every_new_plan_keeps_to_the_slack(plans):
    best = plans.optimal_reward
    assert plans.rewards.min() < 0.95 * best, "without a limit, some plan is worse"
    new = planned(plans, k=3, tradeoff=8.0, slack=0.05)
    assert new.limits.slack == 0.05
    assert new.rewards.min() >= 0.95 * best
    assert new.certificate.ok
    same = mw.plan(plans.mdp, 3, 8.0, slack=0.05, seed=1, fewer=True)
    assert (new.policies == same.policies).all()
    assert planned(new, k=3, tradeoff=8.0).limits == mw.Limits(), "an empty field removes the limit"


def test_a_tradeoff_that_was_derived_from_the_model_is_derived_again():
    old = mw.plan("gym:FrozenLake-v1", 4, fewer=True, objective=mw.MeanDivergence())
    assert old.derived
    shown = float(f"{old.tradeoff:.6g}")
    same = planned(old, k=4, tradeoff=shown, slack=0.1, seed=0)
    assert same.derived
    assert (same.policies == old.policies).all()
    for asked in ({"tradeoff": 2 * shown, "slack": 0.1}, {"tradeoff": shown, "slack": None}):
        other = planned(old, **asked)
        assert not other.derived
        assert other.tradeoff == asked["tradeoff"]
        assert other.limits.slack == asked["slack"]


def test_the_other_limits_of_the_old_set_stay(plans):
    limits = {"floor": 0.9 * plans.optimal_reward, "longer": 0.3, "randomised": True}
    old = mw.plan(plans.mdp, 2, 8.0, **limits)
    same, narrower = planned(old), planned(old, slack=0.02)
    assert same.limits == old.limits
    assert narrower.limits == replace(old.limits, slack=0.02, floor=0.98 * old.optimal_reward)


def test_plans_are_limited_with_the_old_method_if_it_can_keep_to_limits(plans):
    for method, expected in ((mw.FrankWolfe(), mw.FrankWolfe()), (mw.ProjectedGradient(), mw.VertexAscent())):
        new = planned(replace(plans, method=method), slack=0.05)
        assert new.method == expected
        assert new.rewards.min() >= 0.95 * new.optimal_reward - 1e-9


def test_the_new_plans_are_those_of_plan_itself(plans):
    keep, avoid = plans.policies[1:2], plans.policies[[0, 2]]
    expected = mw.plan(plans.mdp, 3, 3.0, seed=5, keep=keep, avoid=avoid)
    found = planned(plans, k=3, seed=5, keep=(plans[1].key,))
    assert (found.policies == expected.policies).all()
    assert found.kept == expected.kept


def test_plans_are_kept_with_the_old_method_if_it_can_keep_plans(plans):
    own = mw.VertexAscent(starts=2)
    assert planned(replace(plans, method=own), keep=(plans[0].key,)).method == own
    assert planned(replace(plans, method=mw.FrankWolfe()), keep=(plans[0].key,)).method == mw.VertexAscent()


@pytest.mark.parametrize("tradeoff", [None, 3.0])
def test_an_objective_without_a_tradeoff_is_kept(plans, best_reward, tradeoff):
    old = mw.plan(plans.mdp, 2, objective=best_reward)
    assert old.tradeoff is None
    new = planned(old, tradeoff=tradeoff, keep=(old[0].key,))
    assert new.maximised == best_reward


def test_labels(plans):
    assert set_label(plans) == "3 plans, tradeoff 8, seed 0"
    assert set_label(plans, 2) == "3 plans, tradeoff 8, seed 0, 2 kept"
    one = mw.plan(plans.mdp, 1, objective=BestReward(), seed=4, method=mw.ProjectedGradient(iterations=1))
    assert set_label(one) == "1 plan, seed 4"
    limited = mw.plan(plans.mdp, 2, objective=BestReward(), seed=4)
    assert set_label(limited) == "2 plans, within 10 %, seed 4"
    within = mw.plan(plans.mdp, 2, 1 / 3, slack=0.025)
    assert set_label(within) == "2 plans, within 2.5 %, tradeoff 0.3333, seed 0"


def test_more_plans_like_one(plans):
    """The plan stays, and the others are those that a conversation shows after it was taken."""
    old = mw.plan(plans.mdp, 3, slack=0.2)
    new = planned(old, k=3, like=old[1].key)
    assert old[1].key in [plan.key for plan in new]
    talk = mw.Conversation.resume([Round(old)], 3, seed=1)
    assert [plan.key for plan in talk.choose(1)] == [plan.key for plan in new]


def test_another_behaviour_and_values_per_episode(plans):
    new = planned(plans, behaviour="states", per="episode", slack=0.2)
    assert new.behaviour == mw.States()
    assert isinstance(new.criterion, mw.Episodic)
    assert planned(new, per="step").criterion == mw.Average()


def test_a_ban_holds_and_kept_plans_are_carried_over():
    """Of four ways three were shown. One is kept, one is banned, one is to be replaced: the new one is the fourth."""
    rows = [("home", way, "work", 1.0, pay) for way, pay in (("bus", 3.0), ("bike", 3.0), ("walk", 2.9), ("run", 2.9))]
    mdp = mw.MDP.from_transitions([*rows, ("work", "back", "home", 1.0, 1.0)])
    old = mw.plan(mdp, 3, slack=0.2)

    def ways(plans: mw.PlanSet) -> list[str]:
        home = [plans.mdp.state_name(s) for s in range(plans.mdp.n_states)].index("home")
        return [
            plans.mdp.action_name(int(np.argmax(policy * (plans.mdp.choice_state == home))))
            for policy in plans.policies
        ]

    kept, banned, replaced = ways(old)
    request = PlanRequest(old.to_bytes(), 2, None, 0.2, 0, (old[0].key,), 60, banned_actions=(banned,))
    answer = _plan(request, lambda _: None)
    new = mw.PlanSet.from_bytes(answer.archive, "planned")
    assert set(ways(new)) == {"bus", "bike", "walk", "run"} - {banned, replaced}
    assert kept in ways(new)
    assert answer.renamed == ((old[0].key, new[new.kept[0]].key),)
    assert answer.label.endswith(f"1 kept, without {banned}")
    with pytest.raises(mw.SettingError, match=r"plan 2 cannot be kept: the plan takes .* in 'home', which is banned"):
        _plan(dataclasses.replace(request, keep=(old[1].key,)), lambda _: None)


def test_bans_add_up_and_are_all_named():
    rows = [("home", way, "work", 1.0, pay) for way, pay in (("bus", 3.0), ("bike", 3.0), ("walk", 2.9), ("run", 2.9))]
    old = mw.plan(mw.MDP.from_transitions([*rows, ("work", "back", "home", 1.0, 1.0)]), 2, slack=0.2)
    for banned, label in (("bus", "without bus"), ("run", "without bus, without run")):
        answer = _plan(PlanRequest(old.to_bytes(), 2, None, 0.2, 0, (), 60, banned_actions=(banned,)), lambda _: None)
        old = mw.PlanSet.from_bytes(answer.archive, "planned")
        assert answer.label.endswith(f"seed 0, {label}")
    offers = offers_of(old)
    assert offers["banned"] == ["bus", "run"]
    assert sorted(offers["banned_actions"]) == ["back", "bike", "walk"], "what is banned cannot be banned again"


def test_a_plan_that_was_replaced_stays_away_from_all_later_sets(plans):
    second = planned(plans, k=3, keep=(plans[0].key, plans[1].key))
    third = planned(second, k=3, keep=(second[0].key, second[1].key))
    gone = np.stack([plans.policies[2], second.policies[2]])
    assert (third.avoided == gone).all()
    assert not {plans[2].key, second[2].key} & {plan.key for plan in third}
    assert len(planned(third).avoided) == 0  # nothing is kept: planned anew


def test_a_ban_after_more_like_this_is_planned_without_what_was_learned():
    mdp = mw.MDP.from_transitions(
        [
            *(("home", way, way, 1.0, reward) for way, reward in (("bus", 10.0), ("bike", 9.5), ("walk", 9.0))),
            *((way, "on", "home", 1.0, 0.0) for way in ("bus", "bike", "walk")),
        ]
    )
    liked = planned(mw.plan(mdp, 3, slack=0.2), slack=0.2, like=mw.plan(mdp, 3, slack=0.2)[0].key)
    new = planned(liked, slack=0.2, banned_actions=("bus",))
    assert new.k == 2
    assert {new.mdp.action_name(x) for x in np.flatnonzero(new.policies.any(axis=0))} == {"bike", "walk", "on"}
    assert new.rewards.min() >= 0.8 * new.optimal_reward - 1e-9
