"""A team whose members get in each other's way: mean reward minus what meetings cost.

    f(rho_1..k) = 1/k ( sum_i <rho_i, r> - cost * sum_{i<j} <n_i, n_j> )

with n_i the share of time that plan i spends in each state. Agents that run independently, each at a random time of its trip,
are in one state with chance <n_i, n_j>, so the last sum is the expected number of meetings per step. Meetings at the start
and at the goal do not count: everybody has to be there.

While the others stay, f is exactly linear in one plan: a potential game. So a step of the oracle is the best answer to the
others, and a set that no step improves is an equilibrium.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from manyways.behaviours import LinearMap
from manyways.errors import check_number
from manyways.model.mdp import MDP
from manyways.objectives.base import OBJECTIVES, SMOOTHING, Objective, SetObjective
from manyways.types import Bools, Floats

STEP = 4.0
"""By default a meeting costs about what the best plan earns in a step, in units of the default tradeoff: somebody waits."""


@OBJECTIVES.add
@dataclass(frozen=True)
class Congestion(Objective):
    """Mean reward of a team minus the cost of meeting.

    Attributes:
        cost: of one meeting of two agents, in reward. By default about what the best plan earns in a step.
    """

    cost: float | None = None

    def __post_init__(self) -> None:
        if self.cost is not None:
            object.__setattr__(self, "cost", check_number("the cost of a meeting", self.cost, 0))

    def settled(self, scale: float) -> Congestion:
        return replace(self, cost=STEP * scale) if self.cost is None else self

    def on(self, mdp: MDP, compared: LinearMap) -> CongestionOnModel:
        return CongestionOnModel(mdp, compared, 1.0 if self.cost is None else self.cost, on_the_way(mdp))

    def describe(self) -> str:
        return f"mean reward - {'cost' if self.cost is None else f'{self.cost:g}'} × meetings per step and agent"


def on_the_way(mdp: MDP) -> Bools:
    """(S,) the states that are neither start nor goal."""
    here = mdp.start <= 0
    return here & ~mdp.labels["goal"] if "goal" in mdp.labels else here


@dataclass(frozen=True, eq=False)
class CongestionOnModel(SetObjective):
    """Value and costs over stacked (k, N) occupancies.

    Attributes:
        cost: of one meeting.
        counted: (S,) where meetings count.
    """

    cost: float
    counted: Bools

    def presence(self, x: Floats) -> Floats:
        """(..., N) -> (..., S): time in each state in which meetings count."""
        return np.add.reduceat(x, self.mdp.first_choice[:-1], axis=-1) * self.counted

    def value(self, x: Floats) -> float:
        here = self.presence(x)
        meetings = (float(np.sum(here.sum(axis=0) ** 2)) - float(np.sum(here**2))) / 2
        return (float((x @ self.mdp.reward).sum()) - self.cost * meetings) / len(x)

    def gradient(self, x: Floats, smoothing: float = SMOOTHING) -> Floats:
        del smoothing
        here = self.presence(x)
        return np.stack([self._costs(here.sum(axis=0) - own, len(x)) for own in here])

    @property
    def diversity_weight(self) -> float:
        return self.cost

    def with_diversity_weight(self, weight: float) -> CongestionOnModel:
        return replace(self, cost=weight)

    def costs(self, rows: Sequence[Floats], i: int, least: float) -> Floats:
        del least
        return self._costs(sum(self.presence(row) for j, row in enumerate(rows) if j != i), len(rows))

    def contribution(self, rows: Sequence[Floats], i: int, row: Floats) -> float:
        return float(self.costs(rows, i, 0.0) @ row)

    def _costs(self, others: Floats | int, k: int) -> Floats:
        """(S,) time of the others in each state -> (N,) what each choice is worth to a plan."""
        crowd = np.broadcast_to(np.asarray(others, np.float64), self.mdp.n_states)
        return (self.mdp.reward - self.cost * crowd[self.mdp.choice_state]) / k
