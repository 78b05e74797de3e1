"""The nearest occupancy in the l2 norm: the projection of Algorithm 1.

Exact by default: PIQP, a sparse interior-point solver, run to its last digits. Compared on the
four-room worlds (1,725 choices) before it was chosen: PIQP 9 ms with a residual of 2e-15, Clarabel
26 to 40 ms with 3e-8 to 4e-11, OSQP 5 s with 7e-9.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import sparse

from manyways.errors import SolverError
from manyways.types import Floats, Sparse

TOLERANCE = 1e-12
ACCEPTED = 1e-9


class Projection:
    """min |x - y|^2 subject to `equalities` x = `right`, x >= `at_least`, for changing y."""

    def __init__(self, equalities: Sparse, right: Floats, at_least: float) -> None:
        self._equalities, self._right, self._at_least = equalities, right, at_least
        self._solver: Any = None

    def __call__(self, y: Floats) -> Floats:
        """(N,) -> (N,) the nearest point."""
        n = len(y)
        if self._solver is None:
            import piqp  # here, because most plans never project

            self._solver = piqp.SparseSolver()
            self._solver.settings.eps_abs = self._solver.settings.eps_rel = TOLERANCE
            # Without these the point is feasible, but only to 5e-5 the nearest.
            self._solver.settings.eps_duality_gap_abs = self._solver.settings.eps_duality_gap_rel = 1e-14
            self._solver.setup(
                sparse.csc_matrix(sparse.eye(n)),
                -y,
                sparse.csc_matrix(self._equalities),
                self._right,
                x_l=np.full(n, self._at_least),
            )
        else:
            self._solver.update(c=-y)
        status = self._solver.solve()
        x = np.maximum(self._solver.result.x, self._at_least)
        residual = np.abs(self._equalities @ x - self._right).max()
        if not residual <= ACCEPTED:  # judged by the point itself: PIQP may stop short of 1e-12 and be fine
            raise SolverError(
                f"the projection ended as '{status}' with a residual of {residual:.1e}, expected at most {ACCEPTED:.0e}"
            )
        return x

    def inexact(self, y: Floats, start: Floats, iterations: int) -> Floats:
        """The paper's projection: at most so many iterations of SLSQP from `start`. Dense, slow, and not
        quite the nearest point when it stops early; it is here to be compared with the exact one."""
        from scipy.optimize import minimize

        dense = self._equalities.toarray()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # running into the iteration limit is the point here
            answer = minimize(
                lambda x: ((x - y) ** 2).sum(),
                start,
                jac=lambda x: 2 * (x - y),
                bounds=[(self._at_least, None)] * len(y),
                constraints={"type": "eq", "fun": lambda x: dense @ x - self._right, "jac": lambda _: dense},
                method="SLSQP",
                options={"maxiter": iterations},
            )
        return np.maximum(answer.x, self._at_least)
