"""Mean reward plus tradeoff times the mean logarithm of the pairwise divergences: between the mean and the minimum.

    f(rho_1..k) = 1/k sum_i <rho_i, r> + tradeoff * 2 / (k (k - 1)) sum_{i<j} g(JSD(B rho_i || B rho_j))
    g(d) = ln 2 * ln(1 + d / e) / ln(1 + ln 2 / e)

with B the linear map of the behaviour and the offset e. g is concave and increasing with g(0) = 0 and g(ln 2) = ln 2: a
pair that is near gains more from being moved apart than a pair that is far, so two groups of twins are worth less than
the same mean distance between all. Unlike with the minimum, every pair counts.

As e grows, g tends to d itself and f to the mean divergence; as e falls, only near pairs count. Measured with pure
diversity within a slack of 5 and 15 % on five of the room worlds, least / mean distance for k = 4 and k = 6:

    mean divergence   0.241 / 0.414    0.320 / 0.543
    e = 0.5           0.262 / 0.413    0.329 / 0.543
    e = 0.1           0.267 / 0.414    0.348 / 0.542
    e = 0.02          0.284 / 0.416    0.354 / 0.546    the default
    e = 0.005         0.274 / 0.414    0.353 / 0.542

so the default raises the least distance and loses nothing of the mean.

A concave function of a convex one: f is neither convex nor concave, and a maximum need not lie at vertices. The gradient
is exact where the divergences have one and follows the chain rule where they have corners. To first order it never
promises more than a step gives, since all pair weights are positive; over a long step it may.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from manyways.behaviours import LinearMap
from manyways.errors import SettingError, check_number
from manyways.model.mdp import MDP
from manyways.objectives.base import OBJECTIVES
from manyways.objectives.divergence import LARGEST
from manyways.objectives.pairwise import PairwiseOnModel
from manyways.objectives.tradeoff import DiversityObjective
from manyways.types import Floats

OFFSET = 0.02


@OBJECTIVES.add
@dataclass(frozen=True)
class SpreadDivergence(DiversityObjective):
    """Mean reward + tradeoff x the mean logarithm of the pairwise Jensen-Shannon divergences, scaled to 0 .. ln 2.

    Attributes:
        tradeoff: how much a nat of diversity is worth in reward per step; `inf` if only diversity counts. By default
            `plan` derives it from the model.
        offset: the distance, in nats, below which plans count as hardly different.
    """

    measure: ClassVar[str] = "mean logarithm of the pairwise divergences"

    offset: float = OFFSET

    def __post_init__(self) -> None:
        super().__post_init__()
        if not check_number("the offset", self.offset) > 0:
            raise SettingError(f"the offset must be positive, found {self.offset}")

    def on(self, mdp: MDP, compared: LinearMap) -> SpreadDivergenceOnModel:
        return SpreadDivergenceOnModel(mdp, compared, *self.weights, self.offset)


@dataclass(frozen=True, eq=False)
class SpreadDivergenceOnModel(PairwiseOnModel):
    """Value, gradient and secant costs over stacked (k, N) occupancies."""

    offset: float = OFFSET

    def diversity(self, distances: Floats) -> Floats:
        k = distances.shape[-1]
        return self._unit * np.log1p(distances / self.offset).sum(axis=(-2, -1)) / (k * (k - 1))

    def pair_weights(self, distances: Floats) -> Floats:
        return self._unit / (distances + self.offset)

    @property
    def _unit(self) -> float:
        """What makes disjoint plans worth ln 2."""
        return LARGEST / float(np.log1p(LARGEST / self.offset))
