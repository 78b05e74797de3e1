"""The linear system of one policy, shared by all processes and solved by PETSc.

    A = I - discount P, with the column of a reference state dropped from P where there is no discount

A is an M-matrix. In the order in which values travel, from the reference outwards, it is nearly triangular, so an incomplete
factorisation of each process's block is nearly exact, and the few iterations of the Krylov method carry values from block to
block and along moves against the order. Measured on room worlds (docs/scaling.md): BiCGStab needs an eighth of the memory of
GMRES and the least time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from manyways.distributed.part import ModelPart
from manyways.distributed.team import the_petsc
from manyways.errors import SolverError
from manyways.kernels import partition as kernels
from manyways.types import Floats

MOST_ITERATIONS = 5_000
ATTEMPTS = (("bcgs", 1), ("bcgs", 1), ("gmres", 1), ("gmres", 3))
"""Krylov methods and levels of fill, in turn, until one converges. Started again where it broke down, BiCGStab often does."""
TOO_SLOW = (
    "the equations of a policy could not be solved: its chain mixes too slowly for double precision; scale the model, or leave "
    "out what practically never happens"
)


class PolicySystem:
    """The system of a policy (m,), cut at a reference state (None with a discount), with the own states in an `order` (m,)."""

    def __init__(self, part: ModelPart, policy: Any, discount: float, reference: int | None, order: Any) -> None:
        self.part, self._petsc, self._order = part, the_petsc(), order
        place = np.empty(part.own, np.int64)
        place[order] = part.lo + np.arange(part.own)
        number = part.filled(place)
        room = int((part.indptr[policy + 1] - part.indptr[policy]).sum(dtype=np.int64)) + part.own
        kind = self._petsc.IntType
        begin, column, weight = np.empty(part.own + 1, kind), np.empty(room, kind), np.empty(room)
        cut = -1 if reference is None else part.place_of(reference)
        used = kernels.policy_rows(order, number, policy, *part.arrays, discount, cut, begin, column, weight)
        shape = (part.own, part.n_states)
        self._matrix = self._petsc.Mat().createAIJ(
            (shape, shape), csr=(begin, column[:used], weight[:used]), comm=part.team.comm
        )
        self._vectors = self._matrix.createVecs()
        self._solvers: dict[tuple[str, int], Any] = {}
        self.iterations = 0

    def close(self) -> None:
        self._forget_solvers()
        for thing in (*self._vectors, self._matrix):
            thing.destroy()

    def solve(self, b: Floats, x: Floats, enough: float) -> None:
        """Solve A x = b, both (m,), from the guess in `x`, in place, until the residual has a norm of at most `enough`, or less
        than rounding allows."""
        right, left = self._vectors
        left.array[:], right.array[:] = b[self._order], x[self._order]
        scale = max(left.norm(), 1e-300)
        for attempt in ATTEMPTS:
            # Values of other costs, or what a method that failed has left, may be worse than nothing.
            if not self._residual() <= scale:
                right.array[:] = 0.0
            solver = self._solver(attempt)
            solver.setTolerances(1e-50, max(enough, 1e-15 * scale), 1e50, MOST_ITERATIONS)
            solver.solve(left, right)
            self.iterations += solver.getIterationNumber()
            if solver.getConvergedReason() > 0 or self._residual() <= 100 * max(enough, 1e-15 * scale):
                break
        else:
            raise SolverError(TOO_SLOW)
        x[self._order] = right.array

    def ahead(self, b: Floats, x: Floats, steps: int) -> Floats:
        """(m,) b + discount P x, so many times over, from x."""
        right, left = self._vectors
        left.array[:], right.array[:] = b[self._order], x[self._order]
        moved = left.duplicate()
        for _ in range(steps):
            self._matrix.mult(right, moved)
            right.axpy(-1.0, moved)
            right.axpy(1.0, left)
        moved.destroy()
        found = np.empty(self.part.own)
        found[self._order] = right.array
        return found

    def transpose(self) -> None:
        """From now on, solve with the transposed matrix."""
        self._forget_solvers()
        transposed = self._petsc.Mat()
        self._matrix.transpose(transposed)  # in place, PETSc 3.18 keeps what it knows about equal rows, and crashes
        self._matrix.destroy()
        self._matrix = transposed

    def _forget_solvers(self) -> None:
        """Free the factors of all solvers; a system has one at a time."""
        for solver in self._solvers.values():
            solver.destroy()
        self._solvers = {}

    def _residual(self) -> float:
        right, left = self._vectors
        work = left.duplicate()
        self._matrix.mult(right, work)
        work.axpy(-1.0, left)
        norm = work.norm()
        work.destroy()
        return norm if np.isfinite(norm) else np.inf

    def _solver(self, attempt: tuple[str, int]) -> Any:
        if attempt not in self._solvers:
            self._forget_solvers()
            prefix = "manyways_{}_{}_".format(*attempt)
            own = {
                "ksp_type": attempt[0],
                "pc_type": "bjacobi",
                "sub_pc_type": "ilu",
                "sub_pc_factor_levels": attempt[1],
            }
            for name, value in own.items():
                self._petsc.Options().setValue(prefix + name, value)
            solver = self._petsc.KSP().create(self.part.team.comm)
            solver.setOperators(self._matrix)
            solver.setOptionsPrefix(prefix)
            solver.setFromOptions()
            solver.setPCSide(self._petsc.PC.Side.RIGHT)
            solver.setNormType(self._petsc.KSP.NormType.UNPRECONDITIONED)
            solver.setInitialGuessNonzero(True)
            self._solvers[attempt] = solver
        return self._solvers[attempt]
