"""The command line.

Exit codes: 0 success, 2 bad input or usage, 3 the command ran, but the search did not converge, a check of the
verification failed or a trial of a study failed, 130 interrupted.
"""

from __future__ import annotations

import signal
import sys

from manyways.cli import models, plans, serve, studies
from manyways.cli.common import BAD_INPUT, INTERRUPTED, app

__all__ = ["app", "main", "models", "plans", "serve", "studies"]


def main() -> None:
    """The `manyways` command."""
    from manyways.errors import ManywaysError

    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # so that `manyways show plans.mw | head` ends quietly
    try:
        app()
    except ManywaysError as error:
        print(f"manyways: {error.on_command_line}", file=sys.stderr)
        sys.exit(BAD_INPUT)
    except SystemExit as end:
        if end.code == INTERRUPTED:  # Typer has turned the KeyboardInterrupt into this exit code
            print("manyways: interrupted", file=sys.stderr)
        raise
