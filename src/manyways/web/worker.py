"""Planning in one process beside the server, so that the server answers quickly meanwhile.

There is one job at a time. Cancelling a job ends the process and starts a new one. If the process is killed or runs
out of memory, the job reports that in a sentence and the next job gets a new process.
"""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from threading import RLock, Thread
from typing import Any

from manyways.errors import ManywaysError
from manyways.web.events import Refused
from manyways.web.planner import PlannedSet, PlanRequest, RoundRequest, run_planner

STOPPED = "Stopped: nothing was changed."


@dataclass
class _Job:
    """The running job and its last report."""

    id: int
    started: float = field(default_factory=time.monotonic)
    progress: dict[str, Any] = field(
        default_factory=lambda: {"doing": "starting", "done": 0, "total": 1, "objective": None}
    )
    cancelled: bool = False


class Worker:
    """The planning process and its job, if there is one. `store` stores a new set and returns its number."""

    def __init__(self, store: Callable[[PlannedSet], int]) -> None:
        self._store = store
        self._lock = RLock()
        self._process: BaseProcess | None = None
        self._pipe: Any = None  # a Connection, of another class on each system
        self._thread: Thread | None = None
        self._job: _Job | None = None
        self._jobs = 0
        self._closed = False
        self.finished: dict[str, Any] | None = None

    def ensure_process(self) -> None:
        """Start a process unless one is running."""
        with self._lock:
            if self._closed or (self._process is not None and self._process.is_alive()):
                return
            self._end_process()
            context = multiprocessing.get_context("spawn")
            self._pipe, far_end = context.Pipe()
            self._process = context.Process(target=run_planner, args=(far_end,), name="manyways planning", daemon=True)
            with _interrupts_blocked():
                self._process.start()
            far_end.close()  # otherwise the pipe would stay open when the process ends

    @property
    def process_id(self) -> int | None:
        return None if self._process is None else self._process.pid

    def job(self) -> dict[str, Any] | None:
        """The progress of the running job; None if there is none."""
        job = self._job
        return (
            None if job is None else {**job.progress, "id": job.id, "seconds": round(time.monotonic() - job.started, 1)}
        )

    def start(self, request: PlanRequest | RoundRequest) -> int:
        """Start a job and return its number; raises `Refused` if one is running."""
        with self._lock:
            if self._job is not None or self._closed:
                raise Refused("a plan is being computed already: wait until it ends, or cancel it", 409)
            self._jobs += 1
            self._job = _Job(self._jobs)
            # in a thread, since sending a large model blocks until the process has read it
            self._thread = Thread(target=self._run, args=(self._job, request), daemon=True)
            self._thread.start()
            return self._jobs

    def cancel(self) -> bool:
        """End the running job; returns whether there was one."""
        with self._lock:
            if self._job is None:
                return False
            self._job.cancelled = True
            if self._process is not None:
                self._process.terminate()
            return True

    def close(self) -> None:
        """End the job and the process."""
        with self._lock:
            self._closed = True
            self.cancel()
            thread = self._thread
        if thread is not None:
            thread.join(1)
        with self._lock:
            self._end_process()

    def _run(self, job: _Job, request: PlanRequest | RoundRequest) -> None:
        finished: dict[str, Any] = {"id": job.id, "ok": False, "message": "", "set": None}
        try:
            planned = self._planned(job, request)
            finished |= {"ok": True, "message": planned.message, "set": self._store(planned)}
        except ManywaysError as error:
            finished["message"] = str(error)
        except Exception as error:  # otherwise the page would wait forever
            finished["message"] = f"planning failed: {type(error).__name__}: {error}"
        with self._lock:
            self.finished, self._job = finished, None
        self.ensure_process()

    def _planned(self, job: _Job, request: PlanRequest | RoundRequest, tries: int = 2) -> PlannedSet:
        """Send the request to the process and wait for its answer."""
        with self._lock:
            self.ensure_process()
            pipe = self._pipe
            if job.cancelled or pipe is None:
                raise Refused(STOPPED)
        answered = False
        try:
            pipe.send(request)
            while True:
                kind, content = pipe.recv()
                answered = True
                if kind == "progress":
                    job.progress = content
                elif kind == "planned":
                    return content
                else:
                    raise Refused(content)
        except (EOFError, OSError):
            reason = self._exit_reason()
            with self._lock:
                self._end_process()
        if not answered and tries > 1 and not job.cancelled:  # the process had ended before the request
            return self._planned(job, request, tries - 1)
        raise Refused(STOPPED if job.cancelled else reason)

    def _exit_reason(self) -> str:
        """Why the process has ended, as a sentence."""
        process = self._process
        if process is None:
            return "the planning process is gone; try again"
        process.join(1)
        code = process.exitcode
        if code is not None and code < 0:
            name = signal.Signals(-code).name if -code in set(signal.Signals) else str(-code)
            return (
                f"the planning process was ended by {name}, perhaps for lack of memory; "
                "try again, with fewer plans if it happens again"
            )
        return f"the planning process ended by itself (exit code {code}); try again"

    def _end_process(self) -> None:
        process, pipe, self._process, self._pipe = self._process, self._pipe, None, None
        if pipe is not None:
            with suppress(OSError):
                pipe.close()
        if process is not None:
            process.terminate()
            process.join(1)
            if process.is_alive():
                process.kill()
                process.join()
            process.close()


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Ctrl-C reaches all processes of a terminal; a new process must not receive it before it ignores it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
