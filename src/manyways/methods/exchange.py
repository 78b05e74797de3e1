"""Local search over single actions, with the exact objective.

Changing a plan's action in one state changes one row of its chain. With the chain cut at a state that it
keeps coming back to, let M = (I - P)^-1 hold expected visits until the next return and m its row of that
state, which is the occupancy but for scale. If the row of state s changes by d, then by Sherman and Morrison

    m' = m + m(s) / (1 - d M e_s) * d M,    M' = M + M e_s (d M) / (1 - d M e_s)

so, given the rows of M for all states that an action of a visited state can lead to, an exchange costs a few vector
operations to evaluate and one rank-one update to make. Those rows are dense, hence the limit on the number of states.
Exchanges after which the chain never returns, such as for a pure self-loop, are evaluated separately when no others help
any more. A discounted chain needs no cut; the rest is the same. Exchanges after which the plan would miss a floor are not
made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from manyways.errors import SettingError
from manyways.kernels import exchange as kernels
from manyways.model.occupancy import factorised, system_of
from manyways.objectives import SetObjective
from manyways.objectives.divergence import divergence_from_one_place
from manyways.polytope import Polytope, Vertex
from manyways.types import Floats, Ints

STATES_UP_TO = 2500
"""In larger models the rows of M would take too much memory, and trying every exchange too much time."""
RISE = 1e-6
"""The least rise that counts, relative to the scale of the objective."""
WORTH_A_ROUND = 1e-5
"""Only a rise of more than this, on the same scale, makes the search go on for another round."""
MATTERS = 1e-6
"""States that no exchange would visit more often than this, per round trip, are left out of the evaluation."""
MOST_PASSES, MOST_AWAY = 50, 64


def exchangeable(polytope: Polytope, objective: SetObjective, k: int, plans: Sequence[Vertex]) -> bool:
    """Whether the search applies to `plans`, some of a set of k: an objective of the right form, a model that is not
    too large, plans whose policies are known."""
    small = polytope.mdp.n_states <= STATES_UP_TO
    return small and objective.exchange_form(k) is not None and all(plan.choices is not None for plan in plans)


def exchange_actions(
    polytope: Polytope, objective: SetObjective, plans: list[Vertex], fixed: int = 0, busy: float = 0.0
) -> Iterator[list[Vertex]]:
    """Yield better and better sets of plans, until no exchange of one action in one plan raises the objective.

    The first `fixed` of them stay as they are. Actions are exchanged only in states in which a plan spends at least `busy`
    of its typical time per step.
    """
    rows = [vertex.occupancy for vertex in plans]
    free = len(plans) - fixed
    searches = [_Search(polytope, objective, rows, i, plans[i], busy) for i in range(fixed, len(plans))]
    idle, i = 0, 0
    for _ in range(MOST_PASSES * free):
        better, much = searches[i].improved(rows)
        idle = 0 if much else idle + 1
        if better is not None:
            rows[fixed + i] = better
            yield plans[:fixed] + [
                vertex if row is vertex.occupancy else Vertex(row, search.choice.copy())
                for vertex, row, search in zip(plans[fixed:], rows[fixed:], searches, strict=True)
            ]
        if idle == free:
            return
        i = (i + 1) % free


def neighbours(
    polytope: Polytope, objective: SetObjective, rows: list[Floats], plan: Vertex, i: int
) -> Iterator[Vertex]:
    """The vertices that differ from plan i by one exchange, in order of falling objective."""
    search = _Search(polytope, objective, rows, i, plan)
    for choice in search.neighbours(rows):
        attempt = search.choice.copy()
        attempt[polytope.mdp.choice_state[choice]] = choice
        yield polytope.vertex_of(attempt)


class _Search:
    """One plan of a set, the i-th, with its chain prepared for exchanges, updated as they are made."""

    def __init__(
        self,
        polytope: Polytope,
        objective: SetObjective,
        rows: list[Floats],
        i: int,
        plan: Vertex,
        busy: float = 0.0,
    ) -> None:
        form = objective.exchange_form(len(rows))
        if form is None:
            raise SettingError(f"exchanges of single actions do not apply to {objective!r:.200}")
        self.polytope, self.objective, self._form, self._i, self._busy = polytope, objective, form, i, busy
        self.choice: Ints = np.array(plan.choices, dtype=np.int64)
        mdp = polytope.mdp
        matrix = mdp.transitions
        self._arrays = (matrix.indptr, matrix.indices, matrix.data)
        stays = np.zeros(mdp.n_choices, bool)
        if polytope.criterion.discount == 1:
            stays = (np.diff(matrix.indptr) == 1) & (matrix.indices[matrix.indptr[:-1]] == mdp.choice_state)
        self._stays, self._loops = stays, np.flatnonzero(stays)
        floors = polytope.floors
        self._floors = np.array([floor.weights(mdp) for floor in floors]).reshape(len(floors), mdp.n_choices)
        self._levels = np.array([floor.level for floor in floors])
        self._prepare(rows)

    def improved(self, rows: list[Floats]) -> tuple[Floats | None, bool]:
        """The plan's occupancy (N,) after one pass of exchanges, None if none helps; and whether it gains so much that the
        plans should be tried again."""
        objective, i = self.objective, self._i
        now = objective.contribution(rows, i, rows[i])
        scale = abs(now) + objective.diversity_weight
        before = self.choice.copy()
        others = [objective.compared.forward(row) for j, row in enumerate(rows) if j != i]
        self.polytope.pause()
        kept, value, worth = self._try_all(others, now, RISE * scale)
        if not kept:
            elsewhere = self._elsewhere(rows, self._candidate[np.isnan(worth)], value + RISE * scale)
            if elsewhere is None:
                return None, False
            self.choice = elsewhere
            self._prepare([*rows[:i], self.polytope.vertex_of(self.choice).occupancy, *rows[i + 1 :]])
        # The pass only updated the occupancy; the result is computed, and judged, from scratch.
        occupancy = self.polytope.occupancy_around(self.choice, self._reference)
        gain = objective.contribution(rows, i, occupancy) - now
        if gain <= RISE / 2 * scale or not self.polytope.meets_floors(occupancy):
            self.choice = before
            self._prepare(rows)
            return None, False
        return occupancy, gain > WORTH_A_ROUND * scale

    def neighbours(self, rows: list[Floats]) -> Ints:
        """The choices in order of the contribution that the plan has after exchanging each alone, best first."""
        others = [self.objective.compared.forward(row) for j, row in enumerate(rows) if j != self._i]
        *_, worth = self._try_all(others, 0.0, np.inf)
        tried = np.flatnonzero(np.isfinite(worth))
        return self._candidate[tried[np.argsort(-worth[tried], kind="stable")]]

    def _try_all(self, others: list[Floats], value: float, rise: float) -> tuple[int, float, Floats]:
        """One pass over all exchanges: how many were kept, the plan's contribution, and the one with each candidate."""
        compared = np.stack(others)
        taken, worth = self.choice[self._state], np.full(len(self._candidate), -np.inf)
        columns, groups = len(taken), compared.shape[1]
        slots, rows = columns + 1, len(self._from_row)
        space = (
            np.empty(columns), np.empty(slots), np.empty(columns, np.int64), np.full(groups, -1), np.empty((len(others), slots)),
            np.empty(slots), np.empty((4, slots)), np.empty(rows), np.empty(rows),
        )  # fmt: skip
        kept, value = kernels.exchange_pass(
            self._candidate, self._column, worth, taken, *self._arrays, self.polytope.criterion.discount,
            self._row_of, self._from_row, self._from_row[0].sum(), self.polytope.mdp.reward, self._form.groups,
            compared, self._floors, self._levels, self._form.per_reward, self._form.per_divergence, value, rise, space,
        )  # fmt: skip
        self.choice[self._state] = taken
        return kept, value, worth

    def _elsewhere(self, rows: list[Floats], away: Ints, value: float) -> Ints | None:
        """The policy after an exchange worth more than `value` after which the chain never returns to the reference, if
        there is one: the best state to stay in, or an exchange that closes a loop elsewhere. Each is evaluated
        separately."""
        for choice in [*self._best_stand(rows, value), *away[:MOST_AWAY]]:
            attempt = self.choice.copy()
            attempt[self.polytope.mdp.choice_state[choice]] = choice
            occupancy = self.polytope.vertex_of(attempt).occupancy
            if self.objective.contribution(rows, self._i, occupancy) > value and self.polytope.meets_floors(occupancy):
                return attempt
        return None

    def _best_stand(self, rows: list[Floats], value: float) -> Ints:
        """The pure self-loop in a visited state that contributes most, if more than `value`. All time is spent there, so
        its divergence from each other plan has a closed form."""
        mdp = self.polytope.mdp
        visited = np.zeros(mdp.n_states, bool)
        visits = self._from_row[0]
        visited[self._state[visits > kernels.WORTH_TRYING * visits.sum()]] = True
        loops = self._loops[visited[mdp.choice_state[self._loops]]]
        group = self._form.groups[loops]
        met = np.stack([self.objective.compared.forward(row)[group] for j, row in enumerate(rows) if j != self._i])
        apart = divergence_from_one_place(met).sum(axis=0)
        worth = self._form.per_reward * mdp.reward[loops] + self._form.per_divergence * apart
        best = np.argsort(-worth, kind="stable")[:1]
        return loops[best[worth[best] > value]]

    def _prepare(self, rows: list[Floats]) -> None:
        """Choose the cut and the states that matter; compute expected visits and the rows of M that exchanges need."""
        mdp, discount = self.polytope.mdp, self.polytope.criterion.discount
        n = mdp.n_states
        matrix = mdp.transitions
        by_state = rows[self._i][self.choice]
        self._reference = reference = int(np.argmax(by_state)) if discount == 1 else -1
        least = max(kernels.WORTH_TRYING / 10, self._busy * float(by_state @ by_state))
        tried = (by_state > least)[mdp.choice_state]
        needed = np.zeros(n, bool)
        needed[matrix.indices[np.repeat(tried, np.diff(matrix.indptr))]] = True
        ends = np.flatnonzero(needed)
        visits = self._visits_from(ends)
        matters = (visits.max(axis=1, initial=0.0) > MATTERS) | (by_state > MATTERS)
        order = np.argsort(-by_state, kind="stable")  # what counts most comes first in sums that may end early
        self._state = order[matters[order]]
        self._from_row = np.empty((1 + len(ends), len(self._state)))
        self._from_row[0] = by_state[self._state] / (by_state[reference] if discount == 1 else 1.0)
        self._from_row[1:] = visits[self._state].T
        self._row_of = np.full(n, -1)
        self._row_of[ends] = 1 + np.arange(len(ends))
        if discount == 1:
            self._row_of[reference] = -1
        self._candidate = np.flatnonzero(tried & ~self._stays & matters[mdp.choice_state])
        column = np.empty(n, np.int64)
        column[self._state] = np.arange(len(self._state))
        self._column = column[mdp.choice_state[self._candidate]]

    def _visits_from(self, ends: Ints) -> Floats:
        """(S, E) expected visits to each state, from each of E states, before the chain is cut: rows of M as columns.

        SuperLU would solve for one right-hand side after the other. Going through the factors with all of them at once is
        five times as fast for a hundred.
        """
        cut_at = None if self._reference < 0 else np.array([self._reference])
        mdp, discount = self.polytope.mdp, self.polytope.criterion.discount
        factors = factorised(system_of(mdp.transitions, discount, cut_at, self.choice))
        lower, upper = factors.L, factors.U
        solved = np.zeros((mdp.n_states, len(ends)))
        solved[factors.perm_c[ends], np.arange(len(ends))] = 1.0
        kernels.solve_transposed(
            lower.indptr, lower.indices, lower.data, upper.indptr, upper.indices, upper.data, solved
        )
        return solved[factors.perm_r]
