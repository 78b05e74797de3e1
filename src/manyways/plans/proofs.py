"""The vectors from which `plans.checker` proves statements. Nothing here needs to be trusted.

One sparse LU of the policy's chain, cut at a reference state, gives relative values, occupancy and times to the
reference. Iterative refinement with the exact residuals of the checker turns values and occupancy into sums of two
doubles, so that the intervals that follow are a few units in the last place wide.
"""

from __future__ import annotations

import numpy as np

from manyways.errors import SolverError
from manyways.model.occupancy import chain, factors_of, state_occupancy
from manyways.plans.checker import ExactModel, Interval, PlanProof
from manyways.types import Floats, Ints

FACTORISED = 50_000
"""Plans that can be in more states than this get no exact proof: the factors of their chain would fill the memory."""
REFINEMENTS = 8
SETTLED = 4e-16
WELL_CHOSEN = 1e-4
"""A reference visited less often than this times the busiest state makes the system ill-conditioned."""


def prove(model: ExactModel, policy: Floats, occupancy: Floats, c: Floats | None = None) -> PlanProof | None:
    """Vectors for an (N,) policy whose occupancy is about (N,) `occupancy`, for the rewards c (N,), the model's own by
    default. None if the chain is too large to factorise, or mixes too slowly for double precision."""
    found = _Chain.of(model, policy, occupancy)
    if found is None:
        return None
    return PlanProof(found.values(model.reward if c is None else c), found.occupancy(), found.times(), found.reference)


class _Chain:
    """The chain of a policy on the states that it can reach, cut at a reference state and factorised."""

    def __init__(self, model: ExactModel, policy: Floats, states: Ints, reference: int) -> None:
        self.model, self.policy, self.states, self.reference = model, policy, states, reference
        mdp, discount = model.mdp, model.discount
        self.at = int(np.searchsorted(states, reference))
        p = chain(mdp, policy)[states][:, states]
        self.factors = factors_of(p, discount, cut_at=np.array([self.at]))
        total = np.bincount(model.state, policy, minlength=mdp.n_states)
        self.share = policy / total[model.state]
        reached = np.zeros(mdp.n_states, bool)
        reached[states] = True
        self.rows = np.flatnonzero((policy > 0) & reached[model.state])

    @staticmethod
    def of(model: ExactModel, policy: Floats, occupancy: Floats) -> _Chain | None:
        seen = model.reach(model.mdp.start > 0, policy > 0)
        states = np.flatnonzero(seen)
        if len(states) > FACTORISED:
            return None
        by_state = np.where(seen, state_occupancy(model.mdp, occupancy), -1.0)
        try:
            found = _Chain(model, policy, states, int(np.argmax(by_state)))
            visits = found.visits()
            busiest = int(np.argmax(visits))
            if not visits[found.at] >= WELL_CHOSEN * visits[busiest]:
                found = _Chain(model, policy, states, int(states[busiest]))
        except SolverError:
            return None
        return found if np.isfinite(found.visits()).all() else None

    def times(self) -> Floats:
        """(S,) the expected time to the reference; zero where the plan never is."""
        found = np.zeros(self.model.mdp.n_states)
        found[self.states] = np.maximum(self._steps, 0.0)
        return found

    @property
    def _steps(self) -> Floats:
        return np.nan_to_num(self.factors.solve(np.ones(len(self.states))))

    def values(self, c: Floats) -> Floats:
        """(2, S) relative values: the policy's surpluses are all nearly the same."""
        h = np.zeros((2, self.model.mdp.n_states))
        steps, last, before = self._steps, np.inf, h
        for _ in range(1 + REFINEMENTS):
            earned = self._mean(_middle(self.model.surplus(self.rows, c, h)))
            spread = float(np.ptp(earned))
            if not spread < last:
                return before
            if spread <= SETTLED * float(np.abs(earned).max()):
                break
            last, before = spread, h
            change = self.factors.solve(earned - earned[self.at])
            change -= change[self.at] / steps[self.at] * steps
            change[self.at] = 0.0
            h = _pushed(h, self._everywhere(change))
        return h

    def visits(self) -> Floats:
        """(states,) the occupancy by state."""
        unit = np.zeros(len(self.states))
        unit[self.at] = 1.0
        around = self.factors.solve(unit, trans="T")
        if self.model.discount == 1:
            return around / around.sum()
        from_start = self.factors.solve((1 - self.model.discount) * self.model.mdp.start[self.states], trans="T")
        return from_start + (1 - from_start.sum()) / around.sum() * around

    def occupancy(self) -> Floats:
        """(2, N) the occupancy by choice, divided by the sums of the rows of probabilities."""
        model = self.model
        weight = self.share / np.asarray(model.mdp.transitions.sum(axis=1)).ravel()
        w = np.zeros((2, model.mdp.n_choices))
        w[0] = self._everywhere(self.visits())[model.state] * weight
        unit = np.zeros(len(self.states))
        unit[self.at] = 1.0
        around = self.factors.solve(unit, trans="T")
        randomised = len(np.unique(model.state[self.rows])) < len(self.rows)
        for _ in range(1 if randomised else 3):
            flow, into, net = (_middle(part) for part in model.flows(self.rows, w))
            if model.discount < 1:
                net = net + (1 - model.discount) * (into - model.mdp.start / model.mdp.start.sum())
            wrong = self.factors.solve(net[self.states], trans="T")
            wrong += (float(flow.sum() - 1.0) - wrong.sum()) / around.sum() * around
            w = _pushed(w, -self._everywhere(wrong)[model.state] * weight)
        return w

    def _mean(self, v: Floats) -> Floats:
        """(rows,) -> (states,) the policy's mean."""
        owner = self.model.state[self.rows]
        found = np.bincount(owner, self.share[self.rows] * v, minlength=self.model.mdp.n_states)
        return found[self.states].astype(np.float64)

    def _everywhere(self, v: Floats) -> Floats:
        """(states,) -> (S,), zero elsewhere."""
        found = np.zeros(self.model.mdp.n_states)
        found[self.states] = v
        return found


def _middle(v: Interval) -> Floats:
    return (v[0] + v[1]) / 2


def _pushed(parts: Floats, change: Floats) -> Floats:
    """Add a vector to a sum of two vectors."""
    a, b = parts[0], parts[1] + change
    high = a + b
    kept = high - a
    return np.stack([high, (a - (high - kept)) + (b - kept)])
