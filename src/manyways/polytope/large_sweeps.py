"""Sweeps of a large model: from the cheapest ways (`ways`), and in blocks on several cores (`blocks`)."""

from __future__ import annotations

import numpy as np

from manyways.kernels import sweeps as kernels
from manyways.model.mdp import MDP
from manyways.polytope.blocks import Blocks, bounds_of
from manyways.polytope.oracle import Pause
from manyways.polytope.sweeps import MAX_CUTS, GaveUp, SolveState, Sweeps
from manyways.polytope.vertex import Answer
from manyways.polytope.ways import Ways
from manyways.types import Floats


class LargeSweeps(Sweeps):
    """The oracle of one model, whose states are numbered in blocks, and one discount (1 for the average)."""

    def __init__(self, mdp: MDP, discount: float, pause: Pause | None = None) -> None:
        super().__init__(mdp, discount, pause)
        self._found_ways: Ways | None = None
        bounds = bounds_of(mdp.n_states)
        several = len(bounds) > 2 and discount == 1
        self._blocks = Blocks(mdp, self._first, self._arrays, bounds) if several else None

    def _start(self, c: Floats) -> SolveState:
        """A policy that takes cheap ways to the choice of highest c."""
        if self._found_ways is None:
            self._found_ways = Ways(self.mdp)
        target = self.exact.most_paying(c)
        at_least = float(c[self._loops].max()) if self._loops.size else -np.inf
        choices, place = self._found_ways.find(c, target, at_least), int(self.mdp.choice_state[target])
        return self._started(choices, place)

    def _average(self, c: Floats, at: SolveState, wanted: float) -> Answer:
        if self._blocks is None:
            return super()._average(c, at, wanted)
        blocks = self._blocks
        blocks.h[:], blocks.y[:] = at.h, at.y
        with blocks.working():
            stay, top = self._in_blocks(blocks, c, at, wanted)
        at.h, at.y = blocks.h.copy(), blocks.y.copy()
        return self._vertex(c, at, top) if stay < 0 else self._staying(c, at, stay, top)

    def _in_blocks(self, blocks: Blocks, c: Floats, at: SolveState, wanted: float) -> tuple[int, float]:
        """Modified policy iteration as in `kernels.sweeps.iterate`, which says why each step is made, in blocks.

        Returns the choice that never leaves its state if staying there is best, else -1 (then the occupancy by state is in
        `_b`), and the largest surplus.
        """
        stay = int(self._loops[np.argmax(c[self._loops])]) if self._loops.size else -1
        floor = float(c[stay]) if stay >= 0 else float(c.min())
        if at.g < floor:
            at.g = max(floor, float(c[at.choice].min()))
        fresh, at.fresh = at.fresh, False
        lower, upper, cuts = floor, float(c.max()), 0
        for iteration in range(self._most):
            self.pause()
            every = kernels.THOROUGH_EVERY
            thorough = (fresh and iteration == 0) or iteration % every == every - 1
            scale, height, top, bottom = blocks.survey(c, at.choice)
            span, changes = scale + height, 0
            goal, moved = min(kernels.TOLERANCE * scale, wanted), kernels.EVALUATED * span
            if iteration > 0:
                lower, upper = max(lower, bottom), min(upper, top)
                if 0 <= top - bottom <= goal:
                    self._spread_visits(c, at, float(blocks.y[at.reference]))
                    return -1, top
                if stay >= 0 and abs(top - floor) <= goal:
                    return stay, top
                changes, moved = blocks.greedy(c, at.g, at.choice, at.reference, 1e-13 * span)
                if changes * changes <= self.mdp.n_states:
                    moved = goal / (2 * kernels.SETTLED)
            enough = kernels.SETTLED * (kernels.EVALUATED * span if thorough else moved)
            if changes > 0 or iteration == 0 or thorough:
                cuts += self._lay_out(blocks, c, at, may_move=cuts < MAX_CUTS)
            most = kernels.THOROUGH_SWEEPS if thorough else kernels.MAX_SWEEPS
            self._evaluate(blocks, at, lower, upper, most, enough)
        raise GaveUp

    def _lay_out(self, blocks: Blocks, c: Floats, at: SolveState, *, may_move: bool) -> bool:
        """Lay the policy out in blocks. Returns whether the cut had to move for it."""
        moved = False
        if not blocks.walk(at.choice, at.reference):
            at.h, at.y = blocks.h, blocks.y
            moved = self._set_in_order(at, may_move=may_move)
            blocks.take_walk(self._order, self._likely)
        blocks.lay_out(c, at.choice)
        return moved

    def _spread_visits(self, c: Floats, at: SolveState, cycle: float) -> None:
        """Leave the occupancy by state of the policy in `_b`. This is done once, by one thread."""
        self._arrange(c, at, may_move=False)
        self._push(np.zeros(len(at.h)), max(cycle, 1.0))

    def _evaluate(
        self, blocks: Blocks, at: SolveState, lower: float, upper: float, most: int, tolerance: float
    ) -> None:
        """Times, values and gain of the policy, as in `kernels.sweeps.evaluate`."""
        if blocks.y[at.reference] == 0:
            blocks.sweep_times(1, 0.0)
        longest = max(1.0, float(blocks.y.max()))
        _, cycle = blocks.sweep_times(most, kernels.TIMED * longest)
        left = most
        for _ in range(kernels.NEWTON_STEPS):
            made, surplus = blocks.sweep_values(at.g, left, tolerance)
            left -= made
            step = min(max(surplus / cycle, lower - at.g), upper - at.g)
            at.g += step
            blocks.lower_values(step)
            if abs(step) * cycle <= tolerance or left <= 0:
                break
        blocks.y[at.reference] = cycle
