"""Steps of a solve in blocks of states, on which threads work side by side.

Within a block, passes go from state to state as in `sweeps`. Of other blocks they see the values that these had at the end of the
last pass. So blocks do not depend on each other within a pass, and the result is the same in every bit whatever the number
of threads. The number of blocks depends on the size of the model only. There are two kinds:

*Ranges* of consecutive states, for what depends on the order little: surveys and greedy passes. States are numbered so that few ways
lead from range to range (`renumbering`). The transitions of a range that leave it lead to numbers of their own, from S on,
one for each state outside that the range sees; the values there are brought up to date between passes.

*Branches* of the tree of likely successors, for sweeps, whose number would grow with each block that likely moves have to pass. All
states through which many others lead are the trunk, which is swept first. Then one block of branches sees of another only
what comes from unlikely moves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from manyways.kernels import blocks as loops
from manyways.kernels import sweeps as kernels
from manyways.kernels.threads import cores
from manyways.model.mdp import MDP
from manyways.types import Floats, Ints

STATES_OF_A_BLOCK, MOST_BLOCKS = 20_000, 8
BRANCHES_OF_A_BLOCK = 8
"""A branch has at most this part of a block, so that blocks have about the same size."""

_Result = TypeVar("_Result")


def bounds_of(n_states: int) -> Ints:
    """(B + 1,) where the ranges of a model begin; the last entry is S."""
    count = int(np.clip(n_states // STATES_OF_A_BLOCK, 1, MOST_BLOCKS))
    return -(-np.arange(count + 1) * n_states // count)


class Blocks:
    """The rows of a model, and work space.

    Args:
        first: (S + 1,) where the choices of each state begin.
        arrays: the transitions, as the kernels need them.
        bounds: where the ranges begin.
    """

    def __init__(self, mdp: MDP, first: Any, arrays: Any, bounds: Ints) -> None:
        n, self._first = mdp.n_states, first
        self.count, self.n, self._model = len(bounds) - 1, n, arrays
        self._ranges = [(int(low), int(high)) for low, high in pairwise(bounds)]
        self._within, self._inside = self._rows_by_range()
        self._half = 1 << int(n + len(self._inside) - 1).bit_length()
        self._values = {"h": np.zeros(2 * self._half), "y": np.zeros(2 * self._half)}
        self._now = {"h": 0, "y": 0}
        self.likely, self._walk, self._child, self._sibling, self._size = (np.empty(n, np.uint32) for _ in range(5))
        self._order, self._place, self._by_range = (np.empty(n, np.uint32) for _ in range(3))
        self._number = np.repeat(np.arange(self.count), np.diff(bounds)).astype(np.uint8)
        self._block = np.empty(n, np.uint8)
        self._starts, self._room = np.zeros(self.count + 2, np.int64), np.zeros(self.count + 2, np.int64)
        self._b, self._steps, self._ones = np.empty(n), np.zeros(n), np.ones(n)
        self._longest = np.maximum.reduceat(np.diff(arrays[0].astype(np.int64)), mdp.first_choice[:-1]).astype(
            np.uint32
        )
        room = int(self._longest.sum(dtype=np.int64))
        self._begin, self._target, self._weight = (
            np.empty(n + self.count + 1, np.uint64),
            np.empty(room, np.uint32),
            np.empty(room),
        )
        self._inverse, self._later, self._ahead = np.empty(n), np.empty(n), np.empty(n, np.uint32)
        self._spans: list[tuple[int, int]] = []
        self._rows: list[tuple[Any, ...]] = []
        self._pool: ThreadPoolExecutor | None = None
        self._threads = 1

    def _rows_by_range(self) -> tuple[Any, np.ndarray]:
        """The transitions with numbers of their own for states outside of the range, and the states that these stand for."""
        indptr, indices, data = self._model
        indices, inside, count = indices.copy(), [], self.n
        for low, high in self._ranges:
            rows = indices[int(indptr[self._first[low]]) : int(indptr[self._first[high]])]
            out = (rows < low) | (rows >= high)
            states, place = np.unique(rows[out], return_inverse=True)
            rows[out] = count + place
            count += len(states)
            inside.append(states)
        return (indptr, indices, data), np.concatenate(inside)

    # ---- threads ------------------------------------------------------------------------------

    @contextmanager
    def working(self) -> Iterator[None]:
        """Until the end, passes use as many threads as there are cores for this one."""
        self._threads = min(cores(), self.count)
        if self._threads == 1:
            yield
            return
        with ThreadPoolExecutor(self._threads - 1) as pool:
            self._pool = pool
            try:
                yield
            finally:
                self._pool = None

    def _each(self, work: Callable[[int], _Result]) -> list[_Result]:
        """The results of work on the blocks, by their numbers. This thread does its share."""

        def share(thread: int) -> list[_Result]:
            return [work(k) for k in range(thread, self.count, self._threads)]

        if self._pool is None:
            return [work(k) for k in range(self.count)]
        others = [self._pool.submit(share, thread) for thread in range(1, self._threads)]
        shares = [share(0), *(other.result() for other in others)]
        return [shares[k % self._threads][k // self._threads] for k in range(self.count)]

    # ---- values -------------------------------------------------------------------------------

    @property
    def h(self) -> Floats:
        """(S,) the values."""
        return self._values["h"][self._now["h"] :][: self.n]

    @property
    def y(self) -> Floats:
        """(S,) the times to the reference."""
        return self._values["y"][self._now["y"] :][: self.n]

    def lower_values(self, step: float) -> None:
        """Lower the values by `step` times the times to the reference."""
        h, y = self.h, self.y
        h -= step * y

    # ---- passes over ranges -------------------------------------------------------------------

    def survey(self, c: Floats, choice: np.ndarray) -> tuple[float, float, float, float]:
        """See `kernels.sweeps.survey`, without a discount."""
        h = self.h
        found = self._each(
            lambda k: kernels.partial_survey(self._first, *self._model, c, 1.0, h, choice, *self._ranges[k])
        )
        scale, height, top, bottom = np.array(found).T
        return float(scale.max()), float(height.max()), float(top.max()), float(bottom.min())

    def greedy(self, c: Floats, g: float, choice: np.ndarray, root: int, margin: float) -> tuple[int, float]:
        """See `kernels.sweeps.greedy`, for a chain that is cut at the root. Each range is passed in the order of the walk."""
        h = self._values["h"][self._now["h"] :][: self.n + len(self._inside)]
        order = self._by_range
        loops.sort_by_range(self._walk, self._number, np.array([low for low, _ in self._ranges]), order)

        def improve(k: int) -> tuple[int, float]:
            low, high = self._ranges[k]
            cut = low <= root < high
            mine = order[low:high]
            return kernels.greedy(mine, self._first, *self._within, c, 1.0, g, h, choice, margin, 1, cut)

        changes, moved = 0, 0.0
        for _ in range(kernels.GREEDY_PASSES):
            loops.refresh(h, self._inside)
            found = self._each(improve)
            changed, moved = sum(changed for changed, _ in found), max(step for _, step in found)
            changes += changed
            if changed == 0:
                break
        return changes, moved

    # ---- the policy, in blocks of branches ----------------------------------------------------

    def walk(self, choice: np.ndarray, root: int) -> bool:
        """Walk through the tree of likely successors; whether all states lead to the root by these."""
        self._each(lambda k: kernels.likely_successors(choice, *self._model, self.likely, *self._ranges[k]))
        self._walk[0] = root
        return kernels.walk(self._walk, self.likely, self._child, self._sibling) == self.n

    def lay_out(self, c: Floats, choice: np.ndarray) -> None:
        """Lay the policy out along the walk."""
        most = self.n // (BRANCHES_OF_A_BLOCK * self.count)
        tree = self._walk, self.likely, self._size, most, self._longest, self._block
        loops.split(*tree, self._starts, self._room, self._order, self._place)
        starts, room, root = self._starts.tolist(), self._room.tolist(), int(self._walk[0])
        self._spans = list(pairwise(starts))
        self._rows = []
        for k, (low, high) in enumerate(self._spans):
            states, packed = slice(low, high), slice(room[k], room[k + 1])
            parts = self._begin[low + k : high + k + 1], self._target[packed], self._weight[packed]
            self._rows.append((*parts, self._inverse[states], self._later[states], self._ahead[states]))

        def lay_out(k: int) -> None:
            low, high = self._spans[k]
            where = self._order, low, high, starts[1], self._place, choice, *self._model
            b = self._b[low:high]
            loops.lay_out(*where, c, root, self.likely, self._half, b, *self._rows[k])

        lay_out(0)
        self._each(lambda k: lay_out(k + 1))

    def take_walk(self, order: np.ndarray, likely: np.ndarray) -> None:
        """Walk through the states in this order instead, of which some do not follow the one that is likely after them."""
        place = np.empty(self.n, np.int64)
        place[order] = np.arange(self.n)
        self._walk[:] = order
        self.likely[:] = np.where(place[likely] < place, likely, order[0])

    def sweep_times(self, most: int, tolerance: float) -> tuple[int, float]:
        """Sweep the times to the reference."""
        return self._sweep("y", self._ones, 0.0, most, tolerance)

    def sweep_values(self, g: float, most: int, tolerance: float) -> tuple[int, float]:
        """Sweep the values at a gain of g."""
        return self._sweep("h", self._b, g, most, tolerance)

    def _sweep(self, name: str, b: Floats, shift: float, most: int, tolerance: float) -> tuple[int, float]:
        """See `kernels.sweeps.sweep`, for a chain that is cut at the reference."""
        values, root, half = self._values[name], int(self._order[0]), np.uint32(self._half)
        values[root] = values[root + self._half] = self._steps[root] = 0.0
        now, change, rises, made, trust = self._now[name], 0.0, 0, 0, 1.0

        def sweep(k: int) -> float:
            states = slice(*self._spans[k])
            rows = self._order[states], *self._rows[k], b[states]
            return loops.sweep_block(*rows, self._steps, shift, values, np.uint32(now), half, k == 0, trust)

        while made < most:
            made += 1
            trust = 1.0 if rises < kernels.RISES else 0.0
            now ^= self._half
            change, before = max(sweep(0), *self._each(lambda k: sweep(k + 1))), change
            if change <= tolerance:
                break
            rises += 0 < before <= change
        self._now[name] = now
        begin, target, weight, *_ = self._rows[0]
        row = slice(0, int(begin[1]))
        return made, float(b[0] - shift + weight[row] @ values[target[row].astype(np.int64) ^ self._half ^ now])
