"""The store of choices: marks, sets, several writers, other files."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator

import pytest

from manyways.errors import OutputError
from manyways.web import store
from manyways.web.events import Refused
from manyways.web.store import Choices


@pytest.fixture
def choices(tmp_path) -> Iterator[Choices]:
    choices = Choices(tmp_path / "plans.choices.sqlite")
    assert choices.add_plan_file("model", b"first", ["a", "b"], "first") == 1
    yield choices
    choices.close()


def test_marks_sum_up_the_events(choices):
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


def test_unknown_plans_notes_and_sets_are_refused(choices):
    with pytest.raises(Refused, match="no plan"):
        choices.mark("c", "star", "Ada", True)
    with pytest.raises(Refused, match="no note 7"):
        choices.mark("a", "remove-note", "Ada", 7)
    with pytest.raises(Refused, match="no set 2") as refused:
        choices.state(2)
    assert refused.value.status == 404
    assert choices.state().last_event == 1  # only the one that shows the first set


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


def test_files_of_version_0_1_0_can_be_opened(tmp_path):
    path = tmp_path / "plans.choices.sqlite"
    with sqlite3.connect(path) as file:
        file.executescript(
            """
            CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL);
            CREATE TABLE sets (number INTEGER PRIMARY KEY, time TEXT NOT NULL, label TEXT NOT NULL,
                keys TEXT NOT NULL, digest TEXT NOT NULL, archive BLOB NOT NULL);
            CREATE TABLE events (id INTEGER PRIMARY KEY AUTOINCREMENT, time TEXT NOT NULL, plan TEXT NOT NULL,
                kind TEXT NOT NULL, author TEXT NOT NULL, value TEXT NOT NULL);
            INSERT INTO about VALUES ('model', 'model'), ('file', 'digest');
            INSERT INTO sets VALUES (1, '2025-01-01T00:00:00Z', 'old', '["a", "b"]', 'digest', X'00');
            INSERT INTO events VALUES (1, '2025-01-01T00:00:00Z', '', 'show', '', '1');
            INSERT INTO events VALUES (2, '2025-01-01T00:00:00Z', 'b', 'name', 'Ada', '"left"');
            INSERT INTO events VALUES (3, '2025-01-01T00:00:00Z', 'b', 'choose', 'Ada', 'true');
            PRAGMA application_id = 0x6D776368;
            PRAGMA user_version = 1;
            """
        )
    file.close()
    choices = Choices(path)
    state = choices.state()
    assert state.shown == store.StoredSet(1, "old", ("a", "b"))
    assert state.marks["b"] == {"name": "left", "star": False, "chosen": True, "notes": []}
    assert choices.archive(1) == b"\0"
    choices.mark("a", "star", "Bob", True)
    assert choices.add_plan_file("model", b"new", ["c"], "new") == 2
    choices.close()


def test_the_set_of_the_file_may_have_been_dropped(choices, monkeypatch):
    monkeypatch.setattr(store, "MOST_SETS", 1)
    assert choices.add_plan_file("model", b"by hand", ["c"], "by hand") == 2
    choices.add_set("", b"third", ["d"])
    assert choices.add_plan_file("model", b"by hand", ["c"], "by hand") is None
    assert choices.state().shown.number == 3


def test_a_file_is_opened_again(choices):
    choices.mark("a", "name", "Ada", "left")
    choices.add_set("second", b"second", ["a", "c"])
    before = choices.state()
    assert before.shown.number == 2
    again = Choices(choices.path)
    assert again.add_plan_file("model", b"first", ["a", "b"], "first") == 1
    assert again.state() == before
    assert again.state().marks["a"]["name"] == "left"  # it is in both sets
    assert again.add_plan_file("model", b"by hand", ["d"], "by hand") == 3  # the file was overwritten
    assert again.state().shown == store.StoredSet(3, "by hand", ("d",))
    assert again.add_plan_file("model", b"second", ["a", "c"], "second") == 2  # a downloaded set in its place
    assert again.state().shown.number == 2
    with pytest.raises(OutputError, match=r"another model.*move it away"):
        again.add_plan_file("other", b"first", ["a", "b"], "first")
    again.close()


def test_people_look_at_different_sets(choices):
    choices.add_set("second", b"second", ["c", "d", "c"])
    choices.add_set("third", b"third", ["d", "c"])
    assert choices.state().chosen is None
    choices.mark("c", "choose", "Ada", True)
    first = choices.state(1)
    assert (first.shown.number, choices.state().shown.number) == (1, 3)
    assert list(first.marks) == ["a", "b", "c"]  # its own, and those that are marked
    assert first.chosen == choices.state().chosen == {"set": 3, "plan": 2, "name": ""}
    choices.mark("c", "choose", "Ada", 2)  # in the second set
    assert choices.state().chosen == {"set": 2, "plan": 1, "name": ""}
    choices.mark("c", "choose", "Ada", True)
    choices.mark("c", "name", "Ada", "left")
    choices.add_set("fourth", b"fourth", ["e"])
    assert choices.state().chosen == {"set": 3, "plan": 2, "name": "left"}
    choices.mark("c", "choose", "Ada", False)
    assert choices.state().chosen is None


@pytest.mark.parametrize(("kind", "value"), [("star", True), ("name", "left"), ("note", "good")])
def test_sets_with_marked_plans_are_not_dropped(choices, kind, value):
    choices.add_set("marked", b"marked", ["c"])
    choices.mark("c", kind, "Ada", value)
    for i in range(store.MOST_SETS + 5):
        choices.add_set("", b"%d" % i, ["d"])
    last = store.MOST_SETS + 7
    numbers = [stored.number for stored in choices.state().sets]
    assert numbers == [1, 2, *range(last - store.MOST_SETS + 1, last + 1)]
    if kind == "note":  # without it the set is dropped like others
        choices.mark("c", "remove-note", "Ada", choices.state().marks["c"]["notes"][0]["id"])
        choices.add_set("", b"one more", ["d"])
        assert 2 not in [stored.number for stored in choices.state().sets]


def test_the_number_of_sets_with_marked_plans_is_limited(choices, monkeypatch):
    monkeypatch.setattr(store, "MOST_SETS", 2)
    monkeypatch.setattr(store, "MOST_SETS_IN_ALL", 5)
    choices.add_set("", b"chosen", ["c"])
    choices.mark("c", "choose", "Ada", True)
    choices.add_set("", b"starred", ["d"])
    choices.mark("d", "star", "Ada", True)
    for i in range(6):
        choices.add_set("", b"%d" % i, ["d"])
    assert [stored.number for stored in choices.state().sets] == [1, 2, 7, 8, 9]
    assert choices.state().marks["d"]["star"]


def test_old_sets_are_dropped(choices):
    choices.add_set("chosen", b"chosen", ["c"])
    choices.mark("c", "choose", "Ada", True)
    for i in range(store.MOST_SETS + 5):
        choices.add_set("", b"%d" % i, ["d"])
    numbers = [stored.number for stored in choices.state().sets]
    last = store.MOST_SETS + 7
    assert numbers == [1, 2, *range(last - store.MOST_SETS + 1, last + 1)]
    assert choices.archive(1) == b"first"
    assert choices.archive(3) is None


def test_the_number_of_events_is_limited(choices, monkeypatch):
    monkeypatch.setattr(store, "MOST_EVENTS", 3)
    choices.mark("a", "star", "Ada", True)
    choices.mark("a", "star", "Ada", False)
    with pytest.raises(Refused, match="is full, with 3 marks: stop the server"):
        choices.mark("a", "star", "Ada", True)
    choices.add_set("second", b"second", ["a"])
    assert choices.state().shown.number == 2


def test_other_files_are_left_alone(tmp_path):
    garbage, foreign, newer = (tmp_path / f"{name}.sqlite" for name in ("garbage", "foreign", "newer"))
    garbage.write_bytes(b"this is not a database" * 100)
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


def test_errors_of_sqlite_are_explained(choices):
    choices._file.execute("PRAGMA max_page_count = 1")  # as if the disk were full
    with pytest.raises(OutputError, match=r"disk is full.*free some space"):
        choices.add_set("", bytes(1_000_000), ["a"])
    assert choices.state().shown.number == 1
    choices._file.execute("PRAGMA max_page_count = 100000")
    choices._file.execute("PRAGMA busy_timeout = 10")
    locker = sqlite3.connect(choices.path, isolation_level=None)
    locker.execute("BEGIN EXCLUSIVE")
    with pytest.raises(OutputError, match="another program has locked it"):
        choices.mark("a", "star", "Ada", True)
    locker.close()
    choices.path.rename(choices.path.with_suffix(".moved"))
    with pytest.raises(OutputError, match="was moved"):
        choices.mark("a", "star", "Ada", True)
