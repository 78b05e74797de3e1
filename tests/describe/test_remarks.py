"""Remarks on routes through rooms, on models whose answers are known by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from given_plans import EAST, SOUTH, along, going, plan_set, rooms_world
from hypothesis import given, settings
from hypothesis import strategies as st

import manyways as mw
from manyways.describe import portraits, survey_of
from manyways.describe.wording import joined
from manyways.model.occupancy import chain


def test_two_ways_through_rooms():
    mdp = rooms_world()
    east, south = portraits(plan_set(mdp, [along(mdp, EAST), along(mdp, SOUTH)]))
    assert (east.title, south.title) == ("By the north-east room", "By the south-west room")
    assert east.sentences[:2] == (
        "Goes through the north-east room: east, south.",
        "The only plan through the north-east room.",
    )
    assert not any("Avoids" in sentence for sentence in east.sentences)  # said by what is its own
    assert "The shorter of the two: 8 steps to the goal on average." in east.sentences
    assert "25 % longer than the other plan (10 steps on average against 8)." in south.sentences


def test_a_way_through_a_wall_is_called_one():
    mdp = rooms_world()
    (portrait,) = portraits(plan_set(mdp, [along(mdp, "rddddrrr")]))
    assert portrait.sentences[0] == (
        "Goes through the south-west room: south, east, once through a wall instead of a door."
    )
    assert "Touches 'wall' on every way to the goal." in portrait.sentences


def test_slips_make_a_route_usual():
    mdp = rooms_world(correct=0.95)
    (portrait,) = portraits(mw.plan(mdp, 1))
    assert portrait.sentences[0].startswith("Usually goes through")


def test_other_plans_now_and_then_in_a_room_count():
    """A plan that crosses a room in half of its rounds is not forgotten because its likeliest way is another."""
    mdp = rooms_world()
    east, south = along(mdp, EAST), along(mdp, "ddddrrrr")
    both = 0.45 * east + 0.55 * south
    first, second = portraits(plan_set(mdp, [east, both]))
    assert second.title == "By the south-west room"
    assert not any("only plan through the north-east" in s or "east door" in s for s in first.sentences)
    assert "The only plan through the south-west room." in second.sentences
    chances = survey_of(plan_set(mdp, [both])).facts[0].doors
    assert chances
    assert sorted(round(chance, 9) for chance in chances.values()) == [0.45, 0.45, 0.55, 0.55]


def test_only_means_that_no_other_plan_ever_does():
    mdp = rooms_world()
    east, south = along(mdp, EAST), along(mdp, "ddddrrrr")
    for share, said in ((0.0, "The only plan through"), (0.05, "The only plan that usually goes through")):
        first, _ = portraits(plan_set(mdp, [east, share * east + (1 - share) * south]))
        assert f"{said} the north-east room." in first.sentences
        plans = plan_set(mdp, [share * east + (1 - share) * south])
        doors = survey_of(plans).facts[0].doors
        assert doors is not None
        assert min(doors.values()) == pytest.approx(share or 1.0)  # doors that the plan cannot reach are left out


def spread_rooms(correct: float = 1.0) -> mw.MDP:
    """The rooms, with a start anywhere in the goal's room or, now and then, at the usual place."""
    mdp = rooms_world(correct=correct)
    start = np.zeros(mdp.n_states)
    start[[4 * 7 + 4, 4 * 7 + 5, 8]] = [0.8, 0.1, 0.1]  # r4c4, r4c5, r1c1
    return replace(mdp, start=start)


def test_one_room_is_said_only_of_what_stays_there():
    mdp = spread_rooms()
    policy = going(mdp, ("r4c4", "right"), ("r4c5", "down"), *[(f"r{r}c{c}", a) for r, c, a in
        ((1, 1, "right"), (1, 2, "down"), (2, 2, "right"), (2, 3, "right"), (2, 4, "right"), (2, 5, "down"), (3, 5, "down"))])  # fmt: skip
    for chance, said in ((0.0, "Stays"), (0.1, "Usually stays"), (0.7, "Its likeliest way stays")):
        start = np.zeros(mdp.n_states)
        start[[4 * 7 + 4, 4 * 7 + 5, 8]] = [1 - chance, 0.0, chance]
        if chance > 0.5:  # two starts in other rooms, each less likely than the one at hand
            start[[8, 9, 4 * 7 + 4]] = [0.35, 0.25, 0.4]
        (portrait,) = portraits(plan_set(replace(mdp, start=start), [policy]))
        assert portrait.sentences[0] == f"{said} in one room from the start to the goal."
        assert (portrait.title == "Within one room") == (chance < 0.5)


def test_rooms_of_large_models_are_those_of_the_likeliest_way(monkeypatch):
    monkeypatch.setattr("manyways.describe.survey.VISITED", 0)
    mdp = rooms_world()
    east, south = portraits(plan_set(mdp, [along(mdp, EAST), along(mdp, SOUTH)]))
    assert east.sentences[1] == "The only plan whose likeliest way goes through the north-east room."
    assert not any("Avoids" in sentence for sentence in east.sentences + south.sentences)


def test_most_of_three_avoid_a_room():
    mdp = rooms_world()
    east = along(mdp, EAST)
    _, _, south = portraits(plan_set(mdp, [east, along(mdp, "drrrrddd"), along(mdp, SOUTH)]))
    assert "Avoids the north-east room, which all the others cross." in south.sentences
    half = 0.45 * east + 0.55 * along(mdp, "ddddrrrr")
    _, _, south = portraits(plan_set(mdp, [half, half, along(mdp, SOUTH)]))
    assert not any("Avoids" in sentence or "only plan" in sentence for sentence in south.sentences)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_routes_say_what_the_path_does(seed):
    """The rooms and turns of a route sentence, against a walk of the path cell by cell."""
    rng = np.random.default_rng(seed)
    mdp = mw.read(f"nine-rooms:{rng.integers(50)}")
    plans = mw.plan(mdp, 2, float(rng.choice([0.5, 8.0])), time_limit_s=10)
    assert mdp.layout is not None
    line = {0: "north", 1: "", 2: "south"}, {0: "west", 1: "", 2: "east"}
    for plan, portrait in enumerate(portraits(plans)):
        step, at, way = chain(mdp, plans.policies[plan]).toarray(), int(np.argmax(mdp.start)), []
        while not mdp.labels["goal"][at] and len(way) < 400:
            way.append(at)
            at = int(np.argmax(step[at]))
        if len(way) == 400:
            continue
        rooms = []
        for state in [*way, at]:
            row, column = mdp.layout.position(state)
            if row % 6 and column % 6 and not mdp.layout.blocked[row, column]:
                name = "-".join(filter(None, (line[0][row // 6], line[1][column // 6]))) or "middle"
                rooms += [name] if not rooms or rooms[-1] != name else []
        said = portrait.sentences[0]
        between = rooms[1:-1]
        assert f"through the {joined(between)} room{'s' if len(between) > 1 else ''}: " in said
        assert len(said.split(": ")[1].split(", ")) >= len(rooms) - 1
