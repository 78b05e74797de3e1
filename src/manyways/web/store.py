"""The store of people's choices: one SQLite file beside the plan file.

Two tables matter: the plan sets (that of the file, and those planned since), and the events, to which rows are only
ever added. A call returns when its change is on disk, so everything that was answered survives any end of the server.
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
from manyways.web.events import ANSWER, BACK, SHOW, START, Event, EventSummary, Refused, Rounds

ENDING = ".choices.sqlite"
MOST_EVENTS = 10_000
MOST_SETS = 30
"""How many of the newest sets are stored, besides the first one, those that hold a marked plan and those of the rounds."""

MOST_SETS_IN_ALL = 200

LARGEST_ARCHIVE = 900_000_000  # SQLite takes values below 1,000,000,000 bytes
APPLICATION = 0x6D776368  # "mwch": distinguishes these files from other SQLite files
VERSION = 1
LOCKED = "another program has locked it; wait until that ends and try again"
DAMAGED = "it is damaged or not a file of choices; move it away"
NOT_WRITABLE = "it cannot be written; put the plan file into a folder in which you can write"
ADVICE = {
    "SQLITE_BUSY": LOCKED,
    "SQLITE_LOCKED": LOCKED,
    "SQLITE_FULL": "the disk is full; everything stored so far is safe: free some space and try again",
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
class StoredSet:
    """One plan set in the file: its number, its label, and the keys of its plans."""

    number: int
    label: str
    keys: tuple[str, ...]


@dataclass(frozen=True)
class State:
    """What a page shows: one set, the list of all sets, and marks.

    Attributes:
        shown: the set of the page.
        sets: all sets, oldest first.
        marks: by plan key, of all plans of the set and of marked plans in other sets, since people may look at
            different sets.
        chosen: `set` and `plan` (counted from 1) of the chosen plan in the set in which it was chosen or, if that is not
            known or no longer there, in the newest set that holds it; and its `name`. None if no plan is chosen.
        last_event: the id of the newest event.
        current: the number of the set that is shown unless another one is asked for.
        rounds: choosing by rounds as it stands.
    """

    shown: StoredSet
    sets: tuple[StoredSet, ...]
    marks: dict[str, dict[str, Any]]
    chosen: dict[str, Any] | None
    last_event: int
    current: int
    rounds: Rounds


def choices_path(plans_path: Path) -> Path:
    """`plans.mw` -> `plans.choices.sqlite`."""
    return plans_path.with_name(plans_path.stem + ENDING)


def stored_marks(plans_path: Path) -> dict[str, dict[str, Any]]:
    """By plan key, what people said on the live page of a plan file; nothing if it was never served."""
    path = choices_path(plans_path)
    if not path.exists():
        return {}
    choices = Choices(path)
    try:
        return choices.state().marks
    finally:
        choices.close()


class Choices:
    """The sets and the events of one file. Threads and processes can share it. Must be closed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = RLock()
        self._summary = EventSummary()
        with self._sqlite_errors():
            # `isolation_level=None`: this module begins transactions, not sqlite3
            self._file = sqlite3.connect(path, timeout=5, isolation_level=None, check_same_thread=False)
        try:
            with self._transaction():
                self._make_tables()
            self._inode = path.stat().st_ino
        except BaseException:
            self._file.close()
            raise

    def close(self) -> None:
        with self._lock:
            self._file.close()

    def add_plan_file(self, model: str, archive: bytes, keys: Sequence[str], label: str) -> int | None:
        """Store the set of the plan file and make it the current one, unless it was the file the last time, too.

        Args:
            model: the digest of its model, which must be that of all other sets.
            archive: the content of the file.
            keys: of its plans.
            label: of the set.

        Returns:
            The number of its set; None if the set was stored once and has been dropped since.
        """
        with self._transaction():
            about = dict(self._file.execute("SELECT name, value FROM about"))
            if about.get("model", model) != model:
                raise OutputError(
                    f"{self.path} holds choices for another model (digest {about['model'][:8]}, that of the plans is {model[:8]}); "
                    "it was not changed: move it away, or rename the plan file"
                )
            digest = hashlib.sha256(archive).hexdigest()
            known = self._file.execute("SELECT number FROM sets WHERE digest = ?", (digest,)).fetchone()
            if about.get("file") == digest:
                return None if known is None else known[0]
            number = self._insert_set(label, archive, keys) if known is None else known[0]
            self._show(number)
            for name, value in (("model", model), ("file", digest)):
                self._file.execute("INSERT OR REPLACE INTO about VALUES (?, ?)", (name, value))
            return number

    def state(self, number: int | None = None) -> State:
        """What the page of a set shows, by default of the current set. Includes changes made by other processes."""
        with self._lock, self._sqlite_errors():
            summary, sets = self._summary_now(), self._sets()
            by_number = {stored.number: stored for stored in sets}
            if number is not None and number not in by_number:
                raise no_set(number)
            current = by_number.get(summary.shown, sets[-1])
            shown = current if number is None else by_number[number]
            marked = summary.marked_plans()
            plans = dict.fromkeys((*shown.keys, *(key for stored in sets for key in stored.keys if key in marked)))
            marks, chosen = summary.marks(plans), _chosen(summary, sets)
            return State(shown, sets, marks, chosen, summary.last_event, current.number, summary.rounds)

    def archive(self, number: int) -> bytes | None:
        """The plan file of a set; None if there is no such set."""
        with self._lock, self._sqlite_errors():
            found = self._file.execute("SELECT archive FROM sets WHERE number = ?", (number,)).fetchone()
        return None if found is None else found[0]

    def add_set(self, label: str, archive: bytes, keys: Sequence[str], renamed: Sequence[tuple[str, str]] = ()) -> int:
        """Store a set and make it the current one; returns its number. Plans with a new key keep what was said about them.

        Sets older than the `MOST_SETS` newest are dropped, unless one of their plans has a star, a name or a note.
        Beyond `MOST_SETS_IN_ALL` the oldest are dropped in any case, except for the first set, the current one, those
        of the rounds and the one in which the chosen plan was chosen. Events are never dropped.
        """
        with self._transaction():
            number = self._insert_set(label, archive, keys)
            self._show(number)
            self._carry_over(renamed)
            return number

    def _carry_over(self, renamed: Sequence[tuple[str, str]]) -> None:
        """Say again about a plan with a new key what was said about it under its old key: name, star and notes."""
        marks = self._summary_now().marks(dict(renamed))
        for old, new in renamed:
            mark = marks[old]
            said = [("name", "", mark["name"]), ("star", "", mark["star"])]
            said += [("note", note["author"], note["text"]) for note in mark["notes"]]
            for kind, author, value in said:
                if value:
                    self._insert_event(new, kind, author, value)

    def start_rounds(self, label: str, archive: bytes, keys: Sequence[str], k: int, seed: int) -> int:
        """Store the first set to choose from; returns its number. The current set of the page stays."""
        with self._transaction():
            self._check_room()
            number = self._insert_set(label, archive, keys)
            self._insert_event("", START, "", {"set": number, "k": k, "seed": seed})
            self._drop_sets()
            return number

    def answer(self, asked: int, plan: int, title: str, label: str, archive: bytes, keys: Sequence[str]) -> int:
        """Store that a plan (counted from 0) of set `asked` was taken, and the next set; returns the number of that."""
        with self._transaction():
            self._check_asked(asked)
            self._check_room()
            key = next(stored.keys[plan] for stored in self._sets() if stored.number == asked)
            number = self._insert_set(label, archive, keys)
            self._insert_event(key, ANSWER, "", {"set": asked, "plan": plan, "title": title, "next": number})
            self._drop_sets()
            return number

    def take_back(self, asked: int) -> None:
        """Store that the answer that led to set `asked` was taken back."""
        with self._transaction():
            self._check_asked(asked)
            if len(self._summary_now().rounds.questions) == 1:
                raise Refused("there is no answer to take back", 409)
            self._check_room()
            self._insert_event("", BACK, "", asked)

    def take(self, number: int, plan: int, author: str) -> None:
        """Choose a plan (counted from 0) of a set, and make the set the current one."""
        with self._transaction():
            key = next(stored.keys[plan] for stored in self._sets() if stored.number == number)
            self._check_room()
            self._insert_event(key, "choose", author, number)
            self._show(number)

    def check_asked(self, asked: int) -> None:
        """Raise `Refused` unless set `asked` is the question of the current round."""
        with self._lock, self._sqlite_errors():
            self._check_asked(asked)

    def _check_asked(self, asked: int) -> None:
        questions = self._summary_now().rounds.questions
        if not questions or questions[-1].set != asked:
            raise Refused("these are no longer the plans of the current round: reload the page", 409)

    def mark(self, plan: str, kind: str, author: str, value: Any) -> None:
        """Store what someone said about a plan."""
        with self._transaction():
            if not any(plan in stored.keys for stored in self._sets()):
                raise Refused(f"there is no plan {plan[:20]!r} in the stored sets; reload the page", 404)
            if kind == "remove-note" and value not in self._summary_now().notes.get(plan, {}):
                raise Refused(f"this plan has no note {value}; someone may have removed it already", 404)
            self._check_room()
            self._insert_event(plan, kind, author, value)

    def _make_tables(self) -> None:
        application = self._file.execute("PRAGMA application_id").fetchone()[0]
        if application == APPLICATION:
            version = self._file.execute("PRAGMA user_version").fetchone()[0]
            if version != VERSION:
                raise OutputError(
                    f"{self.path} has version {version} of the format, expected version {VERSION}; "
                    "use the manyways that wrote it, or move it away"
                )
        elif application or self._file.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            raise OutputError(f"{self.path} is not a file of choices; it was not changed: move it away")
        else:
            for statement in SCHEMA:
                self._file.execute(statement)

    def _sets(self) -> tuple[StoredSet, ...]:
        rows = self._file.execute("SELECT number, label, keys FROM sets ORDER BY number").fetchall()
        return tuple(StoredSet(number, label, tuple(json.loads(keys))) for number, label, keys in rows)

    def _summary_now(self) -> EventSummary:
        """The summary of all events, those of other processes included."""
        query = "SELECT id, time, plan, kind, author, value FROM events WHERE id > ? ORDER BY id"
        for row in self._file.execute(query, (self._summary.last_event,)).fetchall():
            self._summary.add(Event(*row[:-1], value=json.loads(row[-1])))
        return self._summary

    def _check_room(self) -> None:
        if self._file.execute("SELECT count(*) FROM events").fetchone()[0] >= MOST_EVENTS:
            raise Refused(
                f"{self.path.name} is full, with {MOST_EVENTS:,} marks: stop the server, move the file away and "
                "serve the plans again to start without marks"
            )

    def _insert_event(self, plan: str, kind: str, author: str, value: Any) -> None:
        row = (_now(), plan, kind, author, json.dumps(value))
        self._file.execute("INSERT INTO events (time, plan, kind, author, value) VALUES (?, ?, ?, ?, ?)", row)

    def _insert_set(self, label: str, archive: bytes, keys: Sequence[str]) -> int:
        if len(archive) > LARGEST_ARCHIVE:
            raise OutputError(
                f"plans of {len(archive):,} bytes are too large for {self.path}, which takes {LARGEST_ARCHIVE:,}"
            )
        number = self._file.execute("SELECT coalesce(max(number), 0) + 1 FROM sets").fetchone()[0]
        digest = hashlib.sha256(archive).hexdigest()
        row = (number, _now(), label, json.dumps(list(keys)), digest, archive)
        self._file.execute("INSERT INTO sets VALUES (?, ?, ?, ?, ?, ?)", row)
        return number

    def _show(self, number: int) -> None:
        self._insert_event("", SHOW, "", number)
        self._drop_sets()

    def _drop_sets(self) -> None:
        dropped = _sets_to_drop(self._summary_now(), self._sets())
        self._file.executemany("DELETE FROM sets WHERE number = ?", [(old,) for old in dropped])

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """One transaction that locks the file, is on disk at its end, and is rolled back after an exception."""
        with self._lock, self._sqlite_errors():
            self._check_not_moved()
            self._file.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._file.execute("COMMIT")
            except BaseException:
                if self._file.in_transaction:
                    self._file.execute("ROLLBACK")
                self._summary = EventSummary()  # it may include what was rolled back
                raise

    def _check_not_moved(self) -> None:
        """SQLite would go on writing into a file that was moved away, where nobody would find it."""
        inode = getattr(self, "_inode", None)
        if inode is not None and (not self.path.exists() or self.path.stat().st_ino != inode):
            raise OutputError(f"{self.path} was moved or replaced while it was in use: restart the server")

    @contextmanager
    def _sqlite_errors(self) -> Iterator[None]:
        try:
            with explained(str(self.path), ADVICE, "everything stored so far is safe"):
                yield
        except json.JSONDecodeError as error:
            raise OutputError(f"cannot use {self.path}: it is damaged ({error}); move it away") from None


def no_set(number: int) -> Refused:
    return Refused(f"there is no set {number}; it may have been dropped to make room for newer ones", 404)


def _chosen(summary: EventSummary, sets: Sequence[StoredSet]) -> dict[str, Any] | None:
    for stored in sorted(sets, key=lambda stored: (stored.number != summary.chosen_in, -stored.number)):
        if summary.chosen in stored.keys:
            plan = stored.keys.index(summary.chosen) + 1
            return {"set": stored.number, "plan": plan, "name": summary.names.get(summary.chosen, "")}
    return None


def _sets_to_drop(summary: EventSummary, sets: Sequence[StoredSet]) -> list[int]:
    """The numbers of the sets that make room for newer ones, see `Choices.add_set`."""
    chosen = _chosen(summary, sets)
    newest = sets[-1].number
    safe = {1, newest, summary.shown, *([chosen["set"]] if chosen else [])}
    safe |= {question.set for question in summary.rounds.questions}
    marked = summary.marked_plans()
    dropped = [
        stored.number
        for stored in sets
        if stored.number <= newest - MOST_SETS and stored.number not in safe and marked.isdisjoint(stored.keys)
    ]
    left = [stored.number for stored in sets if stored.number not in {*dropped, *safe}]
    too_many = len(sets) - len(dropped) - MOST_SETS_IN_ALL
    return dropped + left[: max(too_many, 0)]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
