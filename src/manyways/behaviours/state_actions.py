"""Time per state and action: what the paper compares."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from manyways.behaviours.base import BEHAVIOURS, Behaviour
from manyways.behaviours.linear_map import Grouping
from manyways.model.mdp import MDP


@BEHAVIOURS.add
@dataclass(frozen=True)
class StateActions(Behaviour):
    """Compare the time spent on each action in each state."""

    def on(self, mdp: MDP) -> Grouping:
        return Grouping(np.arange(mdp.n_choices))

    def describe(self) -> str:
        return "what is done where"
