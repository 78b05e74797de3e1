"""The command line. Exit codes: 0 done, 2 bad input or use, 3 ran but did not converge (or, for
`verify`, a check failed; for studies, a trial failed)."""

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
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `manyways show plans.mw | head` ends quietly, as others do
    try:
        app()
    except ManywaysError as error:
        print(f"manyways: {error}", file=sys.stderr)
        sys.exit(BAD_INPUT)
    except SystemExit as end:
        if end.code == INTERRUPTED:  # the library behind `app` has swallowed the interrupt itself
            print("manyways: interrupted", file=sys.stderr)
        raise
