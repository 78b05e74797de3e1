"""Rooms and passages of maps: drawn by hand, turned, with furniture; and what always holds."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage

import manyways as mw
from manyways import SettingError
from manyways.formats.text_maps import world_from_rows
from manyways.model.regions import _cut, _distance_to_walls, _names, find_regions, widths
from problems import KNOWN


def regions_of(free):
    number, is_passage = _cut(free)
    return number, _names(number, is_passage)


def building(wall=19, passages=((12, 5), (47, 6), (85, 5))):
    """(rows, columns) free cells: two halls of 27 x 98 cells, with furniture, and passages through the wall between."""
    free = np.zeros((56 + wall, 100), bool)
    free[1:28, 1:-1] = free[28 + wall : -1, 1:-1] = True
    for column, width in passages:
        free[28 : 28 + wall, column : column + width] = True
    free[12:16, 20:28] = free[10:17, 60:64] = free[-16:-13, 40:48] = False
    return free


def turned(free, angle):
    found = ndimage.rotate(free.astype(float), angle, order=1, cval=0.0) > 0.5
    part, _ = ndimage.label(found)
    return part == 1 + np.argmax(np.bincount(part.ravel())[1:])


@pytest.mark.parametrize("wall", [1, 2, 6, 19])
def test_a_building_with_three_passages(wall):
    number, names = regions_of(building(wall))
    assert sorted(names) == sorted(["north room", "west passage", "middle passage", "east passage", "south room"])
    middle = 28 + wall // 2
    for name, column in (("west passage", 14), ("middle passage", 49), ("east passage", 87)):
        assert names[number[middle, column] - 1] == name
    assert names[number[5, 5] - 1] == names[number[26, 97] - 1] == "north room"


@pytest.mark.parametrize(("wall", "angle"), list(product([4, 19], [10, 20, 45, 70])))
def test_turned_buildings_have_the_same_regions(wall, angle):
    number, names = regions_of(turned(building(wall), angle))
    assert sorted(name.split()[1] for name in names) == ["passage"] * 3 + ["room"] * 2
    rooms = [n for n, name in enumerate(names, 1) if name.endswith("room")]
    assert all(np.count_nonzero(number == room) > 2000 for room in rooms)


@pytest.mark.parametrize(("kind", "seed"), list(product(["four-rooms", "nine-rooms"], range(10))))
def test_the_room_worlds_have_their_rooms_and_doors(kind, seed):
    """Every room that the doors separate is one region, and no door belongs to a room."""
    mdp = mw.read(f"{kind}:{seed}")
    found = find_regions(mdp)
    door = mdp.labels["door"]
    open_cells = np.zeros(mdp.layout.blocked.size, bool)
    open_cells[mdp.layout.cells[~door]] = True
    area, count = ndimage.label(open_cells.reshape(mdp.layout.shape) & ~mdp.layout.blocked)
    of_cell = np.full(mdp.layout.blocked.size, -1)
    of_cell[mdp.layout.cells] = found.of_state
    main = [np.bincount(of_cell[area.ravel() == n]).argmax() for n in range(1, count + 1)]
    assert len({found.names[region] for region in main}) == count
    inside = np.array([(of_cell[area.ravel() == n] == main[n - 1]).mean() for n in range(1, count + 1)])
    assert inside.min() > 0.6
    assert inside.mean() > 0.9
    assert not np.isin(found.of_state[door], main).any()
    assert (found.of_state[mdp.layout.blocked.ravel()[mdp.layout.cells]] == -1).all()


def test_corridors_with_rooms_and_doors():
    rows = [
        "#####################",
        "#......#......#.....#",
        "#......#......#.....#",
        "#......#......#.....#",
        "#......#......#.....#",
        "#......#......#.....#",
        "###.######.######.###",
        "#...................#",
        "#S.................G#",
        "#...................#",
        "#####################",
    ]
    mdp = world_from_rows(rows, "office", enterable_walls=False)
    found = find_regions(mdp)
    at = {mdp.layout.position(s): found.names[found.of_state[s]] for s in range(mdp.n_states)}
    assert {at[2, 2], at[2, 9], at[2, 17]} == {"west room", "middle room", "east room"}
    assert len({at[6, 3], at[6, 10], at[6, 17], at[8, 10]}) == 4
    assert all(at[8, column] == at[8, 1] for column in range(1, 20))
    assert at[8, 1].split()[1] == "passage"  # it is long


def test_dead_ends_and_niches_belong_to_their_room():
    free = np.zeros((20, 30), bool)
    free[1:12, 1:20] = True
    free[5, 20:27] = True  # a dead end
    free[12:14, 3:6] = True  # a niche
    number, names = regions_of(free)
    assert names == ("room",)
    assert ((number == 1) == free).all()


def test_furniture_does_not_divide_a_room_but_a_wall_with_doors_does():
    free = np.zeros((32, 32), bool)
    free[1:-1, 1:-1] = True
    free[14:17, 13:18] = False
    assert regions_of(free)[1] == ("room",)
    free[15, :] = False
    free[15, [4, 5, 26, 27]] = True  # the wall between the doors is an obstacle that touches nothing
    assert sorted(regions_of(free)[1]) == ["east passage", "north room", "south room", "west passage"]


def test_open_fields_and_mazes_are_one_region():
    assert regions_of(np.ones((30, 40), bool))[1] == ("room",)
    maze = np.zeros((9, 9), bool)
    maze[1::2, 1:-1] = maze[1:-1, 1::2] = True
    assert len(regions_of(maze)[1]) == 1


def test_names_that_would_be_the_same_are_numbered():
    _, names = regions_of(building(passages=((4, 4), (14, 4), (24, 4), (85, 5))))
    assert {name for name in names if name.startswith("west")} == {f"west passage {n}" for n in (1, 2, 3)}
    assert "east passage" in names


maps = st.tuples(st.integers(1, 16), st.integers(1, 16), st.floats(0.0, 0.6), st.integers(0, 2**32 - 1))


@settings(max_examples=60)
@given(maps)
def test_every_free_cell_is_in_one_region_and_names_differ(drawn):
    high, wide, share, seed = drawn
    free = np.random.default_rng(seed).random((high, wide)) >= share
    number, names = regions_of(free)
    assert ((number > 0) == free).all()
    assert sorted(set(number[free].tolist())) == list(range(1, len(names) + 1))
    assert len(set(names)) == len(names)
    first = [np.flatnonzero(number.ravel() == n)[0] for n in range(1, len(names) + 1)]
    assert first == sorted(first)  # in reading order


@settings(max_examples=20)
@given(st.tuples(st.integers(1, 9), st.integers(1, 10), st.floats(0.0, 0.4), st.integers(0, 2**32 - 1)))
def test_widths_are_those_of_the_largest_discs(drawn):
    """Every disc is laid on every cell: the cells nearer to its middle than its radius, none of them blocked or outside."""
    high, wide, share, seed = drawn
    free = np.random.default_rng(seed).random((high, wide)) >= share
    row, column = np.mgrid[-2 : high + 2, -2 : wide + 2]
    padded = np.pad(free, 2)
    expected = np.zeros((high + 4, wide + 4), int)
    for r, c in product(range(high), range(wide)):
        away = np.hypot(row - r, column - c)
        for diameter in range(1, min(high, wide) + 1):
            disc = away < (diameter + 1) / 2
            if padded[disc].all() and 2 * away[~padded].min() >= diameter + 1:
                expected[disc] = np.maximum(expected[disc], diameter)
    found, middle = widths(free, _distance_to_walls(free))
    np.testing.assert_array_equal(found, expected[2:-2, 2:-2])
    assert free.ravel()[middle[free]].all()


def test_models_without_a_map_are_refused_in_the_language_of_the_caller():
    with pytest.raises(
        SettingError, match=r"single has no map in which regions could be found; use Labels\(\)"
    ) as caught:
        find_regions(KNOWN["single"].mdp)
    assert "use --behaviour labels" in caught.value.on_command_line
