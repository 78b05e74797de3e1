"""Where states are drawn."""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np

from manyways.errors import ModelError
from manyways.model.checking import check_text, frozen, integers
from manyways.types import Bools, Floats, Ints

LONGEST = 60


@dataclass(frozen=True, eq=False)
class Grid:
    """Where each state is drawn: a rectangle of cells.

    Attributes:
        cells: (S,) index `row * columns + column` of each state's cell.
        blocked: (rows, columns) cells drawn as walls or obstacles, whether or not they are states.
        goals: cells drawn as goals although no state lies there, because entering them ends the episode.
        blocked_means: what the blocked cells are, if not walls: "hole", "cliff".
        metres_per_cell: the length of a cell's side, if it is known.
    """

    cells: Ints
    blocked: Bools
    goals: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    blocked_means: str = ""
    metres_per_cell: float | None = None

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

    @property
    def shape(self) -> tuple[int, int]:
        return self.blocked.shape

    def position(self, state: int) -> tuple[int, int]:
        row, column = divmod(int(self.cells[state]), self.shape[1])
        return row, column

    def image(self, per_state: Floats) -> Floats:
        """(S,) -> (rows, columns): a value per state laid out as a picture, zero where no state lies."""
        picture = np.zeros(self.blocked.size)
        np.add.at(picture, self.cells, per_state)
        return picture.reshape(self.shape)


def _length(given: Any) -> float:
    try:
        if isinstance(given, Real) and not isinstance(given, bool) and 0 < float(given) < np.inf:
            return float(given)
    except OverflowError:  # an integer too large for a float
        pass
    raise ModelError(f"`metres_per_cell` must be a finite number above 0, found {str(given)[:60]!r}")
