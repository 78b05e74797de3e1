"""Small studies that the tests of this folder share."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from manyways.studies.store import FILE
from manyways.studies.trial import TIMING, Trial

QUICK = {"trials": 2, "values": (2.0, 8.0)}
QUICK_OPTIONS = ["--trials", "2", "--values", "2,8"]


def timeless(rows: list[dict]) -> list[dict]:
    """The rows without the only column that differs from run to run."""
    return [{name: value for name, value in row.items() if name != TIMING} for row in rows]


def small_trials(count: int = 4, method: str = "frank-wolfe") -> list[Trial]:
    return [
        Trial("plan", {"source": "four-rooms:0", "k": 2, "tradeoff": 8.0, "seed": seed, "method": method})
        for seed in range(count)
    ]


def kept_rows(folder: Path) -> dict[str, str]:
    """The stored rows that a killed run left, read from a copy so that SQLite does not repair the file itself."""
    if not (folder / FILE).exists():
        return {}
    for name in (FILE, f"{FILE}-journal"):
        if (folder / name).exists():
            (folder / f"copy-{name}").write_bytes((folder / name).read_bytes())
    try:
        with sqlite3.connect(folder / f"copy-{FILE}") as file:
            return dict(file.execute("SELECT key, row FROM rows").fetchall())
    except sqlite3.OperationalError:  # killed before there were tables
        return {}
    finally:
        for path in folder.glob("copy-*"):
            path.unlink()
