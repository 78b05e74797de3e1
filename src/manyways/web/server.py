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
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from os import PathLike
from threading import Thread
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from manyways.errors import OutputError, SettingError
from manyways.web import connections
from manyways.web.app import TIME_LIMIT_S, make_app
from manyways.web.guard import ALL_ADDRESSES, host_in_url

KEEP_ALIVE_S = 5


def listen(host: str, port: int) -> socket.socket:
    """Take a port. Clients that connect to it wait until `serve`.

    Args:
        host: the address to listen on; with 127.0.0.1 only this machine can reach it.
        port: 0 takes any free one.
    """
    if not 0 <= port <= 65535:
        raise SettingError(f"the port must be a number from 0 to 65535, found {port}")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        try:
            if os.name == "posix":  # lets a port be used again at once; on Windows two programs could share it
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(128)  # now, since two programs can bind the same port but only one can listen
        except OSError:
            listener.close()
            raise
    except (OSError, UnicodeError) as error:
        if getattr(error, "errno", None) == errno.EADDRINUSE:
            raise OutputError(
                f"port {port} of {host} is in use; ",
                in_python="choose another port, or 0 for any free one",
                on_command_line="choose another with --port, or --port 0 for any free one",
            ) from None
        reason = getattr(error, "strerror", None) or error
        raise OutputError(
            f"cannot listen on {host}, port {port}: {reason}; ",
            in_python="choose another host or port",
            on_command_line="see --host and --port",
        ) from None
    return listener


def serve(
    plans_path: str | PathLike[str],
    listener: socket.socket,
    host: str,
    open_browser: bool = False,
    time_limit_s: float = TIME_LIMIT_S,
) -> None:
    """Serve the page of a plan file until Ctrl-C or SIGTERM.

    Args:
        plans_path: the file that `PlanSet.save` wrote; choices are stored in a file beside it.
        listener: what `listen` returned; it is closed at the end.
        host: the address that `listen` was given; requests must name it as their host.
        open_browser: whether to open the page in the browser.
        time_limit_s: how long one planning job may search.
    """
    with listener:
        server = Server(make_app(plans_path, allowed_hosts=_host_names(host), time_limit_s=time_limit_s))
        if not _is_loopback(host):
            print(
                f"manyways: on {host} everyone who can reach this machine can look, plan and write notes; "
                "use it only in networks that you trust",
                file=sys.stderr,
            )
        with _exit_on_signals(server):
            address = f"http://{_reachable(host)}:{listener.getsockname()[1]}/"
            # `listen` has made the port accept connections; the first requests wait until the server runs
            print(f"manyways: look at {address} (Ctrl-C ends)", flush=True)
            if open_browser:  # in a thread, since some browsers return only when they are closed
                Thread(target=webbrowser.open, args=(address,), daemon=True).start()
            server.run(listener)


class Server:
    """uvicorn, with timeouts and a limit for connections, and quiet."""

    def __init__(self, app: ASGIApp) -> None:
        self._connections = connections.Connections()
        self._server = uvicorn.Server(
            uvicorn.Config(
                self._connections.application(app),
                http="h11",
                log_level="error",
                access_log=False,
                server_header=False,
                proxy_headers=False,  # they could name another client than the one that is connected
                lifespan="on",
                ws="none",
                limit_concurrency=connections.MOST_CONNECTIONS,
                timeout_keep_alive=KEEP_ALIVE_S,
                timeout_graceful_shutdown=1,
            )
        )

    @property
    def started(self) -> bool:
        return self._server.started

    def run(self, listener: socket.socket) -> None:
        """Answer requests until `stop`."""
        with self._no_errors_after_stop(), asyncio.Runner(loop_factory=self._connections.event_loop) as runner:
            runner.run(self._server.serve(sockets=[listener]))

    def stop(self) -> None:
        self._server.should_exit = True

    @contextmanager
    def _no_errors_after_stop(self) -> Iterator[None]:
        """uvicorn would log a traceback for each request that it cancels when it stops."""

        def wanted(_: logging.LogRecord) -> bool:
            return not self._server.should_exit

        logger = logging.getLogger("uvicorn.error")
        logger.addFilter(wanted)
        try:
            yield
        finally:
            logger.removeFilter(wanted)


def _host_names(host: str) -> list[str]:
    """The host names that requests may use."""
    return [host, socket.gethostname(), socket.getfqdn()] if host_in_url(host) in ALL_ADDRESSES else [host]


def _reachable(host: str) -> str:
    """The host in a URL that a browser on this machine can open."""
    return "127.0.0.1" if host_in_url(host) in ALL_ADDRESSES else host_in_url(host)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@contextmanager
def _exit_on_signals(server: Server) -> Iterator[None]:
    """Ctrl-C and SIGTERM stop the server, and the program then succeeds.

    While uvicorn runs it handles these signals itself; when it has stopped it raises them again for these handlers.
    The previous handlers would then end the process with another exit code. SIGPIPE is ignored: a browser that goes
    away in the middle of an answer must not end the server.
    """

    def stop(*_: object) -> None:
        server.stop()

    handlers: dict[int, Any] = {signal.SIGINT: stop, signal.SIGTERM: stop}
    if hasattr(signal, "SIGPIPE"):
        handlers[signal.SIGPIPE] = signal.SIG_IGN
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
