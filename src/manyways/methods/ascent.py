"""The loop that the paper's methods share: it keeps the trace, watches the clock, and stops on request.

A method supplies `advance`, which takes the current point to the next and says whether its own stopping rule is met.
Not converging is a `Status`, never an exception.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from manyways.errors import SettingError, check_number
from manyways.objectives import SetObjective
from manyways.polytope import Polytope
from manyways.types import Floats, Ints


class Status(StrEnum):
    """How a run ended. `converged` says whether the method's own stopping rule was met."""

    CONVERGED = "converged"
    FEWER_PLANS = "converged, but some plans are equal: no further distinct plan was found"
    ITERATION_LIMIT = "iteration limit"
    TIME_LIMIT = "time limit"
    INTERRUPTED = "interrupted"
    NOT_VERIFIED = "not verified: a check of the certificate failed"
    STALLED = "stalled: no step along the search direction improves the objective"

    @property
    def converged(self) -> bool:
        return self in (Status.CONVERGED, Status.FEWER_PLANS)


@dataclass(frozen=True)
class Progress:
    """What a run reports while it works; the objective is NaN before there are plans."""

    done: int
    total: int
    objective: float
    doing: str = "planning"


class Halted(Exception):
    """Ends a search, which then returns its best result so far; `status` says why."""

    def __init__(self, status: Status) -> None:
        super().__init__(status)
        self.status = status


@dataclass(frozen=True)
class Watch:
    """Time limit, progress callback and interrupt flag of one search.

    Methods call `check` between two steps, and oracles call it within a long one; it raises `Halted` to end the search.
    """

    time_limit_s: float | None = None
    report: Callable[[Progress], None] | None = None
    began: float = field(default_factory=time.perf_counter)
    interrupted: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        if self.time_limit_s is not None and not check_number("the time limit", self.time_limit_s) > 0:
            raise SettingError(f"the time limit must be a positive number of seconds, found {self.time_limit_s}")

    def elapsed(self) -> float:
        return time.perf_counter() - self.began

    def expired(self) -> bool:
        return self.time_limit_s is not None and self.elapsed() >= self.time_limit_s

    def check_interrupt(self) -> None:
        if self.interrupted.is_set():
            raise Halted(Status.INTERRUPTED)

    def check(self) -> None:
        self.check_interrupt()
        if self.expired():
            raise Halted(Status.TIME_LIMIT)

    @contextmanager
    def catching_interrupts(self) -> Iterator[None]:
        """Within the block, Ctrl-C sets the interrupt flag, which the next check acts on; a second one raises at once.

        An exception raised by a signal handler would be lost in code that cannot raise, such as a finaliser. Programs
        that have installed a handler of their own keep it.
        """
        ours = threading.current_thread() is threading.main_thread()
        if not ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            yield
            return

        def set_flag(*_: object) -> None:
            if self.interrupted.is_set():
                raise KeyboardInterrupt
            self.interrupted.set()

        signal.signal(signal.SIGINT, set_flag)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def tell(self, done: int, total: int, objective: float, doing: str = "planning") -> None:
        """Report progress."""
        if self.report is not None:
            self.report(Progress(done, total, objective, doing))


@dataclass(frozen=True, eq=False)
class Trace:
    """One row per iteration.

    Attributes:
        objective: value before the iteration's step.
        measure: how far from stationary: the Frank-Wolfe gap, or the norm of the gradient mapping.
        step: step size taken (zero where the method stopped).
        seconds: from the beginning of the run until this iteration and all before it were done.
        oracle_calls: linear problems or projections solved so far.
    """

    objective: Floats
    measure: Floats
    step: Floats
    seconds: Floats
    oracle_calls: Ints

    @staticmethod
    def of(rows: list[tuple[float, float, float, float, int]]) -> Trace:
        columns = np.array(rows, dtype=np.float64).reshape(len(rows), 5).T
        return Trace(columns[0], columns[1], columns[2], columns[3], columns[4].astype(np.int64))

    def __len__(self) -> int:
        return len(self.objective)


@dataclass(frozen=True, eq=False)
class Ascent:
    """The result of a method.

    Attributes:
        point: (k, N) occupancies.
        status: how the search ended.
        trace: how it got there.
        choices: (k, S) the deterministic policies that have these occupancies, if the method knows them.
    """

    point: Floats
    status: Status
    trace: Trace
    choices: Ints | None = None


@dataclass(frozen=True, eq=False)
class Step:
    """One iteration of a method.

    Attributes:
        point: (k, N) the next point.
        measure: how far from stationary the current point was.
        size: step size.
        calls: linear problems or projections solved.
        status: set if the method's own rule says to stop, with `point` the answer.
    """

    point: Floats
    measure: float
    size: float
    calls: int
    status: Status | None = None


def ascend(
    start: Floats,
    objective: SetObjective,
    advance: Callable[[Floats, int], Step],
    iterations: int,
    watch: Watch,
) -> Ascent:
    """Run `advance` for t = 0, ..., iterations, as both algorithms of the paper count."""
    point, status, calls = start, Status.ITERATION_LIMIT, 0
    rows: list[tuple[float, float, float, float, int]] = []
    try:
        for t in range(iterations + 1):
            value = objective.value(point)
            watch.tell(t, iterations + 1, value)
            watch.check()
            step = advance(point, t)
            point, calls = step.point, calls + step.calls
            rows.append((value, step.measure, step.size, watch.elapsed(), calls))
            if step.status is not None:
                status = step.status
                break
    except Halted as end:
        status = end.status
    return Ascent(point, status, Trace.of(rows))


def random_policies(polytope: Polytope, k: int, seed: int) -> Floats:
    """(k, N) the start of both algorithms: occupancies of k random policies."""
    streams = np.random.SeedSequence(seed).spawn(k)
    return np.stack([polytope.sample(np.random.default_rng(stream)) for stream in streams])
