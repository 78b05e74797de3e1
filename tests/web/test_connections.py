"""Connections that make no progress are closed, and their number is limited."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from contextlib import suppress

import psutil
from clients import TIMEOUT_S, Client, served, served_app, wait_for

from manyways.web import connections, guard
from manyways.web.guard import Guard, Json

HALF_POST = b"POST /cancel HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{"
GET = b"GET /state HTTP/1.1\r\nHost: localhost\r\n\r\n"


def half_asked(client: Client, start: bytes) -> bytes:
    """What a client receives that sends the start of a request and then nothing, until the connection is closed."""
    with socket.create_connection(("127.0.0.1", client.port), TIMEOUT_S) as line:
        line.sendall(start)
        answer = b""
        while chunk := line.recv(4096):
            answer += chunk
        return answer


def test_half_requests_come_to_an_end(client, monkeypatch):
    monkeypatch.setattr(guard, "BODY_S", 0.2)
    monkeypatch.setattr(connections, "TIMEOUT_S", 0.5)
    answer = half_asked(client, HALF_POST)
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"the body did not arrive within 0.2 seconds" in answer
    assert half_asked(client, b"") == b""
    assert half_asked(client, b"GET /state HTTP/1.1\r\nHost: loc") == b""
    assert half_asked(client, GET + b"GET /state HTT").count(b"HTTP/1.1 200 ") == 1
    line = client.line()  # a client that asks from time to time keeps its connection
    for _ in range(6):
        assert client.get("/state", line=line).status == 200
        connection = line.sock
        time.sleep(0.2)
    assert line.sock is connection
    line.close()


def test_a_request_that_arrives_byte_by_byte_comes_to_an_end(client, monkeypatch):
    monkeypatch.setattr(connections, "TIMEOUT_S", 0.3)
    with socket.create_connection(("127.0.0.1", client.port), TIMEOUT_S) as line:
        ended = threading.Event()

        def listen() -> None:
            with suppress(ConnectionResetError):  # if bytes were on their way
                assert line.recv(4096) == b""
            ended.set()

        listener = threading.Thread(target=listen)
        listener.start()

        def send() -> bool:
            with suppress(OSError):
                line.sendall(b"x")
            return ended.is_set()

        line.sendall(b"GET /state HTTP/1.1\r\nX-Long: ")
        wait_for(send)
        listener.join()


def test_there_is_an_end_of_connections(plans_path, monkeypatch):
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 5)
    monkeypatch.setattr(connections, "TIMEOUT_S", 1.0)
    with served(plans_path) as client:
        waiting = [socket.create_connection(("127.0.0.1", client.port)) for _ in range(5)]
        wait_for(lambda: client.get("/state").status == 503)
        wait_for(lambda: client.get("/state").status == 200)  # they asked for nothing and were closed
        assert [line.recv(1) for line in waiting] == [b""] * 5
        for line in waiting:
            line.close()


def test_beyond_twice_that_number_connections_are_closed_at_once(plans_path, monkeypatch):
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 3)
    with served(plans_path) as client:
        waiting = [socket.create_connection(("127.0.0.1", client.port), TIMEOUT_S) for _ in range(6)]
        for _ in range(3):
            with socket.create_connection(("127.0.0.1", client.port), TIMEOUT_S) as one_more:
                assert one_more.recv(1) == b""
        for line in waiting:
            line.close()
        wait_for(lambda: client.get("/state").status == 200)


def test_a_slow_answer_is_waited_for(monkeypatch):
    async def slow(scope, receive, send):
        if scope["type"] == "lifespan":
            for _ in range(2):
                await send({"type": (await receive())["type"] + ".complete"})
            return
        await asyncio.sleep(1.0)
        await Json({"answer": 42})(scope, receive, send)

    monkeypatch.setattr(connections, "TIMEOUT_S", 0.2)
    with served_app(Guard(slow, [])) as client:
        assert client.get("/").json == {"answer": 42}


def test_a_client_that_does_not_read_is_closed(monkeypatch):
    async def large(scope, receive, send):
        if scope["type"] == "lifespan":
            for _ in range(2):
                await send({"type": (await receive())["type"] + ".complete"})
            return
        await Json("x" * 50_000_000)(scope, receive, send)

    def open_here() -> int:
        return sum(
            one.status == psutil.CONN_ESTABLISHED and one.laddr.port == client.port
            for one in psutil.Process().net_connections("tcp")
        )

    monkeypatch.setattr(connections, "TIMEOUT_S", 0.1)
    with served_app(Guard(large, [])) as client:
        with socket.create_connection(("127.0.0.1", client.port), TIMEOUT_S) as line:
            line.sendall(GET)
            assert line.recv(4) == b"HTTP"  # and no more
            wait_for(lambda: open_here() == 0)
        line = client.line()  # a client that reads slowly is not
        line.request("GET", "/")
        answer = line.getresponse()
        read = 0
        while chunk := answer.read(5_000_000):
            read += len(chunk)
            time.sleep(0.15)
        assert read == 50_000_002
        line.close()
