"""Mean reward plus tradeoff times the smallest pairwise divergence (max-min).

    f(rho_1..k) = 1/k sum_i <rho_i, r> + tradeoff * min_{i<j} JSD(B rho_i || B rho_j)

with B the linear map of the behaviour. Diversity is 0 as soon as two plans are equal, and ln 2 if no two plans share
anything.

The minimum of convex functions is neither convex nor concave. A maximum need not lie at vertices, and the gradient is
that of the nearest pair: it is exact where one pair is nearest. Where several are, their mean is used; no vector would be
a bound there for all directions, so a step may give less than the gradient promises. For k = 2 the objective is the mean
divergence, and all that is said there holds.

*Costs.* The derivative is zero for a plan that is not in the nearest pair, and would send it back to the optimum. Instead
each plan is pushed away from its own nearest plans: weights exp(-d / SOFTNESS) over its own distances, scaled to a sum
between k - 1, its part in the derivative if all pairs are equally near, and k (k - 1) / 2, its part if its pair alone is
nearest. Measured on five of the room worlds (docs/objectives.md), softness 0.2 is better than 0.02 to 0.1 and about as
good as 0.5; sharpening it stage by stage gained nothing, and neither did a soft minimum in the decision which steps to
keep.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from manyways.behaviours import LinearMap
from manyways.model.mdp import MDP
from manyways.objectives.base import OBJECTIVES, ExchangeForm
from manyways.objectives.pairwise import PairwiseOnModel
from manyways.objectives.tradeoff import DiversityObjective
from manyways.types import Floats

SOFTNESS = 0.2
PUSH = 1.6
"""The sum of a plan's cost weights, in units of k - 1."""


@OBJECTIVES.add
@dataclass(frozen=True)
class LeastDivergence(DiversityObjective):
    """Mean reward + tradeoff x the smallest pairwise Jensen-Shannon divergence.

    Attributes:
        tradeoff: how much a nat of diversity is worth in reward per step; `inf` if only diversity counts. By default
            `plan` derives it from the model.
    """

    measure: ClassVar[str] = "least pairwise divergence"

    def on(self, mdp: MDP, compared: LinearMap) -> LeastDivergenceOnModel:
        return LeastDivergenceOnModel(mdp, compared, *self.weights)


@dataclass(frozen=True, eq=False)
class LeastDivergenceOnModel(PairwiseOnModel):
    """Value, gradient and secant costs over stacked (k, N) occupancies."""

    def diversity(self, distances: Floats) -> Floats:
        first, second = np.triu_indices(distances.shape[-1], 1)
        return distances[..., first, second].min(axis=-1)

    def pair_weights(self, distances: Floats) -> Floats:
        k = len(distances)
        nearest = (distances <= self.diversity(distances)) & ~np.eye(k, dtype=bool)
        return nearest * (k * (k - 1) / nearest.sum())

    def cost_weights(self, distances: Floats, i: int) -> Floats:
        k, own = len(distances), np.delete(distances[i], i)
        weights = np.exp((own.min() - own) / SOFTNESS)
        return min(k / 2, PUSH) * (k - 1) / weights.sum() * weights

    def exchange_form(self, k: int) -> ExchangeForm | None:
        groups = self.compared.groups
        return None if k != 2 or groups is None else ExchangeForm(groups, self.reward_weight / 2, self.tradeoff)
