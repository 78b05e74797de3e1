"""Criteria: what the value of a plan is, and so which occupancies a model has.

A method maximises something that is linear in the occupancy. Where the value of a plan is not, the criterion replaces the
reward of the model by a linear one that agrees with the value at the best plan (`planned`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from manyways.errors import SettingError, check_number
from manyways.model.mdp import MDP
from manyways.model.occupancy import discounted_occupancy, long_run_occupancy
from manyways.polytope.floors import Floor, Slices
from manyways.polytope.vertex import Answer, Vertex
from manyways.registry import Registry
from manyways.types import Floats


class Solves(Slices, Protocol):
    """What a criterion needs of a feasible set to find the best plan."""

    @property
    def optimum(self) -> Answer: ...


@dataclass(frozen=True, eq=False)
class Best:
    """The highest value of any plan, and a plan that has it."""

    value: float
    vertex: Vertex


@dataclass(frozen=True)
class Criterion(ABC):
    """What the value of a plan is. All criteria have occupancies of one form, with a `discount` of at most 1."""

    @property
    def discount(self) -> float:
        return 1.0

    @property
    def unit(self) -> str:
        """What values are counted by, as a phrase that follows a number."""
        return "per step"

    @property
    def value_of_one(self) -> float:
        """The value of a reward of 1 per step."""
        return 1.0

    @property
    def zero_matters(self) -> bool:
        """Whether other plans may be best after a number was added to all rewards."""
        return False

    @abstractmethod
    def occupancy(self, mdp: MDP, policy: Floats) -> Floats:
        """(N,) -> (N,): the share of time that a policy spends on each choice."""

    def settled(self, polytope: Solves) -> tuple[Criterion, Best]:
        """The same criterion with settings that depend on the model filled in, and the best plan."""
        best = polytope.optimum
        return self, Best(float(self.values(polytope.mdp, best.occupancy[None])[0]), best)

    def values(self, mdp: MDP, x: Floats) -> Floats:
        """(k, N) -> (k,): the value of each plan."""
        return self.values_of(x @ mdp.reward, x, mdp, 0.0)

    @property
    def planned_per_reward(self) -> float:
        """How much a unit of the model's reward counts in the reward that methods maximise."""
        return 1.0

    def planned(self, mdp: MDP, best: float) -> MDP:
        """The model whose reward methods maximise, given the highest value of any plan."""
        del best
        return mdp

    def values_of(self, rewards: Floats, x: Floats, mdp: MDP, best: float) -> Floats:
        """(k,), (k, N) -> (k,): the values of plans from their rewards in the model of `planned`."""
        del x, mdp, best
        return rewards * self.value_of_one

    def earned(self, mdp: MDP, x: Floats, best: float) -> Floats:
        """(k, N) -> (k,): what plans would be worth if costs were gains, from the model of `planned`."""
        del best
        return (x @ np.abs(mdp.reward)) * self.value_of_one

    def sensitivity(self, mdp: MDP, x: Floats) -> Floats | float:
        """(k, N) -> (k,): by how much of its distance from the best value a value changes at most if 1 unit of time moves."""
        del mdp, x
        return 0.0

    def value_bound(self, bound: float, best: float) -> float:
        """No plan has a higher value if no plan has a higher reward than `bound` in the model of `planned`."""
        del best
        return bound * self.value_of_one

    def value_floor(self, mdp: MDP, best: float, level: float) -> Floor:
        """The floor, in the model of `planned`, by which every plan has a value of at least `level`."""
        del mdp, best
        return Floor("value", level / self.value_of_one, per_reward=1.0)

    def own_floors(self, mdp: MDP) -> tuple[Floor, ...]:
        """Floors without which the value of a plan is not well defined."""
        del mdp
        return ()

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
    """The discounted sum of rewards from the start distribution. Works on any model.

    Occupancies, and so the objective, count it times (1 - discount), like a reward per step.
    """

    discount: float = 0.99  # pyright: ignore[reportIncompatibleMethodOverride, reportAssignmentType]

    def __post_init__(self) -> None:
        if not 0 < check_number("the discount", self.discount) < 1:
            raise SettingError(
                f"the discount must lie strictly between 0 and 1, found {self.discount}; without discounting, ",
                in_python="use Average()",
                on_command_line="leave --discount out",
            )

    @property
    def unit(self) -> str:
        return "in all"

    @property
    def value_of_one(self) -> float:
        return 1 / (1 - self.discount)

    def occupancy(self, mdp: MDP, policy: Floats) -> Floats:
        return discounted_occupancy(mdp, policy, self.discount)

    def describe(self) -> str:
        return "a sum in which later steps count less"
