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

SCALE = 0.2
RIDGE = 0.02


@OBJECTIVES.add
@dataclass(frozen=True)
class DeterminantDivergence(DiversityObjective):
    measure: ClassVar[str] = "logarithm of the determinant of similarities"
    scale: float = SCALE

    def on(self, mdp: MDP, compared: LinearMap) -> DeterminantDivergenceOnModel:
        return DeterminantDivergenceOnModel(mdp, compared, *self.weights, self.scale)


@dataclass(frozen=True, eq=False)
class DeterminantDivergenceOnModel(PairwiseOnModel):
    scale: float = SCALE

    def diversity(self, distances: Floats) -> Floats:
        low, high = self._ends(distances.shape[-1])
        logs = np.linalg.slogdet(self._kernel(distances))[1]
        return np.clip(LARGEST * (logs - low) / (high - low), 0.0, LARGEST)

    def pair_weights(self, distances: Floats) -> Floats:
        k, kernel = len(distances), self._kernel(distances)
        low, high = self._ends(k)
        slopes = -2 / self.scale * np.linalg.inv(kernel) * kernel
        return k * (k - 1) / 2 * LARGEST / (high - low) * slopes

    def _kernel(self, distances: Floats) -> Floats:
        return np.exp(-distances / self.scale) + RIDGE * np.eye(distances.shape[-1])

    def _ends(self, k: int) -> tuple[float, float]:
        same, apart = 1.0, float(np.exp(-LARGEST / self.scale))
        low, high = (float((k - 1) * np.log(1 - c + RIDGE) + np.log(1 + (k - 1) * c + RIDGE)) for c in (same, apart))
        return low, high
