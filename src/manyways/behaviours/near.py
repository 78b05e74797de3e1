"""Time per neighbourhood: time spent close by counts as the same.

A random walk carries the time of each state on to its neighbourhood. It moves along moves that can be made both ways,
so it goes round walls and never through them, and the jump from the goal back to the start joins no neighbourhoods. In
each step the walk stays or makes one of the moves, all with the same probability. Cells that the map draws as blocked
are not passed, even where plans could enter them at a penalty.

*Number of steps.* The mean squared distance of a walk from its start is the number of steps times the mean squared length
of a step, as long as it meets no walls. `Near` takes radius^2 / (mean squared length) steps, rounded, so the root mean
square distance is the radius. A step on an open grid has a mean squared length of 4/5 with four directions and of 12/9
with eight. Measured from the middle of an open grid of 81 x 81 cells:

    radius                         1     2     3     5     7.9   8     12    20
    steps, four directions         1     5     11    31    78    20    20    21
    root mean square distance      0.89  2.00  2.97  4.98  7.90  8.00  12.0  20.3
    steps, eight directions        1     3     7     19    47    12    12    13
    root mean square distance      1.15  2.00  3.06  5.03  7.92  8.00  12.0  20.7

Measured there as well: all time in one cell or all time in another one radius away is a divergence of 0.20 (of at most
0.69), two radii away of 0.50.

*Blocks.* The number of steps would grow with the square of the radius. On maps with a radius of at least 8 cells, the
cells are therefore first merged into blocks of about a quarter of the radius, cut where walls cut them, and the walk goes
from block to block. Neighbouring cells in different blocks then differ by a divergence of up to 0.015.

*Cost.* One step multiplies a vector with the sparse matrix of moves; no power of it is formed. On 100 x 100 cells with
radius 5, an image takes 1.5 ms, and planning with k = 4 takes 0.9 to 1.5 times as long as with `StateActions`.

*Units.* On maps the radius is in cells or, where the map says how large they are (robots' maps), in metres. In models
without a map it counts moves; there the walk has at most 1,000 steps, so radii above about 30 moves count as 30.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from manyways.behaviours.base import BEHAVIOURS, Behaviour
from manyways.behaviours.linear_map import Grouping, Walking
from manyways.errors import SettingError, check_number
from manyways.model.graph import state_graph
from manyways.model.mdp import MDP
from manyways.types import Floats, Ints, Sparse

BLOCKS_PER_RADIUS = 4
MOST_STEPS = 1_000


@BEHAVIOURS.add
@dataclass(frozen=True)
class Near(Behaviour):
    """Compare the time spent in each neighbourhood, so that plans differ only if their ways are apart.

    Attributes:
        radius: how far time is spread, as a root mean square distance: in metres on robots' maps, in cells on other
            maps, in moves in models without a map. 0 compares states.
    """

    radius: float = 2.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", check_number("the radius", self.radius, 0))

    def on(self, mdp: MDP) -> Grouping | Walking:
        if self.radius == 0:
            return Grouping(mdp.choice_state)
        graph, radius = two_way_moves(mdp), self.radius
        if not graph.nnz:
            raise no_neighbours(mdp.name)
        place, where = np.arange(mdp.n_states), None
        if mdp.layout is not None:
            radius = min(radius / (mdp.layout.metres_per_cell or 1.0), np.hypot(*mdp.layout.shape))
            where = np.column_stack(np.divmod(mdp.layout.cells, mdp.layout.shape[1])).astype(np.float64)
            place = _blocks(graph, where, radius)
            graph, where = _merged(graph, place), _centres(place, where)
        steps = _steps(graph, where, radius)
        begin = place[mdp.choice_state]
        return Walking(begin, graph, steps) if steps else Grouping(begin)

    def describe(self) -> str:
        return f"in which neighbourhoods time is spent (radius {self.radius:g})"


def no_neighbours(name: str) -> SettingError:
    """The error of a model in which nothing is near anything else."""
    return SettingError(
        f"no move of {name} can be made both ways, so no state is near another; ",
        in_python="use Labels() or States()",
        on_command_line="use --behaviour labels or states",
    )


def two_way_moves(mdp: MDP) -> Sparse:
    """(S, S) symmetric: an entry where some choice can lead from one state to the other and some choice back.

    States that the map draws as blocked have no entries.
    """
    graph = sparse.csr_array(state_graph(mdp) > 0)
    if mdp.layout is not None:
        free = sparse.diags_array((~mdp.layout.blocked.ravel()[mdp.layout.cells]).astype(np.float64))
        graph = free @ graph @ free
    both = sparse.coo_array(graph.multiply(graph.T))
    apart = (both.row != both.col) & (both.data != 0)
    return sparse.csr_array((np.ones(apart.sum()), (both.row[apart], both.col[apart])), shape=both.shape)


def block_side(radius: float) -> int:
    """The side of the squares in which cells are merged into blocks, in cells; below 2 they are not merged."""
    return int(radius / BLOCKS_PER_RADIUS)


def _blocks(graph: Sparse, where: Floats, radius: float) -> Ints:
    """(S,) the block of each state: connected states in a square of about a quarter of the radius."""
    side = block_side(radius)
    if side < 2:
        return np.arange(len(where))
    square = where // side
    edges = sparse.coo_array(graph)
    inside = (square[edges.row] == square[edges.col]).all(axis=1)
    joined = sparse.coo_array((edges.data[inside], (edges.row[inside], edges.col[inside])), shape=graph.shape)
    return csgraph.connected_components(joined, directed=False)[1].astype(np.int64)


def _merged(graph: Sparse, place: Ints) -> Sparse:
    """(B, B) the graph between blocks: an entry where an edge of `graph` (S, S) leads from one to another."""
    edges, count = sparse.coo_array(graph), int(place.max()) + 1
    row, column = place[edges.row], place[edges.col]
    apart = row != column
    return sparse.csr_array((np.ones(apart.sum()), (row[apart], column[apart])), shape=(count, count))


def _centres(place: Ints, where: Floats) -> Floats:
    """(B, 2) the mean position of the states of each block."""
    size = np.bincount(place)
    return np.column_stack([np.bincount(place, weights=axis) / size for axis in where.T])


def _steps(graph: Sparse, where: Floats | None, radius: float) -> int:
    """The number of steps after which the root mean square distance of a walk from its start is the radius."""
    edges = sparse.coo_array(graph)
    moves = np.bincount(edges.row, minlength=graph.shape[0])
    if not len(edges.row):
        return 0
    squared = np.zeros(1) if where is None else ((where[edges.row] - where[edges.col]) ** 2).sum(axis=1)
    if not squared.any():  # no map, or one that draws all states in one cell: a move has the length 1
        squared = np.ones(len(edges.row))
    by_place = np.bincount(edges.row, weights=squared, minlength=len(moves)) / (moves + 1)
    return steps_for(radius, float(by_place[moves > 0].mean()))


def steps_for(radius: float, mean_squared: float) -> int:
    """The number of steps of a walk whose steps have this mean squared length."""
    return round(min(min(radius, MOST_STEPS) ** 2 / mean_squared, MOST_STEPS))
