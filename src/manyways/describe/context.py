"""The context of remarks: what they need to know about a whole set of plans, computed once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from manyways.describe.features import Feature, features_of
from manyways.describe.measure import is_length, measures
from manyways.describe.places import Route, Sectors, route_of, sectors_of
from manyways.describe.rules import Rule
from manyways.describe.subject import NEVER, Plans
from manyways.describe.survey import Survey, negligible
from manyways.describe.wording import Terms, aligned, distinct, finely, number, quantity, quoted, terms_of
from manyways.model.graph import reachable
from manyways.model.occupancy import chain, first_best
from manyways.model.rooms import Rooms
from manyways.types import Bools, Floats, Ints

NEARLY_ALWAYS = 0.95
SHARED, AS_LONG = 0.8, 0.01
"""Plans differ only in detail if they share this part of their time, cell by cell, and their steps differ by at most this part."""

ABSENT, MIXED = -1, -2
"""In `Context.choices`: the plan is never in the state; or it takes no choice there nearly always."""


@dataclass(frozen=True)
class Remark:
    """A sentence on a plan.

    Attributes:
        kind: "group" or "group:detail". A portrait has at most one remark of each kind, and few of each group.
        weight: how much the sentence says about the plan.
        text: the sentence.
    """

    kind: str
    weight: float
    text: str


@dataclass(frozen=True, eq=False)
class Context:
    """What remarks need to know about a set of plans.

    Attributes:
        plans, survey: the set and the facts about it.
        terms: the words for rewards or costs.
        lost, steps: the measures "below optimum" and "steps to goal" of each plan.
        rewards: the reward of each plan, as tables show it.
        earnings: the reward of each plan against the optimum, as shown; None for an optimal plan.
        twins: for each plan, the plans that are nearly the same.
        rooms: the rooms of the map; None without rooms.
        routes: the rooms along the most likely way of each plan; empty without rooms.
        settles: whether a plan leaves its start forever. Such a plan may do once what it never does in the long run.
        reached: (k, S) the states that each plan can reach, if only at first.
        by_length: whether the reward is minus a multiple of the steps, so that both say the same.
        sectors: the parts of the map; None without a map.
        regions: (S,) masks of the places in which plans are compared, by name: rooms, parts of the map, or labels.
        centres: by region of a map (k, 3): the time of each plan there, and the mean row and column of that time.
        features: what plans spend time on.
        choices: (k, S) the choice that a plan nearly always takes in a state, `ABSENT` where it never is, `MIXED` where
            it randomises. None for models with a map, since the names of cells say little.
        rules: what each plan does, over the variables of the states; None for models with a map or without variables.
    """

    plans: Plans
    survey: Survey
    terms: Terms
    lost: tuple[float | None, ...]
    steps: tuple[float | None, ...]
    rewards: tuple[str, ...]
    earnings: tuple[str | None, ...]
    twins: tuple[list[int], ...]
    rooms: Rooms | None
    routes: tuple[Route | None, ...]
    settles: tuple[bool, ...]
    reached: Bools
    by_length: bool
    sectors: Sectors | None
    regions: dict[str, Bools]
    centres: dict[str, Floats]
    features: tuple[Feature, ...]
    choices: Ints | None
    rules: tuple[Rule, ...] | None

    @property
    def perfect(self) -> str:
        """The earnings of an optimal plan."""
        longest, episodes = getattr(self.plans.criterion, "longest", None), self.survey.episodes
        steps = None if episodes is None else episodes.steps[int(np.argmax(self.plans.rewards))]
        # Where the best plan needs less time than it may take, no longer episode earns more.
        if longest is None or steps is None or steps + 1 < longest * (1 - 1e-6):
            return f"and no plan can {self.terms.beyond}"
        return f"and no plan whose episodes last at most {quantity(longest)} steps on average can {self.terms.beyond}"

    @property
    def others(self) -> str:
        return "the other plan" if self.plans.k == 2 else "the others"

    def in_detail(self, one: int, other: int) -> bool:
        """Whether two plans are as good and as long, as shown, and nearly always in the same cells."""
        own, theirs = self.steps[one], self.steps[other]
        shared = float(np.minimum(*self.survey.by_state[[one, other]]).sum())
        if self.earnings[one] != self.earnings[other] or shared < SHARED:
            return False
        if own is None or theirs is None:
            return own == theirs
        return abs(own - theirs) <= AS_LONG * max(own, theirs)

    @property
    def no_other(self) -> str:
        return "the other plan never" if self.plans.k == 2 else "no other plan"


def context_of(survey: Survey) -> Context:
    plans, rooms = survey.plans, survey.rooms
    mdp, terms = plans.mdp, terms_of(plans.mdp)
    routes: tuple[Route | None, ...] = ()
    if rooms is not None:
        routes = tuple(None if fact.path is None else route_of(mdp, rooms, fact.path) for fact in survey.facts)
    sectors = sectors_of(mdp)
    regions = _regions(survey, sectors)
    choices = None
    if mdp.layout is None:
        choices = np.stack([_main_choices(plans, plan, survey.by_state[plan]) for plan in range(plans.k)])
    measured = measures(survey)
    values, reached = {measure.name: measure.values for measure in measured}, _reached(survey)
    return Context(
        plans=plans,
        survey=survey,
        terms=terms,
        lost=values[terms.loss],
        steps=values.get("steps to goal", (None,) * plans.k),
        rewards=tuple(aligned(values[terms.noun])),
        earnings=_earnings(plans, terms, values[terms.loss]),
        twins=_twins(survey),
        rooms=rooms,
        routes=routes,
        settles=tuple((survey.by_state[:, mdp.start > 0].min(axis=1) <= 1e-12).tolist()),
        reached=reached,
        by_length=is_length(measured),
        sectors=sectors,
        regions=regions,
        centres=_centres(survey, regions),
        features=features_of(survey, reached, rooms, sectors, regions),
        choices=choices,
        rules=survey.rules,
    )


def _reached(survey: Survey) -> Bools:
    """(k, S) see `Context.reached`."""
    mdp, steady = survey.plans.mdp, survey.by_state > NEVER
    if steady[:, mdp.start > 0].all():
        return steady  # whoever comes back to the start passes every state again and again
    return np.stack([reachable(chain(mdp, policy), mdp.start > 0) for policy in survey.plans.policies])


def _twins(survey: Survey) -> tuple[list[int], ...]:
    """The plans that are nearly the same in what is compared and do not go different ways."""
    twins: tuple[list[int], ...] = tuple([] for _ in range(survey.plans.k))
    for first, second in survey.plans.near_duplicates:
        if survey.likeness.grade(first, second) == 0:
            twins[first].append(second)
            twins[second].append(first)
    return twins


def _earnings(plans: Plans, terms: Terms, lost: tuple[float | None, ...]) -> tuple[str | None, ...]:
    """The reward of each plan against the optimum: None for an optimal plan; otherwise the share by which it is worse, if
    the optimum is positive as shown and the share is not too large, or else both numbers."""
    least, unit, shown = negligible(plans), plans.criterion.unit, []
    best = plans.optimal_reward if abs(plans.optimal_reward) > least else 0.0
    for own, share in zip(plans.rewards.tolist(), lost, strict=True):
        if own >= best - max(1e-6 * abs(best), least):
            shown.append(None)
        elif share is not None and share < terms.largest and terms.shown(best) > 0:
            shown.append(f"{finely(share)} {terms.off}")
        else:
            shown.append(f"{number(terms.shown(own))} {unit} where {number(terms.shown(best))} is possible")
    return tuple(shown)


def _main_choices(plans: Plans, plan: int, time: Floats) -> Ints:
    """(S,) see `Context.choices`, for a plan that spends (S,) `time` in each state."""
    main = first_best(plans.mdp, plans.policies[plan])
    choice = np.where(plans.policies[plan][main] > NEARLY_ALWAYS, main, MIXED)
    return np.where(time > 1e-9, choice, ABSENT)


def _regions(survey: Survey, sectors: Sectors | None) -> dict[str, Bools]:
    rooms, labels = survey.rooms, survey.plans.mdp.labels
    if rooms is not None:
        return {f"in {rooms.name(room)}": rooms.of_state == room for room in range(1, len(rooms.names) + 1)}
    if sectors is not None:
        return {f"in the {name}": sectors.of_deeds == i for i, name in enumerate(sectors.names)}
    return {f"in states labelled {name}": labels[label] for label, name in distinct(survey.labels, quoted).items()}


def _centres(survey: Survey, regions: dict[str, Bools]) -> dict[str, Floats]:
    layout, found = survey.plans.mdp.layout, {}
    if layout is None:
        return {}
    for name, mask in regions.items():
        at = np.stack(np.divmod(layout.cells[mask], layout.shape[1]), axis=1)
        time = survey.by_state[:, mask].sum(axis=1, keepdims=True)
        found[name] = np.hstack([time, survey.by_state[:, mask] @ at / np.maximum(time, 1e-300)])
    return found
