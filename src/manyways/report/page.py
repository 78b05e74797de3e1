"""From plain data to the page: templates, style and script in one HTML document."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from manyways.files import write_bytes
from manyways.plans.planset import PlanSet
from manyways.report.minus import printed
from manyways.report.view import view_of

if TYPE_CHECKING:
    from manyways.studies.sweeps import Sweep


@dataclass(frozen=True)
class Live:
    """What the live page shows besides the plans.

    Attributes:
        number: of the set shown, counted from 1.
        sets: `number` and `label` of every stored set, oldest first.
        marks: by plan key: `name`, `star`, `chosen`, and `notes` with `id`, `author`, `text`, `time`.
        last_event: the last event that is part of `marks`.
        chosen: `set`, `plan` and `name` of the chosen plan; None if no plan is chosen.
        current: the number of the set that is shown unless another one is asked for.
        rounds: how many rounds of choosing there were; 0 if nobody has begun.
    """

    number: int
    sets: tuple[dict[str, Any], ...]
    marks: dict[str, dict[str, Any]]
    last_event: int
    chosen: dict[str, Any] | None = None
    current: int = 1
    rounds: int = 0


def render(
    shown: dict[str, Any], live: Live | None = None, marks: Mapping[str, dict[str, Any]] = MappingProxyType({})
) -> str:
    """The HTML of the page that shows what `view_of` returned.

    Args:
        shown: what `view_of` returned.
        live: what the live page shows besides; None for a file.
        marks: what people said about the plans of a file, as `Live.marks`.
    """
    scripts = ["maps.js", "page.js", *(["requests.js", "live.js"] if live else [])]
    return rendered("page.html", scripts, shown, live=live, marks=live.marks if live else marks)


def rendered(template: str, scripts: Sequence[str], shown: dict[str, Any] | None, **more: Any) -> str:
    """The HTML of a template for what `shown` describes, with style and scripts inside."""
    script = "\n".join(_static(name) for name in scripts)
    return (
        _environment()
        .get_template(template)
        .render(view=shown, style=_static("page.css"), script=script, script_hash=_hash(script), **more)
    )


def write_report(
    plans: PlanSet,
    path: Path,
    sweep: Sweep | None = None,
    plans_file: Path | None = None,
    marks: Mapping[str, dict[str, Any]] = MappingProxyType({}),
) -> None:
    """Write the page as one file that needs only a browser; see `view_of` and `render` for the arguments."""
    write_bytes(path, render(view_of(plans, sweep, plans_file), marks=marks).encode(errors="replace"))


def notebook_view(plans: PlanSet) -> str:
    """The page in a frame, as an element of a notebook: the styles of the two do not affect each other."""
    title = escape(f"{plans.k} plans for {plans.mdp.name}", quote=True)
    page = escape(render(view_of(plans)), quote=True)
    return (
        f'<iframe title="{title}" sandbox="allow-scripts allow-downloads" width="100%" height="760" '
        f'style="border: 1px solid #8885; border-radius: 8px" srcdoc="{page}"></iframe>'
    )


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("manyways.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["printed"] = printed
    return environment


@cache
def _static(name: str) -> str:
    return files("manyways.report").joinpath("static", name).read_text(encoding="utf-8")


@cache
def _hash(script: str) -> str:
    """The hash by which the security policy of the page allows its one script; no other script can run."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
