"""The command that serves the live page: serve."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from manyways.cli.common import Discount, Slack, Tradeoff, app
from manyways.cli.plans import read_and_plan
from manyways.cli.tables import UNVERIFIED_ADVICE

if TYPE_CHECKING:
    from manyways.plans import PlanSet


@app.command(
    epilog="Examples: manyways serve plans.mw --open  |  manyways serve nine-rooms:7 --k 6 --slack 5% --port 0"
)
def serve(
    plans_or_source: Annotated[
        str,
        typer.Argument(
            metavar="PLANS_OR_SOURCE",
            help="A file that 'manyways plan --out' wrote, or a source as for 'manyways plan', which is planned first.",
        ),
    ],
    k: Annotated[int | None, typer.Option(help="Number of plans for a source; by default 4.")] = None,
    slack: Slack = None,
    tradeoff: Tradeoff = None,
    seed: Annotated[int | None, typer.Option(help="Seed of all random draws; by default 0.")] = None,
    discount: Discount = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Save the plans for a source to this file; by default it is named after the source."),
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; by default only this machine can reach it.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 takes any free one.")] = 8321,
    open_browser: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
) -> None:
    """Serve the page: look at plans, plan again, keep, note, choose."""
    from manyways.errors import SettingError

    path, is_source = Path(plans_or_source), Path(plans_or_source).suffix != ".mw"
    options = {"--k": k, "--slack": slack, "--tradeoff": tradeoff, "--seed": seed, "--discount": discount}
    given = [name for name, value in (options | {"--out": out}).items() if value is not None]
    if given and not is_source:
        raise SettingError(
            f"{', '.join(given)} can only be used with a source, and {path} already holds plans: leave it out and plan "
            "again on the page"
        )

    from manyways.web import server

    with server.listen(host, port) as listener:  # first, since planning may take long and the port may be in use
        if is_source:
            path = out or Path(file_name(plans_or_source))
            if not _is_planned(plans_or_source, path, [name for name in given if name != "--out"]):
                settings = {"slack": slack, "seed": seed or 0}
                _plan_first(plans_or_source, path, 4 if k is None else k, tradeoff, discount, settings)
        server.serve(path, listener, host, open_browser)


def file_name(source: str) -> str:
    """`nine-rooms:7` -> `nine-rooms-7.mw`, `maps/lab.yaml?start=1,2` -> `lab.mw`."""
    name = re.split(r"[/\\]", source.partition("?")[0])[-1]
    stem = Path(name).stem if "." in name and ":" not in name else name
    return (re.sub(r"[^\w.-]+", "-", stem).strip("-.") or "plans") + ".mw"


def _is_planned(source: str, path: Path, given: list[str]) -> bool:
    """Whether the file already holds plans for the source; if so, prints which of the given options are ignored."""
    from manyways.errors import OutputError
    from manyways.formats import read
    from manyways.plans import load

    if not path.exists():
        return False
    plans = load(path)
    if plans.mdp.digest != read(source, absorbing=plans.criterion.discount < 1).digest:
        raise OutputError(f"{path} holds plans for another model; choose another file with --out")
    shown = _printable(path)
    print(f"manyways: {shown} already holds plans for this model and is served unchanged")
    if given:
        print(
            f"manyways: {', '.join(given)} {'was' if len(given) == 1 else 'were'} ignored; to use them, remove "
            f"{shown}, choose another file with --out, or plan again on the page"
        )
    return True


def _plan_first(
    source: str, path: Path, k: int, tradeoff: float | None, discount: float | None, settings: dict[str, Any]
) -> None:
    from manyways.files import check_writable
    from manyways.polytope import Discounted

    check_writable(path)
    plans = read_and_plan(source, k, tradeoff, None if discount is None else Discounted(discount), **settings)
    print(f"manyways: {plans.k} plans written to {_printable(plans.save(path))} ({', '.join(_ending(plans))})")
    if plans.certificate is not None and plans.certificate.failed:
        print(f"manyways: {UNVERIFIED_ADVICE}")


def _ending(plans: PlanSet) -> list[str]:
    """How the search ended, and whether the plans are verified, unless the status says so."""
    from manyways.methods import Status

    if plans.certificate is None or plans.status is Status.NOT_VERIFIED:
        return [str(plans.status)]
    return [str(plans.status), "verified" if plans.certificate.ok else "NOT verified"]


def _printable(path: Path) -> str:
    """A path as text that any terminal can show: a file name can be any bytes."""
    return os.fsencode(path).decode(errors="replace")
