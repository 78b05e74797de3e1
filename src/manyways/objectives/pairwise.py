"""Objectives that depend on the rewards and the pairwise divergences of the plans only.

    D(rho_1..k) = D(d_12, d_13, .., d_{k-1,k}),    d_ij = JSD(B rho_i || B rho_j)

with B the linear map of the behaviour. An objective states D and its derivatives by the distances; everything else
follows from the chain rule. Derivatives are stated as *pair weights*: how many times as much as in the mean of all
distances a pair counts. In the mean every pair has the weight 1.

*Gradient.* The weighted sum of the gradients of the distances.

*Costs.* The secant worths of the distances (`divergence.secant_worths`), weighted in the same way unless an objective
overrides `cost_weights`. Where D is not linear, a long step changes the weights; slopes of chords from a smaller distance
were tried instead of the derivatives, and found worse for `SpreadDivergence` and no better for `DeterminantDivergence`.

The working set keeps the distances, so that an offer costs k - 1 divergences and accepting it next to nothing.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import xlogy

from manyways.kernels import divergence as kernels
from manyways.objectives.base import SMOOTHING, Candidates, Offer, WorkingSet
from manyways.objectives.divergence import divergences_from, gradient_of_sum, secant_worths
from manyways.objectives.tradeoff import DiversityOnModel
from manyways.types import Floats, Ints
from manyways.vectors import plain, shared_like


@dataclass(frozen=True, eq=False)
class PairwiseOnModel(DiversityOnModel):
    """Mean reward + tradeoff x a function of the pairwise distances, over stacked (k, N) occupancies."""

    @abstractmethod
    def diversity(self, distances: Floats) -> Floats:
        """(..., k, k) -> (...): D of each set, for k of at least 2."""

    @abstractmethod
    def pair_weights(self, distances: Floats) -> Floats:
        """(k, k) -> (k, k): k (k - 1) / 2 times the derivative of D by the distance of each pair; k is at least 2.

        The diagonal is not used. Where D has a corner, some generalised derivative.
        """

    def cost_weights(self, distances: Floats, i: int) -> Floats:
        """(k, k) -> (k - 1,): the weights of plan i with each other plan for `costs`."""
        return np.delete(self.pair_weights(distances)[i], i)

    def pair_weights_of(self, x: Floats) -> Floats:
        """(k, N) -> (k, k): the pair weights of a set."""
        return self.pair_weights(self.distances(x))

    def value(self, x: Floats) -> float:
        return self.combined(x @ self.mdp.reward, self.distances(x))

    def combined(self, rewards: Floats, distances: Floats) -> float:
        """f from the rewards (k,) and the pairwise distances (k, k)."""
        if len(rewards) == 1:
            return float(rewards[0])
        return self.reward_weight * float(rewards.mean()) + self.tradeoff * float(self.diversity(distances))

    def gradient(self, x: Floats, smoothing: float = SMOOTHING) -> Floats:
        k, images = len(x), self.compared.forward(x)
        if k == 1:
            return self.mdp.reward[None].copy()
        weights = self.pair_weights_of(x)
        pulls = [gradient_of_sum(images, i, smoothing, np.delete(weights[i], i)) / (k * (k - 1)) for i in range(k)]
        return self._in_choices(np.stack(pulls), k)

    def costs(self, rows: Sequence[Floats], i: int, least: float) -> Floats:
        """(N,) secant costs: the worth of each choice to plan i per unit of time, if all the time that the plan has in
        that choice's state (or `least`, if that is more) were spent on it. See `secant_worths`."""
        images = np.stack([self.compared.forward(row) for row in rows])
        return self.costs_at(rows[i], images, xlogy(images, images), i, least, self.distances(np.stack(rows)))

    def costs_at(
        self, row: Floats, images: Floats, images_log: Floats, i: int, least: float, distances: Floats
    ) -> Floats:
        """(N,) `costs`, from the plan itself, the images x (k, B) of all plans, x ln x, and their distances (k, k)."""
        k = len(images)
        if k == 1:
            return self.mdp.reward.copy()
        weights, of_others = np.zeros(k), self.cost_weights(distances, i)
        weights[:i], weights[i + 1 :] = of_others[:i], of_others[i:]
        if not self.compared.identity:
            worths = secant_worths(np.maximum(self.compared.forward(row), least), images, weights)
            return self._in_choices(2 / (k * (k - 1)) * worths, k)
        costs, mdp = np.empty(len(row)), self.mdp
        per_reward, per_worth = self.reward_weight / k, self.tradeoff / (k * (k - 1))
        row, images, images_log, reward = plain(row), plain(images), plain(images_log), plain(mdp.reward)
        kernels.secant_costs(
            mdp.first_choice, row, least, images, images_log, weights, reward, per_reward, per_worth, costs
        )
        return shared_like(mdp.reward, costs)

    def contribution(self, rows: Sequence[Floats], i: int, row: Floats) -> float:
        distances = self.distances(np.stack([*rows[:i], row, *rows[i + 1 :]]))
        return self.part_of_one(i, float(row @ self.mdp.reward), distances)

    def part_of_one(self, i: int, reward: float, distances: Floats) -> float:
        """The contribution of plan i, from its reward and the distances (k, k) of the set."""
        del i  # only needed where D is a sum, of which the terms of plan i suffice
        k = len(distances)
        if k == 1:
            return reward
        return self.reward_weight * reward / k + self.tradeoff * float(self.diversity(distances))

    def distances_from(self, rows: Sequence[Floats], i: int, row: Floats) -> Floats:
        """(k - 1,) the divergences of `row` (N,), as plan i, from the other plans."""
        others = [self.compared.forward(other) for j, other in enumerate(rows) if j != i]
        return divergences_from(self.compared.forward(row), others)

    def working_set(self, rows: Sequence[Floats]) -> WorkingSet:
        return PairwiseSet(self, rows)

    def candidates(self, rows: Floats) -> Candidates:
        return PairwiseCandidates(self, rows)


class PairwiseSet(WorkingSet):
    """Keeps rewards (k,), distances (k, k), images x (k, B) and x ln x."""

    objective: PairwiseOnModel

    def __init__(self, objective: PairwiseOnModel, rows: Sequence[Floats]) -> None:
        self.objective, self.rows = objective, list(rows)
        self._images = np.stack([objective.compared.forward(row) for row in rows])
        self._images_log = xlogy(self._images, self._images)
        self._rewards = np.array([row @ objective.mdp.reward for row in rows])
        self._distances = objective.distances(np.stack(self.rows))
        self.value = objective.combined(self._rewards, self._distances)

    def costs(self, i: int, least: float) -> Floats:
        return self.objective.costs_at(self.rows[i], self._images, self._images_log, i, least, self._distances)

    def offer(self, i: int, row: Floats) -> Offer:
        distances, image = self._distances.copy(), self.objective.compared.forward(row)
        distances[i] = distances[:, i] = divergences_from(image, self._images, i)
        before = self.objective.part_of_one(i, self._rewards[i], self._distances)
        reward = float(row @ self.objective.mdp.reward)
        after = self.objective.part_of_one(i, reward, distances)
        return Offer(i, row, before, after, (reward, distances, image))

    def accept(self, offer: Offer) -> None:
        i = offer.i
        self.rows[i] = offer.row
        self._rewards[i], self._distances, self._images[i] = offer.details
        kernels.x_log_x(self._images[i], self._images_log[i])
        self.value = self.objective.combined(self._rewards, self._distances)


class PairwiseCandidates(Candidates):
    """Keeps rewards (M,) and distances (M, M)."""

    objective: PairwiseOnModel

    def __init__(self, objective: PairwiseOnModel, rows: Floats) -> None:
        super().__init__(objective, rows)
        self._rewards, self._distances = rows @ objective.mdp.reward, objective.distances(rows)

    def contributions(self, members: Ints, i: int) -> Floats:
        k, count = len(members), len(self.rows)
        if k == 1:
            return self._rewards.copy()
        sets = np.tile(members, (count, 1))
        sets[:, i] = np.arange(count)
        diversity = self.objective.diversity(self._distances[sets[:, :, None], sets[:, None, :]])
        return self.objective.reward_weight * self._rewards / k + self.objective.tradeoff * diversity
