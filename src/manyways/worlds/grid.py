"""Grid worlds with the dynamics of the paper's experiments, and variants for mazes and robots' maps.

The reward depends on the current cell. A move succeeds with probability `correct_transition`; otherwise it slips to one
of the *other* cells that a move from here could lead to, each with the same probability. Moves off the grid are not
available. 'stop' always stays in the cell. The goal has a single action, which leads back to the start.

In the paper every cell is a state, including walls and obstacles: they can be entered, at a penalty. With
`enterable_walls=False`, walls are not states: no move leads or slips into them. With `directions=8` there are diagonal
moves too. A diagonal move needs both cells that it passes between to be enterable, as in the MovingAI benchmark, so it
never cuts the corner of a wall. It can take longer than other moves (`diagonal_steps`): it then stays in the cell with some
probability, once more in each step, so that it takes that many steps on average.

The goal pays 200 by default, as in the paper's nine rooms, but on maps with longer ways it pays five times what the
shortest way to it costs. A plan that earns 10 % less than the best one then takes a way that is about 9 to 11 % longer, on
maps of any size. With a fixed reward, the value of the best plan would fall to zero on maps of about 170 steps, where
shares of it mean nothing, and tend to that of standing still on larger ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from scipy import ndimage, sparse
from scipy.sparse import csgraph

from manyways.errors import ModelError, SettingError, check_number
from manyways.model.layout import Grid
from manyways.model.mdp import MDP
from manyways.types import Bools, Floats, Ints, Sparse

LARGEST_WORLD = 4_000_000
"""The largest number of cells that readers accept. With eight directions, building needs about 4 KB per cell."""

MOVES: dict[str, tuple[int, int]] = {
    "down": (1, 0),
    "left": (0, -1),
    "up": (-1, 0),
    "right": (0, 1),
    "down-left": (1, -1),
    "down-right": (1, 1),
    "up-left": (-1, -1),
    "up-right": (-1, 1),
}
"""The (rows, columns) by which each move changes the position. The first four moves are the paper's."""
Moves = list[tuple[str, tuple[int, int]]]
"""Names of moves and the (rows, columns) by which each changes the position."""
LEAST_GOAL_REWARD = 200.0
GOAL_TO_WAY = 5.0
"""The default reward of the goal: so many times what the shortest way to it costs, or the least reward, if that is more."""


@dataclass(frozen=True, eq=False)
class Dynamics:
    """The settings of a world on a grid, checked; see `grid_world`."""

    correct_transition: float = 0.95
    wall_reward: float = -40.0
    goal_reward: float | None = None
    step_reward: float = -1.2
    directions: int = 4
    enterable_walls: bool = True
    diagonal_steps: float = 1.0
    labels: Mapping[str, Bools] | None = None

    def __post_init__(self) -> None:
        check_number("correct_transition", self.correct_transition, 0, 1)
        check_number("diagonal_steps", self.diagonal_steps, 1)
        for what in ("wall_reward", "goal_reward", "step_reward"):
            if what != "goal_reward" or self.goal_reward is not None:
                check_number(what, getattr(self, what))
        object.__setattr__(self, "directions", int(_one_of("directions", self.directions, 4, 8)))
        object.__setattr__(self, "enterable_walls", bool(_one_of("enterable_walls", self.enterable_walls, False, True)))


def grid_world(
    walls: Bools,
    start: tuple[int, int],
    goal: tuple[int, int],
    *,
    correct_transition: float = 0.95,
    wall_reward: float = -40.0,
    goal_reward: float | None = None,
    step_reward: float = -1.2,
    directions: int = 4,
    enterable_walls: bool = True,
    diagonal_steps: float = 1.0,
    labels: dict[str, Bools] | None = None,
    name: str = "grid",
) -> MDP:
    """Make a world on a grid.

    Args:
        walls: (rows, columns) true for walls and obstacles.
        start: (row, column) of the start, to which the goal leads back.
        goal: (row, column) of the goal.
        correct_transition: the probability that a move leads to the intended cell.
        wall_reward: reward in walls and obstacles.
        goal_reward: reward in the goal; by default 200, or five times what the shortest way costs, if that is more.
        step_reward: reward in all other cells.
        directions: 4, or 8 to include diagonal moves.
        enterable_walls: whether walls are states. If not, the states are the cells that can be reached from the start
            without passing through the goal; the layout still shows the whole grid.
        diagonal_steps: the mean number of steps that a diagonal move takes, at least 1. With the square root of 2, the
            number of steps of a way is its length; with 1, a zigzag is as short as a straight line.
        labels: additional sets of cells by name, each (rows, columns).
        name: the name of the model.
    """
    walls = np.asarray(walls, dtype=bool)
    if walls.ndim != 2 or walls.size == 0:
        raise ModelError(f"a grid world needs a (rows, columns) array of walls, found shape {walls.shape}")
    given = Dynamics(
        correct_transition,
        wall_reward,
        goal_reward,
        step_reward,
        directions,
        enterable_walls,
        diagonal_steps,
        labels,
    )
    start, goal = (int(start[0]), int(start[1])), (int(goal[0]), int(goal[1]))
    _check_ends(walls, start, goal)

    states = np.ones(walls.shape, bool) if given.enterable_walls else _before_goal(walls, start, goal)
    cells = np.flatnonzero(states)
    start_state, goal_state = (int(np.searchsorted(cells, r * walls.shape[1] + c)) for r, c in (start, goal))
    moves = list(MOVES.items())[: given.directions]
    neighbour = _neighbours(states, dict(moves))
    return assembled(moves, neighbour, (start_state, goal_state), Grid(cells, walls), given, name)


def assembled(
    moves: Moves,
    neighbour: Ints,
    ends: tuple[int, ...],
    layout: Grid,
    given: Dynamics,
    name: str,
    state_names: tuple[str, ...] | None = None,
) -> MDP:
    """The world with given moves between its states.

    Args:
        moves: names and steps; several moves may have the same step, if the states they lead to are in the same order.
        neighbour: (S, moves) the state that each move leads to, or -1 where it is not available.
        ends: the states of start and goal.
        layout: where the states lie; those in blocked cells are walls.
        given: the settings.
        name: of the model.
        state_names: (S,) names of the states, if those of their cells do not suffice.
    """
    start_state, goal_state = ends
    at = np.arange(len(neighbour))
    counts, action, transitions = _choices(neighbour, at, [step for _, step in moves], given, ends, len(neighbour))

    wall = layout.blocked.ravel()[layout.cells]
    reward = np.where(wall, given.wall_reward, given.step_reward)
    if given.goal_reward is not None:
        reward[goal_state] = given.goal_reward
    else:
        way = _shortest(neighbour, moves, given, wall, start_state, goal_state)
        reward[goal_state] = max(LEAST_GOAL_REWARD, -GOAL_TO_WAY * way * given.step_reward)
    marks = {"wall": wall, "start": at == start_state, "goal": at == goal_state}
    first = marks["start"].astype(float)
    for label, mask in (given.labels or {}).items():
        flat = np.asarray(mask, bool).ravel()
        if flat.size != layout.blocked.size:
            raise ModelError(
                f"label {label!r} must have {layout.blocked.size} cells, found an array of shape {flat.shape}"
            )
        marks[label] = flat[layout.cells]
    return MDP(
        transitions=transitions,
        reward=np.repeat(reward, counts),
        first_choice=np.concatenate([[0], np.cumsum(counts)]),
        start=first,
        actions=action.astype(np.int32),
        action_names=(*(move for move, _ in moves), "stop"),
        state_names=state_names,
        labels=marks,
        layout=layout,
        name=name,
    )


@dataclass(frozen=True, eq=False)
class Band:
    """Some consecutive rows of a world in which every cell is a state.

    Attributes:
        cells: (s,) their cells, which are also the numbers of their states.
        counts: (s,) the number of choices of each state.
        actions: (n,) the action of each choice, as an index; the last one is 'stop'.
        transitions: (n, S) CSR of their choices, with a column for each state of the world.
        reward: (n,) of their choices.
    """

    cells: Ints
    counts: Ints
    actions: Ints
    transitions: Sparse
    reward: Floats


def bands(
    walls: Bools, start: tuple[int, int], goal: tuple[int, int], given: Dynamics, cells_at_once: int
) -> Iterator[Band]:
    """The world that `grid_world` makes with walls that can be entered, a few rows at a time, for worlds that do not fit into
    memory. The reward of the goal must be given."""
    rows, columns = walls.shape
    ends = start[0] * columns + start[1], goal[0] * columns + goal[1]
    moves = dict(list(MOVES.items())[: given.directions])
    height = max(cells_at_once // columns, 1)
    for top in range(0, rows, height):
        bottom = min(top + height, rows)
        above, below = max(top - 1, 0), min(bottom + 1, rows)  # with the rows that moves from here lead to
        around = _neighbours(np.ones((below - above, columns), bool), moves).astype(np.int64)
        around = np.where(around >= 0, around + above * columns, -1)[(top - above) * columns :][
            : (bottom - top) * columns
        ]
        cells = np.arange(top * columns, bottom * columns)
        counts, action, matrix = _choices(around, cells, list(moves.values()), given, ends, walls.size)
        reward = np.where(walls.ravel()[cells], given.wall_reward, given.step_reward)
        reward[cells == ends[1]] = given.goal_reward
        yield Band(cells, counts, action, matrix, np.repeat(reward, counts))


def _choices(
    neighbour: Ints, states: Ints, steps: list[tuple[int, int]], given: Dynamics, ends: tuple[int, ...], n_states: int
) -> tuple[Ints, Ints, Sparse]:
    """The choices of some states (s,), whose moves lead to the states `neighbour` (s, moves): how many each state has (s,),
    their actions (n,) and their transitions (n, n_states)."""
    offered = np.column_stack([neighbour >= 0, np.ones(len(neighbour), bool)])
    offered[states == ends[1]] = np.arange(len(steps) + 1) == len(steps)
    at, action = np.nonzero(offered)
    return offered.sum(axis=1), action, _transitions(neighbour, states, at, action, steps, given, ends, n_states)


def _shortest(neighbour: Ints, moves: Moves, given: Dynamics, wall: Bools, start: int, goal: int) -> float:
    """The mean number of steps of the shortest way from the start to the goal that enters no wall (S,), without slips."""
    lasts = np.array([given.diagonal_steps if down and right else 1.0 for _, (down, right) in moves])
    there = (neighbour >= 0) & ~wall[neighbour]
    state, move = np.nonzero(there)
    begin = np.concatenate([[0], np.cumsum(np.count_nonzero(there, axis=1))])
    graph = sparse.csr_array((lasts[move], neighbour[state, move], begin), shape=(len(neighbour),) * 2)
    return float(csgraph.dijkstra(graph, indices=start, unweighted=given.diagonal_steps == 1)[goal])


def _one_of(what: str, value: Any, *choices: Any) -> Any:
    if not isinstance(value, (Real, np.bool_)) or value not in choices:
        raise SettingError(f"{what} must be {' or '.join(map(str, choices))}, found {value!r:.60}")
    return value


def _check_ends(walls: Bools, start: tuple[int, int], goal: tuple[int, int]) -> None:
    for what, (row, column) in (("start", start), ("goal", goal)):
        if not (0 <= row < walls.shape[0] and 0 <= column < walls.shape[1]):
            raise ModelError(
                f"the {what} (row {row}, column {column}) lies outside the {walls.shape[0]} x {walls.shape[1]} grid"
            )
        if walls[row, column]:
            raise ModelError(f"the {what} (row {row}, column {column}) is in a wall")
    if start == goal:
        raise ModelError(f"start and goal are the same cell (row {start[0]}, column {start[1]})")
    room = _rooms(~walls)
    if room[start] != room[goal]:
        raise ModelError(
            f"the goal (row {goal[0]}, column {goal[1]}) is walled in: no way leads there from the start "
            f"(row {start[0]}, column {start[1]}) without entering a wall; open a door"
        )


def _rooms(free: Bools) -> Ints:
    """(rows, columns) the number of the connected area that each free cell lies in.

    Four directions suffice, also for worlds with eight: a diagonal move passes between two free cells, so four
    directions connect the same cells by way of either of them.
    """
    return ndimage.label(free)[0]  # pyright: ignore[reportIndexIssue, reportReturnType]


def _before_goal(walls: Bools, start: tuple[int, int], goal: tuple[int, int]) -> Bools:
    """(rows, columns) the cells that can be reached from the start without entering a wall or passing the goal.

    Cells behind the goal are left out because the goal leads back to the start. No policy reaches them from the start,
    but one that started there could stay there, so the average reward would depend on the start state.
    """
    free = ~walls
    free[goal] = False
    room = _rooms(free)
    states = room == room[start]
    states[goal] = True
    return states


def _neighbours(states: Bools, moves: dict[str, tuple[int, int]]) -> Ints:
    """(S, moves) the state that each move leads to, or -1 where the move is not available."""
    rows, columns = states.shape
    number = np.full((rows + 2, columns + 2), -1, np.int32)  # with a border of -1
    number[1:-1, 1:-1][states] = np.arange(np.count_nonzero(states), dtype=np.int32)

    def seen(down: int, right: int) -> np.ndarray:
        return number[1 + down : 1 + down + rows, 1 + right : 1 + right + columns][states]

    aimed = []
    for down, right in moves.values():
        target = seen(down, right)
        if down and right:
            target = np.where((seen(down, 0) >= 0) & (seen(0, right) >= 0), target, -1)
        aimed.append(target)
    return np.column_stack(aimed)


def _transitions(
    neighbour: Ints,
    states: Ints,
    state: Ints,
    action: Ints,
    moves: list[tuple[int, int]],
    given: Dynamics,
    ends: tuple[int, ...],
    n_states: int,
) -> Sparse:
    """(n, n_states) transitions of pairs of an action and a state, given as a position in `states` (s,).

    The columns of the arrays below are the moves, including 'stop', in the order of the states they lead to. The
    entries selected row by row therefore form a CSR matrix with sorted columns.
    """
    stop, correct = len(moves), given.correct_transition
    steps = [*moves, (0, 0)]
    order = sorted(range(stop + 1), key=steps.__getitem__)
    around = np.column_stack([neighbour, states.astype(neighbour.dtype)])
    around[states == ends[1], stop] = ends[0]
    around = around[:, order]
    there = around >= 0
    others = there.sum(axis=1) - 2  # without 'stop' and the move itself

    stopping = action == stop
    slip = np.where(stopping, 0.0, ((1 - correct) / np.maximum(others, 1))[state])
    chance = np.where(there[state], slip[:, None], 0.0)
    chance[:, order.index(stop)] = 0.0
    aimed = np.argsort(order)[action]
    chance[np.arange(len(state)), aimed] = np.where(stopping | (others < 1)[state], 1.0, correct)
    if given.diagonal_steps > 1:
        diagonal = np.array([down != 0 and right != 0 for down, right in steps])[action]
        chance[diagonal] /= given.diagonal_steps
        chance[diagonal, order.index(stop)] = 1 - 1 / given.diagonal_steps
    real = chance > 0
    begin = np.concatenate([[0], np.cumsum(np.count_nonzero(real, axis=1))])
    return sparse.csr_array((chance[real], around[state][real], begin), shape=(len(state), n_states))
