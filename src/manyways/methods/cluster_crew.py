"""Starts and pools of the default method on a Dask cluster, with the results of threads, bit by bit.

A job is a function and its argument, as for threads. What all jobs share (polytope, objective, best plan) goes to the
workers once, under names; in jobs and results only the names are sent (`_dumped`), and each side puts its own object
there. So results come back attached to the objects of this process.

The shared part is itself the result of a task whose input the scheduler has: if a worker is lost, Dask repeats what it was
doing elsewhere, and nothing of it shows in the result. Jobs note their steps in a log of their own, which comes back with
the result. A time limit or Ctrl-C is watched here, and told to the workers, which then return the plans that they have.
"""

from __future__ import annotations

import io
import pickle
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, TypeVar
from uuid import uuid4

from manyways.cluster import Cluster, ClusterFailed, current, failing
from manyways.errors import ManywaysError
from manyways.kernels.threads import at_most, one_blas_thread
from manyways.methods.ascent import Halted, Watch
from manyways.methods.climb import Log
from manyways.objectives import SetObjective
from manyways.polytope import Polytope

POLL_S, PATIENCE_S = 0.2, 30.0
"""How often the time limit is looked at, and how long workers have to return their plans when it has passed."""
POLYTOPE, WATCH, LOG = "polytope", "watch", "log"
"""Names of what is sent once, or has a counterpart on each side."""

_Job = TypeVar("_Job")
_Result = TypeVar("_Result")


def cluster_crew(polytope: Polytope, objective: SetObjective, log: Log) -> ClusterCrew | None:
    """Who shares work on a polytope if a cluster is to be used."""
    cluster = current()
    return None if cluster is None else ClusterCrew(cluster, polytope, objective, log)


class ClusterCrew:
    """The workers of a cluster, which share work on a polytope."""

    def __init__(self, cluster: Cluster, polytope: Polytope, objective: SetObjective, log: Log) -> None:
        self.polytope, self.log, self._cluster = polytope, log, cluster
        self._names = {POLYTOPE: polytope, "objective": objective, "optimum": polytope.optimum, "mdp": polytope.mdp}
        self._here = self._names | {WATCH: log.watch, LOG: log}
        self._token = uuid4().hex
        shared = _dumped(self._names, {WATCH: log.watch})
        with self._failing():
            from dask import config

            self.threads = max(1, sum(cluster.client.nthreads().values()))
            with config.set({"distributed.admin.large-graph-warning-threshold": 2 * len(shared) + 2**20}):
                self._shared = cluster.client.submit(bytes, shared, key=f"manyways-{self._token}")

    def spread(self, work: Callable[[Polytope, _Job], _Result], jobs: Sequence[_Job]) -> list[_Result]:
        """The results of jobs in their order; jobs that have not begun when the search is halted are left out, but not the
        first. Jobs that are changed by the work are changed as they would be here."""
        arguments = [(number, _dumped((work, job), self._here)) for number, job in enumerate(jobs)]
        elapsed = self.log.watch.elapsed()
        with self._failing():
            submit = self._cluster.client.submit
            futures = [submit(_perform, self._shared, self._token, elapsed, *a, pure=False) for a in arguments]
        found: dict[int, Any] = {}
        for number, answer in self._arriving(futures):
            if answer is None:
                continue
            if isinstance(answer, Exception):
                raise answer
            result, changed, rows, finished = _loaded(answer, self._here)
            if hasattr(changed, "__dict__"):
                vars(jobs[number]).update(vars(changed))
            self.log.add(rows, finished)
            found[number] = result
        if not found and jobs:  # nothing arrived in time: this process ends at the first step
            return [work(self.polytope, jobs[0])]
        return [found[number] for number in sorted(found)]

    def _arriving(self, futures: Sequence[Any]) -> Any:
        """The number and the answer of each future, as they arrive."""
        from distributed import wait as wait_for

        wait: Any = wait_for  # its type is that of a coroutine, too
        number_of = {future.key: number for number, future in enumerate(futures)}
        waiting, patience = set(futures), count(int(PATIENCE_S / POLL_S), -1)
        while waiting:
            halted = self._halted()
            if halted and next(patience) <= 0:
                self._cluster.client.cancel(list(waiting))
                return
            with self._failing(), self._cluster.client.as_current():
                try:
                    done, waiting = wait(waiting, timeout=POLL_S, return_when="FIRST_COMPLETED")
                except TimeoutError:
                    continue
                answers = [(number_of[future.key], future.result()) for future in done]
            for number, answer in sorted(answers, key=lambda pair: pair[0]):
                yield number, Halted(self.log.status) if isinstance(answer, Halted) and self.log.status else answer

    def _halted(self) -> bool:
        """Whether the search is to end; the workers get one message."""
        try:
            self.log.watch.check()
        except Halted as end:
            if self.log.status is None:
                self.log.status = end.status
                with self._failing():
                    self._cluster.client.run(_halt, self._token, on_error="ignore")
        return self.log.status is not None

    def _failing(self) -> Any:
        return failing(
            self._cluster.address,
            lambda what: ClusterFailed(f"{what}. Check its scheduler and workers, and plan again"),
        )


# ---- in the workers -------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Shared:
    """What the jobs of one search share in a worker."""

    names: Mapping[str, Any]
    watch: Watch


_known: dict[str, _Shared] = {}
_ended: set[str] = set()
_lock = threading.Lock()


def _perform(shared: bytes, token: str, elapsed: float, number: int, job: bytes) -> bytes | Exception | None:
    """A job in a worker: its result, the job itself as the work left it, and its log; or the error that ended it."""
    common = _common(shared, token, elapsed)
    if number and common.watch.interrupted.is_set():
        return None
    log = Log(common.watch)
    try:
        with at_most(1), one_blas_thread():  # as many threads as in the process that is helped, so the same bits
            there = {**common.names, POLYTOPE: common.names[POLYTOPE].twin(), WATCH: common.watch, LOG: log}
            work, given = _loaded(job, there)
            result = work(there[POLYTOPE], given)
            return _dumped((result, given, log.rows, log.finished), there)
    except (ManywaysError, Halted) as error:
        return error


def _common(shared: bytes, token: str, elapsed: float) -> _Shared:
    """What jobs share, unpacked by the first of them."""
    with _lock:
        if token not in _known:
            watch = Watch(began=time.perf_counter() - elapsed)
            if token in _ended:
                watch.interrupted.set()
            _known.clear()  # of an earlier search; its jobs have references of their own
            _known[token] = _Shared(_loaded(shared, {WATCH: watch}), watch)
        return _known[token]


def _halt(token: str) -> None:
    """End the jobs of a search at their next step."""
    _ended.add(token)
    if token in _known:
        _known[token].watch.interrupted.set()


# ---- on both sides --------------------------------------------------------------------------------


def _dumped(what: object, names: Mapping[str, object]) -> bytes:
    """`what` with the named objects in it replaced by their names."""
    import cloudpickle

    by_id = {id(value): name for name, value in names.items()}

    class Pickler(cloudpickle.Pickler):
        def persistent_id(self, obj: object) -> str | None:
            return by_id.get(id(obj))

    buffer = io.BytesIO()
    Pickler(buffer, protocol=pickle.HIGHEST_PROTOCOL).dump(what)
    return buffer.getvalue()


def _loaded(data: bytes, names: Mapping[str, object]) -> Any:
    """What `_dumped` has dumped, with the objects that have these names here. The data comes from the cluster that the user
    has named, which runs code of ours."""

    class Unpickler(pickle.Unpickler):
        def persistent_load(self, pid: str) -> object:
            return names[pid]

    return Unpickler(io.BytesIO(data)).load()
