"""Independent work on one polytope, side by side in threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import TypeVar

from manyways.kernels.threads import cores, side_by_side
from manyways.polytope.feasible_set import Polytope

THREADS_FROM = 2000
"""Below so many states, compiled code takes too little of the time for threads to pay."""

_Job = TypeVar("_Job")
_Result = TypeVar("_Result")


def on_twins(work: Callable[[Polytope, _Job], _Result], polytope: Polytope, jobs: Sequence[_Job]) -> list[_Result]:
    """The results of jobs in their order, the same whatever the number of cores. Each job has a polytope of its own, because
    the work space of an oracle serves one thread at a time."""
    threads = min(cores(), len(jobs)) if polytope.mdp.n_states >= THREADS_FROM else 1
    idle: SimpleQueue[Polytope] = SimpleQueue()
    for number in range(threads):
        idle.put(polytope.twin() if number else polytope)

    def one(job: _Job) -> _Result:
        own = idle.get()
        try:
            return work(own, job)
        finally:
            idle.put(own)

    return side_by_side(one, jobs, threads)
