"""The processes that plan together, and what they do together.

Every function here must be called by all processes of the team, in the same order. Sums are added up in the order of the
processes, so that all get the same bits, in every run with the same number of processes.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from manyways.errors import ManywaysError, SettingError
from manyways.types import Ints

Result = TypeVar("Result")
INSTALL = (
    "the engine for several machines needs PETSc, mpi4py and petsc4py: 'make petsc' installs them; start it with "
    "'mpirun -n 4 manyways plan ...'"
)


def the_mpi() -> Any:
    """The module mpi4py.MPI; a SettingError says how to install it if it is missing."""
    try:
        from mpi4py import MPI  # pyright: ignore[reportMissingImports]
    except (ImportError, RuntimeError):  # a RuntimeError if there is no MPI library
        raise SettingError(INSTALL) from None
    return MPI


def the_petsc() -> Any:
    """The module petsc4py.PETSc, initialised without options from the command line and without its own handlers of signals."""
    the_mpi()
    try:
        import petsc4py  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise SettingError(INSTALL) from None
    petsc4py.init(["manyways", "-no_signal_handler"])
    from petsc4py import PETSc  # pyright: ignore[reportMissingImports]

    return PETSc


class Team:
    """All processes of an MPI communicator, by default all that were started together.

    Attributes:
        rank: the number of this process, from 0.
        size: how many there are.
    """

    def __init__(self, comm: Any = None) -> None:
        self.comm = the_mpi().COMM_WORLD if comm is None else comm
        self.rank, self.size = self.comm.rank, self.comm.size

    def _combined(self, values: Any, combine: Callable[..., Any]) -> Any:
        own = np.asarray(values)
        if self.size == 1:
            return own[()]
        parts = np.empty((self.size, *own.shape), own.dtype)
        self.comm.Allgather(np.ascontiguousarray(own), parts)
        return combine(parts, axis=0)

    def sum(self, values: Any) -> Any:
        """Numbers or arrays, added up over all processes."""
        return self._combined(values, np.add.reduce)

    def max(self, values: Any) -> Any:
        return self._combined(values, np.maximum.reduce)

    def min(self, values: Any) -> Any:
        return self._combined(values, np.minimum.reduce)

    def any(self, value: bool) -> bool:
        return bool(self.max(int(value)))

    def highest(self, value: float, number: int) -> tuple[float, int]:
        """The highest value of any process and its number; of equals the lowest number."""
        found = self.comm.allgather((float(value), int(number)))
        best = max(value for value, _ in found)
        return best, min(number for value, number in found if value == best)

    def together(self, work: Callable[[], Result]) -> Result:
        """What `work` returns in this process. If it raises one of our own errors in any process, all raise the error of the
        first such process: none waits for one that has given up."""
        found, error = None, None
        try:
            found = work()
        except ManywaysError as problem:
            error = problem
        except OSError as problem:
            error = ManywaysError(f"process {self.rank}: {problem.strerror or problem}")
        except MemoryError:
            error = ManywaysError(f"process {self.rank} has not enough memory; use more processes on more machines")
        first = next((other for other in self.comm.allgather(error) if other is not None), None)
        if first is not None:
            raise first
        return found  # pyright: ignore[reportReturnType]

    def only_first(self, work: Callable[[], None]) -> None:
        """Do `work` in the first process; if it raises one of our own errors, all raise it."""
        self.together(work if self.rank == 0 else lambda: None)


def routed(team: Team, cuts: Ints, states: Ints, rows: Ints) -> Ints:
    """(E,) states (or places) and (E, c) rows -> all rows whose states this process has, in the order of the senders."""
    owner = np.searchsorted(cuts, states, side="right") - 1
    return np.concatenate(team.comm.alltoall([rows[owner == rank] for rank in range(team.size)]))


class Halo:
    """Fetches values of states that other processes have.

    Args:
        team: the processes.
        cuts: (size + 1,) the first state of each process, and the number of states.
        ghosts: (G,) global numbers of the states whose values this process needs, sorted, none of its own.
    """

    def __init__(self, team: Team, cuts: Ints, ghosts: Ints) -> None:
        self.team, self.count = team, len(ghosts)
        self._own = int(cuts[team.rank + 1] - cuts[team.rank])
        ends = np.searchsorted(ghosts, cuts)
        wanted = [ghosts[a:b] - cut for a, b, cut in zip(ends[:-1], ends[1:], cuts[:-1], strict=True)]
        asked = team.comm.alltoall(wanted)  # by process: which own states it needs, numbered from 0
        self._sends = [(rank, np.asarray(states, np.int64)) for rank, states in enumerate(asked) if len(states)]
        self._receives = [(rank, int(a), int(b)) for rank, (a, b) in enumerate(pairwise(ends)) if b > a]

    @property
    def sent(self) -> int:
        """How many values this process sends at each exchange."""
        return sum(len(states) for _, states in self._sends)

    def fill(self, known: Any) -> None:
        """Fill the entries of the ghosts in `known` (m + G,) with the values that their processes have."""
        m, comm = self._own, self.team.comm
        requests = [comm.Irecv(known[m + a : m + b], source=rank) for rank, a, b in self._receives]
        sent = [np.ascontiguousarray(known[states]) for _, states in self._sends]
        requests += [comm.Isend(values, dest=rank) for (rank, _), values in zip(self._sends, sent, strict=True)]
        self._wait(requests)

    def add_back(self, known: Any) -> None:
        """Add what `known` (m + G,) has at the ghosts to the entries of the processes that own them."""
        m, comm = self._own, self.team.comm
        arrived = [np.empty(len(states), known.dtype) for _, states in self._sends]
        requests = [comm.Irecv(values, source=rank) for (rank, _), values in zip(self._sends, arrived, strict=True)]
        requests += [comm.Isend(known[m + a : m + b], dest=rank) for rank, a, b in self._receives]
        self._wait(requests)
        for (_, states), values in zip(self._sends, arrived, strict=True):
            known[states] += values

    def _wait(self, requests: list[Any]) -> None:
        the_mpi().Request.Waitall(requests)
