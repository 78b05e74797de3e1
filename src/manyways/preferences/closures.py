"""Closures as draws of an unknown reward: entering what is closed costs what a trip is worth.

A plan that keeps away from the closed part has its own value; one that would enter it once on every trip loses all that it
earns. This is linear in the occupancy, so the set of plans with the highest expected best value under a random closure is a
`Representative` set like any other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from manyways.errors import SettingError, check_number
from manyways.model.closures import closures
from manyways.model.mdp import MDP
from manyways.model.trips import fewest_steps
from manyways.preferences.base import PREFERENCES, PreferencePrior, Prior, draws_of
from manyways.preferences.listed import Listed
from manyways.types import Floats

STEPS = 20
"""What is lost in models without trips, in steps."""


@PREFERENCES.add
@dataclass(frozen=True)
class PossibleClosures(PreferencePrior):
    """One of several things is closed, each as likely as the others; see `manyways.closures`.

    Attributes:
        labels, regions, states, actions: names of what may be closed; without any, doors, passages, labels or actions.
        loss: what entering it costs, in what a trip of the best plan earns.

    Example:
        >>> plan(mdp, k=3, objective=Representative(Preferences.closures(labels=("door",))))
    """

    labels: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()
    loss: float = 1.0

    def __post_init__(self) -> None:
        for kind in ("labels", "regions", "states", "actions"):
            given = getattr(self, kind)
            names = (given,) if isinstance(given, str) else tuple(given)
            if not all(isinstance(name, str) for name in names):
                raise SettingError(f"{kind} to be closed must be names, found {given!r:.80}")
            object.__setattr__(self, kind, names)
        object.__setattr__(self, "loss", check_number("the loss", self.loss, 0))

    def sample(self, mdp: MDP, count: int, rng: np.random.Generator) -> Floats:
        rewards = self._rewards(mdp, 1.0)
        return rewards[rng.integers(len(rewards), size=count)]

    def on(self, mdp: MDP, unit: float) -> Prior:
        return Listed(draws_of(mdp, self._rewards(mdp, unit)))

    def _rewards(self, mdp: MDP, unit: float) -> Floats:
        """(J, N) what each closure takes from the reward of each choice."""
        named = {kind: getattr(self, kind) or None for kind in ("labels", "regions", "states", "actions")}
        trip = fewest_steps(mdp) or STEPS
        return np.stack([-self.loss * unit * trip * closure.failing(mdp) for closure in closures(mdp, **named)])

    def describe(self) -> str:
        return "whoever finds something closed"
