"""The linear oracle by policy iteration: the vertex that maximises <c, rho>, exactly.

Maximising a linear function over the occupancies is an MDP with reward c. One policy is evaluated by
one sparse LU, which serves the occupancy (transposed) and the values.

*Average, many recurrent classes.* Where actions such as 'stop' make single states absorbing, most policies are multichain
and the textbook's unichain equations are singular. Weak accessibility allows a simple repair: of a multichain policy,
keep the recurrent class of highest gain and send every other state there. Policy iteration still rises and ends,
because a recurrent class that an improvement step creates has a strictly higher gain than the policy before: its gain is
the old one plus its own mean advantage, and a class without any improved state existed before. So every repair comes
with a strict gain, and between repairs the textbook's argument holds.

*Proof of optimality.* For any function h of the states and any occupancy rho, flow conservation gives
<c, rho> <= max(c + discount P h - h) + (1 - discount) <start, h>. Every answer carries that bound for
its own h, whatever the arithmetic did before.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from manyways.errors import SolverError
from manyways.model.graph import closed_components, reachable, recurrent_core
from manyways.model.mdp import MDP
from manyways.model.occupancy import (
    MOST_CUTS,
    TOO_SLOW,
    WELL_CHOSEN,
    choices_towards,
    dominance,
    factorised,
    factors_of,
    first_best,
    stationary_distributions,
    system_of,
)
from manyways.polytope.oracle import Pause
from manyways.polytope.vertex import Answer, Vertex
from manyways.types import Floats, Ints, Sparse

MAX_ITERATIONS = 1000
RELATIVE_TOLERANCE = 1e-14


@dataclass(frozen=True, eq=False)
class _Evaluation:
    choices: Ints
    visits: Floats
    values: Floats
    gain: float


class PolicyIteration:
    """The oracle of one model and one discount (1 for the average)."""

    def __init__(self, mdp: MDP, discount: float, pause: Pause | None = None) -> None:
        self.mdp = mdp
        self.discount = discount
        self._pause = pause or Pause()
        self._core = recurrent_core(mdp) if discount == 1 else None

    def best(self, c: Floats, warm: Vertex | None = None) -> Answer:
        """The vertex of highest <c, rho> for an (N,) c."""
        return self.best_from(c, self._first_choices(c) if warm is None or warm.choices is None else warm.choices)

    def best_from(self, c: Floats, choices: Ints) -> Answer:
        """The same, starting from a policy with one choice per state (S,)."""
        mdp = self.mdp
        best: _Evaluation | None = None
        bound, dual = np.inf, np.zeros(mdp.n_states)
        seen: set[bytes] = set()
        for _ in range(MAX_ITERATIONS):
            self._pause()
            now = self._evaluate(choices, c)
            future = c + self.discount * (mdp.transitions @ now.values)
            # An advantage is real only if it exceeds the residual of the policy's own equations.
            own = future[now.choices] - now.values - (now.gain if self.discount == 1 else 0.0)
            # Row by row, so that a huge reward blurs no comparison but its own.
            size = np.abs(c) + mdp.transitions @ np.abs(now.values) + abs(now.gain)
            tolerance = RELATIVE_TOLERANCE * size[now.choices] + 4 * np.abs(own)
            if best is not None and now.gain < best.gain - float(now.visits @ tolerance):
                break  # only rounding can lower the gain, so these policies are equally good
            best = now
            proved = self._bound(future, now.values)
            if proved < bound:
                bound, dual = proved, now.values
            top = np.maximum.reduceat(future, mdp.first_choice[:-1])
            better = top > future[now.choices] + tolerance
            if not better.any():
                break
            if now.choices.tobytes() in seen:
                break  # policies that tie to the last digit can repeat in a cycle
            seen.add(now.choices.tobytes())
            choices = np.where(better, first_best(mdp, future), now.choices)
        assert best is not None  # the loop runs at least once
        occupancy = np.zeros(mdp.n_choices)
        occupancy[best.choices] = best.visits
        value = float(occupancy @ c)
        return Answer(occupancy, best.choices, value=value, bound=max(bound, value), dual=dual)

    def _bound(self, future: Floats, values: Floats) -> float:
        advantage = (future - values[self.mdp.choice_state]).max()
        return float(advantage + (1 - self.discount) * (self.mdp.start @ values))

    def most_paying(self, c: Floats) -> int:
        """The choice of highest c among those that can be taken infinitely often."""
        return int(np.argmax(c if self._core is None else np.where(self._core[self.mdp.choice_state], c, -np.inf)))

    def _first_choices(self, c: Floats) -> Ints:
        """A policy that goes to the choice of highest c and takes it there."""
        if self._core is None:
            return first_best(self.mdp, c)
        target = self.most_paying(c)
        goal = np.zeros(self.mdp.n_states, bool)
        goal[self.mdp.choice_state[target]] = True
        choices = choices_towards(self.mdp, goal)
        choices[goal] = target
        return choices

    def _evaluate(self, choices: Ints, c: Floats) -> _Evaluation:
        p = self.mdp.transitions[choices]
        if self.discount == 1:
            choices, p, reference = self._unichain(choices, p, c)
            return self._evaluate_average(choices, p, c, reference)
        lu = factors_of(p, self.discount)
        visits = np.maximum(lu.solve((1 - self.discount) * self.mdp.start, trans="T"), 0.0)
        visits /= visits.sum()
        return _Evaluation(choices, visits, lu.solve(c[choices]), float(visits @ c[choices]))

    @np.errstate(all="ignore")  # what overflows mixes too slowly, and is refused
    def _evaluate_average(self, choices: Ints, p: Sparse, c: Floats, reference: int) -> _Evaluation:
        """Cut the chain at a recurrent reference state: expected visits during a round trip give the
        occupancy and so the gain, and what is earned above the gain until the next visit the values."""
        n, cuts = self.mdp.n_states, 0
        while True:
            system = system_of(p, cut_at=np.array([reference]))
            lu = factorised(system)
            unit = np.zeros(n)
            unit[reference] = 1.0
            visits = np.maximum(lu.solve(unit, trans="T"), 0.0)
            busiest = int(np.argmax(visits))
            cuts += 1
            if visits[reference] >= WELL_CHOSEN * visits[busiest] or cuts == MOST_CUTS:
                break
            reference = busiest
        visits /= visits.sum()
        gain = float(visits @ c[choices])
        values = lu.solve(c[choices] - gain)
        for _ in range(2):  # iterative refinement reduces the residual to the last digits
            values += lu.solve(c[choices] - gain - system @ values)
        values[reference] = 0.0
        if not (np.isfinite(visits).all() and np.isfinite(values).all()):
            raise SolverError(TOO_SLOW)
        return _Evaluation(choices, visits, values, gain)

    def _unichain(self, choices: Ints, p: Sparse, c: Floats) -> tuple[Ints, sparse.csr_array, int]:
        """Keep the recurrent class of highest gain and send all other states there; also returns a state in it."""
        component, closed = closed_components(p)
        classes = np.flatnonzero(closed)
        if classes.size == 1:
            return choices, p, int(np.argmax(np.where(component == classes[0], dominance(p), -1.0)))
        share = stationary_distributions(p, component, closed[component])
        gain = np.bincount(component, weights=share * c[choices], minlength=len(closed))
        chosen = classes[np.argmax(gain[classes])]
        kept = ~reachable(sparse.csr_array(p.T), closed[component] & (component != chosen))
        choices = np.where(kept, choices, choices_towards(self.mdp, kept))
        return choices, self.mdp.transitions[choices], int(np.argmax(np.where(component == chosen, share, -1.0)))
