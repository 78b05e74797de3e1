"""The expected best of the set for a person whose preference nobody wrote down.

    f(rho_1..k) = 1/M sum_m max_i <r + w_m, rho_i>

with M draws w_m of what the person may prefer (`manyways.preferences`): the value that a person gets who picks the plan that
serves their own preference best. The set that is best to choose from in this sense is also the best question to ask, up to
noise in the answer (Viappiani and Boutilier, Optimal Bayesian recommendation sets and myopically optimal choice query sets,
NIPS 2010).

f is convex, so deterministic plans suffice. Maximising it is like k-means with a linear oracle in place of the mean: each
draw belongs to the plan that serves it best, and each plan becomes the best for the mean of its draws. That is what the
gradient says: plan i has the costs 1/M sum over its draws of (r + w_m). A step along it never lowers f.

*Start.* The best plans for 8 k of the draws are a pool; the best set of k of them is a far better start than random
policies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from manyways.behaviours import LinearMap
from manyways.errors import check_integer, check_number
from manyways.model.mdp import MDP
from manyways.objectives.base import OBJECTIVES, SMOOTHING, Candidates, Objective, Offer, SetObjective, WorkingSet
from manyways.preferences import PREFERENCES, Draws, PreferencePrior, Preferences
from manyways.types import Floats, Ints

POOL = 8
"""Best plans for so many draws per plan are candidates to start from."""
POOL_NUMBERS = 2**25
"""Fewer in large models: together they have at most this many numbers, 256 MiB."""
UNIT = 4.0
"""A typical reward per step, in units of the default tradeoff: half of the spread of the rewards along the best plan. Where
all reward is earned at a goal, that is about what the best plan earns per step."""


@OBJECTIVES.add
@dataclass(frozen=True)
class Representative(Objective):
    """The expected value of the best plan of the set, over what a person may prefer.

    Attributes:
        preferences: the prior over rewards that nobody wrote down.
        draws: how many draws of it are used.
        seed: of the draws.
        unit: a typical reward per step, in which strengths of preferences are given. By default `plan` derives it from the
            model.
    """

    preferences: PreferencePrior = field(default_factory=Preferences)
    draws: int = 400
    seed: int = 0
    unit: float | None = None

    def __post_init__(self) -> None:
        PREFERENCES.check(self.preferences)
        check_integer("draws", self.draws, 1)
        check_integer("seed", self.seed, 0)
        if self.unit is not None:
            object.__setattr__(self, "unit", check_number("the unit", self.unit, 0))

    def settled(self, scale: float) -> Representative:
        return replace(self, unit=UNIT * scale) if self.unit is None else self

    def on(self, mdp: MDP, compared: LinearMap) -> RepresentativeOnModel:
        unit = 1.0 if self.unit is None else self.unit
        draws = self.preferences.on(mdp, unit).draw(self.draws, np.random.default_rng(self.seed))
        return RepresentativeOnModel(mdp, compared, draws, unit)

    def describe(self) -> str:
        return f"expected best of the set for {self.preferences.describe()}"


@dataclass(frozen=True, eq=False)
class RepresentativeOnModel(SetObjective):
    """Value, gradient and candidates over stacked (k, N) occupancies.

    Attributes:
        draws: the M preferences.
        unit: about how large they are.
    """

    draws: Draws
    unit: float

    def worths(self, x: Floats) -> Floats:
        """(..., N) -> (..., M): what each plan is worth to each person."""
        return (x @ self.mdp.reward)[..., None] + self.draws.values(x)

    def value(self, x: Floats) -> float:
        return float(self.worths(x).max(axis=0).mean())

    def gradient(self, x: Floats, smoothing: float = SMOOTHING) -> Floats:
        del smoothing
        worths = self.worths(x)
        return np.stack([self.costs_of(worths.argmax(axis=0) == i) for i in range(len(x))])

    def size(self, optimal_reward: float) -> float:
        return abs(optimal_reward) + self.unit

    def costs_of(self, own: Floats | np.ndarray) -> Floats:
        """(M,) which draws are a plan's own -> (N,) its part of the gradient."""
        weights = own / len(self.draws)
        return weights.sum() * self.mdp.reward + self.draws.reward(weights)

    def costs(self, rows: Sequence[Floats], i: int, least: float) -> Floats:
        del least
        return self.costs_at(self.worths(np.stack(rows)), i)

    def costs_at(self, worths: Floats, i: int) -> Floats:
        """(k, M) worths -> (N,) costs. A plan that serves nobody best gets half of the largest group of persons."""
        best = worths.argmax(axis=0)
        own = best == i
        if not own.any():
            own[np.flatnonzero(best == np.bincount(best).argmax())[::2]] = True  # draws come in pairs of opposites
        return self.costs_of(own)

    def contribution(self, rows: Sequence[Floats], i: int, row: Floats) -> float:
        others = [other for j, other in enumerate(rows) if j != i]
        return float(self.worths(np.stack([*others, row])).max(axis=0).mean())

    def pool(self, k: int) -> Sequence[Callable[[], Floats]]:
        most = int(np.clip(POOL_NUMBERS // self.mdp.n_choices, k, POOL * k))
        return [partial(self.costs_of_one, number) for number in range(min(most, len(self.draws)))]

    def costs_of_one(self, number: int) -> Floats:
        """(N,) what each choice is worth to one person."""
        return self.mdp.reward + self.draws.reward(np.eye(1, len(self.draws), number)[0])

    def working_set(self, rows: Sequence[Floats]) -> WorkingSet:
        return RepresentativeSet(self, rows)

    def candidates(self, rows: Floats) -> Candidates:
        return RepresentativeCandidates(self, rows)


class RepresentativeSet(WorkingSet):
    """Keeps what each plan is worth to each person, (k, M)."""

    objective: RepresentativeOnModel

    def __init__(self, objective: RepresentativeOnModel, rows: Sequence[Floats]) -> None:
        self.objective, self.rows = objective, list(rows)
        self._worths = objective.worths(np.stack(self.rows))
        self.value = float(self._worths.max(axis=0).mean())

    def costs(self, i: int, least: float) -> Floats:
        del least
        return self.objective.costs_at(self._worths, i)

    def offer(self, i: int, row: Floats) -> Offer:
        worths = self._worths.copy()
        worths[i] = self.objective.worths(row)
        return Offer(i, row, self.value, float(worths.max(axis=0).mean()), worths)

    def accept(self, offer: Offer) -> None:
        self.rows[offer.i], self._worths, self.value = offer.row, offer.details, offer.after


class RepresentativeCandidates(Candidates):
    """Keeps what each candidate is worth to each person, (C, M)."""

    objective: RepresentativeOnModel

    def __init__(self, objective: RepresentativeOnModel, rows: Floats) -> None:
        super().__init__(objective, rows)
        self._worths = objective.worths(rows)

    def contributions(self, members: Ints, i: int) -> Floats:
        others = np.delete(members, i)
        if not len(others):
            return self._worths.mean(axis=1)
        return np.maximum(self._worths, self._worths[others].max(axis=0)).mean(axis=1)
