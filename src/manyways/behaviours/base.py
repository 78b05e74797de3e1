"""The contract of behaviours, and their registry."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from manyways.behaviours.linear_map import LinearMap
from manyways.model.mdp import MDP
from manyways.registry import Registry


@dataclass(frozen=True)
class Behaviour(ABC):
    """What counts as different. Derive a frozen dataclass from it and register that with `@manyways.register`."""

    apart: ClassVar[float] = 0.1
    """Two ways nearer than this, in nats of at most 0.693, are not called different. Behaviours with few groups, in most of
    which all plans spend about the same time, have smaller distances and a smaller value."""

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
