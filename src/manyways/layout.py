"""Where states are drawn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from manyways.arrays import Bools, Floats, Ints, frozen
from manyways.errors import ModelError


@dataclass(frozen=True, eq=False)
class Grid:
    """Where each state is drawn: a rectangle of cells.

    Attributes:
        cells: (S,) index `row * columns + column` of each state's cell.
        blocked: (rows, columns) cells drawn as walls or obstacles, whether or not they are states.
    """

    cells: Ints
    blocked: Bools

    def __post_init__(self) -> None:
        object.__setattr__(self, "cells", frozen(self.cells, np.int64))
        object.__setattr__(self, "blocked", frozen(self.blocked, np.bool_))
        if self.blocked.ndim != 2:
            raise ModelError(f"a grid's blocked cells form a (rows, columns) array, not {self.blocked.shape}")
        if self.cells.size and not (self.cells.min() >= 0 and self.cells.max() < self.blocked.size):
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
