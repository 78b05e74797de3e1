"""The part of a model that one process has: consecutive states of an HDF5 file, with their choices and transitions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from manyways.distributed.team import Halo, Team
from manyways.errors import SourceError
from manyways.formats.hdf5 import ModelFile
from manyways.model.checking import ROUNDING
from manyways.types import Bools, Floats, Ints
from manyways.vectors import SharedVector, shared


@dataclass(frozen=True, eq=False)
class Drawing:
    """Where the states of a process are drawn on the map of the whole model.

    Attributes:
        shape: rows and columns of the map.
        cells: (m,) the cell of each state, `row * columns + column`.
        blocked: (m,) whether it is drawn as a wall or an obstacle.
        metres_per_cell: the length of a cell's side, 1 if it is not known.
    """

    shape: tuple[int, int]
    cells: Ints
    blocked: Bools
    metres_per_cell: float

    @property
    def positions(self) -> tuple[Floats, Floats]:
        """(m,) rows and (m,) columns."""
        row, column = np.divmod(self.cells, self.shape[1])
        return row.astype(np.float64), column.astype(np.float64)


class ModelPart:
    """The states lo:hi of a model, numbered from 0, and the ghosts to which they lead, numbered from hi - lo.

    It stands in for the `MDP` where only vectors over choices are needed: `reward` and `start` are shared vectors, and
    `n_states` and `n_choices` count the whole model.

    Attributes:
        team: the processes.
        path: of the file.
        header: of the file.
        cuts: (processes + 1,) the first state of each process, and the number of states.
        lo, hi: the states of this process; `choices_from` is the number of its first choice in the whole model.
        first: (m + 1,) where the choices of each state begin; `owner` (n,) the state of each choice.
        indptr, indices, data: the CSR parts of the (n, m + G) transitions.
        reward: (n,); start: (m,).
        ghosts: (G,) the numbers of the ghosts in the whole model; `halo` fetches their values.
    """

    ends: dict[str, Floats] = {}  # noqa: RUF012 (models with ends of episodes are refused)
    layout = None

    def __init__(self, path: Path, team: Team) -> None:
        self.team, self.path, self.name = team, path, path.stem
        self.costs = False
        team.together(self._read)
        total = float(team.sum(float(self._start.sum())))
        if abs(total - 1) > ROUNDING:
            raise SourceError(f"{path}: the start distribution sums to {total:.10g}, expected 1")
        self.start: SharedVector = shared(self._start / total if abs(total - 1) > 1e-12 else self._start, team)
        self.halo = Halo(team, self.cuts, self.ghosts)

    def _read(self) -> None:
        with ModelFile(self.path) as file:
            self.header = file.header
            self.n_states, self.n_choices, self.n_transitions = file.n_states, file.n_choices, file.n_transitions
            if file.header.get("ends"):
                raise SourceError(
                    f"{self.path}: models with ends of episodes cannot be planned on several machines; plan without the engine"
                )
            self.costs = bool(file.header.get("costs"))
            if self.n_states < self.team.size:
                raise SourceError(f"{self.path} has {self.n_states} states, too few for {self.team.size} processes")
            self.cuts = _cuts(file, self.team.size)
            self.lo, self.hi = (int(cut) for cut in self.cuts[self.team.rank : self.team.rank + 2])
            self._read_choices(file)
            self._start = file.start(self.lo, self.hi)

    def _read_choices(self, file: ModelFile) -> None:
        first = file.first_choices(self.lo, self.hi)
        n, self.choices_from = int(first[-1] - first[0]), int(first[0])
        ends = (int(file.arrays.read("row_begin", int(x), int(x) + 1)[0]) for x in (first[0], first[-1]))
        begin, end = ends
        room = max(end - begin, 0)
        index = np.int32 if max(room, n, self.hi - self.lo) < 2**31 - 1 else np.int64
        self.first = (first - first[0]).astype(index)
        self.owner = np.repeat(np.arange(self.hi - self.lo, dtype=index), np.diff(self.first))
        self.indptr, self.indices, self.data = np.zeros(n + 1, index), np.empty(room, index), np.empty(room)
        reward, met, x, t = np.empty(n), _Met(), 0, 0
        for block in file.blocks(self.lo, self.hi):
            if not block.as_stored:
                raise SourceError(
                    f"{self.path}: the transitions are not sorted and merged, with probabilities that sum to one to the last "
                    "digits; write the file with 'manyways convert'"
                )
            matrix = block.transitions
            count, nnz = matrix.shape[0], matrix.nnz
            self.indptr[x + 1 : x + 1 + count] = t + matrix.indptr[1:]
            own = (matrix.indices >= self.lo) & (matrix.indices < self.hi)
            local = matrix.indices.astype(np.int64) - self.lo
            local[~own] = self.hi - self.lo + met.numbers(matrix.indices[~own])
            self.indices[t : t + nnz], self.data[t : t + nnz] = local, matrix.data
            reward[x : x + count] = block.reward
            x, t = x + count, t + nnz
        self.indices, self.data = self.indices[:t], self.data[:t]
        self.ghosts, rank = met.sorted()
        foreign = self.indices >= self.hi - self.lo
        self.indices[foreign] = self.hi - self.lo + rank[self.indices[foreign] - (self.hi - self.lo)]
        self.reward: SharedVector = shared(reward, self.team)

    def drawing(self) -> Drawing | None:
        """Where the own states are drawn; None in models without a map."""
        return self.team.together(self._drawing) if self.header.get("layout") == "grid" else None

    def _drawing(self) -> Drawing:
        with ModelFile(self.path) as file:
            shape, cells = file.arrays.shape("blocked"), file.arrays.read("cells", self.lo, self.hi).astype(np.int64)
            if len(shape) != 2 or cells.shape != (self.own,) or cells.min() < 0 or cells.max() >= shape[0] * shape[1]:
                raise SourceError(f"{self.path}: the cells of the states do not fit the map")
            top, bottom = int(cells.min()) // shape[1], int(cells.max()) // shape[1]
            rows = file.arrays.read("blocked", top, bottom + 1).astype(bool)
            blocked = rows.ravel()[cells - top * shape[1]]
        return Drawing((shape[0], shape[1]), cells, blocked, float(self.header.get("metres_per_cell") or 1.0))

    # ---- what objectives and methods need of a model ------------------------------------------

    @property
    def own(self) -> int:
        """m, the number of states of this process."""
        return self.hi - self.lo

    @property
    def known(self) -> int:
        """m + G."""
        return self.own + len(self.ghosts)

    @property
    def arrays(self) -> tuple[Any, Any, Any]:
        return self.indptr, self.indices, self.data

    @property
    def first_choice(self) -> Any:
        return self.first

    @property
    def choice_state(self) -> Any:
        return self.owner

    @cached_property
    def natural(self) -> Any:
        """(m,) the states of this process in the order of their numbers."""
        return np.arange(self.own, dtype=self.first.dtype)

    def filled(self, own: Any) -> Any:
        """(m,) -> (m + G,): values of the own states, and those that the other processes have for the ghosts."""
        known = np.empty(self.known, own.dtype)
        known[: self.own] = own
        self.halo.fill(known)
        return known

    def place_of(self, state: int) -> int:
        """The number that a state of the whole model has here; -1 if it is neither own nor a ghost."""
        if self.lo <= state < self.hi:
            return state - self.lo
        at = int(np.searchsorted(self.ghosts, state))
        return self.own + at if at < len(self.ghosts) and self.ghosts[at] == state else -1

    def at(self, values: Any, state: int) -> float:
        """The value (m,) of a state of the whole model, in all processes."""
        return float(self.team.sum(float(values[state - self.lo]) if self.lo <= state < self.hi else 0.0))


class _Met:
    """The ghosts met so far, numbered in the order in which they were met."""

    def __init__(self) -> None:
        self._states, self._numbers = np.empty(0, np.int64), np.empty(0, np.int64)

    def numbers(self, states: Any) -> Ints:
        """The numbers of some states; new ones get the next numbers."""
        found = np.unique(states)
        at = np.searchsorted(self._states, found)
        known = np.zeros(len(found), bool)
        inside = at < len(self._states)
        known[inside] = self._states[at[inside]] == found[inside]
        new = found[~known]
        if len(new):
            numbers = len(self._states) + np.arange(len(new))
            self._states = np.insert(self._states, at[~known], new)
            self._numbers = np.insert(self._numbers, at[~known], numbers)
        return self._numbers[np.searchsorted(self._states, states)]

    def sorted(self) -> tuple[Ints, Ints]:
        """(G,) the states in order, and by number their place in it."""
        rank = np.empty(len(self._numbers), np.int64)
        rank[self._numbers] = np.arange(len(rank))
        return self._states, rank


def _cuts(file: ModelFile, parts: int) -> Ints:
    """Where to cut the states so that all parts have about as many choices, and none is empty."""
    cuts = [0]
    for part in range(1, parts):
        wanted, low, high = file.n_choices * part // parts, cuts[-1] + 1, file.n_states - (parts - part)
        while low < high:
            middle = (low + high) // 2
            if int(file.arrays.read("first_choice", middle, middle + 1)[0]) < wanted:
                low = middle + 1
            else:
                high = middle
        cuts.append(low)
    return np.array([*cuts, file.n_states])
