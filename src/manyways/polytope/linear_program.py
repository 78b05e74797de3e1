"""The linear oracle by the simplex method: for domains that are more than an MDP.

Where every occupancy must be at least some delta > 0 (the restricted domain of the paper's theory
section), the maximiser need not be the occupancy of a deterministic policy, and policy iteration does not apply.
HiGHS keeps its basis between calls, so only the first call of a polytope is cold.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from manyways.errors import SolverError
from manyways.polytope.vertex import Answer, Vertex
from manyways.types import Floats, Sparse

FEASIBILITY = 1e-10
"""The smallest tolerance that HiGHS accepts."""


class LinearProgram:
    """max <c, x> subject to `equalities` x = `right`, x >= `at_least`, for changing c."""

    def __init__(self, equalities: Sparse, right: Floats, at_least: float) -> None:
        import highspy  # here, because most plans need no linear program

        rows, columns = equalities.shape
        model = highspy.HighsLp()
        model.num_row_, model.num_col_ = rows, columns
        model.col_cost_ = np.zeros(columns)
        model.col_lower_ = np.full(columns, at_least)
        model.col_upper_ = np.full(columns, highspy.kHighsInf)
        model.row_lower_ = model.row_upper_ = right
        model.sense_ = highspy.ObjSense.kMaximize
        model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        model.a_matrix_.start_ = equalities.indptr
        model.a_matrix_.index_ = equalities.indices
        model.a_matrix_.value_ = equalities.data
        self._highs, self._optimal = highspy.Highs(), highspy.HighsModelStatus.kOptimal
        self._highs.silent()
        self._highs.setOptionValue("primal_feasibility_tolerance", FEASIBILITY)
        self._highs.setOptionValue("dual_feasibility_tolerance", FEASIBILITY)
        self._highs.passModel(model)
        self._columns = np.arange(columns, dtype=np.int32)
        self._equalities, self._right, self._at_least = equalities, right, at_least

    def best(self, c: Floats, warm: Vertex | None = None) -> Answer:
        """The maximising vertex; `warm` is not needed, the last basis is the warm start."""
        del warm
        self._highs.changeColsCost(len(self._columns), self._columns, c)
        self._highs.run()
        status = self._highs.getModelStatus()
        if status != self._optimal:
            raise SolverError(f"the linear program ended as '{self._highs.modelStatusToString(status)}'")
        solution = self._highs.getSolution()
        x = np.maximum(np.array(solution.col_value), self._at_least)
        value = float(c @ x)
        return Answer(x, value=value, bound=max(self._bound(c, np.array(solution.row_dual)), value))

    def _bound(self, c: Floats, prices: Floats) -> float:
        """Weak duality with the solver's prices; the bound holds even if the prices are wrong."""
        # All x sum to one. Each x takes `at_least` everywhere and distributes the remaining mass, which can earn at
        # most the largest of the reduced costs.
        unpaid = c - self._equalities.T @ prices
        free = 1 - self._at_least * len(unpaid)
        return float(self._right @ prices + self._at_least * unpaid.sum() + max(unpaid.max(), 0.0) * free)


def largest_minimum(equalities: Sparse, right: Floats) -> float:
    """The largest delta for which some x >= delta satisfies the equalities."""
    # x = y + delta with y >= 0: one more column, the sum of all the others.
    column = sparse.csc_array(equalities.sum(axis=1)[:, None])
    program = LinearProgram(sparse.csc_array(sparse.hstack([equalities, column])), right, 0.0)
    c = np.zeros(equalities.shape[1] + 1)
    c[-1] = 1.0
    return float(program.best(c).occupancy[-1])
