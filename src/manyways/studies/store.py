"""Where the rows of studies are kept: one SQLite file in the output folder. Each row is written as soon as it exists.

A run holds an exclusive lock on the file until it ends. If a process is killed during a write, SQLite rolls that write
back when the file is next opened.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from manyways.errors import OutputError
from manyways.files.sqlite_errors import explained
from manyways.studies.trial import Row

FILE = "rows.sqlite"
BUSY = "another run is using it; wait until that run has ended, or choose another output folder"
DAMAGED = "it is damaged or not a file of rows; move it away, or choose another output folder"
ADVICE = {
    "SQLITE_BUSY": BUSY,
    "SQLITE_LOCKED": BUSY,
    "SQLITE_FULL": "the disk is full; the rows written so far are kept: make room and run the study again",
    "SQLITE_NOTADB": DAMAGED,
    "SQLITE_CORRUPT": DAMAGED,
}


class Store:
    """The rows of all studies in a folder, or, without a folder, in memory. Use it in a `with` statement."""

    def __init__(self, folder: Path | None) -> None:
        self.place = ":memory:" if folder is None else str(folder / FILE)
        try:
            if folder is not None:
                folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(f"cannot make the folder {folder}: {error.strerror}") from None
        with self._explained():
            self._file = sqlite3.connect(self.place, timeout=0.2, isolation_level=None)
            self._file.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._file.execute("BEGIN EXCLUSIVE")
            self._file.execute("CREATE TABLE IF NOT EXISTS studies (study TEXT PRIMARY KEY, settings TEXT NOT NULL)")
            self._file.execute(
                "CREATE TABLE IF NOT EXISTS rows (study TEXT, key TEXT, row TEXT NOT NULL, PRIMARY KEY (study, key))"
            )
            self._file.execute("COMMIT")

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def begin(self, study: str, settings: Mapping[str, Any]) -> None:
        """Start or resume a study; raise an `OutputError` if the store holds it with other settings."""
        text = json.dumps(settings, sort_keys=True)
        with self._explained():
            self._file.execute("INSERT OR IGNORE INTO studies VALUES (?, ?)", (study, text))
        old = self.settings(study)
        if old is not None and old != json.loads(text):
            names = sorted(name for name in {*old, *settings} if old.get(name) != settings.get(name))
            changes = "; ".join(
                f"{name}: {_brief(old.get(name))} there, {_brief(settings.get(name))} here" for name in names
            )
            raise OutputError(
                f"{self.place} holds the study {study!r} with other settings ({changes}) and was not changed; "
                "use those settings to resume it, or choose another output folder"
            )

    def settings(self, study: str) -> dict[str, Any] | None:
        """The settings with which a study was begun, or None."""
        with self._explained():
            found = self._file.execute("SELECT settings FROM studies WHERE study = ?", (study,)).fetchone()
        return None if found is None else json.loads(found[0])

    def rows(self, study: str) -> dict[str, Row]:
        """The rows of a study by the keys of their trials.

        Rows with an error, which early versions stored, are left out: a failed trial counts as not done.
        """
        with self._explained():
            found = self._file.execute("SELECT key, row FROM rows WHERE study = ?", (study,)).fetchall()
        rows = {key: json.loads(row) for key, row in found}
        return {key: row for key, row in rows.items() if row["error"] is None}

    def add(self, study: str, key: str, row: Row) -> None:
        """Write the row of a trial, replacing one with an error."""
        with self._explained():
            self._file.execute("INSERT OR REPLACE INTO rows VALUES (?, ?, ?)", (study, key, json.dumps(row)))

    def _explained(self) -> AbstractContextManager[None]:
        return explained(self.place, ADVICE, "the rows written so far are kept")


def _brief(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."
