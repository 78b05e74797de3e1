"""The contract of priors over unknown rewards, and their registry."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from manyways.behaviours.linear_map import Grouping
from manyways.errors import SettingError
from manyways.model.mdp import MDP
from manyways.preferences.draws import Draws, Family, Part
from manyways.registry import Registry
from manyways.types import Floats

MOST_NUMBERS = 2**27
"""Draws that are given as rewards of states or choices have at most this many numbers: 1 GiB."""


class Prior(ABC):
    """A prior on one model."""

    @abstractmethod
    def draw(self, count: int, rng: np.random.Generator) -> Draws:
        """So many draws."""

    def moved(self, draws: Draws, step: float, rng: np.random.Generator) -> Draws | None:
        """Each draw changed a little, by a step between 0 (not at all) and 1 (a new one); None if the prior has no such
        changes.

        Draws from the prior must stay draws from the prior, and a change and the change back must be equally likely.
        """
        del draws, step, rng
        return None


@dataclass(frozen=True)
class PreferencePrior(ABC):
    """What a person may prefer, as settings. For a prior of your own, derive a frozen dataclass that defines `sample`."""

    @abstractmethod
    def sample(self, mdp: MDP, count: int, rng: np.random.Generator) -> Floats:
        """(count, S) or (count, N): random rewards of states or of choices, to be added to the known reward."""

    def on(self, mdp: MDP, unit: float) -> Prior:
        """The prior on one model; `unit` is a typical size of its rewards per step."""
        del unit
        return SampledPrior(self, mdp)

    def describe(self) -> str:
        """What is preferred, as a phrase for the page."""
        return repr(self)


PREFERENCES: Registry[PreferencePrior] = Registry("prior", PreferencePrior, "Preferences()")


class SampledPrior(Prior):
    """A prior that is known by its samples only."""

    def __init__(self, settings: PreferencePrior, mdp: MDP) -> None:
        self._settings, self._mdp = settings, mdp

    def draw(self, count: int, rng: np.random.Generator) -> Draws:
        return draws_of(self._mdp, self._settings.sample(self._mdp, count, rng))


def draws_of(mdp: MDP, rewards: Floats | Sequence[Floats]) -> Draws:
    """Given rewards, (M, S) of states or (M, N) of choices, as draws.

    Raises:
        SettingError: if they have another shape, are not finite, or are too many.
    """
    given = np.asarray(rewards, dtype=np.float64)
    expected = f"(m, {mdp.n_states}) rewards of states or (m, {mdp.n_choices}) rewards of choices"
    if given.ndim != 2 or not len(given) or given.shape[1] not in (mdp.n_states, mdp.n_choices):
        raise SettingError(f"expected possible rewards of {mdp.name} as {expected}, found shape {given.shape}")
    if not np.isfinite(given).all():
        raise SettingError(f"expected finite possible rewards of {mdp.name}, found {given[~np.isfinite(given)][0]}")
    if given.size > MOST_NUMBERS:
        raise SettingError(
            f"{len(given)} possible rewards of {mdp.name} take {8 * given.size / 2**30:.1f} GiB, more than 1 GiB; give fewer"
        )
    by_state = given.shape[1] == mdp.n_states
    places = Grouping(mdp.choice_state if by_state else np.arange(mdp.n_choices))
    family = Family("states" if by_state else "choices", places)
    return Draws((Part(family, np.arange(len(given)), given, np.empty((len(given), 0))),))
