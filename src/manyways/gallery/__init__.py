"""The gallery: twelve example models of all kinds, a page for each, and a page that shows them all.

The models that are files lie in the folder `models` of this package; `example_file` finds them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from manyways.behaviours import Near
from manyways.errors import ManywaysError, OutputError
from manyways.files import write_bytes
from manyways.formats import read
from manyways.model.mdp import MDP
from manyways.planning import plan
from manyways.report import view_of, write_report
from manyways.report.page import rendered

PAGE = "index.html"


@dataclass(frozen=True)
class Example:
    """A model and what is planned for it.

    Attributes:
        name: of its files.
        about: what it is, in one sentence.
        source: of the model; the name of a file in this package, or another source.
        settings: of `plan`.
    """

    name: str
    about: str
    source: str
    settings: dict[str, Any] = field(default_factory=dict)


EXAMPLES = (
    Example(
        "nine-rooms",
        "Nine rooms of the paper, in which moves slip.",
        "nine-rooms:7",
        {"k": 6, "slack": 0.25, "behaviour": Near(), "fewer": True},
    ),
    Example(
        "building",
        "A robot in a building: two halls, joined by three passages.",
        "building.txt",
        {"k": 4, "slack": 0.2, "behaviour": Near(), "fewer": True},
    ),
    Example(
        "field",
        "An open field with two obstacles: ways may go anywhere.",
        "field.txt",
        {"k": 4, "slack": 0.1, "behaviour": Near(), "fewer": True},
    ),
    Example(
        "city",
        "A city with a river and two bridges, a MovingAI map: ways about 10 % longer than the shortest at most.",
        "city.map?start=1,1&goal=46,29",
        {"k": 4, "slack": 0.1, "behaviour": Near(), "fewer": True},
    ),
    Example(
        "frozen-lake", "Gymnasium's FrozenLake: slippery ice with holes.", "gym:FrozenLake-v1", {"k": 4, "slack": 0.2}
    ),
    Example(
        "cliff",
        "Gymnasium's CliffWalking: the shorter the way, the nearer the cliff.",
        "gym:CliffWalking-v1",
        {"k": 3, "slack": 0.4},
    ),
    Example("taxi", "Gymnasium's Taxi: many ways that are equally good.", "gym:Taxi-v3", {"k": 4, "slack": 0.05}),
    Example(
        "maintenance",
        "A machine that wears out, from a table of transitions: when to repair it, and how many parts to keep.",
        "maintenance.csv",
        {"k": 5, "slack": 0.07, "fewer": True},
    ),
    Example(
        "reservoir",
        "Water behind a dam in wet and dry seasons, from a table: when to release it.",
        "reservoir.csv",
        {"k": 5, "slack": 0.12, "fewer": True},
    ),
    Example(
        "fleet",
        "Four machines and one crew, a PRISM model.",
        "fleet.prism?const=W=3",
        {"k": 4, "slack": 0.1, "fewer": True},
    ),
    Example(
        "robot",
        "A robot with a battery, a PRISM model.",
        "robot.prism?const=N=3,B=6&reward=gain",
        {"k": 4, "slack": 0.2, "fewer": True},
    ),
    Example(
        "forty",
        "Forty plans for one map, in groups of plans that are alike.",
        "nine-rooms:3",
        {"k": 40, "tradeoff": 8.0},
    ),
)


def example_file(name: str) -> Path:
    """A model file of this package: "maintenance.csv", "building.txt"."""
    return Path(str(files("manyways.gallery").joinpath("models", name)))


def _model(source: str) -> str | MDP:
    """A source that `plan` takes: models of this package are read here, so that pages name their files without a folder."""
    place, question, settings = source.partition("?")
    return source if ":" in place else read(f"{example_file(place)}{question}{settings}").read_from(source)


def write_gallery(
    folder: Path, names: tuple[str, ...] = (), tell: Callable[[str], None] | None = None
) -> tuple[Path, dict[str, str]]:
    """Plan for all examples, or for those named, and write a page and a plan file for each, and a page that shows all.

    Returns:
        The path of that page, and why examples were left out, by name: packages that they need may be missing.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"cannot write {folder}: {error.strerror}") from None
    shown, left_out = [], {}
    for example in [one for one in EXAMPLES if not names or one.name in names]:
        if tell is not None:
            tell(example.name)
        try:
            plans = plan(_model(example.source), **example.settings)
        except ManywaysError as error:
            left_out[example.name] = str(error)
            continue
        file = plans.save(folder / f"{example.name}.mw")
        write_report(plans, folder / f"{example.name}.html", plans_file=Path(file.name))
        view = view_of(plans)
        shown.append({"name": example.name, "about": example.about, "view": view})
    page = rendered("gallery.html", [], None, examples=shown)
    write_bytes(folder / PAGE, page.encode(errors="replace"))
    return folder / PAGE, left_out
