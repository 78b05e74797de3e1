"""The command that serves the live page: serve."""

from __future__ import annotations

import os
import re
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer
from typer.models import OptionInfo

from manyways.cli.common import app, with_settings
from manyways.cli.plans import OF_THE_MODEL, SETTINGS, planned
from manyways.cli.tables import UNVERIFIED_ADVICE

if TYPE_CHECKING:
    from manyways.plans import PlanSet


def serve(
    context: typer.Context,
    plans_or_source: Annotated[
        str,
        typer.Argument(
            metavar="PLANS_OR_SOURCE",
            help="A file that 'manyways plan --out' wrote, or a source as for 'manyways plan', which is planned first.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="Save the plans for a source to this file; by default it is named after the source."),
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; by default only this machine can reach it.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 takes any free one.")] = 8321,
    open_browser: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    **settings: Any,
) -> None:
    """Serve the page: look at plans, plan again, keep, note, choose. All settings of 'manyways plan' can be given."""
    from manyways.errors import SettingError

    path, is_source = Path(plans_or_source), Path(plans_or_source).suffix != ".mw"
    sources = {name: context.get_parameter_source(name) for name in settings}
    changed = {name: settings[name] for name, source in sources.items() if source and source.name == "COMMANDLINE"}
    given = [option_name(name) for name in changed]
    if (given or out is not None) and not is_source:
        raise SettingError(
            f"{', '.join([*given, *(['--out'] if out else [])])} can only be used with a source, and {path} already holds "
            "plans: leave it out and plan again on the page"
        )

    from manyways.web import server

    with server.listen(host, port) as listener:  # first, since planning may take long and the port may be in use
        if is_source:
            path = out or Path(file_name(plans_or_source))
            whole = with_settings(plans_or_source, **{name: settings.get(name) for name in OF_THE_MODEL})
            if not _is_planned(whole, path, given):
                _plan_first(plans_or_source, path, changed)
        server.serve(path, listener, host, open_browser)


def option_name(name: str) -> str:
    """How a setting of `plan` is given on the command line: "--time-limit"."""
    declared = [info for info in get_args(SETTINGS[name].annotation) if isinstance(info, OptionInfo)]
    names = [text for info in declared for text in (info.default, *(info.param_decls or ())) if isinstance(text, str)]
    return names[0].partition("/")[0] if names else "--" + name.replace("_", "-")


# The settings of `plan` are options of this command, too: Typer reads them from the signature.
_own = [parameter for parameter in signature(serve, eval_str=True).parameters.values() if parameter.name != "settings"]
_settings = [parameter.replace(kind=Parameter.KEYWORD_ONLY) for parameter in SETTINGS.values()]
serve.__signature__ = Signature([*_own, *_settings])  # pyright: ignore[reportFunctionMemberAccess]
app.command(
    epilog="Examples: manyways serve plans.mw --open  |  manyways serve nine-rooms:7 --k 6 --slack 5% --port 0"
)(serve)


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


def _plan_first(source: str, path: Path, settings: dict[str, Any]) -> None:
    from manyways.files import check_writable

    check_writable(path)
    plans = planned(source, **settings)
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
