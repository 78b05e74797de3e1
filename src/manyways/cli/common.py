"""What all commands share: the Typer application, common options, and printing."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from manyways.methods import Progress
    from manyways.model.mdp import MDP

MANY_CELLS = 20_000

app = typer.Typer(
    add_completion=False,
    no_args_is_help=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: twice as fast, and brackets are not markup
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Plan many good ways through a Markov decision process: k near-optimal plans that differ from one another.",
    epilog="Try: manyways serve nine-rooms:7 --k 6 --slack 10% --open",
)

FIRST_STEPS = """\
Plan six ways through a map of nine rooms and look at them:  manyways serve nine-rooms:7 --k 6 --slack 10% --open
Plan for a model of your own (map, table, Gymnasium, PRISM):  manyways plan MODEL --report plans.html
See all commands and their examples:  manyways --help"""


@app.callback(invoke_without_command=True)
def first_steps(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        print(FIRST_STEPS)


Source = Annotated[
    str,
    typer.Argument(
        help="A world (nine-rooms:7), gym:ID, or a file: map (.txt .json .map .yaml .yml), model (.csv .tsv .xlsx .npz .h5 .drn .tra .prism "
        ".nm .pm .jani .rddl), plans (.mw). Settings follow a question mark: four-rooms:0?correct_transition=0.8, robot.prism?const=N=3,B=6&reward=gain, "
        "maze.map?start=1,2&goal=30,40."
    ),
]
PlanFile = Annotated[Path, typer.Argument(metavar="PLANS", help="A file that 'manyways plan --out' wrote.")]
Const = Annotated[str | None, typer.Option("--const", help="Constants of a PRISM or JANI model: N=3,p=0.5.")]
Reward = Annotated[str | None, typer.Option("--reward", help="Name of the reward structure to use.")]
Start = Annotated[str | None, typer.Option("--start", help="Start on a map: x,y in cells, or in metres for nav2 maps.")]
Goal = Annotated[str | None, typer.Option("--goal", help="Goal on a map, in the same units.")]
Restart = Annotated[
    str | None,
    typer.Option("--restart", help="Label of the states at which episodes restart; costs there do not count."),
]
Without = Annotated[
    list[str] | None,
    typer.Option(
        "--without",
        metavar="LABEL",
        help="Label of states, or name of a state, that plans must never enter; can be repeated.",
    ),
]
WithoutAction = Annotated[
    list[str] | None,
    typer.Option("--without-action", metavar="ACTION", help="Action that plans must never take; can be repeated."),
]
Minimise = Annotated[
    bool | None,
    typer.Option("--minimise/--maximise", help="Whether the reward is a cost, to be minimised; by default it is not."),
]


def share(text: str) -> float:
    """A share such as 10%, 10 % or 0.1; a number above 1 needs the percent sign, since 10 hardly ever means 1000 %."""
    number, percent, rest = text.strip().partition("%")
    try:
        if rest.strip():
            raise ValueError
        found = float(number) / (100 if percent else 1)
    except ValueError:
        raise typer.BadParameter(f"expected a share such as 10% or 0.1, found {text!r}") from None
    if not percent and 1 < found < math.inf:
        raise typer.BadParameter(
            f"a share above 1 needs a percent sign: write 10% or 0.1, or 1000% if you mean that; found {text!r}"
        )
    return found


Tradeoff = Annotated[
    float | None,
    typer.Option(
        help="Maximise mean reward + this x diversity, the paper's objective; inf for nothing but diversity within the "
        "limits. Given alone, nothing else limits how good each plan is."
    ),
]
Slack = Annotated[
    float | None,
    typer.Option(
        parser=share,
        metavar="SHARE",
        help="Every plan is at most this share worse than the best one: 10% or 0.1. By default 10%, unless --tradeoff is given.",
    ),
]
Floor = Annotated[float | None, typer.Option(help="Every plan earns at least this much; instead of --slack.")]
Longer = Annotated[
    float | None,
    typer.Option(
        parser=share,
        metavar="SHARE",
        help="Every plan's mean way to the goal is at most this share longer than the shortest one: 10% or 0.1.",
    ),
]
Apart = Annotated[
    float | None,
    typer.Option(
        metavar="RADIUS",
        help="Time spent within this distance counts as the same, as for 'manyways plan': cells, or metres for nav2 maps.",
    ),
]
Discount = Annotated[float | None, typer.Option(help="Count the discounted sum of rewards, with this factor.")]
Route = Annotated[
    Path | None,
    typer.Option(
        help="Write the most likely way to the goal to this file, as waypoints on the map (.csv, .json, or .yaml for a nav_msgs/Path "
        "of ROS); in metres where the map has an origin, otherwise column and row of cells."
    ),
]
Cluster = Annotated[str | None, typer.Option(help="Address of a Dask scheduler, such as tcp://host:8786.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.")]


def with_settings(source: str, **settings: str | list[str] | bool | None) -> str:
    """The source, with the given options appended as settings."""
    from manyways.formats.reader import with_settings as extended

    return extended(source, settings)


def note_on_costs(mdp: MDP) -> None:
    """Say on standard error that a reward is maximised, if it is probably a cost."""
    from manyways.formats.reader import may_be_a_cost

    if may_be_a_cost(mdp):
        print(
            f"manyways: the reward of {mdp.name} is maximised, although it looks like a cost: to minimise it, use "
            "--minimise, ?minimise=true in the source, or mdp.minimising() in Python; --maximise hides this note",
            file=sys.stderr,
        )


def note_on_version(source: str, mdp: MDP) -> None:
    """Say on standard error that Gymnasium has another version of the environment."""
    asked, used = source.partition("?")[0], (mdp.source or source).partition("?")[0]
    if asked.startswith("gym:") and asked != used:
        print(
            f"manyways: Gymnasium no longer has {asked.removeprefix('gym:')}; this is {used.removeprefix('gym:')}",
            file=sys.stderr,
        )


def note_on_size(mdp: MDP) -> None:
    """Say on standard error that a map of a robot has so many cells that planning takes minutes."""
    robots = mdp.layout is not None and mdp.layout.metres_per_cell is not None
    if robots and mdp.n_states > MANY_CELLS and "coarsen=" not in (mdp.source or ""):
        print(
            f"manyways: {mdp.name} has {mdp.n_states:,} free cells, for which planning may take minutes: coarsen=2 in the source "
            "merges 2 x 2 of them into one",
            file=sys.stderr,
        )


def console() -> Any:
    from rich.console import Console

    return Console(highlight=False, markup=False)  # names of models and files are no markup


def print_json(answer: dict[str, Any]) -> None:
    print(json.dumps(answer, indent=1, default=float))


@contextmanager
def progress_bar(*, quiet: bool) -> Iterator[Callable[[Progress], None] | None]:
    """A progress bar on standard error if that is a terminal; yields the callback for `plan`, or None."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[state]}"), TimeElapsedColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading", total=None, state="")

        def show(now: Progress) -> None:
            known = now.objective == now.objective  # NaN until there are plans; until then the total is unknown
            state = f"{now.done / now.total:4.0%}  objective {now.objective:.4f}" if known else ""
            bar.update(task, description=now.doing, completed=now.done, total=now.total if known else None, state=state)

        yield show
