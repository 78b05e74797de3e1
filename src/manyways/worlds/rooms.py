"""Room worlds: the paper's four and nine rooms, and the same kind of world on larger grids.

The rooms form a square. Adjacent rooms share a wall with one door at a random position. Each room has one obstacle. The
start is a random cell of the top left room, the goal a random cell of the bottom right room. Obstacles are never placed
on the start, on the goal, or next to a door, so that the goal can always be reached.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from manyways.errors import SettingError, check_integer
from manyways.model.mdp import MDP
from manyways.types import Bools
from manyways.worlds.grid import LARGEST_WORLD, Dynamics, grid_world

LARGEST_DRAWN = 2_000_000_000
"""Cells of a map whose world is written in pieces, never whole."""


def four_rooms(
    seed: int = 0,
    *,
    correct_transition: float = 0.95,
    wall_reward: float = -200.0,
    goal_reward: float = 400.0,
    step_reward: float = -4.0,
) -> MDP:
    """The paper's first world: 19 x 19 cells, four rooms of 8 x 8."""
    return room_world(
        19,
        2,
        seed,
        correct_transition=correct_transition,
        wall_reward=wall_reward,
        goal_reward=goal_reward,
        step_reward=step_reward,
        name=f"four-rooms:{seed}",
    )


def nine_rooms(
    seed: int = 0,
    *,
    correct_transition: float = 0.95,
    wall_reward: float = -40.0,
    goal_reward: float = 200.0,
    step_reward: float = -1.2,
) -> MDP:
    """The paper's second world: 19 x 19 cells, nine rooms of 5 x 5."""
    return room_world(
        19,
        3,
        seed,
        correct_transition=correct_transition,
        wall_reward=wall_reward,
        goal_reward=goal_reward,
        step_reward=step_reward,
        name=f"nine-rooms:{seed}",
    )


def tiled_rooms(
    size: int,
    seed: int = 0,
    *,
    correct_transition: float = 0.95,
    wall_reward: float = -200.0,
    goal_reward: float | None = None,
    step_reward: float = -4.0,
) -> MDP:
    """A world of `size` x `size` cells with as many rooms, of about the size of the four-room world's, as fit.

    By default the goal's reward grows with the size (400 on 19 x 19). With a constant reward, standing still would be
    better than going to the goal on grids of about 100 x 100 cells or more.
    """
    if check_integer("size", size, 9) ** 2 > LARGEST_WORLD:
        raise SettingError(
            f"{size:,} x {size:,} cells are too many; a world may have at most {LARGEST_WORLD:,} cells in memory; ",
            on_command_line=f"write it to a file with 'manyways convert rooms-{size}:{seed} rooms.h5' instead",
        )
    return room_world(
        size,
        _tiles(size),
        seed,
        correct_transition=correct_transition,
        wall_reward=wall_reward,
        goal_reward=_goal_reward(size) if goal_reward is None else goal_reward,
        step_reward=step_reward,
        name=f"rooms-{size}:{seed}",
    )


def drawn_tiled_rooms(
    size: int,
    seed: int = 0,
    *,
    correct_transition: float = 0.95,
    wall_reward: float = -200.0,
    goal_reward: float | None = None,
    step_reward: float = -4.0,
) -> tuple[Drawing, Dynamics]:
    """The map and the settings of the world that `tiled_rooms` makes, for worlds too large for memory (`grid.bands`)."""
    if check_integer("size", size, 9) ** 2 > LARGEST_DRAWN:
        raise SettingError(f"{size:,} x {size:,} cells are too many; a map may have at most {LARGEST_DRAWN:,} cells")
    reward = _goal_reward(size) if goal_reward is None else goal_reward
    return drawn_rooms(size, _tiles(size), seed), Dynamics(correct_transition, wall_reward, reward, step_reward)


def _tiles(size: int) -> int:
    """How many rooms along one side, of about the size of the four-room world's, fit."""
    return max(2, round((size - 1) / 9))


def _goal_reward(size: int) -> float:
    return 400.0 * size / 19


def room_world(size: int, rooms: int, seed: int = 0, *, name: str | None = None, **settings: Any) -> MDP:
    """Make a world of `rooms` x `rooms` rooms on `size` x `size` cells.

    Args:
        size: cells along one side, including the outer walls.
        rooms: rooms along one side, at least two.
        seed: the seed for the positions of doors, obstacles, start and goal.
        name: the name of the model.
        settings: as for `grid_world`.
    """
    drawn, name = drawn_rooms(size, rooms, seed), name or f"rooms-{rooms}x{rooms}:{seed}"
    return grid_world(drawn.walls, drawn.start, drawn.goal, labels={"door": drawn.doors}, name=name, **settings)


@dataclass(frozen=True, eq=False)
class Drawing:
    """A map of rooms.

    Attributes:
        walls, doors: (size, size) which cells are walls or obstacles, and which are doors.
        start, goal: (row, column).
    """

    walls: Bools
    doors: Bools
    start: tuple[int, int]
    goal: tuple[int, int]


def drawn_rooms(size: int, rooms: int, seed: int) -> Drawing:
    """The map of `room_world`."""
    check_integer("size", size, 1)
    check_integer("rooms", rooms, 1)
    check_integer("the seed of a world", seed, 0)
    if rooms < 2 or size < 4 * rooms + 1:
        raise SettingError(
            f"{rooms} x {rooms} rooms need rooms >= 2 and size >= {4 * max(rooms, 2) + 1} (three free cells per room and side), found size {size}"
        )
    rng = np.random.default_rng(seed)
    lines = np.round(np.linspace(0, size - 1, rooms + 1)).astype(int)
    inner = [range(lines[i] + 1, lines[i + 1]) for i in range(rooms)]
    walls = np.zeros((size, size), bool)
    walls[lines, :] = True
    walls[:, lines] = True
    doors = _open_doors(walls, lines, inner, rng)
    start = (int(rng.choice(inner[0])), int(rng.choice(inner[0])))
    goal = (int(rng.choice(inner[-1])), int(rng.choice(inner[-1])))
    _place_obstacles(walls, doors, inner, {start, goal}, rng)
    return Drawing(walls, doors, start, goal)


def _open_doors(walls: Bools, lines: np.ndarray, inner: list[range], rng: np.random.Generator) -> Bools:
    """Open one door in each wall between two rooms; returns the mask of doors."""
    doors = np.zeros_like(walls)
    for line in lines[1:-1]:
        for span in inner:
            doors[line, rng.choice(span)] = True
            doors[rng.choice(span), line] = True
    walls &= ~doors
    return doors


def _place_obstacles(
    walls: Bools, doors: Bools, inner: list[range], taken: set[tuple[int, int]], rng: np.random.Generator
) -> None:
    """Place one obstacle in each room, not next to a door and not on one of the `taken` cells."""
    near_door = np.zeros_like(doors)
    near_door[1:] |= doors[:-1]
    near_door[:-1] |= doors[1:]
    near_door[:, 1:] |= doors[:, :-1]
    near_door[:, :-1] |= doors[:, 1:]
    for span_r in inner:
        for span_c in inner:
            free = [(r, c) for r in span_r for c in span_c if not near_door[r, c] and (r, c) not in taken]
            walls[free[rng.integers(len(free))]] = True
