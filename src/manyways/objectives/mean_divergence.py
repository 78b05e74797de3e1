"""The paper's objective, eq. (main): mean reward plus tradeoff times the mean pairwise divergence.

    f(rho_1..k) = 1/k sum_i <rho_i, r> + tradeoff * 2 / (k (k - 1)) sum_{i<j} JSD(B rho_i || B rho_j)

with B the linear map of the behaviour. For k = 1 there is no pair, and f is the reward alone: plain planning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from manyways.behaviours import LinearMap
from manyways.errors import check_number
from manyways.model.mdp import MDP
from manyways.objectives.base import OBJECTIVES, SMOOTHING, ExchangeForm, Objective, Offer, SetObjective, WorkingSet
from manyways.objectives.divergence import divergences_from, gradient_of_sum, secant_worths
from manyways.types import Floats


@OBJECTIVES.add
@dataclass(frozen=True)
class MeanDivergence(Objective):
    """Mean reward + tradeoff x mean pairwise Jensen-Shannon divergence.

    Attributes:
        tradeoff: how much a nat of divergence is worth in reward per step. By default as much as the optimal reward
            (its absolute value; 1 if that is zero).
    """

    tradeoff: float | None = None

    def __post_init__(self) -> None:
        if self.tradeoff is not None:
            object.__setattr__(self, "tradeoff", check_number("the tradeoff", self.tradeoff, 0))

    def settled(self, optimal_reward: float) -> MeanDivergence:
        return replace(self, tradeoff=abs(optimal_reward) or 1.0) if self.tradeoff is None else self

    def on(self, mdp: MDP, compared: LinearMap) -> MeanDivergenceOnModel:
        return MeanDivergenceOnModel(mdp, compared, 1.0 if self.tradeoff is None else self.tradeoff)

    def describe(self) -> str:
        worth = "the optimal reward" if self.tradeoff is None else f"{self.tradeoff:g}"
        return f"mean reward + {worth} × mean pairwise divergence"


@dataclass(frozen=True, eq=False)
class MeanDivergenceOnModel(SetObjective):
    """Value, gradient and secant costs of f over stacked (k, N) occupancies."""

    tradeoff: float

    def value(self, x: Floats) -> float:
        return self.combined(x @ self.mdp.reward, self.distances(x))

    def combined(self, rewards: Floats, distances: Floats) -> float:
        """f from the rewards (k,) and the pairwise distances (k, k)."""
        k = len(rewards)
        spread = float(distances.sum()) / (k * (k - 1)) if k > 1 else 0.0
        return float(rewards.mean()) + self.tradeoff * spread

    def gradient(self, x: Floats, smoothing: float = SMOOTHING) -> Floats:
        k, images = len(x), self.compared.forward(x)
        if k == 1:
            return self._in_choices(np.zeros_like(images), k)
        pulls = np.stack([gradient_of_sum(images, i, smoothing) / (k * (k - 1)) for i in range(k)])
        return self._in_choices(pulls, k)

    @property
    def diversity_weight(self) -> float:
        return self.tradeoff

    def with_diversity_weight(self, weight: float) -> MeanDivergenceOnModel:
        return replace(self, tradeoff=weight)

    def costs(self, rows: Sequence[Floats], i: int, least: float) -> Floats:
        """(N,) secant costs: the worth of each choice to plan i per unit of time, if all the time that the plan has in
        that choice's state (or `least`, if that is more) were spent on it. See `secant_worths`."""
        k = len(rows)
        if k == 1:
            return self.mdp.reward.copy()
        others = [self.compared.forward(row) for j, row in enumerate(rows) if j != i]
        if self.compared.identity:
            mass = np.add.reduceat(rows[i], self.mdp.first_choice[:-1])[self.mdp.choice_state]
        else:
            mass = self.compared.forward(rows[i])
        worths = secant_worths(np.maximum(mass, least), others)
        return self._in_choices(2 / (k * (k - 1)) * worths, k)

    def contribution(self, rows: Sequence[Floats], i: int, row: Floats) -> float:
        return self.part_of_one(len(rows), float(row @ self.mdp.reward), self.distances_from(rows, i, row))

    def part_of_one(self, k: int, reward: float, distances: Floats) -> float:
        """The contribution of one of k plans, from its reward and its distances to the others."""
        return reward / k + self._pair_weight(k) * float(distances.sum())

    def distances_from(self, rows: Sequence[Floats], i: int, row: Floats) -> Floats:
        """(k - 1,) the divergences of `row` (N,), as plan i, from the other plans."""
        others = [self.compared.forward(other) for j, other in enumerate(rows) if j != i]
        return divergences_from(self.compared.forward(row), others)

    def working_set(self, rows: Sequence[Floats]) -> WorkingSet:
        return _PairwiseSet(self, rows)

    @property
    def tradeoff_of_mean(self) -> float:
        return self.tradeoff

    def exchange_form(self, k: int) -> ExchangeForm | None:
        groups = self.compared.groups
        return None if k == 1 or groups is None else ExchangeForm(groups, 1 / k, self._pair_weight(k))

    def _pair_weight(self, k: int) -> float:
        """The weight of each of the k (k - 1) / 2 divergences in f."""
        return 2 * self.tradeoff / (k * (k - 1)) if k > 1 else 0.0

    def _in_choices(self, worths: Floats, k: int) -> Floats:
        """(..., B) worths in diversity -> (..., N) worths in f."""
        return self.mdp.reward / k + self.tradeoff * self.compared.backward(worths)


class _PairwiseSet(WorkingSet):
    """Keeps rewards and distances, so that an offer costs k - 1 divergences and accepting it next to nothing."""

    objective: MeanDivergenceOnModel

    def __init__(self, objective: MeanDivergenceOnModel, rows: Sequence[Floats]) -> None:
        self.objective, self.rows = objective, list(rows)
        self._rewards = np.array([row @ objective.mdp.reward for row in rows])
        self._distances = objective.distances(np.stack(self.rows))
        self.value = objective.combined(self._rewards, self._distances)

    def offer(self, i: int, row: Floats) -> Offer:
        k, rest = len(self.rows), np.arange(len(self.rows)) != i
        distances = self.objective.distances_from(self.rows, i, row)
        before = self.objective.part_of_one(k, self._rewards[i], self._distances[i, rest])
        after = self.objective.part_of_one(k, float(row @ self.objective.mdp.reward), distances)
        return Offer(i, row, before, after, distances)

    def accept(self, offer: Offer) -> None:
        i, rest = offer.i, np.arange(len(self.rows)) != offer.i
        self.rows[i], self._rewards[i] = offer.row, offer.row @ self.objective.mdp.reward
        self._distances[i, rest] = self._distances[rest, i] = offer.details
        self.value = self.objective.combined(self._rewards, self._distances)
