"""What objectives of the form mean reward + tradeoff x diversity of the set have in common.

    f(rho_1..k) = w / k sum_i <rho_i, r> + tradeoff * D(rho_1..k)

All diversities D are in nats, 0 if all plans are equal, ln 2 if no two plans share anything, and at most ln 2, so that
one tradeoff means about the same in all of them. The weight w of the reward is 1. `tradeoff=inf` means that only
diversity counts: then w is 0, and D has the weight 1. For k = 1 there is no diversity, and f is the reward alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, TypeVar

import numpy as np

from manyways.errors import check_number
from manyways.objectives.base import Objective, SetObjective
from manyways.types import Floats

Settings = TypeVar("Settings", bound="DiversityObjective")
OnModel = TypeVar("OnModel", bound="DiversityOnModel")


@dataclass(frozen=True)
class DiversityObjective(Objective):
    """Mean reward + tradeoff x diversity, as settings.

    Attributes:
        tradeoff: how much a nat of diversity is worth in reward per step; `inf` if only diversity counts. By default
            `plan` derives it from the model.
        measure: the diversity, as a phrase.
    """

    measure: ClassVar[str]

    tradeoff: float | None = None

    def __post_init__(self) -> None:
        if self.tradeoff is not None and self.tradeoff != math.inf:
            object.__setattr__(self, "tradeoff", check_number("the tradeoff", self.tradeoff, 0))

    def settled(self: Settings, scale: float) -> Settings:
        return replace(self, tradeoff=scale) if self.tradeoff is None else self

    @property
    def weights(self) -> tuple[float, float]:
        """The weights of diversity and of the mean reward. A tradeoff that is still open counts as 1."""
        if self.tradeoff == math.inf:
            return 1.0, 0.0
        return 1.0 if self.tradeoff is None else self.tradeoff, 1.0

    def describe(self) -> str:
        if self.tradeoff == math.inf:
            return f"{self.measure}, without the reward"
        worth = "tradeoff" if self.tradeoff is None else f"{self.tradeoff:g}"
        return f"mean reward + {worth} × {self.measure}"


@dataclass(frozen=True, eq=False)
class DiversityOnModel(SetObjective):
    """Mean reward + tradeoff x diversity, on one model.

    Attributes:
        tradeoff: the weight of diversity.
        reward_weight: the weight of the mean reward, 1 or 0.
    """

    tradeoff: float
    reward_weight: float = 1.0

    @property
    def diversity_weight(self) -> float:
        return self.tradeoff

    def size(self, optimal_reward: float) -> float:
        return self.reward_weight * abs(optimal_reward) + self.tradeoff

    def with_diversity_weight(self: OnModel, weight: float) -> OnModel:
        return replace(self, tradeoff=weight)

    def _in_choices(self, worths: Floats, k: int) -> Floats:
        """(..., B) worths in diversity -> (..., N) worths in f."""
        return self.reward_weight * self.mdp.reward / k + self.tradeoff * self.compared.backward(worths)

    def _mass(self, row: Floats) -> Floats:
        """(N,) -> (B,): the time that a plan could spend in each place without changing its time in each state.

        If every choice is a place of its own, that is all the time in the choice's state.
        """
        if self.compared.identity:
            return np.add.reduceat(row, self.mdp.first_choice[:-1])[self.mdp.choice_state]
        return self.compared.forward(row)
