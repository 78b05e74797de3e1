"""The command that writes the example pages: gallery."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from manyways.cli.common import app


@app.command(epilog="Examples: manyways gallery  |  manyways gallery pages --only building --only maintenance")
def gallery(
    folder: Annotated[Path, typer.Argument(help="Where to write the pages.")] = Path("gallery"),
    only: Annotated[
        list[str] | None, typer.Option(help="Write the page of this example only; can be repeated.")
    ] = None,
) -> None:
    """Plan for example models of all kinds and write a page for each."""
    from manyways.errors import SettingError
    from manyways.gallery import EXAMPLES, write_gallery

    known = [example.name for example in EXAMPLES]
    unknown = [name for name in only or () if name not in known]
    if unknown:
        raise SettingError(f"there is no example {unknown[0]!r}; there are {', '.join(known)}")
    page, left_out = write_gallery(folder, tuple(only or ()), lambda name: print(f"planning {name}", file=sys.stderr))
    for name, reason in left_out.items():
        print(f"manyways: {name} was left out: {reason}", file=sys.stderr)
    print(f"Open {page} in a browser.")
