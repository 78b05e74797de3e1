"""The contract of objectives, and their registry.

An `Objective` is a frozen dataclass of settings that a user gives to `plan` and a plan file stores. On a model and a
behaviour it becomes a `SetObjective`, the function of k occupancies that methods maximise. Two methods suffice for an
objective of one's own: `value` and `gradient`. What else is in the contract has a default that uses only these, and is
overridden where there is something better or faster.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from manyways.behaviours import LinearMap
from manyways.model.mdp import MDP
from manyways.objectives.divergence import pairwise_divergences
from manyways.registry import Registry
from manyways.types import Floats, Ints

SMOOTHING = 1e-12
"""Of gradients that should be exact: so small that only true zeros are affected."""


@dataclass(frozen=True)
class Objective(ABC):
    """What a set of plans is worth, as settings. Register a class of your own with `@manyways.register`."""

    def settled(self, scale: float) -> Objective:
        """The same objective with open settings filled in: `scale` is the tradeoff to use if none was given."""
        del scale
        return self

    @abstractmethod
    def on(self, mdp: MDP, compared: LinearMap) -> SetObjective:
        """The objective on one model, with plans compared by the images of a linear map."""

    def describe(self) -> str:
        """What is maximised, as a phrase for the page."""
        return repr(self)


OBJECTIVES: Registry[Objective] = Registry("objective", Objective, "MeanDivergence(8.0)", "Divergence")


@dataclass(frozen=True, eq=False)
class SetObjective(ABC):
    """The worth of k occupancies of one model, stacked as (k, N).

    Attributes:
        mdp: the model.
        compared: the linear map in whose images plans are compared.
    """

    mdp: MDP
    compared: LinearMap

    @abstractmethod
    def value(self, x: Floats) -> float:
        """(k, N) -> the worth of the set."""

    @abstractmethod
    def gradient(self, x: Floats, smoothing: float = SMOOTHING) -> Floats:
        """(k, N) -> (k, N): the gradient by all plans at once.

        It must never promise more than a step along it can give: a subgradient where the objective has a corner.
        """

    @property
    def diversity_weight(self) -> float:
        """How much diversity counts, in units of reward; tolerances are relative to it and to the reward."""
        return 0.0

    def size(self, optimal_reward: float) -> float:
        """About how large values are, if plans earn about as much as the optimal one: rises are judged relative to it."""
        return abs(optimal_reward) + self.diversity_weight

    def with_diversity_weight(self, weight: float) -> SetObjective:
        """The same objective in which diversity counts as much as given, where it has such a weight."""
        del weight
        return self

    def costs(self, rows: Sequence[Floats], i: int, least: float) -> Floats:
        """(N,) linear costs for plan i while the other k - 1 plans stay: the oracle takes plan i to their maximum.

        Args:
            rows: k occupancies (N,).
            i: the plan that moves.
            least: time that the plan is assumed to have in places where it has less (annealing).
        """
        del least
        return self.gradient(np.stack(rows))[i]

    def contribution(self, rows: Sequence[Floats], i: int, row: Floats) -> float:
        """The part of the value that depends on plan i if it is `row` (N,); its changes are changes of the value."""
        return self.value(np.stack([*rows[:i], row, *rows[i + 1 :]]))

    def distances(self, x: Floats) -> Floats:
        """(k, N) -> (k, k): how different the plans are, for people to look at."""
        return pairwise_divergences(self.compared.forward(x))

    def pool(self, k: int) -> Sequence[Callable[[], Floats]]:
        """Linear costs (N,) whose best plans are good candidates for a set of k plans, each made when it is called.

        A method that finds vertices starts from the best set among these plans. By default there are none, and it starts
        from random policies.
        """
        del k
        return ()

    def working_set(self, rows: Sequence[Floats]) -> WorkingSet:
        """The set while a method changes one plan after the other."""
        return WorkingSet(self, rows)

    def candidates(self, rows: Floats) -> Candidates:
        """(M, N) -> occupancies from which sets are chosen."""
        return Candidates(self, rows)

    @property
    def mean_form(self) -> MeanForm | None:
        """The weights, if the objective is exactly a weighted sum of mean reward and mean pairwise divergence; else None.

        The Frank-Wolfe gap of this form is proved with bounds on all rounding errors (`plans.checker`).
        """
        return None

    def exchange_form(self, k: int) -> ExchangeForm | None:
        """How exchanges of single actions (`methods.exchange`) can judge this objective for k plans; None if not."""
        del k
        return None


@dataclass(frozen=True)
class MeanForm:
    """An objective that is exactly per_reward x mean reward + per_divergence x mean pairwise divergence.

    Attributes:
        per_reward: the weight of the mean reward: 1, or 0 where only diversity counts.
        per_divergence: the weight of the mean pairwise divergence.
    """

    per_reward: float
    per_divergence: float


@dataclass(frozen=True, eq=False)
class ExchangeForm:
    """An objective in which the contribution of plan i is, with a grouping G of the choices,

        per_reward <rho_i, r> + per_divergence sum_j JSD(G rho_i || G rho_j)

    Attributes:
        groups: (N,) the group of each choice.
        per_reward, per_divergence: the weights.
    """

    groups: Ints
    per_reward: float
    per_divergence: float


@dataclass(frozen=True, eq=False)
class Offer:
    """A plan that may replace plan i of a working set.

    Attributes:
        i: which plan it may replace.
        row: (N,) its occupancy.
        before, after: the contribution of plan i as it is and as it would be.
        details: what the working set needs to accept it without computing it again.
    """

    i: int
    row: Floats
    before: float
    after: float
    details: Any = None

    @property
    def rise(self) -> float:
        return self.after - self.before


class WorkingSet:
    """k occupancies on their way up. Objectives derive from it to keep what they would otherwise compute again.

    Attributes:
        rows: the k occupancies (N,).
        value: the worth of the set.
    """

    def __init__(self, objective: SetObjective, rows: Sequence[Floats]) -> None:
        self.objective, self.rows = objective, list(rows)
        self.value = objective.value(np.stack(self.rows))

    def costs(self, i: int, least: float) -> Floats:
        """(N,) see `SetObjective.costs`."""
        return self.objective.costs(self.rows, i, least)

    def offer(self, i: int, row: Floats) -> Offer:
        """What the set would gain with `row` (N,) as plan i."""
        before = self.objective.contribution(self.rows, i, self.rows[i])
        return Offer(i, row, before, self.objective.contribution(self.rows, i, row))

    def accept(self, offer: Offer) -> None:
        """Replace plan `offer.i`."""
        self.rows[offer.i] = offer.row
        self.value = self.objective.value(np.stack(self.rows))


class Candidates:
    """M occupancies from which sets are chosen. Objectives derive from it to judge many sets at once.

    Attributes:
        rows: (M, N) the occupancies.
    """

    def __init__(self, objective: SetObjective, rows: Floats) -> None:
        self.objective, self.rows = objective, rows

    def contributions(self, members: Ints, i: int) -> Floats:
        """(k,) numbers of candidates -> (M,): the contribution of plan i of that set if it is each of the candidates."""
        rows = list(self.rows[members])
        return np.array([self.objective.contribution(rows, i, row) for row in self.rows])
