"""draft"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from manyways.behaviours import LinearMap
from manyways.model.mdp import MDP
from manyways.objectives.base import OBJECTIVES, SMOOTHING
from manyways.objectives.divergence import LARGEST, joint_divergence, joint_gradient, joint_secant_worths
from manyways.objectives.tradeoff import DiversityObjective, DiversityOnModel
from manyways.types import Floats


@OBJECTIVES.add
@dataclass(frozen=True)
class JointDivergence(DiversityObjective):
    measure: ClassVar[str] = "joint divergence"

    def on(self, mdp: MDP, compared: LinearMap) -> JointDivergenceOnModel:
        return JointDivergenceOnModel(mdp, compared, *self.weights)


@dataclass(frozen=True, eq=False)
class JointDivergenceOnModel(DiversityOnModel):
    def value(self, x: Floats) -> float:
        if len(x) == 1:
            return float(x[0] @ self.mdp.reward)
        joint = joint_divergence(self.compared.forward(x))
        return self.reward_weight * float((x @ self.mdp.reward).mean()) + self.tradeoff * _share(len(x)) * joint

    def gradient(self, x: Floats, smoothing: float = SMOOTHING) -> Floats:
        k = len(x)
        if k == 1:
            return self.mdp.reward[None].copy()
        return self._in_choices(_share(k) * joint_gradient(self.compared.forward(x), smoothing), k)

    def costs(self, rows: Sequence[Floats], i: int, least: float) -> Floats:
        k = len(rows)
        if k == 1:
            return self.mdp.reward.copy()
        others = sum(self.compared.forward(row) for j, row in enumerate(rows) if j != i)
        worths = joint_secant_worths(np.maximum(self._mass(rows[i]), least), others, k)
        return self._in_choices(_share(k) * worths, k)


def _share(k: int) -> float:
    return LARGEST / float(np.log(k))
