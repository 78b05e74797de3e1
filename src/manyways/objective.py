"""What is maximised: mean reward plus tradeoff times diversity, eq. (main) of the paper.

    f(rho_1..k) = 1/k sum_i <rho_i, r> + tradeoff * 2 / (k (k - 1)) sum_{i<j} JSD(B rho_i || B rho_j)

with B adding up by the behaviour's groups. For k = 1 there is no pair, and f is the reward alone: plain planning.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from manyways.arrays import Floats, Ints
from manyways.behaviour import Behaviour, StateActions
from manyways.diversity import (
    block_gradient,
    divergences,
    joint_gradient,
    pairwise_distances,
    secant_pull,
)
from manyways.errors import check_number
from manyways.mdp import MDP

SMOOTHING = 1e-12
"""Of gradients that should be exact: small enough that only true zeros feel it."""


@dataclass(frozen=True, eq=False)
class Objective:
    """Value and gradient of f over stacked (k, N) occupancies."""

    mdp: MDP
    tradeoff: float
    behaviour: Behaviour = field(default_factory=StateActions)

    def __post_init__(self) -> None:
        check_number("the tradeoff", self.tradeoff, 0)

    def image(self, x: Floats) -> Floats:
        """(..., N) -> (..., B): the behaviour of occupancies."""
        if self._plain:
            return x
        if x.ndim == 1:
            return np.bincount(self.groups, weights=x, minlength=self._n_groups).astype(np.float64, copy=False)
        return np.stack([self.image(row) for row in x])

    def value(self, x: Floats) -> float:
        """(k, N) -> f."""
        return self.combine(x @ self.mdp.reward, self.distances(x))

    def combine(self, rewards: Floats, distances: Floats) -> float:
        """f from the rewards (k,) and the pairwise distances (k, k)."""
        k = len(rewards)
        spread = float(distances.sum()) / (k * (k - 1)) if k > 1 else 0.0
        return float(rewards.mean()) + self.tradeoff * spread

    def gradient(self, x: Floats, smoothing: float = SMOOTHING) -> Floats:
        """(k, N) -> (k, N): by all plans at once, as the paper's algorithms need it."""
        return self._back(joint_gradient(self.image(x), smoothing))

    def block_gradient(self, x: Floats, i: int, smoothing: float = SMOOTHING) -> Floats:
        """(k, N) -> (N,): by plan i alone, the others staying as they are."""
        return self._back(block_gradient(self.image(x), i, smoothing)[None, :], len(x))[0]

    def secant(self, x: Floats | list[Floats], i: int, least: float) -> Floats:
        """(k, N) -> (N,): the worth of each choice to plan i per unit of time, were all the time that the
        plan has in that choice's state (or `least`, if that is more) spent on it. See `secant_pull`."""
        k = len(x)
        if k == 1:
            return self.mdp.reward.copy()
        others = [self.image(row) for j, row in enumerate(x) if j != i]
        if self._plain:
            mass = np.add.reduceat(x[i], self.mdp.first_choice[:-1])[self.mdp.choice_state]
        else:
            mass = self.image(x[i])
        pull = secant_pull(np.maximum(mass, least), others)
        return self._back(2 / (k * (k - 1)) * pull[None, :], k)[0]

    def block_value(self, x: Floats | list[Floats], i: int, row: Floats) -> float:
        """What plan i contributes to f if it is `row` (N,): f changes by as much as this does."""
        return self.contribution(len(x), float(row @ self.mdp.reward), self.distances_to(x, i, row))

    def contribution(self, k: int, reward: float, distances: Floats) -> float:
        """One of k plans' part in f, from its reward and its distances to the others."""
        return reward / k + (2 * self.tradeoff / (k * (k - 1)) * float(distances.sum()) if k > 1 else 0.0)

    def distances_to(self, x: Floats | list[Floats], i: int, row: Floats) -> Floats:
        """(k - 1,) the divergences of `row` (N,), as plan i, from the other plans."""
        return divergences(self.image(row), [self.image(other) for j, other in enumerate(x) if j != i])

    def distances(self, x: Floats) -> Floats:
        """(k, N) -> (k, k): the pairwise divergences of the behaviours."""
        return pairwise_distances(self.image(x))

    def _back(self, pull: Floats, k: int | None = None) -> Floats:
        """(m, B) gradients of the diversity -> (m, N) gradients of f."""
        pull = pull if self._plain else pull[:, self.groups]
        return self.mdp.reward / (k or len(pull)) + self.tradeoff * pull

    @cached_property
    def groups(self) -> Ints:
        """(N,) the group in which each choice is compared."""
        return np.ascontiguousarray(self.behaviour.groups(self.mdp), dtype=np.int64)

    @cached_property
    def _n_groups(self) -> int:
        return int(self.groups.max()) + 1

    @property
    def _plain(self) -> bool:
        return isinstance(self.behaviour, StateActions)
