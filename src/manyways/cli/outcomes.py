"""The commands that ask what may become of plans: survival, risk, team."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from manyways.cli.common import Json, PlanFile, app, console, print_json, progress_bar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from manyways.model.closures import Closure
    from manyways.model.mdp import MDP
    from manyways.risks import Risk

ClosedLabels = Annotated[
    list[str] | None, typer.Option("--label", help="Close each part of the map with this label; can be repeated.")
]
ClosedRegions = Annotated[
    list[str] | None,
    typer.Option("--region", help="Close this region of the map, or 'all', one at a time; can be repeated."),
]
ClosedStates = Annotated[list[str] | None, typer.Option("--state", help="Close this state; can be repeated.")]
ClosedActions = Annotated[
    list[str] | None, typer.Option("--action", help="Make this action fail, or 'all', one at a time; can be repeated.")
]


@app.command(
    epilog="Examples: manyways survival plans.mw  |  manyways survival plans.mw --region all  |  "
    "manyways survival plans.mw --label door --action lift"
)
def survival(
    plans_file: PlanFile,
    label: ClosedLabels = None,
    region: ClosedRegions = None,
    state: ClosedStates = None,
    action: ClosedActions = None,
    as_json: Json = False,
) -> None:
    """Show which plans still work if something is closed.

    A door, a region, a state, or an action that fails. Without options: each door, otherwise each passage of the map, otherwise each label of the map, otherwise each action that is no direction.
    """
    from manyways.plans import load
    from manyways.surviving import UNKNOWN
    from manyways.surviving import survival as find

    plans = load(plans_file)
    with progress_bar(quiet=as_json) as progress:
        found = find(plans, _closures(plans.mdp, label, region, state, action), progress)
    names = [closure.name for closure in found.closures]
    if as_json:
        rows = [
            {
                "closed": name,
                "sentence": found.sentence(j),
                "plans": [_outcome(found.closed, i, j) for i in range(plans.k)],
                "replanned": _outcome(found.replanned, j),
                "possible": _outcome(found.possible, j),
            }
            for j, name in enumerate(names)
        ]
        print_json(
            {"model": plans.mdp.name, "open": [_outcome(found.open, i) for i in range(plans.k)], "closures": rows}
        )
        return
    from rich.table import Table
    from rich.text import Text

    from manyways.describe.wording import raised

    words = found.words
    shown = [j for j in range(len(names)) if not (found.hopeless[j] or found.harmless[j] or found.level[j])]
    if shown:
        table = Table(title=Text(f"{plans.mdp.name}, closed: {words.counted}"), title_justify="left")
        table.add_column("closed")
        for i in range(plans.k):
            table.add_column(f"plan {i + 1}", justify="right")
        table.add_column(f"made for it ({words.made_for})", justify="right")
        at_home = [found.told(found.open, i) for i in range(plans.k)]
        table.add_row("nothing", *at_home, found.told(found.possible_open))
        for j in shown:
            row = [found.told(found.closed, i, j) for i in range(plans.k)]
            table.add_row(Text(names[j]), *row, found.told(found.possible, j))
        console().print(table)
    told = [*(found.sentence(j) for j in shown), words.level(), words.harmless(), words.hopeless()]
    told += [f"A plan does not know what is closed and keeps trying. {words.failing}", words.late]
    if any(found.told(found.possible, j) == UNKNOWN for j in shown):
        told.append(f"{raised(UNKNOWN)}: none was found for the model with this closure.")
    for sentence in filter(None, told):
        console().print(Text(sentence), soft_wrap=True)


@app.command(epilog="Examples: manyways risk plans.mw  |  manyways risk plans.mw --worse-than 100")
def risk(
    plans_file: PlanFile,
    worse_than: Annotated[
        float | None,
        typer.Option(
            help="Show the chance that a trip is worse than this: a lower return, or a higher cost; 0 by default for returns."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show what may happen on one trip of each plan.

    How its return is distributed, what it may touch, and where it is worst off.
    """
    from manyways.describe.wording import terms_of
    from manyways.plans import load
    from manyways.risks import risk as find

    plans = load(plans_file)
    terms = terms_of(plans.mdp)
    if worse_than is None and terms.sign > 0:
        worse_than = 0.0
    with progress_bar(quiet=as_json) as progress:
        cards = find(plans, progress)
    if as_json:
        rows = [_card(card, terms.sign, worse_than) for card in cards]
        print_json({"model": plans.mdp.name, "counted_in": terms.noun, "worse_than": worse_than, "plans": rows})
        return
    from rich.text import Text

    console().print(_risk_table(plans.mdp, cards, worse_than))
    if any(_varies(card.touches[label]) for card in cards for label in card.touches):
        console().print(_touched_table(cards))
    if any(card.returns is not None and card.told is None for card in cards):
        why = "what steps earn depends on where they lead, and the model has only the mean of it"
        coarse = "known too coarsely to be told in numbers"
        print(f"-: {why if any(card.averaged for card in cards) else coarse}.")
    for i, card in enumerate(cards, 1):
        if card.worst is not None and (worst := card.worst.sentence(terms, f"plan {i}'s")):
            console().print(Text(worst), soft_wrap=True)


def _risk_table(mdp: MDP, cards: Sequence[Risk], worse_than: float | None) -> Any:
    """A row for each plan: how its trips end, and what they are worth."""
    from rich.table import Table
    from rich.text import Text

    from manyways.describe.wording import number, percent, terms_of
    from manyways.model.trips import trips_of

    terms, trips = terms_of(mdp), trips_of(mdp)
    end = "reaches goal" if trips is not None and trips.named_goal else "ends"

    def shown(value: float) -> str:
        return number(terms.shown(value)) if value == value else "-"

    table = Table(title=Text(f"{mdp.name}: the {terms.noun} of one trip of each plan"), title_justify="left")
    worse = [] if worse_than is None else [f"{'below' if terms.sign > 0 else 'above'} {number(worse_than)}"]
    for column in ("", end, "mean", "spread", "median", "worst trips", *worse):
        table.add_column(Text(column), justify="right")
    for i, card in enumerate(cards, 1):
        spread = number(card.spread) if card.spread == card.spread else "-"
        told = ["-"] * (2 + len(worse))
        if card.told is not None:
            tail = card.told.tail()
            worst = "all alike" if tail is None else f"{tail.bound(terms)}: {percent(tail.share)}"
            told = [shown(card.told.quantile(0.5)), worst]
            if worse_than is not None:
                told.append(percent(card.told.chance_below(terms.sign * worse_than)))
        table.add_row(f"plan {i}", percent(card.reaches), shown(card.mean), spread, *told)
    return table


def _touched_table(cards: Sequence[Risk]) -> Any:
    """A row for each plan: how often its trips meet labels, or end in some way."""
    from rich.table import Table
    from rich.text import Text

    from manyways.describe.wording import percent

    labels = [label for label in cards[0].touches if any(_varies(card.touches[label]) for card in cards)][:6]
    table = Table(title=Text("trips that meet"), title_justify="left")
    for column in ("", *labels):
        table.add_column(Text(column), justify="right")
    for i, card in enumerate(cards, 1):
        table.add_row(f"plan {i}", *(percent(card.touches[label]) for label in labels))
    return table


def _varies(chance: float) -> bool:
    return 0.001 < chance < 0.999


@app.command(epilog="Example: manyways team plans.mw --agent 1 --agent 2 --agent 2")
def team(
    plans_file: PlanFile,
    agent: Annotated[
        list[int] | None,
        typer.Option(help="The plan of an agent, counted from 1; repeated for each agent; all by default."),
    ] = None,
    deadline: Annotated[int | None, typer.Option(help="Steps within which things count.")] = None,
    as_json: Json = False,
) -> None:
    """Show what a team of agents can do with these plans.

    Each runs one plan, all at the same time, with independent luck.
    """
    from manyways.describe.wording import counted, number, percent
    from manyways.plans import load
    from manyways.teams import team as find

    plans = load(plans_file)
    numbers = None if agent is None else [a - 1 for a in agent]
    with progress_bar(quiet=as_json) as progress:
        found = find(plans, numbers, deadline=deadline, progress=progress)
    if as_json:
        reaches = dict(zip(found.closures, map(float, found.reaches), strict=True))
        rest = {name: _known(getattr(found, name)) for name in ("seen", "first_visit", "meetings", "reward")}
        print_json({"model": plans.mdp.name, "deadline": found.deadline, "reaches": reaches, **rest})
        return
    print(f"{len(numbers or plans)} agents; what counts happens within {counted(found.deadline, 'step')}.")
    for name, chance in zip(found.closures, found.reaches, strict=True):
        print(f"With {name} closed, at least one reaches the goal with a chance of {percent(float(chance))}.")
    if found.places:
        print(
            f"Of {found.places} places {percent(found.seen)} are seen by at least one on a trip; the first is at a place "
            f"after {counted(found.first_visit, 'step')} on average, counting those never seen with the deadline."
        )
    print(f"Two agents meet {number(found.meetings)} times per step.")


def _closures(
    mdp: MDP, label: list[str] | None, region: list[str] | None, state: list[str] | None, action: list[str] | None
) -> tuple[Closure, ...]:
    from manyways.model.closures import closures

    given = {"labels": label, "regions": region, "states": state, "actions": action}
    return closures(mdp, **{kind: True if names == ["all"] else names for kind, names in given.items()})


def _outcome(outcomes: Any, *at: int) -> dict[str, float | None]:
    """JSON has no NaN."""
    return {name: _known(getattr(outcomes, name)[at]) for name in ("reaches", "steps", "values", "returns", "stuck")}


def _card(card: Risk, sign: int, worse_than: float | None) -> dict[str, Any]:
    """A card as JSON; costs are positive if the model has costs."""
    known, worst = card.told, card.worst
    quantiles = None if known is None else {str(q): sign * known.quantile(q) for q in (0.05, 0.25, 0.5, 0.75, 0.95)}
    return {
        "reaches": card.reaches,
        "never_ends": card.never_ends,
        "mean": _known(sign * card.mean),
        "spread": _known(card.spread),
        "quantiles": quantiles,
        "chance_worse": None if known is None or worse_than is None else known.chance_below(sign * worse_than),
        "touches": card.touches,
        "worst": None if worst is None else {"state": worst.name, "met": worst.met, "to_come": sign * worst.to_come},
    }


def _known(value: float) -> float | None:
    return float(value) if value == value else None
