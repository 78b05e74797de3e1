"""Where the rows of a study are kept: one SQLite file in the output folder, a row written as soon as it is there.

Whoever works on the folder holds the file's lock until the end, however that comes; SQLite undoes what a killed
process left half written.
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
BUSY = "another run is working on it; wait for its end, or choose another folder with --out"
DAMAGED = "it is damaged or not a file of rows; move it away, or choose another folder with --out"
ADVICE = {
    "SQLITE_BUSY": BUSY,
    "SQLITE_LOCKED": BUSY,
    "SQLITE_FULL": "the disk is full; the rows written so far are kept: make room and run the same command again",
    "SQLITE_NOTADB": DAMAGED,
    "SQLITE_CORRUPT": DAMAGED,
}


class Store:
    """The rows of all studies of one folder, or, without a folder, of this process. Close it, or use `with`."""

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
        """Take up a study, or go on with it; refuse if it was begun with other settings."""
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
                f"{self.place} holds the study {study!r} with other settings ({changes}); it was left as it is: "
                "repeat its settings to go on with it, or choose another folder with --out"
            )

    def settings(self, study: str) -> dict[str, Any] | None:
        """With what a study was begun, if it was."""
        with self._explained():
            found = self._file.execute("SELECT settings FROM studies WHERE study = ?", (study,)).fetchone()
        return None if found is None else json.loads(found[0])

    def rows(self, study: str) -> dict[str, Row]:
        """What is there already, by trial."""
        with self._explained():
            found = self._file.execute("SELECT key, row FROM rows WHERE study = ?", (study,)).fetchall()
        return {key: json.loads(row) for key, row in found}

    def add(self, study: str, key: str, row: Row) -> None:
        with self._explained():
            self._file.execute("INSERT INTO rows VALUES (?, ?, ?)", (study, key, json.dumps(row)))

    def _explained(self) -> AbstractContextManager[None]:
        return explained(self.place, ADVICE, "the rows written so far are kept")


def _brief(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."
