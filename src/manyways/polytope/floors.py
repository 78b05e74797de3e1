"""Floors: lower bounds that every plan must meet, and the oracle that respects them.

A floor is linear in the occupancy, <w, x> >= level, so the plans that meet it are a slice of the feasible set. The best
point of the slice for costs c follows from plain solves by duality: for multipliers m >= 0,

    max { <c, x> : x feasible, <w, x> >= level }  <=  max { <c + m w, x> : x feasible } - m level

with equality at the best m. For one floor m is found on the upper hull of the points (<w, x>, <c, x>) of all plans: the
chord between a plan that meets the floor and a plan that does not gives m, a solve for c + m w gives the next plan, and
the chord that no solve can raise any more is the answer. This takes one solve where the floor does not bind, otherwise
about five. For several floors the multipliers come from a small linear program over the plans found so far (column
generation).

*The first multiplier.* If only diversity counts, the best plans without a floor often stay in one place or mix very slowly,
and finding them takes long. The search therefore starts from the last multiplier of the same plan or an estimate, not from 0
(`_balanced`). That changes no answer, but only the number and kind of solves.

*Deterministic plans.* At the end of the search both ends of the chord are optimal for c + m w, and so is every policy that
takes only choices with the largest surplus (`Answer.dual`). Going from one end to the other an action at a time, all
policies on the way have the same <c + m w, x>, so the last one that meets the floor is nearly the best point of the
slice. The best point itself mixes that policy with the next one, which differs from it in one state: it randomises there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Protocol

import numpy as np
from scipy.optimize import linprog

from manyways.errors import SettingError
from manyways.model.mdp import MDP
from manyways.model.occupancy import state_occupancy
from manyways.polytope.oracle import Oracle
from manyways.polytope.vertex import Answer, Vertex
from manyways.types import Bools, Floats, Ints

MOST_SOLVES = 60
RISE = 1e-8
"""A chord that a solve raises by less than this, relative to the size of its terms, counts as final. Plain solves themselves
are only proved to about a tenth of it."""
BALANCE, STEP, STEPS = 16.0, 4.0, 5
"""A search starts at this many times the multiplier that balances costs and floor along a plan, rather too high than too
low: solves for low multipliers take up to a hundred times as long. Until it has found a plan on either side of the floor, it
multiplies or divides by at most STEP; after STEPS solves it goes where the chord leads."""
TIGHT = 1e-8
"""Choices whose surplus is below the largest by less than this, relative to the costs, count as optimal."""
NUDGE = 1e-9
MET = 1e-12
"""A floor counts as met if it is missed by less than this, relative to the size of its terms: by rounding."""


@dataclass(frozen=True, eq=False)
class Floor:
    """Every plan x has per_reward <reward, x> + <extra, x> >= level.

    The reward is kept apart because it may contain huge penalties, while `extra` is of moderate size: the certificate
    proves the reward of a plan much better than a sum over its occupancy.

    Attributes:
        name: what it bounds, for messages and the certificate.
        level: the bound.
        per_reward: the weight of the reward.
        extra: (N,) further weights.
    """

    name: str
    level: float
    per_reward: float = 0.0
    extra: Floats | None = None

    def weights(self, mdp: MDP) -> Floats:
        """(N,) the weights of all choices."""
        own = self.per_reward * mdp.reward
        return own if self.extra is None else own + self.extra

    def shortfall(self, mdp: MDP, x: Floats) -> float:
        """By how much x (N,) misses the floor, relative to the size of its terms; at most 0 if it meets it."""
        weights = self.weights(mdp)
        size = abs(self.level) + float(np.abs(weights) @ x)
        return (self.level - float(weights @ x)) / size if size > 0 else 0.0


@dataclass(frozen=True, eq=False)
class _Found:
    """Where a search for multipliers ended, and from where the next one starts.

    Attributes:
        inside: the best plan found that meets the floors.
        beyond: plans that do not meet them.
        last: where the plain oracle starts.
        multiplier: of the one floor that was searched; 0 if it is not known.
    """

    inside: Vertex
    beyond: tuple[Vertex, ...]
    last: Vertex | None
    multiplier: float = 0.0


@dataclass(frozen=True, eq=False)
class _Point:
    """A plan x with its worth <c, x> and its height <w, x>."""

    plan: Vertex
    worth: float
    height: float


class Slices(Protocol):
    """What is needed of a feasible set to find a plan that meets floors."""

    mdp: MDP

    def best(self, c: Floats, warm: Vertex | None = None) -> Answer: ...
    def within(self, floors: Sequence[Floor], feasible: Vertex, *, randomised: bool = False) -> Slices: ...


class Floored:
    """An oracle around another one: the best plan that meets all floors.

    Args:
        oracle: the plain one.
        mdp, discount: the model, with the reward that floors speak of, and 1 for the average.
        floors: at least one.
        feasible: a plan that meets them.
        evaluate: the vertex of a policy with one choice per state; None if it has several recurrent classes.
        randomised: whether answers may randomise where that is better.
    """

    def __init__(
        self,
        oracle: Oracle,
        mdp: MDP,
        discount: float,
        floors: Sequence[Floor],
        feasible: Vertex,
        evaluate: Callable[[Ints], Vertex | None],
        *,
        randomised: bool = False,
    ) -> None:
        self._oracle, self._mdp, self._discount = oracle, mdp, discount
        self._evaluate, self._randomised = evaluate, randomised
        self._weights = np.stack([floor.weights(mdp) for floor in floors])
        self._levels = np.array([floor.level for floor in floors])
        self._sizes = np.abs(self._weights)
        self._feasible = feasible

    def meets(self, x: Floats) -> bool:
        """Whether x (N,) meets all floors, up to rounding."""
        return not self._missed(x)

    def best(self, c: Floats, warm: Vertex | None = None) -> Answer:
        """The best plan for an (N,) c; its bound, dual and multipliers hold for all plans that meet the floors."""
        known = warm.memory if isinstance(warm, Answer) and isinstance(warm.memory, _Found) else None
        if known is None:
            inside = self._feasible if warm is None or not self.meets(warm.occupancy) else warm
            known = _Found(inside, (), warm)
        multipliers, answer, found = self._search(c, known)
        bound = answer.bound - float(multipliers @ self._levels)
        chosen = found.inside
        if found.beyond and multipliers.any():
            several = self._randomised and len(self._levels) > 1
            costs = c + multipliers @ self._weights
            chosen = self._mixture(c, answer, found) if several else self._between(costs, answer, c, found)
        return Answer(
            chosen.occupancy,
            chosen.choices,
            value=float(c @ chosen.occupancy),
            bound=bound,
            dual=answer.dual,
            memory=found,
            multipliers=multipliers,
        )

    # ---- one floor ----------------------------------------------------------------------------

    def _along_chord(self, c: Floats, known: _Found, which: int) -> tuple[float, Answer, _Found]:
        """The best plan that meets one of the floors, as far as plans that meet all of them show."""
        w, level, size_of_costs = self._weights[which], float(self._levels[which]), np.abs(c)

        def at(plan: Vertex) -> _Point:
            return _Point(plan, float(c @ plan.occupancy), float(w @ plan.occupancy))

        inside, beyond = at(known.inside), at(known.beyond[0]) if known.beyond else None
        last, sides = known.last, set[bool]()
        slope, reached = _chord(level, inside, beyond)
        # The plans of the last search tell more about the multiplier than the costs do.
        multiplier = slope if slope > 0 else max(known.multiplier, BALANCE * _balanced(c, w, inside.plan))
        for number in count(1):
            last = self._oracle.best(c + multiplier * w if multiplier > 0 else c, last)
            missed = self._missed(last.occupancy)
            meets, elsewhere = not missed, missed not in ([], [which])
            if meets and multiplier == 0:
                return 0.0, last, _Found(last, (), last)
            sides.add(meets)
            ends = (at(last), beyond) if meets else (inside, at(last))
            raised = _chord(level, *ends)
            if raised[1] >= reached or elsewhere:
                (inside, beyond), (slope, reached) = ends, raised
            above, final = last.value - multiplier * level - reached, number == MOST_SOLVES
            if above > 0 and not final:
                x = inside.plan.occupancy
                final = above <= RISE * (
                    float(size_of_costs @ x) + multiplier * (abs(level) + float(self._sizes[which] @ x))
                )
            if final or above <= 0 or elsewhere:
                return multiplier, last, _Found(inside.plan, () if beyond is None else (beyond.plan,), last, multiplier)
            if len(sides) == 2 or multiplier == 0 or number >= STEPS:
                multiplier = slope
            else:  # one end of the chord is from an earlier search, for other costs, and may be far below the hull
                multiplier = max(slope, multiplier / STEP) if meets else min(slope, multiplier * STEP)
        raise AssertionError  # the loop has no other end

    def _missed(self, x: Floats) -> list[int]:
        """The floors that x (N,) does not meet."""
        allowed = MET * (np.abs(self._levels) + self._sizes @ x)
        return np.flatnonzero(self._weights @ x < self._levels - allowed).tolist()

    # ---- all floors ---------------------------------------------------------------------------

    def _search(self, c: Floats, known: _Found) -> tuple[Floats, Answer, _Found]:
        """The multipliers, the last plain answer, and the plans found."""
        multipliers = np.zeros(len(self._levels))
        missed = self._missed(known.beyond[0].occupancy) if known.beyond else []
        which = missed[0] if missed else 0
        multipliers[which], last, found = self._along_chord(c, known, which)
        if not found.beyond or len(self._levels) == 1:
            return multipliers, last, found
        missed = self._missed(found.beyond[0].occupancy)
        if missed != [which] and len(missed) == 1:
            multipliers[which] = 0.0
            which = missed[0]
            multipliers[which], last, found = self._along_chord(c, replace(found, last=last, multiplier=0.0), which)
            missed = self._missed(found.beyond[0].occupancy) if found.beyond else [which]
        return (multipliers, last, found) if missed == [which] else self._by_columns(c, found, last)

    def _by_columns(self, c: Floats, known: _Found, last: Answer) -> tuple[Floats, Answer, _Found]:
        """Several floors bind at once: column generation."""
        columns: list[Vertex] = [self._feasible, known.inside, last, *known.beyond]
        for number in count(1):
            multipliers, reached, shares = self._master(c, columns)
            last = self._oracle.best(c + multipliers @ self._weights, last)
            size = abs(reached) + float(np.abs(c) @ last.occupancy)
            if last.value - float(multipliers @ self._levels) <= reached + RISE * size or number == MOST_SOLVES:
                inside = max((v for v in columns if self.meets(v.occupancy)), key=lambda v: float(c @ v.occupancy))
                used = [
                    v for v, share in zip(columns, shares, strict=True) if share > 0 and not self.meets(v.occupancy)
                ]
                return multipliers, last, _Found(inside, tuple(used), last)
            columns.append(last)
        raise AssertionError  # the loop has no other end

    def _master(self, c: Floats, columns: Sequence[Vertex]) -> tuple[Floats, float, Floats]:
        """The best mixture of some plans that meets the floors: multipliers, value, and the share of each plan."""
        x = np.stack([v.occupancy for v in columns])
        worth, heights = x @ c, x @ self._weights.T
        scale = np.maximum(np.abs(heights).max(axis=0), 1e-300)
        worth_scale = max(float(np.abs(worth).max()), 1e-300)
        rows = -(heights - self._levels).T / scale[:, None]
        found = linprog(-worth / worth_scale, rows, np.full(len(scale), 1e-12), np.ones((1, len(columns))), [1.0])
        if found.x is None:  # the first column is feasible, so this is rounding
            return np.zeros(len(scale)), float(worth[0]), np.eye(len(columns))[0]
        multipliers = np.maximum(-found.ineqlin.marginals, 0.0) * worth_scale / scale
        return multipliers, float(found.x @ worth), found.x

    # ---- between two plans --------------------------------------------------------------------

    def _between(self, costs: Floats, answer: Answer, c: Floats, found: _Found) -> Vertex:
        """The best plan on the way from a plan that meets the floors to one that does not; both are optimal for `costs`."""
        inside, beyond = found.inside, found.beyond[0]
        unknown = self._mixed(inside, beyond) if self._randomised and len(self._levels) == 1 else inside
        if answer.dual is None or answer.choices is None or inside.choices is None or beyond.choices is None:
            return unknown
        tight, best = self._tight(costs, answer.dual), answer.choices
        near, far = (np.where(tight[own], own, best) for own in (inside.choices, beyond.choices))
        path = np.flatnonzero(near != far)
        good, bad = inside, beyond
        low, high = 0, len(path)
        while high - low > 1:
            middle = (low + high) // 2
            vertex = self._on_the_way(near, far, path[:middle])
            if vertex is not None and self.meets(vertex.occupancy):
                low, good = middle, vertex
            else:  # None: it has several recurrent classes
                high, bad = middle, bad if vertex is None else vertex
        if self._randomised and len(self._levels) == 1:
            # Only policies of the path differ in one state; its ends may differ from the plans in states hardly ever met.
            first = self._on_the_way(near, far, path[:0]) if low == 0 else None
            last = self._on_the_way(near, far, path) if high == len(path) else None
            if first is not None and self.meets(first.occupancy):
                good = first
            return self._mixed(good, bad if last is None or self.meets(last.occupancy) else last)
        return max((inside, good), key=lambda v: float(c @ v.occupancy))

    def _on_the_way(self, near: Ints, far: Ints, changed: Ints) -> Vertex | None:
        """The vertex of the policy `near` (S,) with the choices of `far` in some states."""
        choices = near.copy()
        choices[changed] = far[changed]
        return self._evaluate(choices)

    def _tight(self, costs: Floats, h: Floats) -> Bools:
        """(N,) the choices that an optimal plan for `costs` may take; (S,) h are the relative values that prove it."""
        mdp = self._mdp
        ahead = mdp.transitions @ h
        surplus = costs + self._discount * ahead - h[mdp.choice_state]
        size = np.abs(costs) + np.abs(ahead) + np.abs(h)[mdp.choice_state]
        return surplus >= surplus.max() - TIGHT * size

    def _mixture(self, c: Floats, answer: Answer, found: _Found) -> Vertex:
        """The best mixture of the plans found that meets all floors; with several floors that bind it mixes several plans."""
        columns = [self._feasible, found.inside, *found.beyond, answer]
        _, reached, shares = self._master(c, columns)
        used = [v for v, share in zip(columns, shares, strict=True) if share > 0]
        together = all(self._share_a_state(used[0], other) for other in used[1:])
        if not together or reached <= c @ found.inside.occupancy:
            return found.inside
        x = shares @ np.stack([v.occupancy for v in columns])
        if not self.meets(x):  # by rounding
            x = (1 - NUDGE) * x + NUDGE * self._feasible.occupancy
        return Vertex(x) if self.meets(x) else found.inside

    def _mixed(self, good: Vertex, bad: Vertex) -> Vertex:
        """The mixture of two plans that just meets the floor; `good` alone if no policy has that mixture."""
        above, below = (float(self._weights[0] @ v.occupancy - self._levels[0]) for v in (good, bad))
        share = above / (above - below) if above > 0 > below else 0.0
        if share == 0 or not self._share_a_state(good, bad):
            return good
        return Vertex((1 - share) * good.occupancy + share * bad.occupancy)

    def _share_a_state(self, a: Vertex, b: Vertex) -> bool:
        """Whether some policy has a mixture of the plans: in the long run, plans without a common state exclude each other."""
        if self._discount < 1:
            return True
        return bool(np.logical_and(*(state_occupancy(self._mdp, v.occupancy) > 0 for v in (a, b))).any())


def _chord(level: float, inside: _Point, beyond: _Point | None) -> tuple[float, float]:
    """The multiplier for which two plans are worth the same, and what their mixture at the level is worth.

    Zero, and the worth of the plan inside, if the one beyond the floor is not worth more.
    """
    if beyond is None:
        return 0.0, inside.worth
    gain, fall = beyond.worth - inside.worth, inside.height - beyond.height
    slope = gain / fall if gain > 0 and fall > 0 else 0.0
    return slope, inside.worth + slope * max(inside.height - level, 0.0)  # below 0 only by rounding


def _balanced(c: Floats, w: Floats, plan: Vertex) -> float:
    """A multiplier m of the right order: along a plan, c + m w varies as much with w as with everything else in c.

    With c = a w + d, where d does not vary with w along the plan, that is |d| / |w| - a, in standard deviations. It is 0
    where c itself varies enough with w, as the preferences of most persons do with the reward.
    """
    x = plan.occupancy
    of_floor, of_costs = w - w @ x, c - c @ x
    varies = float(x @ of_floor**2)
    if varies <= 0:
        return 0.0
    own = float(x @ (of_floor * of_costs)) / varies
    return max(float(np.sqrt(x @ (of_costs - own * of_floor) ** 2 / varies)) - own, 0.0)


def feasible_plan(polytope: Slices, floors: Sequence[Floor], known: Sequence[Vertex]) -> Vertex:
    """A plan that meets all floors: one of the known ones, or one that is searched for, a floor at a time.

    Raises:
        SettingError: if none is found.
    """
    mdp, plan = polytope.mdp, known[0]
    for number, floor in enumerate(floors):
        met = floors[: number + 1]
        good = [v for v in (plan, *known) if all(f.shortfall(mdp, v.occupancy) <= MET for f in met)]
        if good:
            plan = good[0]
            continue
        slice_ = polytope.within(floors[:number], plan, randomised=True) if number else polytope
        plan = slice_.best(floor.weights(mdp))
        if floor.shortfall(mdp, plan.occupancy) > MET:
            names = " and ".join(f.name for f in met)
            raise SettingError(f"no plan of {mdp.name} keeps all limits at once ({names}): allow more slack")
    return plan
