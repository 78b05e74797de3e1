"""The command line. This module is loaded in an instant; `main` loads the rest, so that it can handle Ctrl-C then, too."""

from __future__ import annotations

import errno
import signal
import sys
import warnings
from contextlib import suppress

from manyways.cli.exit_codes import BAD_INPUT, INTERRUPTED

__all__ = ["main"]

FAILED_WRITES = {errno.ENOSPC, errno.EFBIG, errno.EIO, getattr(errno, "EDQUOT", errno.ENOSPC)}
"""Errors of a write to an open file. Files are written by `manyways.files`, which raises its own errors, so these come
from standard output."""


def main() -> None:
    """The `manyways` command."""
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # so that `manyways show plans.mw | head` ends quietly
    try:
        code, message = _run()
        if sys.stdout is not None:
            sys.stdout.flush()  # not at the end of the interpreter, which would report an error in its own way
    except KeyboardInterrupt:
        code, message = INTERRUPTED, "interrupted"
    except OSError as error:
        if error.errno not in FAILED_WRITES:
            raise
        code, message = BAD_INPUT, f"cannot write to standard output: {error.strerror}"
    if message is not None:
        with suppress(OSError):  # if standard error cannot be written either, the exit code remains
            print(f"manyways: {message}", file=sys.stderr, flush=True)
    sys.exit(code)


def _run() -> tuple[int | str | None, str | None]:
    """Run the command that the arguments name; returns its exit code and a message for standard error, or None."""
    from manyways.cli.program import app
    from manyways.errors import ManywaysError

    warnings.showwarning = _note
    try:
        app()
    except ManywaysError as error:
        return BAD_INPUT, error.on_command_line
    except SystemExit as end:  # Typer turns a KeyboardInterrupt into the exit code
        return end.code, "interrupted" if end.code == INTERRUPTED else None
    return 0, None


def _note(message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: object) -> None:
    """Print a warning as a note; where in a program it comes from is for warnings that are not about what was given."""
    where = "" if category is UserWarning else f"{filename}:{lineno}: {category.__name__}: "
    print(f"manyways: {where}{message}", file=sys.stderr)
