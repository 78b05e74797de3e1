"""Names of generated worlds: `four-rooms:0`, `nine-rooms:7`, `rooms-100:0` (size and seed)."""

from __future__ import annotations

import re
from typing import Any

from manyways.errors import SourceError
from manyways.formats.format import FORMATS, Format, Parser, number
from manyways.model.mdp import MDP
from manyways.worlds import four_rooms, nine_rooms, tiled_rooms

REWARDS: dict[str, Parser] = dict.fromkeys(("correct_transition", "wall_reward", "goal_reward", "step_reward"), number)
"""The settings that all worlds on grids share, generated or drawn."""


def read_rooms(place: str, **settings: Any) -> MDP:
    """The world of a name such as `nine-rooms:7`; without a seed after the colon, the seed is 0."""
    name, _, given = place.partition(":")
    if not re.fullmatch("[0-9]{0,18}", given):
        raise SourceError(f"{name}: the seed after the colon must be an integer of at least 0, found {given[:60]!r}")
    seed = int(given or 0)
    if name in WORLDS:
        return WORLDS[name](seed, **settings)
    return tiled_rooms(int(name.removeprefix("rooms-")), seed, **settings)


WORLDS = {"four-rooms": four_rooms, "nine-rooms": nine_rooms}
for _name, _pattern in (("four-rooms", "four-rooms"), ("nine-rooms", "nine-rooms"), ("rooms-100", "rooms-[0-9]{1,5}")):
    FORMATS.add(
        Format(
            f"generated worlds such as {_name}:7",
            read_rooms,
            names=f"{_pattern}(:.*)?",
            settings=REWARDS,
            example=f"{_name}:7",
        )
    )
