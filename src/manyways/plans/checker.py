"""Proved statements about plans of a model: no solver, only arithmetic whose errors are bounded.

Somebody else has found vectors (`plans.proofs`); nothing is assumed about them. Whatever they hold, what is stated here
is true of the exact model, in which every row of probabilities, every state's policy and the start are divided by their
exact sums. Bad vectors give wide intervals, or None ("not proved").

*Surplus.* For a function h of the states, the surplus of a choice is c + discount P h - h. It is computed with
error-free transformations (`kernels.exact`), so that huge terms cancel without harm.

*Optimum.* No policy earns more than the largest surplus of the choices that the start can reach, plus
(1 - discount) <start, h>: weak duality.

*Reward of a policy.* The policy's long-run reward is a mean of its surpluses over its recurrent class, so it lies between
the smallest and the largest of them. That there is one recurrent class is proved by y >= 0 with y_s - discount P y >= theta
> 0 in all states within reach but z, and y_z = 0: then y / theta bounds the expected time to z, and z is met for sure.

*Occupancy.* Let x be a flow with residual rho (flow out of each state minus flow in) and mass 1 + tau. It differs from
the policy's occupancy by at most E = 2 (sum |rho_s| y_s / theta + |tau|) + |tau| in the 1-norm; where the policy
randomises, errors of the shares are added.

*Divergence.* If p and q are within E_p and E_q of the true distributions, the computed Jensen-Shannon divergence is
within w(E_p) + w(E_q) of the true one, and rounding, with w(E) = E/2 (1 + ln(1 + 2/E)).

*Floors.* A floor is per_reward <reward, x> + <extra, x> >= level. The interval of the reward is known, and that of the
other sum follows from x and E.

*Frank-Wolfe gap.* The gradient lies between bounds that follow from x and E; the gap is at most the upper bound for its
upper end minus what the plan has at its lower end. Among plans that meet floors <w, x> >= level, no plan has more than
the upper bound for c + m w, minus m level, for any multipliers m >= 0.

An interval is a pair (low, high) of floats or arrays.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from manyways.kernels import exact
from manyways.model.mdp import MDP
from manyways.types import Bools, Floats, Ints

U = exact.U
ORDINARY = (1e-100, 1e100)
"""Largest rewards outside of this range are scaled: products of them with values could leave the range of doubles."""
LARGEST = 1e140
"""Numbers beyond this could overflow in products, so nothing is stated about them."""

Interval = tuple[Any, Any]
"""Lower and upper ends: floats, or arrays of one shape."""


def down(v: Floats | float) -> Floats:
    return np.nextafter(v, -np.inf)


def up(v: Floats | float) -> Floats:
    return np.nextafter(v, np.inf)


# ---- intervals ----------------------------------------------------------------------------------


def _plus(a: Interval, b: Interval) -> Interval:
    return down(a[0] + b[0]), up(a[1] + b[1])


def _minus(a: Interval) -> Interval:
    return -a[1], -a[0]


def _times(a: Interval, b: Interval) -> Interval:
    four = np.stack(np.broadcast_arrays(a[0] * b[0], a[0] * b[1], a[1] * b[0], a[1] * b[1]))
    return down(four.min(axis=0)), up(four.max(axis=0))


def _over(a: Interval, b: Interval) -> Interval:
    """a / b for b > 0."""
    low, high = np.minimum(a[0] / b[0], a[0] / b[1]), np.maximum(a[1] / b[0], a[1] / b[1])
    return down(low), up(high)


def _size(a: Interval) -> Floats:
    return np.maximum(np.abs(a[0]), np.abs(a[1]))


def _ends(total: Floats) -> Interval:
    """The intervals (n,) of n compensated sums (n, 4); `kernels.exact` has the formula."""
    low, high = np.empty(len(total)), np.empty(len(total))
    exact.ends(total, low, high)
    return low, high


def _sum(values: Floats) -> tuple[float, float]:
    """The interval of a sum of doubles."""
    return exact.whole_sum(np.ravel(values))


def _sums(values: Floats, group: Ints, n: int) -> Interval:
    """The sums (n,) of values (m,) by group (m,)."""
    total = np.zeros((n, 4))
    exact.sums(np.ascontiguousarray(values), group, total)
    return _ends(total)


class Bound(Protocol):
    """A floor: per_reward <reward, x> + <extra, x> >= level, in the model's own units."""

    @property
    def level(self) -> float: ...
    @property
    def per_reward(self) -> float: ...
    @property
    def extra(self) -> Floats | None: ...


# ---- the model ----------------------------------------------------------------------------------


def unit_for(largest: float) -> float:
    """The unit for rewards of which the largest has this size: 1 unless that is very large or very small."""
    return 1.0 if largest == 0 or ORDINARY[0] <= largest <= ORDINARY[1] else 2.0 ** math.floor(math.log2(largest))


class ExactModel:
    """A model under a discount, prepared for exact sums.

    Attributes:
        unit: rewards are divided by it, which is exact: a power of two, 1 unless rewards are very large or very small.
            All rewards, values and gaps below are in this unit.
        reward: (N,) in this unit.
    """

    def __init__(self, mdp: MDP, discount: float = 1.0) -> None:
        matrix = mdp.transitions
        self.mdp, self.discount = mdp, discount
        # Copies, because a read-only array is another type to numba, which would compile everything twice.
        self._csr = (np.array(matrix.indptr, np.int64), np.array(matrix.indices, np.int64), np.array(matrix.data))
        self.state = np.array(mdp.choice_state)
        self.first = np.array(mdp.first_choice)
        largest = float(np.abs(mdp.reward).max())
        self.unit = unit_for(largest)
        self.reward = mdp.reward / self.unit
        owner = np.repeat(np.arange(mdp.n_choices), np.diff(matrix.indptr))
        self._row_sums = _sums(self._csr[2], owner, mdp.n_choices)
        self.row_sums = (self._row_sums[0] + self._row_sums[1]) / 2
        self.start = _over((mdp.start, mdp.start), _sum(mdp.start))
        left = 1.0 - discount
        kept = left - 1.0
        self._left = np.array([left, (1.0 - (left - kept)) + (-discount - kept)])  # 1 - discount, exactly
        self.left = (down(left), up(left))

    @cached_property
    def within_reach(self) -> Ints:
        """The choices in states that the start can reach, whatever is chosen."""
        seen = self.reach(self.mdp.start > 0, np.ones(self.mdp.n_choices, bool))
        return np.flatnonzero(seen[self.state])

    def reach(self, seeds: Bools, choices: Bools) -> Bools:
        """(S,) the states that can be reached from `seeds` (S,) by the marked choices (N,)."""
        seen, queue, first = seeds.copy(), np.empty(self.mdp.n_states, np.int64), np.flatnonzero(seeds)
        queue[: len(first)] = first
        exact.reach(seen, queue, len(first), self.first, choices, *self._csr[:2])
        return seen

    def surplus(self, rows: Ints, c: Floats, h: Floats) -> Interval:
        """(rows,) c + discount P h - h of the given choices, for rewards c (N,) and h (m, S)."""
        return self._surplus(rows, c, h, self._left)

    def mean_ahead(self, rows: Ints, y: Floats) -> Floats:
        """(rows,) at least the mean of y (S,) over the next states of the given choices."""
        found = self._surplus(rows, np.zeros(self.mdp.n_choices), y[None], np.zeros(2))
        return up(found[1] + y[self.state[rows]])

    def _surplus(self, rows: Ints, c: Floats, h: Floats, left: Floats) -> Interval:
        low, high, terms = np.empty(len(rows)), np.empty(len(rows)), np.empty(1 + 6 * len(h))
        vectors = _writable(c), _writable(h), left, *self._row_sums
        exact.surpluses(rows, *self._csr, self.state, *vectors, terms, low, high)
        return low, high

    def flows(self, rows: Ints, w: Floats) -> tuple[Interval, Interval, Interval]:
        """The flow w (m, N) of the given choices: by choice, into each state (empty without a discount), and net out of
        each state."""
        n = self.mdp.n_states
        by_row, into, net = np.zeros((len(rows), 4)), np.zeros((n if self.discount < 1 else 0, 4)), np.zeros((n, 4))
        exact.flows(rows, *self._csr, self.state, _writable(w), by_row, into, net)
        return _ends(by_row), _ends(into), _ends(net)

    def shift(self, h: Floats) -> tuple[float, float]:
        """(1 - discount) <start, h>."""
        if self.discount == 1:
            return 0.0, 0.0
        parts = [_times(self.start, (part, part)) for part in h]
        low, high = _sum(np.stack([p[0] for p in parts]))[0], _sum(np.stack([p[1] for p in parts]))[1]
        found = _times(self.left, (np.float64(low), np.float64(high)))
        return float(found[0]), float(found[1])

    def upper_bound(
        self, c: Floats, h: Floats, floors: Sequence[Bound] = (), multipliers: Floats | Sequence[float] = ()
    ) -> float:
        """No policy that meets the floors earns more than this from the start, for rewards of at most c (N,)."""
        level = 0.0
        for floor, m in zip(floors, multipliers, strict=True):
            if not 0 <= m < LARGEST:
                return math.inf
            if m > 0:
                terms = [m * floor.per_reward * self.reward]
                if floor.extra is not None:
                    terms.append(m * (floor.extra / self.unit))
                size = np.abs(c) + sum(np.abs(term) for term in terms)
                c = up(c + sum(terms) + 8 * U * size)
                level = float(
                    down(level + down(m * (floor.level / self.unit) * (1 - math.copysign(4 * U, floor.level))))
                )
        return float(up(self._upper_bound(c, h) - level))

    def _upper_bound(self, c: Floats, h: Floats) -> float:
        if not _usable(c, h):
            return math.inf
        return float(up(self.surplus(self.within_reach, c, h)[1].max() + self.shift(h)[1]))


def _writable(v: Floats) -> Floats:
    """The same numbers; a read-only array is another type to numba, which would compile everything twice."""
    return v if v.flags.writeable and v.flags.c_contiguous else np.array(v, order="C")


def _usable(*vectors: Floats) -> bool:
    """Whether all numbers are finite and not too large; comparisons with NaN are false."""
    return all(bool((np.abs(v) < LARGEST).all()) for v in vectors)


# ---- plans --------------------------------------------------------------------------------------


EXACT_UP_TO = 50_000
"""Plans that reach more states may be checked in plain arithmetic; others need vectors that prove what they earn."""


@dataclass(frozen=True, eq=False)
class PlanProof:
    """The vectors from which statements about one plan are proved; sums of m vectors hold more digits than one.

    Attributes:
        h: (m, S) relative values of the policy.
        w: (m, N) its occupancy divided by the sums of the rows.
        y: (S,) bounds on the expected time to the reference, up to a factor.
        reference: a state that the policy keeps returning to.
    """

    h: Floats
    w: Floats
    y: Floats
    reference: int


@dataclass(frozen=True, eq=False)
class SetProof:
    """The vectors for all statements about a plan set.

    Attributes:
        plans: those of each plan; None for a plan about which nothing can be proved exactly.
        best: (N,) a policy with the highest reward.
        best_plan: the vectors for that policy; None if nothing can be proved exactly.
        best_x: (N,) the occupancy of that policy if there are no vectors for it.
        optimum: (m, S) relative values that bound the reward of every policy, with (f,) `optimum_multipliers` of the
            floors that belong to the criterion.
        gap: (k, S) relative values that bound what any policy has along the gradient by each plan, with (k, f)
            `gap_multipliers` of all floors; None if their computation was interrupted.
        way: (m, S) relative values that bound how short a way to the goal can be; None if that is not claimed.
    """

    plans: tuple[PlanProof | None, ...]
    best: Floats
    best_plan: PlanProof | None
    optimum: Floats
    gap: Floats | None
    optimum_multipliers: Floats = field(default_factory=lambda: np.empty(0))
    gap_multipliers: Floats = field(default_factory=lambda: np.empty((0, 0)))
    best_x: Floats | None = None
    way: Floats | None = None


@dataclass(frozen=True, eq=False)
class ProvedPlan:
    """What is proved about one plan.

    Attributes:
        reward: the interval in which its reward lies.
        x: (N,) its occupancy, nearly.
        error: a bound on the 1-norm of the difference between x and the occupancy.
        tight: the part of it that is not relative rounding of x.
        possible: (N,) the choices that it takes in the long run; the occupancy of all others is zero.
    """

    reward: tuple[float, float]
    x: Floats
    error: float
    tight: float
    possible: Bools


@np.errstate(over="ignore", invalid="ignore")  # a bound that overflows proves nothing
def prove_plan(model: ExactModel, policy: Floats, proof: PlanProof) -> ProvedPlan | None:
    """What the vectors of a proof say about an (N,) policy; None if they prove nothing."""
    mdp, z, n = model.mdp, proof.reference, model.mdp.n_states
    if not (_usable(policy, proof.h, proof.w, proof.y, model.reward) and 0 <= z < n):
        return None
    taken, y = policy > 0, np.array(proof.y)
    y[z] = 0.0
    if not ((policy >= 0).all() and np.logical_or.reduceat(taken, model.first[:-1]).all() and (y >= 0).all()):
        return None
    seen = model.reach(mdp.start > 0, taken)
    if not seen[z]:
        return None
    theta = _decrease(model, policy, y, np.flatnonzero(taken & seen[model.state] & (model.state != z)))
    if not theta > 0:
        return None
    # For the average, what z can reach is its recurrent class; with a discount, every state within reach counts.
    own = model.reach(np.arange(n) == z, taken) if model.discount == 1 else seen
    possible = taken & own[model.state]
    rows = np.flatnonzero(possible)
    earned = _by_state(model, rows, policy, model.surplus(rows, model.reward, proof.h))
    shift = model.shift(proof.h)
    reward = float(down(earned[0].min() + shift[0])), float(up(earned[1].max() + shift[1]))
    x, tight = _occupancy(model, policy, proof.w, y, theta, rows)
    if not math.isfinite(tight):
        return None
    return ProvedPlan(reward, x, float(up(tight + 8 * U * _sum(x)[1])), tight, possible)


@dataclass(frozen=True, eq=False)
class ProvedSet:
    """What is proved about each plan of a set, and about the best policy that is known; None where nothing is.

    Attributes:
        slopes: what `gradients` found for these plans, if that is known already.
    """

    model: ExactModel
    plans: tuple[ProvedPlan | None, ...]
    best: ProvedPlan | None
    slopes: tuple[Interval, ...] | None = None


def prove_plans(model: ExactModel, policies: Floats, proof: SetProof) -> ProvedSet:
    """What the vectors say about each of (k, N) policies and the best one."""
    rows = [*policies, proof.best]
    proofs = (*proof.plans, proof.best_plan)
    found = [None if p is None else prove_plan(model, row, p) for row, p in zip(rows, proofs, strict=True)]
    return ProvedSet(model, tuple(found[:-1]), found[-1])


def _decrease(model: ExactModel, policy: Floats, y: Floats, rows: Ints) -> float:
    """The smallest y_s - discount P y over the states of the rows; infinite if there are none."""
    if not len(rows):
        return math.inf
    fall = _minus(model.surplus(rows, np.zeros(model.mdp.n_choices), y[None]))
    return float(_by_state(model, rows, policy, fall)[0].min())


def _randomises(owner: Ints) -> bool:
    """Whether some state occurs twice among the states (rows,) of some choices, which are in order."""
    return bool((owner[1:] == owner[:-1]).any())


def _by_state(model: ExactModel, rows: Ints, policy: Floats, v: Interval) -> Interval:
    """The policy's mean of an interval (rows,) in each state that has some of the rows."""
    owner = model.state[rows]
    if not _randomises(owner):  # one choice in each state: its share is one, exactly
        return v
    states, place = np.unique(owner, return_inverse=True)
    weighted, n = _times((policy[rows], policy[rows]), v), len(states)
    return _over((_sums(weighted[0], place, n)[0], _sums(weighted[1], place, n)[1]), _sums(policy[rows], place, n))


def _occupancy(
    model: ExactModel, policy: Floats, w: Floats, y: Floats, theta: float, rows: Ints
) -> tuple[Floats, float]:
    """(N,) the occupancy in w, and how far it is from the policy's at most, relative rounding of it not counted."""
    n, owner = model.mdp.n_states, model.state[rows]
    flow, into, residual = model.flows(rows, w)
    if model.discount < 1:
        residual = _plus(residual, _times(model.left, _plus(into, _minus(model.start))))
    mass = _sum(flow[0])[0] - 1.0, _sum(flow[1])[1] - 1.0
    off = float(up(max(abs(mass[0]), abs(mass[1]))))
    lost, wrong = up(_size(residual) * up(y / theta)), 0.0
    if _randomises(owner):  # where the policy randomises, the shares must be the policy's as well
        by, total = (_sums(flow[0], owner, n)[0], _sums(flow[1], owner, n)[1]), _sums(policy[rows], owner, n)
        share = _over((policy[rows], policy[rows]), (total[0][owner], total[1][owner]))
        astray = _size(_plus(flow, _minus(_times((by[0][owner], by[1][owner]), share))))
        lost = np.append(lost, up(astray * up(model.mean_ahead(rows, y) / theta)))
        wrong = _sum(astray)[1]
    x = np.zeros(model.mdp.n_choices)
    x[rows] = np.maximum((flow[0] + flow[1]) / 2, 0.0)
    negative = _sum(np.maximum(-flow[0], 0.0))[1]
    return x, float((2 * (_sum(lost)[1] + off) + off + wrong + negative) * (1 + 16 * U) + exact.TINY)


# ---- sets ---------------------------------------------------------------------------------------


class MeanForm(Protocol):
    """The objective per_reward x mean reward + per_divergence x mean pairwise divergence."""

    @property
    def per_reward(self) -> float: ...
    @property
    def per_divergence(self) -> float: ...


class Compared(Protocol):
    """The linear map in whose images plans are compared; `most_terms` choices at most count in one place."""

    @property
    def most_terms(self) -> int: ...
    def forward(self, x: Floats) -> Floats: ...
    def backward(self, y: Floats) -> Floats: ...


def divergence(a: ProvedPlan, b: ProvedPlan, compared: Compared) -> tuple[float, float]:
    """The interval of the Jensen-Shannon divergence between the images of two plans."""
    p, q = compared.forward(a.x), compared.forward(b.x)
    shared, mass = exact.overlap(p, q)
    value = 0.5 * (shared + math.log(2) * mass)
    rounding = 2 * compared.most_terms * U  # of the images
    slack = 32 * U * (1 + a.error + b.error) + _wobble(a.error + rounding) + _wobble(b.error + rounding)
    return max(float(down(value - slack)), 0.0), min(float(up(value + slack)), float(up(math.log(2))))


def _wobble(error: float) -> float:
    """How much the divergence can change if a distribution changes by this much in the 1-norm."""
    return 0.5 * error * (1 + math.log1p(2 / error)) * (1 + 1e-14) if error > 0 else 0.0


def spare(model: ExactModel, plan: ProvedPlan, floor: Bound) -> tuple[float, float]:
    """The interval of what a plan has above a floor, per_reward <reward, x> + <extra, x> - level, in the model's units."""
    low, high = _times((floor.per_reward, floor.per_reward), _times(plan.reward, (model.unit, model.unit)))
    if floor.extra is not None:
        there = plan.possible
        terms = floor.extra[there] * plan.x[there]
        rounding = 2 * U * np.abs(terms)
        off = up(plan.error * float(np.abs(floor.extra[there]).max(initial=0.0)))
        low, high = low + _sum(terms - rounding)[0] - off, high + _sum(terms + rounding)[1] + off
    size = 4 * U * (abs(low) + abs(high) + abs(floor.level))
    return float(down(low - floor.level - size)), float(up(high - floor.level + size))


def gap_bound(
    model: ExactModel,
    plans: Sequence[ProvedPlan],
    form: MeanForm,
    compared: Compared,
    duals: Sequence[Floats],
    smoothing: float,
    floors: Sequence[Bound] = (),
    multipliers: Floats | None = None,
    slopes: Sequence[Interval] | None = None,
) -> float:
    """The Frank-Wolfe gap of the plans, for an objective of mean rewards and divergences, is at most this.

    duals[i] (m, S) are relative values for the upper end of the gradient by plan i, which is the smoothed gradient of the
    objective, and multipliers[i] (f,) those of the floors that plans must meet. `slopes` is what `gradients` finds.
    """
    bound = 0.0
    used = np.zeros((len(plans), len(floors))) if multipliers is None else multipliers
    slopes = gradients(model, plans, form, compared, smoothing) if slopes is None else slopes
    for plan, h, m, (low, high) in zip(plans, duals, used, slopes, strict=True):
        there = plan.possible
        earned = low[there] * plan.x[there]
        has = _sum(earned - 2 * U * np.abs(earned))[0] - plan.error * float(np.abs(low[there]).max())
        bound = float(up(bound + up(model.upper_bound(high, h, floors, m) - down(has))))
    return bound


def gradients(
    model: ExactModel,
    plans: Sequence[ProvedPlan],
    form: MeanForm,
    compared: Compared,
    smoothing: float,
) -> tuple[Interval, ...]:
    """For each plan, (N,) the lower and upper ends of the gradient of an objective of mean rewards and divergences."""
    k, terms = len(plans), compared.most_terms
    rounding = (8 + terms) * U
    images = [compared.forward(plan.x) for plan in plans]
    low, high = np.empty((2, k, len(images[0])))
    for row, (p, plan) in enumerate(zip(images, plans, strict=True)):
        low[row] = np.maximum(p * (1 - rounding) - plan.tight, 0.0)
        met = compared.forward(plan.possible.astype(float)) > 0
        high[row] = np.where(met, p * (1 + rounding) + plan.tight, 0.0)
    pull = form.per_divergence / model.unit / (k * (k - 1)) if k > 1 else 0.0
    earned, earned_size = form.per_reward / k * model.reward, form.per_reward * np.abs(model.reward)

    def end(i: int, sign: int) -> Floats:
        own, others = (high[i], low) if sign > 0 else (low[i], high)
        total = np.zeros_like(images[i])
        exact.slopes(own, others, i, sign, smoothing, total)
        size = earned_size + pull * compared.backward(np.abs(total))
        return earned + pull * compared.backward(total) + sign * (8 * k + terms) * U * size

    return tuple((end(i, -1), end(i, 1)) for i in range(k))
