"""The commands that convert models, export policies and simulate them: convert, export, simulate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from manyways.cli.common import Const, Json, Reward, Route, Source, app, console, print_json, with_settings
from manyways.cli.plans import PlanFile

PlanNumber = Annotated[int, typer.Option("--plan", help="Number of the plan, counted from 1.")]


@app.command(
    epilog="Examples: manyways convert nine-rooms:7 rooms.npz  |  manyways convert rooms.npz rooms.drn  |  "
    "manyways convert rooms-5000:0 rooms.h5"
)
def convert(
    source: Source,
    out: Annotated[
        Path,
        typer.Argument(help="The model file to write: .npz, .h5, .drn, .csv, or .tra for PRISM's explicit format."),
    ],
    const: Const = None,
    reward: Reward = None,
) -> None:
    """Write a model in another format."""
    from manyways.formats.writer import convert as write

    name, states, choices = write(with_settings(source, const=const, reward=reward), out)
    print(f"{name}: {states:,} states, {choices:,} choices written to {out}")


@app.command(
    epilog="Examples: manyways export plans.mw policy.json --plan 3  |  manyways export plans.mw --plan 2 --route route.yaml "
    "--layer time.pgm"
)
def export(
    plans_file: PlanFile,
    out: Annotated[
        Path | None,
        typer.Argument(help="The policy file to write: .json, .csv, .npz, or .scheduler as Storm prints it."),
    ] = None,
    plan: PlanNumber = 1,
    route: Route = None,
    layer: Annotated[
        Path | None,
        typer.Option(
            help="Write the time spent in each cell to this image (.pgm), and its .yaml beside it, to load with the map of a robot."
        ),
    ] = None,
) -> None:
    """Write a plan's policy, route or map layer for other programs."""
    from manyways.errors import SettingError
    from manyways.plans import load
    from manyways.plans.map_layer import check_layer_path
    from manyways.plans.policy_files import check_policy_path
    from manyways.plans.route import check_route_path

    if out is None and route is None and layer is None:
        raise SettingError("nothing to write: give a policy file, --route FILE or --layer FILE")
    for path, check in ((out, check_policy_path), (route, check_route_path), (layer, check_layer_path)):
        if path is not None:
            check(path)
    plans = load(plans_file)
    if not 1 <= plan <= plans.k:
        raise SettingError(f"there are plans 1 to {plans.k}, found {plan}")
    for path in (out, route, layer):
        if path is not None:
            _check_is_not_the_model(path, plans.mdp.source)
    chosen = plans[plan - 1]
    if route is not None:
        way = chosen.route()
        print(f"route of plan {plan}, {len(way)} points, written to {way.save(route)}")
    if layer is not None:
        print(f"layer of plan {plan} written to {chosen.save_layer(layer)} and {layer.with_suffix('.yaml')}")
    if out is not None:
        print(f"plan {plan} written to {chosen.save(out)}")


def _check_is_not_the_model(path: Path, source: str | None) -> None:
    """Refuse to write over the file from which the model was read: a table and a policy may both end in .csv."""
    from manyways.errors import OutputError

    model = Path("" if source is None else source.partition("?")[0])
    if model.is_file() and path.exists() and path.samefile(model):
        raise OutputError(f"cannot write {path}: the model of the plans was read from it; give another name")


@app.command(epilog="Example: manyways simulate plans.mw --plan 3 --steps 10000")
def simulate(
    plans_file: PlanFile,
    plan: PlanNumber = 1,
    steps: Annotated[int, typer.Option(help="Total number of steps.")] = 10_000,
    seed: Annotated[int, typer.Option(help="Seed of all random draws.")] = 0,
    as_json: Json = False,
) -> None:
    """Run a plan in its model and Gymnasium environment."""
    from rich.table import Table

    from manyways.describe.measure import in_time
    from manyways.describe.wording import percent, terms_of
    from manyways.plans import load
    from manyways.plans.simulation import simulate as run

    plans = load(plans_file)
    found, terms = run(plans, plan, steps, seed), terms_of(plans.mdp)
    runs = {"model": found.model} | ({"environment": found.environment} if found.environment else {})
    if as_json:
        estimates = {
            where: {"mean": e.mean, "standard_error": e.standard_error, "interval": e.interval, "steps": e.steps}
            for where, e in runs.items()
        }
        rates = {rate.name: rate.values[plan - 1] for rate in in_time(plans)}
        print_json({"plan": plan, "computed": found.computed, **rates, **estimates})
        return
    table = Table(title=f"plan {plan}, {terms.noun} {plans.criterion.unit}")
    for column in ("where", terms.noun, "95 % interval", "steps"):
        table.add_column(column, justify="left" if column == "where" else "right")
    table.add_row("computed", f"{terms.shown(found.computed):.6f}", "", "")
    for where, e in runs.items():
        interval = "{:.6f} to {:.6f}".format(*sorted(terms.shown(end) for end in e.interval))
        cut = plans.mdp.time_limit if where == "environment" and plans.criterion.unit == "per episode" else None
        limit = "" if cut is None else f", without its limit of {cut} steps"
        table.add_row(f"run in the {where}{limit}", f"{terms.shown(e.mean):.6f}", interval, f"{e.steps:,}")
    console().print(table)
    for rate in in_time(plans):
        console().print(f"computed: {rate.name} with a chance of {percent(rate.values[plan - 1] or 0.0)}")
