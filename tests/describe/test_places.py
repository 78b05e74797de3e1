"""Places: rooms, routes, directions and parts of a map."""

from __future__ import annotations

import numpy as np
import pytest
from given_plans import EAST, SOUTH, along, rooms_world

import manyways as mw
from manyways.describe.places import (
    Passage,
    Route,
    compass_direction,
    likely_path,
    route_of,
    sectors_of,
    shares_by_sector,
)
from manyways.formats.text_maps import world_from_rows
from manyways.model.occupancy import chain
from manyways.model.rooms import rooms_of
from manyways.worlds.rooms import tiled_rooms


def test_rooms_have_compass_names():
    four = rooms_of(rooms_world())
    assert four is not None
    assert four.names == ("north-west room", "north-east room", "south-west room", "south-east room")
    nine = rooms_of(mw.read("nine-rooms:7"))
    assert nine is not None
    assert [name.removesuffix(" room") for name in nine.names] == [
        "north-west", "north", "north-east", "west", "middle", "east", "south-west", "south", "south-east",
    ]  # fmt: skip
    assert nine.listed([1]) == "the north-west room"
    assert nine.listed([2, 5, 6]) == "the north, middle and east rooms"


def test_rooms_without_order_have_numbers():
    rows = ["########", "#S.+...#", "####...#", "#..+..G#", "########"]
    rooms = rooms_of(rooms_world(rows))
    assert rooms is not None
    assert rooms.names == ("room 1", "room 2", "room 3")
    assert (rooms.name(2), rooms.listed([1, 3])) == ("room 2", "rooms 1 and 3")
    assert rooms_of(rooms_world(["#####", "#S..#", "#..G#", "#####"])) is None  # no doors


def test_more_than_nine_rooms_are_numbered_in_reading_order():
    rooms = rooms_of(tiled_rooms(37, 1))
    assert rooms is not None
    assert rooms.names[-1] == "room 16"


def test_the_route_of_a_path():
    mdp = rooms_world()
    rooms = rooms_of(mdp)
    assert rooms is not None
    for moves, visited, turns in ((EAST, (1, 2, 4), ["east", "south"]), (SOUTH, (1, 3, 4), ["south", "east"])):
        path = likely_path(mdp, chain(mdp, along(mdp, moves)))
        assert path is not None
        route = route_of(mdp, rooms, path)
        assert route.rooms == visited
        assert [step.direction for step in route.passages] == turns
        assert all(step.door is not None and mdp.labels["door"][step.door] for step in route.passages)
    through = likely_path(mdp, chain(mdp, along(mdp, "rddddrrr")))  # down through the wall at r3c2
    assert through is not None
    assert [step.door is None for step in route_of(mdp, rooms, through).passages] == [True, False]
    back = [8, 9, 16, 17, 16, 9]  # into the east door and out again
    assert route_of(mdp, rooms, back).passages == ()


def test_long_routes_are_shortened():
    rooms = rooms_of(tiled_rooms(37, 1))
    assert rooms is not None
    assert rooms.listed(list(range(1, 10))) == "rooms 1, 2, 3, 4, 5 and 4 more"
    steps = [Passage(None, direction, 1, 2) for direction in ["east"] * 4 + ["south"] * 3]
    assert Route((1,) * 8, tuple(steps)).turns == "east ×4, south ×3"
    assert Route((1,) * 3, tuple(steps[3:5])).turns == "east, south"


def test_directions():
    assert compass_direction(-2, 0) == "north"
    assert compass_direction(1, 1) == "south-east"
    assert compass_direction(1, -5) == "west"
    assert compass_direction(0, 0) == ""


def test_sectors_are_thirds_without_start_and_goal():
    mdp = world_from_rows(["S" + "." * 8] + ["." * 9] * 7 + ["." * 8 + "G"], "field", enterable_walls=False)
    sectors = sectors_of(mdp)
    assert sectors is not None
    by_hand = (np.arange(81) // 9 // 3) * 3 + np.arange(81) % 9 // 3
    by_hand[[0, 80]] = -1
    assert (sectors.of_state == by_hand).all()
    assert sectors.names[:2] == ("north-west", "north")
    time = np.random.default_rng(0).dirichlet(np.ones(81), size=2)
    shares, edges = shares_by_sector(sectors, time)
    way = time[:, 1:80].sum(axis=1)
    assert shares.sum(axis=1) == pytest.approx(1.0)
    assert shares[:, 4] == pytest.approx(time[:, by_hand == 4].sum(axis=1) / way)
    assert edges["north edge"] == pytest.approx(time[:, 1:9].sum(axis=1) / way)


@pytest.mark.parametrize(
    ("rows", "expected"), [(["S.G"], ("west", "middle", "east")), (["S", "G"], ("north", "south"))]
)
def test_sectors_of_narrow_maps(rows, expected):
    sectors = sectors_of(world_from_rows(rows, "narrow"))
    assert sectors is not None
    assert sectors.names == expected
