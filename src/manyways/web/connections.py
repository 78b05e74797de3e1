"""Timeouts and a limit for connections: clients that send nothing or half a request, or stop reading the answer.

uvicorn has no setting for these. Its `timeout_keep_alive` runs only between requests and stops at the first byte of
the next one, and `limit_concurrency` answers with 503 but closes no idle connection. So connections are watched from
outside, through documented interfaces only:

- an event loop whose `create_server` wraps each `asyncio.Protocol` of the server in one that watches the connection;
- an ASGI application around the served one, which records the connections (`scope["client"]`) whose request is being
  answered, since an answer may take longer than the timeout.

This works with any of uvicorn's protocol classes and touches none of them. The alternative was Hypercorn. Its
`keep_alive_timeout` ends idle connections and half requests, but it has no limit on the number of connections and no
timeout for clients that do not read, so the same watching would be needed, and it brings three more packages.
"""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

TIMEOUT_S = 10.0
"""A connection is closed if it sends no complete request header for this long while none of its requests is being
answered. Connections are checked at this interval, so that closing may take twice as long."""

UNREAD_CHECKS = 6
"""A connection is also closed if its client reads nothing of an answer for this many checks. There are several of them
because the system buffers megabytes, which hides the progress of a client on a slow line."""

MOST_CONNECTIONS = 200
"""With this many open connections, requests are answered with 503. Beyond twice as many, connections are closed."""


class Connections:
    """The open connections of one server."""

    def __init__(self) -> None:
        self._open: dict[Any, _Connection] = {}

    def event_loop(self) -> asyncio.AbstractEventLoop:
        """An event loop whose servers have their connections watched."""
        return _WatchingLoop(self)

    def application(self, app: ASGIApp) -> ASGIApp:
        """The application, with a record of which connections wait for an answer."""

        async def recorded(scope: Scope, receive: Receive, send: Send) -> None:
            connection = self._open.get(tuple(scope.get("client") or ()))
            if connection is None:  # closed already, or a lifespan message
                await app(scope, receive, send)
                return
            connection.request_started()
            try:
                await app(scope, receive, send)
            finally:
                connection.request_ended()

        return recorded

    def add(self, address: Any, connection: _Connection) -> bool:
        """Whether there is room for one more connection, which is then recorded."""
        if len(self._open) >= 2 * MOST_CONNECTIONS:
            return False
        self._open[address] = connection
        return True

    def remove(self, address: Any) -> None:
        self._open.pop(address, None)


class _WatchingLoop(asyncio.SelectorEventLoop):
    """An event loop that wraps the protocols of its servers."""

    def __init__(self, connections: Connections) -> None:
        super().__init__()
        self._connections = connections

    async def create_server(self, protocol_factory: Any, *arguments: Any, **options: Any) -> asyncio.Server:
        def watched() -> _Connection:
            return _Connection(protocol_factory(), self._connections)

        return await super().create_server(watched, *arguments, **options)


class _Connection(asyncio.Protocol):
    """Passes everything on to the server's protocol, and closes the connection when it makes no progress."""

    def __init__(self, protocol: asyncio.Protocol, connections: Connections) -> None:
        self._protocol = protocol
        self._connections = connections
        self._answering = 0
        self._events = 0  # requests that started or ended
        self._checks_without_progress = 0
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        self._transport: asyncio.Transport = transport
        self._address = tuple((transport.get_extra_info("peername") or ())[:2])  # what ASGI calls the client
        if self._connections.add(self._address, self):
            self._protocol.connection_made(transport)
            self._check_later()
        else:
            self._protocol = asyncio.Protocol()  # does nothing
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._connections.remove(self._address)
        self._protocol.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._protocol.data_received(data)

    def eof_received(self) -> bool | None:
        return self._protocol.eof_received()

    def pause_writing(self) -> None:
        self._protocol.pause_writing()

    def resume_writing(self) -> None:
        self._protocol.resume_writing()

    def request_started(self) -> None:
        self._answering += 1
        self._events += 1

    def request_ended(self) -> None:
        self._answering -= 1
        self._events += 1

    def _progress(self) -> tuple[int, int]:
        return self._events, self._transport.get_write_buffer_size()

    def _check_later(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(TIMEOUT_S, self._check, self._progress())

    def _check(self, before: tuple[int, int]) -> None:
        self._checks_without_progress = self._checks_without_progress + 1 if self._progress() == before else 0
        if self._transport.get_write_buffer_size():
            stuck = self._checks_without_progress >= UNREAD_CHECKS
        else:
            stuck = self._checks_without_progress > 0 and not self._answering
        if stuck:
            self._transport.abort()  # `close` would wait for the client to read
        else:
            self._check_later()
