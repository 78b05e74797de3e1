"""Algorithm 1 of the paper: diverse stochastic planning with projected gradient ascent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from manyways.errors import SettingError, check_integer, check_number
from manyways.methods.ascent import Ascent, Status, Step, Watch, ascend, random_policies
from manyways.methods.base import METHODS, Method
from manyways.objectives import SetObjective
from manyways.polytope import Polytope, Vertex
from manyways.types import Floats


@METHODS.add
@dataclass(frozen=True)
class ProjectedGradient(Method):
    """Algorithm 1.

    The paper prints the gradient mapping as (rho^{t+1} - rho^{t+1/2}) / eta; the theorem that it cites
    is about (rho^{t+1} - rho^t) / eta, which alone vanishes at a stationary point. That one is used.

    Attributes:
        iterations: T, the last iteration's number.
        tolerance: stop when consecutive points differ by at most this in norm (the rule of the
            paper's experiments).
        mapping_tolerance: stop when the norm of the gradient mapping is at most this (line 10).
        steps: eta^t: one number for all t, or a sequence whose last entry is repeated. By default
            1 / (norm of the gradient at the start x sqrt(t + 1)): the first step moves about as far as the
            polytope is wide, whatever the scale of the rewards, and the sum of steps diverges.
        rough_iterations: if given, the paper's inexact projection: SLSQP stopped after so many
            iterations (the paper: 10). The points are then only near the nearest ones.
        smoothing: of the gradient at zero.
    """

    iterations: int = 30
    tolerance: float = 1e-2
    mapping_tolerance: float = 0.0
    steps: float | Sequence[float] | None = None
    rough_iterations: int | None = None
    smoothing: float = 1e-12

    def __post_init__(self) -> None:
        check_integer("iterations", self.iterations, 0)
        if self.rough_iterations is not None:
            check_integer("rough_iterations", self.rough_iterations, 1)
        check_number("the tolerance", self.tolerance, 0)
        check_number("the mapping tolerance", self.mapping_tolerance, 0)
        if not check_number("the smoothing", self.smoothing) > 0:
            raise SettingError(f"the smoothing must be positive, found {self.smoothing}")
        if self.steps is not None:
            steps = np.atleast_1d(np.asarray(self.steps, dtype=np.float64))
            if steps.ndim != 1 or steps.size == 0 or not ((steps > 0) & np.isfinite(steps)).all():
                raise SettingError(f"steps must be positive numbers, found {self.steps}")
            object.__setattr__(self, "steps", steps.tolist()[0] if np.ndim(self.steps) == 0 else tuple(steps.tolist()))

    def run(
        self,
        polytope: Polytope,
        objective: SetObjective,
        k: int,
        seed: int,
        watch: Watch,
        fixed: Sequence[Vertex] = (),
    ) -> Ascent:
        """Algorithm 1; line numbers are the paper's."""
        del fixed  # `keeps_plans` is False
        start = random_policies(polytope, k, seed)
        steepness = float(np.linalg.norm(objective.gradient(start, self.smoothing)))

        def advance(x: Floats, t: int) -> Step:
            eta = self._step(t, steepness)
            moved = x + eta * objective.gradient(x, self.smoothing)  # line 6
            after = np.stack([self._project(polytope, moved[i], x[i]) for i in range(k)])  # line 7
            distance = float(np.linalg.norm(after - x))
            mapping = distance / eta  # line 9
            done = distance <= self.tolerance or mapping <= self.mapping_tolerance  # line 10
            return Step(after, mapping, eta, k, Status.CONVERGED if done else None)

        return ascend(start, objective, advance, self.iterations, watch)

    def _step(self, t: int, steepness: float) -> float:
        if self.steps is None:
            return 1.0 / (max(steepness, 1e-12) * np.sqrt(t + 1))
        steps = np.atleast_1d(np.asarray(self.steps, dtype=np.float64))
        return float(steps[min(t, steps.size - 1)])

    def _project(self, polytope: Polytope, y: Floats, start: Floats) -> Floats:
        if self.rough_iterations is None:
            return polytope.project(y)
        return polytope.project_roughly(y, start, self.rough_iterations)
