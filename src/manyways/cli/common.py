"""What all commands share: the program, exit codes, and how answers are printed."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

BAD_INPUT, NOT_CONVERGED, INTERRUPTED = 2, 3, 130

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: half the time, and no brackets taken for markup
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Many good ways through a Markov decision process: k plans, all near-optimal, really different.",
    epilog="Try: manyways plan nine-rooms:7 --k 6 --tradeoff 8 --picture plans.png",
)

Json = Annotated[bool, typer.Option("--json", help="Answer with one JSON object on standard output.")]


def console() -> Any:
    from rich.console import Console

    return Console(highlight=False, markup=False)  # names of models and files are shown as they are


def print_json(answer: dict[str, Any]) -> None:
    print(json.dumps(answer, indent=1, default=float))
