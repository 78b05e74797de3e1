"""Coarse worlds: several pixels of a fine map in one cell, such that exactly the same places stay connected.

A cell that is free in part is the difficulty. If it counts as blocked, narrow doors are closed; if it counts as free, thin
walls are opened. So the map is divided into *pieces*: the free pixels of one cell that are connected within the cell. Two
pieces of neighbouring cells are joined if free pixels of both touch. The graph of all pieces connects exactly what the
fine map connects, but most pieces of partly free cells are slivers along walls. They are left out, the smallest first, as
long as no way is closed: a piece goes if its neighbours stay connected within the 3 x 3 cells around it, or if it is a dead
end. That is thinning as of digital images, on pieces instead of pixels. What remains:

- every cell without a blocked pixel, as if cells with any blocked pixel were blocked, so walls remain visible as walls;
- the pieces in which the start and the goal lie;
- pieces that keep ways open: doors and corridors narrower than two cells. Of several doors within three cells, one.

A cell that a thin wall divides may keep two pieces, and a piece may have two neighbours on one side. Then two states lie in
one cell, and a second move of that direction ("right 2") leads to the second one.

Simpler rules close doors or open walls. On 400 maps of 48 x 48 pixels with thin walls and random doors, and cells of 4 x 4
pixels, start and goal were connected on the coarse map exactly as on the fine one in 68 % of the maps if a cell is blocked
when any of its pixels is, in 60 % when half of them are, in 51 % when all of them are, and in all maps with pieces
(`tests/worlds/test_coarse.py` repeats this).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage, sparse
from scipy.sparse import csgraph

from manyways.errors import ModelError
from manyways.kernels.thinning import thin
from manyways.model.layout import Grid
from manyways.model.mdp import MDP
from manyways.types import Bools, Floats, Ints, Sparse
from manyways.worlds.grid import LARGEST_WORLD, MOVES, Dynamics, Moves, assembled, grid_world

WITHIN_CELLS = np.array([np.zeros((3, 3)), [[0, 1, 0], [1, 1, 1], [0, 1, 0]], np.zeros((3, 3))], bool)
"""Which entries of a stack of cells touch: neighbours in the same cell, in four directions."""


@dataclass(frozen=True, eq=False)
class Pieces:
    """The pieces of a map, P of them, sorted by cell.

    Attributes:
        shape: rows and columns of the coarse grid.
        cells: (P,) the cell of each piece, `row * columns + column`.
        offsets: (P, 2) how far right of and below the centre of the cell a free pixel in the middle of the piece lies.
        sizes: (P,) the number of pixels of each piece.
        right: (P, P) the pieces on the right that each piece is joined with.
        down: (P, P) those below.
        ends: the pieces of the pixels that were asked for.
    """

    shape: tuple[int, int]
    cells: Ints
    offsets: Floats
    sizes: Ints
    right: Sparse
    down: Sparse
    ends: tuple[int, ...]

    def only(self, kept: Bools) -> Pieces:
        """The pieces marked in `kept` (P,), which include the ends."""
        number = np.cumsum(kept) - 1
        right, down = (sparse.csr_array(links[kept][:, kept]) for links in (self.right, self.down))
        ends = tuple(int(number[end]) for end in self.ends)
        return Pieces(self.shape, self.cells[kept], self.offsets[kept], self.sizes[kept], right, down, ends)

    @property
    def graph(self) -> Sparse:
        """(P, P) which pieces are joined."""
        links = self.right + self.down
        return sparse.csr_array(links + links.T)


def coarse_world(
    blocked: Bools, coarsen: int, start: tuple[int, int], goal: tuple[int, int], *, name: str = "grid", **settings: Any
) -> MDP:
    """Make a world whose cells are squares of pixels; see the head of this module.

    Args:
        blocked: (rows, columns) the blocked pixels.
        coarsen: the number of pixels in a cell in each direction.
        start: (row, column) of the pixel of the start.
        goal: (row, column) of the pixel of the goal.
        name: the name of the model.
        settings: of `grid_world`; masks of labels are (rows, columns) of the coarse grid. If walls can be entered, every
            cell is a state, and cells without a piece are walls.
    """
    pieces = pieces_of(np.asarray(blocked, bool), coarsen, (start, goal))
    begin, end = pieces.ends
    ends = f"the start (row {start[0]}, column {start[1]} of the image) and the goal (row {goal[0]}, column {goal[1]})"
    if begin == end:
        raise ModelError(f"{ends} lie in the same cell of {coarsen} x {coarsen} pixels; lower coarsen")
    pieces = thinned(pieces, coarsen)
    begin, end = pieces.ends
    walls = np.ones(pieces.shape, bool)
    walls.ravel()[pieces.cells] = False
    given = Dynamics(**settings)
    if given.enterable_walls:
        ends = [divmod(int(pieces.cells[piece]), pieces.shape[1]) for piece in (begin, end)]
        return grid_world(walls, *ends, name=name, **settings)
    room = csgraph.connected_components(pieces.graph, directed=False)[1]
    if room[begin] != room[end]:
        raise ModelError(f"{ends} are not connected: no way leads from one to the other without entering a wall")
    pieces = pieces.only(_before_goal(pieces))
    begin, end = pieces.ends
    offsets = pieces.offsets.copy()
    for piece, pixel in ((begin, start), (end, goal)):  # ways begin and end where they were asked to
        offsets[piece] = [(at % coarsen + 0.5) / coarsen - 0.5 for at in pixel[::-1]]
    moves, neighbour = _moves(pieces, given.directions)
    layout = Grid(pieces.cells, walls, offsets=offsets)
    return assembled(moves, neighbour, pieces.ends, layout, given, name, _names(pieces))


def pieces_of(blocked: Bools, n: int, pixels: tuple[tuple[int, int], ...] = ()) -> Pieces:
    """All pieces of a map with cells of n x n pixels; what the image does not fill is blocked.

    Args:
        blocked: (rows, columns) the blocked pixels.
        n: the number of pixels in a cell in each direction.
        pixels: free pixels whose pieces are wanted.
    """
    rows, columns = (-(-length // n) for length in blocked.shape)
    padded = np.zeros((rows * n, columns * n), bool)
    padded[: blocked.shape[0], : blocked.shape[1]] = ~blocked
    by_cell = padded.reshape(rows, n, columns, n).swapaxes(1, 2)  # (rows, columns, n, n), without a copy
    free = by_cell.sum(axis=(2, 3), dtype=np.int64).ravel()
    if (count := np.count_nonzero(free == n * n)) > LARGEST_WORLD:
        raise ModelError(
            f"the map has {count:,} free cells of {n} x {n} pixels; it may have at most {LARGEST_WORLD:,}: merge more "
            f"pixels, as by coarsen={2 * n}"
        )
    partly = np.flatnonzero((free > 0) & (free < n * n))
    row, column = np.divmod(partly, columns)
    label = np.zeros((len(partly), n, n), np.int32)
    count = int(ndimage.label(by_cell[row, column], WITHIN_CELLS, output=label))  # pyright: ignore[reportArgumentType]
    inside, size, offset = _measured(label, count, n)

    cells = np.concatenate([partly[inside], np.flatnonzero(free == n * n)])
    order = np.argsort(cells, kind="stable")
    number = np.empty(len(cells), np.int32)  # from the order of finding to the order of cells
    number[order] = np.arange(len(cells))
    sizes = np.concatenate([size, np.full(len(cells) - count, n * n)])[order]
    offsets = np.concatenate([offset, np.zeros((len(cells) - count, 2))])[order]

    whole = np.full(rows * columns, -1, np.int32)
    whole[cells[count:]] = number[count:]
    of_label = np.append(np.int32(-1), number[:count])
    place = np.full(rows * columns, -1, np.int64)
    place[partly] = np.arange(len(partly))

    def edge(side: tuple[Any, Any]) -> NDArray[np.int32]:
        """(rows, columns, n) the pieces of the pixels on one side of each cell; -1 where it is blocked."""
        found = np.repeat(whole[:, None], n, axis=1)
        found[partly] = of_label[label[:, *side]]
        return found.reshape(rows, columns, n)

    every = slice(None)
    links = []
    for here, there in (
        (edge((every, -1))[:, :-1], edge((every, 0))[:, 1:]),
        (edge((-1, every))[:-1], edge((0, every))[1:]),
    ):
        touch = (here >= 0) & (there >= 0)
        pairs = sparse.coo_array(
            (np.ones(np.count_nonzero(touch), np.int32), (here[touch], there[touch])), (len(cells),) * 2
        )
        links.append(sparse.csr_array(pairs))
        links[-1].data[:] = 1

    def piece(r: int, c: int) -> int:
        cell = (r // n) * columns + c // n
        return int(whole[cell] if place[cell] < 0 else of_label[label[place[cell], r % n, c % n]])

    ends = tuple(piece(*pixel) for pixel in pixels)
    return Pieces((rows, columns), cells[order], offsets, sizes, links[0], links[1], ends)


def _measured(label: NDArray[np.int32], count: int, n: int) -> tuple[Ints, Ints, Floats]:
    """Of each labelled piece: its entry in the stack, its size, and the offset of a pixel in its middle."""
    entry, row, column = np.nonzero(label)
    of = label[entry, row, column] - 1
    size = np.bincount(of, minlength=count)
    inside = np.zeros(count, np.int64)
    inside[of] = entry
    middle = [np.bincount(of, along, minlength=count) / np.maximum(size, 1) for along in (row, column)]
    away = (row - middle[0][of]) ** 2 + (column - middle[1][of]) ** 2
    nearest = np.lexsort((away, of))
    first = nearest[np.searchsorted(of[nearest], np.arange(count))]
    offset = np.column_stack([(along[first] + 0.5) / n - 0.5 for along in (column, row)])
    return inside, size, offset


def thinned(pieces: Pieces, n: int) -> Pieces:
    """The pieces without those that no way needs; see the head of this module."""
    graph = pieces.graph
    kept = np.ones(len(pieces.cells), bool)
    candidate = pieces.sizes < n * n
    candidate[list(pieces.ends)] = False
    tried = np.flatnonzero(candidate)
    queue = np.full(len(kept), -1, np.int64)
    queue[: len(tried)] = tried[np.argsort(pieces.sizes[tried], kind="stable")]
    where = np.column_stack(np.divmod(pieces.cells, pieces.shape[1]))
    thin(
        graph.indptr.astype(np.int64),
        graph.indices.astype(np.int64),
        where,
        queue,
        kept,
        np.zeros((3, len(kept)), np.int64),
    )
    return pieces.only(kept)


def _before_goal(pieces: Pieces) -> Bools:
    """(P,) the pieces that can be reached from the start without passing through the goal, and the goal."""
    begin, end = pieces.ends
    others = np.arange(len(pieces.cells)) != end
    room = np.full(len(others), -1)
    room[others] = csgraph.connected_components(pieces.graph[others][:, others], directed=False)[1]
    found = room == room[begin]
    found[end] = True
    return found


def _moves(pieces: Pieces, directions: int) -> tuple[Moves, Ints]:
    """The moves by name, and (P, moves) the piece that each of them leads to, or -1.

    A diagonal move leads where both ways around the corner lead, as in `grid_world`.
    """
    right, down = pieces.right, pieces.down
    straight = {(1, 0): down, (0, -1): right.T, (-1, 0): down.T, (0, 1): right}
    first: Moves = []
    more: Moves = []
    columns: dict[str, Ints] = {}
    for name, step in list(MOVES.items())[:directions]:
        if step in straight:
            links = sparse.csr_array(straight[step])
        else:
            along, across = straight[step[0], 0], straight[0, step[1]]
            links = sparse.csr_array((along @ across).multiply(across @ along))
        links.sort_indices()
        begin = links.indptr[:-1]
        for rank in range(max(1, int(np.diff(links.indptr).max(initial=0)))):
            there = np.flatnonzero(np.diff(links.indptr) > rank)
            target = np.full(len(pieces.cells), -1)
            target[there] = links.indices[begin[there] + rank]
            said = name if rank == 0 else f"{name} {rank + 1}"
            (more if rank else first).append((said, step))
            columns[said] = target
    moves = first + more
    return moves, np.column_stack([columns[name] for name, _ in moves])


def _names(pieces: Pieces) -> tuple[str, ...] | None:
    """Names of the states: None if those of the cells suffice, otherwise with a number from the second piece on."""
    same = np.diff(pieces.cells, prepend=-1) == 0
    if not same.any():
        return None
    index = np.arange(len(same))
    rank = index - np.maximum.accumulate(np.where(same, 0, index))
    row, column = np.divmod(pieces.cells, pieces.shape[1])
    return tuple(
        f"r{r}c{c}" + (f"-{k + 1}" if k else "")
        for r, c, k in zip(row.tolist(), column.tolist(), rank.tolist(), strict=True)
    )
