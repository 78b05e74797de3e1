"""Reading files that anyone may have made: only regular files, and only up to a given size.

A device or a named pipe could block or never end, so the type of a file is checked on the opened file, which was
opened without waiting.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO

from manyways.errors import ManywaysError, SourceError


def open_regular(path: Path, largest: int, error: type[ManywaysError] = SourceError) -> BinaryIO:
    """Open a regular file of at most `largest` bytes for reading; raise `error` with a sentence otherwise."""
    shown = str(path) if len(str(path)) <= 200 else str(path)[:197] + "..."
    try:
        file = os.fdopen(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)), "rb")
    except FileNotFoundError:
        raise error(f"there is no file {shown}") from None
    except IsADirectoryError:
        raise error(f"{shown} is a folder, expected a file") from None
    except OSError as problem:
        raise error(f"cannot read {shown}: {problem.strerror or problem}") from None
    except ValueError:  # a NUL in the path
        raise error(f"cannot read {shown!r}: a file name cannot contain NUL") from None
    found = os.fstat(file.fileno())
    if stat.S_ISREG(found.st_mode) and found.st_size <= largest:
        return file
    file.close()
    if stat.S_ISREG(found.st_mode):
        raise error(f"{shown} has {found.st_size:,} bytes, more than the {largest:,} that are read")
    raise error(f"{shown} is a {'folder' if stat.S_ISDIR(found.st_mode) else 'device or a pipe'}, expected a file")


def read_bytes(path: Path, largest: int, error: type[ManywaysError] = SourceError) -> bytes:
    """The content of a regular file of at most `largest` bytes; raises `error` with a sentence otherwise."""
    with open_regular(path, largest, error) as file:
        try:
            content = file.read(largest + 1)
        except OSError as problem:
            raise error(f"cannot read {path}: {problem.strerror or problem}") from None
    if len(content) > largest:  # it grew since it was opened
        raise error(f"{path} has more than the {largest:,} bytes that are read")
    return content


def read_text(path: Path, largest: int, what: str) -> str:
    """The content of a UTF-8 text file; `what` completes the message if it is not one: "expected a MovingAI map"."""
    try:
        return read_bytes(path, largest).decode("utf-8")
    except UnicodeDecodeError as problem:
        raise SourceError(f"{path} is not a text file: byte {problem.start} is not UTF-8; {what}") from None
