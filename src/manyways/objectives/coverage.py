"""A team that is to see as much as possible: the share of places that at least one member visits on a trip.

    D(rho_1..k) = 1/P sum_p ( 1 - exp(-h sum_i (B rho_i)_p) )

over the P places of the behaviour's map B (`States`, `Regions`, `Labels`), with h the steps of a trip: h (B rho_i)_p is the
time that plan i spends in place p on a trip, and 1 - exp(-t) is about the chance that somebody is there at all. Unlike the
divergences it is concave: a place that one member sees is worth little to the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import ClassVar

import numpy as np

from manyways.behaviours import LinearMap
from manyways.model.mdp import MDP
from manyways.model.trips import fewest_steps
from manyways.objectives.base import OBJECTIVES, SMOOTHING
from manyways.objectives.tradeoff import DiversityObjective, DiversityOnModel
from manyways.types import Floats


@OBJECTIVES.add
@dataclass(frozen=True)
class Coverage(DiversityObjective):
    """Mean reward + tradeoff x share of places that at least one member visits on a trip.

    Attributes:
        tradeoff: how much all places together are worth in reward per step; by default nothing but coverage counts, within
            the limits of `plan`.
    """

    measure: ClassVar[str] = "share of places that somebody visits"

    def settled(self, scale: float) -> Coverage:
        del scale
        return replace(self, tradeoff=inf) if self.tradeoff is None else self

    def on(self, mdp: MDP, compared: LinearMap) -> CoverageOnModel:
        steps = fewest_steps(mdp)
        return CoverageOnModel(mdp, compared, *self.weights, float(compared.places if steps is None else steps))


@dataclass(frozen=True, eq=False)
class CoverageOnModel(DiversityOnModel):
    """Value, gradient and secant costs over stacked (k, N) occupancies.

    Attributes:
        steps: of a trip.
    """

    steps: float = 1.0

    def value(self, x: Floats) -> float:
        seen = self._seen(self.compared.forward(x).sum(axis=0)).mean() if len(x) > 1 else 0.0
        weight = self.reward_weight if len(x) > 1 else 1.0
        return weight * float((x @ self.mdp.reward).mean()) + self.tradeoff * float(seen)

    def gradient(self, x: Floats, smoothing: float = SMOOTHING) -> Floats:
        del smoothing
        if len(x) == 1:
            return self.mdp.reward[None].copy()
        time = self.compared.forward(x).sum(axis=0)
        worth = self.steps * np.exp(-self.steps * time) / self.compared.places
        return np.tile(self._in_choices(worth, len(x)), (len(x), 1))

    def costs(self, rows: Sequence[Floats], i: int, least: float) -> Floats:
        del least
        if len(rows) == 1:
            return self.mdp.reward.copy()
        images = self.compared.forward(np.stack(rows))
        others = images.sum(axis=0) - images[i]
        time = np.maximum(images[i], 1 / self.steps)  # as if it spent at least a step there
        worth = (self._seen(others + time) - self._seen(others)) / time
        return self._in_choices(worth / self.compared.places, len(rows))

    def _seen(self, time: Floats) -> Floats:
        return -np.expm1(-self.steps * time)
