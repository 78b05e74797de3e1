"""The commands about plans: plan, show, verify."""

from __future__ import annotations

from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from manyways.cli.common import (
    NOT_CONVERGED,
    Const,
    Goal,
    Json,
    Restart,
    Reward,
    Source,
    Start,
    app,
    console,
    print_json,
    progress_bar,
    with_settings,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from rich.table import Table

    from manyways.methods import Method
    from manyways.model.mdp import MDP
    from manyways.plans import Certificate, PlanSet


FAR = 0.2
"""A plan that gives up more than this share of the optimal reward is hardly near-optimal."""

Picture = Annotated[Path | None, typer.Option(help="Write the plans' occupancy maps here (.png, .svg, .pdf).")]
Report = Annotated[Path | None, typer.Option(help="Write the page on which to compare the plans here (.html).")]
PlanFile = Annotated[Path, typer.Argument(metavar="PLANS", help="A file that 'manyways plan --out' wrote.")]


@app.command(
    epilog="Examples: manyways plan nine-rooms:7 --k 6 --tradeoff 8 --out plans.mw  |  manyways plan map.txt --k 3 --json"
)
def plan(
    source: Source,
    k: Annotated[int, typer.Option(help="How many plans.")] = 4,
    tradeoff: Annotated[
        float | None, typer.Option(help="Worth of diversity in reward; by default the optimal reward.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of every random draw.")] = 0,
    method: Annotated[
        str, typer.Option(help="How to search: vertex-ascent, frank-wolfe or projected-gradient.")
    ] = "vertex-ascent",
    starts: Annotated[int | None, typer.Option(help="Starts of vertex-ascent; more find better plans.")] = None,
    workers: Annotated[int, typer.Option(help="Threads that share the starts; the plans do not depend on it.")] = 1,
    discount: Annotated[
        float | None, typer.Option(help="Discount the future by this factor; by default the long-run average counts.")
    ] = None,
    behaviour: Annotated[
        str, typer.Option(help="What counts as different: state-actions, states or labels.")
    ] = "state-actions",
    time_limit: Annotated[float | None, typer.Option(help="Stop after so many seconds, with the best so far.")] = None,
    const: Const = None,
    reward: Reward = None,
    start: Start = None,
    goal: Goal = None,
    restart: Restart = None,
    keep: Annotated[
        str | None,
        typer.Option(help="Keep plans of a file and have its others replaced: plans.mw:1,3. They count among the k."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Keep the plans in this file (.mw).")] = None,
    picture: Picture = None,
    report: Report = None,
    as_json: Json = False,
) -> None:
    """Find k near-optimal plans that are really different."""
    from manyways.behaviours import BEHAVIOURS
    from manyways.files import check_writable
    from manyways.formats import read
    from manyways.planning import plan as find_plans
    from manyways.polytope import Average, Discounted

    source = with_settings(source, const=const, reward=reward, start=start, goal=goal, restart=restart)
    for path in (out, report):
        if path is not None:
            check_writable(path)
    if picture is not None:
        from manyways.draw import check_picture_path

        check_picture_path(picture)
    with progress_bar(quiet=as_json) as progress:
        mdp = read(source, absorbing=discount is not None)
        kept, replaced = (None, None) if keep is None else _kept(keep, mdp)
        plans = find_plans(
            mdp,
            k,
            tradeoff,
            seed=seed,
            method=_method(method, starts, workers),
            criterion=Average() if discount is None else Discounted(discount),
            behaviour=BEHAVIOURS.named(behaviour)(),
            time_limit_s=time_limit,
            progress=progress,
            keep=kept,
            avoid=replaced,
        )
    written = {"plans": plans.save(out) if out else None, **_pictures(plans, out, picture, report)}
    _answer(plans, written, as_json)
    if not plans.status.converged:
        raise typer.Exit(NOT_CONVERGED)


@app.command(epilog="Example: manyways show plans.mw --report plans.html")
def show(
    plans_file: PlanFile,
    picture: Picture = None,
    report: Report = None,
    sweep: Annotated[
        Path | None, typer.Option(help="A folder that 'manyways sweep --out' filled; the report shows its curve.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show the plans of a file: table, picture, page."""
    from manyways.errors import SettingError
    from manyways.plans import load

    if sweep is not None and report is None:
        raise SettingError("--sweep is for the report: give --report as well")
    plans = load(plans_file)
    _answer(plans, _pictures(plans, plans_file, picture, report, sweep), as_json)


@app.command(epilog="Example: manyways verify plans.mw")
def verify(plans_file: PlanFile, as_json: Json = False) -> None:
    """Recompute all that a file of plans claims, from its model alone."""
    from manyways.plans import load
    from manyways.plans import verify as recompute

    plans = load(plans_file)
    certificate = recompute(plans.mdp, plans)
    if as_json:
        print_json(
            {
                "ok": certificate.ok,
                "checks": [
                    {
                        "name": c.name,
                        "error": c.error if c.error < float("inf") else None,
                        "tolerance": c.tolerance,
                        "ok": c.ok,
                    }
                    for c in certificate.checks
                ],
            }
        )
    else:
        console().print(_certificate_table(certificate))
    if not certificate.ok:
        raise typer.Exit(NOT_CONVERGED)


def _pictures(
    plans: PlanSet, file: Path | None, picture: Path | None, report: Path | None, sweep: Path | None = None
) -> dict[str, Path | None]:
    curve = None
    if sweep is not None:
        from manyways.studies.sweeps import load_sweep

        curve = load_sweep(sweep, plans.mdp)
    return {
        "picture": plans.draw(picture) if picture else None,
        "report": plans.report(report, curve, file) if report else None,
    }


def _kept(told: str, mdp: MDP) -> tuple[NDArray, NDArray]:
    """`plans.mw:1,3` -> the policies of these plans, and those of the file's others."""
    from manyways.errors import SettingError
    from manyways.plans import load

    file, colon, numbers = told.rpartition(":")
    if not colon or not all(number.isdigit() for number in numbers.split(",")):
        raise SettingError(f"--keep takes a file and numbers of its plans, such as plans.mw:1,3, found {told!r}")
    plans = load(file)
    kept = sorted({int(number) - 1 for number in numbers.split(",")})
    if kept[0] < 0 or kept[-1] >= plans.k:
        raise SettingError(f"{file} has plans 1 to {plans.k}, found {numbers}")
    if plans.mdp.digest != mdp.digest:
        raise SettingError(f"{file} has plans for another model, {plans.mdp.name}, so none of them can be kept")
    return plans.policies[kept], plans.policies[[i for i in range(plans.k) if i not in kept]]


def _method(name: str, starts: int | None, workers: int) -> Method:
    from manyways.errors import SettingError
    from manyways.methods import METHODS

    kind = METHODS.named(name)
    given = {"starts": starts, "workers": None if workers == 1 else workers}
    settings = {key: value for key, value in given.items() if value is not None}
    for key in settings:
        if key not in kind.__dataclass_fields__:
            raise SettingError(f"the method {name} has no setting {key}; leave --{key} out")
    return kind(**settings)


def _answer(plans: PlanSet, written: dict[str, Path | None], as_json: bool) -> None:
    if as_json:
        print_json(_summary(plans) | {"written": {what: str(path) for what, path in written.items() if path}})
        return
    screen = console()
    screen.print(_plans_table(plans))
    screen.print(
        f"objective {plans.objective:.4f} ({plans.maximised.describe()}): mean reward {plans.rewards.mean():.4f}, "
        f"diversity {plans.diversity:.4f}; "
        f"optimal reward {plans.optimal_reward:.4f}; {plans.status}, {plans.seconds:.2f} s"
    )
    for i, j in plans.near_duplicates:
        screen.print(f"plans {i + 1} and {j + 1} are nearly the same")
    if plans.certificate is not None and not plans.certificate.ok:
        screen.print(f"not verified: {plans.certificate}", style="bold red")
    if advice := _advice(plans):
        screen.print(advice, soft_wrap=True)
    for what, path in written.items():
        if path:
            screen.print(f"{what} written to {path}", soft_wrap=True)


def _advice(plans: PlanSet) -> str | None:
    """What to do where the plans are farther from the optimum than people may like."""
    best, worst = plans.optimal_reward, int(plans.rewards.argmin())
    if plans.k == 1 or plans.tradeoff is None or best <= 0 or plans.rewards[worst] >= (1 - FAR) * best:
        return None
    lost = 100 * (1 - plans.rewards[worst] / best)
    return (
        f"plan {worst + 1} gives up {lost:.0f} % of the optimal reward; "
        f"a smaller --tradeoff (now {plans.tradeoff:.4g}) keeps plans nearer to it"
    )


def _summary(plans: PlanSet) -> dict[str, Any]:
    return {
        "model": {
            "name": plans.mdp.name,
            "states": plans.mdp.n_states,
            "choices": plans.mdp.n_choices,
            "digest": plans.mdp.digest,
        },
        "k": plans.k,
        "tradeoff": plans.tradeoff,
        "seed": plans.seed,
        "method": repr(plans.method),
        "criterion": repr(plans.criterion),
        "behaviour": repr(plans.behaviour),
        "status": str(plans.status),
        "objective": plans.objective,
        "rewards": plans.rewards.tolist(),
        "optimal_reward": plans.optimal_reward,
        "diversity": plans.diversity,
        "distances": plans.distances.tolist(),
        "gap": plans.gap if isfinite(plans.gap) else None,
        "iterations": len(plans.trace),
        "seconds": plans.seconds,
        "verified": plans.certificate is not None and plans.certificate.ok,
    }


def _plans_table(plans: PlanSet) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(f"{plans.mdp.name}: {plans.k} plans"), title_justify="left")
    for column in ("plan", "reward", "below optimum", "nearest other", "mean distance"):
        table.add_column(column, justify="right")
    for i, reward in enumerate(plans.rewards):
        loss = plans.optimal_reward - reward
        loss = loss if abs(loss) > 1e-9 * max(abs(plans.optimal_reward), 1.0) else 0.0
        share = f" ({100 * loss / plans.optimal_reward:.1f} %)" if plans.optimal_reward > 0 else ""
        others = [plans.distances[i, j] for j in range(plans.k) if j != i]
        nearest = f"{min(others):.3f} (plan {_nearest(plans, i) + 1})" if others else "-"
        table.add_row(
            str(i + 1),
            f"{reward:.4f}",
            f"{loss:.4f}{share}",
            nearest,
            f"{sum(others) / len(others):.3f}" if others else "-",
        )
    return table


def _nearest(plans: PlanSet, i: int) -> int:
    return min((j for j in range(plans.k) if j != i), key=lambda j: plans.distances[i, j])


def _certificate_table(certificate: Certificate) -> Table:
    from rich.table import Table

    table = Table(title="verified" if certificate.ok else "NOT verified", title_justify="left")
    for column in ("check", "error", "allowed", ""):
        table.add_column(column)
    for check in certificate.checks:
        table.add_row(check.name, f"{check.error:.1e}", f"{check.tolerance:.0e}", "ok" if check.ok else "FAILED")
    return table
