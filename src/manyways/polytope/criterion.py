"""Which occupancies a model has: those of the long run, or those of a discounted future."""

from __future__ import annotations

from dataclasses import dataclass

from manyways.arrays import Floats
from manyways.errors import SettingError, check_number
from manyways.mdp import MDP
from manyways.occupancy import discounted_occupancy, long_run_occupancy


@dataclass(frozen=True)
class Average:
    """The long-run average reward per step: the paper's criterion. Needs weak accessibility."""

    @property
    def discount(self) -> float:
        return 1.0

    def occupancy(self, mdp: MDP, policy: Floats) -> Floats:
        return long_run_occupancy(mdp, policy)


@dataclass(frozen=True)
class Discounted:
    """The discounted reward from the start distribution, times (1 - discount): any model will do."""

    discount: float = 0.99

    def __post_init__(self) -> None:
        if not 0 < check_number("the discount", self.discount) < 1:
            raise SettingError(
                f"the discount must lie strictly between 0 and 1, found {self.discount}; without discounting, use Average()"
            )

    def occupancy(self, mdp: MDP, policy: Floats) -> Floats:
        return discounted_occupancy(mdp, policy, self.discount)


Criterion = Average | Discounted
