"""`manyways plan --engine petsc`: the same command in several processes, which mpirun starts.

`--workers N` starts mpirun from here, for processes on this machine. Then Ctrl-C ends the search with the plans so far: mpirun
itself would kill the processes a second after it tells them. On many machines it forwards SIGUSR1, which does the same.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
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

USED = (
    *("k", "slack", "floor", "tradeoff", "seed", "starts", "discount", "time_limit", "per"),
    *("behaviour", "apart", "diversity", "purpose", "workers"),
)
"""The options of `plan` that mean something to the engine; others must keep their defaults."""
STARTED = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK")
"""Variables that launchers of MPI set in the processes that they start."""


def plan_on(
    engine: str, source: str, options: Mapping[str, Any], given: Sequence[str], out: Path | None, as_json: bool
) -> None:
    """Plan in all processes; only the first prints. `given` are the options that were given."""
    from manyways.distributed.feasible_set import EndNow
    from manyways.distributed.team import Team
    from manyways.errors import ManywaysError, SettingError

    if engine != "petsc":
        raise SettingError(f"--engine must be petsc, found {engine!r:.60}")
    if options["workers"] is not None and not any(name in os.environ for name in STARTED):
        raise typer.Exit(_started(options["workers"]))
    team = Team()
    try:
        _plan(team, source, options, given, out, as_json)
    except ManywaysError as error:
        _end(team, BAD_INPUT, error.on_command_line)
    except KeyboardInterrupt as interrupt:
        if team.size == 1:
            raise
        if team.rank == 0 and options["workers"] is None:  # otherwise the process that has started this one says it
            print("manyways: interrupted", file=sys.stderr, flush=True)
        if not isinstance(interrupt, EndNow):
            team.comm.Barrier()
        team.comm.Abort(INTERRUPTED)
    except (typer.Exit, SystemExit):
        raise
    except BaseException as error:  # only this process knows of it: the others would wait for it forever
        sys.excepthook(type(error), error, error.__traceback__)
        print(f"manyways: process {team.rank} failed, so all end", file=sys.stderr, flush=True)
        team.comm.Abort(1)


def _started(processes: int) -> int:
    """Run this command in so many processes on this machine; returns how they ended.

    mpirun gets no signals from the terminal: Ctrl-C is passed on to the processes as SIGUSR1, which leaves them the time to
    write their plans. A second Ctrl-C ends them at once.
    """
    from manyways.distributed.team import INSTALL
    from manyways.errors import SettingError, check_integer

    check_integer("--workers", processes, 1)
    if shutil.which("mpirun") is None:
        raise SettingError(INSTALL)
    again = [sys.executable, "-m", "manyways", *sys.argv[1:]]
    told: list[int] = []

    def tell(number: int, _: object) -> None:
        first = number == signal.SIGINT and not told
        told.append(number)
        mpirun.send_signal(signal.SIGUSR1 if first else signal.SIGTERM)

    # Processes that wait for others must not keep these from working, where there are more of them than cores.
    words = ["mpirun", "--quiet", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1", "-n", str(processes), *again]
    mpirun = subprocess.Popen(words, start_new_session=True)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, tell)
    code = mpirun.wait()
    if code in (0, BAD_INPUT, FAILED, INTERRUPTED):
        return code
    if told:
        return INTERRUPTED
    print(f"manyways: one of the {processes} processes has died, so all have ended", file=sys.stderr)
    return FAILED


def _end(team: Team, code: int, message: str) -> None:
    """End all processes with a code; the first one says why before any has ended, because mpirun then ends the rest."""
    if team.rank == 0:
        print(f"manyways: {message}", file=sys.stderr, flush=True)
    team.comm.Barrier()
    raise typer.Exit(code)


def _plan(
    team: Team, source: str, options: Mapping[str, Any], given: Sequence[str], out: Path | None, as_json: bool
) -> None:
    from manyways.distributed.planning import plan_together
    from manyways.errors import SettingError
    from manyways.methods import VertexAscent
    from manyways.objectives import Representative
    from manyways.polytope import Discounted

    unused = [name for name in given if name not in USED]
    if not source.endswith(".h5"):
        raise SettingError(
            f"the engine plans for models in .h5 files, found {source!r:.100}: manyways convert writes one"
        )
    if unused or options["per"] == "episode":
        wrong = ", ".join(f"--{name.replace('_', '-')}" for name in unused) or "--per episode"
        raise SettingError(f"the engine cannot use {wrong}: leave it out, or plan without --engine")
    if options["workers"] not in (None, team.size):
        raise SettingError(f"mpirun has started {team.size} processes: leave --workers out")
    objective, discount = options["objective"], options["discount"]
    with progress_bar(quiet=as_json or team.rank > 0) as progress:
        plans = plan_together(
            source,
            options["k"],
            options["tradeoff"] if objective is None else None,
            slack=options["slack"],
            floor=options["floor"],
            seed=options["seed"],
            method=VertexAscent(options["starts"]),
            objective=Representative() if options["purpose"] == "preferences" else objective,
            criterion=None if discount is None else Discounted(discount),
            behaviour=options["behaviour"],
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
