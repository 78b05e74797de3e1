"""The command that serves the live page: serve."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated

import typer

from manyways.cli.common import app, progress_bar


@app.command(
    epilog="Examples: manyways serve plans.mw --open  |  manyways serve nine-rooms:7 --k 6 --tradeoff 8 --port 0"
)
def serve(
    plans_or_source: Annotated[
        str,
        typer.Argument(
            metavar="PLANS_OR_SOURCE",
            help="A file that 'manyways plan --out' wrote, or a source as 'manyways plan' takes, which is planned first.",
        ),
    ],
    k: Annotated[int | None, typer.Option(help="How many plans, if a source is planned; 4 by default.")] = None,
    tradeoff: Annotated[
        float | None, typer.Option(help="Worth of diversity in reward; by default the optimal reward.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Of every random draw; 0 by default.")] = None,
    discount: Annotated[
        float | None, typer.Option(help="Discount the future by this factor; by default the long-run average counts.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Keep the plans of a source in this file; by default one named after it.")
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; by default only this machine can reach it.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 takes any free one.")] = 8321,
    open_browser: Annotated[bool, typer.Option("--open", help="Show the page in the browser.")] = False,
) -> None:
    """Serve the page: look, plan again, keep, note, choose."""
    from manyways.errors import SettingError

    path, is_source = Path(plans_or_source), Path(plans_or_source).suffix != ".mw"
    settings = {"--k": k, "--tradeoff": tradeoff, "--seed": seed, "--discount": discount}
    given = [name for name, value in (settings | {"--out": out}).items() if value is not None]
    if given and not is_source:
        raise SettingError(
            f"{', '.join(given)} is for planning a source, and {path} holds plans already: leave it out and plan "
            "again on the page"
        )

    from manyways.web import server

    with server.listen(host, port) as listener:  # first: to plan may take long, and a port may be taken
        if is_source:
            path = out or Path(file_name(plans_or_source))
            if not _is_planned(plans_or_source, path, [name for name in given if name != "--out"]):
                _plan_first(plans_or_source, path, 4 if k is None else k, tradeoff, seed or 0, discount)
        server.serve(path, listener, host, open_browser)


def file_name(source: str) -> str:
    """`nine-rooms:7` -> `nine-rooms-7.mw`, `maps/lab.yaml?start=1,2` -> `lab.mw`."""
    name = re.split(r"[/\\]", source.partition("?")[0])[-1]
    stem = Path(name).stem if "." in name and ":" not in name else name
    return (re.sub(r"[^\w.-]+", "-", stem).strip("-.") or "plans") + ".mw"


def _is_planned(source: str, path: Path, given: list[str]) -> bool:
    """Whether the file holds plans for the source already; if so, says which of the options do not count."""
    from manyways.errors import OutputError
    from manyways.formats import read
    from manyways.plans import load

    if not path.exists():
        return False
    plans = load(path)
    if plans.mdp.digest != read(source, absorbing=plans.criterion.discount < 1).digest:
        raise OutputError(f"{path} holds plans for another model; choose another file with --out")
    shown = _printable(path)
    print(f"manyways: {shown} holds plans for this model already and is served as it is")
    if given:
        print(
            f"manyways: {', '.join(given)} {'was' if len(given) == 1 else 'were'} ignored; to plan anew, remove "
            f"{shown}, choose another file with --out, or plan again on the page"
        )
    return True


def _plan_first(source: str, path: Path, k: int, tradeoff: float | None, seed: int, discount: float | None) -> None:
    from manyways.files import check_writable
    from manyways.formats import read
    from manyways.planning import plan
    from manyways.polytope import Average, Discounted

    check_writable(path)
    mdp = read(source, absorbing=discount is not None)
    criterion = Average() if discount is None else Discounted(discount)
    with progress_bar(quiet=False) as progress:
        plans = plan(mdp, k, tradeoff, seed=seed, criterion=criterion, progress=progress)
    print(f"manyways: {plans.k} plans written to {_printable(plans.save(path))} ({plans.status})")


def _printable(path: Path) -> str:
    """A path as text that any terminal takes: any bytes can be a file's name."""
    return os.fsencode(path).decode(errors="replace")
