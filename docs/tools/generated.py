"""What the site has that no person writes: the reference of commands, the API, and the gallery with its pictures."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path

import click
import typer

import manyways as mw

KINDS = {
    "Planning": ("plan", "read", "verify", "load", "load_policy", "simulate", "register"),
    "Models": ("MDP", "Grid", "explore", "explore_into", "from_mdptoolbox", "from_quantecon", "Format"),
    "Worlds": ("four_rooms", "nine_rooms", "room_world", "tiled_rooms", "grid_world"),
    "Results": ("PlanSet", "Plan", "Policy", "Route", "Certificate", "Status", "Progress"),
    "Limits and criteria": ("Limits", "Average", "Discounted", "Episodic", "Criterion", "Polytope"),
    "What counts as different": (
        *("StateActions", "States", "Near", "Regions", "Labels", "Actions", "Features"),
        *("Behaviour", "Grouping", "Mixing"),
    ),
    "Objectives": (
        *("Representative", "MeanDivergence", "LeastDivergence", "SpreadDivergence", "JointDivergence"),
        *("DeterminantDivergence", "Congestion", "Coverage", "Objective", "SetObjective"),
    ),
    "Preferences and rounds": (
        *("Preferences", "PossibleRewards", "PossibleClosures", "PreferencePrior", "Conversation"),
        *("LearnedPreference", "served", "Serving", "audience", "Audience"),
    ),
    "Methods": ("VertexAscent", "FrankWolfe", "ProjectedGradient", "Method", "Ascent"),
    "Questions": (
        *("freedom", "Freedom", "how_many", "Ways", "closures", "Closure", "survival", "Survival", "risk", "Risk"),
        *("switching", "Switching", "team", "Team", "end_components", "reachable_from_start"),
    ),
    "Studies": ("paper", "sweep", "Sweep", "Results"),
}
"""The public names, in the order of the reference. Errors, which are left, come last."""


def api_page() -> str:
    """The reference of the API: a directive of autodoc for each public name."""
    placed = {name for names in KINDS.values() for name in names}
    errors = tuple(name for name in mw.__all__ if name not in placed)
    parts = ["# API\n\nAll names of `import manyways as mw`, from their docstrings.\n"]
    for title, names in {**KINDS, "Errors": errors}.items():
        parts.append(f"## {title}\n")
        for name in names:
            kind = "autofunction" if not isinstance(getattr(mw, name), type) else "autoclass"
            parts.append(f"```{{eval-rst}}\n.. {kind}:: manyways.{name}\n```\n")
    return "\n".join(parts)


def commands_page() -> str:
    """The reference of commands: what `--help` prints, for each."""
    parts = ["# Commands\n\nWhat `--help` of each command prints.\n"]
    for name, command in commands().items():
        context = click.Context(command, info_name=f"manyways {name}", max_content_width=100, terminal_width=100)  # pyright: ignore[reportArgumentType]
        parts.append(f"## manyways {name}\n\n```text\n{command.get_help(context)}\n```\n")  # pyright: ignore[reportArgumentType]
    return "\n".join(parts)


def commands() -> dict[str, click.Command]:
    """The commands of `manyways`, by name."""
    from manyways.cli.program import app

    return dict(typer.main.get_command(app).commands)  # pyright: ignore[reportAttributeAccessIssue]


def gallery_page(folder: Path, only: tuple[str, ...] = ()) -> str:
    """Writes the gallery to a folder, and returns the page of the site that shows it, with a picture of each model.

    With `only`, the models of these names alone.
    """
    from manyways.gallery import EXAMPLES, write_gallery

    left_out = write_gallery(folder, only)[1]
    if left_out:
        raise RuntimeError(f"the gallery is not complete: {left_out}")
    parts = [
        "# Gallery\n\nTwelve models, each with the page that `manyways gallery` writes for it: choose a picture to "
        "open it. The command writes all of them into a folder on your machine, and "
        "`manyways gallery pages --only building` a single one. The lines of Python below need `import manyways as mw` and "
        "`from manyways.gallery import example_file`, which finds the models that are files.\n"
    ]
    for example in EXAMPLES:
        if only and example.name not in only:
            continue
        page = (folder / f"{example.name}.html").read_text()
        (folder / f"{example.name}.svg").write_text(picture_of_page(page))
        count = len(mw.load(folder / f"{example.name}.mw"))
        source = _in_python(example.source)
        settings = re.sub(r"\b([A-Z]\w*)\(", r"mw.\1(", ", ".join(f"{a}={b!r}" for a, b in example.settings.items()))
        about = escape(example.about, quote=True)
        parts.append(
            f"## {example.name}\n\n{example.about}\n\n"
            f'<a href="gallery/{example.name}.html"><img src="gallery/{example.name}.svg" alt="{about}" class="way"></a>\n\n'
            f"{count} plans: `mw.plan({source}, {settings})`. "
            f'<a href="gallery/{example.name}.html">Open the page.</a>\n'
        )
    return "\n".join(parts)


def _in_python(source: str) -> str:
    """A source of the gallery as an expression of Python, which finds the file."""
    place, question, settings = source.partition("?")
    if ":" in place:
        return f'"{source}"'
    return f"f\"{{example_file('{place}')}}?{settings}\"" if question else f'example_file("{place}")'


def _style() -> str:
    from manyways.report import page

    return (Path(page.__file__).parent / "static" / "page.css").read_text()


def picture_of_page(page: str) -> str:
    """The picture of all plans on a page, as a file of its own."""
    found = re.search(
        r'<div class="mapbox[^>]*?style="(?P<variables>[^"]*)"[^>]*>\s*(?P<svg><svg.*?</svg>)', page, re.S
    )
    if found is None:
        raise RuntimeError("a page of the gallery has no picture")
    own = f"{found['variables']}; font-family: sans-serif; background: var(--map)"
    svg = found["svg"].replace("<svg", f'<svg xmlns="http://www.w3.org/2000/svg" style="{own}"', 1)
    svg = svg.replace("&nbsp;", "\u00a0")
    return re.sub(r"(<svg[^>]*>)", lambda head: f"{head.group()}<style><![CDATA[{_style()}]]></style>", svg, count=1)
