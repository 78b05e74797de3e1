"""Local search over single actions, with the exact objective.

Changing a plan's action in one state changes one row of its chain. With the chain cut at a reference
state, M = (I - P)^-1 holds expected visits until the next return, and its reference row m gives the
occupancy, m / sum(m). For another action in state s the row changes by d, and by Sherman and Morrison

    m' = m + m(s) / (1 - d M e_s) * d M

so all exchanges of a plan are evaluated together, by one product of a sparse and a dense matrix, and
their objectives exactly. M is dense: S x S numbers, hence the limit on S. A pure self-loop cannot be
written like this (one never returns from it); the vertex steps have tried those.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import sparse
from scipy.special import xlogy

from manyways.behaviour import StateActions
from manyways.mdp import Floats, Ints
from manyways.objective import Objective
from manyways.polytope import Polytope, Vertex

DENSE_UP_TO = 2500
WORTH_TRYING = 1e-10
"""Exchanges in states visited less than this cannot change the objective noticeably."""
RISE = 1e-10
MOST_ROUNDS = 100


def exchange_actions(polytope: Polytope, objective: Objective, plans: list[Vertex]) -> Iterator[list[Vertex]]:
    """Yield better and better plans, until no exchange of one action in one plan raises the objective."""
    plans = list(plans)
    idle, i = 0, 0
    for _ in range(MOST_ROUNDS * len(plans)):
        better = _improved(polytope, objective, plans, i)
        if better is None:
            idle += 1
            if idle == len(plans):
                return
        else:
            idle = 0
            plans[i] = better
            yield list(plans)
        i = (i + 1) % len(plans)


def _improved(polytope: Polytope, objective: Objective, plans: list[Vertex], i: int) -> Vertex | None:
    """Plan i after all exchanges that help, best first; None if none does."""
    mdp, choices = polytope.mdp, plans[i].choices
    if choices is None:
        return None
    rows = [vertex.occupancy for vertex in plans]
    now = objective.block_value(rows, i, rows[i])
    scale = abs(now) + objective.tradeoff
    tried = _Exchanges(polytope, objective, rows, i, choices)
    gains = tried.values() - now
    promising = [int(e) for e in np.argsort(-gains, kind="stable") if gains[e] > RISE * scale]
    changed = choices.copy()
    best: Vertex | None = None
    touched: set[int] = set()
    for e in promising:
        state, choice = int(tried.state[e]), int(tried.choice[e])
        if state in touched:
            continue
        attempt = changed.copy()
        attempt[state] = choice
        vertex = polytope.vertex_of(attempt)
        value = objective.block_value(rows, i, vertex.occupancy)
        if value > now + RISE * scale:
            changed, best, now = attempt, vertex, value
            touched.add(state)
        elif best is None:
            return None  # the very best one fails by rounding alone
        else:
            break  # the gains were computed for the unchanged plan: look again from here
    return best


class _Exchanges:
    """All exchanges of one action in one plan, and the objective after each."""

    def __init__(self, polytope: Polytope, objective: Objective, rows: list[Floats], i: int, choices: Ints) -> None:
        mdp = polytope.mdp
        self._objective, self._rows, self._i, self._own = objective, rows, i, choices
        discount = polytope.criterion.discount
        p = discount * mdp.transitions[choices].toarray()
        mass = rows[i][choices]
        reference = int(np.argmax(mass))
        cut = discount == 1
        if cut:
            p[:, reference] = 0.0
            entering = np.zeros(len(mass))
            entering[reference] = 1.0
        else:
            entering = (1 - discount) * mdp.start
        visits_from = np.linalg.inv(np.eye(len(mass)) - p)
        visits = entering @ visits_from
        alternatives = np.flatnonzero(mass[mdp.choice_state] > WORTH_TRYING)
        alternatives = alternatives[choices[mdp.choice_state[alternatives]] != alternatives]
        state = mdp.choice_state[alternatives]
        change = sparse.csr_array(discount * (mdp.transitions[alternatives] - mdp.transitions[choices[state]]))
        if cut:
            change.data[change.indices == reference] = 0.0
        moved = change @ visits_from
        returning = 1 - moved[np.arange(len(state)), state]
        real = returning > 1e-9
        self.choice, self.state = alternatives[real], state[real]
        after = visits + (visits[self.state] / returning[real])[:, None] * moved[real]
        after = np.maximum(after, 0.0)
        self.mass = after / after.sum(axis=1, keepdims=True)

    def values(self) -> Floats:
        """(E,) what the plan would contribute to the objective after each exchange."""
        objective, mass, own = self._objective, self.mass, self._own
        mdp, k = objective.mdp, len(self._rows)
        here = np.arange(len(self.state)), self.state
        moved = mass[here]
        reward = mass @ mdp.reward[own] + moved * (mdp.reward[self.choice] - mdp.reward[own[self.state]])
        others = [objective.image(row) for j, row in enumerate(self._rows) if j != self._i]
        if isinstance(objective.behaviour, StateActions):
            spread = self._spread_over_choices(moved, others)
        else:
            # These behaviours see states only, so an exchange shows in the states' shares alone.
            by_state = objective.image(_unit_rows(mdp.n_choices, own))
            image = mass @ by_state
            spread = sum(_divergences(image, q) for q in others)
        return reward / k + 2 * objective.tradeoff / (k * (k - 1)) * spread

    def _spread_over_choices(self, moved: Floats, others: list[Floats]) -> Floats:
        """Sums of JSD when each row has the plan's own choices but for one state's."""
        kept = self.mass.copy()
        kept[np.arange(len(self.state)), self.state] = 0.0
        # Columns nobody visits after any exchange contribute what the other plan has there, halved: a constant.
        used = np.flatnonzero(kept.max(axis=0) > 1e-14) if len(kept) else np.zeros(0, int)
        kept = kept[:, used]
        own_entropy = xlogy(kept, kept).sum(axis=1) + xlogy(moved, moved)
        total = np.zeros(len(moved))
        for q in others:
            there, at_choice = q[self._own[used]], q[self.choice]
            elsewhere = xlogy(q / 2, q / 2).sum() - xlogy(there / 2, there / 2).sum()
            middle = (kept + there) / 2
            met = (moved + at_choice) / 2
            mixed = xlogy(middle, middle).sum(axis=1) + xlogy(met, met) - xlogy(at_choice / 2, at_choice / 2)
            total += (own_entropy + xlogy(q, q).sum()) / 2 - mixed - elsewhere
        return total


def _divergences(rows: Floats, q: Floats) -> Floats:
    middle = (rows + q) / 2
    return (xlogy(rows, rows).sum(axis=1) + xlogy(q, q).sum()) / 2 - xlogy(middle, middle).sum(axis=1)


def _unit_rows(n: int, columns: Ints) -> Floats:
    rows = np.zeros((len(columns), n))
    rows[np.arange(len(columns)), columns] = 1.0
    return rows
