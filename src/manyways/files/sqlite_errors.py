"""Errors of SQLite as our own errors, with a remedy."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from manyways.errors import OutputError


@contextmanager
def explained(place: str, advice: Mapping[str, str], kept: str) -> Iterator[None]:
    """Turn an error of SQLite into an `OutputError` that says what to do.

    Args:
        place: the file.
        advice: the message for errors whose SQLite name starts with the key, such as "SQLITE_FULL".
        kept: for all other errors, the text after SQLite's own message.
    """
    try:
        yield
    except sqlite3.Error as error:
        reason = getattr(error, "sqlite_errorname", "")
        message = next((text for name, text in advice.items() if reason.startswith(name)), f"{error}; {kept}")
        raise OutputError(f"cannot use {place}: {message}") from None
