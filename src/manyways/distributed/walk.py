"""`Near` on several machines: the random walk of `behaviours.near`, on the same places with the same number of steps.

Places are states or, for large radii, blocks of states. Each process has consecutive places, numbered in the order of their
first states as on one machine, and knows of further places, the ghosts, to which its own are joined or on which its states
lie. A step of the walk is a product with a sparse matrix after one exchange of the values of ghosts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from manyways.behaviours import LinearMap
from manyways.behaviours.linear_map import Walking
from manyways.behaviours.near import block_side, no_neighbours, steps_for
from manyways.distributed.part import Drawing, ModelPart
from manyways.distributed.team import Halo, Team, routed
from manyways.types import Floats, Ints, Sparse
from manyways.vectors import plain, shared


@dataclass(frozen=True, eq=False)
class SharedWalk(LinearMap):
    """The map of `Near` on the part of a model that this process has; `Walking` has the formulas.

    Attributes:
        places_of: the places of this process, P of them, and its ghosts, numbered after them.
        begin: (n,) the place of each choice, numbered here.
        joined: (P, P + G) CSR, ones where places are joined, sorted.
        steps: of the walk.
    """

    places_of: Places
    begin: Ints
    joined: Sparse
    steps: int
    _means: Sparse = field(init=False, repr=False)
    _degree: Floats = field(init=False, repr=False)

    def __post_init__(self) -> None:
        means: Sparse = sparse.csr_array(self.joined + sparse.eye_array(*self.joined.shape))
        degree = np.diff(means.indptr)
        means.data /= np.repeat(degree, degree)
        object.__setattr__(self, "_means", means)
        object.__setattr__(self, "_degree", degree.astype(np.float64))

    @property
    def places(self) -> int:
        """B, those of all processes."""
        return int(self.places_of.cuts[-1])

    @property
    def most_terms(self) -> int:
        team = self.places_of.team
        together = self.places_of.collected(np.bincount(self.begin, minlength=self.places_of.known).astype(np.float64))
        return int(team.max(float(together.max(initial=1)))) + self.steps * (int(team.max(self._degree.max())) + 1) + 2

    def forward(self, x: Floats) -> Floats:
        if x.ndim > 1:
            return np.stack([self.forward(row) for row in x])
        spent = np.bincount(self.begin, weights=plain(x), minlength=self.places_of.known)
        image = self._degree * self._walked(self.places_of.collected(spent) / self._degree)
        return shared(image, self.places_of.team)

    def backward(self, y: Floats) -> Floats:
        if y.ndim > 1:
            return np.stack([self.backward(row) for row in y])
        return shared(self.places_of.filled(self._walked(plain(y)))[self.begin], self.places_of.team)

    def _walked(self, values: Floats) -> Floats:
        """(P,) -> (P,): the mean of a value of each place over where a walk from there ends."""
        for _ in range(self.steps):
            values = self._means @ self.places_of.filled(values)
        return values

    def whole(self) -> Walking:
        """The walk from place to place, whole in all processes: only where there are few places."""
        edges, places = sparse.coo_array(self.joined), self.places_of
        pairs = np.column_stack([edges.row + places.lo, places.numbers[edges.col]])
        row, column = np.concatenate(places.team.comm.allgather(pairs)).T
        graph = sparse.csr_array((np.ones(len(row)), (row, column)), shape=(self.places, self.places))
        return Walking(np.arange(self.places), graph, self.steps)


class Places:
    """Consecutive places of this process and the ghosts that it knows of.

    Args:
        team: the processes.
        cuts: (size + 1,) the first place of each process, and the number of places.
        ghosts: (G,) the numbers of places of other processes, sorted.
    """

    def __init__(self, team: Team, cuts: Ints, ghosts: Ints) -> None:
        self.team, self.cuts, self.ghosts = team, cuts, ghosts
        self.lo, self.own = int(cuts[team.rank]), int(cuts[team.rank + 1] - cuts[team.rank])
        self.known = self.own + len(ghosts)
        self._halo = Halo(team, cuts, ghosts)

    @property
    def numbers(self) -> Ints:
        """(P + G,) the numbers of all known places."""
        return np.concatenate([self.lo + np.arange(self.own), self.ghosts])

    def here(self, numbers: Ints) -> Ints:
        """The numbers that known places have in this process."""
        mine = (numbers >= self.lo) & (numbers < self.lo + self.own)
        return np.where(mine, numbers - self.lo, self.own + np.searchsorted(self.ghosts, numbers))

    def filled(self, own: Any) -> Any:
        """(P, ...) -> (P + G, ...): values of own places, and of the ghosts."""
        known = np.empty(self.known, own.dtype)
        known[: self.own] = own
        self._halo.fill(known)
        return known

    def collected(self, known: Any) -> Any:
        """(P + G,) -> (P,): what all processes have for the own places, added up."""
        self._halo.add_back(known)
        return known[: self.own]


def walk_on(part: ModelPart, radius: float) -> SharedWalk:
    """The map of `Near(radius)`, for a radius above 0.

    Raises:
        SettingError: if no move can be made both ways.
    """
    team, drawing = part.team, part.drawing()
    row, column = _two_way_moves(part, drawing)
    if not team.any(len(row) > 0):
        raise no_neighbours(part.name)
    where, label = None, part.filled(part.lo + np.arange(part.own))
    if drawing is not None:
        radius = min(radius / drawing.metres_per_cell, np.hypot(*drawing.shape))
        where = np.column_stack([part.filled(axis) for axis in drawing.positions])
        side = block_side(radius)
        label = label if side < 2 else _blocks(part, row, column, where // side, label)
    place, cuts = _numbered(part, label)
    apart = place[row] != place[column]
    edges = _with_their_owners(team, cuts, np.column_stack([place[row[apart]], place[column[apart]]]))
    lo, hi = cuts[team.rank : team.rank + 2]
    mentioned = np.unique(np.concatenate([edges[:, 1], place[: part.own]]))
    places = Places(team, cuts, mentioned[(mentioned < lo) | (mentioned >= hi)])
    ends = places.here(edges[:, 0]), places.here(edges[:, 1])
    joined = sparse.csr_array((np.ones(len(edges)), ends), shape=(places.own, places.known))
    joined.data[:] = 1.0  # moves between the same places are one edge
    at = places.here(place[: part.own])
    centres = None if where is None else _centres(places, at, where[: part.own])
    return SharedWalk(places, at[part.owner], joined, _steps(places, joined, centres, radius))


def _two_way_moves(part: ModelPart, drawing: Drawing | None) -> tuple[Ints, Ints]:
    """Moves between free states that can be made both ways: from own states, to known ones."""
    graph: Sparse = sparse.csr_array(
        (part.data > 0, part.indices.copy(), part.indptr[part.first]), shape=(part.own, part.known)
    )
    graph.sum_duplicates()
    graph.eliminate_zeros()
    inside = graph[:, : part.own]
    both = sparse.coo_array(inside.multiply(inside.T.tocsr()))
    across = sparse.coo_array(graph[:, part.own :])
    own, other = across.row.astype(np.int64) + part.lo, part.ghosts[across.col]
    backwards = routed(part.team, part.cuts, other, np.column_stack([own, other]))  # moves into states of this process
    returned = np.isin(own * part.n_states + other, backwards[:, 1] * part.n_states + backwards[:, 0])
    row = np.concatenate([both.row, across.row[returned]]).astype(np.int64)
    column = np.concatenate([both.col, part.own + across.col[returned]]).astype(np.int64)
    free = np.ones(part.known, bool) if drawing is None else part.filled(~drawing.blocked)
    kept = (row != column) & free[row] & free[column]
    return row[kept], column[kept]


def _blocks(part: ModelPart, row: Ints, column: Ints, square: Floats, label: Ints) -> Ints:
    """(m + G,) the first state of the block of each known state: connected states of one square; `label` (m + G,) are the
    states themselves. Each process joins what it sees, until no label at a border changes."""
    inside = (square[row] == square[column]).all(axis=1)
    joined = sparse.coo_array((np.ones(inside.sum(), bool), (row[inside], column[inside])), shape=(part.known,) * 2)
    count, component = csgraph.connected_components(joined, directed=False)
    while True:
        first = np.full(count, part.n_states)
        np.minimum.at(first, component, label)
        label = first[component]
        told = part.filled(label[: part.own])
        if not part.team.any(bool((told != label).any())):
            return label
        label = np.minimum(label, told)


def _numbered(part: ModelPart, label: Ints) -> tuple[Ints, Ints]:
    """(m + G,) the first state of each known state's place -> (m + G,) the numbers of the places, in the order of their first
    states, and (size + 1,) the first place of each process, and their number."""
    first = label[: part.own] == part.lo + np.arange(part.own)
    counts = part.team.comm.allgather(int(first.sum()))
    cuts = np.concatenate([[0], np.cumsum(counts)])
    foreign = np.unique(label[(label < part.lo) | (label >= part.hi)])
    elsewhere = np.searchsorted(foreign, label)
    number = np.empty(part.own + len(foreign), np.int64)
    number[: part.own] = cuts[part.team.rank] + np.cumsum(first) - 1
    Halo(part.team, part.cuts, foreign).fill(number)
    here = (label >= part.lo) & (label < part.hi)
    return number[np.where(here, label - part.lo, part.own + elsewhere)], cuts


def _with_their_owners(team: Team, cuts: Ints, edges: Ints) -> Ints:
    """(E, 2) edges between places -> those that begin at the places of this process, whoever knew of them."""
    lo, hi = cuts[team.rank : team.rank + 2]
    own = (edges[:, 0] >= lo) & (edges[:, 0] < hi)
    return np.concatenate([edges[own], routed(team, cuts, edges[~own, 0], edges[~own])])


def _centres(places: Places, at: Ints, where: Floats) -> Floats:
    """(P + G, 2) the mean position of the states of each known place; `at` (m,) is where own states lie."""

    def total(weights: Floats | None) -> Floats:
        return places.collected(np.bincount(at, weights=weights, minlength=places.known).astype(np.float64))

    size = total(None)
    return np.column_stack([places.filled(total(axis) / size) for axis in where.T])


def _steps(places: Places, joined: Sparse, where: Floats | None, radius: float) -> int:
    """The number of steps after which the root mean square distance of a walk from its start is the radius."""
    team, edges, moves = places.team, sparse.coo_array(joined), np.diff(joined.indptr)
    if not team.any(len(edges.row) > 0):
        return 0
    squared = np.zeros(len(edges.row)) if where is None else ((where[edges.row] - where[edges.col]) ** 2).sum(axis=1)
    if not team.any(bool(squared.any())):
        squared[:] = 1.0
    by_place = np.bincount(edges.row, weights=squared, minlength=places.own) / (moves + 1)
    mean = team.sum(float(by_place[moves > 0].sum())) / team.sum(int((moves > 0).sum()))
    return steps_for(radius, float(mean))
