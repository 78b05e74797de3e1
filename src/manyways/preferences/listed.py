"""A fixed list of rewards that may be the true ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from manyways.errors import SettingError
from manyways.model.mdp import MDP
from manyways.preferences.base import PREFERENCES, PreferencePrior, Prior, draws_of
from manyways.preferences.draws import Draws
from manyways.types import Floats


@PREFERENCES.add
@dataclass(frozen=True, eq=False, repr=False)
class PossibleRewards(PreferencePrior):
    """One of these is to be added to the known reward, each as likely as the others.

    Attributes:
        rewards: (M, S) rewards of states, or (M, N) of choices.

    Example: the floor of the hall may be slippery, which would cost 2 per step.

        >>> PossibleRewards([0 * mdp.labels["hall"], -2.0 * mdp.labels["hall"]])
    """

    rewards: Floats

    def __post_init__(self) -> None:
        try:
            given = np.array(self.rewards, dtype=np.float64)
        except (TypeError, ValueError):
            given = np.empty(0)
        if given.ndim != 2 or not len(given):
            raise SettingError(
                "possible rewards must be a list of at least one reward, each with a number per state or per choice"
            )
        given.flags.writeable = False
        object.__setattr__(self, "rewards", given)

    def sample(self, mdp: MDP, count: int, rng: np.random.Generator) -> Floats:
        del mdp
        return self.rewards[rng.integers(len(self.rewards), size=count)]

    def on(self, mdp: MDP, unit: float) -> Prior:
        del unit
        return Listed(draws_of(mdp, self.rewards))

    def __repr__(self) -> str:
        return f"PossibleRewards({len(self.rewards)} rewards)"

    def describe(self) -> str:
        return f"one of {len(self.rewards)} given rewards"


class Listed(Prior):
    """All of the list, as often as they fit, so that none is left out by chance."""

    def __init__(self, listed: Draws) -> None:
        self._listed = listed

    def draw(self, count: int, rng: np.random.Generator) -> Draws:
        size = len(self._listed)
        rest = rng.permutation(size)[: count % size] if count > size else np.empty(0, np.int64)
        return self._listed.taken(np.concatenate([np.tile(np.arange(size), max(count // size, 1)), rest]))
