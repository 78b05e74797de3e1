"""draft"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from manyways.behaviours import LinearMap
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
    measure: ClassVar[str] = "mean logarithm of the pairwise divergences"
    offset: float = OFFSET

    def on(self, mdp: MDP, compared: LinearMap) -> SpreadDivergenceOnModel:
        return SpreadDivergenceOnModel(mdp, compared, *self.weights, self.offset)


@dataclass(frozen=True, eq=False)
class SpreadDivergenceOnModel(PairwiseOnModel):
    offset: float = OFFSET

    def diversity(self, distances: Floats) -> Floats:
        k = distances.shape[-1]
        logs = np.log1p(distances / self.offset).sum(axis=(-2, -1))
        return self._unit * logs / (k * (k - 1))

    def pair_weights(self, distances: Floats) -> Floats:
        return self._unit / (distances + self.offset)

    @property
    def _unit(self) -> float:
        return LARGEST / float(np.log1p(LARGEST / self.offset))
