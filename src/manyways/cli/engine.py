"""`manyways plan --engine petsc`: the same command in several processes, which mpirun starts."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from manyways.cli.common import progress_bar
from manyways.cli.exit_codes import BAD_INPUT, FAILED, INTERRUPTED
from manyways.cli.tables import print_plans

if TYPE_CHECKING:
    from manyways.distributed.team import Team

USED = ("k", "slack", "floor", "tradeoff", "seed", "starts", "discount", "behaviour", "time_limit", "per")
"""The options of `plan` that mean something to the engine; others must keep their defaults."""


def plan_on(
    engine: str, source: str, options: Mapping[str, Any], given: Sequence[str], out: Path | None, as_json: bool
) -> None:
    """Plan in all processes; only the first prints. `given` are the options that were given."""
    from manyways.distributed.team import Team
    from manyways.errors import ManywaysError, SettingError

    if engine != "petsc":
        raise SettingError(f"--engine must be petsc, found {engine!r:.60}")
    team = Team()
    try:
        _plan(team, source, options, given, out, as_json)
    except ManywaysError as error:
        _end(team, BAD_INPUT, error.on_command_line)
    except KeyboardInterrupt:
        _end(team, INTERRUPTED, "interrupted")
    except (typer.Exit, SystemExit):
        raise
    except BaseException as error:  # only this process knows of it: the others would wait for it forever
        sys.excepthook(type(error), error, error.__traceback__)
        print(f"manyways: process {team.rank} failed, so all end", file=sys.stderr, flush=True)
        team.comm.Abort(1)


def _end(team: Team, code: int, message: str) -> None:
    """End all processes with a code; the first one says why before any has ended, because mpirun then ends the rest."""
    if team.rank == 0:
        print(f"manyways: {message}", file=sys.stderr, flush=True)
    team.comm.Barrier()
    raise typer.Exit(code)


def _plan(
    team: Team, source: str, options: Mapping[str, Any], given: Sequence[str], out: Path | None, as_json: bool
) -> None:
    from manyways.behaviours import BEHAVIOURS
    from manyways.distributed.planning import plan_together
    from manyways.errors import SettingError
    from manyways.polytope import Discounted

    unused = [name for name in given if name not in USED]
    if unused or options["per"] == "episode" or not source.endswith(".h5"):
        if not source.endswith(".h5"):
            raise SettingError(
                f"the engine plans for models in .h5 files, found {source!r:.100}: manyways convert writes one"
            )
        wrong = ", ".join(f"--{name.replace('_', '-')}" for name in unused) or "--per episode"
        raise SettingError(f"the engine cannot use {wrong}: leave it out, or plan without --engine")
    behaviour, discount = options["behaviour"], options["discount"]
    with progress_bar(quiet=as_json or team.rank > 0) as progress:
        plans = plan_together(
            source,
            options["k"],
            options["tradeoff"],
            slack=options["slack"],
            floor=options["floor"],
            seed=options["seed"],
            starts=options["starts"],
            criterion=None if discount is None else Discounted(discount),
            behaviour=None if behaviour is None else BEHAVIOURS.named(behaviour)(),
            time_limit_s=options["time_limit"],
            progress=progress,
            out=out,
            team=team,
        )
    if team.rank == 0:
        print_plans(plans, {"plans": out}, as_json, plans.memory_mib)  # pyright: ignore[reportArgumentType] (it has all that is printed)
    team.comm.Barrier()
    if not plans.status.converged or plans.certificate.failed:
        raise typer.Exit(FAILED)
