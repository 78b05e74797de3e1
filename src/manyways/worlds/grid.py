"""Grid worlds with the dynamics of the paper's experiments.

Every cell is a state, walls and obstacles too: they can be entered, at their penalty. The reward
depends on the cell one is in. A move succeeds with probability `correct_transition` and otherwise
slips to one of the *other* neighbours inside the grid, uniformly; a move off the grid is not on
offer; 'stop' stays for sure. The goal has a single action, which leads back to the start.
"""

from __future__ import annotations

import numpy as np
from scipy import ndimage, sparse

from manyways.arrays import Bools, Sparse
from manyways.errors import ModelError, check_number
from manyways.layout import Grid
from manyways.mdp import MDP

ACTIONS = ("down", "left", "up", "right", "stop")
STEPS: tuple[tuple[int, int], ...] = ((1, 0), (0, -1), (-1, 0), (0, 1))
STOP = 4


def grid_world(
    walls: Bools,
    start: tuple[int, int],
    goal: tuple[int, int],
    *,
    correct_transition: float = 0.95,
    wall_reward: float = -40.0,
    goal_reward: float = 200.0,
    step_reward: float = -1.2,
    labels: dict[str, Bools] | None = None,
    name: str = "grid",
) -> MDP:
    """A world on a grid.

    Args:
        walls: (rows, columns) where walls and obstacles stand.
        start: (row, column) to which the goal leads back.
        goal: (row, column).
        correct_transition: chance that a move goes where it should.
        wall_reward: reward in walls and obstacles.
        goal_reward: reward in the goal.
        step_reward: reward in all other cells.
        labels: further sets of cells by name, each (rows, columns).
        name: of the model.
    """
    walls = np.asarray(walls, dtype=bool)
    if walls.ndim != 2 or walls.size == 0:
        raise ModelError(f"a grid world needs a (rows, columns) array of walls, found shape {walls.shape}")
    check_number("correct_transition", correct_transition, 0, 1)
    for what, value in (("wall_reward", wall_reward), ("goal_reward", goal_reward), ("step_reward", step_reward)):
        check_number(what, value)
    start, goal = (int(start[0]), int(start[1])), (int(goal[0]), int(goal[1]))
    _check_ends(walls, start, goal)
    rows, columns = walls.shape
    cells = np.arange(walls.size)
    start_cell, goal_cell = start[0] * columns + start[1], goal[0] * columns + goal[1]

    neighbour = _neighbours(rows, columns)
    offered = np.column_stack([neighbour >= 0, np.ones(walls.size, bool)])
    offered[goal_cell] = np.arange(5) == STOP
    state, action = np.nonzero(offered)

    reward = np.where(walls.ravel(), wall_reward, step_reward)
    reward[goal_cell] = goal_reward
    first = np.zeros(walls.size)
    first[start_cell] = 1.0
    marks = {
        "wall": walls,
        "start": cells.reshape(walls.shape) == start_cell,
        "goal": cells.reshape(walls.shape) == goal_cell,
        **(labels or {}),
    }
    mdp = MDP(
        transitions=_moves(neighbour, state, action, correct_transition),
        reward=reward[state],
        first_choice=np.concatenate([[0], np.cumsum(offered.sum(axis=1))]),
        start=first,
        actions=action.astype(np.int32),
        action_names=ACTIONS,
        labels={label: np.asarray(mask, bool).ravel() for label, mask in marks.items()},
        layout=Grid(cells, walls),
        name=name,
    )
    return mdp.restarting_at([goal_cell])


def _check_ends(walls: Bools, start: tuple[int, int], goal: tuple[int, int]) -> None:
    for what, (row, column) in (("start", start), ("goal", goal)):
        if not (0 <= row < walls.shape[0] and 0 <= column < walls.shape[1]):
            raise ModelError(
                f"the {what} (row {row}, column {column}) lies outside the {walls.shape[0]} x {walls.shape[1]} grid"
            )
        if walls[row, column]:
            raise ModelError(f"the {what} (row {row}, column {column}) stands in a wall")
    if start == goal:
        raise ModelError(f"start and goal are the same cell (row {start[0]}, column {start[1]})")
    room: np.ndarray = ndimage.label(~walls)[0]  # pyright: ignore[reportIndexIssue]
    if room[start] != room[goal]:
        raise ModelError(
            f"the goal (row {goal[0]}, column {goal[1]}) is walled in: no way leads there from the start "
            f"(row {start[0]}, column {start[1]}) without entering a wall; open a door"
        )


def _neighbours(rows: int, columns: int) -> np.ndarray:
    """(S, 4) the cell that each move aims at, -1 off the grid."""
    row, column = np.divmod(np.arange(rows * columns), columns)
    aimed = []
    for down, right in STEPS:
        r, c = row + down, column + right
        inside = (r >= 0) & (r < rows) & (c >= 0) & (c < columns)
        aimed.append(np.where(inside, r * columns + c, -1))
    return np.column_stack(aimed)


def _moves(neighbour: np.ndarray, state: np.ndarray, action: np.ndarray, correct: float) -> Sparse:
    """(N, S) transitions of the given (state, action) pairs."""
    n, cells = len(state), len(neighbour)
    moving = np.flatnonzero(action != STOP)
    around = neighbour[state[moving]]
    aimed = np.arange(4) == action[moving, None]
    others = (around >= 0).sum(axis=1, keepdims=True) - 1
    chance = np.where(aimed, np.where(others > 0, correct, 1.0), (1 - correct) / np.maximum(others, 1))
    chance[around < 0] = 0.0
    real = chance > 0
    stopping = np.flatnonzero(action == STOP)
    choice = np.concatenate([np.repeat(moving, 4).reshape(-1, 4)[real], stopping])
    target = np.concatenate([around[real], state[stopping]])
    weight = np.concatenate([chance[real], np.ones(len(stopping))])
    return sparse.csr_array((weight, (choice, target)), shape=(n, cells))
