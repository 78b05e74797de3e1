"""Room worlds: the paper's four and nine rooms, and the same on larger grids.

Rooms stand in a square of rooms; adjacent ones share a wall with one door at a random place. Each
room has one obstacle, the start lies somewhere in the top left room, the goal somewhere in the bottom
right one. An obstacle never stands on the start, the goal, or the cell before a door, so that no
world is unsolvable.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from manyways.errors import SettingError, check_integer
from manyways.model.mdp import MDP
from manyways.types import Bools
from manyways.worlds.grid import LARGEST_WORLD, grid_world


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
    """Rooms like the four-room world's on `size` x `size` cells, as many as fit.

    The goal's reward grows with the size (400 on 19 x 19): otherwise, from about 100 x 100 on, standing
    still would beat the long way there.
    """
    check_integer("size", size, 9)
    if size**2 > LARGEST_WORLD:
        raise SettingError(f"{size:,} x {size:,} cells are too many; at most {LARGEST_WORLD:,} are taken")
    return room_world(
        size,
        max(2, round((size - 1) / 9)),
        seed,
        correct_transition=correct_transition,
        wall_reward=wall_reward,
        goal_reward=400.0 * size / 19 if goal_reward is None else goal_reward,
        step_reward=step_reward,
        name=f"rooms-{size}:{seed}",
    )


def room_world(size: int, rooms: int, seed: int = 0, *, name: str | None = None, **settings: Any) -> MDP:
    """A square of `rooms` x `rooms` rooms on `size` x `size` cells.

    Args:
        size: cells along one side, outer walls included.
        rooms: rooms along one side, two or more.
        seed: of the doors, obstacles, start and goal.
        name: of the model.
        settings: as for `grid_world`.
    """
    check_integer("size", size, 1)
    check_integer("rooms", rooms, 1)
    check_integer("the seed of a world", seed, 0)
    if rooms < 2 or size < 4 * rooms + 1:
        raise SettingError(
            f"{rooms} x {rooms} rooms need rooms >= 2 and size >= {4 * max(rooms, 2) + 1} (three free cells a room), found size {size}"
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
    return grid_world(
        walls, start, goal, labels={"door": doors}, name=name or f"rooms-{rooms}x{rooms}:{seed}", **settings
    )


def _open_doors(walls: Bools, lines: np.ndarray, inner: list[range], rng: np.random.Generator) -> Bools:
    """One door in each wall between two rooms; returns where."""
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
    """One obstacle in each room, away from doors and from `taken` cells."""
    near_door = np.zeros_like(doors)
    near_door[1:] |= doors[:-1]
    near_door[:-1] |= doors[1:]
    near_door[:, 1:] |= doors[:, :-1]
    near_door[:, :-1] |= doors[:, 1:]
    for span_r in inner:
        for span_c in inner:
            free = [(r, c) for r in span_r for c in span_c if not near_door[r, c] and (r, c) not in taken]
            walls[free[rng.integers(len(free))]] = True
