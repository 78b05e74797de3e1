"""Which steps end an episode, from the model alone."""

from __future__ import annotations

import numpy as np
import pytest

import manyways as mw
from manyways.model.episodes import episode_ends, goal_ends, restart_steps

ROWS = [
    ("start", "short", "goal", 1.0, 0.0),
    ("start", "long", "middle", 1.0, 0.0),
    ("middle", "on", "goal", 1.0, 0.0),
    ("goal", "again", "start", 1.0, 1.0),
]


def names(mdp: mw.MDP, marked: np.ndarray | None) -> list[str]:
    """The choices with a chance of more than zero, by the names of state and action."""
    assert marked is not None
    return [f"{mdp.state_name(int(mdp.choice_state[x]))} {mdp.action_name(x)}" for x in np.flatnonzero(marked > 0)]


def test_a_goal_that_leads_back_to_the_start_ends_episodes():
    mdp = mw.MDP.from_transitions(ROWS, labels={"goal": ["goal"]})
    ends = episode_ends(mdp)
    assert names(mdp, ends) == names(mdp, goal_ends(mdp)) == ["goal again"]
    assert ends.max() == 1.0
    assert names(mdp, restart_steps(mdp, ends)) == ["goal again"]


@pytest.mark.parametrize(
    "changed",
    [
        {"labels": {}},
        {"labels": {"goal": []}},
        {"labels": {"target": ["goal"]}},
        {"labels": {"goal": ["goal"]}, "start": "middle"},
        {"labels": {"goal": ["goal"]}, "start": {"start": 0.5, "middle": 0.5}},
        {"labels": {"goal": ["goal", "middle"]}},
    ],
    ids=[
        "no labels",
        "empty label",
        "another label",
        "another start",
        "half of the start",
        "one goal does not restart",
    ],
)
def test_models_without_episodes(changed):
    mdp = mw.MDP.from_transitions(ROWS, **changed)
    assert episode_ends(mdp) is None
    assert goal_ends(mdp) is None


def test_every_action_of_a_goal_must_lead_back():
    stays = [*ROWS, ("goal", "stay", "goal", 1.0, 0.0)]
    assert episode_ends(mw.MDP.from_transitions(stays, labels={"goal": ["goal"]})) is None


def test_a_goal_that_restarts_at_several_places():
    rows = [("a", "go", "goal", 1.0, 0.0), ("b", "go", "goal", 1.0, 0.0)]
    rows += [("goal", "again", "a", 0.25, 0.0), ("goal", "again", "b", 0.75, 0.0)]
    for start, found in (({"a": 0.25, "b": 0.75}, True), ({"a": 0.75, "b": 0.25}, False)):
        mdp = mw.MDP.from_transitions(rows, start=start, labels={"goal": ["goal"]})
        assert (episode_ends(mdp) is not None) == found


def test_restarting_says_how_episodes_end():
    stays = [*ROWS[:3], ("goal", "stay", "goal", 1.0, 0.0)]
    mdp = mw.MDP.from_transitions(stays, labels={"goal": ["goal"]})
    again = mdp.restarting_at(mdp.labels["goal"], "goal")
    assert names(again, episode_ends(again)) == names(again, goal_ends(again)) == ["goal stay"]
    other = mdp.restarting_at(mdp.labels["goal"])  # the end is called "end"; a single kind of end is the goal
    assert names(other, goal_ends(other)) == ["goal stay"]


def test_several_kinds_of_ends_add_up_and_only_the_goal_is_the_goal():
    rows = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]])
    ends = {"goal": np.array([0.25, 0.0, 1.0]), "hole": np.array([0.5, 1.0, 0.0])}
    mdp = mw.MDP.from_csr(rows, np.zeros(3), [0, 2, 3], ends=ends)
    np.testing.assert_array_equal(episode_ends(mdp), [0.75, 1.0, 1.0])
    np.testing.assert_array_equal(goal_ends(mdp), [0.25, 0.0, 1.0])
    no_goal = mw.MDP.from_csr(rows, np.zeros(3), [0, 2, 3], ends={"cliff": ends["goal"], "hole": ends["hole"]})
    assert goal_ends(no_goal) is None
    np.testing.assert_array_equal(episode_ends(no_goal), [0.75, 1.0, 1.0])


def test_only_states_that_surely_end_are_no_part_of_the_way():
    rows = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]])
    mdp = mw.MDP.from_csr(rows, np.zeros(3), [0, 2, 3], ends={"goal": np.array([1.0, 0.5, 1.0])})
    np.testing.assert_array_equal(restart_steps(mdp, mdp.ends["goal"]), [False, False, True])


def test_gymnasium_environments_end_in_the_middle_of_a_step():
    pytest.importorskip("gymnasium")
    mdp = mw.read("gym:FrozenLake-v1")
    assert set(mdp.ends) == {"goal", "hole"}
    np.testing.assert_allclose(episode_ends(mdp), mdp.ends["goal"] + mdp.ends["hole"])
    np.testing.assert_allclose(goal_ends(mdp), mdp.reward)  # 1 for reaching the goal
    assert not restart_steps(mdp, episode_ends(mdp)).any()


def test_the_papers_worlds_have_episodes():
    mdp = mw.read("nine-rooms:0")
    assert not mdp.ends
    ends = episode_ends(mdp)
    np.testing.assert_array_equal(ends, mdp.labels["goal"][mdp.choice_state].astype(float))
