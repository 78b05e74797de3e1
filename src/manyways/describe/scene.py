"""What remarks on plans draw on, computed once for a whole set: places, and what plans spend time on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from manyways.describe.measures import Survey, measures, negligible, survey
from manyways.describe.places import Rooms, Route, Sectors, route_of, sectors_of, shares_by_sector
from manyways.describe.wording import distinct, number, percent, plain, quoted, raised
from manyways.model.occupancy import first_best
from manyways.plans.planset import PlanSet
from manyways.types import Bools, Floats, Ints

BELOW = "below the optimum"
PERFECT = "and no plan can earn more"
USUAL = 0.5
NEARLY_ALWAYS = 0.95
SEEN = 0.02
"""How a plan acts in a place is worth a word only if it spends this share of its time there."""

HABITS_UP_TO = 50
"""With more actions than this their names say little, and there would be thousands of habits."""


@dataclass(frozen=True)
class Remark:
    """A sentence; how telling it is; and of which kind, "group" or "group:detail": of each kind only the best is said,
    and of each group only so many."""

    kind: str
    weight: float
    text: str


@dataclass(frozen=True, eq=False)
class Feature:
    """Something that plans do for a share of time.

    Attributes:
        kind: "sector", "edge", "label", "action", "habit" or "state".
        before, after: what a plan does for a share of time, in words before and after that share.
        never, hardly: what a plan does that spends none, or next to none.
        title: of a plan of which it is typical, in a few words.
        values: (k,) the shares.
        part: how much of all time it is about; less than all for what is done in one place.
        place: that place.
    """

    kind: str
    before: str
    after: str
    never: str
    hardly: str
    title: str
    values: Floats
    part: float = 1.0
    place: str = ""

    def does(self, share: str) -> str:
        return f"{self.before} {share} {self.after}"


@dataclass(frozen=True, eq=False)
class Scene:
    """All that the remarks on a set of plans draw on.

    Attributes:
        lost, steps: each plan's measures "below optimum" and "steps to goal".
        earnings: each plan's reward against the optimum, as shown.
        twins: the plans that are nearly the same as each one.
        routes: the rooms along each plan's likeliest way; empty without rooms.
        settles: whether a plan leaves its start for ever, so that what it never does in the long run it may do once.
        regions: (S,) masks of the places in which plans can be told apart, by name: rooms, parts of the map, or labels.
        centres: by region of a map (k, 3): each plan's time there, and the mean row and column of that time.
        choices: (k, S) the choice that a plan nearly always takes in a state, -1 where it never comes, -2 where it
            does now this and now that; None where states are cells of a map, whose names say little.
    """

    plans: PlanSet
    survey: Survey
    lost: tuple[float | None, ...]
    steps: tuple[float | None, ...]
    earnings: tuple[str, ...]
    twins: tuple[list[int], ...]
    rooms: Rooms | None
    routes: tuple[Route | None, ...]
    settles: tuple[bool, ...]
    sectors: Sectors | None
    regions: dict[str, Bools]
    centres: dict[str, Floats]
    features: tuple[Feature, ...]
    choices: Ints | None

    @property
    def others(self) -> str:
        return "the other plan" if self.plans.k == 2 else "the others"

    @property
    def no_other(self) -> str:
        return "the other plan never" if self.plans.k == 2 else "no other plan"


def words_for(plans: PlanSet, word: str) -> str:
    """What a share is a share of: "time", "steps", or the same discounted."""
    return word if plans.criterion.discount == 1 else f"discounted {word}"


def scene_of(plans: PlanSet) -> Scene:
    """Look at a set of plans once."""
    seen, mdp = survey(plans), plans.mdp
    rooms = seen.rooms
    routes: tuple[Route | None, ...] = ()
    if rooms is not None:
        routes = tuple(None if fact.path is None else route_of(mdp, rooms, fact.path) for fact in seen.facts)
    settles = tuple((seen.by_state[:, mdp.start > 0].min(axis=1) <= 1e-12).tolist())
    sectors = sectors_of(mdp)
    regions = _regions(plans, rooms, sectors)
    features = (
        *_sector_features(plans, sectors),
        *_label_features(plans, rooms),
        *_action_features(plans),
        *(_habit_features(plans, regions) if rooms is None and len(mdp.action_names) <= HABITS_UP_TO else ()),
    )
    choices = None
    if mdp.layout is None:
        choices = np.stack([_main_choices(plans, plan, seen.by_state[plan]) for plan in range(plans.k)])
    values = {measure.name: measure.values for measure in measures(plans)}
    lost, steps = values["below optimum"], values.get("steps to goal", (None,) * plans.k)
    return Scene(
        plans, seen, lost, steps, _earnings(plans, lost), _twins(plans),
        rooms, routes, settles, sectors, regions, _centres(plans, regions), features, choices,
    )  # fmt: skip


def state_features(scene: Scene, plan: int) -> Iterator[Feature]:
    """The states where a plan spends more, and less, than the others do on average, by the most."""
    mdp, time = scene.plans.mdp, scene.survey.by_state
    mean = (time.sum(axis=0) - time[plan]) / max(scene.plans.k - 1, 1)
    for state in sorted({int(np.argmax(time[plan] - mean)), int(np.argmin(time[plan] - mean))}):
        name = mdp.state_name(state)
        yield _visit("state", scene.plans, quoted(name), plain(name), time[:, state])


def _visit(kind: str, plans: PlanSet, name: str, title: str, values: Floats) -> Feature:
    """Time in a place that is shown as `name`."""
    after = f"of its {words_for(plans, 'time')} in {name}"
    return Feature(kind, "Spends", after, f"Never visits {name}", f"Hardly ever visits {name}", title, values)


def _twins(plans: PlanSet) -> tuple[list[int], ...]:
    twins: tuple[list[int], ...] = tuple([] for _ in range(plans.k))
    for first, second in plans.near_duplicates:
        twins[first].append(second)
        twins[second].append(first)
    return twins


def _earnings(plans: PlanSet, below: tuple[float | None, ...]) -> tuple[str, ...]:
    """Each plan's reward against the optimum: a share below it where that makes sense."""
    least, shown = negligible(plans), []
    best = plans.optimal_reward if abs(plans.optimal_reward) > least else 0.0
    for own, lost in zip(plans.rewards.tolist(), below, strict=True):
        if own >= best - max(1e-6 * abs(best), least):
            shown.append(PERFECT)
        elif lost is not None and lost < 1 and best > 0:
            shown.append(f"{percent(lost)} {BELOW}")
        else:
            shown.append(f"{number(own)} per step where {number(best)} is possible")
    return tuple(shown)


def _main_choices(plans: PlanSet, plan: int, time: Floats) -> Ints:
    """(S,) see `Scene.choices`, for a plan that spends (S,) `time` in each state."""
    main = first_best(plans.mdp, plans.policies[plan])
    choice = np.where(plans.policies[plan][main] > NEARLY_ALWAYS, main, -2)
    return np.where(time > 1e-9, choice, -1)


def _regions(plans: PlanSet, rooms: Rooms | None, sectors: Sectors | None) -> dict[str, Bools]:
    if rooms is not None:
        return {f"in {rooms.name(room)}": rooms.of_state == room for room in range(1, len(rooms.names) + 1)}
    if sectors is not None:
        return {f"in the {name}": sectors.of_state == i for i, name in enumerate(sectors.names)}
    return {f"in {name}": plans.mdp.labels[label] for label, name in distinct(survey(plans).labels, quoted).items()}


def _centres(plans: PlanSet, regions: dict[str, Bools]) -> dict[str, Floats]:
    layout = plans.mdp.layout
    if layout is None:
        return {}
    by_state, found = survey(plans).by_state, {}
    for name, mask in regions.items():
        at = np.stack(np.divmod(layout.cells[mask], layout.shape[1]), axis=1)
        time = by_state[:, mask].sum(axis=1, keepdims=True)
        found[name] = np.hstack([time, by_state[:, mask] @ at / np.maximum(time, 1e-300)])
    return found


def _sector_features(plans: PlanSet, sectors: Sectors | None) -> Iterator[Feature]:
    if sectors is None:
        return
    shares, edges = shares_by_sector(sectors, survey(plans).by_state)
    whole = f"of its {words_for(plans, sectors.whole)}"
    for name, values in zip(sectors.names, shares.T, strict=True):
        title = "around the middle" if name == "middle" else f"by the {name}"
        # Start and goal are no part of the way, but may lie there.
        never = f"Spends none {whole} in the {name}" if sectors.whole == "way" else f"Stays out of the {name}"
        yield Feature("sector", "Spends", f"{whole} in the {name}", never, f"Hardly ever in the {name}", title, values)
    for name, values in edges.items():
        if (values > USUAL).any():
            along = f"along the {name} edge"
            never = f"Spends none {whole} {along}" if sectors.whole == "way" else f"Keeps off the {name} edge"
            yield Feature("edge", "Spends", f"{whole} {along}", never, f"Hardly ever {along}", along, values)


def _label_features(plans: PlanSet, rooms: Rooms | None) -> Iterator[Feature]:
    seen = survey(plans)
    titles = distinct(seen.labels, plain)
    for label, name in distinct(seen.labels, quoted).items():
        if seen.labels[label] < 0 or (rooms is not None and label == "door"):
            continue  # said as a risk, or as a route
        values = seen.by_state[:, plans.mdp.labels[label]].sum(axis=1)
        yield _visit("label", plans, name, titles[label], values)


def _action_features(plans: PlanSet) -> Iterator[Feature]:
    for name, values in zip(plans.mdp.action_names, action_shares(plans).T, strict=True):
        if values.any():
            takes, after = f"takes {quoted(name)}", f"of its {words_for(plans, 'steps')}"
            yield Feature(
                "action", f"{raised(takes)} in", after, f"Never {takes}", f"Hardly ever {takes}", plain(name), values
            )


def _habit_features(plans: PlanSet, regions: dict[str, Bools]) -> Iterator[Feature]:
    """What is done in a place that every plan visits."""
    for where, mask in regions.items():
        shares = action_shares(plans, mask)
        time = shares.sum(axis=1)
        if time.min() < SEEN:
            continue
        for name, values in zip(plans.mdp.action_names, (shares / time[:, None]).T, strict=True):
            if values.any():
                takes, after = f"takes {quoted(name)}", f"of its {words_for(plans, 'steps')}"
                yield Feature(
                    "habit", f"{raised(where)}, {takes} in", after, f"Never {takes} {where}",
                    f"Hardly ever {takes} {where}", f"{quoted(name)} {where}", values, float(time.mean()), where,
                )  # fmt: skip


def action_shares(plans: PlanSet, where: Bools | None = None, which: Sequence[int] | None = None) -> Floats:
    """(k, actions) share of time on each action, in all states or in (S,) marked ones, of all plans or of some."""
    mdp = plans.mdp
    rows = slice(None) if where is None else where[mdp.choice_state]
    count, of = len(mdp.action_names), plans.occupancies if which is None else plans.occupancies[list(which)]
    found = [np.bincount(mdp.actions[rows], weights=x[rows], minlength=count) for x in of]
    return np.stack(found).astype(np.float64)
