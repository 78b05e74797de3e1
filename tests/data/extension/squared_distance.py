"""A behaviour and an objective from outside the package: each is one small class."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

import manyways as mw


@mw.register
@dataclass(frozen=True)
class Blurred(mw.Behaviour):
    """Half of the time of each choice counts in its own state, half in the states that it may lead to."""

    own: float = 0.5

    def on(self, mdp: mw.MDP) -> mw.Mixing:
        here = sparse.csr_array((np.ones(mdp.n_choices), (mdp.choice_state, np.arange(mdp.n_choices))))
        return mw.Mixing(self.own * here + (1 - self.own) * mdp.transitions.T)

    def describe(self) -> str:
        return "where time is spent, roughly"


@mw.register
@dataclass(frozen=True)
class SquaredDistance(mw.Objective):
    """Mean reward + weight x the sum of squared distances between the plans."""

    weight: float = 4.0

    def on(self, mdp: mw.MDP, compared) -> "SquaredDistanceOnModel":
        return SquaredDistanceOnModel(mdp, compared, self.weight)


@dataclass(frozen=True, eq=False)
class SquaredDistanceOnModel(mw.SetObjective):
    weight: float

    def value(self, x: np.ndarray) -> float:
        image = self.compared.forward(x)
        apart = ((image[:, None] - image[None]) ** 2).sum() / 2
        return float((x @ self.mdp.reward).mean() + self.weight * apart)

    def gradient(self, x: np.ndarray, smoothing: float = 0.0) -> np.ndarray:
        image = self.compared.forward(x)
        pull = self.compared.backward(len(x) * image - image.sum(axis=0))
        return self.mdp.reward / len(x) + 2 * self.weight * pull
