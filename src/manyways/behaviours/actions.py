"""Time per action."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from manyways.behaviours.base import BEHAVIOURS, Behaviour
from manyways.behaviours.linear_map import Grouping
from manyways.model.mdp import MDP


@BEHAVIOURS.add
@dataclass(frozen=True)
class Actions(Behaviour):
    """Compare the time spent on each action, wherever it is taken."""

    apart: ClassVar[float] = 0.025

    def on(self, mdp: MDP) -> Grouping:
        return Grouping(mdp.actions.astype(np.int64))

    def describe(self) -> str:
        return "how often each action is taken"
