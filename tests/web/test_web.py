"""The live page: what people say is kept, planning is apart, and nothing but the page's own requests is answered."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import sqlite3
import statistics
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import uvicorn

import manyways as mw
from manyways import cli
from manyways.cli.serve import file_name
from manyways.errors import OutputError, SettingError
from manyways.plans.policy import FORMATS
from manyways.web import guard, serving
from manyways.web import store as storing
from manyways.web.app import make_app
from manyways.web.events import Refused, checked_text
from manyways.web.planner import Found, Request
from manyways.web.server import listen, serve
from manyways.web.store import Choices, choices_path
from manyways.web.worker import Worker

SMALL = "four-rooms:0"
LONG = {"k": 50, "tradeoff": 8, "seed": 1}  # tens of seconds: long enough to be interrupted, always
PATIENCE_S = 60.0
COMMAND = "from manyways.cli import main, serving; main()"
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
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)

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
    end = time.monotonic() + PATIENCE_S
    while not happened():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


@pytest.fixture(scope="module")
def made() -> mw.PlanSet:
    return mw.plan(SMALL, k=3, tradeoff=8.0)


@pytest.fixture
def plans_path(made, tmp_path) -> Path:
    return made.save(tmp_path / "plans.mw")


@pytest.fixture
def keys(made) -> list[str]:
    return [made.key(i) for i in range(made.k)]


@contextmanager
def served(path: Path, **options: Any) -> Iterator[Client]:
    """The application in a thread of this process."""
    listener = listen("127.0.0.1", 0)
    server = uvicorn.Server(serving.configured(make_app(path, **options)))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        wait_for(lambda: server.started)
        yield Client(listener.getsockname()[1])
    finally:
        server.should_exit = True
        thread.join(PATIENCE_S)
        listener.close()


@pytest.fixture
def client(plans_path) -> Iterator[Client]:
    with served(plans_path) as client:
        yield client


@pytest.fixture(scope="module")
def patient(made, tmp_path_factory) -> Iterator[Client]:
    """A server for all tests that change nothing."""
    with served(made.save(tmp_path_factory.mktemp("web") / "plans.mw"), allowed_hosts=["lab.example"]) as client:
        yield client


@dataclass(frozen=True)
class Program:
    """The server as a process of its own."""

    process: subprocess.Popen[str]
    client: Client

    def end(self, how: int) -> int:
        self.process.send_signal(how)
        return self.process.wait(PATIENCE_S)


@contextmanager
def program(path: Path) -> Iterator[Program]:
    command = [sys.executable, "-c", COMMAND, "serve", str(path), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            assert said.startswith("manyways: look at http://127.0.0.1:"), process.communicate()
            yield Program(process, Client(int(said.split(":")[3].split("/")[0])))
        finally:
            process.kill()


# ---- the store --------------------------------------------------------------------------------


@pytest.fixture
def choices(tmp_path) -> Iterator[Choices]:
    store = Choices(tmp_path / "plans.choices.sqlite")
    store.begin("model", b"first", ["a", "b"], "first")
    yield store
    store.close()


def test_marks_are_what_the_events_come_to(choices):
    for kind, value in (("name", "left"), ("name", "right"), ("star", True), ("choose", True), ("note", "good")):
        choices.mark("a", kind, "Ada", value)
    choices.mark("a", "note", "Bob", "bad")
    choices.mark("b", "choose", "Bob", True)
    state = choices.state()
    assert state.marks["a"]["name"] == "right"
    assert state.marks["a"]["star"]
    assert not state.marks["a"]["chosen"]  # one plan at most is chosen
    assert state.marks["b"] == {"name": "", "star": False, "chosen": True, "notes": []}
    assert [(note["author"], note["text"]) for note in state.marks["a"]["notes"]] == [("Ada", "good"), ("Bob", "bad")]
    choices.mark("b", "choose", "Bob", False)
    choices.mark("a", "star", "Bob", False)
    choices.mark("a", "remove-note", "Bob", state.marks["a"]["notes"][0]["id"])
    after = choices.state()
    assert not after.marks["b"]["chosen"]
    assert not after.marks["a"]["star"]
    assert [note["text"] for note in after.marks["a"]["notes"]] == ["bad"]
    assert after.last_event == state.last_event + 3


def test_events_are_never_changed(choices):
    choices.mark("a", "note", "Ada", "good")
    choices.mark("a", "remove-note", "Ada", choices.state().last_event)
    file = sqlite3.connect(choices.path)
    assert file.execute("SELECT value FROM events WHERE kind = 'note'").fetchall() == [('"good"',)]
    for statement in ("UPDATE events SET value = '\"bad\"'", "DELETE FROM events"):
        with pytest.raises(sqlite3.IntegrityError, match="never"):
            file.execute(statement)
    file.close()


def test_what_is_unknown_is_refused(choices):
    with pytest.raises(Refused, match="no plan"):
        choices.mark("c", "star", "Ada", True)
    with pytest.raises(Refused, match="no note 7"):
        choices.mark("a", "remove-note", "Ada", 7)
    with pytest.raises(Refused, match="no set 2") as refused:
        choices.state(2)
    assert refused.value.status == 404
    assert choices.state().last_event == 1  # the first set was shown, nothing else


def test_many_threads_and_two_writers(choices):
    other = Choices(choices.path)
    stores = [choices, other] * 3

    def write(number: int) -> None:
        for i in range(20):
            stores[number].mark("a", "note", f"writer {number}", f"{number}, {i}")

    threads = [threading.Thread(target=write, args=(number,)) for number in range(len(stores))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    notes = {note["text"] for note in choices.state().marks["a"]["notes"]}
    assert notes == {f"{number}, {i}" for number in range(6) for i in range(20)}
    assert other.state() == choices.state()
    other.close()


def test_taken_up_again(choices):
    choices.mark("a", "name", "Ada", "left")
    choices.add_set("second", b"second", ["a", "c"])
    before = choices.state()
    assert before.shown.number == 2
    again = Choices(choices.path)
    again.begin("model", b"first", ["a", "b"], "first")
    assert again.state() == before
    assert again.state().marks["a"]["name"] == "left"  # it is in both sets
    again.begin("model", b"by hand", ["d"], "by hand")  # planned anew by hand
    assert again.state().shown == storing.KeptSet(3, "by hand", ("d",))
    again.begin("model", b"second", ["a", "c"], "second")  # a set that was downloaded and put in its place
    assert again.state().shown.number == 2
    with pytest.raises(OutputError, match=r"another model.*move it away"):
        again.begin("other", b"first", ["a", "b"], "first")
    again.close()


def test_each_looks_at_the_set_of_their_choice(choices):
    choices.add_set("second", b"second", ["c", "d", "c"])
    choices.add_set("third", b"third", ["d", "c"])
    assert choices.state().chosen is None
    choices.mark("c", "choose", "Ada", True)
    first = choices.state(1)
    assert (first.shown.number, choices.state().shown.number) == (1, 3)
    assert list(first.marks) == ["a", "b", "c"]  # its own, and those that anything was said of
    assert first.chosen == choices.state().chosen == {"set": 3, "plan": 2, "name": ""}
    choices.mark("c", "name", "Ada", "left")
    choices.add_set("fourth", b"fourth", ["e"])
    assert choices.state().chosen == {"set": 3, "plan": 2, "name": "left"}
    choices.mark("c", "choose", "Ada", False)
    assert choices.state().chosen is None


@pytest.mark.parametrize(("kind", "value"), [("star", True), ("name", "left"), ("note", "good")])
def test_sets_of_which_something_was_said_stay(choices, kind, value):
    choices.add_set("said of", b"said of", ["c"])
    choices.mark("c", kind, "Ada", value)
    for i in range(storing.MOST_SETS + 5):
        choices.add_set("", b"%d" % i, ["d"])
    last = storing.MOST_SETS + 7
    numbers = [kept.number for kept in choices.state().sets]
    assert numbers == [1, 2, *range(last - storing.MOST_SETS + 1, last + 1)]
    if kind == "note":  # and taken back, the set makes room like others
        choices.mark("c", "remove-note", "Ada", choices.state().marks["c"]["notes"][0]["id"])
        choices.add_set("", b"one more", ["d"])
        assert 2 not in [kept.number for kept in choices.state().sets]


def test_even_sets_of_which_something_was_said_have_an_end(choices, monkeypatch):
    monkeypatch.setattr(storing, "MOST_SETS", 2)
    monkeypatch.setattr(storing, "MOST_SETS_IN_ALL", 5)
    choices.add_set("", b"chosen", ["c"])
    choices.mark("c", "choose", "Ada", True)
    choices.add_set("", b"starred", ["d"])
    choices.mark("d", "star", "Ada", True)
    for i in range(6):
        choices.add_set("", b"%d" % i, ["d"])
    assert [kept.number for kept in choices.state().sets] == [1, 2, 7, 8, 9]
    assert choices.state().marks["d"]["star"]


def test_text_is_read_in_the_direction_it_has():
    turned = "a\u202egnp.\u2066b\u2069\u202a \u202b\u202c\u202d\u2067\u2068"
    for what in ("author", "name", "note"):
        assert checked_text(what, turned, 80, lines=what == "note") == "agnp.b"
    assert checked_text("name", "\u05d0\u05d1 \u0627", 80) == "\u05d0\u05d1 \u0627"


def test_old_sets_make_room(choices):
    choices.add_set("chosen", b"chosen", ["c"])
    choices.mark("c", "choose", "Ada", True)
    for i in range(storing.MOST_SETS + 5):
        choices.add_set("", b"%d" % i, ["d"])
    numbers = [kept.number for kept in choices.state().sets]
    last = storing.MOST_SETS + 7
    assert numbers == [1, 2, *range(last - storing.MOST_SETS + 1, last + 1)]
    assert choices.archive(1) == b"first"
    assert choices.archive(3) is None


def test_no_end_of_events_is_refused(choices, monkeypatch):
    monkeypatch.setattr(storing, "MOST_EVENTS", 3)
    choices.mark("a", "star", "Ada", True)
    choices.mark("a", "star", "Ada", False)
    with pytest.raises(Refused, match="no more: end the server"):
        choices.mark("a", "star", "Ada", True)
    choices.add_set("second", b"second", ["a"])
    assert choices.state().shown.number == 2


def test_other_files_are_left_alone(tmp_path):
    garbage, foreign, newer = (tmp_path / f"{name}.sqlite" for name in ("garbage", "foreign", "newer"))
    garbage.write_bytes(b"no database at all, certainly" * 100)
    for path, statement in ((foreign, "CREATE TABLE mine (x)"), (newer, "PRAGMA user_version = 9")):
        if path == newer:
            Choices(newer).close()
        file = sqlite3.connect(path)
        file.execute(statement)
        file.close()
    for path, words in ((garbage, "damaged"), (foreign, "not a file of choices"), (newer, "version 9")):
        before = path.read_bytes()
        with pytest.raises(OutputError, match=f"{words}.*move it away"):
            Choices(path)
        assert path.read_bytes() == before
    with pytest.raises(OutputError, match="cannot be written"):
        Choices(tmp_path / "nowhere" / "x.sqlite")


def test_trouble_is_explained(choices):
    choices._file.execute("PRAGMA max_page_count = 1")  # as if the disk were full
    with pytest.raises(OutputError, match=r"disk is full.*make room"):
        choices.add_set("", bytes(1_000_000), ["a"])
    assert choices.state().shown.number == 1
    choices._file.execute("PRAGMA max_page_count = 100000")
    choices._file.execute("PRAGMA busy_timeout = 10")
    holder = sqlite3.connect(choices.path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    with pytest.raises(OutputError, match="another program holds it"):
        choices.mark("a", "star", "Ada", True)
    holder.close()
    choices.path.rename(choices.path.with_suffix(".moved"))
    with pytest.raises(OutputError, match="was moved"):
        choices.mark("a", "star", "Ada", True)


# ---- the planning process ---------------------------------------------------------------------


@dataclass(frozen=True)
class Bench:
    worker: Worker
    found: list[Found]

    def end(self) -> dict[str, Any]:
        wait_for(lambda: self.worker.job() is None)
        assert self.worker.finished is not None
        return self.worker.finished

    def at_work(self) -> None:
        wait_for(lambda: (self.worker.job() or {}).get("doing") not in (None, "starting"))


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    found: list[Found] = []

    def keep(plans: Found) -> int:
        found.append(plans)
        return len(found)

    worker = Worker(keep)
    yield Bench(worker, found)
    worker.close()
    assert worker.process_id is None


def request(made: mw.PlanSet, **settings: Any) -> Request:
    return Request(made.to_bytes(), **({"k": 3, "tradeoff": 8.0, "seed": 1, "keep": (), "time_limit_s": 60} | settings))


def test_a_job_reports_and_ends(bench, made):
    job = bench.worker.start(request(made, keep=(1,), k=4))
    bench.at_work()
    heard = bench.worker.job()
    assert heard is not None
    assert heard["id"] == job
    assert 0 <= heard["done"] <= heard["total"]
    assert heard["seconds"] >= 0
    assert bench.end() == {"id": job, "ok": True, "message": "converged", "set": len(bench.found)}
    plans = PlanSet.from_bytes(bench.found[-1].archive, "found")
    assert bench.found[-1].keys == tuple(plans[i].key for i in range(4))
    assert bench.found[-1].label == "4 plans, tradeoff 8, seed 1, 1 kept"
    assert made.key(1) in bench.found[-1].keys
    assert made[0].key not in bench.found[-1].keys


def test_a_plan_that_is_there_twice_is_kept_twice_and_not_avoided(bench, made):
    best = made.policies[:1]
    twice = mw.plan(made.mdp, k=3, tradeoff=8.0, keep=np.concatenate((best, best)))
    assert [twice.key(i) for i in range(3)].count(made[0].key) == 2
    one = next(i for i in range(3) if twice.key(i) == made[0].key)
    bench.worker.start(request(twice, keep=(one,), k=2))
    assert bench.end()["ok"]
    found = PlanSet.from_bytes(bench.found[-1].archive, "found")
    assert made[0].key in bench.found[-1].keys
    assert len(found.avoided) == 1  # the third plan, and not the other copy of the kept one
    assert (found.avoided != best).any()


def test_what_cannot_be_planned_is_said_in_a_sentence(bench, made):
    bench.worker.start(request(made, keep=(0, 1, 2), k=3))
    ended = bench.end()
    assert not ended["ok"]
    assert "k must be at least 4" in ended["message"]
    bench.worker.start(Request(b"no plans", 3, 1.0, 0, (), 60))
    assert "not a manyways plans file" in bench.end()["message"]


def test_one_job_at_a_time_and_it_can_be_cancelled(bench, made):
    bench.worker.start(request(made, k=50))
    with pytest.raises(Refused, match="already") as refused:
        bench.worker.start(request(made))
    assert refused.value.status == 409
    bench.at_work()
    before = bench.worker.process_id
    assert bench.worker.cancel()
    assert bench.end()["message"] == "Stopped: nothing was changed."
    assert not bench.worker.cancel()
    bench.worker.start(request(made))
    assert bench.end()["ok"]
    assert bench.worker.process_id != before


def test_time_limit_keeps_the_best_so_far(bench, made):
    bench.worker.start(request(made, k=6, time_limit_s=0.05))
    assert bench.end()["message"] == "time limit"
    assert len(bench.found[-1].keys) == 6


@pytest.mark.parametrize("at_work", [True, False])
def test_a_crash_is_reported_and_the_next_job_works(bench, made, at_work):
    bench.worker.warm()
    if at_work:
        bench.worker.start(request(made, k=50))
        bench.at_work()
    process = psutil.Process(bench.worker.process_id)
    process.kill()
    if at_work:
        ended = bench.end()
        assert not ended["ok"]
        assert "SIGKILL, perhaps for want of memory" in ended["message"]
    else:
        wait_for(lambda: not process.is_running() or process.status() == psutil.STATUS_ZOMBIE)
    bench.worker.start(request(made))
    assert bench.end()["ok"]


# ---- the application --------------------------------------------------------------------------


def test_the_page(client, keys):
    answer = client.get("/")
    assert answer.status == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert all(key in answer.body.decode() for key in keys)
    assert client.get("/").body == answer.body
    assert client.mark(keys[1], "name", "through the <cellar>").status == 200
    page = client.get("/").body.decode()
    assert "through the <cellar>" not in page
    assert "through the &lt;cellar&gt;" in page


def test_old_links_lead_to_a_sentence(client):
    for number, words in (("2", "there is no set 2"), ("<b>", "found &#x27;&lt;b&gt;"), ("-1", "expected a number")):
        answer = client.get(f"/?set={number}")
        assert answer.status == 404
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        assert words in answer.body.decode()
        assert HEADERS.items() <= answer.headers.items()


def test_a_page_is_made_once_and_few_are_remembered(plans_path, keys, made, monkeypatch):
    rendered: list[int] = []

    def render(_: mw.PlanSet, live: Any) -> str:
        rendered.append(live.number)
        return f"{live.number}, {live.chosen}"

    monkeypatch.setattr("manyways.web.session.render", render)
    with served(plans_path) as client, closing(Choices(choices_path(plans_path))) as other:
        for _ in range(4):
            other.add_set("", made.to_bytes(), keys)
        for number in (1, 2, 3, 4, 1, 2, 3, 4):
            assert client.get(f"/?set={number}").body.decode() == f"{number}, None"
        assert client.get("/").body == client.get("/?set=5").body == b"5, None"
        assert rendered == [1, 2, 3, 4, 5]
        assert client.get("/?set=1").status == 200  # it had made room
        client.mark(keys[0], "choose", True)
        assert client.get("/").body.decode() == "5, {'set': 5, 'plan': 1, 'name': ''}"
        assert rendered == [1, 2, 3, 4, 5, 1, 5]


def test_state_and_marks(client, keys):
    state = client.state()
    assert state.keys() == {"server", "set", "last_event", "job", "finished", "marks", "chosen"}
    assert re.fullmatch("[0-9a-f]{16}", state["server"])
    assert client.state()["server"] == state["server"]
    assert state["chosen"] is None
    assert state["set"] == 1
    assert state["job"] is None
    assert state["finished"] is None
    assert list(state["marks"]) == keys
    assert not {"marks", "chosen"} & client.get(f"/state?since={state['last_event']}").json.keys()
    answer = client.mark(keys[0], "note", " so\r\nlong\n", author=" Ada  L. ")
    assert answer.status == 200
    assert answer.json["last_event"] == state["last_event"] + 1
    (note,) = answer.json["marks"][keys[0]]["notes"]
    assert note == {"id": answer.json["last_event"], "author": "Ada L.", "text": "so\nlong", "time": note["time"]}
    assert time.time() - time.mktime(time.strptime(note["time"], "%Y-%m-%dT%H:%M:%SZ")) + time.timezone < 3600
    assert client.get(f"/state?since={state['last_event']}").json["marks"] == answer.json["marks"]
    assert client.mark(keys[0], "remove-note", note["id"]).json["marks"][keys[0]]["notes"] == []
    assert client.mark(keys[0], "remove-note", note["id"]).status == 404
    client.mark(keys[2], "name", "left")
    chosen = client.mark(keys[2], "choose", True).json["chosen"]
    assert client.state()["chosen"] == chosen == {"set": 1, "plan": 3, "name": "left"}


def test_another_server_has_another_name(plans_path):
    names = set()
    for _ in range(2):
        with served(plans_path) as client:
            names.add(client.state()["server"])
    assert len(names) == 2


def test_replacing_plans_keeps_the_kept_one_with_all_that_was_said(client, keys):
    client.mark(keys[1], "name", "the long way")
    client.mark(keys[1], "note", "quiet")
    asked = {"k": 4, "tradeoff": 8, "seed": 5, "keep": [keys[1]], "set": 1}
    started = client.post("/plan", asked)
    assert started.status == 202
    assert started.json == {"job": 1, "server": client.state()["server"]}
    ended = client.finished(started.json["job"])
    assert (ended["ok"], ended["set"]) == (True, 2)
    state = client.state()
    assert state["set"] == 2
    assert len(state["marks"]) == 4
    assert state["marks"][keys[1]]["name"] == "the long way"
    assert [note["text"] for note in state["marks"][keys[1]]["notes"]] == ["quiet"]
    assert not {keys[0], keys[2]} & set(state["marks"])
    assert client.get("/").body == client.get("/?set=2").body
    before = client.get("/?set=1").body.decode()
    assert all(key in before for key in keys)
    assert keys[0] not in client.get("/").body.decode()
    older = client.post("/plan", asked | {"k": 2, "keep": [keys[0]]})  # from a set that is not the newest
    assert older.status == 202
    assert client.finished(older.json["job"])["set"] == 3
    assert keys[0] in client.state()["marks"]
    assert client.post("/plan", asked | {"set": 9}).status == 404


def test_a_plan_that_is_there_twice_counts_twice(made, tmp_path):
    twice = mw.plan(made.mdp, k=3, tradeoff=8.0, keep=np.concatenate((made.policies[:1], made.policies[:1])))
    with served(twice.save(tmp_path / "twice.mw")) as client:
        asked = {"tradeoff": 8, "seed": 0, "keep": [made[0].key], "set": 1}
        refused = client.post("/plan", asked | {"k": 2})
        assert refused.json == {"error": "you keep 2 plans, so ask for at least 3, or keep fewer"}
        started = client.post("/plan", asked | {"k": 4})
        assert client.finished(started.json["job"])["ok"]
        found = PlanSet.from_bytes(client.get("/sets/2/plans.mw").body, "found")
        assert [found[i].key for i in range(4)].count(made[0].key) == 2
        assert len(found.kept) == 2


def test_no_more_can_be_kept_than_there_can_be(plans_path, made):
    with served(plans_path) as client, closing(Choices(choices_path(plans_path))) as other:
        other.add_set("", made.to_bytes(), ["a"] * 50)
        refused = client.post("/plan", {"k": 50, "tradeoff": 8, "keep": ["a"], "set": 2})
        assert refused.json == {"error": "you keep 50 plans, and there can be 50 at most: keep fewer"}


def test_downloads(client, made, keys, tmp_path):
    for ending in FORMATS:
        answer = client.get(f"/sets/1/plans/2/policy{ending}")
        assert answer.status == 200
        assert answer.headers["content-disposition"] == f'attachment; filename="plans-set1-plan2{ending}"'
        (tmp_path / f"policy{ending}").write_bytes(answer.body)
        read = mw.load_policy(tmp_path / f"policy{ending}", made.mdp)
        assert (read.probabilities == made.policies[1]).all()
    whole = client.get("/sets/1/plans.mw")
    assert whole.headers["content-disposition"] == 'attachment; filename="plans-set1.mw"'
    assert [PlanSet.from_bytes(whole.body, "")[i].key for i in range(3)] == keys


def test_planning_is_refused_politely(client, keys):
    good = {"k": 3, "tradeoff": 8, "seed": 0, "keep": [], "set": 1}
    for change, words in (
        ({"k": 51}, "Plans must be an integer from 1 to 50"),
        ({"k": "3"}, "Plans must be"),
        ({"k": True}, "Plans must be"),
        ({"k": 2, "keep": keys[:2]}, "you keep 2 plans, so ask for at least 3, or keep fewer"),
        ({"k": 1, "keep": keys[:1]}, "you keep 1 plan, so ask for at least 2, or keep fewer"),
        ({"set": None}, "'set' must be the number of a set"),
        ({"set": True}, "'set' must be"),
        ({"tradeoff": -1}, "the worth of diversity (tradeoff) must be a finite number of at least 0"),
        ({"tradeoff": 10**400}, "(tradeoff) must be"),
        ({"tradeoff": None}, "(tradeoff) must be"),
        ({"seed": 2**32}, "Seed must be"),
        ({"keep": "all"}, "'keep' must be a list"),
        ({"keep": ["0" * 16]}, "there is no plan '0000000000000000' in set 1"),
    ):
        answer = client.post("/plan", good | change)
        assert answer.status == 400, change
        assert words in answer.json["error"]
    assert client.post("/cancel").json == {"cancelled": False}
    assert client.post("/plan", good | LONG).status == 202
    assert client.post("/plan", good).status == 409
    assert client.state()["job"]["id"] == 1
    assert client.post("/cancel").json == {"cancelled": True}
    assert client.finished(1) == {"id": 1, "ok": False, "message": "Stopped: nothing was changed.", "set": None}
    assert client.state()["set"] == 1


@pytest.mark.parametrize(
    ("change", "status", "words"),
    [
        ({"plan": "0" * 16}, 404, "there is no plan"),
        ({"plan": 7}, 400, "'plan' must be"),
        ({"kind": "show"}, 400, "'kind' must be one of star, name"),
        ({"kind": ["star"]}, 400, "'kind' must be"),
        ({"author": "a" * 41}, 400, "the author has 41 characters, at most 40"),
        ({"author": None}, 400, "the author must be text"),
        ({"value": "n" * 2001}, 400, "the note has 2,001 characters"),
        ({"value": "  "}, 400, "the note is empty"),
        ({"value": "\ud800"}, 400, "control characters"),
        ({"value": "a\0b"}, 400, "control characters"),
        ({"kind": "name", "value": "n" * 81}, 400, "the name has 81"),
        ({"kind": "star", "value": "yes"}, 400, "true or false"),
        ({"kind": "remove-note", "value": 10**30}, 404, "there is no note"),
    ],
)
def test_marks_are_checked(patient, keys, change, status, words):
    said = {"plan": keys[0], "kind": "note", "author": "Ada", "value": "good"} | change
    answer = patient.post("/mark", said)
    assert answer.status == status
    assert words in answer.json["error"]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/favicon.ico", 404),
        ("GET", "/state/", 404),
        ("GET", "//etc/passwd", 404),
        ("GET", "/..%2f..%2fetc/passwd", 404),
        ("GET", "/../plans.choices.sqlite", 404),
        ("GET", "/state?since=x", 400),
        ("GET", "/sets/1/plans/1/policy.pkl", 404),
        ("GET", "/sets/1/plans/1/policy.json%00", 404),
        ("GET", "/sets/1/plans/1/policy...%2f..%2fplans.mw", 404),
        ("GET", "/sets/1/plans/0/policy.json", 404),
        ("GET", "/sets/1/plans/4/policy.json", 404),
        ("GET", "/sets/2/plans/1/policy.json", 404),
        ("GET", "/sets/-1/plans.mw", 404),
        ("GET", "/sets/..%2f1/plans.mw", 404),
        ("GET", f"/sets/{'9' * 5000}/plans.mw", 404),
        ("GET", "/sets/%D9%A1/plans.mw", 404),
        ("GET", "/mark", 405),
        ("POST", "/", 405),
        ("PUT", "/mark", 405),
        ("DELETE", "/sets/1/plans.mw", 405),
        ("OPTIONS", "/mark", 405),
        ("POST", "/nowhere", 404),
        ("POST", "/show", 404),
    ],
)
def test_odd_addresses_and_methods(patient, method, path, status):
    answer = patient.ask(method, path, None if method == "GET" else {})
    assert answer.status == status
    assert answer.json["error"]
    assert HEADERS.items() <= answer.headers.items()


def test_hosts(patient):
    port = patient.port
    good = (f"127.0.0.1:{port}", "localhost", f"LOCALHOST:{port}", f"[::1]:{port}", "lab.example", "lab.example:80")
    for host in good:
        answer = patient.get("/state", headers={"Host": host})
        assert answer.status == 200, host
        assert HEADERS.items() <= answer.headers.items()
    for host in (
        "evil.example",
        f"evil.example:{port}",
        "",
        "127.0.0.1.evil.example",
        "192.168.0.1",
        "localhost:x",
        "::1",
    ):
        answer = patient.get("/state", headers={"Host": host})
        assert answer.status == 400, host
        assert HEADERS.items() <= answer.headers.items()


def test_any_numeric_host_where_the_server_listens_everywhere(plans_path):
    with served(plans_path, allowed_hosts=["0.0.0.0", "lab"]) as client:
        for host, status in (("192.168.0.1:80", 200), ("[fe80::1]", 200), ("lab", 200), ("evil.example", 400)):
            assert client.get("/state", headers={"Host": host}).status == status


def test_other_pages_cannot_post(patient):
    own = f"http://127.0.0.1:{patient.port}"
    for headers, status in (
        ({"Origin": own}, 200),
        ({"Origin": own, "Sec-Fetch-Site": "same-origin"}, 200),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": f"https://127.0.0.1:{patient.port}"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
        ({"Content-Type": "Application/JSON; charset=utf-8"}, 200),
    ):
        answer = patient.post("/cancel", {}, headers=headers)
        assert answer.status == status, headers
        assert HEADERS.items() <= answer.headers.items()


def test_bodies(patient):
    big = b'{"x": "' + b"x" * 64 * 1024 + b'"}'
    for body, status in (
        (b"", 400),
        (b"{", 400),
        (b"[]", 400),
        (b"null", 400),
        (b"\xff\xfe", 400),
        (b'{"x": NaN}', 400),
        (b"[" * 60_000, 400),
        (b'{"x": ' + b"9" * 5_000 + b"}", 400),
        (big, 413),
        (b"x" * 900_000, 413),
        (b"{}", 200),
    ):
        assert patient.post("/cancel", body).status == status, body[:20]
    line = patient.line()  # in pieces, without a length
    chunks = (big[i : i + 1000] for i in range(0, len(big), 1000))
    line.request("POST", "/cancel", chunks, {"Content-Type": "application/json"}, encode_chunked=True)
    assert line.getresponse().status == 413
    line.close()
    assert patient.get("/state").status == 200


def test_damaged_plans_and_foreign_choices_are_refused_at_the_start(plans_path, tmp_path):
    with pytest.raises(mw.PlanFileError, match="there is no file"):
        make_app(tmp_path / "none.mw")
    with pytest.raises(mw.PlanFileError, match="cannot read"):
        make_app(tmp_path)
    (tmp_path / "bad.mw").write_bytes(b"bad")
    with pytest.raises(mw.PlanFileError, match="not a manyways plans file"):
        make_app(tmp_path / "bad.mw")
    choices_path(plans_path).write_bytes(b"no database" * 1000)
    with pytest.raises(OutputError, match="move it away"):
        make_app(plans_path)
    choices_path(plans_path).unlink()
    with served(plans_path):
        pass
    mw.plan("four-rooms:1", k=2, tradeoff=1.0).save(plans_path)
    with pytest.raises(OutputError, match="another model"):
        make_app(plans_path)


def half_asked(client: Client, start: bytes) -> bytes:
    """What is answered to one who begins to ask and does not go on, until the connection is closed."""
    with socket.create_connection(("127.0.0.1", client.port), PATIENCE_S) as line:
        line.sendall(start)
        answer = b""
        while chunk := line.recv(4096):
            answer += chunk
        return answer


HALF_POST = b"POST /cancel HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{"


def test_half_requests_come_to_an_end(client, monkeypatch):
    monkeypatch.setattr(guard, "BODY_S", 0.2)
    monkeypatch.setattr(serving, "ASKING_S", 0.5)
    answer = half_asked(client, HALF_POST)
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"the body did not come within 0.2 seconds" in answer
    assert half_asked(client, b"") == b""
    assert half_asked(client, b"GET /state HTTP/1.1\r\nHost: loc") == b""
    whole = b"GET /state HTTP/1.1\r\nHost: localhost\r\n\r\n"
    assert half_asked(client, whole + b"GET /state HTT").count(b"HTTP/1.1 200 ") == 1
    line = client.line()  # one who asks now and then is served on
    for _ in range(6):
        assert client.get("/state", line=line).status == 200
        connection = line.sock
        time.sleep(0.2)
    assert line.sock is connection
    line.close()


def test_there_is_an_end_of_connections(plans_path, monkeypatch):
    monkeypatch.setattr(serving, "MOST_CONNECTIONS", 5)
    monkeypatch.setattr(serving, "ASKING_S", 1.0)
    with served(plans_path) as client:
        waiting = [socket.create_connection(("127.0.0.1", client.port)) for _ in range(5)]
        wait_for(lambda: client.get("/state").status == 503)
        wait_for(lambda: client.get("/state").status == 200)  # they asked for nothing, and were let go
        assert [line.recv(1) for line in waiting] == [b""] * 5
        for line in waiting:
            line.close()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems allow no such names")
def test_names_that_are_no_text(made, tmp_path):
    nameless = os.fsdecode(b"pl\xe4ne.mw")
    with served(made.save(tmp_path / nameless)) as client:
        assert client.get("/").status == 200
        with closing(Choices(choices_path(tmp_path / nameless))) as other:
            assert other.state().shown.label.startswith("pl\ufffdne.mw: 3 plans")
        assert client.get("/sets/1/plans.mw").headers["content-disposition"] == 'attachment; filename="pl-ne-set1.mw"'
        started = client.post("/plan", {"k": 2, "tradeoff": 1, "seed": 0, "set": 1})
        assert client.finished(started.json["job"])["ok"]
        assert client.get("/").status == 200
        choices_path(tmp_path / nameless).unlink()
        answer = client.mark(made[0].key, "star", True)
        assert answer.status == 400
        assert "pl?ne.choices.sqlite was moved" in answer.json["error"]


# ---- the server as a program ------------------------------------------------------------------


def test_what_was_answered_survives_a_kill(plans_path, keys):
    with program(plans_path) as server:
        assert server.client.post("/plan", LONG | {"keep": [], "set": 1}).status == 202
        wait_for(lambda: server.client.state()["job"]["doing"] != "starting")
        children = psutil.Process(server.process.pid).children(recursive=True)
        assert server.client.mark(keys[2], "note", "by the lake").status == 200
        server.end(signal.SIGKILL)
        wait_for(lambda: not any(child.is_running() and child.status() != "zombie" for child in children))
    with served(plans_path) as client:
        assert [note["text"] for note in client.state()["marks"][keys[2]]["notes"]] == ["by the lake"]


def test_a_clean_end_while_planning_and_with_open_connections(plans_path):
    with program(plans_path) as server:
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
    """Browsers that ask for much and go away before it comes."""
    for _ in range(20):
        gone = socket.create_connection(("127.0.0.1", port))
        gone.sendall(b"GET /sets/1/plans.mw HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20)
        gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # away at once
        gone.close()


def test_two_thousand_requests_while_a_plan_is_computed(plans_path, keys):
    with program(plans_path) as server:
        client, process = server.client, psutil.Process(server.process.pid)
        paths = ["/", "/state", "/sets/1/plans/1/policy.json", "/sets/1/plans.mw"]
        for path in paths * 5:  # what is made once is made
            assert client.get(path).status == 200
        assert client.mark(keys[0], "star", True).status == 200
        assert client.post("/plan", LONG | {"keep": [], "set": 1}).status == 202
        before = process.memory_info().rss
        latencies, wrong = _load(client, paths, keys, threads=4, each=500)
        leave_early(client.port)
        status = Path(f"/proc/{process.pid}/status")
        if status.exists():  # such a browser may send SIGPIPE, if the moment is right
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
    """Requests from several threads at once: how long each took, and what was answered wrongly."""
    right = {path: client.get(path).body for path in paths[2:]}
    latencies: list[float] = []
    wrong: list[str] = []

    def ask(number: int) -> None:
        line = client.line()
        for i in range(each):
            path = paths[i % len(paths)]
            began = time.perf_counter()
            if i % 20 == 0:
                said = {"plan": keys[0], "kind": "note", "author": "Ada", "value": f"{number}, {i}"}
                answer = client.post("/mark", said, line=line)
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
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OutputError, match=f"port {port} of 127.0.0.1 is taken; choose another with --port"):
            listen("127.0.0.1", port)
    with pytest.raises(SettingError, match="0 to 65535"):
        listen("127.0.0.1", 70_000)
    with pytest.raises(OutputError, match="see --host"):
        listen("no.such.host.invalid", 0)


def test_a_port_is_free_again_when_the_plans_cannot_be_served(tmp_path):
    listener = listen("127.0.0.1", 0)
    with pytest.raises(mw.PlanFileError, match="there is no file"):
        serve(tmp_path / "none.mw", listener, "127.0.0.1")
    assert listener.fileno() == -1


# ---- the command ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("nine-rooms:7", "nine-rooms-7.mw"),
        ("maps/lab.yaml?start=1,2", "lab.mw"),
        ("gym:FrozenLake-v1", "gym-FrozenLake-v1.mw"),
        ("..", "plans.mw"),
        ("a b/c d.txt", "c-d.mw"),
    ],
)
def test_plans_are_named_after_their_source(source, name):
    assert file_name(source) == name


@pytest.fixture
def command(tmp_path, monkeypatch, capsys):
    """Runs `manyways serve` in this process up to where it would listen: where that would be, or what was said."""
    asked: list[Any] = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("manyways.web.server.listen", lambda host, port: nullcontext((host, port)))
    monkeypatch.setattr("manyways.web.server.serve", lambda *given: asked.append(given))

    def run(*arguments: str) -> tuple[list[Any], str, str]:
        asked.clear()
        monkeypatch.setattr(sys, "argv", ["manyways", "serve", *arguments])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        assert (ended.value.code or 0) == (0 if asked else 2)
        return (list(asked), *capsys.readouterr())

    return run


def test_the_command_plans_first_and_serves_what_is_there(command, plans_path, tmp_path):
    own = Path("four-rooms-0.mw")
    asked, out, _ = command(SMALL, "--k", "2", "--discount", "0.9", "--port", "0")
    assert asked == [(own, ("127.0.0.1", 0), "127.0.0.1", False)]
    assert "2 plans written to four-rooms-0.mw" in out
    assert (mw.load(own).k, mw.load(own).criterion) == (2, mw.Discounted(0.9))
    asked, out, _ = command(SMALL, "--host", "::1", "--open")
    assert asked == [(own, ("::1", 8321), "::1", True)]
    assert out == "manyways: four-rooms-0.mw holds plans for this model already and is served as it is\n"
    asked, out, _ = command(SMALL, "--k", "3", "--seed", "0", "--out", str(own))
    assert asked
    assert "--k, --seed were ignored; to plan anew, remove four-rooms-0.mw, choose another file with --out" in out
    assert mw.load(own).k == 2
    assert command(str(plans_path))[0] == [(plans_path, ("127.0.0.1", 8321), "127.0.0.1", False)]
    (tmp_path / "other.txt").write_text("S..\n..G\n")
    for arguments, words in (
        (("other.txt", "--out", str(own)), "another model; choose another file with --out"),
        ((str(own), "--k", "3"), "--k is for planning a source"),
        (("nowhere.txt",), "nowhere.txt"),
        (("other.txt", "--out", "none/x.mw"), "there is no folder none"),
    ):
        asked, _, err = command(*arguments)
        assert words in err
        assert not asked


def test_the_command_says_when_there_is_no_file(tmp_path):
    command = [sys.executable, "-c", COMMAND, "serve", "none.mw"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (2, "", "manyways: there is no file none.mw\n")


def test_a_taken_port_is_found_out_before_planning(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        command = [sys.executable, "-c", COMMAND, "serve", SMALL, "--port", port]
        ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == f"manyways: port {port} of 127.0.0.1 is taken; choose another with --port, or 0 for any\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform != "linux", reason="other systems allow no such names")
def test_the_command_takes_files_whose_names_are_no_text(tmp_path):
    out = tmp_path / os.fsdecode(b"pl\xe4ne.mw")
    command = [sys.executable, "-c", COMMAND, "serve", SMALL, "--k", "2", "--port", "0", "--out", str(out)]
    environment = os.environ | {"PYTHONUTF8": "1", "PYTHONIOENCODING": "utf-8:strict"}
    for words in ("2 plans written to", "holds plans for this model already"):
        with subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8"
        ) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            said = process.stdout.readline()
            assert words in said, process.stderr.read()
            assert "pl\ufffdne.mw" in said
            while "look at http" not in said:
                said = process.stdout.readline()
                assert said, process.stderr.read()
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE_S) == 0
            assert process.stderr.read() == ""
