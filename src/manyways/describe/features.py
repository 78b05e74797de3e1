"""Features: what plans can spend time on, in numbers and in the words that sentences and titles use.

A feature is a part of the map, a label, a state, an action, or an action in a place, with the share of time that each
plan spends on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from manyways.describe.conditions import Condition, missing, spent
from manyways.describe.places import Sectors, shares_by_sector, sides_of
from manyways.describe.rules import deciding_states
from manyways.describe.steering import deeds_of
from manyways.describe.subject import NEVER, STATES_UP_TO, Plans, words_for
from manyways.describe.survey import Survey
from manyways.describe.wording import distinct, plain, quoted, raised
from manyways.model.rooms import Rooms
from manyways.model.variables import Values
from manyways.types import Bools, Floats

USUAL = 0.5
ALSO = 0.8
"""A plan does nearly as much of something as another one from this part of it on."""
SEEN = 0.02
"""How a plan acts in a place is mentioned only if it spends at least this share of its time there."""

LEVELS_UP_TO = 40
"""Variables with more values than this are not described value by value."""

RANGES_OF_EACH = 4
VARIABLES_AT_MOST = 30

HABITS_UP_TO = 50
"""With more actions than this their names say little, and there would be thousands of habits."""


@dataclass(frozen=True, eq=False)
class Feature:
    """Something that plans do for a share of time.

    Attributes:
        kind: "sector", "side", "edge", "label", "level", "action", "habit" or "state".
        before, after: the words before and after the share in a sentence.
        never, hardly: the sentence on a plan whose share is zero, or nearly zero.
        title: a few words for the title of a plan that it is typical of; empty where it would say nothing.
        values: (k,) the shares.
        time: (k,) the shares of all time. They are smaller than `values` if these are shares of a part of it.
        ever: (k,) whether each plan ever does it, if only at first.
        part: the part of all time that the shares are shares of, averaged over the plans; 1 except for habits.
        place: the place of a habit.
    """

    kind: str
    before: str
    after: str
    never: str
    hardly: str
    title: str
    values: Floats
    time: Floats
    ever: Bools
    part: float = 1.0
    place: str = ""

    def does(self, share: str) -> str:
        return f"{self.before} {share} {self.after}"


def features_of(
    survey: Survey, reached: Bools, rooms: Rooms | None, sectors: Sectors | None, regions: dict[str, Bools]
) -> tuple[Feature, ...]:
    """All features of a set of plans except for single states; (k, S) `reached` are the states that each plan ever comes to."""
    habits = rooms is None and len(survey.plans.mdp.action_names) <= HABITS_UP_TO
    return (
        *_sector_features(survey, reached, sectors),
        *_label_features(survey, reached, rooms),
        *level_features(survey, reached),
        *_action_features(survey.plans, reached),
        *(_habit_features(survey.plans, reached, regions) if habits else ()),
    )


def _comes_to(reached: Bools, mask: Bools) -> Bools:
    """(k,) whether each plan ever comes to one of (S,) marked states."""
    return np.asarray(reached[:, mask].any(axis=1))


def state_features(survey: Survey, reached: Bools, plan: int) -> Iterator[Feature]:
    """The state in which a plan exceeds the mean of the others most, and the state in which it falls short most."""
    mdp, time = survey.plans.mdp, survey.by_state
    mean = (time.sum(axis=0) - time[plan]) / max(survey.plans.k - 1, 1)
    for state in sorted({int(np.argmax(time[plan] - mean)), int(np.argmin(time[plan] - mean))}):
        name = mdp.state_name(state)
        yield _visit("state", survey.plans, quoted(name), plain(name), time[:, state], reached[:, state])


def level_features(survey: Survey, reached: Bools) -> Iterator[Feature]:
    """For each variable of a model without a map, the values and ranges of values in which the plans differ most."""
    mdp, by_state = survey.plans.mdp, survey.by_state
    if mdp.layout is not None or mdp.n_states > STATES_UP_TO:
        return
    after = f"of its {words_for(survey.plans, 'time')}"
    for name, values in islice(mdp.variables.items(), VARIABLES_AT_MOST):
        times = [
            (condition, by_state[:, mask].sum(axis=1), _comes_to(reached, mask))
            for condition, mask in ranges_of(name, values)
        ]
        kept: list[Floats] = []
        for condition, time, ever in sorted(times, key=lambda entry: -round(float(np.ptp(entry[1])), 3)):
            told = any(np.allclose(time, other) for other in kept)
            if not told and len(kept) < RANGES_OF_EACH:
                kept.append(time)
                where = spent(condition)
                there = where if condition.is_level else f"in states {where}"
                never, hardly = f"Is never {there}", f"Is hardly ever {there}"
                yield Feature("level", "Spends", f"{after} {where}", never, hardly, where, time, time, ever)


def ranges_of(name: str, values: Values) -> Iterator[tuple[Condition, Bools]]:
    """Conditions on one variable, each with (S,) the states in which it holds: single values, and ranges from the least or
    to the highest value; none for a variable with one value, or with too many."""
    known = ~missing(values)
    different = np.unique(values[known])
    if not 2 <= len(different) <= LEVELS_UP_TO:
        return
    if values.dtype.kind not in "if":
        for value in different.tolist():
            yield Condition(name, values=(value,)), values == value
        return
    least, *inner, most = different.tolist()
    yield from ((Condition(name, value, value), values == value) for value in (least, *inner, most))
    yield from ((Condition(name, value, None), known & (values >= value)) for value in inner)
    yield from ((Condition(name, None, value), known & (values <= value)) for value in inner)


def action_shares(plans: Plans, where: Bools | None = None, which: Sequence[int] | None = None) -> Floats:
    """(k, actions) share of time on each action, in all states or in (S,) marked ones, of all plans or of some."""
    mdp = plans.mdp
    rows = slice(None) if where is None else where[mdp.choice_state]
    count, of = len(mdp.action_names), plans.occupancies if which is None else plans.occupancies[list(which)]
    found = [np.bincount(mdp.actions[rows], weights=x[rows], minlength=count) for x in of]
    return np.stack(found).astype(np.float64)


def _visit(kind: str, plans: Plans, name: str, title: str, values: Floats, ever: Bools) -> Feature:
    """Time in a place that is shown as `name`."""
    after = f"of its {words_for(plans, 'time')} in {name}"
    return Feature(
        kind, "Spends", after, f"Never visits {name}", f"Hardly ever visits {name}", title, values, values, ever
    )


def _sector_features(survey: Survey, reached: Bools, sectors: Sectors | None) -> Iterator[Feature]:
    if sectors is None:
        return
    way = survey.by_state[:, sectors.of_state >= 0].sum(axis=1)
    whole = f"of its {words_for(survey.plans, sectors.whole)}"
    shares, edges = shares_by_sector(sectors, survey.by_state)
    # With rooms, routes say on which side a plan goes.
    sides = sides_of(sectors) if survey.rooms is None else {}
    names, of_state = sectors.names, sectors.of_state
    found = [("sector", name, f"in the {name}", shares[:, i], of_state == i) for i, name in enumerate(names)]
    found += [
        (
            "side",
            name,
            _on_side(name, [names[part] for part in parts]),
            shares[:, parts].sum(axis=1),
            np.isin(of_state, parts),
        )
        for name, parts in sides.items()
    ]
    found += [
        ("edge", name, f"along the {name}", values, sectors.edges[name])
        for name, values in edges.items()
        if (values > USUAL).any()
    ]
    for kind, name, where, values, mask in found:
        title = where if kind == "edge" else "through the middle" if name == "middle" else f"by the {name}"
        never = f"Keeps off the {name}" if kind == "edge" else f"Stays out of {where.removeprefix('in ')}"
        # Start and goal do not count as parts of the way, but may lie there.
        never = f"Spends none {whole} {where}" if sectors.whole == "way" else never
        yield Feature(
            kind,
            "Spends",
            f"{whole} {where}",
            never,
            f"Hardly ever {where}",
            title,
            values,
            values * way,
            _comes_to(reached, mask),
        )


def _on_side(name: str, parts: Sequence[str]) -> str:
    """Where three parts of a map are, so that nobody takes them for the one in the middle."""
    return (
        f"in the {name}, {' or '.join(part for part in parts if part != name)}"
        if "-" in name
        else f"in the {name}ern third"
    )


def _label_features(survey: Survey, reached: Bools, rooms: Rooms | None) -> Iterator[Feature]:
    titles = distinct(survey.labels, plain)
    labelled = "states labelled " if survey.plans.mdp.layout is None else ""
    for label, name in distinct(survey.labels, quoted).items():
        if survey.labels[label] < 0 or (rooms is not None and label == "door"):
            continue  # remarks on risks and on routes mention it
        mask = survey.plans.mdp.labels[label]
        title = f"{labelled}{name}" if labelled else titles[label]
        ever = _comes_to(reached, mask)
        yield _visit("label", survey.plans, f"{labelled}{name}", title, survey.by_state[:, mask].sum(axis=1), ever)


def _ever_taken(plans: Plans, reached: Bools, where: Bools | None = None) -> Bools:
    """(k, actions) whether each plan ever takes each action, in all states or in (S,) marked ones."""
    mdp = plans.mdp
    taken = (plans.policies > NEVER) & (reached if where is None else reached & where)[:, mdp.choice_state]
    return np.stack([np.bincount(mdp.actions, weights=own, minlength=len(mdp.action_names)) > 0 for own in taken])


def _action_features(plans: Plans, reached: Bools) -> Iterator[Feature]:
    mdp, deeds, ever = plans.mdp, deeds_of(plans), _ever_taken(plans, reached)
    free = action_shares(plans, deciding_states(mdp)).sum(axis=0)
    for number, values in enumerate(action_shares(plans).T):
        if values.any():
            name, forced = mdp.action_names[number], 2 * free[number] < values.sum()
            takes, after = f"takes {quoted(name)}", f"of its {words_for(plans, 'steps')}"
            yield Feature(
                "action",
                f"{raised(takes)} in",
                after,
                f"Never {takes}",
                f"Hardly ever {takes}",
                "" if forced else deeds[number],
                values,
                values,
                ever[:, number],
            )


def _habit_features(plans: Plans, reached: Bools, regions: dict[str, Bools]) -> Iterator[Feature]:
    """The actions taken in each region that every plan visits."""
    for where, mask in regions.items():
        shares = action_shares(plans, mask)
        time = shares.sum(axis=1)
        if time.min() < SEEN:
            continue
        ever = _ever_taken(plans, reached, mask)
        for number, own in enumerate(shares.T):
            if own.any():
                name = plans.mdp.action_names[number]
                takes, after = f"takes {quoted(name)}", f"of its {words_for(plans, 'steps')}"
                yield Feature(
                    "habit", f"{raised(where)}, {takes} in", after, f"Never {takes} {where}",
                    f"Hardly ever {takes} {where}", f"{quoted(name)} {where}", own / time, own, ever[:, number],
                    float(time.mean()), where,
                )  # fmt: skip
