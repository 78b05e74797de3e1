"""Criteria: what the value of a plan is, and so which occupancies a model has."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from manyways.errors import SettingError, check_number
from manyways.model.mdp import MDP
from manyways.model.occupancy import discounted_occupancy, long_run_occupancy
from manyways.registry import Registry
from manyways.types import Floats


@dataclass(frozen=True)
class Criterion(ABC):
    """What the value of a plan is. All criteria are one formula with a `discount` of at most 1."""

    @property
    def discount(self) -> float:
        return 1.0

    @abstractmethod
    def occupancy(self, mdp: MDP, policy: Floats) -> Floats:
        """(N,) -> (N,): the share of time that a policy spends on each choice."""

    def describe(self) -> str:
        """What the value of a plan is, as a phrase for the page."""
        return repr(self)


CRITERIA: Registry[Criterion] = Registry("criterion", Criterion, "Average()")


@CRITERIA.add
@dataclass(frozen=True)
class Average(Criterion):
    """The long-run average reward per step: the paper's criterion. Needs weak accessibility."""

    def occupancy(self, mdp: MDP, policy: Floats) -> Floats:
        return long_run_occupancy(mdp, policy)

    def describe(self) -> str:
        return "the long-run mean per step"


@CRITERIA.add
@dataclass(frozen=True)
class Discounted(Criterion):
    """The discounted reward from the start distribution, times (1 - discount). Works on any model."""

    discount: float = 0.99  # pyright: ignore[reportIncompatibleMethodOverride, reportAssignmentType]

    def __post_init__(self) -> None:
        if not 0 < check_number("the discount", self.discount) < 1:
            raise SettingError(
                f"the discount must lie strictly between 0 and 1, found {self.discount}; without discounting, ",
                in_python="use Average()",
                on_command_line="leave --discount out",
            )

    def occupancy(self, mdp: MDP, policy: Floats) -> Floats:
        return discounted_occupancy(mdp, policy, self.discount)

    def describe(self) -> str:
        return "a sum in which later steps count less"
