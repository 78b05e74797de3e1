"""Writing files whole or not at all.

A file is written under a temporary name in its folder and then renamed. An interrupt or a full disk leaves the old
file as it was, and a reader never sees half a file.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from manyways.errors import OutputError


def check_writable(path: Path) -> None:
    """Raise an `OutputError` if `path` cannot be written; called before long work whose result goes there."""
    if "\0" in str(path):
        raise OutputError(f"cannot write {str(path)!r}: a file name cannot contain NUL")
    try:
        if path.is_dir():
            raise OutputError(f"cannot write {path}: it is a folder")
        folder = path.parent
        if not folder.is_dir():
            raise OutputError(f"cannot write {path}: there is no folder {folder}")
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror}") from None


@contextmanager
def atomic(path: Path) -> Iterator[BinaryIO]:
    """A binary file to write to, which takes the place of `path` when the block ends without an exception.

    Several files that belong together can be written in one `with` statement: an exception in the block discards all.
    """
    check_writable(path)
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name[:100]}.", dir=path.parent)
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror}") from None
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)  # mkstemp makes private files; results are for sharing
        os.replace(temporary, path)
    except BaseException as error:  # KeyboardInterrupt, too, must leave no temporary file
        with suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError):
            raise OutputError(f"cannot write {path}: {error.strerror or error}") from None
        raise


def write_bytes(path: Path, content: bytes) -> None:
    """Write a whole file."""
    with atomic(path) as file:
        file.write(content)
