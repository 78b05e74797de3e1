"""`listen` takes a port, `serve` answers on it until Ctrl-C."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import signal
import socket
import sys
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from os import PathLike
from threading import Thread
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from manyways.errors import OutputError, SettingError
from manyways.web.app import TIME_LIMIT_S, make_app
from manyways.web.guard import EVERYWHERE, in_address

MOST_CONNECTIONS = 200
ASKING_S = 10.0
KEEP_ALIVE_S = 5


def serve(
    plans_path: str | PathLike[str],
    listener: socket.socket,
    host: str,
    open_browser: bool = False,
    time_limit_s: float = TIME_LIMIT_S,
) -> None:
    """Serve the page of a plan file until Ctrl-C or a request to end.

    Args:
        plans_path: the file that `PlanSet.save` wrote; choices are kept in a file beside it.
        listener: what `listen` returned, which is closed at the end.
        host: the address that `listen` was given; requests must call the server by it.
        open_browser: show the page in the browser.
        time_limit_s: how long one request to plan may compute, about.
    """
    with listener:
        _serve(plans_path, listener, host, open_browser, time_limit_s)


def listen(host: str, port: int) -> socket.socket:
    """Take a port; those who ask on it wait until `serve`.

    Args:
        host: on which address; with 127.0.0.1 only this machine can reach it.
        port: 0 takes any free one.
    """
    if not 0 <= port <= 65535:
        raise SettingError(f"the port must be a number from 0 to 65535, found {port}")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        try:
            if os.name == "posix":  # a port that was in use a moment ago is free there, elsewhere it would be shared
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(128)  # now, as two may bind the same port and only one may listen
        except OSError:
            listener.close()
            raise
    except (OSError, UnicodeError) as error:
        if getattr(error, "errno", None) == errno.EADDRINUSE:
            raise OutputError(f"port {port} of {host} is taken; choose another with --port, or 0 for any") from None
        reason = getattr(error, "strerror", None) or error
        raise OutputError(f"cannot listen on {host}, port {port}: {reason}; see --host and --port") from None
    return listener


def configured(app: ASGIApp) -> uvicorn.Config:
    """How the server treats connections: quiet, and with bounds on their number and their patience."""
    return uvicorn.Config(
        app,
        http=_Connection,
        log_level="error",
        access_log=False,
        server_header=False,
        lifespan="on",
        ws="none",
        limit_concurrency=MOST_CONNECTIONS,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=1,
    )


def _serve(
    plans_path: str | PathLike[str], listener: socket.socket, host: str, open_browser: bool, time_limit_s: float
) -> None:
    app = make_app(plans_path, allowed_hosts=_names(host), time_limit_s=time_limit_s)
    address = f"http://{_reachable(host)}:{listener.getsockname()[1]}/"
    if not _is_loopback(host):
        print(
            f"manyways: on {host} everyone who reaches this machine can look, plan and write notes; "
            "use it in networks you trust",
            file=sys.stderr,
        )

    def listening() -> None:
        print(f"manyways: look at {address} (Ctrl-C ends)", flush=True)
        if open_browser:  # some browsers return only when they are closed
            Thread(target=webbrowser.open, args=(address,), daemon=True).start()

    server = _Server(configured(app), listening)
    with _signals_end(server):
        server.run(sockets=[listener])


class _Server(uvicorn.Server):
    """Says when it really listens."""

    def __init__(self, config: uvicorn.Config, listening: Callable[[], None]) -> None:
        super().__init__(config)
        self._listening = listening

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._listening()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # requests that are cut off now would each be told with a traceback
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        await super().shutdown(sockets)


class _Connection(H11Protocol):
    """Ends when nothing was asked on it for `ASKING_S`: uvicorn would wait for the rest of a request for ever."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        super().connection_made(transport)
        self._look_later(None)

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        super().connection_lost(exc)

    def _look_later(self, answered: object) -> None:
        self._timer = self.loop.call_later(ASKING_S, self._look, answered)

    def _look(self, answered: object) -> None:
        """`answered` is the last request, if it was answered already at the last look; None before the first."""
        waiting = self.cycle is None or self.cycle.response_complete
        if waiting and self.cycle is answered:
            self.transport.close()
        else:
            self._look_later(self.cycle if waiting else object())


def _names(host: str) -> list[str]:
    """By what the server may be called."""
    return [host, socket.gethostname(), socket.getfqdn()] if in_address(host) in EVERYWHERE else [host]


def _reachable(host: str) -> str:
    return "127.0.0.1" if in_address(host) in EVERYWHERE else in_address(host)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@contextmanager
def _signals_end(server: uvicorn.Server) -> Iterator[None]:
    """Ctrl-C and SIGTERM ask for an end, which is then a success.

    While it runs, uvicorn handles them, and when it has ended it raises them again for these handlers; those of before
    would end the process with another exit code. And a browser that goes away in the middle of an answer must not
    end the server, which SIGPIPE would do.
    """

    def end(*_: object) -> None:
        server.should_exit = True

    handlers: dict[int, Any] = {signal.SIGINT: end, signal.SIGTERM: end}
    if hasattr(signal, "SIGPIPE"):
        handlers[signal.SIGPIPE] = signal.SIG_IGN
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
