"""The linear oracle on several machines: policy iteration in renewal form, ended by the same proof as `polytope.sweeps`.

*Average.* The chain is cut at a reference state that the policy keeps coming back to. PETSc solves for the times to the
reference and for relative values at an estimate of the gain (`linear_system`); Newton's step on the gain follows from what a
round trip earns. Then greedy passes improve the policy, and everything is repeated.

*Special cases.* (1) Some states of an improved policy may never come to the reference. Then they end in a recurrent class that
the improvement has made, which earns more than the policy before (`polytope.policy_iteration` says why). The cut moves into
such a class, and all states that do not lead there are sent the nearest way. (2) Staying in one state can be optimal: the gain
never falls below the best self-loop, and if the upper bound meets it, the self-loop is the answer.

*Proof.* For any h the gain of every policy is at most max(c + P h - h), and the policy's own at least the smallest of its own
surpluses. The loop ends when these meet; how h was found does not matter. Inner solves must be far more accurate than the
distance of the bounds: at a thousandth of it, policies get worse instead of better.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from manyways.distributed.linear_system import TOO_SLOW, PolicySystem
from manyways.distributed.part import ModelPart
from manyways.distributed.search import Choices, recurrent_core, towards
from manyways.errors import SolverError
from manyways.kernels import partition as kernels
from manyways.kernels.sweeps import GREEDY_PASSES, TOLERANCE, survey
from manyways.polytope.oracle import Pause
from manyways.polytope.vertex import Answer, Vertex
from manyways.types import Bools, Floats
from manyways.vectors import plain, shared

MOST_ITERATIONS, MOST_MOVES = 200, 40
LOOKING_AHEAD = 100
"""Steps in which it is seen which of several loops earns most."""
PROVED = 1e-6
"""Relative to what the answer earns; what is proved less well is refused."""
FORCING, TIMED = 1e-7, 1e-5
"""How accurate solves are: for values relative to the distance of the bounds, for times relative to a step."""
TIGHTEST = 0.03
"""Of the wanted distance of the bounds: no solve is more accurate than this, except at the end."""
AS_TIGHT_AS_ROUNDING = 1e-3 * TIGHTEST
MARGIN = 1e-13
"""A choice replaces another one if it is better by more than this, relative to the largest value. Where one value is huge,
this may hide what matters elsewhere: if no choice changes and the bounds do not meet, margin and solves become tighter together,
a few times."""
MASS_LEFT = 1e-14


@dataclass(eq=False)
class SolveState:
    """The state of a solve, of which each process has its part; a copy of it is the warm start of the next one.

    Attributes:
        choice: (m,) the policy.
        h, y: (m,) relative values, and times to the reference (or any other order from near to far).
        reference: the state of the whole model at which the chain is cut.
        g: the gain.
    """

    choice: np.ndarray
    h: Floats
    y: Floats
    reference: int
    g: float

    def copy(self) -> SolveState:
        return SolveState(self.choice.copy(), self.h.copy(), self.y.copy(), self.reference, self.g)


@dataclass(frozen=True)
class Bounds:
    """The largest surplus of any choice and the smallest of the policy's own; the largest |c| of its choices and |h|."""

    top: float
    bottom: float
    scale: float
    height: float


class SharedOracle:
    """The oracle of one model, of which each process has a part, and one discount (1 for the average)."""

    def __init__(self, part: ModelPart, discount: float, pause: Pause | None = None) -> None:
        self.part, self.team, self.discount = part, part.team, discount
        self.pause = pause or Pause()
        self._core = recurrent_core(part) if discount == 1 else None
        self.inner = self.outer = 0
        """Iterations of linear solves, and improvements of policies, so far."""

    def best(self, c: Floats, warm: Vertex | None = None) -> Answer:
        """The vertex of highest <c, rho> for an (n,) c."""
        c = np.ascontiguousarray(plain(c), dtype=np.float64)
        if isinstance(warm, Answer) and isinstance(warm.memory, SolveState):
            at = warm.memory.copy()
        elif warm is not None and warm.choices is not None:
            at = self._from_policy(warm)
        else:
            at = self._start(c)
        solve = self._average if self.discount == 1 else self._discounted
        found = solve(c, at, np.inf)
        size = float(np.abs(c) @ found.occupancy)
        if found.bound - found.value > PROVED * size:  # one of its choices is huge, and hides the others
            found = solve(c, found.memory.copy(), PROVED * size / 2)
            size = float(np.abs(c) @ found.occupancy)
        if not found.bound - found.value <= PROVED * size + 1e-300:
            raise SolverError(TOO_SLOW)
        return found

    def vertex_of(self, choices: np.ndarray) -> Vertex | None:
        """The vertex of a policy (m,); None if it has several recurrent classes, or mixes too slowly."""
        at = self._from_policy(Vertex(np.zeros(len(self.part.owner)), choices))
        if self.discount == 1:
            policy = Choices(self.part, at.choice)
            everywhere = policy.reached_from(plain(self.part.start) > 0)
            at.reference = self._recurrent(at, everywhere)
            home = policy.leading_to(self._here(at.reference))
            if self.team.any(bool((everywhere & ~home).any())):
                return None
            towards(self.part, home, at.choice)
            self._cut_where_it_runs(at, Choices(self.part, at.choice))
        try:
            system = self._system(at)
            occupancy = self._occupancy(system, at)
        except SolverError:
            return None
        return Vertex(occupancy, choices)

    # ---- the two criteria ---------------------------------------------------------------------

    def _average(self, c: Floats, at: SolveState, wanted: float) -> Answer:
        """The answer, proved to `TOLERANCE` or `wanted`, whichever is less, or as well as rounding allows."""
        part, team = self.part, self.team
        stay = int(kernels.pure_loops(part.first, part.indptr, part.indices, c, -np.inf))
        floor, stay = team.highest(
            float(c[stay]) if stay >= 0 else -np.inf, part.choices_from + stay if stay >= 0 else part.n_choices
        )
        stays = np.isfinite(floor)
        lower = floor if stays else float(team.min(float(c.min())))
        upper, gap, moves, failed, system = float(team.max(float(c.max()))), np.inf, 0, 0, None
        if not at.g >= lower:
            at.g = max(lower, float(team.min(float(c[at.choice].min()))))
        tight, changes = TIGHTEST, 1
        for _ in range(MOST_ITERATIONS):
            self.pause()
            if changes or system is None:
                if system is not None:
                    system.close()
                moves += self._lead_to_one_class(at, may_move=moves < MOST_MOVES)
                system = self._system(at)
            scale = float(team.max(float(np.abs(c[at.choice]).max())))
            near = tight * min(TOLERANCE * scale, wanted)
            enough = max(FORCING * gap, near) if gap < np.inf else FORCING * scale
            try:
                self._evaluate(c, at, system, lower, upper, enough)
            except SolverError:  # the policy runs in several loops, between which it hardly ever changes
                if failed >= MOST_MOVES:
                    raise
                failed += 1
                self._keep_best_loop(c, at, system, by_value=failed % 2 == 1)
                changes, gap = 1, np.inf  # how far bounds were apart does not say how accurate values must be now
                continue
            found = self._survey(c, at)
            lower, upper = max(lower, found.bottom), min(upper, found.top)
            gap, goal = found.top - lower, min(TOLERANCE * found.scale, wanted)
            if 0 <= found.top - found.bottom <= goal or tight < AS_TIGHT_AS_ROUNDING:
                return self._answer(c, at, system, found.top)
            if stays and abs(found.top - floor) <= goal:
                system.close()
                return self._staying(at, stay, floor, found.top)
            changes = self._improve(c, at, MARGIN * tight / TIGHTEST * (found.scale + found.height))
            if not changes or tight < TIGHTEST:
                tight /= 10
        raise SolverError(TOO_SLOW)

    def _discounted(self, c: Floats, at: SolveState, wanted: float) -> Answer:
        team, system, changes, tight, gap = self.team, None, 1, TIGHTEST, np.inf
        for _ in range(MOST_ITERATIONS):
            self.pause()
            if changes or system is None:
                if system is not None:
                    system.close()
                system = self._system(at)
            scale = float(team.max(float(np.abs(c[at.choice]).max())))
            near = tight * min(TOLERANCE * scale, wanted)
            enough = max(FORCING * gap, near) if gap < np.inf else FORCING * scale
            self._solve(system, c[at.choice], at.h, enough)
            found = self._survey(c, at)
            gap = found.top - found.bottom
            if 0 <= gap <= min(TOLERANCE * found.scale, wanted) or tight < AS_TIGHT_AS_ROUNDING:
                start = (1 - self.discount) * self.part.start
                return self._answer(c, at, system, found.top + float(start @ at.h))
            changes = self._improve(c, at, MARGIN * tight / TIGHTEST * (found.scale + found.height))
            if not changes or tight < TIGHTEST:
                tight /= 10
        raise SolverError(TOO_SLOW)

    # ---- steps --------------------------------------------------------------------------------

    def _start(self, c: Floats) -> SolveState:
        """A policy that goes to the choice of highest c among those that can be taken infinitely often."""
        part = self.part
        worth = c if self._core is None else np.where(self._core[part.owner], c, -np.inf)
        best = int(np.argmax(worth))
        _, state = self.team.highest(float(worth[best]), part.lo + int(part.owner[best]))
        choice = part.first[:-1].copy()
        far = towards(part, self._here(state), choice)
        if part.lo <= state < part.hi:
            choice[state - part.lo] = best
        far[~np.isfinite(far)] = part.n_states
        return SolveState(choice, np.zeros(part.own), far, state, -np.inf)

    def _from_policy(self, vertex: Vertex) -> SolveState:
        part = self.part
        time = np.add.reduceat(plain(vertex.occupancy), part.first[:-1])
        busiest = int(np.argmax(time))
        _, state = self.team.highest(float(time[busiest]), part.lo + busiest)
        choice = np.array(vertex.choices, dtype=part.first.dtype)
        return SolveState(choice, np.zeros(part.own), np.zeros(part.own), state, -np.inf)

    def _here(self, state: int) -> Bools:
        """(m,) a mask of one state of the whole model."""
        mask = np.zeros(self.part.own, bool)
        if self.part.lo <= state < self.part.hi:
            mask[state - self.part.lo] = True
        return mask

    def _lead_to_one_class(self, at: SolveState, *, may_move: bool) -> bool:
        """Make all states of the policy lead to the reference. If some do not, the cut moves to a recurrent class in which
        these end; returns whether it did."""
        policy = Choices(self.part, at.choice)
        kept, moved = policy.leading_to(self._here(at.reference)), False
        if not self.team.any(not kept.all()):
            return may_move and self._cut_where_it_runs(at, policy)
        if may_move:
            at.reference, moved = self._recurrent(at, ~kept), True
            kept = policy.leading_to(self._here(at.reference))
            at.y[:] = 0.0
        towards(self.part, kept, at.choice)
        return moved

    def _cut_where_it_runs(self, at: SolveState, policy: Choices) -> bool:
        """If most states do not lead to the reference by likely successors, the policy hardly ever visits it, and times to it
        are too long to be computed: then the cut moves to the loop in which likely successors end. Returns whether it did."""
        likely = Choices.likely(self.part, at.choice)
        near = int(self.team.sum(int(likely.leading_to(self._here(at.reference)).sum())))
        if 2 * near >= self.part.n_states:
            return False
        _, state = self._highest(at.h, np.ones(self.part.own, bool))
        loop = likely.loop_from(state)
        if loop == at.reference or self.team.any(not policy.leading_to(self._here(loop)).all()):
            return False
        at.h -= self.part.at(at.h, loop)
        at.y[:], at.reference = 0.0, loop
        return True

    def _keep_best_loop(self, c: Floats, at: SolveState, system: PolicySystem, *, by_value: bool) -> None:
        """Move the cut to the loop that seems to earn most, and make all states that do not lead there by likely successors lead
        there.

        That is the loop, of likely successors, of the state that earns most in some steps, after as many others; or of the one with
        the highest value. Rounding may mislead either, so they take turns.
        """
        costs, worth = c[at.choice] - at.g, at.h
        if not by_value:
            early = system.ahead(costs, at.h, LOOKING_AHEAD)
            worth = system.ahead(costs, early, LOOKING_AHEAD) - early
        likely = Choices.likely(self.part, at.choice)
        _, state = self._highest(worth, np.ones(self.part.own, bool))
        at.reference = likely.loop_from(state)
        at.h -= self.part.at(at.h, at.reference)
        at.y[:] = 0.0
        towards(self.part, likely.leading_to(self._here(at.reference)), at.choice)

    def _recurrent(self, at: SolveState, among: Bools) -> int:
        """A state in a recurrent class of the policy that some of the given states (m,) lead to."""
        policy = Choices(self.part, at.choice)
        while True:
            _, state = self._highest(at.h, among)
            ahead = policy.reached_from(self._here(state))
            lost = ahead & ~policy.leading_to(self._here(state))
            if not self.team.any(bool(lost.any())):
                return state
            among = lost

    def _highest(self, values: Floats, among: Bools) -> tuple[float, int]:
        """The highest value (m,) among some own states of all processes, and the number of the first state that has it."""
        masked = np.where(among, values, -np.inf)
        best = int(np.argmax(masked))
        return self.team.highest(float(masked[best]), self.part.lo + best if among[best] else self.part.n_states)

    def _order(self, at: SolveState) -> np.ndarray:
        """(m,) the own states from near to far."""
        key = at.y if self.discount == 1 else -at.h
        return np.argsort(key, kind="stable").astype(self.part.first.dtype)

    def _system(self, at: SolveState) -> PolicySystem:
        self.outer += 1
        reference = at.reference if self.discount == 1 else None
        return PolicySystem(self.part, at.choice, self.discount, reference, self._order(at))

    def _solve(self, system: PolicySystem, b: Floats, x: Floats, enough: float) -> None:
        before = system.iterations
        system.solve(b, x, enough)
        self.inner += system.iterations - before

    def _evaluate(
        self, c: Floats, at: SolveState, system: PolicySystem, lower: float, upper: float, enough: float
    ) -> None:
        """Times and relative values of the policy, and Newton's step on the gain, which stays between the bounds."""
        part = self.part
        self._solve(system, np.ones(part.own), at.y, TIMED * part.n_states**0.5)
        self._solve(system, c[at.choice] - at.g, at.h, enough)
        surplus, cycle = part.at(at.h, at.reference), part.at(at.y, at.reference)
        step = min(max(surplus / cycle, lower - at.g), upper - at.g)
        at.g += step
        at.h -= step * at.y
        if part.lo <= at.reference < part.hi:
            at.h[at.reference - part.lo] = 0.0

    def _survey(self, c: Floats, at: SolveState) -> Bounds:
        part, known = self.part, self.part.filled(at.h)
        scale, height, top, bottom = survey(part.first, *part.arrays, c, self.discount, known, at.choice)
        scale, height, top = self.team.max(np.array([scale, height, top]))
        return Bounds(float(top), float(self.team.min(float(bottom))), float(scale), float(height))

    def _improve(self, c: Floats, at: SolveState, margin: float) -> int:
        """Greedy passes; returns how many choices changed in all processes."""
        part, known = self.part, self.part.filled(at.h)
        reference = part.place_of(at.reference) if self.discount == 1 and part.lo <= at.reference < part.hi else -1
        g = at.g if self.discount == 1 else 0.0
        order = self._order(at)
        changes = kernels.improve(
            order, part.first, *part.arrays, c, self.discount, g, known, at.choice, reference, margin, GREEDY_PASSES
        )
        return int(self.team.sum(int(changes)))

    # ---- answers ------------------------------------------------------------------------------

    def _occupancy(self, system: PolicySystem, at: SolveState) -> Floats:
        """(n,) the share of time on each choice, from the transposed system, which is closed."""
        part, team = self.part, self.team
        arriving = (
            np.asarray((1 - self.discount) * part.start)
            if self.discount < 1
            else self._here(at.reference).astype(float)
        )
        visits = np.zeros(part.own)
        cycle = part.at(at.y, at.reference) if self.discount == 1 else 1.0
        system.transpose()
        self._solve(system, arriving, visits, MASS_LEFT * max(cycle, 1.0))
        system.close()
        np.maximum(visits, 0.0, out=visits)
        total = float(team.sum(float(visits.sum())))
        if not 0 < total < np.inf:
            raise SolverError(TOO_SLOW)
        occupancy = np.zeros(len(part.owner))
        occupancy[at.choice] = visits / total
        return shared(occupancy, team)

    def _answer(self, c: Floats, at: SolveState, system: PolicySystem, bound: float) -> Answer:
        occupancy = self._occupancy(system, at)
        value = float(c @ occupancy)
        return Answer(occupancy, at.choice, value=value, bound=max(bound, value), memory=at)

    def _staying(self, at: SolveState, stay: int, value: float, top: float) -> Answer:
        """Staying in one state is best: all states lead there. The warm start keeps the round-trip policy.

        `stay` is the choice that stays, numbered in the whole model.
        """
        part, place = self.part, stay - self.part.choices_from
        mine = 0 <= place < len(part.owner)
        state = int(self.team.max(part.lo + int(part.owner[place]) if mine else -1))
        choices, occupancy = at.choice.copy(), np.zeros(len(part.owner))
        towards(part, self._here(state), choices)
        if mine:
            choices[state - part.lo], occupancy[place] = place, 1.0
        at.g = -np.inf
        return Answer(shared(occupancy, self.team), choices, value=value, bound=max(top, value), memory=at)
