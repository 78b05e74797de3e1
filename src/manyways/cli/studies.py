"""The commands that run many plans: paper, study, sweep, bench."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from manyways.cli.common import Cluster, Json, Source, app, print_json
from manyways.cli.exit_codes import FAILED, INTERRUPTED

if TYPE_CHECKING:
    from manyways.studies.study import StudyResults

Workers = Annotated[
    int | None, typer.Option(help="Number of processes; by default one per core. The rows do not depend on it.")
]


@app.command(epilog="Examples: manyways paper all  |  manyways paper tradeoff --values 0:16:2 --trials 3 --out quick")
def paper(
    study: Annotated[
        str,
        typer.Argument(
            help="One of: worlds, methods, tradeoff, tradeoff-maps, set-size, set-size-maps, transition, theory, all."
        ),
    ],
    out: Annotated[
        Path, typer.Option(help="Folder for rows, figures and paper.html; an interrupted study is resumed.")
    ] = Path("paper"),
    trials: Annotated[int | None, typer.Option(help="Worlds per point; by default as many as in the paper.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the first world.")] = 0,
    method: Annotated[
        list[str] | None, typer.Option(help="Methods to compare; by default frank-wolfe and vertex-ascent.")
    ] = None,
    values: Annotated[
        str | None,
        typer.Option(help="Values of the study's parameter: 0:16:2 or 0,2,8. By default those of the paper."),
    ] = None,
    slow: Annotated[bool, typer.Option(help="Include the paper's inexact projection: minutes per trial.")] = False,
    workers: Workers = None,
    cluster: Cluster = None,
    as_json: Json = False,
) -> None:
    """Repeat the paper's experiments and check its claims."""
    from manyways.studies.experiments import paper as run_studies

    with _resumable(out), _study_bar(quiet=as_json) as show:
        found = run_studies(
            study,
            out=out,
            trials=trials,
            seed=seed,
            methods=method or ("frank-wolfe", "vertex-ascent"),
            values=None if values is None else _numbers(values),
            slow=slow,
            workers=workers,
            cluster=cluster,
            progress=show,
        )
    _print_results(found, out / "paper.html", as_json=as_json)


@app.command(
    epilog="Examples: manyways study preferences  |  manyways study preferences --world nine-rooms --world gym:Taxi-v3 --k 2:8  |  "
    "manyways study teams --slack 0.2"
)
def study(
    name: Annotated[str, typer.Argument(help="The study: preferences or teams.")],
    out: Annotated[
        Path | None, typer.Option(help="Folder for rows, figures and the page; by default the study's name.")
    ] = None,
    trials: Annotated[int, typer.Option(help="Worlds of each kind.")] = 5,
    seed: Annotated[int, typer.Option(help="Seed of the first world.")] = 0,
    world: Annotated[
        list[str] | None,
        typer.Option(
            help="A kind of world (four-rooms, nine-rooms, field, network), or any model; can be repeated. By default all four kinds."
        ),
    ] = None,
    k: Annotated[str, typer.Option(help="Set sizes: 2:8 or 2,4.")] = "2,4,6,8",
    persons: Annotated[
        int | None, typer.Option(help="preferences: persons of each family and each strength; by default 8.")
    ] = None,
    rounds: Annotated[int | None, typer.Option(help="preferences: rounds of choosing; by default 6.")] = None,
    slack: Annotated[
        str | None, typer.Option(help="teams: how much plans may give up: 0.1,0.3; by default these two.")
    ] = None,
    workers: Workers = None,
    cluster: Cluster = None,
    as_json: Json = False,
) -> None:
    """Measure how plans serve unknown preferences, or a team."""
    from manyways.errors import SettingError
    from manyways.studies.preferences import preference_study
    from manyways.studies.study_worlds import KINDS
    from manyways.studies.teams import team_study

    known: dict[str, tuple[Callable[..., dict[str, StudyResults]], dict[str, Any]]] = {
        "preferences": (preference_study, {"persons": persons, "rounds": rounds}),
        "teams": (team_study, {"slack": None if slack is None else _numbers(slack)}),
    }
    if name not in known:
        raise SettingError(
            f"there is no study {name!r}; choose {' or '.join(known)}, or use 'manyways paper' for the paper's studies"
        )
    for other, (_, settings) in known.items():
        for setting, value in settings.items():
            if other != name and value is not None:
                raise SettingError(f"--{setting} is for the study {other}")
    run, own = known[name]
    folder = out or Path(name)
    with _resumable(folder), _study_bar(quiet=as_json) as show:
        found = run(
            out=folder,
            trials=trials,
            seed=seed,
            worlds=world or KINDS,
            k=[_integer(value) for value in _numbers(k)],
            workers=workers,
            cluster=cluster,
            progress=show,
            **{setting: value for setting, value in own.items() if value is not None},
        )
    _print_results(found, folder / f"{name}.html", as_json=as_json)


@app.command(epilog="Example: manyways sweep nine-rooms:7 --tradeoff 0:16:1 --k 2:8 --seeds 10 --out sweep")
def sweep(
    source: Source,
    tradeoff: Annotated[str, typer.Option(help="Tradeoffs: 0:16:1 or 0,2,8.")],
    k: Annotated[str, typer.Option(help="Set sizes: 2:8 or 2,4.")] = "4",
    seeds: Annotated[int, typer.Option(help="Number of seeds for each setting; the seeds start at 0.")] = 5,
    method: Annotated[
        str, typer.Option(help="Search method: vertex-ascent, frank-wolfe or projected-gradient.")
    ] = "vertex-ascent",
    out: Annotated[Path, typer.Option(help="Folder for rows and the curve; an interrupted sweep is resumed.")] = Path(
        "sweep"
    ),
    workers: Workers = None,
    cluster: Cluster = None,
    as_json: Json = False,
) -> None:
    """Plan for a grid of settings to see what diversity costs."""
    from manyways.studies.sweeps import sweep as run_sweep

    with _resumable(out), _study_bar(quiet=as_json) as show:
        found = run_sweep(
            source,
            tradeoff=_numbers(tradeoff),
            k=[_integer(value) for value in _numbers(k)],
            seeds=seeds,
            method=method,
            out=out,
            workers=workers,
            cluster=cluster,
            progress=None if show is None else lambda done, total: show("sweep", done, total),
        )
    if as_json:
        knees = [vars(knee) for knee in found.knees()]
        print_json({"rows": found.rows, "knees": knees, "curve": str(out / "sweep.png")})
    else:
        for knee in found.knees():
            print(
                f"k = {knee.k}: knee at tradeoff {knee.tradeoff:g}, reward {knee.reward:.4f}, diversity {knee.diversity:.4f}"
            )
        print(f"{len(found.rows)} rows; look at {out / 'sweep.png'}.")
    if found.failed:
        print(
            f"manyways: {len(found.failed)} trials failed, the first with: {found.failed[0]['error']}", file=sys.stderr
        )
        raise typer.Exit(FAILED)


@app.command(epilog="Examples: manyways bench paper growth  |  manyways bench --sizes 19,50,100 --out benchmarks")
def bench(
    parts: Annotated[
        list[str] | None,
        typer.Argument(
            help="Any of: paper, sure, others, growth, threads, plans, limits, kinds, preferences, rounds, near, closures, certificates, "
            "start, memory, studies, reading, tables; by default all."
        ),
    ] = None,
    sizes: Annotated[
        str, typer.Option(help="Side lengths of the square worlds for growth, threads and memory.")
    ] = "19,50,100,300",
    out: Annotated[
        Path | None, typer.Option(help="Write RESULTS.md, results.json and growth.png into this folder.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Measure speed and memory as ratios within one run."""
    from manyways import bench as benchmarks
    from manyways.errors import SettingError

    chosen = list(parts or benchmarks.PARTS)
    for name in chosen:
        if name not in benchmarks.PARTS:
            raise SettingError(f"there is no benchmark {name!r}; choose one of {', '.join(benchmarks.PARTS)}")
    if not all(size.isdigit() and int(size) >= 9 for size in sizes.split(",")):
        raise SettingError(f"--sizes must be integers of at least 9, separated by commas, found {sizes!r}")
    results = benchmarks.run(
        chosen, [int(size) for size in sizes.split(",")], out, print if not as_json else lambda _: None
    )
    if as_json:
        print_json(results)


@contextmanager
def _study_bar(*, quiet: bool) -> Iterator[Callable[[str, int, int], None] | None]:
    """A progress bar with rate and time left on standard error if that is a terminal; yields its callback, or None."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description:14}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=Console(stderr=True)) as bar:
        tasks: dict[str, Any] = {}

        def show(study: str, done: int, total: int) -> None:
            if study not in tasks:
                tasks[study] = bar.add_task(study, total=total, completed=done, rate="")
            speed = bar.tasks[tasks[study]].speed
            bar.update(tasks[study], completed=done, total=total, rate=f"{speed:.1f}/s" if speed else "")

        yield show


def _print_results(found: dict[str, StudyResults], page: Path, *, as_json: bool) -> None:
    """Print claims with their verdicts, and where the page is; exit with an error if trials failed."""
    from manyways.studies.verdicts import WORDS

    verdicts = [(name, verdict) for name, results in found.items() for verdict in results.verdicts]
    failed = {name: len(results.failed) for name, results in found.items() if results.failed}
    if as_json:
        claims = [{"study": name, **vars(verdict)} for name, verdict in verdicts]
        rows = {name: len(results.rows) for name, results in found.items()}
        print_json({"rows": rows, "failed": failed, "claims": claims, "page": str(page)})
    else:
        for name, verdict in verdicts:
            paper = f" (paper: {verdict.paper})" if verdict.paper else ""
            print(f"{WORDS[verdict.holds]:14}  {name}, {verdict.method}: {verdict.claim}. Here {verdict.here}{paper}.")
        print(f"Look at {page}.")
    if failed:
        print(f"manyways: {sum(failed.values())} trials failed; their rows give the reason", file=sys.stderr)
        raise typer.Exit(FAILED)


@contextmanager
def _resumable(out: Path) -> Iterator[None]:
    """On Ctrl-C, say how to resume; the rows so far are in the folder."""
    try:
        yield
    except KeyboardInterrupt:
        print(f"manyways: the rows so far are in {out}; run the same command again to continue", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None


def _numbers(text: str) -> list[float]:
    """The numbers in '0:16:2' (from, to, step; both ends included, step 1 by default) or '0,2,8'."""
    from manyways.errors import SettingError

    try:
        if ":" not in text:
            return [float(part) for part in text.split(",")]
        first, last, *rest = (float(part) for part in text.split(":"))
        step = rest[0] if rest else 1.0
        count = round((last - first) / step + 1e-9) + 1
        if len(rest) > 1 or step <= 0 or not 1 <= count <= 10_000:
            raise ValueError
        return [round(first + i * step, 12) for i in range(count) if first + i * step <= last + 1e-9]
    except (ValueError, OverflowError):
        raise SettingError(f"expected numbers such as 0:16:2 (from, to, step) or 0,2,8, found {text!r}") from None


def _integer(value: float) -> int:
    from manyways.errors import SettingError

    if value != int(value):
        raise SettingError(f"--k must be integers, found {value:g}")
    return int(value)
