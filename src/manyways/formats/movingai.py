"""Maps of the MovingAI benchmark (`.map`).

A file begins with the lines `type octile`, `height H`, `width W` and `map`. The rows follow, with one character per
cell: `.`, `G` and `S` (swamp) are free; `@`, `O`, `T` (trees) and `W` (water) are blocked. Start and goal are not in
the map but in separate scenario files. They are given as in those files: x (column) and y (row) of a cell, counted
from 0 at the top left.

As in the benchmark, moves go in eight directions and do not cut corners, and blocked cells are not states.
"""

from __future__ import annotations

import re
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from manyways.errors import SourceError
from manyways.files import read_text
from manyways.formats.format import FORMATS, Format
from manyways.formats.placed_maps import (
    LARGEST_MAP_FILE,
    MOST_CELLS,
    OPEN_GRID,
    PLACED,
    Place,
    check_count,
    check_free,
    check_inside,
    place,
    whole_cell,
)
from manyways.model.mdp import MDP
from manyways.types import Bools
from manyways.worlds.grid import grid_world

FREE, BLOCKED = ".GS", "@OTW"
LONGEST_HEADER = 16
"""Lines in which the line `map` is searched for."""


def read_movingai(
    path: str | PathLike[str], *, start: Place | None = None, goal: Place | None = None, **settings: Any
) -> MDP:
    """The world of a MovingAI map.

    Args:
        path: the `.map` file.
        start: (x, y) or "x,y": column and row, counted from 0, as in scenario files.
        goal: likewise.
        settings: of `grid_world`; the defaults are 8 directions and walls that cannot be entered.
    """
    text = read_text(Path(path), LARGEST_MAP_FILE, "expected a MovingAI map")
    return world_from_movingai(text, Path(path).stem, start=start, goal=goal, **settings)


def world_from_movingai(
    text: str, name: str, *, start: Place | None = None, goal: Place | None = None, **settings: Any
) -> MDP:
    """The world of the text of a MovingAI map; see `read_movingai`."""
    blocked = _blocked_cells(text, name)
    check_count(blocked, name, "cut the map")
    ends = []
    for what, given in (("start", start), ("goal", goal)):
        x, y = place(given, what, name, f"{name}.map?start=1,2&goal=30,40")
        cell = whole_cell(x, y, what, name)
        check_inside(blocked.shape, cell, what, f"x {x:g}, y {y:g}", name)
        check_free(blocked, cell, what, f"x {x:g}, y {y:g}", lambda cell: f"x {cell[1]}, y {cell[0]}", name)
        ends.append(cell)
    return grid_world(blocked, *ends, name=name, **(OPEN_GRID | settings))


def _blocked_cells(text: str, name: str) -> Bools:
    """(height, width) which cells are blocked."""
    lines = [line.rstrip("\r") for line in text.rstrip().split("\n")]
    opening = [line.strip().partition(" ") for line in lines[:LONGEST_HEADER]]
    begin = next((number for number, (key, _, _) in enumerate(opening) if key == "map"), None)
    if begin is None:
        raise SourceError(
            f"{name} is not a MovingAI map: expected the lines 'type octile', 'height H', 'width W' and 'map' before the rows"
        )
    header = {key: value.strip() for key, _, value in opening[:begin]}
    if header.get("type") != "octile":
        raise SourceError(f"{name}: expected a MovingAI map of type octile, found type {header.get('type', '')[:40]!r}")
    height, width = (_size(header.get(key, ""), key, name) for key in ("height", "width"))
    if height * width > MOST_CELLS:
        raise SourceError(f"{name}: {height} x {width} cells are too many; a map may have at most {MOST_CELLS:,}")
    rows = lines[begin + 1 :]
    if len(rows) != height:
        raise SourceError(f"{name}: the header says height {height}, but {len(rows)} rows follow")
    for number, row in enumerate(rows, start=1):
        if len(row) != width:
            raise SourceError(f"{name}: the header says width {width}, but row {number} has {len(row)} cells")
    # Characters as code points: a list of one-character strings would take a hundred bytes per cell.
    codes = np.frombuffer("".join(rows).encode("utf-32-le", "surrogatepass"), "<u4").reshape(height, width)
    blocked = np.isin(codes, [ord(character) for character in BLOCKED])
    unknown = np.argwhere(~blocked & ~np.isin(codes, [ord(character) for character in FREE]))
    if len(unknown):
        row, column = map(int, unknown[0])
        raise SourceError(
            f"{name}: unknown character {rows[row][column]!r} in row {row + 1}, column {column + 1} of the map; "
            f"free cells are {' '.join(FREE)}, blocked ones {' '.join(BLOCKED)}"
        )
    return blocked


def _size(text: str, key: str, name: str) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", text) or int(text) == 0:
        raise SourceError(
            f"{name}: expected a line '{key} N' with an integer of at least 1 before 'map', found {text[:40]!r}"
        )
    return int(text)


FORMATS.add(
    Format(
        "maps of the MovingAI benchmark",
        read_movingai,
        endings=(".map",),
        settings=PLACED,
        example="maze.map?start=1,2&goal=30,40",
    )
)
