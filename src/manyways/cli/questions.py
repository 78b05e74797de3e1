"""The commands that ask about a model instead of planning for it: freedom, ways."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from manyways.cli.common import (
    Apart,
    Const,
    Discount,
    Floor,
    Goal,
    Json,
    Longer,
    Minimise,
    Restart,
    Reward,
    Slack,
    Source,
    Start,
    Without,
    WithoutAction,
    app,
    console,
    print_json,
    progress_bar,
    with_settings,
)
from manyways.cli.plans import BehaviourWord, chosen_behaviour

if TYPE_CHECKING:
    from manyways.polytope import Criterion


@app.command(
    epilog="Examples: manyways freedom nine-rooms:7 --slack 5%  |  manyways freedom office.yaml --by regions --longer 20%"
)
def freedom(
    source: Source,
    slack: Slack = None,
    floor: Floor = None,
    longer: Longer = None,
    by: Annotated[
        str | None, typer.Option(help="What to ask about: labels, regions of the map, or actions; by default labels.")
    ] = None,
    discount: Discount = None,
    const: Const = None,
    reward: Reward = None,
    start: Start = None,
    goal: Goal = None,
    restart: Restart = None,
    without: Without = None,
    without_action: WithoutAction = None,
    minimise: Minimise = None,
    as_json: Json = False,
) -> None:
    """Show what all plans within the limits share, and what is free.

    For each place: the least and the most time that a plan within the limits can spend there.
    """
    from manyways.ranges import freedom as find

    settings = {"const": const, "reward": reward, "start": start, "goal": goal, "restart": restart}
    model = with_settings(source, **settings, without=without, without_action=without_action, minimise=minimise)
    found = find(model, slack, floor=floor, longer=longer, criterion=_criterion(discount), by=by)
    if as_json:
        rows = [{"name": r.name, "least": r.least, "most": r.most, "steps": _finite(r.steps)} for r in found.ranges]
        print_json({"model": found.mdp.name, "best": found.best, "floor": found.limits.floor, "ranges": rows})
        return
    from rich.table import Table
    from rich.text import Text

    from manyways.describe.wording import tabled

    table = Table(title=Text(f"{found.mdp.name}: what is certain, what is free"), title_justify="left")
    for column in ("", "least time", "most time", "steps per trip"):
        table.add_column(column, justify="left" if not column else "right")
    for r in found.ranges:
        steps = "-" if r.steps is None else f"{r.steps[0]:.3g} to {r.steps[1]:.3g}"
        table.add_row(Text(r.name), tabled(r.least), tabled(r.most), steps)
    console().print(table)
    for r in found.ranges:
        console().print(Text(r.sentence), soft_wrap=True)


@app.command(
    epilog="Examples: manyways ways nine-rooms:7 --slack 10%  |  manyways ways office.yaml --apart 1 --picture ways.png"
)
def ways(
    source: Source,
    slack: Slack = None,
    floor: Floor = None,
    longer: Longer = None,
    behaviour: BehaviourWord = None,
    apart: Apart = None,
    distance: Annotated[
        float | None,
        typer.Option(
            help="The least distance of two ways that count as different, below 0.693; by default that of the behaviour, mostly 0.1."
        ),
    ] = None,
    most: Annotated[int, typer.Option(help="Stop at this many ways.")] = 12,
    seed: Annotated[int, typer.Option(help="Seed of all random draws.")] = 0,
    discount: Discount = None,
    const: Const = None,
    reward: Reward = None,
    start: Start = None,
    goal: Goal = None,
    restart: Restart = None,
    without: Without = None,
    without_action: WithoutAction = None,
    minimise: Minimise = None,
    picture: Annotated[
        Path | None, typer.Option(help="Draw how far each further way is from those before it (.png, .svg, .pdf).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Count the really different ways within the limits."""
    from manyways.describe.wording import terms_of
    from manyways.ways import how_many

    if picture is not None:
        from manyways.draw import check_picture_path

        check_picture_path(picture)
    settings = {"const": const, "reward": reward, "start": start, "goal": goal, "restart": restart}
    model = with_settings(source, **settings, without=without, without_action=without_action, minimise=minimise)
    with progress_bar(quiet=as_json) as progress:
        found = how_many(
            model,
            slack,
            chosen_behaviour(behaviour, apart),
            distance,
            floor=floor,
            longer=longer,
            criterion=_criterion(discount),
            most=most,
            seed=seed,
            progress=progress,
        )
    if picture is not None:
        from manyways.draw import falling_distances, save_picture

        save_picture(falling_distances(found.distances, found.apart, found.mdp.name), picture)
    if as_json:
        rows = {"values": found.values.tolist(), "distances": list(found.distances), "apart": found.apart}
        rows |= {} if found.steps is None else {"steps": found.steps.tolist()}
        print_json({"model": found.mdp.name, "ways": len(found), "sentence": found.sentence, **rows})
        return
    for i, value in enumerate(terms_of(found.mdp).shown(found.values)):
        far = "the best of them" if i == 0 else f"{found.distances[i - 1]:.3f} from the nearest before it"
        steps = "" if found.steps is None else f"{found.steps[i]:.2f} steps to the goal on average, "
        print(f"way {i + 1}: {steps}{value:.4f} {found.criterion.unit}, {far}")
    print(found.sentence)
    if picture is not None:
        print(f"picture written to {picture}")


def _criterion(discount: float | None) -> Criterion | None:
    from manyways.polytope import Discounted

    return None if discount is None else Discounted(discount)


def _finite(steps: tuple[float, float] | None) -> Any:
    """JSON has no infinity."""
    return None if steps is None else [None if step == float("inf") else step for step in steps]
