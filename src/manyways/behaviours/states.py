"""Time per state."""

from __future__ import annotations

from dataclasses import dataclass

from manyways.behaviours.base import BEHAVIOURS, Behaviour
from manyways.behaviours.linear_map import Grouping
from manyways.model.mdp import MDP


@BEHAVIOURS.add
@dataclass(frozen=True)
class States(Behaviour):
    """Compare the time spent in each state, whatever is done there."""

    def on(self, mdp: MDP) -> Grouping:
        return Grouping(mdp.choice_state)

    def describe(self) -> str:
        return "in which states time is spent"
