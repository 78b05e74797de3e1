"""Dask clusters: connecting to one, and what is said when it fails.

`on_cluster` names the cluster of the calls within a block, as `kernels.threads.at_most` limits their threads: what has
independent pieces of work asks `current`.
"""

from __future__ import annotations

import logging
from asyncio import CancelledError
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from manyways.errors import ManywaysError, SettingError

CONNECTION_TIMEOUT = "5s"


class ClusterFailed(ManywaysError, RuntimeError):
    """A Dask cluster failed in the middle of a call."""


@dataclass(frozen=True)
class Cluster:
    """A Dask cluster with a connection to it (`distributed.Client`)."""

    address: str
    client: Any


_current: ContextVar[Cluster | None] = ContextVar("cluster", default=None)


def current() -> Cluster | None:
    """The cluster that is to be used, if any."""
    return _current.get()


@contextmanager
def on_cluster(address: str | None) -> Iterator[None]:
    """Within the block, `current` is the cluster whose scheduler has this address; None for none."""
    if address is None:
        yield
        return
    with connected(address, "plan again") as client:
        token = _current.set(Cluster(address, client))
        try:
            yield
        finally:
            _current.reset(token)


@contextmanager
def connected(address: str, then: str) -> Iterator[Any]:
    """A connection to the Dask scheduler at an address. The error of one that does not answer ends with what to do `then`."""
    try:
        from distributed import Client
    except ImportError:
        raise SettingError("a cluster needs Dask: pip install 'manyways[cluster]'") from None
    try:
        client = Client(address, timeout=CONNECTION_TIMEOUT, set_as_default=False)
    except (OSError, ValueError) as error:
        raise SettingError(
            f"no Dask scheduler answers at {address} ({type(error).__name__}); start one with `dask scheduler` and "
            f"workers with `dask worker ADDRESS`, then {then}"
        ) from None
    log = logging.getLogger("distributed.client")
    level = log.level
    log.setLevel(logging.CRITICAL)  # it prints tracebacks of the errors that it raises as well, also when it is closed
    try:
        with client:
            yield client
    finally:
        log.setLevel(level)


@contextmanager
def failing(address: str, error_of: Callable[[str], Exception]) -> Iterator[None]:
    """Turn every exception into an error of ours, made from one that starts with what happened. The work itself must not
    raise, so that each exception is the cluster's."""
    try:
        yield
    except (Exception, CancelledError) as error:  # Dask passes on errors of many kinds: its own, Tornado's, Python's
        reason = (str(error).splitlines() or [""])[0][:200].rstrip(".")
        raise error_of(f"the Dask cluster at {address} failed ({type(error).__name__}: {reason})") from None
