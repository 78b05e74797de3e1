"""Text maps and world files.

A text map has one character per cell: `#` wall or obstacle, `.` free, `S` start, `G` goal. A world file is a JSON object
with such a map under `rows` and, optionally, `name`, `correct_transition` and `reward: {wall, goal, step}`; other keys
are ignored.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from manyways.errors import SettingError, SourceError, check_number
from manyways.files import read_text
from manyways.formats.format import FORMATS, Format, integer, number, truth
from manyways.formats.room_worlds import REWARDS as GRID_REWARDS
from manyways.model.mdp import MDP
from manyways.worlds.grid import LARGEST_WORLD, grid_world

CHARACTERS = "#.SG"
LARGEST_MAP = 256 * 2**20
REWARDS = {"wall": "wall_reward", "goal": "goal_reward", "step": "step_reward"}


def world_from_text(text: str, name: str, **settings: Any) -> MDP:
    """The world of a text map; blank lines at its end are ignored."""
    return world_from_rows(text.rstrip().splitlines(), name, **settings)


def world_from_json(text: str, name: str, **settings: Any) -> MDP:
    """The world of a world file; `settings` take precedence over the file."""
    try:
        world = json.loads(text)
    except json.JSONDecodeError as error:
        raise SourceError(
            f"{name} is not a world file: line {error.lineno}, column {error.colno}: {error.msg}"
        ) from None
    except (RecursionError, ValueError) as error:  # thousands of nested lists, or numbers with thousands of digits
        raise SourceError(f"{name} is not a world file: {error}") from None
    if not isinstance(world, dict) or not isinstance(world.get("rows"), list):
        raise SourceError(f"{name} is not a world file: expected a JSON object with the map under 'rows'")
    given: dict[str, float] = {}
    if "correct_transition" in world:
        given["correct_transition"] = _number(world["correct_transition"], name, "correct_transition")
    rewards = world.get("reward", {})
    if not isinstance(rewards, dict):
        raise SourceError(f"{name}: 'reward' must be an object with wall, goal and step")
    for key, value in rewards.items():
        if key not in REWARDS:
            raise SourceError(f"{name}: unknown reward {key!r}, expected one of {', '.join(REWARDS)}")
        given[REWARDS[key]] = _number(value, name, f"reward.{key}")
    return world_from_rows(world["rows"], str(world.get("name", name)), **(given | settings))


def world_from_rows(rows: Sequence[Any], name: str, **settings: Any) -> MDP:
    """The world of a map given as a list of strings of equal length."""
    if not rows or not all(isinstance(row, str) and row for row in rows):
        raise SourceError(f"{name}: the map is empty or has an empty row")
    cells = sum(map(len, rows))
    if cells > LARGEST_WORLD:
        raise SourceError(f"{name}: the map has {cells:,} cells; it may have at most {LARGEST_WORLD:,}")
    for count, row in enumerate(rows, start=1):
        if len(row) != len(rows[0]):
            raise SourceError(
                f"{name}: row {count} of the map has {len(row)} cells, the first has {len(rows[0])}; "
                "rows must have the same length"
            )
        for column, character in enumerate(row, start=1):
            if character not in CHARACTERS:
                raise SourceError(
                    f"{name}: unknown character {character!r} in row {count}, column {column}; "
                    f"the characters of a map are {' '.join(CHARACTERS)}"
                )
    cells = np.array([list(row) for row in rows])
    return grid_world(
        cells == "#", _only(cells, "S", "start", name), _only(cells, "G", "goal", name), name=name, **settings
    )


def _only(cells: np.ndarray, character: str, what: str, name: str) -> tuple[int, int]:
    found = np.argwhere(cells == character)
    if len(found) != 1:
        places = ", ".join(f"row {r + 1} column {c + 1}" for r, c in found[:3])
        raise SourceError(
            f"{name}: the map has {len(found)} cells {character!r} ({places or 'none'}), expected exactly one {what}"
        )
    return int(found[0][0]), int(found[0][1])


def _number(value: Any, name: str, what: str) -> float:
    try:
        return check_number(what, value)
    except (SettingError, OverflowError):
        raise SourceError(f"{name}: {what} must be a finite number, found {str(value)[:40]!r}") from None


def read_map(path: Path, **settings: Any) -> MDP:
    """The world in a text map or a world file; the latter ends in .json or begins with a brace."""
    if path.suffix == ".mw":
        raise SourceError(
            f"{path} is not a model: it contains plans; ",
            in_python="use manyways.load to read it",
            on_command_line="use the commands show, export or serve",
        )
    text = read_text(path, LARGEST_MAP, "expected a text map or a JSON world file")
    reader = world_from_json if path.suffix == ".json" or text.lstrip().startswith("{") else world_from_text
    return reader(text, path.stem, **settings)


GRID = {**GRID_REWARDS, "directions": integer, "enterable_walls": truth, "diagonal_steps": number}
"""The settings of worlds on grids, which are arguments of `grid_world`."""
TEXT_MAPS = FORMATS.add(
    Format("text maps and JSON world files", read_map, endings=(".txt", ".json"), settings=GRID, example="map.txt")
)
"""The format of files whose ending no format has, too."""
