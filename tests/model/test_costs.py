"""Costs: models whose reward is minus a cost, and rewards that are probably costs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import manyways as mw
from manyways import MDP
from manyways.formats.reader import may_be_a_cost
from manyways.gallery import example_file
from manyways.model.as_arrays import model_from_arrays, model_to_arrays
from manyways.model.costs import looks_like_a_cost
from problems import all_deterministic_policies, losses, reaches, recurrent_classes, stop_world
from problems import random_mdp as random_model


def errands(goal_pays: float = 0.0, steps_cost: float = 1.0) -> MDP:
    """Two ways to a goal, in which one stays."""
    return MDP.from_transitions(
        [
            ("start", "short", "goal", 1.0, 2 * steps_cost),
            ("start", "long", "middle", 1.0, steps_cost),
            ("middle", "on", "goal", 1.0, steps_cost),
            ("goal", "stay", "goal", 1.0, goal_pays),
        ],
        labels={"goal": ["goal"]},
        name="errands",
    )


# ---- minimising -------------------------------------------------------------------------------


def test_minimising_turns_the_reward_round_and_back():
    mdp = errands()
    costly = mdp.minimising()
    assert costly.costs
    assert costly.reward.tolist() == [-2.0, -1.0, 0.0, -1.0]
    assert not np.signbit(costly.reward[2])
    assert costly.source is None
    again = costly.minimising()
    assert not again.costs
    assert again.digest == mdp.digest
    assert again.reward.tolist() == mdp.reward.tolist()


def test_the_digest_says_what_is_planned_for_and_not_how_it_is_shown():
    mdp = losses().mdp
    assert mdp.digest.startswith("0d20616d37bbb4b8"), "as before there were costs"
    assert replace(mdp, costs=True).digest == mdp.digest
    assert mdp.minimising().digest != mdp.digest


def test_plans_of_a_model_with_costs_are_the_cheapest():
    """`losses` has only costs, written as negative rewards: 1.25 a step at best, and 4 at worst."""
    mdp = losses().mdp
    assert mw.plan(mdp.minimising(), 1).optimal_reward == pytest.approx(4.0)
    assert mw.plan(mdp.with_reward(-mdp.reward).minimising(), 1).optimal_reward == pytest.approx(-1.25)


def test_costs_are_kept_by_what_is_made_from_a_model():
    mdp = errands().minimising()
    assert mdp.restarting_at(mdp.labels["goal"]).costs
    assert mdp.restricted_to(np.ones(3, bool)).costs
    assert mdp.without(actions="long").costs
    assert mdp.read_from("somewhere").costs
    assert mdp.with_reward(np.zeros(4)).costs
    header, arrays = model_to_arrays(mdp)
    assert model_from_arrays(header, arrays).costs
    del header["costs"]  # as in files of older versions
    assert not model_from_arrays(header, arrays).costs


# ---- rewards that are probably costs ----------------------------------------------------------


def settles_for_nothing(mdp: MDP) -> bool:
    """Whether a deterministic policy can reach, from the start, a recurrent class in which it is paid nothing."""
    p = mdp.transitions.toarray()
    for choices in all_deterministic_policies(mdp):
        path = np.any(reaches(p[choices] > 0)[mdp.start > 0], axis=0)
        for states in recurrent_classes(p[choices]):
            if np.all(path[states]) and not mdp.reward[choices[states]].any():
                return True
    return False


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_a_cost_can_be_avoided_from_some_time_on(seed):
    rng = np.random.default_rng(seed)
    mdp = random_model(rng, 4, 3)
    mdp = mdp.with_reward(np.round(rng.random(mdp.n_choices) * (rng.random(mdp.n_choices) < 0.6), 2))
    assert looks_like_a_cost(mdp) == (settles_for_nothing(mdp) and bool(mdp.reward.any()))


def test_what_is_paid_on_the_way_is_a_cost_and_what_is_paid_at_the_end_is_not():
    mdp = errands()
    restarting = mdp.restarting_at(mdp.labels["goal"], "goal")
    assert looks_like_a_cost(mdp)
    assert looks_like_a_cost(restarting)
    constant = errands(1.0)  # as PRISM's `true : 1`, which also counts the step in the goal
    assert not looks_like_a_cost(constant), "nobody stays away from it"
    assert looks_like_a_cost(constant.restarting_at(constant.labels["goal"]))
    for model in (errands(5.0), errands(5.0, 0.0)):
        assert not looks_like_a_cost(model)
        assert not looks_like_a_cost(model.restarting_at(model.labels["goal"]))


@pytest.mark.parametrize(
    "mdp",
    [
        errands().minimising(),
        errands().with_reward(np.zeros(4)),
        losses().mdp,
        mw.nine_rooms(7),
        mw.four_rooms(3, step_reward=0.0, wall_reward=0.0),
    ],
    ids=["marked", "no reward", "losses", "nine rooms", "only the goal pays"],
)
def test_what_is_no_cost(mdp):
    assert not looks_like_a_cost(mdp)


def test_only_formats_of_model_checkers_are_asked_about(tmp_path):
    errands_drn, walk_npz = tmp_path / "errands.drn", tmp_path / "walk.npz"
    mw.formats.write_model(errands(), errands_drn)
    mw.formats.write_model(errands(), walk_npz)
    assert may_be_a_cost(mw.read(errands_drn))
    assert may_be_a_cost(mw.read(f"{errands_drn}?restart=goal"))
    for settled in ("minimise=true", "minimise=false"):
        assert not may_be_a_cost(mw.read(f"{errands_drn}?{settled}")), "its source says what it is"
    assert not may_be_a_cost(mw.read(walk_npz))
    assert not may_be_a_cost(errands())
    assert looks_like_a_cost(stop_world().mdp)
    assert not may_be_a_cost(mw.read("nine-rooms:7?step_reward=0&wall_reward=0"))


def test_the_models_of_prism_and_jani():
    pytest.importorskip("stormpy")
    robot = f"{example_file('robot.prism')}?const=N=3,B=6"
    assert not may_be_a_cost(mw.read(f"{robot}&reward=gain")), "it has negative rewards"
    assert not may_be_a_cost(mw.read(f"{robot}&reward=moves")), "every plan moves"
    assert may_be_a_cost(mw.read(f"{robot}&reward=moves&restart=work")), "moves are what the way to work costs"


def test_costs_in_the_states_where_episodes_end_do_not_count(tmp_path):
    path = tmp_path / "errands.drn"
    mw.formats.write_model(errands(goal_pays=3.0), path)
    least = mw.plan(f"{path}?restart=goal&minimise=true", 1)
    assert least.optimal_reward == pytest.approx(-2.0)
    most = mw.plan(f"{path}?restart=goal", 1)
    assert most.optimal_reward == pytest.approx(5.0), "what is maximised is paid for reaching the goal"


@pytest.mark.parametrize("goal_costs", [0.0, 1.0])
def test_preferences_weigh_as_much_as_half_of_what_an_episode_costs(goal_costs):
    model = errands(goal_pays=goal_costs).minimising()
    plans = mw.plan(model.restarting_at(model.labels["goal"]), 2, slack=0.5)
    assert isinstance(plans.maximised, mw.Representative)
    assert plans.maximised.unit == pytest.approx(-plans.optimal_reward / 2), "however even the costs of the steps are"
