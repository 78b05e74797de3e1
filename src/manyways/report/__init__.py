"""The page on which a person compares the plans of a set and picks one: one HTML document, with all it needs inside.

`view` turns a plan set into plain data, the templates turn that into the page. The same templates serve the file
that `PlanSet.report` writes and the live page of `manyways serve`, which adds what people said about the plans.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from jinja2 import Environment, PackageLoader, StrictUndefined

from manyways.files import write_bytes
from manyways.plans.planset import PlanSet
from manyways.report.chart import price_chart
from manyways.report.view import kept_in, view

if TYPE_CHECKING:
    from manyways.studies.sweeps import Sweep

__all__ = ["Live", "notebook_view", "render", "write_report"]

_views: WeakKeyDictionary[PlanSet, dict[str, Any]] = WeakKeyDictionary()


@dataclass(frozen=True)
class Live:
    """What a served page shows beside the plans.

    Attributes:
        number: of the set shown, counted from 1.
        sets: `number` and `label` of every set at hand, oldest first.
        marks: by plan key: `name`, `star`, `chosen`, and `notes` with `id`, `author`, `text`, `time`.
        chosen: `set`, `plan` and `name` of the plan that was chosen, if one was.
        last_event: the last thing that anyone did which `marks` knows of.
    """

    number: int
    sets: tuple[dict[str, Any], ...]
    marks: dict[str, dict[str, Any]]
    last_event: int
    chosen: dict[str, Any] | None = None


def render(plans: PlanSet, live: Live | None = None, sweep: Sweep | None = None, plans_file: Path | None = None) -> str:
    """The whole page. What it shows of the plans themselves is worked out once, and remembered while they live."""
    if plans not in _views:
        _views[plans] = view(plans)
    shown = _views[plans] | {"chart": price_chart(plans, sweep), "kept_in": kept_in(plans, plans_file)}
    scripts = ["page.js"] if live is None else ["page.js", "live.js"]
    script = "\n".join(_static(name) for name in scripts)
    return (
        _environment()
        .get_template("page.html")
        .render(view=shown, live=live, style=_static("page.css"), script=script, script_hash=_hash(script))
    )


def write_report(plans: PlanSet, path: Path, sweep: Sweep | None = None, plans_file: Path | None = None) -> None:
    """Write the page as one file that needs no network and no program but a browser."""
    write_bytes(path, render(plans, sweep=sweep, plans_file=plans_file).encode())


def notebook_view(plans: PlanSet) -> str:
    """The page as an element of a notebook: in a frame, so that neither's style touches the other."""
    title = escape(f"{plans.k} plans for {plans.mdp.name}", quote=True)
    return (
        f'<iframe title="{title}" sandbox="allow-scripts allow-downloads" width="100%" height="760" '
        f'style="border: 1px solid #8885; border-radius: 8px" srcdoc="{escape(render(plans), quote=True)}"></iframe>'
    )


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("manyways.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@cache
def _static(name: str) -> str:
    return files("manyways.report").joinpath("static", name).read_text(encoding="utf-8")


@cache
def _hash(script: str) -> str:
    """What a page's security policy names its one script by: nothing else on it can run."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
