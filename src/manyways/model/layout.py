"""Where states are drawn, and where they are in the world.

Rows are counted from the top, columns from the left, both from 0. A grid with an `origin` has a frame in metres, as the
maps of ROS and Nav2 define it: `origin` is the place of the grid's lower left corner and the angle by which the grid is
turned counterclockwise around it. Without turn, x grows along the columns and y grows *upwards*, against the rows. A
grid without an origin has no such frame; places on it are (column, row) of a cell, with rows that grow downwards.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np

from manyways.errors import ModelError, SettingError
from manyways.model.checking import check_text, frozen, integers
from manyways.types import Bools, Floats, Ints

LONGEST = 60
ON_THE_EDGE = 1e-9
"""In cells. A place this close to the next cell belongs to it: 0.3 m are three cells of 0.1 m, but 0.3 / 0.1 < 3 in
floating point."""


def to_world(origin: tuple[float, float, float], right: Any, up: Any) -> tuple[Any, Any]:
    """x and y in metres of places that lie so many metres right of and above a lower left corner.

    Args:
        origin: x, y and yaw of the corner; the yaw is in radians, counterclockwise.
        right, up: metres along the bottom and along the left side, numbers or arrays.
    """
    x, y, yaw = origin
    return x + math.cos(yaw) * right - math.sin(yaw) * up, y + math.sin(yaw) * right + math.cos(yaw) * up


def from_world(origin: tuple[float, float, float], x: float, y: float) -> tuple[float, float]:
    """How many metres a place in the world lies right of and above a lower left corner; undoes `to_world`."""
    x0, y0, yaw = origin
    x, y = x - x0, y - y0
    return math.cos(yaw) * x + math.sin(yaw) * y, -math.sin(yaw) * x + math.cos(yaw) * y


@dataclass(frozen=True, eq=False)
class Grid:
    """Where each state is drawn: a rectangle of cells.

    Attributes:
        cells: (S,) index `row * columns + column` of each state's cell.
        blocked: (rows, columns) cells drawn as walls or obstacles, whether or not they are states.
        goals: cells drawn as goals although no state lies there, because entering them ends the episode.
        blocked_means: what the blocked cells are, if not walls: "hole", "cliff".
        metres_per_cell: the length of a cell's side, if it is known.
        origin: (x, y, yaw) of the lower left corner of the grid in metres and radians, if it is known.
        offsets: (S, 2) how far right of and below the centre of its cell each state lies, in cells; None if all states
            are in the centres. A cell that is partly blocked has its state where it is free.
    """

    cells: Ints
    blocked: Bools
    goals: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    blocked_means: str = ""
    metres_per_cell: float | None = None
    origin: tuple[float, float, float] | None = None
    offsets: Floats | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "cells", frozen(integers(self.cells, "cells"), np.int64))
        object.__setattr__(self, "goals", frozen(integers(self.goals, "goals"), np.int64))
        if np.asarray(self.blocked).dtype.kind not in "biu":
            raise ModelError("a grid's blocked cells must be true or false")
        object.__setattr__(self, "blocked", frozen(self.blocked, np.bool_))
        object.__setattr__(self, "blocked_means", str(self.blocked_means))
        check_text(cell=[self.blocked_means])
        if len(self.blocked_means) > LONGEST:
            raise ModelError(f"`blocked_means` may have at most {LONGEST} characters")
        if self.metres_per_cell is not None:
            object.__setattr__(self, "metres_per_cell", _length(self.metres_per_cell))
        if self.blocked.ndim != 2:
            raise ModelError(f"a grid's blocked cells form a (rows, columns) array, not {self.blocked.shape}")
        named = np.concatenate([self.cells.ravel(), self.goals.ravel()])
        if named.size and not (named.min() >= 0 and named.max() < self.blocked.size):
            raise ModelError(f"grid cells must lie in 0..{self.blocked.size - 1} for a grid of shape {self.shape}")
        if self.origin is not None:
            object.__setattr__(self, "origin", _pose(self.origin))
            if self.metres_per_cell is None:
                raise ModelError("a grid with an `origin` needs `metres_per_cell`")
        if self.offsets is not None:
            object.__setattr__(self, "offsets", frozen(_offsets(self.offsets, self.cells.size), np.float64))

    @property
    def shape(self) -> tuple[int, int]:
        return self.blocked.shape

    def position(self, state: int) -> tuple[int, int]:
        row, column = divmod(int(self.cells[state]), self.shape[1])
        return row, column

    def of(self, states: Any) -> Grid:
        """The grid with only some of the states, given as indices or as an (S,) mask."""
        offsets = None if self.offsets is None else self.offsets[states]
        return replace(self, cells=self.cells[states], offsets=offsets)

    def image(self, per_state: Floats) -> Floats:
        """(S,) -> (rows, columns): a value per state laid out as a picture, zero where no state lies."""
        picture = np.zeros(self.blocked.size)
        np.add.at(picture, self.cells, per_state)
        return picture.reshape(self.shape)

    # ---- places in the world ------------------------------------------------------------------

    @property
    def unit(self) -> str:
        """Of coordinates: "m" for metres in the frame of the map, "cells" for column and row."""
        return "cells" if self.origin is None else "m"

    def coordinates(self, states: Any = slice(None)) -> Floats:
        """(n, 2) x and y of the given states, all by default, in metres, or column and row without an origin."""
        row, column = np.divmod(self.cells[states], self.shape[1])
        if self.origin is None or self.metres_per_cell is None:
            return np.column_stack([column, row]).astype(np.float64)
        right, down = (0.0, 0.0) if self.offsets is None else self.offsets[states].T
        side = self.metres_per_cell
        x, y = to_world(self.origin, (column + 0.5 + right) * side, (self.shape[0] - row - 0.5 - down) * side)
        return np.column_stack([x, y])

    def cell_at(self, x: float, y: float) -> tuple[int, int]:
        """(row, column) of the cell with a place in the world; it may lie outside the grid.

        Args:
            x, y: metres in the frame of the map, or column and row of a cell without an origin.
        """
        if not (math.isfinite(x) and math.isfinite(y)):
            raise SettingError(f"a position must be two finite numbers, found {x:g}, {y:g}")
        if self.origin is None or self.metres_per_cell is None:
            if x != math.floor(x) or y != math.floor(y):
                raise SettingError(
                    f"a position on a map without an origin must be column and row of a cell, two integers; "
                    f"found {x:g}, {y:g}"
                )
            return int(y), int(x)
        right, up = (
            float(np.clip(along / self.metres_per_cell, -1e15, 1e15)) for along in from_world(self.origin, x, y)
        )
        return self.shape[0] - 1 - math.floor(up + ON_THE_EDGE), math.floor(right + ON_THE_EDGE)

    def state_at(self, x: float, y: float) -> int:
        """The state in the cell with a place in the world, given as for `cell_at`; the nearest one if there are several.

        Raises:
            SettingError: if no state lies there, because the cell is blocked or outside the map; it names the nearest
                state.
        """
        row, column = self.cell_at(x, y)
        inside = 0 <= row < self.shape[0] and 0 <= column < self.shape[1]
        here = self.states_in(row, column) if inside else np.empty(0, np.int64)
        if len(here) == 1:
            return int(here[0])
        away = self.coordinates(here if len(here) else slice(None)) - np.array([x, y])
        nearest = int(np.argmin(np.hypot(*np.clip(away, -1e150, 1e150).T)))
        if len(here):
            return int(here[nearest])
        where = "in a cell that plans cannot enter" if inside else "outside the map"
        row, column = self.position(nearest)
        near = "" if self.unit == "cells" else f"row {row}, column {column} at "
        raise SettingError(
            f"the position {self.shown(x, y)} lies {where}; the nearest free cell is {near}"
            f"{self.shown(*self.coordinates([nearest])[0])}"
        )

    def states_in(self, row: int, column: int) -> Ints:
        """The states in a cell of the grid: none, one, or several where walls divide the cell."""
        order, cells = self._by_cell
        cell = row * self.shape[1] + column
        low, high = np.searchsorted(cells, [cell, cell + 1])
        return order[low:high]

    def shown(self, x: float, y: float) -> str:
        """A place in the world, for messages."""
        return f"({x:.6g} m, {y:.6g} m)" if self.unit == "m" else f"(column {x:.12g}, row {y:.12g})"

    @cached_property
    def _by_cell(self) -> tuple[Ints, Ints]:
        """The states in the order of their cells, and these cells."""
        order = np.argsort(self.cells, kind="stable")
        return order, self.cells[order]


def _length(given: Any) -> float:
    try:
        if isinstance(given, Real) and not isinstance(given, bool) and 0 < float(given) < np.inf:
            return float(given)
    except OverflowError:  # an integer too large for a float
        pass
    raise ModelError(f"`metres_per_cell` must be a finite number above 0, found {str(given)[:60]!r}")


def _pose(given: Any) -> tuple[float, float, float]:
    try:
        x, y, yaw = (float(part) for part in given)
        if all(map(math.isfinite, (x, y, yaw))):
            return x, y, yaw
    except (TypeError, ValueError, OverflowError):
        pass
    raise ModelError(f"`origin` must be three finite numbers (x, y, yaw), found {str(given)[:60]!r}")


def _offsets(given: Any, count: int) -> Floats:
    found = np.asarray(given)
    if found.dtype.kind not in "biuf":
        raise ModelError(f"a grid's offsets must be numbers, found {found.dtype}")
    if found.shape != (count, 2):
        raise ModelError(f"a grid's offsets must have the shape {(count, 2)}, found {found.shape}")
    if not (np.abs(found) <= 0.5).all():
        raise ModelError("a grid's offsets must lie in -0.5..0.5: states lie in their cells")
    return found
