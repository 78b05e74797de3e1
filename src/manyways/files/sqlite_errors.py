"""SQLite's errors as sentences."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from manyways.errors import OutputError


@contextmanager
def explained(place: str, advice: Mapping[str, str], kept: str) -> Iterator[None]:
    """Turn an error of SQLite's into one of ours that says what to do.

    Args:
        place: the file.
        advice: what to say, by how SQLite's name for the error begins.
        kept: what to say of all other errors, after SQLite's own words.
    """
    try:
        yield
    except sqlite3.Error as error:
        reason = getattr(error, "sqlite_errorname", "")
        told = next((words for name, words in advice.items() if reason.startswith(name)), f"{error}; {kept}")
        raise OutputError(f"cannot use {place}: {told}") from None
