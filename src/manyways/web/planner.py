"""What happens in the planning process: it waits for requests on a pipe and answers each with plans.

It is warm (everything is loaded before the first request), leaves Ctrl-C to the server, and ends when the server
does, however that ends.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from multiprocessing import parent_process
from multiprocessing.connection import Connection
from threading import Thread
from typing import Any

from manyways.errors import ManywaysError

MOST_REPORTS_PER_S = 10


@dataclass(frozen=True)
class Request:
    """What to plan: for the model of a plan file, with its settings but for these."""

    archive: bytes
    k: int
    tradeoff: float
    seed: int
    keep: tuple[int, ...]
    time_limit_s: float


@dataclass(frozen=True)
class Found:
    """The plans: their file, the key of each, what to call the set, and how the search ended."""

    archive: bytes
    keys: tuple[str, ...]
    label: str
    message: str


def attend(pipe: Connection) -> None:
    """The whole life of the planning process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()
    try:
        _warm_up()
        while True:
            request = pipe.recv()
            pipe.send(_answer(request, pipe.send))
    except (EOFError, OSError):  # the server has closed its end
        return


def described(plans: Any, kept: int = 0) -> str:
    """What a set is called."""
    words = f"{plans.k} plan{'s' if plans.k > 1 else ''}, tradeoff {plans.tradeoff:g}, seed {plans.seed}"
    return words + (f", {kept} kept" if kept else "")


def _answer(request: Request, send: Callable[[Any], None]) -> tuple[str, Any]:
    try:
        return "found", _perform(request, _Reporter(send))
    except ManywaysError as error:
        return "refused", str(error)
    except MemoryError:
        return "refused", "there is not enough memory for this; ask for fewer plans"
    except (EOFError, OSError):
        raise
    except Exception as error:  # whatever it is, the page should say so, and the next request may do better
        return "refused", f"planning failed: {type(error).__name__}: {error}"


def _perform(request: Request, report: Callable[[Any], None]) -> Found:
    from manyways.methods import VertexAscent
    from manyways.planning import plan
    from manyways.plans import PlanSet

    old = PlanSet.from_bytes(request.archive, "the plans")
    kept = {old[i].key for i in request.keep}  # a set may hold the same plan twice
    others = [i for i in range(old.k) if old[i].key not in kept] if kept else []
    plans = plan(
        old.mdp,
        request.k,
        request.tradeoff,
        seed=request.seed,
        method=VertexAscent() if request.keep else old.method,  # no other method can plan around given plans
        criterion=old.criterion,
        behaviour=old.behaviour,
        time_limit_s=request.time_limit_s,
        progress=report,
        keep=old.policies[list(request.keep)] if request.keep else None,
        avoid=old.policies[others] if others else None,
    )
    keys = tuple(plan.key for plan in plans)
    return Found(plans.to_bytes(), keys, described(plans, len(request.keep)), str(plans.status))


class _Reporter:
    """Passes progress on, no more often than anyone could read it."""

    def __init__(self, send: Callable[[Any], None]) -> None:
        self._send = send
        self._last = -1.0

    def __call__(self, now: Any) -> None:
        if time.monotonic() - self._last >= 1 / MOST_REPORTS_PER_S:
            self._last = time.monotonic()
            objective = float(now.objective) if isfinite(now.objective) else None  # JSON has no NaN
            report = {"doing": now.doing, "done": int(now.done), "total": int(now.total), "objective": objective}
            self._send(("progress", report))


def _warm_up() -> None:
    """Load what planning needs: compiled loops take a second to come from their cache, once."""
    from manyways.planning import plan

    plan("four-rooms:0", k=2, tradeoff=1.0)


def _end_with_parent() -> None:
    """While it plans, the process does not look at its pipe: this thread looks after the server instead."""
    server = parent_process()
    if server is not None:
        server.join()
        os._exit(0)
