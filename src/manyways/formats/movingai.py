"""Maps of the MovingAI benchmark (`.map`), and what maps of foreign formats share.

A file opens with the lines `type octile`, `height`, `width` and `map`; then come the rows, one
character a cell: `.`, `G` and `S` (swamp) are free, `@`, `O`, `T` (trees) and `W` (water) blocked.
Start and goal are not in the map, but in scenarios beside it: they are given as there, x (column)
and y (row) of a cell counted from 0 at the top left.

As in the benchmark one moves in eight directions, past no corner, and blocked cells are no states.
"""

from __future__ import annotations

import math
import re
import stat
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from manyways.errors import SettingError, SourceError
from manyways.formats.format import FORMATS, Format, any_text
from manyways.formats.text_maps import GRID
from manyways.model.mdp import MDP
from manyways.types import Bools
from manyways.worlds.grid import LARGEST_WORLD, grid_world

FREE, BLOCKED = ".GS", "@OTW"
LONGEST_HEADER = 16
LARGEST_FILE = 256 * 2**20
LARGEST_GRID = 64_000_000
OPEN_GRID: dict[str, Any] = {"directions": 8, "enterable_walls": False}
"""How one moves on maps of foreign formats, unless told otherwise."""

Place = str | tuple[float, float]


def read_movingai(
    path: str | PathLike[str], *, start: Place | None = None, goal: Place | None = None, **settings: Any
) -> MDP:
    """The world of a MovingAI map.

    Args:
        path: to the `.map` file.
        start: (x, y) or "x,y": column and row from 0, as in scenario files.
        goal: likewise.
        settings: of `grid_world`; 8 directions and walls that cannot be entered unless told otherwise.
    """
    content = file_content(Path(path), LARGEST_FILE)
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        raise SourceError(f"{path} is not a text file; expected a MovingAI map") from None
    return world_from_movingai(text, Path(path).stem, start=start, goal=goal, **settings)


def world_from_movingai(
    text: str, name: str, *, start: Place | None = None, goal: Place | None = None, **settings: Any
) -> MDP:
    """The world of the text of a MovingAI map; see `read_movingai`."""
    blocked = _cells(text, name)
    check_count(blocked, name, "cut the map")
    ends = []
    for what, given in (("start", start), ("goal", goal)):
        x, y = place(given, what, name, f"{name}.map?start=1,2&goal=30,40")
        if x != int(x) or y != int(y):
            raise SettingError(f"{name}: the {what} must be a cell, two whole numbers x,y; found {x:g},{y:g}")
        ends.append((int(y), int(x)))
        check_inside(blocked.shape, ends[-1], what, f"x {x:g}, y {y:g}", name)
        check_free(blocked, ends[-1], what, f"x {x:g}, y {y:g}", name)
    return grid_world(blocked, *ends, name=name, **(OPEN_GRID | settings))


def _cells(text: str, name: str) -> Bools:
    """(height, width) the blocked cells."""
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
    if height * width > LARGEST_GRID:
        raise SourceError(f"{name}: {height} x {width} cells are too many; a map may have at most {LARGEST_GRID:,}")
    rows = lines[begin + 1 :]
    if len(rows) != height:
        raise SourceError(f"{name}: the header says height {height}, but {len(rows)} rows follow")
    for number, row in enumerate(rows, start=1):
        if len(row) != width:
            raise SourceError(f"{name}: the header says width {width}, but row {number} has {len(row)} cells")
    # Characters as numbers: a list of them as strings would take a hundred bytes a cell.
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
            f"{name}: expected a line '{key} N' with a whole number from 1 on before 'map', found {text[:40]!r}"
        )
    return int(text)


# ---- shared with other formats ------------------------------------------------------------------


def file_content(path: Path, largest: int) -> bytes:
    """The bytes of a file that has at most `largest`."""
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):  # a pipe or /dev/zero would never end
            raise SourceError(f"{path} is a folder or device, expected a file")
        if found.st_size > largest:
            raise SourceError(f"{path} has {found.st_size:,} bytes; it may have at most {largest:,}")
        return path.read_bytes()
    except OSError as error:
        raise SourceError(f"cannot read {str(path)[:200]}: {error.strerror or error}") from None
    except ValueError as error:
        if isinstance(error, SourceError):
            raise
        raise SourceError(f"cannot read {str(path)[:200]!r}: {error}") from None  # a NUL in its name


def place(given: Any, what: str, name: str, example: str) -> tuple[float, float]:
    """Two finite numbers from "x,y" or (x, y)."""
    if given is None:
        raise SettingError(f"{name}: the map does not say where the {what} is; give start and goal, as in {example}")
    parts = given.split(",") if isinstance(given, str) else given
    try:
        x, y = (float(part) for part in parts)
        if math.isfinite(x) and math.isfinite(y):
            return x, y
    except (TypeError, ValueError, OverflowError):
        pass
    shown = given if isinstance(given, str) else repr(given)
    raise SettingError(f"{name}: the {what} must be two numbers x,y; found {shown[:60]!r}")


def check_count(blocked: Bools, name: str, remedy: str) -> None:
    """Refuse what would fill the memory before it does."""
    free = blocked.size - np.count_nonzero(blocked)
    if free > LARGEST_WORLD:
        raise SourceError(f"{name}: the map has {free:,} free cells; it may have at most {LARGEST_WORLD:,}: {remedy}")


def check_inside(shape: tuple[int, ...], cell: tuple[int, int], what: str, shown: str, name: str) -> None:
    """Refuse a (row, column) outside the map; `shown` is how its giver wrote it."""
    if not (0 <= cell[0] < shape[0] and 0 <= cell[1] < shape[1]):
        raise SourceError(
            f"{name}: the {what} ({shown}) lies outside the map, which has {shape[1]} columns (x) and {shape[0]} rows (y)"
        )


def check_free(blocked: Bools, cell: tuple[int, int], what: str, shown: str, name: str) -> None:
    """Refuse a blocked (row, column)."""
    if blocked[cell]:
        raise SourceError(f"{name}: the {what} ({shown}) lies in a blocked cell; choose a free one")


PLACED = {**GRID, "start": any_text, "goal": any_text}
"""The settings of maps that do not say where start and goal are."""
FORMATS.add(
    Format(
        "maps of the MovingAI benchmark",
        read_movingai,
        endings=(".map",),
        settings=PLACED,
        example="maze.map?start=1,2&goal=30,40",
    )
)
