"""The linear oracle at scale: modified policy iteration with ordered Gauss-Seidel sweeps.

*Average.* Cut the chain at a reference state that the policy keeps coming back to. What is left is a
shortest-path-like problem with relative values h (zero at the reference) for an estimate g of the gain. A round trip
from the reference then earns a surplus, positive or negative, and Newton's step on g is that surplus divided by the
length of the round trip. In between, greedy passes improve the policy. Nothing is solved completely before the next
improvement.

*Order.* Greedy passes and sweeps visit the states from the reference outwards along the policy's likely
successors, so values and improvements travel whole paths at once; the occupancy is pushed back along the
same order. Self-loops are eliminated algebraically. The cost of a sweep is linear in the number of
transitions. Only moves against the order need further iterations, and their number grows with the length of the paths:
on an n x n grid like n, so the total work grows at most like the number of choices to the power 1.5.

*Special cases.* (1) A policy may no longer visit the reference: then the cut moves to the loop in which its likely
successors end. (2) Staying in one state can be optimal: g never falls below the best self-loop, and if round trips
still lose at that g, the self-loop is the answer. (3) A policy may have several recurrent classes, or mix too slowly
for sweeps: then exact policy iteration (`policy_iteration`) takes over from the current policy.

*Proof.* For any h the gain of every policy is at most max(c + P h - h), and the policy's own at
least the smallest of its own surpluses. The loop ends when these two meet within `TOLERANCE`, not
when something stops changing. Discounted models have the same bounds, shifted by (1 - discount)
<start, h>, and need no cut.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from manyways.kernels import sweeps as kernels
from manyways.model.mdp import MDP
from manyways.model.occupancy import choices_towards
from manyways.polytope.oracle import Pause
from manyways.polytope.policy_iteration import PolicyIteration
from manyways.polytope.vertex import Answer, Vertex
from manyways.types import Floats, Ints

TOLERANCE = 1e-9
"""Of the proved optimum, relative to the largest |c| of the policy's own choices: never of the whole model, in which one
forbidden choice may cost 10^10 times as much as all others."""
PROVED = 1e-6
"""Relative to the typical |c| of the answer. What is proved less well is swept further, and then left to exact policy
iteration."""
MASS_LEFT = 1e-12
MAX_ITERATIONS = 400
GREEDY_PASSES = 3
MAX_SWEEPS, SETTLED, EVALUATED = 200, 0.01, 0.01
"""Between improvements a policy's values are swept until they change by less than `SETTLED` times the change of the last
greedy pass. Fewer sweeps would mislead the next improvement; more would be wasted on a policy that is about to change."""
MAX_PUSHES = 2000
MAX_CUTS = 40
THOROUGH_EVERY, THOROUGH_SWEEPS = 40, 2000
"""Now and then a policy is evaluated completely: such a step always rises, even if the quick ones cycle."""


@dataclass(eq=False)
class _State:
    """The state of a solve; a copy of it is the warm start of the next one."""

    choice: np.ndarray
    h: Floats
    y: Floats
    reference: int
    g: float
    fresh: bool = False
    """Whether this is a good policy whose values are not known yet."""

    def copy(self) -> _State:
        return _State(self.choice.copy(), self.h.copy(), self.y.copy(), self.reference, self.g)


def _typical(c: Floats, found: Answer) -> float:
    """The size of what the answer earns: its mean |c|, or the median over its policy where a few choices make up the
    mean."""
    size = np.abs(c[found.choices])
    sizes = float(found.occupancy @ np.abs(c)), float(np.median(size[size > 0])) if size.any() else 0.0
    return min((s for s in sizes if s > 0), default=0.0)


class _GaveUp(Exception):
    """The sweeps cannot finish; exact policy iteration takes over."""


class Sweeps:
    """The oracle of one model and one discount (1 for the average)."""

    def __init__(self, mdp: MDP, discount: float, pause: Pause | None = None) -> None:
        self.mdp = mdp
        self.discount = discount
        self._pause = pause or Pause()
        self.exact = PolicyIteration(mdp, discount, pause)
        matrix = mdp.transitions
        self._arrays = (matrix.indptr, matrix.indices, matrix.data)
        single = np.flatnonzero(np.diff(matrix.indptr) == 1)
        self._loops = single[matrix.indices[matrix.indptr[single]] == mdp.choice_state[single]]
        n, room = mdp.n_states, int(np.maximum.reduceat(np.diff(matrix.indptr), mdp.first_choice[:-1]).sum())
        self._rows = (np.empty(n + 1, np.int64), np.empty(room, np.int32), np.empty(room), np.empty(n))
        self._ahead, self._child, self._sibling = (np.empty(n, np.int32) for _ in range(3))
        self._ones, self._b = np.ones(n), np.empty(n)
        self._cold: dict[int, np.ndarray] = {}

    def best(self, c: Floats, warm: Vertex | None = None) -> Answer:
        """The vertex of highest <c, rho> for an (N,) c."""
        if isinstance(warm, Answer) and isinstance(warm.memory, _State):
            state = warm.memory.copy()
        elif warm is not None and warm.choices is not None:
            state = self._from_policy(c, warm)
        else:
            state = self._start(c)
        solve = self._discounted if self.discount < 1 else self._average
        try:
            found = solve(c, state, np.inf)
            wanted = PROVED * _typical(c, found)
            if found.bound - found.value > wanted:  # one of its choices is huge, and hides the others
                found = solve(c, found.memory.copy(), wanted / 2)
        except _GaveUp:
            return self._exactly(c, state.choice.astype(np.int64))
        return found if found.bound - found.value <= wanted else self._exactly(c, np.asarray(found.choices))

    # ---- the two criteria ---------------------------------------------------------------------

    def _average(self, c: Floats, at: _State, wanted: float) -> Answer:
        stay = int(self._loops[np.argmax(c[self._loops])]) if self._loops.size else -1
        floor = float(c[stay]) if stay >= 0 else float(c.min())
        at.g = max(at.g, floor, float(c[at.choice].min()))
        fresh, at.fresh = at.fresh, False
        lower, upper = floor, float(c.max())
        order, cycle, surplus, change, cuts = np.empty(0, np.int32), 1.0, np.inf, np.inf, 0
        for iteration in range(MAX_ITERATIONS):
            self._pause()
            scale, height = (float(np.abs(part).max()) for part in (c[at.choice], at.h))
            span = scale + height
            changes, moved, top = 0, EVALUATED * span, np.inf
            # The current policy is evaluated before it is improved. Its gain is attainable; greedy steps at a gain that
            # is not attainable favour whatever ends the round trip soon, and would break the policy up.
            if iteration:
                top, bottom = self._bounds(c, at)
                lower, upper = max(lower, bottom), min(upper, top)
                if top - bottom <= min(TOLERANCE * scale, wanted):
                    break
                changes, moved = self._improve(c, at, order, 1e-13 * span)
            settled = not changes and change <= 1e-10 * span and top - floor <= TOLERANCE * scale
            if stay >= 0 and at.g == floor and settled and surplus < -1e-10 * span:
                return self._staying(c, at, stay, top)
            thorough = (fresh and not iteration) or iteration % THOROUGH_EVERY == THOROUGH_EVERY - 1
            if changes or not iteration or thorough:
                order, recut = self._order(at, may_move=cuts < MAX_CUTS)
                cuts += recut
                self._pack(c, at, order)
                cycle = self._round_trip(at, order, thorough)
            sweeps, enough = (
                (THOROUGH_SWEEPS, SETTLED * EVALUATED * span) if thorough else (MAX_SWEEPS, SETTLED * moved)
            )
            change, surplus = self._sweep(order, self._b, at.g, at.h, sweeps, enough)
            # Every pass proves bounds on the optimal gain; Newton's step must not leave them.
            step = min(max(surplus / cycle, lower - at.g), upper - at.g)
            at.g += step
            at.h -= step * at.y
            at.h[at.reference] = 0.0
        else:
            raise _GaveUp
        begin, target, weight, _ = self._rows
        waiting = np.zeros(len(order))
        waiting[target[: begin[1]]] = weight[: begin[1]]
        visits = np.zeros(len(order))
        visits[at.reference] = 1.0
        return self._vertex(c, at, order, waiting, visits, top)

    def _discounted(self, c: Floats, at: _State, wanted: float) -> Answer:
        order = self._order_anyway(at)
        for iteration in range(MAX_ITERATIONS):
            self._pause()
            scale, height = (float(np.abs(part).max()) for part in (c[at.choice], at.h))
            span = scale + height
            top, bottom = self._bounds(c, at)
            if iteration and top - bottom <= min(TOLERANCE * scale, wanted):
                break
            changes, moved = self._improve(c, at, order, 1e-13 * span)
            if changes or not iteration:
                order = self._order_anyway(at)
                self._pack(c, at, order)
            self._sweep(order, self._b, 0.0, at.h, MAX_SWEEPS, SETTLED * moved)
        else:
            raise _GaveUp
        start = (1 - self.discount) * self.mdp.start
        return self._vertex(c, at, order, start, np.zeros(len(order)), top + float(start @ at.h))

    # ---- steps --------------------------------------------------------------------------------

    def _start(self, c: Floats) -> _State:
        """A policy that goes to the choice of highest c; the ways there depend on the place only, so they are kept."""
        n = self.mdp.n_states
        target = self.exact.most_paying(c)
        place = int(self.mdp.choice_state[target])
        if place not in self._cold:
            there = np.zeros(n, bool)
            there[place] = True
            if len(self._cold) > 8:
                self._cold.clear()
            self._cold[place] = choices_towards(self.mdp, there).astype(np.int32)
        choice = self._cold[place].copy()
        choice[place] = target
        return _State(choice, np.zeros(n), np.zeros(n), place, -np.inf if self.discount == 1 else 0.0, fresh=True)

    def _from_policy(self, c: Floats, vertex: Vertex) -> _State:
        """Start from a policy of which only the occupancy is known."""
        n = self.mdp.n_states
        busiest = int(np.argmax(np.add.reduceat(vertex.occupancy, self.mdp.first_choice[:-1])))
        gain = float(vertex.occupancy @ c) if self.discount == 1 else 0.0
        return _State(np.array(vertex.choices, dtype=np.int32), np.zeros(n), np.zeros(n), busiest, gain, fresh=True)

    def _bounds(self, c: Floats, at: _State) -> tuple[float, float]:
        """The largest surplus c + discount P h - h over all choices, and the smallest over the policy's own."""
        return kernels.bounds(self.mdp.first_choice, *self._arrays, c, self.discount, at.h, at.choice)

    def _improve(self, c: Floats, at: _State, order: np.ndarray, margin: float) -> tuple[int, float]:
        first, g = self.mdp.first_choice, at.g if self.discount == 1 else 0.0
        return kernels.greedy(order, first, *self._arrays, c, self.discount, g, at.h, at.choice, margin, GREEDY_PASSES)

    def _sweep(
        self, order: np.ndarray, b: Floats, shift: float, v: Floats, sweeps: int, tolerance: float
    ) -> tuple[float, float]:
        return kernels.sweep(order, *self._rows, b, shift, v, self.discount == 1, sweeps, tolerance)

    def _order(self, at: _State, *, may_move: bool) -> tuple[np.ndarray, bool]:
        """The states from the reference outwards. If most do not lead there by likely successors, the policy no longer
        visits the reference, and the cut moves to the loop in which it runs."""
        order, known = self._tree(at)
        moved = False
        if known < len(order) // 2 and may_move:
            loop = int(kernels.on_loop(at.reference, self._ahead))
            if loop != at.reference:
                at.reference, at.h, moved = loop, at.h - at.h[loop], True
                at.y[:] = 0.0
                order, known = self._tree(at)
        if known < len(order) and not self._by_any_way(at, order, known).all():
            raise _GaveUp  # several recurrent classes
        return order, moved

    def _order_anyway(self, at: _State) -> np.ndarray:
        """As `_order`, for a discounted chain, in which states need not lead to the reference."""
        order, known = self._tree(at)
        if known < len(order):
            unseen = np.flatnonzero(~self._by_any_way(at, order, known))
            order[len(order) - len(unseen) :] = unseen
        return order

    def _tree(self, at: _State) -> tuple[np.ndarray, int]:
        """The states that lead to the reference by likely successors, nearest first, and their number."""
        order = np.empty(len(at.choice), np.int32)
        order[0] = at.reference
        self._child.fill(-1)
        return order, kernels.tree(order, at.choice, *self._arrays, self._ahead, self._child, self._sibling)

    def _by_any_way(self, at: _State, order: np.ndarray, known: int) -> np.ndarray:
        """Extend the order along any transition of the policy, however unlikely; returns a mask of the states in it."""
        into = self.mdp.transitions[at.choice].tocsc()
        seen = np.zeros(len(order), bool)
        seen[order[:known]] = True
        kernels.visit(order, known, into.indptr.astype(np.int64), into.indices.astype(np.int32), seen)
        return seen

    def _pack(self, c: Floats, at: _State, order: np.ndarray) -> None:
        kernels.pack(order, at.choice, *self._arrays, c, self.discount, *self._rows, self._b)

    def _round_trip(self, at: _State, order: np.ndarray, thorough: bool) -> float:
        """Expected length of a round trip; refreshes the times to the reference, roughly unless `thorough`."""
        unknown = at.y[at.reference] == 0.0
        sweeps = THOROUGH_SWEEPS if thorough else 100 if unknown else 3
        rough = (1e-4 if thorough else 1e-2) * max(float(at.y.max()), 1.0)
        _, cycle = self._sweep(order, self._ones, 0.0, at.y, sweeps, rough)
        at.y[at.reference] = cycle
        return cycle

    # ---- answers ------------------------------------------------------------------------------

    def _vertex(self, c: Floats, at: _State, order: np.ndarray, waiting: Floats, visits: Floats, top: float) -> Answer:
        # Mass is pushed until the rest is negligible against a whole round trip.
        enough = MASS_LEFT * (max(float(at.y[at.reference]), 1.0) if self.discount == 1 else 1.0)
        left = kernels.push(order, *self._rows, waiting, visits, MAX_PUSHES, 1e-3 * enough / len(order), enough)
        if not left <= enough:
            raise _GaveUp
        occupancy = np.zeros(self.mdp.n_choices)
        occupancy[at.choice] = visits / visits[order].sum()  # in this order, rounding does not depend on the numbering
        value = float(occupancy @ c)
        return Answer(
            occupancy, at.choice.astype(np.int64), value=value, bound=max(top, value), dual=at.h.copy(), memory=at
        )

    def _staying(self, c: Floats, at: _State, stay: int, top: float) -> Answer:
        """Staying in one state is best: all states lead there. The warm start keeps the round-trip policy."""
        there = np.zeros(self.mdp.n_states, bool)
        there[self.mdp.choice_state[stay]] = True
        choices = choices_towards(self.mdp, there)
        choices[there] = stay
        occupancy = np.zeros(self.mdp.n_choices)
        occupancy[stay] = 1.0
        at.g = -np.inf
        value = float(c[stay])
        return Answer(occupancy, choices, value=value, bound=max(top, value), dual=at.h.copy(), memory=at)

    def _exactly(self, c: Floats, choices: Ints) -> Answer:
        found = self.exact.best_from(c, choices)
        return replace(found, memory=self._from_policy(c, found))
