"""What map formats share that do not contain start and goal: the settings for them, their checks, and the size limits."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from manyways.errors import SettingError, SourceError
from manyways.formats.format import any_text
from manyways.formats.text_maps import GRID
from manyways.types import Bools
from manyways.worlds.grid import LARGEST_WORLD

LARGEST_MAP_FILE = 256 * 2**20
MOST_CELLS = 64_000_000
"""Cells or pixels of a map, blocked ones included; free cells are limited by `LARGEST_WORLD`."""
OPEN_GRID: dict[str, Any] = {"directions": 8, "enterable_walls": False, "diagonal_steps": math.sqrt(2)}
"""The defaults of these maps, which differ from the paper's worlds. The number of steps of a way is its length in cells."""
PLACED = {**GRID, "start": any_text, "goal": any_text}
"""The settings of these maps."""

Place = str | tuple[float, float]


def place(given: Any, what: str, name: str, example: str) -> tuple[float, float]:
    """Two finite numbers from "x,y" or (x, y); `what` is "start" or "goal", `example` a source that shows both."""
    if given is None:
        raise SettingError(f"{name}: the map does not contain the {what}; give start and goal, as in {example}")
    parts = given.split(",") if isinstance(given, str) else given
    try:
        x, y = (float(part) for part in parts)
        if math.isfinite(x) and math.isfinite(y):
            return x, y
    except (TypeError, ValueError, OverflowError):
        pass
    shown = given if isinstance(given, str) else repr(given)
    raise SettingError(f"{name}: the {what} must be two numbers x,y; found {shown[:60]!r}")


def whole_cell(x: float, y: float, what: str, name: str) -> tuple[int, int]:
    """The (row, column) of a place given in cells; raises a `SettingError` if x or y is not an integer."""
    if x != math.floor(x) or y != math.floor(y):
        raise SettingError(f"{name}: the {what} must be a cell, two integers x,y; found {x:g},{y:g}")
    return int(y), int(x)


def check_count(blocked: Bools, name: str, remedy: str) -> None:
    """Refuse a map whose model would not fit into memory."""
    free = blocked.size - np.count_nonzero(blocked)
    if free > LARGEST_WORLD:
        raise SourceError(f"{name}: the map has {free:,} free cells; it may have at most {LARGEST_WORLD:,}: {remedy}")


def check_inside(shape: tuple[int, ...], cell: tuple[int, int], what: str, shown: str, name: str) -> None:
    """Refuse a (row, column) outside the map; `shown` is the place in the units of the caller."""
    if not (0 <= cell[0] < shape[0] and 0 <= cell[1] < shape[1]):
        raise SourceError(
            f"{name}: the {what} ({shown}) lies outside the map, which has {shape[1]} columns (x) and {shape[0]} rows (y)"
        )


def check_free(
    blocked: Bools, cell: tuple[int, int], what: str, given: str, shown: Callable[[tuple[int, int]], str], name: str
) -> None:
    """Refuse a blocked (row, column); the error names the nearest free cell.

    Args:
        blocked: (rows, columns) the map.
        cell: of the place.
        what: "start" or "goal".
        given: the place in the units of the caller.
        shown: a cell in these units.
        name: of the map.
    """
    if blocked[cell]:
        free = nearest_free(blocked, cell)
        remedy = "no cell of the map is free" if free is None else f"the nearest free cell is ({shown(free)})"
        raise SourceError(f"{name}: the {what} ({given}) lies in a blocked cell; {remedy}")


def nearest_free(blocked: Bools, cell: tuple[int, int]) -> tuple[int, int] | None:
    """(row, column) of the free cell nearest to a cell; None if there is none."""
    reach, farthest = 8, max(blocked.shape)
    while True:
        top, left = (max(at - reach, 0) for at in cell)
        rows, columns = np.nonzero(~blocked[top : cell[0] + reach + 1, left : cell[1] + reach + 1])
        if rows.size:
            away = np.hypot(rows + top - cell[0], columns + left - cell[1])
            nearest = int(np.argmin(away))
            if away[nearest] <= reach or reach >= farthest:  # beyond the window, cells are farther away than `reach`
                return int(rows[nearest]) + top, int(columns[nearest]) + left
        elif reach >= farthest:
            return None
        reach *= 2
