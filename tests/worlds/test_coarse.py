"""Coarse worlds: exactly the places that are connected on the fine map are connected on the coarse one."""

from __future__ import annotations

from collections import deque

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components

import manyways as mw
from manyways.worlds.coarse import coarse_world, pieces_of, thinned
from manyways.worlds.grid import grid_world

OPEN = {"directions": 8, "enterable_walls": False}


def drawn(*rows: str) -> np.ndarray:
    return np.array([[cell == "#" for cell in row] for row in rows])


def flooded(free: np.ndarray, start: tuple[int, int]) -> np.ndarray:
    """The cells that four directions connect with the start; plain breadth-first search."""
    reached, queue = np.zeros(free.shape, bool), deque([start])
    reached[start] = True
    while queue:
        row, column = queue.popleft()
        for there in ((row + 1, column), (row - 1, column), (row, column + 1), (row, column - 1)):
            inside = 0 <= there[0] < free.shape[0] and 0 <= there[1] < free.shape[1]
            if inside and free[there] and not reached[there]:
                reached[there] = True
                queue.append(there)
    return reached


def read(blocked, n, start, goal, **changes):
    """The world, or the sentence with which it is refused."""
    try:
        return coarse_world(blocked, n, start, goal, **(OPEN | changes))
    except mw.ModelError as error:
        return str(error)


@st.composite
def maps(draw):
    """A map with random pixels or random walls with doors, and two free pixels."""
    rows, columns = draw(st.integers(2, 14)), draw(st.integers(2, 14))
    if draw(st.booleans()):
        cells = draw(st.lists(st.booleans(), min_size=rows * columns, max_size=rows * columns))
        blocked = np.array(cells).reshape(rows, columns)
    else:
        blocked = np.zeros((rows, columns), bool)
        for row in draw(st.lists(st.integers(0, rows - 1), max_size=3)):
            blocked[row] = True
            blocked[row, draw(st.integers(0, columns - 1))] = draw(st.booleans())
        for column in draw(st.lists(st.integers(0, columns - 1), max_size=3)):
            blocked[:, column] = True
            blocked[draw(st.integers(0, rows - 1)), column] = draw(st.booleans())
    ends = [draw(st.tuples(st.integers(0, rows - 1), st.integers(0, columns - 1))) for _ in range(2)]
    for end in ends:
        blocked[end] = False
    return blocked, *ends, draw(st.integers(1, 6))


@settings(max_examples=200, deadline=None)
@given(maps(), st.sampled_from([4, 8]))
def test_start_and_goal_are_connected_exactly_if_their_pixels_are(case, directions):
    blocked, start, goal, n = case
    found = read(blocked, n, start, goal, directions=directions)
    if isinstance(found, str):
        joined = flooded(~blocked, start)[goal]
        together = start[0] // n == goal[0] // n and start[1] // n == goal[1] // n
        assert "are not connected" in found if not joined else "in the same cell" in found and together, found
        return
    assert flooded(~blocked, start)[goal]
    assert found.labels["start"].sum() == found.labels["goal"].sum() == 1
    # From every state the goal can be reached, and the start leads there.
    assert mw.reachable_from_start(found).all()
    towards = mw.end_components(found)
    assert len(towards) == 1
    for end, label in ((start, "start"), (goal, "goal")):
        row, column = found.layout.position(int(np.flatnonzero(found.labels[label])[0]))
        assert (row, column) == (end[0] // n, end[1] // n)


@settings(max_examples=150, deadline=None)
@given(maps())
def test_all_pieces_that_remain_are_connected_as_on_the_fine_map(case):
    """Any two states, not only start and goal; and each lies in a free pixel of its own."""
    blocked, start, goal, n = case
    pieces = thinned(pieces_of(blocked, n, (start, goal)), n)
    room = connected_components(pieces.graph, directed=False)[1]
    rows, columns = np.divmod(pieces.cells, pieces.shape[1])
    whole = pieces.sizes == n * n
    middle = np.where(whole[:, None], 0.5 / n if n % 2 == 0 else 0.0, pieces.offsets)  # of a whole cell, any pixel
    at = np.column_stack([(rows + middle[:, 1] + 0.5) * n, (columns + middle[:, 0] + 0.5) * n])
    pixels = [(int(r), int(c)) for r, c in np.floor(at + 1e-9)]
    assert not any(blocked[pixel] for pixel in pixels)
    assert len(set(pixels)) == len(pixels)
    for number, pixel in enumerate(pixels):
        reached = flooded(~blocked, pixel)
        assert [bool(reached[other]) for other in pixels] == (room == room[number]).tolist()


@settings(max_examples=100, deadline=None)
@given(maps())
def test_a_cell_of_one_pixel_gives_the_world_of_the_map(case):
    blocked, start, goal, _ = case
    fine = read(blocked, 1, start, goal)
    if not isinstance(fine, str):
        assert fine.digest == grid_world(blocked, start, goal, **OPEN).digest
        assert fine.action_names == grid_world(blocked, start, goal, **OPEN).action_names


def test_all_doors_survive_and_walls_stay_closed():
    """Two halls and a wall of two pixels, with doors of one, two and five pixels, wherever the cells begin."""
    for shift in range(6):
        blocked = np.ones((30, 70), bool)
        blocked[1:13, 1:69] = blocked[15:29, 1:69] = False
        doors = [6 + shift, 30 + shift, 52 + shift]
        for width, door in zip((1, 2, 5), doors, strict=True):
            blocked[13:15, door : door + width] = False
        mdp = read(blocked, 6, (3, 3), (25, 60))
        # Row 2 has the wall: its states are the doors, and only there does the upper half meet the lower one.
        row, column = np.divmod(mdp.layout.cells, mdp.layout.shape[1])
        passed = column[row == 2]
        for width, door in zip((1, 2, 5), doors, strict=True):
            assert np.isin(range(door // 6, (door + width - 1) // 6 + 1), passed).any()
        assert len(set(passed)) == 3


def test_a_wall_of_one_pixel_divides_a_cell_into_two_states():
    blocked = drawn("...#...", "...#...", "...#...", ".......")
    mdp = read(blocked, 7, (0, 0), (0, 6))
    assert (
        mdp
        == "the start (row 0, column 0 of the image) and the goal (row 0, column 6) lie in the same cell of 7 x 7 pixels; lower coarsen"
    )
    # Two corridors in one cell, one above the other, that only meet at the right end.
    blocked = drawn("......", "#####.", "......")
    mdp = read(blocked, 3, (0, 0), (2, 0), correct_transition=1.0)
    assert mdp.layout.cells.tolist() == [0, 0, 1]
    assert [mdp.state_name(s) for s in range(3)] == ["r0c0", "r0c0-2", "r0c1"]
    assert mdp.action_names[:4] == ("down", "left", "up", "right")
    assert "left 2" in mdp.action_names, "from the right end, a second way leads left"
    plans = mw.plan(mdp, k=1)
    assert plans.rewards[0] == pytest.approx((200 - 2.4) / 3), "right, left 2, and the goal"


def test_walls_that_can_be_entered_are_states_of_the_coarse_world():
    blocked = drawn("....##", "####.#", "###..#", "......")
    blocked[1, 3] = False
    mdp = read(blocked, 2, (0, 0), (3, 5), enterable_walls=True)
    assert mdp.n_states == 6
    assert (mdp.layout.blocked == drawn("..#", "#..")).all()
    assert read(blocked, 2, (0, 0), (3, 5)).n_states == 4


def walls_with_doors(rng: np.random.Generator) -> tuple[np.ndarray, tuple[int, int], tuple[int, int]]:
    """48 x 48 pixels, four thin walls that reach across the map, some with a door of one to five pixels."""
    blocked = np.zeros((48, 48), bool)
    for line in rng.choice(np.arange(4, 44), 4, replace=False):
        across = blocked if rng.random() < 0.5 else blocked.T
        across[line : line + rng.integers(1, 3)] = True
    doors = np.argwhere(blocked)
    for row, column in doors[rng.choice(len(doors), rng.integers(2, 9))]:
        blocked[row - 2 : row + 3, column : column + rng.integers(1, 6)] = False
    start, goal = (tuple(map(int, cell)) for cell in rng.permutation(np.argwhere(~blocked))[:2])
    return blocked, start, goal


def test_simpler_rules_close_doors_or_open_walls():
    """The comparison in the head of `manyways.worlds.coarse`."""
    rng, n = np.random.default_rng(0), 4
    right = {"any": 0, "most": 0, "all": 0, "pieces": 0}
    compared = 0
    while compared < 400:
        blocked, start, goal = walls_with_doors(rng)
        cells = [(r // n, c // n) for r, c in (start, goal)]
        if cells[0] == cells[1]:
            continue
        compared += 1
        truth = flooded(~blocked, start)[goal]
        shares = blocked.reshape(12, n, 12, n).mean(axis=(1, 3))
        for rule, free in (("any", shares == 0), ("most", shares < 0.5), ("all", shares < 1)):
            joined = free[cells[0]] and free[cells[1]] and flooded(free, cells[0])[cells[1]]
            right[rule] += joined == truth
        right["pieces"] += (not isinstance(read(blocked, n, start, goal), str)) == truth
    assert right == {"any": 273, "most": 240, "all": 205, "pieces": 400}
