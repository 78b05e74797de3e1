"""Limits in the words of a user, and the floors that they become."""

from __future__ import annotations

import numpy as np
import pytest

import manyways as mw
from evaluation import occupancy_of, policies_of, random_episodes
from manyways.model.episodes import episode_ends
from manyways.polytope import Best, Limits, Polytope, floors_of, settle_limits
from manyways.polytope.limits import is_meaningful
from problems import bandit, losses, stop_world


def settled(limits: Limits, mdp: mw.MDP, criterion: mw.Criterion | None = None) -> Limits:
    polytope = Polytope(mdp, criterion)
    criterion, best = polytope.criterion.settled(polytope)
    return settle_limits(limits, polytope, criterion, best)[0]


def maze() -> mw.MDP:
    """Ways of 2, 3 and 5 steps to a goal that leads back to the start."""
    rows = [("start", "2", "b1", 1.0, 0.0), ("start", "3", "c2", 1.0, 0.0), ("start", "5", "d4", 1.0, 0.0)]
    rows += [("b1", "on", "goal", 1.0, 0.0), ("c2", "on", "b1", 1.0, 0.0)]
    rows += [(f"d{n}", "on", f"d{n - 1}" if n > 1 else "goal", 1.0, 0.0) for n in (4, 3, 2, 1)]
    rows += [("goal", "again", "start", 1.0, 1.0)]
    return mw.MDP.from_transitions(rows, labels={"goal": ["goal"]}, name="maze")


# ---- settings ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["slack", "longer", "way"])
@pytest.mark.parametrize("value", [-0.1, float("nan"), float("inf"), "10%", True])
def test_shares_are_numbers_of_at_least_zero(name, value):
    with pytest.raises(mw.SettingError, match=f"{name} must be a finite number of at least 0, found"):
        Limits(**{name: value})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "1", None.__class__])
def test_a_floor_is_a_number(value):
    with pytest.raises(mw.SettingError, match="floor must be a finite number, found"):
        Limits(floor=value)


def test_any_limit_counts():
    assert not Limits().any
    assert not Limits(randomised=True).any
    assert all(Limits(**{name: 0}).any for name in ("slack", "floor", "longer"))


# ---- a share of the best value ----------------------------------------------------------------


@pytest.mark.parametrize("slack", [0.0, 0.02, 0.1, 0.5, 2.0])
@pytest.mark.parametrize("problem", [stop_world(), losses(), bandit(1.0, 0.25)], ids=lambda p: p.mdp.name)
def test_the_least_value_is_below_the_best_one_by_a_share_of_its_size(problem, slack):
    best = problem.best_average
    found = settled(Limits(slack=slack), problem.mdp)
    assert found.slack == slack
    assert found.floor == pytest.approx(best - slack * abs(best), rel=1e-12)
    discounted = settled(Limits(slack=slack), problem.mdp, mw.Discounted(0.9))
    top = problem.best_discounted(0.9) / (1 - 0.9)
    assert discounted.floor == pytest.approx(top - slack * abs(top), rel=1e-9)


def test_a_share_of_a_tiny_value_means_nothing():
    """A round of +100 and -99.9: the best value is 0.05, a difference of numbers of about 100."""
    mdp = mw.MDP.from_transitions(
        [("a", "go", "b", 1.0, 100.0), ("b", "back", "a", 1.0, -99.9), ("a", "stay", "a", 1.0, -1.0)], name="balance"
    )
    with pytest.raises(mw.SettingError, match=r"the best value of balance, 0\.05 per step, is tiny") as caught:
        settled(Limits(slack=0.1), mdp)
    assert "floor=" in str(caught.value)
    assert "longer=" in str(caught.value)
    assert "--floor" in caught.value.on_command_line
    assert "--longer" in caught.value.on_command_line
    assert settled(Limits(floor=0.01), mdp).floor == 0.01


def test_penalties_that_the_best_plan_never_pays_do_not_make_its_value_tiny():
    mdp = mw.MDP.from_transitions(
        [("a", "good", "a", 1.0, 1.0), ("a", "bad", "a", 1.0, -1e12)],
    )
    polytope = Polytope(mdp)
    assert is_meaningful(mdp, Best(1.0, polytope.optimum))


@pytest.mark.parametrize("criterion", [mw.Average(), mw.Discounted(0.9)], ids=str)
def test_a_floor_above_the_best_value(criterion):
    problem = stop_world()
    best = problem.best(criterion) / (1 if criterion.discount == 1 else 1 - criterion.discount)
    with pytest.raises(mw.SettingError, match=r"no plan of stop world has a value of .*; the best one has") as caught:
        settled(Limits(floor=best * 1.001), problem.mdp, criterion)
    assert f"{best:.6g} {criterion.unit}" in str(caught.value)
    assert settled(Limits(floor=best), problem.mdp, criterion).floor == best


# ---- a longest way to the goal ----------------------------------------------------------------


@pytest.mark.parametrize(("longer", "ways"), [(0.0, {2}), (0.4, {2}), (0.5, {2, 3}), (1.5, {2, 3, 5})])
def test_ways_are_counted_in_steps_to_the_goal(longer, ways):
    """The step out of the goal is no part of the way."""
    mdp = maze()
    limits = settled(Limits(longer=longer), mdp)
    assert limits.way == pytest.approx((1 + longer) * 2)
    (floor,) = floors_of(limits, mw.Average(), mdp, 0.0)
    kept = {
        round(1 / float(x @ episode_ends(mdp))) - 1
        for x in (occupancy_of(mdp, policy) for policy in policies_of(mdp))
        if floor.shortfall(mdp, x) <= 1e-12
    }
    assert kept == ways


def test_the_shortest_way_is_that_of_the_best_deterministic_policy():
    for seed in range(24):
        rng = np.random.default_rng(seed)
        mdp = random_episodes(rng, 4, 3, midway=bool(seed % 2))
        ends = mdp.ends["goal"]
        at_goal = np.logical_and.reduceat(ends > 1 - 1e-9, mdp.first_choice[:-1])[mdp.choice_state]
        found = []
        for policy in policies_of(mdp):
            x = occupancy_of(mdp, policy)
            if x @ ends > 1e-9:
                found.append(float(x @ ~at_goal) / float(x @ ends))
        assert settled(Limits(longer=0.0), mdp).way == pytest.approx(min(found), rel=1e-9, abs=1e-9)


def test_the_plan_with_the_most_ends_need_not_have_the_shortest_way():
    """Both ways end an episode every two steps, but one of these steps is the restart of a goal in which nothing else can
    be done: the way there has one step."""
    rows = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
    for order in ([0, 1], [1, 0]):
        matrix = rows[[*order, 2, 3, 4]]
        mdp = mw.MDP.from_csr(matrix, np.zeros(5), [0, 2, 4, 5], ends={"goal": np.array([0.0, 0.0, 1.0, 0.0, 1.0])})
        assert settled(Limits(longer=0.0), mdp).way == pytest.approx(1.0)


def test_no_way_without_a_goal():
    with pytest.raises(mw.SettingError, match="stop world has no goal that leads back to the start") as caught:
        settled(Limits(longer=0.1), stop_world().mdp)
    assert "mdp.restarting_at" in str(caught.value)
    assert "--restart LABEL" in caught.value.on_command_line


def test_no_way_to_a_goal_that_is_never_reached():
    rows = [("a", "stay", "a", 1.0, 0.0), ("goal", "again", "a", 1.0, 0.0)]
    mdp = mw.MDP.from_transitions(rows, labels={"goal": ["goal"]}, name="closed")
    with pytest.raises(mw.SettingError, match="no plan of closed reaches the goal"):
        settled(Limits(longer=0.1), mdp)


def test_ways_cannot_be_counted_with_a_discount():
    """Discounted occupancies weigh the first way more than later ones and cut long ways short."""
    with pytest.raises(mw.SettingError, match="which is not known where later steps count less; give slack=") as caught:
        settled(Limits(longer=0.1), maze(), mw.Discounted(0.9))
    assert "--discount" in caught.value.on_command_line


# ---- floors -----------------------------------------------------------------------------------


def test_limits_become_floors():
    mdp, limits = maze(), Limits(slack=0.1, floor=0.3, longer=0.5, way=3.0)
    names = [floor.name for floor in floors_of(limits, mw.Average(), mdp, 1 / 3)]
    assert names == ["value", "way to the goal"]
    assert [f.name for f in floors_of(limits, mw.Episodic(6.0), mdp, 1.0)] == [
        "length of episodes", "value", "way to the goal",
    ]  # fmt: skip
    assert floors_of(Limits(), mw.Average(), mdp, 1 / 3) == ()
    (value,) = floors_of(Limits(floor=5.0), mw.Discounted(0.9), mdp, 6.0)
    assert value.level == pytest.approx(0.5), "occupancies count discounted values times 1 - discount"
