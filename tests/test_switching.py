"""Changing over between plans, and telling them apart: against simulation and closed forms."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import manyways as mw
from luck import trips_by_luck, within
from manyways.model.episodes import episode_ends
from manyways.model.layout import Grid
from manyways.report import outcomes


def fork(slip: float = 0.0) -> mw.MDP:
    """Two ways to the goal: two steps by the left, three by the right; `slip` is the chance of taking the other one."""
    rows = [("left", "go", "goal", 1.0, -1.0), ("right", "go", "far", 1.0, -1.0), ("far", "go", "goal", 1.0, -1.0)]
    for way, other in (("left", "right"), ("right", "left")):
        rows.append(("start", way, way, 1 - slip, -1.0))
        if slip:
            rows.append(("start", way, other, slip, -1.0))
    return mw.MDP.from_transitions(
        [*rows, ("goal", "again", "start", 1.0, 10.0)], start="start", labels={"goal": ["goal"]}
    )


def both_ways(slip: float = 0.0) -> mw.PlanSet:
    plans = mw.plan(fork(slip), 2, criterion=mw.Episodic(), floor=-100.0)
    assert plans.rewards[0] > plans.rewards[1]
    return plans


def test_what_changing_over_costs():
    plans = both_ways()
    found = mw.switching(plans, 0, 1)
    names = [plans.mdp.state_name(s) for s in range(plans.mdp.n_states)]
    cost = dict(zip(names, found.cost, strict=True))
    assert cost["start"] == pytest.approx(1.0)  # a step more
    assert cost["left"] == pytest.approx(0.0)  # past the fork both do the same
    assert np.isnan(cost["right"])  # the first plan is never there
    assert found.free[names.index("left")]
    assert not found.free[names.index("start")]


def test_costs_of_time_count_per_step():
    """By value per step, a longer way also costs the time in which the first plan would have earned something."""
    mdp = fork()
    plans = mw.plan(mdp, 2, criterion=mw.Average(), floor=-100.0)
    best = plans.rewards[0]
    assert best == pytest.approx((10 - 2) / 3)
    assert np.nanmax(mw.switching(plans, 0, 1).cost) == pytest.approx(1.0 + best)


def test_costs_are_those_of_trips_by_luck():
    mdp = mw.room_world(9, 2, seed=1)
    plans = mw.plan(mdp, 2, slack=0.3, criterion=mw.Episodic())
    found, ends = mw.switching(plans, 0, 1), episode_ends(mdp)
    start = int(np.argmax(mdp.start))
    returns = [trips_by_luck(mdp, plans.policies[i], ends, 50_000, 5000, seed=i).returns for i in (0, 1)]
    assert within(found.cost[start], returns[0] - returns[1])


def test_how_long_to_watch():
    """On a map, plans that slip into each other's way with chance q are alike by 2 sqrt(q (1 - q)) per trip."""
    assert mw.switching(both_ways(), 0, 1).watched == 1
    slip = 0.2
    alike = 2 * np.sqrt(slip * (1 - slip))
    watched = mw.switching(on_a_map(both_ways(slip)), 0, 1).watched
    assert alike**watched <= 0.1 < alike ** (watched - 1)
    # A judge who counts how often the left way was taken is wrong less than once in 20 times.
    rng = np.random.default_rng(0)
    lefts = rng.binomial(int(watched), 1 - slip, size=100_000)
    assert ((lefts < watched / 2).mean() + (lefts == watched / 2).mean() / 2) <= 0.05
    assert mw.switching(both_ways(), 1, 1).watched == float("inf")
    # Without a map, one also sees which way they try.
    assert mw.switching(both_ways(slip), 0, 1).watched == 1


def on_a_map(plans: mw.PlanSet) -> mw.PlanSet:
    n = plans.mdp.n_states
    return replace(plans, mdp=replace(plans.mdp, layout=Grid(np.arange(n), np.zeros((1, n), bool))))


def test_actions_of_one_name_and_effect_are_one():
    """Two roads that nobody can tell from each other, and a canal that leads to the same place."""
    rows = [
        ("home", "road", "shop", 1.0, -1.0),
        ("home", "canal", "shop", 1.0, -1.1),
        ("shop", "again", "home", 1.0, 9.0),
    ]
    plain = mw.MDP.from_transitions(rows, start="home", labels={"goal": ["shop"]})
    twice = replace(plain, action_names=("road", "road", "again"))
    for mdp, watched in ((plain, 1.0), (twice, float("inf"))):
        plans = mw.plan(mdp, 2, criterion=mw.Episodic(), floor=-100.0)
        found = mw.switching(plans, 0, 1)
        assert plans.policies[0].tolist() != plans.policies[1].tolist()
        assert found.watched == watched


def by_two_sides(bog: float) -> mw.PlanSet:
    """The best plan goes by the west, the other one by the east. In the west one ends in the bog with a chance of `bog`."""
    rows = [("home", "west", "west", 1.0, 0.0), ("home", "east", "east", 1.0, -1.0), ("east", "on", "goal", 1.0, 0.0)]
    rows += [("west", "on", "goal", 1 - bog, 0.0), ("goal", "again", "home", 1.0, 10.0)]
    rows += [("west", "on", "bog", bog, 0.0), ("bog", "again", "home", 1.0, 9.9)] if bog else []
    mdp = mw.MDP.from_transitions(rows, start="home")
    names = [mdp.state_name(s) for s in range(mdp.n_states)]
    mdp = mdp.restarting_at([names.index("goal")], end="goal")
    mdp = mdp.restarting_at([names.index("bog")], end="bog") if bog else mdp
    return mw.plan(mdp, 2, criterion=mw.Episodic(), floor=-100.0)


def test_where_the_other_plan_does_not_find_back_nothing_is_priced():
    """From the west the east plan, which never comes there, may end in the bog: what it would do there is not its way."""
    for bog in (0.0, 0.5):
        plans = by_two_sides(bog)
        found = mw.switching(plans, 0, 1)
        west = [plans.mdp.state_name(s) for s in range(plans.mdp.n_states)].index("west")
        assert found.lost.tolist() == [bog > 0 and s == west for s in range(plans.mdp.n_states)]
        assert np.isnan(found.cost[west]) == (bog > 0)
        # A third of its time is at home, and two thirds are where the other plan is not lost.
        assert found.mean == pytest.approx(np.nanmax(found.cost) / (2 if bog else 3))
        told = outcomes._cost_told(plans, found)
        assert ("Where plan 1 spends 33 % of its time, plan 2 does not surely find back." in told) == (bog > 0)


def test_next_to_nothing_is_measured_by_what_the_first_plan_meets():
    """A pit that the first plan never meets, 1,000 below everything else, makes no cost look small."""
    rows = [("home", "go", "shop", 1.0, 0.0), ("home", "stroll", "shop", 1.0, -0.1), ("shop", "back", "home", 1.0, 2.0)]
    rows += [("home", "jump", "pit", 1.0, 0.0), ("pit", "climb", "home", 1.0, -1000.0)]
    mdp = mw.MDP.from_transitions(rows, start="shop")
    plans = mw.plan(mdp, 2, floor=0.9)
    found = mw.switching(plans, 0, 1)
    home = [mdp.state_name(s) for s in range(mdp.n_states)].index("home")
    assert found.cost[home] == pytest.approx(0.05)
    assert not found.free[home]


def test_models_without_trips_count_steps():
    mdp = mw.MDP.from_transitions(
        [
            ("a", "stay", "a", 0.9, 1.0),
            ("a", "stay", "b", 0.1, 1.0),
            ("a", "go", "b", 1.0, 0.9),
            ("b", "go", "a", 1.0, 1.0),
        ]
    )
    plans = mw.plan(mdp, 2, floor=-1.0)
    found = mw.switching(plans, 0, 1)
    assert found.counted_in == "steps"
    assert found.watched == 1  # in a they do different things
    # On a map, one sees that "stay" moves on with chance 0.1: alike by sqrt(0.1) every other step.
    assert mw.switching(on_a_map(plans), 0, 1).watched == 3
    with pytest.raises(mw.SettingError, match="there are plans 0 to 1, found 2"):
        mw.switching(plans, 0, 2)
