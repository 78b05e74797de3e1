"""The paper's objective, eq. (main): mean reward plus tradeoff times the mean pairwise divergence.

    f(rho_1..k) = 1/k sum_i <rho_i, r> + tradeoff * 2 / (k (k - 1)) sum_{i<j} JSD(B rho_i || B rho_j)

with B the linear map of the behaviour. It is convex. For k = 1 there is no pair, and f is the reward alone: plain
planning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from manyways.behaviours import LinearMap
from manyways.model.mdp import MDP
from manyways.objectives.base import OBJECTIVES, ExchangeForm, MeanForm
from manyways.objectives.pairwise import PairwiseOnModel
from manyways.objectives.tradeoff import DiversityObjective
from manyways.types import Floats


@OBJECTIVES.add
@dataclass(frozen=True)
class MeanDivergence(DiversityObjective):
    """Mean reward + tradeoff x mean pairwise Jensen-Shannon divergence.

    Attributes:
        tradeoff: how much a nat of divergence is worth in reward per step; `inf` if only diversity counts. By default
            `plan` derives it from the model.
    """

    measure: ClassVar[str] = "mean pairwise divergence"

    def on(self, mdp: MDP, compared: LinearMap) -> MeanDivergenceOnModel:
        return MeanDivergenceOnModel(mdp, compared, *self.weights)


@dataclass(frozen=True, eq=False)
class MeanDivergenceOnModel(PairwiseOnModel):
    """Value, gradient and secant costs of f over stacked (k, N) occupancies."""

    def diversity(self, distances: Floats) -> Floats:
        k = distances.shape[-1]
        return distances.sum(axis=(-2, -1)) / (k * (k - 1))

    def pair_weights(self, distances: Floats) -> Floats:
        return np.ones_like(distances)

    def pair_weights_of(self, x: Floats) -> Floats:
        return np.ones((len(x), len(x)))  # whatever the distances are

    def cost_weights(self, distances: Floats, i: int) -> Floats:
        del i
        return np.ones(len(distances) - 1)

    def contribution(self, rows: Sequence[Floats], i: int, row: Floats) -> float:
        return self._part(len(rows), float(row @ self.mdp.reward), self.distances_from(rows, i, row))

    def part_of_one(self, i: int, reward: float, distances: Floats) -> float:
        return self._part(len(distances), reward, distances[i])

    @property
    def mean_form(self) -> MeanForm:
        return MeanForm(self.reward_weight, self.tradeoff)

    def exchange_form(self, k: int) -> ExchangeForm | None:
        groups = self.compared.groups
        return None if k == 1 or groups is None else ExchangeForm(groups, self.reward_weight / k, self._pair_weight(k))

    def _part(self, k: int, reward: float, distances: Floats) -> float:
        """The contribution of one of k plans, from its reward and its distances to the others, and to itself or not: only
        these distances change with the plan, and in a sum the others do not matter."""
        return self.reward_weight * reward / k + self._pair_weight(k) * float(distances.sum()) if k > 1 else reward

    def _pair_weight(self, k: int) -> float:
        """The weight of each of the k (k - 1) / 2 divergences in f."""
        return 2 * self.tradeoff / (k * (k - 1))
