"""Bans: the policies that are left are those, and only those, that never enter or do what is banned."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from given_bans import behaviours, random_bans, with_marks
from hypothesis import given, settings
from hypothesis import strategies as st

import manyways as mw
from manyways import MDP, ModelError
from problems import random_mdp


def commute() -> MDP:
    """From home by bus or bike, which may break down on the way; from work back by train or on foot."""
    return MDP.from_transitions(
        [
            ("home", "bus", "work", 1.0, -3.0),
            ("home", "bike", "work", 0.9, -1.0),
            ("home", "bike", "ditch", 0.1, -1.0),
            ("ditch", "push", "home", 1.0, -5.0),
            ("work", "train", "home", 1.0, 2.0),
            ("work", "walk", "home", 1.0, 1.0),
        ],
        labels={"danger": ["ditch"], "indoors": ["home", "work"]},
        name="commute",
    )


def offered(mdp: MDP) -> set[tuple[str, str]]:
    return {(mdp.state_name(int(s)), mdp.action_name(x)) for x, s in enumerate(mdp.choice_state)}


# ---- against enumeration ----------------------------------------------------------------------


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_the_policies_left_are_those_that_keep_the_bans(seed):
    rng = np.random.default_rng(seed)
    mdp = with_marks(random_mdp(rng, 5, 3), rng)
    bans = random_bans(mdp, rng)
    good = {b for b in behaviours(mdp) if bans.kept_by(b)}
    if not good:
        with pytest.raises(ModelError, match=r"^no plan is left for"):
            mdp.without(**bans.arguments(mdp, rng))
        return
    rest = mdp.without(**bans.arguments(mdp, rng))
    assert set(behaviours(rest)) == good
    assert rest.start.sum() == pytest.approx(1)
    assert mw.reachable_from_start(rest).all()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_names_and_numbers_come_through(seed):
    rng = np.random.default_rng(seed)
    mdp = with_marks(random_mdp(rng, 5, 3), rng)
    try:
        rest = mdp.without(**random_bans(mdp, rng).arguments(mdp, rng))
    except ModelError:
        return
    assert mdp.state_names is not None
    for x in range(rest.n_choices):
        name = rest.state_name(int(rest.choice_state[x]))
        s = mdp.state_names.index(name)
        same = [y for y in range(*mdp.first_choice[s : s + 2]) if mdp.actions[y] == rest.actions[x]]
        assert len(same) == 1
        assert rest.reward[x] == mdp.reward[same[0]]
        assert {rest.state_name(int(t)): p for t, p in enumerate(rest.transitions[[x]].toarray()[0]) if p} == {
            mdp.state_name(int(t)): p for t, p in enumerate(mdp.transitions[same].toarray()[0]) if p
        }
        assert {label: bool(mask[rest.choice_state[x]]) for label, mask in rest.labels.items()} == {
            label: bool(mask[s]) for label, mask in mdp.labels.items()
        }
    assert rest.action_names == mdp.action_names
    assert rest.observations is not None
    assert rest.observations.tolist() == [10 * mdp.state_names.index(name) for name in rest.state_names or ()]


# ---- the ways to say it -----------------------------------------------------------------------

SAFE = {("home", "bus"), ("work", "train"), ("work", "walk")}


@pytest.mark.parametrize(
    "ban",
    [
        {"states": ["ditch"]},
        {"states": "ditch"},
        {"states": {"ditch"}},
        {"states": [2]},
        {"states": 2},
        {"states": np.array([False, False, True])},
        {"labels": "danger"},
        {"labels": ("danger",)},
        {"actions": "bike"},
        {"actions": ["push"]},
        {"choices": [("home", "bike")]},
        {"choices": ("ditch", "push")},
        {"choices": [1]},
        {"choices": np.arange(5) == 1},
    ],
)
def test_one_ban_said_in_many_ways(ban):
    mdp = commute()
    assert [mdp.state_name(s) for s in range(3)] == ["home", "work", "ditch"]
    rest = mdp.without(**ban)
    assert offered(rest) == SAFE
    assert rest.source is None


def test_several_bans_at_once():
    assert offered(commute().without(labels="danger", choices=[("work", "walk")])) == SAFE - {("work", "walk")}
    assert offered(commute().without(states=[], labels=[], actions=[], choices=[])) == offered(commute())


def test_all_states_of_a_name_that_occurs_twice_are_banned():
    twins = replace(commute(), state_names=("home", "away", "away"))
    with pytest.raises(ModelError, match="no plan is left"):
        twins.without(states="away")


def test_a_drawn_model_stays_where_it_is():
    walls = np.zeros((3, 3), bool)
    walls[1, 1] = True
    mdp = mw.grid_world(walls, (0, 0), (2, 2), correct_transition=1.0)
    rest = mdp.without(labels="wall", states="r0c2")
    assert rest.layout is not None
    # r1c2 is left out, since the goal, which leads back to the start, is the only way to it.
    assert [rest.state_name(s) for s in range(rest.n_states)] == ["r0c0", "r0c1", "r1c0", "r2c0", "r2c1", "r2c2"]
    assert rest.layout.shape == (3, 3)


def test_an_end_of_an_episode_can_be_banned_by_its_name():
    """Where a step ends an episode, no state is left that could have the label."""
    mdp = commute()
    ends = {"flat": np.array([0.0, 0.0, 0.5, 0.0, 0.0])}
    mdp = replace(mdp, transitions=mdp.transitions[[0, 1, 4, 3, 4]], ends=ends)  # now the walk may end in a flat tyre
    assert offered(mdp.without(labels="flat")) == offered(mdp) - {("work", "train")}


def test_frozen_lake_without_holes():
    """On the large lake some policies never fall into a hole: no outcome in the environment's table of what is left does."""
    gymnasium = pytest.importorskip("gymnasium")
    lake = mw.read("gym:FrozenLake-v1?map_name=8x8&without=hole")
    assert lake.source == "gym:FrozenLake-v1?map_name=8x8&terminal=restart&without=hole"
    assert mw.read(lake.source).digest == lake.digest
    assert not lake.ends["hole"].any()
    assert lake.ends["goal"].any()
    inner = gymnasium.make("FrozenLake-v1", map_name="8x8").unwrapped
    assert lake.observations is not None
    for x, s in enumerate(lake.choice_state):
        outcomes = inner.P[int(lake.observations[s])][int(lake.actions[x])]
        assert all(inner.desc.ravel()[target] != b"H" for chance, target, *_ in outcomes if chance > 0)


# ---- refusals ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ban", "message"),
    [
        ({"labels": "indoors"}, "the ban on the label 'indoors' leaves none, because from the start in 'home'"),
        ({"actions": ["bus", "bike"]}, "the ban on the action 'bus' and on the action 'bike' leave none together"),
        ({"labels": "danger", "actions": "bus"}, "on the label 'danger' and on the action 'bus' leave none together"),
        ({"labels": ["danger", "indoors"]}, "the ban on the label 'indoors' leaves none"),
        ({"states": ["work", "ditch"]}, "the ban on the states 'work', 'ditch' leaves none"),
        ({"choices": [0, 1]}, "the ban on the choices 'bus' in 'home', 'bike' in 'home' leaves none"),
    ],
)
def test_no_plan_is_left(ban, message):
    with pytest.raises(ModelError) as caught:
        commute().without(**ban)
    assert str(caught.value).startswith("no plan is left for commute: ")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("ban", "message"),
    [
        ({"labels": "dangr"}, "there is no label 'dangr' to ban; did you mean 'danger'? there are 'danger', 'indoors'"),
        ({"actions": "fly"}, "there is no action 'fly' to ban; there are 'bus', 'bike', 'push', 'train', 'walk'"),
        ({"states": ["hom"]}, "there is no state 'hom' to ban; did you mean 'home'?"),
        ({"choices": [("home", "train")]}, "no action in state 'home' called 'train' to ban; there are 'bus', 'bike'"),
        ({"choices": [("x", "bus")]}, "there is no state 'x' to ban"),
        ({"choices": "bus"}, "choices by name must be pairs (state, action), found 'bus'"),
        ({"choices": [("a", "b", "c")]}, "choices by name must be pairs (state, action)"),
        ({"choices": [("a", "b"), ("c",)]}, "choices must be a list of integers, or a mask"),
        ({"states": [3]}, "states must lie in 0..2, found 3..3"),
        ({"states": [True]}, "a mask of states must have 3 entries"),
        ({"choices": [-1]}, "choices must lie in 0..4, found -1..-1"),
        ({"states": [0.5]}, "states must be a list of integers"),
        ({"labels": 3}, "expected a name or a list of names, found 3"),
    ],
)
def test_what_there_is_not(ban, message):
    with pytest.raises(ModelError, match=re.escape(message)):
        commute().without(**ban)


def test_of_many_states_a_message_names_a_few():
    with pytest.raises(ModelError, match=r"'r0c9' and 351 more$"):
        mw.nine_rooms(7).without(states="nowhere")


# ---- after reading ----------------------------------------------------------------------------


def test_without_is_a_setting_of_every_source(tmp_path):
    (tmp_path / "map.txt").write_text("S..#.\n..#..\n....G\n")
    source = f"{tmp_path / 'map.txt'}?correct_transition=1&without=wall&without=start"
    with pytest.raises(ModelError, match="the ban on the label 'start' leaves none"):
        mw.read(source)
    rest = mw.read(source.removesuffix("&without=start"))
    assert not rest.labels["wall"].any()
    assert rest.source == source.removesuffix("&without=start")
    assert mw.read("four-rooms:3?correct_transition=1&without=wall").n_states < mw.four_rooms(3).n_states


def test_restarts_come_before_bans(tmp_path):
    """What comes after the end of an episode does not matter: here only the goal leads into the trap."""
    mdp = MDP.from_transitions(
        [("a", "go", "goal", 1.0, 1.0), ("goal", "on", "trap", 1.0, 0.0), ("trap", "stay", "trap", 1.0, 0.0)],
        labels={"goal": ["goal"], "trap": ["trap"]},
    )
    mw.formats.write_model(mdp, tmp_path / "model.drn")
    assert mw.read(f"{tmp_path / 'model.drn'}?without=trap&restart=goal").n_states == 2
    with pytest.raises(ModelError, match="no plan is left"):
        mw.read(f"{tmp_path / 'model.drn'}?without=trap")
