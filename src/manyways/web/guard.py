"""Checks that every request passes before the application sees it, and headers that every answer gets.

The page is meant for the people of one machine or one network. Other web pages in their browsers must not be able to
use it: neither through a host name that points at this address (the Host header), nor by posting to it (Origin,
Sec-Fetch-Site, and a content type that forms cannot send), nor by framing it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from ipaddress import ip_address
from typing import Any, NoReturn

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from manyways.web.events import Refused

LARGEST_BODY = 64 * 2**10
LARGEST_DRAINED = 2**20
BODY_S = 10.0
BODY = "manyways.body"
"""The key of the scope under which the endpoints of POST find the object that was sent."""

ALWAYS_ALLOWED = ("127.0.0.1", "localhost", "[::1]")
ALL_ADDRESSES = ("0.0.0.0", "[::]")
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": "frame-ancestors 'none'",
}


class Json(JSONResponse):
    """An answer in JSON. Characters that UTF-8 cannot encode are replaced: names of files and models may have some."""

    def render(self, content: Any) -> bytes:
        text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode(errors="replace")


class Guard:
    """ASGI middleware: refuses requests that are not for the application, and reads the objects that are posted."""

    def __init__(self, app: ASGIApp, allowed_hosts: Iterable[str]) -> None:
        self._app = app
        self._allowed = {*ALWAYS_ALLOWED, *(host_in_url(host).lower() for host in allowed_hosts)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        try:
            headers = Headers(scope=scope)
            self._check_host(headers)
            if scope["method"] == "POST":
                _check_origin(headers)
                scope[BODY] = _parsed(await _body_in_time(headers, receive))
        except Refused as refused:
            closing = {"Connection": "close"} if refused.status == 408 else None
            await Json({"error": str(refused)}, refused.status, closing)(scope, receive, send_with_headers)
        else:
            await self._app(scope, receive, send_with_headers)

    def _check_host(self, headers: Headers) -> None:
        host, port = _split_port(headers.get("host", "").lower())
        anywhere = not self._allowed.isdisjoint(ALL_ADDRESSES)
        # numeric addresses are safe, names are not: anyone can make a name of their own point at this machine
        if not (host in self._allowed or (anywhere and _is_address(host))) or not (port.isdigit() or not port):
            raise Refused(
                f"this server does not answer to the host name {host[:80]!r}; use the address that it printed"
            )


def host_in_url(host: str) -> str:
    """A host as it is written in a URL: IPv6 addresses in brackets."""
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def _split_port(host: str) -> tuple[str, str]:
    name, colon, port = host.rpartition(":")
    return (name, port) if colon and (not host.startswith("[") or name.endswith("]")) else (host, "")


def _is_address(host: str) -> bool:
    try:
        ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True


def _check_origin(headers: Headers) -> None:
    origin = headers.get("origin")
    own = f"http://{headers.get('host', '')}"
    if (origin is not None and origin.lower() != own.lower()) or headers.get("sec-fetch-site") == "cross-site":
        raise Refused("requests from other web pages are refused", 403)


async def _body_in_time(headers: Headers, receive: Receive) -> bytes:
    try:
        return await asyncio.wait_for(_body(headers, receive), BODY_S)
    except TimeoutError:
        raise Refused(f"the body did not arrive within {BODY_S:g} seconds: send it again", 408) from None


async def _body(headers: Headers, receive: Receive) -> bytes:
    if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise Refused("the body must be JSON, with the content type application/json", 415)
    body, size = b"", 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Refused("the connection was closed before the end of the body")
        chunk = message.get("body", b"")
        size += len(chunk)
        body = body + chunk if size <= LARGEST_BODY else b""
        # read a little more than allowed: a client that is still sending would not see the answer
        if not message.get("more_body", False) or size > LARGEST_DRAINED:
            break
    if size > LARGEST_BODY:
        raise Refused(f"the body has more than {LARGEST_BODY:,} bytes: send less", 413)
    return body


def _parsed(body: bytes) -> Mapping[str, Any]:
    def refuse(constant: str) -> NoReturn:
        raise ValueError(f"{constant} is not a JSON number")

    try:
        found = json.loads(body, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise Refused(f"the body is not JSON: {str(error)[:200]}") from None
    if not isinstance(found, dict):
        raise Refused("the body must be a JSON object, such as {}")
    return found
