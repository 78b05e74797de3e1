"""The vectors from which `plans.checker` proves statements. Nothing here needs to be trusted.

One sparse LU of a policy's chain, cut at a reference state, gives relative values, occupancy and times to the reference.
Iterative refinement with the exact residuals of the checker turns values and occupancy into sums of two doubles, so that
the intervals that follow are a few units in the last place wide.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.sparse.linalg import SuperLU

from manyways.errors import SolverError
from manyways.kernels.threads import cores, side_by_side
from manyways.methods import Halted
from manyways.model.occupancy import (
    WELL_CHOSEN,
    chain,
    deterministic,
    factors_of,
    first_best,
    policy_of,
    state_occupancy,
)
from manyways.objectives import SetObjective
from manyways.objectives.base import SMOOTHING
from manyways.plans.checker import (
    EXACT_UP_TO,
    ExactModel,
    Interval,
    PlanProof,
    ProvedPlan,
    ProvedSet,
    SetProof,
    gradients,
    prove_plan,
)
from manyways.polytope import Answer, Polytope, ShortestWay, Vertex
from manyways.types import Floats, Ints

THREADS_FROM = 2_000
"""From this many states on, plans are proved side by side."""
REFINEMENTS = 4
SETTLED = 4e-16
SURELY_SETTLED = 1e-18
"""If the next spread of the surpluses will be less than this, relative to their size, it need not be computed."""
SURELY_RIGHT = 1e-11
"""If a correction of the occupancy is less than this, the next one would be less than its square."""
MOST_IMPROVEMENTS, NEARLY_BEST, ROUNDING = 20, 1e-10, 1e-14


def prove_set(
    polytope: Polytope,
    objective: SetObjective,
    policies: Floats,
    x: Floats,
    tell: Callable[[int], None] = lambda _: None,
    shortest: ShortestWay | None = None,
) -> tuple[SetProof, ProvedSet]:
    """Find the vectors for (k, N) policies and occupancies; `tell` is called before each plan with its number.

    The gap is bounded by solves for the upper ends of the gradients, where these are proved.

    Args:
        polytope: the feasible set of each plan, floors included, on the model whose reward is maximised.
        objective: what was maximised.
        policies, x: (k, N).
        tell: called with the number of each plan before its part of the gap is bounded.
        shortest: what is claimed about the shortest way to the goal.

    Returns:
        The vectors, and what they prove about the plans.
    """
    mdp = polytope.mdp
    optimum = polytope.ceiling
    model = ExactModel(mdp, polytope.criterion.discount)
    best = policy_of(mdp, optimum.occupancy) if optimum.choices is None else deterministic(mdp, optimum.choices)
    # On all states that any policy can reach, so that its values bound every policy.
    anywhere = np.flatnonzero(model.reach(mdp.start > 0, np.ones(mdp.n_choices, bool)))
    jobs: list[tuple[Floats, Floats, Ints | None]] = [
        (policy, row, None) for policy, row in zip(policies, x, strict=True)
    ]
    jobs.append((best, optimum.occupancy, anywhere))
    threads = 1 if mdp.n_states < THREADS_FROM else cores()
    found = side_by_side(lambda job: _proved(model, *job), jobs, threads)
    if not polytope.criterion.own_floors(mdp):  # otherwise a better policy may break them
        better, vectors = _improved(model, polytope, best, found[-1][0], anywhere, model.reward)
        if better is not best and vectors is not None:
            best, found[-1] = better, (vectors, prove_plan(model, better, vectors))
    *plans, best_plan = [vectors for vectors, _ in found]
    slopes = _slopes(model, objective, [plan for _, plan in found[:-1]])
    proved = ProvedSet(model, tuple(plan for _, plan in found[:-1]), found[-1][1], slopes)
    # With the gradients alone, uncertainty in places hardly ever visited would count as if they were visited all the time.
    ahead = objective.gradient(x) / model.unit if slopes is None else [high for _, high in slopes]
    values, own = _values_of_optimum(model, polytope, optimum, best_plan, anywhere)
    gap: Floats | None = np.zeros((len(x), mdp.n_states))
    multipliers = np.zeros((len(x), len(polytope.floors)))
    try:
        for i, costs in enumerate(ahead):
            tell(i)
            try:
                answer = polytope.best(costs * model.unit, Vertex(x[i], first_best(mdp, policies[i])))
            except SolverError:  # any values prove a bound, zeros a weak one
                continue
            gap[i] = np.nan if answer.dual is None else answer.dual / model.unit
            if answer.multipliers is not None:
                multipliers[i] = answer.multipliers
    except Halted:  # the plans are valid; only how good they are together stays unknown
        gap = None
    best_x = optimum.occupancy if best_plan is None else None
    way = None if shortest is None else _values_of_way(model, polytope, shortest.costs, anywhere)
    return SetProof(tuple(plans), best, best_plan, values, gap, own, multipliers, best_x, way), proved


def _values_of_optimum(
    model: ExactModel, polytope: Polytope, optimum: Answer, best_plan: PlanProof | None, anywhere: Ints
) -> tuple[Floats, Floats]:
    """(m, S) relative values that bound the reward of all plans, and the multipliers of the criterion's own floors."""
    mdp, own = model.mdp, polytope.criterion.own_floors(model.mdp)
    multipliers = np.zeros(len(own)) if optimum.multipliers is None else optimum.multipliers
    rough = np.zeros((1, mdp.n_states)) if optimum.dual is None else optimum.dual[None] / model.unit
    if not multipliers.any():
        return rough if best_plan is None else best_plan.h, multipliers
    costs = model.reward + sum(m * floor.weights(mdp) for m, floor in zip(multipliers, own, strict=True)) / model.unit
    exact = _values_of_best(model, polytope, costs, model.unit, anywhere)
    return rough if exact is None else exact, multipliers


def _values_of_best(model: ExactModel, polytope: Polytope, c: Floats, unit: float, states: Ints) -> Floats | None:
    """(m, S) values that bound what any plan has of (N,) c, which is given in a unit; None if they cannot be found, or
    Ctrl-C came first."""
    try:
        found = polytope.unlimited_best(c * unit)
    except (SolverError, Halted):
        return None
    rough = None if found.dual is None else found.dual[None] / unit
    if found.choices is None:
        return rough
    policy = deterministic(model.mdp, found.choices)
    vectors = prove(model, policy, polytope.vertex_of(found.choices).occupancy, c, states)
    _, vectors = _improved(model, polytope, policy, vectors, states, c)
    return rough if vectors is None else vectors.h


def _values_of_way(model: ExactModel, polytope: Polytope, costs: Floats, states: Ints) -> Floats:
    found = _values_of_best(model, polytope, costs, 1.0, states)
    return np.zeros((1, model.mdp.n_states)) if found is None else found


def _proved(model: ExactModel, policy: Floats, occupancy: Floats, states: Ints | None) -> _Proved:
    vectors = prove(model, policy, occupancy, states=states)
    return vectors, None if vectors is None else prove_plan(model, policy, vectors)


_Proved = tuple[PlanProof | None, ProvedPlan | None]


def _improved(
    model: ExactModel, polytope: Polytope, policy: Floats, vectors: PlanProof | None, states: Ints, c: Floats
) -> tuple[Floats, PlanProof | None]:
    """Policy iteration from a policy that is nearly the best for (N,) c, until its own values prove that it is the best.

    Oracles end when the optimum is known well enough to search with. In states that are hardly ever met, their policy may
    still take a choice that is worse by so little, which the certificate would have to count.
    """
    mdp = model.mdp
    rows = np.flatnonzero(np.isin(model.state, states))
    for _ in range(MOST_IMPROVEMENTS):
        if vectors is None:
            break
        surplus = np.full(mdp.n_choices, -np.inf)
        surplus[rows] = _middle(model.surplus(rows, c, vectors.h))
        own = first_best(mdp, policy)
        gain = float(np.median(surplus[own[states]]))
        if surplus.max() - gain <= NEARLY_BEST * abs(gain):
            break
        best = first_best(mdp, surplus)
        better = surplus[best] > surplus[own] + ROUNDING * (np.abs(c[best]) + np.abs(vectors.h).sum(axis=0))
        choices = np.where(better, best, own)
        vertex = polytope.vertex_of_one_class(choices) if better.any() else None
        if vertex is None:
            break
        again = deterministic(mdp, choices)
        proved = prove(model, again, vertex.occupancy, c, states)
        if proved is None:
            break
        policy, vectors = again, proved
    return policy, vectors


def _slopes(
    model: ExactModel, objective: SetObjective, found: Sequence[ProvedPlan | None]
) -> tuple[Interval, ...] | None:
    """For each plan, the ends (N,) of its gradient; None if they are not proved."""
    proved, form = [plan for plan in found if plan is not None], objective.mean_form
    if len(proved) < len(found) or form is None:
        return None
    return gradients(model, proved, form, objective.compared, SMOOTHING)


def prove(
    model: ExactModel, policy: Floats, occupancy: Floats, c: Floats | None = None, states: Ints | None = None
) -> PlanProof | None:
    """Vectors for an (N,) policy whose occupancy is about (N,) `occupancy`.

    Args:
        model: the model.
        policy: (N,).
        occupancy: (N,) where it spends its time, roughly; the reference is chosen by it.
        c: (N,) rewards, the model's own by default.
        states: those to cover, which the policy must not leave; by default those that it can reach.

    Returns:
        None if the chain is too large to factorise, or mixes too slowly for double precision.
    """
    if states is None:
        states = np.flatnonzero(model.reach(model.mdp.start > 0, policy > 0))
    found = _chain_of(model, policy, occupancy, states)
    if found is None:
        return None
    return PlanProof(found.values(model.reward if c is None else c), found.occupancy(), found.times(), found.reference)


def _chain_of(model: ExactModel, policy: Floats, occupancy: Floats, states: Ints) -> _Chain | None:
    if len(states) > EXACT_UP_TO:
        return None
    time = state_occupancy(model.mdp, occupancy)[states]
    try:
        found = _Chain(model, policy, states, int(states[np.argmax(time)]))
        busiest = int(np.argmax(found.visits))
        if not found.visits[found.at] >= WELL_CHOSEN * found.visits[busiest]:
            found = _Chain(model, policy, states, int(states[busiest]))
    except SolverError:
        return None
    return found if np.isfinite(found.visits).all() and np.isfinite(found.steps).all() else None


class _Chain:
    """The chain of a policy on the states that it can reach, cut at a reference state and factorised.

    Attributes:
        states: (R,) those that it can reach.
        reference: the state at which it is cut, `at` its position among them.
        rows: the choices that it takes there, `place` the position of their states and `share` the probability of each.
        steps: (R,) the expected time to the reference.
        around: (R,) expected visits between two visits to the reference.
        visits: (R,) the occupancy by state.
    """

    def __init__(self, model: ExactModel, policy: Floats, states: Ints, reference: int) -> None:
        n, discount = model.mdp.n_states, model.discount
        self.model, self.states, self.reference = model, states, reference
        self.at = int(np.searchsorted(states, reference))
        place = np.full(n, -1)
        place[states] = np.arange(len(states))
        taken = np.flatnonzero(policy)
        self._factors = _factors(model, policy, taken, states, self.at)
        self.rows = taken if len(states) == n else taken[place[model.state[taken]] >= 0]
        self.place = place[model.state[self.rows]]
        self.randomised = not np.array_equal(self.place, np.arange(len(states)))
        self.share = np.ones(len(self.rows))
        if self.randomised:
            self.share = policy[self.rows] / self._by_state(policy[self.rows])[self.place]
        self.steps = self._factors.solve(np.ones(len(states)))
        unit = np.zeros(len(states))
        unit[self.at] = 1.0
        self.around = self._factors.solve(unit, trans="T")
        self.visits = self.around / self.around.sum()
        if discount < 1:
            from_start = self._factors.solve((1 - discount) * model.mdp.start[states], trans="T")
            self.visits = from_start + (1 - from_start.sum()) / self.around.sum() * self.around

    def times(self) -> Floats:
        """(S,) the expected time to the reference; zero in states that are never met."""
        return self._everywhere(np.maximum(self.steps, 0.0))

    def values(self, c: Floats) -> Floats:
        """(2, S) relative values with which the policy's surpluses are all nearly the same."""
        h = before = np.zeros((2, self.model.mdp.n_states))
        last, earned = np.inf, self._mean(c[self.rows])
        for number in range(1 + REFINEMENTS):
            if number:
                earned = self._mean(_middle(self.model.surplus(self.rows, c, h)))
            spread, size = float(earned.max() - earned.min()), float(np.abs(earned).max())
            if not spread < last:
                return before
            if spread <= SETTLED * size:
                break
            change = self._factors.solve(earned - earned[self.at])
            change -= change[self.at] / self.steps[self.at] * self.steps
            change[self.at] = 0.0
            before, h = h, _pushed(h, self._everywhere(change))
            if number and spread * (spread / last) <= SURELY_SETTLED * size:
                break  # each solve reduces the spread by the same factor
            last = spread
        return h

    def occupancy(self) -> Floats:
        """(2, N) the occupancy by choice, divided by the sums of the rows of probabilities."""
        model = self.model
        weight = self.share / model.row_sums[self.rows]
        w = np.zeros((2, model.mdp.n_choices))
        w[0, self.rows] = self.visits[self.place] * weight
        for _ in range(1 if self.randomised else 2):
            flow, into, net = (_middle(part) for part in model.flows(self.rows, w))
            if model.discount < 1:
                net = net + (1 - model.discount) * (into - model.mdp.start / model.mdp.start.sum())
            wrong = self._factors.solve(net[self.states], trans="T")
            wrong += (float(flow.sum() - 1.0) - wrong.sum()) / self.around.sum() * self.around
            w[:, self.rows] = _pushed(w[:, self.rows], -wrong[self.place] * weight)
            if np.abs(wrong).sum() <= SURELY_RIGHT:
                break
        return w

    def _mean(self, v: Floats) -> Floats:
        """(rows,) -> (R,): the policy's mean."""
        return self._by_state(self.share * v) if self.randomised else v

    def _by_state(self, v: Floats) -> Floats:
        """(rows,) -> (R,): sums."""
        return np.bincount(self.place, v, minlength=len(self.states)).astype(np.float64)

    def _everywhere(self, v: Floats) -> Floats:
        """(R,) -> (S,), zero in other states."""
        found = np.zeros(self.model.mdp.n_states)
        found[self.states] = v
        return found


def _factors(model: ExactModel, policy: Floats, taken: Ints, states: Ints, at: int) -> SuperLU:
    """Of the chain of a policy, which takes some choices, on states that it does not leave, cut at one of them."""
    mdp, cut_at = model.mdp, np.array([at])
    if len(taken) == mdp.n_states:  # deterministic: its rows are rows of the model
        return factors_of(mdp.transitions, model.discount, cut_at, taken[states], states)
    return factors_of(chain(mdp, policy), model.discount, cut_at, states, states)


def _middle(v: Interval) -> Floats:
    return (v[0] + v[1]) / 2


def _pushed(parts: Floats, change: Floats) -> Floats:
    """Add a vector to a sum of two vectors."""
    a, b = parts[0], parts[1] + change
    high = a + b
    kept = high - a
    return np.stack([high, (a - (high - kept)) + (b - kept)])
