"""What the tests of the live page share: clients, and the server in a thread or as a program."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from manyways.web.app import make_app
from manyways.web.server import Server, listen

LONG = {"k": 50, "tradeoff": 32, "slack": 0.05, "seed": 1}  # some seconds; with `endless_path`, hours
TIMEOUT_S = 60.0
HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "content-security-policy": "frame-ancestors 'none'",
}


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, Any]:
        return json.loads(self.body)


@dataclass(frozen=True)
class Client:
    """Someone who looks at the page. Each request has its own connection, unless one is given."""

    port: int

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: dict[str, str] | None = None,
        line: http.client.HTTPConnection | None = None,
    ) -> Answer:
        own = line or self.line()
        sent = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        given = {} if method == "GET" else {"Content-Type": "application/json"}
        try:
            own.request(method, path, sent, given | (headers or {}))
            answer = own.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, found, answer.read())
        finally:
            if line is None:
                own.close()

    def line(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT_S)

    def get(self, path: str, **options: Any) -> Answer:
        return self.ask("GET", path, **options)

    def post(self, path: str, body: Any = None, **options: Any) -> Answer:
        return self.ask("POST", path, {} if body is None else body, **options)

    def mark(self, plan: str, kind: str, value: Any, author: str = "Ada") -> Answer:
        return self.post("/mark", {"plan": plan, "kind": kind, "author": author, "value": value})

    def state(self) -> dict[str, Any]:
        return self.get("/state").json

    def finished(self, job: int) -> dict[str, Any]:
        """How a job ended, once it has."""
        wait_for(lambda: (self.state()["finished"] or {}).get("id") == job)
        return self.state()["finished"]


def wait_for(happened: Callable[[], Any]) -> None:
    end = time.monotonic() + TIMEOUT_S
    while not happened():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


@contextmanager
def served(path: Path, **options: Any) -> Iterator[Client]:
    """The application for a plan file, in a thread of this process."""
    with served_app(make_app(path, **options)) as client:
        yield client


@contextmanager
def served_app(app: Any) -> Iterator[Client]:
    """Any application, in a thread of this process."""
    listener = listen("127.0.0.1", 0)
    server = Server(app)
    thread = threading.Thread(target=server.run, args=(listener,))
    thread.start()
    try:
        wait_for(lambda: server.started)
        yield Client(listener.getsockname()[1])
    finally:
        server.stop()
        thread.join(TIMEOUT_S)
        listener.close()


@dataclass(frozen=True)
class Program:
    """The server as a process of its own."""

    process: subprocess.Popen[str]
    client: Client

    def end(self, how: int) -> int:
        self.process.send_signal(how)
        return self.process.wait(TIMEOUT_S)


@contextmanager
def program(path: Path) -> Iterator[Program]:
    """`manyways serve` for a plan file."""
    command = [sys.executable, "-m", "manyways", "serve", str(path), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith("manyways: look at http://127.0.0.1:"), process.communicate()
            yield Program(process, Client(int(line.split(":")[3].split("/")[0])))
        finally:
            process.kill()
