"""Names of generated worlds: `four-rooms:0`, `nine-rooms:7`, `rooms-100:0` (size and seed).

Worlds of any size can be written to an HDF5 file a few rows at a time, so that only their map is ever whole in memory.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from manyways.errors import SourceError
from manyways.formats.format import FORMATS, Format, Parser, number
from manyways.formats.hdf5 import BLOCK, writing_model
from manyways.model.mdp import MDP
from manyways.worlds import four_rooms, nine_rooms, tiled_rooms
from manyways.worlds.grid import MOVES, bands
from manyways.worlds.rooms import drawn_tiled_rooms

REWARDS: dict[str, Parser] = dict.fromkeys(("correct_transition", "wall_reward", "goal_reward", "step_reward"), number)
"""The settings that all worlds on grids share, generated or drawn."""


def read_rooms(place: str, **settings: Any) -> MDP:
    """The world of a name such as `nine-rooms:7`; without a seed after the colon, the seed is 0."""
    name, seed = _name_and_seed(place)
    if name in WORLDS:
        return WORLDS[name](seed, **settings)
    return tiled_rooms(_size(name), seed, **settings)


def write_rooms(place: str, path: Path, **settings: Any) -> None:
    """Write the world of a name such as `rooms-5000:0` to an HDF5 file, a few rows at a time."""
    name, seed = _name_and_seed(place)
    drawn, given = drawn_tiled_rooms(_size(name), seed, **settings)
    columns = drawn.walls.shape[1]
    marks = {"wall": drawn.walls.ravel(), "door": drawn.doors.ravel()}
    ends = {what: row * columns + column for what, (row, column) in (("start", drawn.start), ("goal", drawn.goal))}
    labels = ["wall", "start", "goal", "door"]
    with writing_model(path, drawn.walls.size) as writer:
        for band in bands(drawn.walls, drawn.start, drawn.goal, given, BLOCK):
            writer.add_states(band.counts, band.transitions, band.reward, band.actions)
            for number, label in enumerate(labels):
                marked = band.cells == ends[label] if label in ends else marks[label][band.cells]
                writer.append(f"label{number}", marked)
            writer.append("start", (band.cells == ends["start"]).astype(np.float64))
            writer.append("cells", band.cells)
        writer.append("blocked", drawn.walls)
        moves = list(MOVES)[: given.directions]
        writer.finish([*moves, "stop"], labels=labels, layout="grid")


def _name_and_seed(place: str) -> tuple[str, int]:
    name, _, given = place.partition(":")
    if not re.fullmatch("[0-9]{0,18}", given):
        raise SourceError(f"{name}: the seed after the colon must be an integer of at least 0, found {given[:60]!r}")
    return name, int(given or 0)


def _size(name: str) -> int:
    return int(name.removeprefix("rooms-"))


WORLDS = {"four-rooms": four_rooms, "nine-rooms": nine_rooms}
for _name, _pattern in (("four-rooms", "four-rooms"), ("nine-rooms", "nine-rooms"), ("rooms-100", "rooms-[0-9]{1,5}")):
    FORMATS.add(
        Format(
            f"generated worlds such as {_name}:7",
            read_rooms,
            names=f"{_pattern}(:.*)?",
            settings=REWARDS,
            write_in_pieces=None if _name in WORLDS else write_rooms,
            example=f"{_name}:7",
        )
    )
