"""The contract of behaviours, and their registry."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from manyways.behaviours.linear_map import LinearMap
from manyways.model.mdp import MDP
from manyways.registry import Registry


@dataclass(frozen=True)
class Behaviour(ABC):
    """What counts as different. Derive a frozen dataclass from it and register that with `@manyways.register`."""

    @abstractmethod
    def on(self, mdp: MDP) -> LinearMap:
        """The map on one model: `Grouping(groups)`, or `Mixing(matrix)` where a choice counts in several places.

        Raises:
            SettingError: if the model lacks something that the behaviour needs.
        """

    def describe(self) -> str:
        """What is compared, as a phrase for the page: "in which states time is spent"."""
        return repr(self)


BEHAVIOURS: Registry[Behaviour] = Registry("behaviour", Behaviour, "StateActions()")
