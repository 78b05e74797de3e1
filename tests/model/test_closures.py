"""Closures: what is closed, what fails, and what stays as it was."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import manyways as mw
from manyways.formats.text_maps import world_from_rows
from manyways.gallery import example_file
from manyways.model.episodes import episode_ends
from manyways.model.regions import find_regions
from manyways.model.trips import fewest_steps
from manyways.studies.study_worlds import study_world
from problems import random_accessible_mdp


def town() -> mw.MDP:
    """Home - bridge or ford - work - home; each way may fail, and the bus always works but costs."""
    return mw.MDP.from_transitions(
        [
            ("home", "bridge", "bridge", 0.9, -1.0),
            ("home", "bridge", "home", 0.1, -1.0),
            ("home", "bus", "work", 1.0, -5.0),
            ("bridge", "walk", "work", 1.0, 3.0),
            ("work", "back", "home", 1.0, 10.0),
        ],
        labels={"goal": ["work"], "water": ["bridge"]},
        name="town",
    )


def test_a_closed_state_is_not_entered_and_a_closed_action_fails():
    mdp = town()
    bridge, bus = mw.closures(mdp, states="bridge", actions="bus")
    assert (bridge.name, bus.name) == ("state bridge", "action bus")
    closed = bridge.applied(mdp)
    assert closed.name == "town, state bridge closed"
    names = ["home", "bridge", "work"]
    row = closed.transitions.toarray()
    assert row[0].tolist() == [1.0, 0.0, 0.0]  # the whole step fails: it stays at home
    assert closed.reward[0] == -1.0  # and costs what it would have cost
    assert row[1:].tolist() == mdp.transitions.toarray()[1:].tolist()
    failed = bus.applied(mdp)
    assert failed.transitions.toarray()[1].tolist() == [1.0, 0.0, 0.0]
    assert [closed.state_name(s) for s in range(3)] == names
    assert bridge.failing(mdp).tolist() == [0.9, 0.0, 0.0, 0.0]


def test_a_step_that_fails_earns_nothing():
    mdp = town()
    closed = mw.closures(mdp, states="work")[0].applied(mdp)
    walking = 2
    assert mdp.action_name(walking) == "walk"
    assert closed.reward[walking] == 0.0


def test_what_people_would_close():
    on_the_way = [name for name in town().action_names if name != "back"]  # "back" is possible at the goal only
    assert [closure.name for closure in mw.closures(town())] == [f"action {name}" for name in on_the_way]
    assert [closure.name for closure in mw.closures(town(), labels=True)] == ["goal", "water"]
    doors = mw.closures(mw.read("nine-rooms:8"))
    assert len(doors) == 12
    assert doors[0].name.startswith("door between the ")
    assert doors[0].name.endswith(" rooms")
    assert len({closure.name for closure in doors}) == 12
    assert all(closure.states.sum() == 1 for closure in doors)
    lake = mw.read("gym:FrozenLake-v1")  # its actions are directions, and holes are bad enough
    with pytest.raises(mw.SettingError, match="no doors, passages, labels or actions to close that people"):
        mw.closures(lake)
    assert [closure.name for closure in mw.closures(lake, actions=True)] == [
        f"action {name}" for name in lake.action_names
    ]
    with pytest.raises(mw.SettingError, match="no doors, passages, labels or actions to close"):
        mw.closures(mw.MDP.from_transitions([("a", "go", "a", 1.0, 0.0)]))


def test_regions_of_a_map():
    mdp = mw.read("nine-rooms:8")
    rooms = mw.closures(mdp, regions=True)
    assert sum(int(closure.states.sum()) for closure in rooms) <= mdp.n_states
    assert any("room" in closure.name for closure in rooms)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"labels": "watr"}, "there is no label 'watr' to close; did you mean 'water'"),
        ({"actions": "fly"}, "there is no action 'fly' to close"),
        ({"states": "moon"}, "there is no state 'moon' to close"),
        ({"labels": ()}, "nothing of town is to be closed"),
    ],
)
def test_what_cannot_be_closed_is_named(settings, words):
    with pytest.raises(mw.ManywaysError, match=words):
        mw.closures(town(), **settings)


@given(st.integers(0, 10**6))
def test_closing_moves_chance_from_the_closed_part_to_staying(seed):
    rng = np.random.default_rng(seed)
    mdp = random_accessible_mdp(rng, kind="restart")
    state = int(rng.integers(mdp.n_states))
    closure = mw.closures(mdp, states=[state])[0]
    before, after = mdp.transitions.toarray(), closure.applied(mdp).transitions.toarray()
    own = mdp.choice_state
    outside = own != state
    ends = episode_ends(mdp)
    back = np.zeros(mdp.n_choices) if ends is None else ends * mdp.start[state]
    np.testing.assert_allclose(after[outside, state], back[outside], atol=1e-12)
    np.testing.assert_array_equal(after[~outside], before[~outside])
    moved = before[:, state] - after[:, state]
    stayed = after[np.arange(len(own)), own] - before[np.arange(len(own)), own]
    np.testing.assert_allclose(stayed[outside], moved[outside], atol=1e-12)
    others = np.ones(before.shape, bool)
    others[:, state] = False
    others[np.arange(len(own)), own] = False
    np.testing.assert_array_equal(after[others], before[others])


def test_doors_are_named_by_the_rooms_that_they_join():
    """Two doors between the same two rooms are told apart; a door that leads nowhere has the name of its cell."""
    rows = ["S..#....", "...D....", "...#...G", "...D....", "...#####", "...D#..#"]
    mdp = world_from_rows([row.replace("D", ".") for row in rows], "pair", enterable_walls=False)
    doors = [f"r{r}c{row.index('D')}" for r, row in enumerate(rows) if "D" in row]
    labelled = replace(
        mdp, labels={**mdp.labels, "door": np.isin([mdp.state_name(s) for s in range(mdp.n_states)], doors)}
    )
    assert [closure.name for closure in mw.closures(labelled)] == [
        "door between the west and east rooms (r1c3)",
        "door between the west and east rooms (r3c3)",
        "door r5c3",
    ]


def test_the_state_in_which_every_episode_ends_is_not_closed():
    errands = mw.MDP.from_transitions(
        [("home", "bus", "work", 1.0, -3.0), ("home", "walk", "work", 1.0, -2.0), ("work", "rest", "work", 1.0, 0.0)],
        labels={"there": ["work"]},
    ).restarting_at([1], "there")
    assert [closure.name for closure in mw.closures(errands)] == ["action bus", "action walk"], (
        "resting at the end is on nobody's way"
    )


def test_the_corridors_of_a_map_are_what_may_be_closed():
    """Two halls: a corridor that two pillars divide, a straight one, and a desk that leaves a gap to the wall."""
    rows = [list("#" * 44) for _ in range(26)]
    for row in range(1, 25):
        rows[row][1:15] = rows[row][29:43] = "." * 14
    for row in (*range(3, 7), *range(18, 22)):
        rows[row][15:29] = "." * 14
    for row, column in ((3, 18), (4, 18), (5, 24), (6, 24)):  # pillars
        rows[row][column] = "#"
    for row in range(10, 13):
        rows[row][3:8] = "#" * 5  # a desk
    rows[12][12], rows[12][38] = "S", "G"
    mdp = world_from_rows(["".join(row) for row in rows], "halls", enterable_walls=False)
    passages = [name for name in find_regions(mdp).names if "passage" in name]
    found = mw.closures(mdp)
    assert [closure.name for closure in found] == ["north passage", "south passage"]
    assert len(passages) > 2
    cells = [[mdp.state_name(s) for s in np.flatnonzero(closure.states)] for closure in found]
    row_of = [{int(name[1:].partition("c")[0]) for name in names} for names in cells]
    assert row_of == [{3, 4, 5, 6}, {18, 19, 20, 21}]
    assert fewest_steps(found[0].applied(mdp)) == fewest_steps(mdp)  # by the straight one
    assert fewest_steps(found[1].applied(found[0].applied(mdp))) is None


def test_closed_passages_of_a_field_are_those_that_it_has():
    """Where no passage joins two rooms, each of them counts."""
    field = study_world("field:802")
    names = {name for name in find_regions(field).names if "passage" in name}
    assert {closure.name for closure in mw.closures(field)} == names


@pytest.mark.parametrize(
    ("action", "move"),
    [
        ("down", True),
        ("South-East", True),
        ("up left", True),
        ("go_left", True),
        ("drop off", False),
        ("lift", False),
        ("go", False),
    ],
)
def test_directions_are_no_closures(action, move):
    rows = [("a", action, "b", 1.0, 0.0), ("a", "bus", "b", 1.0, 0.0), ("b", "back", "a", 1.0, 1.0)]
    names = [closure.name for closure in mw.closures(mw.MDP.from_transitions(rows))]
    assert (f"action {action}" not in names) == move
    assert "action bus" in names


def test_a_street_net_is_no_passage():
    """The city's one passage has more than a quarter of all cells: nothing is left but "stop"."""
    city = mw.read(f"{example_file('city.map')}?start=1,1&goal=46,29")
    assert [closure.name for closure in mw.closures(city)] == ["action stop"]


def test_what_is_bad_to_be_in_is_not_closed():
    """Rough ground costs more than the rest: nobody needs to close it."""
    rows = ["S........", ".........", "..~~~~...", ".........", "........G"]
    field = world_from_rows([row.replace("~", ".") for row in rows], "field", enterable_walls=False)
    rough = np.array([rows[r][c] == "~" for r, c in (field.layout.position(s) for s in range(field.n_states))])
    for worse, expected in ((-3.0, False), (0.0, True)):
        reward = field.reward + worse * rough[field.choice_state]
        mdp = replace(field, reward=reward, labels={**field.labels, "rough": rough})
        try:
            found = [closure.name for closure in mw.closures(mdp)]
        except mw.SettingError:
            found = []
        assert ("rough" in found) == expected
