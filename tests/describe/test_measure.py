"""Measures: every number by a second path."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from given_plans import going, lottery, names, plan_set, repair_shop, value

import manyways as mw
from manyways.describe import measures, portraits, survey_of
from manyways.describe.wording import distinct, short
from manyways.model.occupancy import chain


def test_measures_against_simulation():
    """Steps, walls, doors and time shares of the nine rooms' best plans, from long runs."""
    plans = mw.plan("nine-rooms:7", 2, 8.0, time_limit_s=60)
    mdp = plans.mdp
    for plan in range(plans.k):
        states = plans[plan].policy.rollout(60_000, np.random.default_rng(plan)).states
        ends = np.flatnonzero(mdp.labels["goal"][states])
        rounds = [states[a + 1 : b] for a, b in pairwise(ends)]

        def close(computed: float | None, seen: list[float]) -> None:
            error = np.std(seen) / np.sqrt(len(seen))
            assert computed == pytest.approx(np.mean(seen), abs=4.5 * error + 1e-3)

        close(value(plans, "steps to goal", plan), [len(way) for way in rounds])
        close(value(plans, "chance of touching wall", plan), [mdp.labels["wall"][way].any() for way in rounds])
        close(value(plans, "chance of touching door", plan), [mdp.labels["door"][way].any() for way in rounds])
        shares = [part.mean() for part in np.array_split(mdp.labels["wall"][states], 100)]
        close(value(plans, "time in wall", plan), shares)
        facts, rooms = survey_of(plans).facts[plan], survey_of(plans).rooms
        assert facts.doors is not None
        assert facts.rooms is not None
        assert rooms is not None
        for door, chance in facts.doors.items():
            close(chance, [bool((way == door).any()) for way in rounds])
        for room, chance in facts.rooms.items():
            ended = [np.append(way, states[ends[0]]) for way in rounds]
            close(chance, [bool((rooms.of_state[way] == room).any()) for way in ended])


def test_large_models_get_the_same_steps_from_the_occupancy(monkeypatch):
    plans = mw.plan("nine-rooms:7", 2, 8.0)
    exact = [value(plans, "steps to goal", plan) for plan in range(2)]
    monkeypatch.setattr("manyways.describe.survey.FACTORISED", 0)
    again = replace(plans)
    assert [value(again, "steps to goal", plan) for plan in range(2)] == pytest.approx(exact)
    assert not any(name.startswith("chance of") for name in names(again))
    assert value(again, "time in wall") == value(plans, "time in wall")
    assert len(portraits(again)[0].sentences) >= 2
    stopped = plan_set(plans.mdp, [going(plans.mdp)])  # 'stop' is the last action everywhere
    assert value(stopped, "chance of reaching goal") == 0.0


def test_reward_and_loss():
    mdp = repair_shop()
    plans = plan_set(mdp, [going(mdp, ("worn", "repair")), going(mdp, ("worn", "run"))])
    reward, loss = measures(plans)[:2]
    # Good 5/6 of the time and worn 1/6; or, per round, 5 steps good, 10/3 worn and one broken.
    assert reward.values == pytest.approx([(5 * 3 + 0.5) / 6, (15 + 20 / 3 - 4) / (5 + 10 / 3 + 1)])
    assert loss.unit == "share"
    assert loss.values == pytest.approx([0.0, 1 - reward.values[1] / reward.values[0]])
    assert (reward.better, loss.better) == (1, -1)


def test_loss_against_an_optimum_of_zero_is_in_reward():
    mdp = mw.MDP.from_transitions([("a", "idle", "a", 1.0, 0.0), ("a", "pay", "a", 1.0, -2.0)])
    plans = plan_set(mdp, [np.array([1.0, 0.0]), np.array([0.0, 1.0])])
    loss = measures(plans)[1]
    assert loss.unit == "reward"
    assert loss.values == pytest.approx([0.0, 2.0], abs=1e-8)
    assert "The lower reward of the two, -2 per step where 0 is possible." in portraits(plans)[1].sentences


def test_an_optimum_of_rounding_is_zero():
    mdp = mw.MDP.from_transitions(
        [("a", "idle", "a", 1.0, 0.0), ("a", "pay", "a", 1.0, -0.003), ("a", "lots", "a", 1.0, -1.0)]
    )
    policies = [np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0])]
    plans = replace(plan_set(mdp, policies), optimal_reward=5.6e-17, rewards=np.array([-1e-13, -0.003]))
    loss = measures(plans)[1]
    assert (loss.unit, loss.values) == ("reward", pytest.approx([0.0, 0.003]))
    first, second = portraits(plans)
    assert "The higher reward of the two, and no plan can earn more." in first.sentences
    assert "The lower reward of the two, -0.003 per step where 0 is possible." in second.sentences
    assert "%" not in second.sentences[1]


def test_labels_are_judged_by_rewards_not_by_names():
    rows = [(s, "go", (s + 1) % 8, 1.0, {0: -5.0, 1: 7.0}.get(s, 1.0)) for s in range(8)]
    labels = {"nice": [0], "awful": [1], "plain": [2], "start": [3], "everywhere": range(8), "nowhere": []}
    plans = plan_set(mw.MDP.from_transitions(rows, labels=labels), [np.ones(8)])
    judged = {measure.name: measure.better for measure in measures(plans)[2:]}
    assert judged == {"time in nice": -1, "time in awful": 1, "time in plain": 0}


def test_at_most_twelve_labels_those_in_which_plans_differ_most():
    n = 20
    rows = [(0, f"to {s}", s, 1.0, 0.0) for s in range(1, n)] + [(s, "back", 0, 1.0, 1.0) for s in range(1, n)]
    mdp = mw.MDP.from_transitions(rows, labels={f"l{s}": [s] for s in range(1, n)})
    plans = plan_set(mdp, [going(mdp, (0, "to 3")), going(mdp, (0, "to 17"))])
    kept = [name for name in names(plans) if name.startswith("time in")]
    assert len(kept) == 12
    assert {"time in l3", "time in l17"} <= set(kept)


def test_labels_that_look_the_same_keep_apart():
    long = "x" * 60
    labels = {long + "1": [0], long + "2": [1], "hot pan": [2], "goal": [3]}
    mdp = mw.MDP.from_transitions([(s, "go", (s + 1) % 4, 1.0, 1.0) for s in range(4)], labels=labels)
    plans = plan_set(mdp, [np.ones(4)])
    found = names(plans)
    assert len(set(found)) == len(found)
    assert {"time in 'hot pan'", "chance of touching 'hot pan'"} <= set(found)
    assert {f"time in {short(long)}", f"time in {short(long)} (2)"} <= set(found)
    assert distinct(["a", "b", "c"], lambda _: "z") == {"a": "z", "b": "z (2)", "c": "z (3)"}
    assert len(portraits(plans)[0].sentences) >= 2


def test_discounted_shares_say_so():
    mdp = repair_shop()
    criterion = mw.Discounted(0.9)
    policy = going(mdp, ("worn", "run"))
    plans = plan_set(mdp, [policy], criterion)
    dense = chain(mdp, policy).toarray()
    visits = sum(0.1 * 0.9**t * (mdp.start @ np.linalg.matrix_power(dense, t)) for t in range(400))
    assert value(plans, "time in down") == pytest.approx(visits[mdp.labels["down"]].sum())
    assert all(
        "discount 0.9" in measure.meaning for measure in measures(plans) if measure.name in ("reward", "time in down")
    )
    assert any("discounted" in sentence for sentence in portraits(plans)[0].sentences)


def test_how_episodes_end():
    mdp = lottery()
    plans = plan_set(
        mdp, [going(mdp, ("home", "sure thing")), going(mdp, ("home", "ticket")), going(mdp, ("away", "stay"))]
    )
    assert [value(plans, "reaches goal", i) for i in range(3)] == pytest.approx([1.0, 0.5, 0.0])
    assert [value(plans, "ends in ruin", i) for i in range(3)] == [0.0, pytest.approx(0.5), None]
    assert [value(plans, "steps per episode", i) for i in range(3)] == [1.0, 2.0, None], (
        "the step back from where an episode has ended does not count"
    )
    better = {measure.name: measure.better for measure in measures(plans)}
    assert (better["reaches goal"], better["ends in ruin"], better["steps per episode"]) == (1, -1, 0)
    sure, ticket, wait = (words.sentences for words in portraits(plans))
    assert "The only plan that always reaches the goal." in sure
    assert "Reaches the goal in 50 % of its episodes." in ticket
    assert "Never reaches the goal." in wait
    both = plan_set(mdp, [going(mdp, ("home", "sure thing"))] * 2)
    assert "reaches goal" not in names(both), "what is always so tells nothing"
    alone = replace(mdp, ends={"goal": mdp.ends["goal"]})
    assert "steps to goal" in names(plan_set(alone, [going(alone, ("home", "ticket"))]))
    assert value(plan_set(alone, [going(alone, ("home", "ticket"))]), "steps to goal") == pytest.approx(4.0)
    discounted = plan_set(mdp, [going(mdp, ("home", "ticket"))], mw.Discounted(0.9))
    assert names(discounted) == ["reward", "below optimum"], "episodes are counted in the long run"


@pytest.mark.parametrize("source", ["gym:FrozenLake-v1?map_name=8x8", "gym:FrozenLake-v1"])
def test_episodes_that_reach_the_goal_in_time(source):
    """Against episodes in the environment itself, which cuts them off."""
    gymnasium = pytest.importorskip("gymnasium")
    plans = mw.plan(source, 2)
    (found,) = [measure for measure in measures(plans) if measure.name == "reaches goal in 100 steps"]
    settings = {"map_name": "8x8"} if "8x8" in source else {}
    env, rng = gymnasium.make("FrozenLake-v1", **settings), np.random.default_rng(3)
    for plan, share in zip(plans, found.values, strict=True):
        reached = 0.0
        for seed in range(400):
            observation, _ = env.reset(seed=seed)
            over = False
            while not over:
                observation, reward, ended, cut, _ = env.step(plan.act(observation, rng))
                over = ended or cut
                reached += float(reward)
        assert abs(reached / 400 - share) < 3.5 * np.sqrt(share * (1 - share) / 400)
