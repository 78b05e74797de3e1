"""Time per region of the map: rooms and passages that `manyways.model.regions` finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from manyways.behaviours.base import BEHAVIOURS, Behaviour
from manyways.behaviours.linear_map import Grouping
from manyways.errors import SettingError
from manyways.model.mdp import MDP
from manyways.model.regions import find_regions


@BEHAVIOURS.add
@dataclass(frozen=True)
class Regions(Behaviour):
    """Compare the time spent in each room and each passage of the map; all blocked cells together count as one more."""

    apart: ClassVar[float] = 0.025

    def on(self, mdp: MDP) -> Grouping:
        found = find_regions(mdp)
        if len(found.names) < 2:
            raise SettingError(
                f"the map of {mdp.name} has no narrow places that divide it into regions; ",
                in_python="use Near(2.0), which compares by distance",
                on_command_line="use --behaviour near, which compares by distance",
            )
        number = np.where(found.of_state < 0, len(found.names), found.of_state)
        return Grouping(number[mdp.choice_state])

    def describe(self) -> str:
        return "how time is shared between the rooms and passages of the map"
