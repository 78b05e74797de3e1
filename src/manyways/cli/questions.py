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
    from manyways.model.mdp import MDP
    from manyways.plans import PlanSet
    from manyways.polytope import Criterion, Limits


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

    For each place: the least and the most time that a plan within the limits can spend there. A plan file is asked within its own
    limits, unless others are given.
    """
    from manyways.ranges import freedom as find

    settings = {"const": const, "reward": reward, "start": start, "goal": goal, "restart": restart}
    model = with_settings(source, **settings, without=without, without_action=without_action, minimise=minimise)
    own = _plans_in(source)
    slack, floor, longer = _limits(own, slack, floor, longer)
    found = find(model, slack, floor=floor, longer=longer, criterion=_criterion(discount, own), by=by)
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
        steps = "-" if r.steps is None else f"{r.steps[0] + 0.0:.3g} to {r.steps[1] + 0.0:.3g}"
        table.add_row(Text(r.name), tabled(r.least), tabled(r.most), steps)
    console().print(table)
    for sentence in (_limits_told(found.mdp, found.criterion, found.limits), *(r.sentence for r in found.ranges)):
        console().print(Text(sentence), soft_wrap=True)


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
    """Count the really different ways within the limits.

    A plan file is asked within its own limits and for what it compares, unless others are given.
    """
    from manyways.describe.wording import terms_of
    from manyways.ways import how_many

    if picture is not None:
        from manyways.draw import check_picture_path

        check_picture_path(picture)
    settings = {"const": const, "reward": reward, "start": start, "goal": goal, "restart": restart}
    model = with_settings(source, **settings, without=without, without_action=without_action, minimise=minimise)
    own = _plans_in(source)
    slack, floor, longer = _limits(own, slack, floor, longer)
    compared = own.behaviour if own is not None and behaviour is None and apart is None else None
    with progress_bar(quiet=as_json) as progress:
        found = how_many(
            model,
            slack,
            compared or chosen_behaviour(behaviour, apart),
            distance,
            floor=floor,
            longer=longer,
            criterion=_criterion(discount, own),
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
    print(f"{_limits_told(found.mdp, found.criterion, found.limits)} {found.counted_as}")
    if picture is not None:
        print(f"picture written to {picture}")


def _plans_in(source: str) -> PlanSet | None:
    """The plan set that a source names; None if it is no plan file."""
    from manyways.plans import load

    path = Path(source.partition("?")[0])
    return load(path) if path.suffix == ".mw" else None


def _limits(
    own: PlanSet | None, slack: float | None, floor: float | None, longer: float | None
) -> tuple[float | None, float | None, float | None]:
    """The limits that were given or, if there are none, those of the plan file."""
    if own is None or (slack, floor, longer) != (None, None, None):
        return slack, floor, longer
    return own.limits.slack, own.limits.floor if own.limits.slack is None else None, own.limits.longer


def _limits_told(mdp: MDP, criterion: Criterion, limits: Limits) -> str:
    """ "Limits: at least 3.48 per step, within 20 % of the best possible." """
    from manyways.describe.wording import number, percent, quantity, terms_of
    from manyways.plans.guarantee import promised

    terms, parts = terms_of(mdp), []
    if limits.floor is not None:
        within = "" if limits.slack is None else f", within {percent(limits.slack)} of the best possible"
        edge = "at least" if terms.sign > 0 else "at most"
        parts.append(f"{edge} {number(promised(limits.floor, terms.sign))} {criterion.unit}{within}")
    if limits.way is not None:
        parts.append(f"at most {quantity(limits.way)} steps to the goal")
    return f"Limits: {'; '.join(parts)}." if parts else "No limits."


def _criterion(discount: float | None, own: PlanSet | None) -> Criterion | None:
    """Discounted, if a discount was given; otherwise as in the plan file, if there is one."""
    from manyways.polytope import Discounted

    return (None if own is None else own.criterion) if discount is None else Discounted(discount)


def _finite(steps: tuple[float, float] | None) -> Any:
    """JSON has no infinity."""
    return None if steps is None else [None if step == float("inf") else step for step in steps]
