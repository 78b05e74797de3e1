"""How many threads a call uses.

Compiled kernels release Python's lock, so independent pieces of work run side by side in threads. Matrix products in this
package are small: shared out over threads they are at best a little faster, and many times slower where other programs
use the same processors, because the threads wait for each other.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import cache
from typing import TypeVar

from threadpoolctl import ThreadpoolController

_Job = TypeVar("_Job")
_Result = TypeVar("_Result")
_most: ContextVar[int | None] = ContextVar("most_threads", default=None)


def cores() -> int:
    """The processor cores that this process may use; within `at_most` no more than given there."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(usable, _most.get() or usable)


@contextmanager
def at_most(threads: int) -> Iterator[None]:
    """Within the block, `cores` is at most this: for programs that run several calls side by side."""
    token = _most.set(threads)
    try:
        yield
    finally:
        _most.reset(token)


def side_by_side(work: Callable[[_Job], _Result], jobs: Sequence[_Job], threads: int) -> list[_Result]:
    """The results of jobs in their order, in this thread or in several, which share the cores."""
    if threads == 1 or len(jobs) < 2:
        return [work(job) for job in jobs]
    threads = min(threads, len(jobs))
    share = max(1, cores() // threads)

    def within_share(job: _Job) -> _Result:
        with at_most(share):
            return work(job)

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(within_share, jobs))


@cache
def _pools() -> ThreadpoolController:
    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[object]:
    """Within the block, matrix products use one thread."""
    return _pools().limit(limits=1, user_api="blas")
