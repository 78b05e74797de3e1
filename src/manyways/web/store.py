"""Where people's choices are kept: one SQLite file beside the plans.

Two tables matter: the plan sets (the file's own, and those planned since), and the events, to which only ever
something is added. A call returns when its change is on disk, so what was answered survives whatever ends the server.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import RLock
from typing import Any

from manyways.errors import OutputError
from manyways.files.sqlite_errors import explained
from manyways.web.events import SHOW, Event, Refused, Tally

ENDING = ".choices.sqlite"
MOST_EVENTS = 10_000
MOST_SETS = 30
"""The newest sets kept, besides the first, and besides those that hold a plan of which anything was said."""

MOST_SETS_IN_ALL = 200

LARGEST_ARCHIVE = 900_000_000  # SQLite takes values below 1,000,000,000 bytes
APPLICATION = 0x6D776368  # "mwch": what tells our files from other SQLite files
VERSION = 1
HELD = "another program holds it; wait for its end and try again"
DAMAGED = "it is damaged or not a file of choices; move it away"
NOT_WRITABLE = "it cannot be written; put the plans into a folder of your own"
ADVICE = {
    "SQLITE_BUSY": HELD,
    "SQLITE_LOCKED": HELD,
    "SQLITE_FULL": "the disk is full; what was said so far is kept: make room and try again",
    "SQLITE_NOTADB": DAMAGED,
    "SQLITE_CORRUPT": DAMAGED,
    "SQLITE_CANTOPEN": NOT_WRITABLE,
    "SQLITE_READONLY": NOT_WRITABLE,
}
SCHEMA = (
    "CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE sets (number INTEGER PRIMARY KEY, time TEXT NOT NULL, label TEXT NOT NULL, keys TEXT NOT NULL, "
    "digest TEXT NOT NULL, archive BLOB NOT NULL)",
    "CREATE TABLE events (id INTEGER PRIMARY KEY AUTOINCREMENT, time TEXT NOT NULL, plan TEXT NOT NULL, "
    "kind TEXT NOT NULL, author TEXT NOT NULL, value TEXT NOT NULL)",
    "CREATE TRIGGER no_change BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'events are never changed'); END",
    "CREATE TRIGGER no_loss BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'events are never removed'); END",
    f"PRAGMA application_id = {APPLICATION}",
    f"PRAGMA user_version = {VERSION}",
)


@dataclass(frozen=True)
class KeptSet:
    """One plan set in the file: its number, what it is called, and the keys of its plans."""

    number: int
    label: str
    keys: tuple[str, ...]


@dataclass(frozen=True)
class State:
    """What there is to show: one set, all the sets, the marks on its plans and on those of other sets that have any.

    Others, because each person looks at a set of their own choice. `chosen` says where the chosen plan is: `set`,
    `plan` (counted from 1) in the newest set that holds it, and the `name` that it was given, if any.
    """

    shown: KeptSet
    sets: tuple[KeptSet, ...]
    marks: dict[str, dict[str, Any]]
    chosen: dict[str, Any] | None
    last_event: int


def choices_path(plans_path: Path) -> Path:
    """`plans.mw` -> `plans.choices.sqlite`."""
    return plans_path.with_name(plans_path.stem + ENDING)


class Choices:
    """The sets and the events of one file, for any number of threads, and of processes. Close it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = RLock()
        self._tally = Tally()
        with self._explained():
            # `isolation_level=None`: transactions begin where this module says so, not where sqlite3 guesses
            self._file = sqlite3.connect(path, timeout=5, isolation_level=None, check_same_thread=False)
        try:
            with self._changing():
                self._make_tables()
            self._inode = path.stat().st_ino
        except BaseException:
            self._file.close()
            raise

    def close(self) -> None:
        with self._lock:
            self._file.close()

    def begin(self, model: str, archive: bytes, keys: Sequence[str], label: str) -> None:
        """Take up the plan file as it is now: its model must be the one known; if it changed, it is a new set."""
        with self._changing():
            about = dict(self._file.execute("SELECT name, value FROM about"))
            if about.get("model", model) != model:
                raise OutputError(
                    f"{self.path} holds choices for another model (digest {about['model'][:8]}, the plans' is {model[:8]}); "
                    "it was left as it is: move it away, or give the plans another file name"
                )
            digest = hashlib.sha256(archive).hexdigest()
            if about.get("file") == digest:
                return
            known = self._file.execute("SELECT number FROM sets WHERE digest = ?", (digest,)).fetchone()
            if known is None:
                self._insert_set(label, archive, keys)
            else:
                self._insert_event("", SHOW, "", known[0])
            for name, value in (("model", model), ("file", digest)):
                self._file.execute("INSERT OR REPLACE INTO about VALUES (?, ?)", (name, value))

    def state(self, number: int | None = None) -> State:
        """All there is to show to one who looks at this set, or at the current one; others' writing included."""
        with self._lock, self._explained():
            tally, sets = self._up_to_date(), self._sets()
            by_number = {kept.number: kept for kept in sets}
            if number is not None and number not in by_number:
                raise no_set(number)
            shown = by_number.get(tally.shown if number is None else number, sets[-1])
            marked = tally.said_of()
            plans = dict.fromkeys((*shown.keys, *(key for kept in sets for key in kept.keys if key in marked)))
            return State(shown, sets, tally.marks(plans), _chosen(tally, sets), tally.last_event)

    def archive(self, number: int) -> bytes | None:
        """The plan file of a set, if it is kept."""
        with self._lock, self._explained():
            found = self._file.execute("SELECT archive FROM sets WHERE number = ?", (number,)).fetchone()
        return None if found is None else found[0]

    def add_set(self, label: str, archive: bytes, keys: Sequence[str]) -> int:
        """Keep a set, which is then the current one; returns its number.

        Sets older than the `MOST_SETS` newest go, unless someone gave one of their plans a star, a name or a note.
        Beyond `MOST_SETS_IN_ALL` the oldest go even so, but never the first one and the newest one that holds the
        chosen plan. What was said of a plan is kept as an event in any case.
        """
        with self._changing():
            return self._insert_set(label, archive, keys)

    def mark(self, plan: str, kind: str, author: str, value: Any) -> None:
        """Add what someone said about a plan."""
        with self._changing():
            if not any(plan in kept.keys for kept in self._sets()):
                raise Refused(f"there is no plan {plan[:20]!r} in the sets kept; load the page anew", 404)
            if kind == "remove-note" and value not in self._up_to_date().notes.get(plan, {}):
                raise Refused(f"there is no note {value} on this plan; someone may have removed it already", 404)
            self._check_room()
            self._insert_event(plan, kind, author, value)

    # ---- inside ---------------------------------------------------------------------------------

    def _make_tables(self) -> None:
        application = self._file.execute("PRAGMA application_id").fetchone()[0]
        if application == APPLICATION:
            version = self._file.execute("PRAGMA user_version").fetchone()[0]
            if version != VERSION:
                raise OutputError(
                    f"{self.path} has version {version} of the format, this program knows version {VERSION}; "
                    "use the manyways that wrote it, or move it away"
                )
        elif application or self._file.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            raise OutputError(f"{self.path} is not a file of choices; it was left as it is: move it away")
        else:
            for statement in SCHEMA:
                self._file.execute(statement)

    def _sets(self) -> tuple[KeptSet, ...]:
        rows = self._file.execute("SELECT number, label, keys FROM sets ORDER BY number").fetchall()
        return tuple(KeptSet(number, label, tuple(json.loads(keys))) for number, label, keys in rows)

    def _up_to_date(self) -> Tally:
        query = "SELECT id, time, plan, kind, author, value FROM events WHERE id > ? ORDER BY id"
        for row in self._file.execute(query, (self._tally.last_event,)).fetchall():
            self._tally.add(Event(*row[:-1], value=json.loads(row[-1])))
        return self._tally

    def _check_room(self) -> None:
        if self._file.execute("SELECT count(*) FROM events").fetchone()[0] >= MOST_EVENTS:
            raise Refused(
                f"{self.path.name} holds {MOST_EVENTS:,} marks and takes no more: end the server, move the file away "
                "and serve the plans again to begin with none"
            )

    def _insert_event(self, plan: str, kind: str, author: str, value: Any) -> None:
        said = (_now(), plan, kind, author, json.dumps(value))
        self._file.execute("INSERT INTO events (time, plan, kind, author, value) VALUES (?, ?, ?, ?, ?)", said)

    def _insert_set(self, label: str, archive: bytes, keys: Sequence[str]) -> int:
        if len(archive) > LARGEST_ARCHIVE:
            raise OutputError(f"plans of {len(archive):,} bytes are too large to be kept in {self.path}")
        number = self._file.execute("SELECT coalesce(max(number), 0) + 1 FROM sets").fetchone()[0]
        digest = hashlib.sha256(archive).hexdigest()
        row = (number, _now(), label, json.dumps(list(keys)), digest, archive)
        self._file.execute("INSERT INTO sets VALUES (?, ?, ?, ?, ?, ?)", row)
        self._insert_event("", SHOW, "", number)
        gone = _to_go(self._up_to_date(), self._sets())
        self._file.executemany("DELETE FROM sets WHERE number = ?", [(old,) for old in gone])
        return number

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """One transaction, alone on the file, on disk at its end; undone if anything is refused."""
        with self._lock, self._explained():
            self._check_place()
            self._file.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._file.execute("COMMIT")
            except BaseException:
                if self._file.in_transaction:
                    self._file.execute("ROLLBACK")
                self._tally = Tally()  # it may have counted what was just undone
                raise

    def _check_place(self) -> None:
        """SQLite goes on writing into a file that was moved away; nobody would find it again."""
        inode = getattr(self, "_inode", None)
        if inode is not None and (not self.path.exists() or self.path.stat().st_ino != inode):
            raise OutputError(f"{self.path} was moved or replaced while it was in use: start 'manyways serve' again")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            with explained(str(self.path), ADVICE, "what was said so far is kept"):
                yield
        except json.JSONDecodeError as error:
            raise OutputError(f"cannot use {self.path}: it is damaged ({error}); move it away") from None


def no_set(number: int) -> Refused:
    return Refused(f"there is no set {number}; it may have made room for newer ones", 404)


def _chosen(tally: Tally, sets: Sequence[KeptSet]) -> dict[str, Any] | None:
    for kept in reversed(sets):
        if tally.chosen in kept.keys:
            plan = kept.keys.index(tally.chosen) + 1
            return {"set": kept.number, "plan": plan, "name": tally.names.get(tally.chosen, "")}
    return None


def _to_go(tally: Tally, sets: Sequence[KeptSet]) -> list[int]:
    """The numbers of the sets that make room, see `add_set`."""
    chosen = _chosen(tally, sets)
    safe = {1, sets[-1].number, *([chosen["set"]] if chosen else [])}
    said_of = tally.said_of()
    gone = [
        kept.number
        for kept in sets
        if kept.number <= sets[-1].number - MOST_SETS and kept.number not in safe and said_of.isdisjoint(kept.keys)
    ]
    left = [kept.number for kept in sets if kept.number not in {*gone, *safe}]
    too_many = len(sets) - len(gone) - MOST_SETS_IN_ALL
    return gone + left[: max(too_many, 0)]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
