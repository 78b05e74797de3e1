"""Sweeps of a model that does not fit into the processor's cache, for the long-run average.

They differ from those of smaller models (`sweeps`) in five things.

*Passes in pairs.* Passes over a large model wait for memory. So the second of two passes follows the first at a short distance
(`kernels.paired_passes`), in the same thread or in another. The values are those of one pass after the other, in every bit.

*Two threads.* Each iteration is one compiled call, made by one thread, or by two that share its work and meet where one needs
what the other wrote (`kernels.paired_iteration`). Both come to the same decisions, so the result is the same in every bit.

*Patches.* Where few states changed their choices, the policy is not ordered and laid out again, but patched
(`kernels.paired_layout`).

*Improvements by number.* Greedy passes go through the states by their numbers, as they lie in memory, because these are in the order
of cheap ways (`renumbering`).

*Restless tiles.* After the first iterations most states keep their choices and their values; what still changes are the
borders between places from which one way is better and places from which another one is. Greedy passes look only at tiles of
states in which something can be improved, or to which the last pass led from states that changed. Several of them move a border
farther than one pass over all states would, in less time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import numpy as np

from manyways.kernels import announcements, paired_iteration, paired_layout, paired_push, small_solves
from manyways.kernels import paired_passes as passes
from manyways.kernels import sweeps as kernels
from manyways.kernels.paired_arrays import Crew, Layout, Model, Rows, Tiles, new_crew
from manyways.kernels.threads import cores
from manyways.model.mdp import MDP
from manyways.polytope.large_sweeps import LargeSweeps
from manyways.polytope.oracle import Pause
from manyways.polytope.sweeps import MAX_CUTS, GaveUp, SolveState
from manyways.polytope.vertex import Answer, Vertex
from manyways.types import Floats, Ints

THREADS_FROM = 50_000
"""States. In smaller models two threads would mostly wait for each other."""

_Result = TypeVar("_Result")


class PairedSweeps(LargeSweeps):
    """The oracle of one model, for the average."""

    def __init__(self, mdp: MDP, pause: Pause | None = None) -> None:
        super().__init__(mdp, 1.0, pause, chunk=passes.CHUNK)
        n = mdp.n_states
        chunks, tiles = -(-n // passes.CHUNK), -(-n // passes.TILE)
        self._two = _Two(n)
        self._model = Model(self._first, *self._arrays)
        self._packed = Rows(*self._rows)
        longest = np.maximum.reduceat(np.diff(mdp.transitions.indptr), mdp.first_choice[:-1]).astype(np.uint32)
        nearest, farthest, last = (np.empty(chunks, np.int64) for _ in range(3))
        self._layout = Layout(
            self._order, self._place, self._likely, self._child, self._sibling, np.empty(n, np.uint32), longest,
            np.zeros(chunks + 1, np.int64), nearest, farthest, last, np.empty(chunks, bool),
        )  # fmt: skip
        self._tiles = np.empty(tiles), np.empty(tiles, bool), np.empty((2, tiles), bool)
        self._steps_of_times = np.empty(n)
        self._reach: tuple[int, Ints] | None = None

    def best(self, c: Floats, warm: Vertex | None = None) -> Answer:
        """The vertex of highest <c, rho> for an (N,) c."""
        with self._two.together():
            return super().best(c, warm)

    def _average(self, c: Floats, at: SolveState, wanted: float) -> Answer:
        stay, floor, upper = small_solves.outlook(c, self._loops)
        if at.g < floor:
            at.g = max(floor, float(c[at.choice].min()))
        fresh, at.fresh = at.fresh, False
        lower, top = floor, np.inf
        iteration, cuts, enough, settled = 0, 0, -1.0, True
        while iteration < self._most:
            self.pause()
            end, at.g, lower, upper, top, enough, settled = self._iterated(
                c, at, lower, upper, floor, stay >= 0, wanted, fresh, iteration, enough, settled
            )
            if end == kernels.PROVED:
                self._push(np.zeros(len(at.h)), max(float(at.y[at.reference]), 1.0))
                return self._vertex(c, at, top)
            if end == kernels.STAYING:
                return self._staying(c, at, stay, top)
            if end == kernels.ASTRAY:
                cuts += self._arrange(c, at, may_move=cuts < MAX_CUTS)
            else:
                iteration += 1
        raise GaveUp

    # ---- steps --------------------------------------------------------------------------------

    def _iterated(
        self, c: Floats, at: SolveState, *progress: float
    ) -> tuple[int, float, float, float, float, float, bool]:
        """One iteration, by one thread or two; see `kernels.paired_iteration.iterate_once`."""
        crew, tiles = new_crew(), Tiles(*self._tiles, self._reach_of(at.reference))
        work = tiles, self._work, self._steps_of_times, self._b, self._ones, at.reference, at.g
        solve = self._model, c, at.h, at.y, at.choice, self._layout, self._packed, *work, *progress
        return self._two.make(lambda part: paired_iteration.iterate_once(part, crew, *solve), crew)

    def _reach_of(self, reference: int) -> Ints:
        """(chunks,) how far a pass by number must be before the next one may follow, if the chain is cut at the reference."""
        if self._reach is None or self._reach[0] != reference:
            nearest, farthest, last = (np.empty_like(self._layout.last) for _ in range(3))
            indptr, indices, _ = self._arrays
            passes.reach(self._first, indptr, indices, reference, nearest, farthest)
            passes.lasts(nearest, farthest, last)
            self._reach = reference, last
        return self._reach[1]

    def _push(self, start: Floats, mass: float) -> None:
        enough, crew = kernels.MASS_LEFT * mass, new_crew()
        work = self._layout, self._packed, self._work, start, self._b, enough
        if not self._two.make(lambda part: paired_push.push(part, crew, *work), crew) <= enough:
            raise GaveUp

    def _pack(self, c: Floats, at: SolveState) -> None:
        policy = self._model, c, at.choice, self._layout, self._b, self._packed
        paired_layout.lay_out_in_order(announcements.BOTH, new_crew(), *policy)


class _Two:
    """This thread, and another one beside it where a processor core is free and the model large enough."""

    def __init__(self, n_states: int) -> None:
        self._large = n_states >= THREADS_FROM
        self._other: ThreadPoolExecutor | None = None

    @contextmanager
    def together(self) -> Iterator[None]:
        """Until the end, there is another thread."""
        if not self._large or cores() == 1:
            yield
            return
        with ThreadPoolExecutor(1) as other:
            self._other = other
            try:
                yield
            finally:
                self._other = None

    def make(self, work: Callable[[int], _Result], crew: Crew) -> _Result:
        """The result of both parts of the work, during which two threads meet."""
        if self._other is None:
            return work(announcements.BOTH)
        second = self._other.submit(work, announcements.SECOND)
        try:
            found = work(announcements.FIRST)
        except BaseException:
            announcements.call_off(crew.meetings)
            raise
        second.result()
        return found
