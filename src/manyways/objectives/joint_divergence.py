"""Mean reward plus tradeoff times the joint divergence of all plans: one of the terms that DIAYN maximises, on a known model.

    f(rho_1..k) = 1/k sum_i <rho_i, r> + tradeoff * ln 2 / ln k * (H(1/k sum_i B rho_i) - 1/k sum_i H(B rho_i))

with B the linear map of the behaviour and the entropy H. The joint Jensen-Shannon divergence is the information that a
place (a choice, a state, a label) gives about which of the k plans was there (Eysenbach et al. 2019, "Diversity is all
you need"). It lies between 0, for equal plans, and ln k, for disjoint ones; the factor ln 2 / ln k makes that ln 2. For
k = 2 it is the divergence of the pair.

It is jointly convex, as the pairwise divergence is, so a maximum lies at vertices and gradients are lower bounds. Like
the mean it accepts twins: moving one of two twins apart gains as much wherever the others are.

The costs are secants in the same sense (`divergence.joint_secant_worths`); the other plans enter only by their sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from manyways.behaviours import LinearMap
from manyways.model.mdp import MDP
from manyways.objectives.base import OBJECTIVES, SMOOTHING, Candidates, Offer, WorkingSet
from manyways.objectives.divergence import LARGEST, joint_gradient, joint_secant_worths, sum_x_log_x
from manyways.objectives.tradeoff import DiversityObjective, DiversityOnModel
from manyways.types import Floats, Ints


@OBJECTIVES.add
@dataclass(frozen=True)
class JointDivergence(DiversityObjective):
    """Mean reward + tradeoff x the joint Jensen-Shannon divergence of all plans, scaled to 0 .. ln 2.

    Attributes:
        tradeoff: how much a nat of diversity is worth in reward per step; `inf` if only diversity counts. By default
            `plan` derives it from the model.
    """

    measure: ClassVar[str] = "joint divergence"

    def on(self, mdp: MDP, compared: LinearMap) -> JointDivergenceOnModel:
        return JointDivergenceOnModel(mdp, compared, *self.weights)


@dataclass(frozen=True, eq=False)
class JointDivergenceOnModel(DiversityOnModel):
    """Value, gradient and secant costs over stacked (k, N) occupancies."""

    def value(self, x: Floats) -> float:
        return self.working_set(list(x)).value

    def gradient(self, x: Floats, smoothing: float = SMOOTHING) -> Floats:
        k = len(x)
        if k == 1:
            return self.mdp.reward[None].copy()
        return self._in_choices(_unit(k) * joint_gradient(self.compared.forward(x), smoothing), k)

    def costs(self, rows: Sequence[Floats], i: int, least: float) -> Floats:
        """(N,) secant costs: the worth of each choice to plan i per unit of time, if all the time that the plan has in
        that choice's state (or `least`, if that is more) were spent on it."""
        k = len(rows)
        if k == 1:
            return self.mdp.reward.copy()
        others = self.compared.forward(np.stack([*rows[:i], *rows[i + 1 :]])).sum(axis=0)
        worths = joint_secant_worths(np.maximum(self._mass(rows[i]), least), others, k)
        return self._in_choices(_unit(k) * worths, k)

    def working_set(self, rows: Sequence[Floats]) -> WorkingSet:
        return JointSet(self, rows)

    def candidates(self, rows: Floats) -> Candidates:
        return JointCandidates(self, rows)

    def combined(self, reward: Floats, own: Floats, total: Floats, k: int) -> Floats:
        """(...), (...), (..., B) -> (...): f from the sums over the k plans of reward, x ln x and images."""
        if k == 1:
            return reward
        joint = np.maximum(own / k - sum_x_log_x(total / k), 0.0)
        return self.reward_weight * reward / k + self.tradeoff * _unit(k) * joint


def _unit(k: int) -> float:
    """What makes disjoint plans worth ln 2."""
    return LARGEST / float(np.log(k))


class JointSet(WorkingSet):
    """Keeps rewards (k,), images (k, B) and their sums of x ln x (k,), so that an offer costs two passes."""

    objective: JointDivergenceOnModel

    def __init__(self, objective: JointDivergenceOnModel, rows: Sequence[Floats]) -> None:
        self.objective, self.rows = objective, list(rows)
        self._rewards = np.array([row @ objective.mdp.reward for row in rows])
        self._images = objective.compared.forward(np.stack(self.rows)).copy()
        self._own = sum_x_log_x(self._images)
        self.value = self._value(self._rewards, self._own, self._images)

    def offer(self, i: int, row: Floats) -> Offer:
        rewards, own, images = self._rewards.copy(), self._own.copy(), self._images.copy()
        rewards[i], images[i] = row @ self.objective.mdp.reward, self.objective.compared.forward(row)
        own[i] = sum_x_log_x(images[i])
        return Offer(i, row, self.value, self._value(rewards, own, images), (rewards, own, images))

    def accept(self, offer: Offer) -> None:
        self.rows[offer.i], self.value = offer.row, offer.after
        self._rewards, self._own, self._images = offer.details

    def _value(self, rewards: Floats, own: Floats, images: Floats) -> float:
        return float(self.objective.combined(rewards.sum(), own.sum(), images.sum(axis=0), len(rewards)))


class JointCandidates(Candidates):
    """Keeps rewards (M,), images (M, B) and their sums of x ln x (M,)."""

    objective: JointDivergenceOnModel

    def __init__(self, objective: JointDivergenceOnModel, rows: Floats) -> None:
        super().__init__(objective, rows)
        self._rewards, self._images = rows @ objective.mdp.reward, objective.compared.forward(rows)
        self._own = sum_x_log_x(self._images)

    def contributions(self, members: Ints, i: int) -> Floats:
        others = np.delete(members, i)
        reward, own, total = (part[others].sum(axis=0) + part for part in (self._rewards, self._own, self._images))
        return self.objective.combined(reward, own, total, len(members))
