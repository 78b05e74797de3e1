"""Algorithm 2 of the paper: diverse stochastic planning with the Frank-Wolfe algorithm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from manyways.errors import SettingError, check_integer, check_number
from manyways.methods.ascent import Ascent, Status, Step, Watch, ascend, random_policies
from manyways.methods.base import METHODS, Method
from manyways.objectives import SetObjective
from manyways.polytope import Answer, Polytope, Vertex
from manyways.types import Floats

SMALLEST_STEP = 1e-9


@METHODS.add
@dataclass(frozen=True)
class FrankWolfe(Method):
    """Algorithm 2, with the settings of the paper's experiments as defaults.

    The objective is convex, so the full step is always the best one and the line search ends at its first trial. The
    exception is a gradient that is smoothed too much: it is infinite where one plan never goes and another does (see
    `manyways.objectives.divergence`).

    Attributes:
        iterations: T, the last iteration's number.
        tolerance: stop when the Frank-Wolfe gap is at most this.
        shrinkage: factor of the backtracking line search.
        smoothing: of the gradient at zero.
    """

    respects_floors: ClassVar[bool] = True

    iterations: int = 30
    tolerance: float = 1e-3
    shrinkage: float = 0.5
    smoothing: float = 1e-12

    def __post_init__(self) -> None:
        check_integer("iterations", self.iterations, 0)
        check_number("the tolerance", self.tolerance, 0)
        if not 0 < check_number("the shrinkage", self.shrinkage) < 1:
            raise SettingError(f"the shrinkage must lie strictly between 0 and 1, found {self.shrinkage}")
        if not check_number("the smoothing", self.smoothing) > 0:
            raise SettingError(f"the smoothing must be positive, found {self.smoothing}")

    def run(
        self,
        polytope: Polytope,
        objective: SetObjective,
        k: int,
        seed: int,
        watch: Watch,
        fixed: Sequence[Vertex] = (),
    ) -> Ascent:
        """Algorithm 2; line numbers are the paper's."""
        del fixed  # `keeps_plans` is False
        warm: list[Answer | None] = [None] * k

        def advance(x: Floats, _: int) -> Step:
            gradient = objective.gradient(x, self.smoothing)
            for i in range(k):  # line 5: one linear program for each plan
                warm[i] = polytope.best(gradient[i], warm[i])
            direction = np.stack([vertex.occupancy for vertex in warm if vertex is not None]) - x  # line 6
            gap = float((direction * gradient).sum())  # line 7
            if gap <= self.tolerance:  # lines 8 and 9
                return Step(x, gap, 0.0, k, Status.CONVERGED)
            size = self._line_search(objective, x, direction)  # line 11
            if size == 0:
                return Step(x, gap, 0.0, k, Status.STALLED)
            return Step(x + size * direction if size < 1 else x + direction, gap, size, k)  # line 13

        return ascend(random_policies(polytope, k, seed), objective, advance, self.iterations, watch)

    def _line_search(self, objective: SetObjective, x: Floats, direction: Floats) -> float:
        """Shrink from the full step until the objective rises, then on as long as it rises more."""
        size, value = 1.0, objective.value(x)
        reached = objective.value(x + direction)
        while size > SMALLEST_STEP:
            shorter = objective.value(x + size * self.shrinkage * direction)
            if reached > value and shorter <= reached:
                return size
            size, reached = size * self.shrinkage, shorter
        return 0.0
