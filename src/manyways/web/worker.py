"""Planning in one process beside the server, so that answers stay quick while it computes.

One job at a time. To cancel is to end the process and start a fresh one; a process that is killed or runs out of
memory is reported in a sentence, and the next job has a fresh one too.
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
from manyways.web.planner import Found, Request, attend

STOPPED = "Stopped: nothing was changed."


@dataclass
class _Job:
    """The job at work, and what was last heard of it."""

    id: int
    began: float = field(default_factory=time.monotonic)
    heard: dict[str, Any] = field(
        default_factory=lambda: {"doing": "starting", "done": 0, "total": 1, "objective": None}
    )
    cancelled: bool = False


class Worker:
    """The planning process and the one job it may have. `keep` stores what was found, and says under which number."""

    def __init__(self, keep: Callable[[Found], int]) -> None:
        self._keep = keep
        self._lock = RLock()
        self._process: BaseProcess | None = None
        self._pipe: Any = None  # a Connection, of another class on each system
        self._thread: Thread | None = None
        self._job: _Job | None = None
        self._jobs = 0
        self._closed = False
        self.finished: dict[str, Any] | None = None

    def warm(self) -> None:
        """Have a process ready, unless there is one."""
        with self._lock:
            if self._closed or (self._process is not None and self._process.is_alive()):
                return
            self._discard()
            context = multiprocessing.get_context("spawn")
            self._pipe, far_end = context.Pipe()
            self._process = context.Process(target=attend, args=(far_end,), name="manyways planning", daemon=True)
            with _interrupts_blocked():
                self._process.start()
            far_end.close()  # else the end of the process would not show here as the end of the pipe

    @property
    def process_id(self) -> int | None:
        return None if self._process is None else self._process.pid

    def job(self) -> dict[str, Any] | None:
        """How far the job at work is."""
        job = self._job
        return None if job is None else {**job.heard, "id": job.id, "seconds": round(time.monotonic() - job.began, 1)}

    def start(self, request: Request) -> int:
        """Begin a job, or refuse because there is one; returns its number."""
        with self._lock:
            if self._job is not None or self._closed:
                raise Refused("a plan is being computed already: wait for its end, or cancel it", 409)
            self._jobs += 1
            self._job = _Job(self._jobs)
            # a thread, because a large model fills the pipe long before the process has read it
            self._thread = Thread(target=self._run, args=(self._job, request), daemon=True)
            self._thread.start()
            return self._jobs

    def cancel(self) -> bool:
        """End the job at work, if there is one."""
        with self._lock:
            if self._job is None:
                return False
            self._job.cancelled = True
            if self._process is not None:
                self._process.terminate()
            return True

    def close(self) -> None:
        """End the process and everything about it."""
        with self._lock:
            self._closed = True
            self.cancel()
            thread = self._thread
        if thread is not None:
            thread.join(1)
        with self._lock:
            self._discard()

    def _run(self, job: _Job, request: Request) -> None:
        finished: dict[str, Any] = {"id": job.id, "ok": False, "message": "", "set": None}
        try:
            found = self._converse(job, request)
            finished |= {"ok": True, "message": found.message, "set": self._keep(found)}
        except ManywaysError as error:
            finished["message"] = str(error)
        except Exception as error:  # else the page would wait for ever
            finished["message"] = f"planning failed: {type(error).__name__}: {error}"
        with self._lock:
            self.finished, self._job = finished, None
        self.warm()

    def _converse(self, job: _Job, request: Request, tries: int = 2) -> Found:
        """Hand the request over and listen until the plans are there."""
        with self._lock:
            self.warm()
            pipe = self._pipe
            if job.cancelled or pipe is None:
                raise Refused(STOPPED)
        heard = False
        try:
            pipe.send(request)
            while True:
                kind, content = pipe.recv()
                heard = True
                if kind == "progress":
                    job.heard = content
                elif kind == "found":
                    return content
                else:
                    raise Refused(content)
        except (EOFError, OSError):
            reason = self._account()
            with self._lock:
                self._discard()
        if not heard and tries > 1 and not job.cancelled:  # it had ended before, while it had nothing to do
            return self._converse(job, request, tries - 1)
        raise Refused(STOPPED if job.cancelled else reason)

    def _account(self) -> str:
        """Why the process is gone."""
        process = self._process
        if process is None:
            return "the planning process is gone; try again"
        process.join(1)
        code = process.exitcode
        if code is not None and code < 0:
            name = signal.Signals(-code).name if -code in set(signal.Signals) else str(-code)
            return (
                f"the planning process was ended by {name}, perhaps for want of memory; "
                "try again, with fewer plans if it happens again"
            )
        return f"the planning process ended by itself (exit code {code}); try again"

    def _discard(self) -> None:
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
    """Ctrl-C reaches all processes of a terminal: a new one must not see it even before it has begun."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
