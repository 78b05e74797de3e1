"""The command that serves the live page: serve."""

from __future__ import annotations

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
    """Serve a page on which to look at plans, plan again, keep, name, star, note and choose."""
    from manyways.errors import SettingError

    path = Path(plans_or_source)
    if path.suffix == ".mw":
        options = {"--k": k, "--tradeoff": tradeoff, "--seed": seed, "--discount": discount, "--out": out}
        given = [name for name, value in options.items() if value is not None]
        if given:
            raise SettingError(
                f"{', '.join(given)} is for planning a source, and {path} holds plans already: leave it out and plan "
                "again on the page"
            )
    else:
        path = out or Path(file_name(plans_or_source))
        _plan_first(plans_or_source, path, 4 if k is None else k, tradeoff, seed or 0, discount)

    from manyways.web.serving import serve as listen

    listen(path, host, port, open_browser)


def file_name(source: str) -> str:
    """`nine-rooms:7` -> `nine-rooms-7.mw`, `maps/lab.yaml?start=1,2` -> `lab.mw`."""
    name = re.split(r"[/\\]", source.partition("?")[0])[-1]
    stem = Path(name).stem if "." in name and ":" not in name else name
    return (re.sub(r"[^\w.-]+", "-", stem).strip("-.") or "plans") + ".mw"


def _plan_first(source: str, path: Path, k: int, tradeoff: float | None, seed: int, discount: float | None) -> None:
    from manyways.errors import OutputError
    from manyways.formats import read
    from manyways.formats.archive import check_writable
    from manyways.planning import plan
    from manyways.planset import load
    from manyways.polytope import Average, Discounted

    check_writable(path)
    mdp = read(source, absorbing=discount is not None)
    if path.exists():
        if load(path).mdp.digest != mdp.digest:
            raise OutputError(f"{path} holds plans for another model; choose another file with --out")
        print(f"manyways: {path} holds plans for this model already and is served as it is")
        return
    criterion = Average() if discount is None else Discounted(discount)
    with progress_bar(quiet=False) as progress:
        plans = plan(mdp, k, tradeoff, seed=seed, criterion=criterion, progress=progress)
    print(f"manyways: {plans.k} plans written to {plans.save(path)} ({plans.status})")
