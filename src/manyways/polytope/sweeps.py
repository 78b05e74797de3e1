"""The linear oracle at scale: modified policy iteration with ordered Gauss-Seidel sweeps.

*Average.* Cut the chain at a reference state that the policy keeps coming back to. What is left is a
shortest-path-like problem with relative values h (zero at the reference) for an estimate g of the gain. A round trip
from the reference then earns a surplus, positive or negative, and Newton's step on g is that surplus divided by the
length of the round trip. In between, greedy passes improve the policy. Nothing is solved completely before the next
improvement.

*Order.* Greedy passes and sweeps visit the states from the reference outwards along the policy's likely
successors, so values and improvements travel whole paths at once; the occupancy is pushed back along the
same order. Self-loops are eliminated algebraically. The cost of a sweep is linear in the number of
transitions. Only moves against the order need further sweeps. Their values are predicted (`kernels.sweeps`), so that about
ten sweeps suffice however long the paths are; what grows with them is the number of improvements, slowly.

*Special cases.* (1) A policy may no longer visit the reference: then the cut moves to the loop in which its likely
successors end. (2) Staying in one state can be optimal: g never falls below the best self-loop, and if
the upper bound meets it, the self-loop is the answer. (3) A policy may have several recurrent classes, or mix too slowly
for sweeps: then exact policy iteration (`policy_iteration`) takes over from the current policy.

*Proof.* For any h the gain of every policy is at most max(c + P h - h), and the policy's own at
least the smallest of its own surpluses. The loop ends when these two meet within `kernels.sweeps.TOLERANCE`, not
when something stops changing. Discounted models have the same bounds, shifted by (1 - discount)
<start, h>, and need no cut.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from manyways.kernels import orders, small_solves
from manyways.kernels import sweeps as kernels
from manyways.model.mdp import MDP
from manyways.model.occupancy import choices_towards
from manyways.polytope.oracle import Pause
from manyways.polytope.policy_iteration import PolicyIteration
from manyways.polytope.vertex import Answer, Vertex
from manyways.types import Floats, Ints

PROVED = 1e-6
"""Relative to the typical |c| of the answer. What is proved less well is swept further, and then left to exact policy
iteration."""
MAX_ITERATIONS, FEW_ITERATIONS, SMALL = 400, 15, 1000
"""In models with fewer than `SMALL` states, sweeps that have not ended after a few iterations give up: exact policy iteration
takes milliseconds there. A solve is then one compiled call, unless something unusual happens; elsewhere there is a pause after
each iteration."""
MAX_CUTS = 40
WAYS_KEPT = 1_000_000
"""So many choices of policies that go to some place are kept, of which each takes longer than a small model's solve."""


@dataclass(eq=False)
class SolveState:
    """The state of a solve; a copy of it is the warm start of the next one."""

    choice: np.ndarray
    h: Floats
    y: Floats
    reference: int
    g: float
    fresh: bool = False
    """Whether this is a good policy whose values are not known yet."""

    def copy(self) -> SolveState:
        return SolveState(self.choice.copy(), self.h.copy(), self.y.copy(), self.reference, self.g, self.fresh)


def _typical(c: Floats, found: Answer) -> float:
    """The size of what the answer earns: its mean |c|, or the median over its policy where a few choices make up the
    mean."""
    size = np.abs(c[found.choices])
    mean = float(found.occupancy[found.choices] @ size)
    size = size[size > 0]
    middle = float(np.partition(size, size.size // 2)[size.size // 2]) if size.size else 0.0
    return min((s for s in (mean, middle) if s > 0), default=0.0)


def _well_proved(c: Floats, found: Answer) -> bool:
    """Whether the gap is at most `PROVED` of the typical size."""
    choices = np.asarray(found.choices)
    return kernels.well_proved(c, choices, found.occupancy[choices], found.bound - found.value, PROVED)


class GaveUp(Exception):
    """The sweeps cannot finish; exact policy iteration takes over."""


class Sweeps:
    """The oracle of one model and one discount (1 for the average).

    The rows of a policy are laid out in chunks of so many states; only `PairedSweeps` has more than one.
    """

    def __init__(self, mdp: MDP, discount: float, pause: Pause | None = None, chunk: int | None = None) -> None:
        self.mdp = mdp
        self.discount = discount
        self.pause = pause or Pause()
        self.exact = PolicyIteration(mdp, discount, pause)
        matrix = mdp.transitions
        # Indices are narrow, because passes over large models wait for memory, and unsigned, because numba checks the sign
        # of others at each use.
        self._arrays = matrix.indptr.astype(np.uint64), matrix.indices.astype(np.uint32), matrix.data
        self._first = mdp.first_choice.astype(np.uint64)
        single = np.flatnonzero(np.diff(matrix.indptr) == 1)
        self._loops = single[matrix.indices[matrix.indptr[single]] == mdp.choice_state[single]]
        n, room = mdp.n_states, int(np.maximum.reduceat(np.diff(matrix.indptr), mdp.first_choice[:-1]).sum())
        self._order = np.empty(n, np.uint32)
        self._likely, self._child, self._sibling, self._place, ahead = (np.empty(n, np.uint32) for _ in range(5))
        self._b, self._work, self._mass, inverse, later = (np.zeros(n) for _ in range(5))
        self._ones = np.ones(n)
        self._most = FEW_ITERATIONS if n < SMALL else MAX_ITERATIONS
        self._chunk = chunk or n
        self._rows = (
            np.empty(n - (-n // self._chunk), np.uint64),
            np.empty(room, np.uint32),
            np.empty(room),
            inverse,
            later,
            ahead,
        )
        self._ways: dict[int, Ints] = {}

    def best(self, c: Floats, warm: Vertex | None = None) -> Answer:
        """The vertex of highest <c, rho> for an (N,) c."""
        if isinstance(warm, Answer) and isinstance(warm.memory, SolveState):
            state = warm.memory.copy()
        elif warm is not None and warm.choices is not None:
            state = self._from_policy(c, warm)
        else:
            state = self._start(c)
        usual = self._at_once(c, state.copy()) if self.discount == 1 and self.mdp.n_states < SMALL else None
        if usual is not None:
            return usual
        found, proved = self._solved(c, state)
        if not proved and warm is not None:
            # A policy that hardly ever leaves where it is can mislead exact policy iteration, too: its values are so large
            # that rounding hides what is better.
            again, proved = self._solved(c, self._start(c))
            if proved or again.value > found.value:
                return again
        return found

    def _at_once(self, c: Floats, at: SolveState) -> Answer | None:
        """The best vertex in one compiled call; None if something unusual happens on the way."""
        self.pause()
        model = self._first, *self._arrays, self._loops
        work = (
            self._order, self._likely, self._child, self._sibling, self._place, *self._rows,
            self._work, self._b, self._ones, self._mass,
        )  # fmt: skip
        occupancy, choices = np.empty(self.mdp.n_choices), np.empty(self.mdp.n_states, np.int64)
        usual, at.g, value, bound = small_solves.solve(
            model, work, c, at.h, at.y, at.choice, at.reference, at.g, at.fresh, self._most, PROVED, occupancy, choices
        )
        if not usual:
            return None
        at.fresh = False
        return Answer(occupancy, choices, value=value, bound=bound, dual=at.h, memory=at)

    def _solved(self, c: Floats, state: SolveState) -> tuple[Answer, bool]:
        """The best vertex found from a state, and whether its bound is close enough to prove it."""
        solve = self._discounted if self.discount < 1 else self._average
        try:
            found = solve(c, state, np.inf)
            if _well_proved(c, found):
                return found, True
            # One of its choices is huge, and hides the others.
            found = solve(c, found.memory.copy(), PROVED * _typical(c, found) / 2)
        except GaveUp:
            found = self._exactly(c, state.choice.astype(np.int64))
        else:
            if not _well_proved(c, found):
                found = self._exactly(c, np.asarray(found.choices))
        return found, _well_proved(c, found)

    def occupancy_of(self, choices: Ints, reference: int) -> Floats | None:
        """(S,) -> (N,) the occupancy of a deterministic policy; None if it does not keep coming back to the reference, or
        mixes too slowly. With a discount any state will do as the reference, and -1 stands for none."""
        n = self.mdp.n_states
        at = SolveState(np.asarray(choices).astype(np.uint32), np.zeros(n), np.zeros(n), max(reference, 0), 0.0)
        c, start = np.zeros(self.mdp.n_choices), np.zeros(n)  # any costs will do
        try:
            if self.discount < 1:
                start = (1 - self.discount) * self.mdp.start
                self._order_anyway(at)
                self._pack(c, at)
            else:
                self._arrange(c, at, may_move=False)
            self._push(start, 1.0)
            return self._vertex(c, at, np.inf).occupancy
        except GaveUp:
            return None

    # ---- the two criteria ---------------------------------------------------------------------

    def _average(self, c: Floats, at: SolveState, wanted: float) -> Answer:
        stay, floor, upper = small_solves.outlook(c, self._loops)
        if at.g < floor:
            at.g = max(floor, float(c[at.choice].min()))
        fresh, at.fresh = at.fresh, False
        lower, top = floor, np.inf
        iteration, cuts, enough = 0, 0, -1.0
        while iteration < self._most:
            self.pause()
            end, iteration, at.g, lower, upper, top, enough = kernels.iterate(
                self._first, *self._arrays, c, at.h, at.y, at.choice, at.reference, self._order,
                self._likely, self._child, self._sibling, self._place, *self._rows, self._work, self._b, self._ones, self._mass,
                at.g, lower, upper, floor, stay >= 0, wanted, fresh,
                iteration, iteration + 1, enough,
            )  # fmt: skip
            if end == kernels.PROVED:
                if not enough <= 1:  # then it is the mass left, relative to what is negligible
                    raise GaveUp
                return self._vertex(c, at, top)
            if end == kernels.STAYING:
                return self._staying(c, at, stay, top)
            if end == kernels.ASTRAY:
                cuts += self._arrange(c, at, may_move=cuts < MAX_CUTS)
        raise GaveUp

    def _discounted(self, c: Floats, at: SolveState, wanted: float) -> Answer:
        for iteration in range(self._most):
            self.pause()
            scale, height, top, bottom = self._survey(c, at)
            changes, moved = 0, kernels.EVALUATED * (scale + height)
            if iteration:
                if 0 <= top - bottom <= min(kernels.TOLERANCE * scale, wanted):
                    break
                changes, moved = self._improve(c, at, 1e-13 * (scale + height))
            if changes or not iteration:
                self._order_anyway(at)
                self._pack(c, at)
            most, enough = kernels.MAX_SWEEPS, kernels.SETTLED * moved
            kernels.sweep(self._order, *self._rows, self._work, self._b, 0.0, at.h, False, most, enough)
        else:
            raise GaveUp
        start = (1 - self.discount) * self.mdp.start
        bound = top + float(start @ at.h)
        self._push(start, 1.0)
        return self._vertex(c, at, bound)

    # ---- steps --------------------------------------------------------------------------------

    def _start(self, c: Floats) -> SolveState:
        """A policy that goes to the choice of highest c."""
        target = self.exact.most_paying(c)
        return self._started(self._towards(target), int(self.mdp.choice_state[target]))

    def _started(self, choices: Ints, place: int) -> SolveState:
        """The state of a solve that starts from a policy (S,), which comes back to some place, and of which nothing else is
        known."""
        n, gain = self.mdp.n_states, -np.inf if self.discount == 1 else 0.0
        return SolveState(choices.astype(np.uint32), np.zeros(n), np.zeros(n), place, gain, fresh=True)

    def _towards(self, target: int) -> Ints:
        """(S,) a policy that goes to a choice and takes it. The ways depend on the place only, so they are kept."""
        place = int(self.mdp.choice_state[target])
        if place not in self._ways:
            there = np.zeros(self.mdp.n_states, bool)
            there[place] = True
            if len(self._ways) * len(there) > WAYS_KEPT:
                self._ways.clear()
            self._ways[place] = choices_towards(self.mdp, there)
        choices = self._ways[place].copy()
        choices[place] = target
        return choices

    def _from_policy(self, c: Floats, vertex: Vertex) -> SolveState:
        """Start from a policy of which only the occupancy is known."""
        n = self.mdp.n_states
        busiest = int(np.argmax(np.add.reduceat(vertex.occupancy, self.mdp.first_choice[:-1])))
        gain = float(vertex.occupancy @ c) if self.discount == 1 else 0.0
        return SolveState(
            np.array(vertex.choices, dtype=np.uint32), np.zeros(n), np.zeros(n), busiest, gain, fresh=True
        )

    def _survey(self, c: Floats, at: SolveState) -> tuple[float, float, float, float]:
        """The largest |c| of the policy's choices and the largest |h|; the largest surplus c + discount P h - h over
        all choices, and the smallest over the policy's own."""
        return kernels.survey(self._first, *self._arrays, c, self.discount, at.h, at.choice)

    def _improve(self, c: Floats, at: SolveState, margin: float) -> tuple[int, float]:
        return kernels.greedy(
            self._order,
            self._first,
            *self._arrays,
            c,
            self.discount,
            0.0,
            at.h,
            at.choice,
            margin,
            kernels.GREEDY_PASSES,
        )

    def _arrange(self, c: Floats, at: SolveState, *, may_move: bool) -> bool:
        """Order the states from the reference outwards, and lay the policy out in this order. If most states do not
        lead to the reference by likely successors, the policy no longer visits it, and the cut moves to the loop in
        which the policy runs. Returns whether it did."""
        known, moved = self._tree(at), False
        if known < len(at.h) // 2 and may_move:
            # Of a policy with several loops, values are highest at the one that earns more than the gain so far.
            loop = int(orders.on_loop(np.argmax(at.h), self._likely))
            if loop != at.reference:
                at.reference, at.h, moved = loop, at.h - at.h[loop], True
                at.y[:] = 0.0
                known = self._tree(at)
        if known < len(at.h) and not self._by_any_way(at, known).all():
            raise GaveUp  # several recurrent classes
        self._pack(c, at)
        return moved

    def _order_anyway(self, at: SolveState) -> None:
        """Order the states for a discounted chain, in which they need not lead to the reference."""
        known = self._tree(at)
        if known < len(at.h):
            unseen = np.flatnonzero(~self._by_any_way(at, known))
            self._order[len(at.h) - len(unseen) :] = unseen

    def _tree(self, at: SolveState) -> int:
        """Order the states that lead to the reference by likely successors, nearest first; returns their number."""
        self._order[0] = at.reference
        return orders.tree(self._order, at.choice, *self._arrays, self._likely, self._child, self._sibling)

    def _by_any_way(self, at: SolveState, known: int) -> np.ndarray:
        """Extend the order along any transition of the policy, however unlikely; returns a mask of the states in it."""
        seen = np.zeros(len(at.h), bool)
        seen[self._order[:known]] = True
        begin, target, *_ = self._rows  # not in use before the policy is laid out
        orders.visit(self._order, known, at.choice, *self._arrays[:2], seen, begin, target)
        return seen

    def _pack(self, c: Floats, at: SolveState) -> None:
        kernels.pack(
            self._order,
            at.choice,
            *self._arrays,
            c,
            self.discount,
            self._likely,
            self._place,
            self._b,
            *self._rows,
        )

    # ---- answers ------------------------------------------------------------------------------

    def _push(self, start: Floats, mass: float) -> None:
        """Leave the occupancy by state of the policy that was laid out in `_b`, from a `start` (S,) that is used up, unless
        the chain is cut, to a rest that is negligible against `mass`."""
        enough = kernels.MASS_LEFT * mass
        left = kernels.push(
            self._order, self._chunk, *self._rows, self._work, start, self._b, self.discount == 1, enough
        )
        if not left <= enough:
            raise GaveUp

    def _vertex(self, c: Floats, at: SolveState, top: float) -> Answer:
        """The policy as an answer, with its occupancy by state in `_b`."""
        occupancy, choices = np.zeros(self.mdp.n_choices), np.empty(self.mdp.n_states, np.int64)
        value = kernels.spread(at.choice, self._b, c, occupancy, choices)
        return Answer(occupancy, choices, value=value, bound=max(top, value), dual=at.h, memory=at)

    def _staying(self, c: Floats, at: SolveState, stay: int, top: float) -> Answer:
        """Staying in one state is best: all states lead there. The warm start keeps the round-trip policy."""
        choices = self._towards(stay)
        occupancy = np.zeros(self.mdp.n_choices)
        occupancy[stay] = 1.0
        at.g = -np.inf
        value = float(c[stay])
        return Answer(occupancy, choices, value=value, bound=max(top, value), dual=at.h, memory=at)

    def _exactly(self, c: Floats, choices: Ints) -> Answer:
        found = self.exact.best_from(c, choices)
        return replace(found, memory=self._from_policy(c, found))
