"""The server as a program: it survives a kill, ends cleanly, and answers while it plans."""

from __future__ import annotations

import signal
import socket
import statistics
import struct
import threading
import time
from pathlib import Path

import psutil
import pytest
from clients import LONG, Client, program, served, wait_for

import manyways as mw
from manyways.errors import OutputError, SettingError
from manyways.web.server import listen, serve


def test_what_was_answered_survives_a_kill(endless_path, keys):
    with program(endless_path) as server:
        assert server.client.post("/plan", LONG | {"keep": [], "set": 1}).status == 202
        wait_for(lambda: server.client.state()["job"]["doing"] != "starting")
        children = psutil.Process(server.process.pid).children(recursive=True)
        assert server.client.mark(keys[2], "note", "by the lake").status == 200
        server.end(signal.SIGKILL)
        wait_for(lambda: not any(child.is_running() and child.status() != "zombie" for child in children))
    with served(endless_path) as client:
        assert [note["text"] for note in client.state()["marks"][keys[2]]["notes"]] == ["by the lake"]


def test_a_clean_end_while_planning_and_with_open_connections(endless_path):
    with program(endless_path) as server:
        assert server.client.post("/plan", LONG | {"keep": [], "set": 1}).status == 202
        wait_for(lambda: server.client.state()["job"]["doing"] != "starting")
        idle, half = server.client.line(), server.client.line()
        assert server.client.get("/state", line=idle).status == 200
        half.connect()
        half.sock.sendall(
            b"POST /mark HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{"
        )
        children = psutil.Process(server.process.pid).children(recursive=True)
        began = time.monotonic()
        assert server.end(signal.SIGINT) == 0
        print(f"ended after {time.monotonic() - began:.2f} s")
        wait_for(lambda: not any(child.is_running() and child.status() != "zombie" for child in children))
        idle.close()
        half.close()
        assert server.process.stderr is not None
        assert "Traceback" not in server.process.stderr.read()


def leave_early(port: int) -> None:
    """Browsers that ask for large answers and close the connection before reading them."""
    for _ in range(20):
        gone = socket.create_connection(("127.0.0.1", port))
        gone.sendall(b"GET /sets/1/plans.mw HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20)
        gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # reset at once
        gone.close()


def test_two_thousand_requests_while_a_plan_is_computed(endless_path, keys):
    with program(endless_path) as server:
        client, process = server.client, psutil.Process(server.process.pid)
        paths = ["/", "/state", "/sets/1/plans/1/policy.json", "/sets/1/plans.mw"]
        for path in paths * 5:  # so that all caches are filled
            assert client.get(path).status == 200
        assert client.mark(keys[0], "star", True).status == 200
        assert client.post("/plan", LONG | {"keep": [], "set": 1}).status == 202
        before = process.memory_info().rss
        latencies, wrong = _load(client, paths, keys, threads=4, each=500)
        leave_early(client.port)
        status = Path(f"/proc/{process.pid}/status")
        if status.exists():  # such a browser may cause SIGPIPE
            ignored = next(line for line in status.read_text().splitlines() if line.startswith("SigIgn"))
            assert int(ignored.split()[1], 16) >> (signal.SIGPIPE - 1) & 1
        growth = process.memory_info().rss - before
        print(
            f"median {1000 * statistics.median(latencies):.1f} ms, slowest {1000 * max(latencies):.0f} ms, {growth / 2**20:.1f} MB more"
        )
        assert wrong == []
        assert len(latencies) == 2000
        assert client.state()["job"] is not None  # it was planning all the time
        notes = client.state()["marks"][keys[0]]["notes"]
        assert sorted(note["text"] for note in notes) == sorted(
            f"{t}, {i}" for t in range(4) for i in range(0, 500, 20)
        )
        assert growth < 64 * 2**20
        assert server.end(signal.SIGTERM) == 0


def _load(client: Client, paths: list[str], keys: list[str], threads: int, each: int) -> tuple[list[float], list[str]]:
    """Requests from several threads at once: how long each took, and which answers were wrong."""
    right = {path: client.get(path).body for path in paths[2:]}
    latencies: list[float] = []
    wrong: list[str] = []

    def ask(number: int) -> None:
        line = client.line()
        for i in range(each):
            path = paths[i % len(paths)]
            began = time.perf_counter()
            if i % 20 == 0:
                mark = {"plan": keys[0], "kind": "note", "author": "Ada", "value": f"{number}, {i}"}
                answer = client.post("/mark", mark, line=line)
            else:
                answer = client.get(path, line=line)
                if path in right and answer.body != right[path]:
                    wrong.append(f"{path}: another body")
                if path == "/state" and answer.json["marks"].keys() != set(keys):
                    wrong.append(f"{path}: other plans")
                if path == "/" and keys[0].encode() not in answer.body:
                    wrong.append(f"{path}: another page")
            latencies.append(time.perf_counter() - began)
            if answer.status != 200:
                wrong.append(f"{path}: {answer.status}")
        line.close()

    workers = [threading.Thread(target=ask, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return latencies, wrong


def test_where_it_cannot_listen():
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(
            OutputError, match=f"port {port} of 127.0.0.1 is in use; choose another port, or 0"
        ) as taken:
            listen("127.0.0.1", port)
    assert taken.value.on_command_line.endswith("is in use; choose another with --port, or --port 0 for any free one")
    with pytest.raises(SettingError, match="0 to 65535"):
        listen("127.0.0.1", 70_000)
    with pytest.raises(OutputError, match="choose another host or port") as unknown:
        listen("no.such.host.invalid", 0)
    assert unknown.value.on_command_line.endswith("see --host and --port")


def test_a_port_is_free_again_when_the_plans_cannot_be_served(tmp_path):
    listener = listen("127.0.0.1", 0)
    with pytest.raises(mw.PlanFileError, match="there is no file"):
        serve(tmp_path / "none.mw", listener, "127.0.0.1")
    assert listener.fileno() == -1
