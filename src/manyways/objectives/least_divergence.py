"""draft"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from manyways.behaviours import LinearMap
from manyways.model.mdp import MDP
from manyways.objectives.base import OBJECTIVES
from manyways.objectives.pairwise import PairwiseOnModel
from manyways.objectives.tradeoff import DiversityObjective
from manyways.types import Floats

TAU = 0.2


@OBJECTIVES.add
@dataclass(frozen=True)
class LeastDivergence(DiversityObjective):
    measure: ClassVar[str] = "least pairwise divergence"

    def on(self, mdp: MDP, compared: LinearMap) -> LeastDivergenceOnModel:
        return LeastDivergenceOnModel(mdp, compared, *self.weights)


@dataclass(frozen=True, eq=False)
class LeastDivergenceOnModel(PairwiseOnModel):
    def diversity(self, distances: Floats) -> Floats:
        first, second = np.triu_indices(distances.shape[-1], 1)
        return distances[..., first, second].min(axis=-1)

    def pair_weights(self, distances: Floats) -> Floats:
        k = len(distances)
        nearest = (distances <= self.diversity(distances)) & ~np.eye(k, dtype=bool)
        return nearest * (k * (k - 1) / nearest.sum())

    def cost_weights(self, distances, i, least):
        row = np.delete(distances[i], i)
        k = len(distances)
        z = np.exp(-(row - row.min()) / TAU)
        return z / z.sum() * (k * (k - 1) / 2)
