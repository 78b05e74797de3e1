"""Sweeps of a model that does not fit into the processor's cache, for the long-run average.

They differ from those of smaller models (`sweeps`) in three things.

*Passes in pairs.* Passes over a large model wait for memory. So the second of two passes follows the first at a short distance
(`kernels.paired_sweeps`), in the same thread or in another. The values are those of one pass after the other, in every bit.

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
from time import sleep
from typing import TypeVar

import numpy as np

from manyways.kernels import orders, small_solves
from manyways.kernels import paired_sweeps as loops
from manyways.kernels import sweeps as kernels
from manyways.kernels.threads import cores
from manyways.model.mdp import MDP
from manyways.polytope.large_sweeps import LargeSweeps
from manyways.polytope.oracle import Pause
from manyways.polytope.sweeps import MAX_CUTS, GaveUp, SolveState
from manyways.polytope.vertex import Answer, Vertex
from manyways.types import Floats, Ints

THREADS_FROM = 50_000
"""States. In smaller models two threads would mostly wait for each other."""
RESTLESS, MOST_WORK = 0.01, 3
"""A state is restless if its value changes by more than this part of the largest surplus. Improvements end when no state is, or
after as much work as so many passes over all states."""

_Result = TypeVar("_Result")


class PairedSweeps(LargeSweeps):
    """The oracle of one model, for the average."""

    def __init__(self, mdp: MDP, pause: Pause | None = None) -> None:
        super().__init__(mdp, 1.0, pause, chunk=loops.CHUNK)
        n = mdp.n_states
        chunks, tiles = -(-n // loops.CHUNK), -(-n // loops.TILE)
        self._two = _Two(n)
        self._nearest, self._farthest, self._last = (np.empty(chunks, np.int64) for _ in range(3))
        self._room = np.zeros(chunks + 1, np.int64)
        self._gains, self._marks = np.empty(tiles), np.empty((2, tiles), bool)
        self._reach: tuple[int, Ints] | None = None

    def best(self, c: Floats, warm: Vertex | None = None) -> Answer:
        """The vertex of highest <c, rho> for an (N,) c."""
        with self._two.together():
            return super().best(c, warm)

    def _average(self, c: Floats, at: SolveState, wanted: float) -> Answer:
        n, tolerance = self.mdp.n_states, kernels.TOLERANCE
        stay, floor, upper = small_solves.outlook(c, self._loops)
        if at.g < floor:
            at.g = max(floor, float(c[at.choice].min()))
        fresh, at.fresh = at.fresh, False
        lower, cuts = floor, 0
        for iteration in range(self._most):
            self.pause()
            scale, height, top, bottom = self._survey(c, at)
            span, goal = scale + height, min(tolerance * scale, wanted)
            changes, moved = 0, kernels.EVALUATED * span
            if iteration:
                lower, upper = max(lower, bottom), min(upper, top)
                if 0 <= top - bottom <= goal:
                    self._push(np.zeros(n), max(float(at.y[at.reference]), 1.0))
                    return self._vertex(c, at, top)
                if stay >= 0 and abs(top - floor) <= goal:
                    return self._staying(c, at, stay, top)
                changes, moved = self._improve_tiles(c, at, 1e-13 * span, RESTLESS * (top - bottom))
                if changes**2 <= n:  # this may be the last policy, so it is evaluated for the proof
                    moved = goal / (2 * kernels.SETTLED)
            thorough = (fresh and not iteration) or iteration % kernels.THOROUGH_EVERY == kernels.THOROUGH_EVERY - 1
            enough = kernels.SETTLED * (kernels.EVALUATED * span if thorough else moved)
            if changes or not iteration or thorough:
                cuts += self._arrange(c, at, may_move=cuts < MAX_CUTS)
            most = kernels.THOROUGH_SWEEPS if thorough else kernels.MAX_SWEEPS
            self._evaluate(at, lower, upper, most, enough)
        raise GaveUp

    # ---- steps --------------------------------------------------------------------------------

    def _survey(self, c: Floats, at: SolveState) -> tuple[float, float, float, float]:
        model = self._gains, self._first, *self._arrays, c, self.discount, at.h, at.choice
        found = self._two.halves(lambda low, high: loops.survey_tiles(low, high, *model), len(self._gains))
        scale, height, top, bottom = zip(*found, strict=True)
        return max(scale), max(height), max(top), min(bottom)

    def _improve_tiles(self, c: Floats, at: SolveState, margin: float, enough: float) -> tuple[int, float]:
        """Improve the policy where the last survey found something better, and around these places. Returns the number of
        changed choices and the largest change of a value."""
        model, last = (self._first, *self._arrays, c), self._reach_of(at.reference)
        cut, marked, everything = np.array([at.reference], np.uint32), self._gains > margin, False
        changes = work = moved = 0.0
        while True:
            done, totals = np.zeros(2 * loops.APART, np.int64), np.zeros((2, loops.APART))
            self._marks[:] = False
            settings = at.g, at.h, at.choice, at.reference, margin, enough
            arguments = done, last, *model, *settings, marked, self._marks, totals
            self._two.passes(lambda part, rest=arguments: loops.improve_twice(part, *rest))
            # The reference leads wherever it likes, so it has its turn when nothing else moves.
            changed, _ = kernels.greedy(cut, *model, 1.0, at.g, at.h, at.choice, margin, 1)
            changes += changed + totals[:, loops.CHANGED].sum()
            work += totals[:, loops.WORK].sum()
            moved = max(moved, totals[:, loops.MOVED].max())
            marked = self._marks[loops.SECOND].copy()
            if not marked.any() or work >= MOST_WORK * self.mdp.n_states:
                if changes or everything:
                    return int(changes), float(moved)
                # Self-loops hide a little in surveys, so that the marks can be wrong.
                marked[:], everything = True, True

    def _reach_of(self, reference: int) -> Ints:
        """(chunks,) how far a pass must be before the next one may follow, if the chain is cut at the reference."""
        if self._reach is None or self._reach[0] != reference:
            indptr, indices, _ = self._arrays
            model = self._first, indptr, indices, reference, self._nearest, self._farthest
            self._two.halves(lambda low, high: loops.reach(low, high, *model), len(self._last))
            last = np.empty_like(self._last)
            loops.lasts(self._nearest, self._farthest, last)
            self._reach = reference, last
        return self._reach[1]

    def _tree(self, at: SolveState) -> int:
        self._order[0] = at.reference
        rest = at.choice, *self._arrays, self._likely
        self._two.halves(lambda low, high: orders.likely_successors(low, high, *rest), self.mdp.n_states)
        return orders.walk(self._order, self._likely, self._child, self._sibling)

    def _pack(self, c: Floats, at: SolveState) -> None:
        chunks, indptr = len(self._last), self._arrays[0]
        loops.number(self._order, self._place)
        self._two.halves(lambda low, high: loops.lengths(low, high, self._order, at.choice, indptr, self._room), chunks)
        room = np.cumsum(self._room)
        policy = self._order, at.choice, *self._arrays, c, self._likely, self._place, self._b, *self._rows
        self._two.halves(
            lambda low, high: loops.pack_chunks(low, high, room, self._nearest, self._farthest, *policy), chunks
        )
        loops.lasts(self._nearest, self._farthest, self._last)

    def _evaluate(self, at: SolveState, lower: float, upper: float, most: int, enough: float) -> None:
        """Sweep the times to the reference and the values, and take Newton's steps on the gain; see `kernels.sweeps.evaluate`."""
        h, y, root = at.h, at.y, at.reference
        if y[root] == 0:  # nothing is known about them yet
            self._sweep(self._ones, 0.0, y, 2, 0.0)
        cycle = y[root] = self._sweep(self._ones, 0.0, y, most, kernels.TIMED * max(1.0, float(y.max())))[1]
        for _ in range(kernels.NEWTON_STEPS):
            made, surplus = self._sweep(self._b, at.g, h, most, enough)
            most -= made
            step = min(max(surplus / cycle, lower - at.g), upper - at.g)
            at.g += step
            self._two.halves(lambda low, high, step=step: loops.lower(low, high, h, step, y), len(h))
            h[root] = 0.0
            if abs(step) * cycle <= enough or most <= 0:
                break

    def _sweep(self, b: Floats, shift: float, values: Floats, most: int, enough: float) -> tuple[int, float]:
        """Sweep the values of the cut chain in pairs; see `kernels.sweeps.sweep`."""
        root = int(self._order[0])
        values[root] = self._work[root] = 0.0
        made, rises, before = 0, 0, 0.0
        while made < most:
            done, changes = np.zeros(2 * loops.APART, np.int64), np.zeros((2, loops.APART))
            rest = done, self._last, changes, self._order, *self._rows, self._work, b, shift, values
            trust = 1.0 if rises < kernels.RISES else 0.0
            self._two.passes(lambda part, rest=(*rest, trust): loops.sweep_twice(part, *rest))
            made += 2
            first, second = changes[:, 0]
            if min(first, second) <= enough:
                break
            rises += (0 < before <= first) + (first <= second)
            before = second
        begin, target, weight, *_ = self._rows
        row = slice(0, int(begin[1]))
        return made, float(b[0] - shift + weight[row] @ values[target[row]])


class _Two:
    """This thread, and another one beside it where a processor core is free and the model large enough."""

    def __init__(self, n_states: int) -> None:
        self._large = n_states >= THREADS_FROM
        self._other: ThreadPoolExecutor | None = None
        self._ended = False

    @contextmanager
    def together(self) -> Iterator[None]:
        """Until the end, there is another thread."""
        if not self._large or cores() == 1:
            yield
            return
        self._ended = False
        with ThreadPoolExecutor(1) as other:
            self._other = other
            try:
                yield
            finally:
                self._ended, self._other = True, None

    def halves(self, work: Callable[[int, int], _Result], count: int) -> tuple[_Result, _Result]:
        """The results of work on the numbers below the middle of `count`, and from there on."""
        middle = count // 2
        if self._other is None:
            return work(0, middle), work(middle, count)
        rest = self._other.submit(work, middle, count)
        return work(0, middle), rest.result()

    def passes(self, work: Callable[[int], bool]) -> None:
        """Make two passes, of which the second follows the first; see `kernels.paired_sweeps`."""
        if self._other is None:
            work(loops.BOTH)
            return

        def follow() -> None:
            while not work(loops.SECOND) and not self._ended:
                sleep(0)  # other threads may need this one's core

        second = self._other.submit(follow)
        work(loops.FIRST)
        second.result()
