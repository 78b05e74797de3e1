"""The facts about a set of plans from which both measures and portraits are made.

Some come from the occupancies, the others from the Markov chain of each plan by sparse direct solves. Both are exact.
A survey is the slow part of describing plans: to get both measures and portraits, make it once and pass it to both.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from manyways.describe.first_visits import (
    SOLVED_AT_ONCE,
    Round,
    Run,
    chance_of_reaching,
    chance_of_visiting,
    round_to,
    run_of,
)
from manyways.describe.likeness import Likeness, likeness_of
from manyways.describe.places import likely_path
from manyways.describe.rules import Rule, rules_for
from manyways.describe.subject import NEVER, Plans
from manyways.model.episodes import restart_steps
from manyways.model.graph import reachable
from manyways.model.mdp import MDP
from manyways.model.occupancy import chain, state_occupancy
from manyways.model.regions import MapRegions, find_regions
from manyways.model.rooms import Rooms, rooms_of
from manyways.types import Bools, Floats, Ints

FACTORISED = 50_000
"""Plans that reach more states than this get only the facts that their occupancy gives: the factors of such chains
take too much memory."""

LABELS_AT_MOST = 12
VISITED = 200_000
"""The chances of passing each of several places are computed only if places times states are at most this many."""

REGIONS_AT_MOST = 50
"""Maps with more regions are described without them: their names would say little."""

UNSEEN = 1e-3
"""For entrances of a region that are used less often than this per way, all together, the visits are added as an upper bound."""

STAYS = 0.97
"""A plan that spends at least this share of its time in a state that it cannot leave is said to stay there."""


@dataclass(frozen=True, eq=False)
class PlanFacts:
    """What the chain of one plan says; None where it is not known.

    Attributes:
        reaches: the chance of ever reaching the goal.
        steps: expected steps from the start to the goal.
        touches: by label, the chance of meeting it on the way from the start to the goal.
        path: the most likely states from the start to the goal.
        doors: by state, the chance that the way passes this door.
        rooms: by number, the chance that the way enters this room.
        regions: (R,) the chance that the way goes through each region of `Survey.regions`, at most 0.001 too high.
        stays: the state in which it stays for good.
    """

    reaches: float | None
    steps: float | None
    touches: dict[str, float | None]
    path: list[int] | None
    doors: dict[int, float] | None
    rooms: dict[int, float] | None
    regions: Floats | None
    stays: int | None


@dataclass(frozen=True)
class Episodes:
    """How the episodes of each plan end.

    Attributes:
        steps: the mean number of steps until an episode ends, without the step back to the start from a state in which it
            has ended; None if no episode ends.
        shares: by kind of end, the share of episodes that end so; None if no episode ends, except for the kind "goal",
            whose share is then 0.
    """

    steps: tuple[float | None, ...]
    shares: dict[str, tuple[float | None, ...]]


@dataclass(frozen=True, eq=False)
class Survey:
    """What is known about a set of plans.

    Attributes:
        plans: the set.
        by_state: (k, S) time of each plan in each state.
        labels: the labels to describe, with whether they are good (1) or bad (-1) to be in, or neither (0).
        rooms: the rooms of a model with a goal; None without rooms.
        regions: the R regions found in the map of a model with a goal that has no rooms; None if there are
            fewer than two or too many.
        episodes: how episodes end, in a model whose episodes restart within a step; None for other models.
        facts: what the chain of each plan says.
        rules: what each plan does in which states, in a model without a map (`describe.rules`).
        likeness: how much alike the plans are.
    """

    plans: Plans
    by_state: Floats
    labels: dict[str, int]
    rooms: Rooms | None
    regions: MapRegions | None
    episodes: Episodes | None
    facts: tuple[PlanFacts, ...]
    rules: tuple[Rule, ...] | None
    likeness: Likeness


def survey_of(plans: Plans | Survey) -> Survey:
    """Compute the facts about a set of plans. A survey is returned as it is."""
    if isinstance(plans, Survey):
        return plans
    by_state = state_occupancy(plans.mdp, plans.occupancies)
    labels = _described_labels(plans.mdp, by_state)
    rooms = rooms_of(plans.mdp) if has_goal(plans.mdp) else None
    regions = _regions(plans.mdp) if rooms is None else None
    facts = tuple(_facts(plans, plan, by_state[plan], labels, rooms, regions) for plan in range(plans.k))
    preferences = {label: preference_of(plans.mdp, label) for label in labels}
    rules = rules_for(plans, by_state)
    likeness = likeness_of(plans, [_passed(plans.mdp, fact) for fact in facts], rules)
    return Survey(plans, by_state, preferences, rooms, regions, _episodes(plans), facts, rules, likeness)


def rules_of(plans: Plans | Survey) -> tuple[Rule, ...] | None:
    """What each plan does in which states, as a rule over their variables; None where there are no rules (`rules_for`)."""
    return plans.rules if isinstance(plans, Survey) else rules_for(plans, state_occupancy(plans.mdp, plans.occupancies))


def _regions(mdp: MDP) -> MapRegions | None:
    if mdp.layout is None or not has_goal(mdp):
        return None
    found = find_regions(mdp)
    return found if 1 < len(found.names) <= REGIONS_AT_MOST else None


def _passed(mdp: MDP, fact: PlanFacts) -> Floats | None:
    """The chances that the way of a plan goes through each door and room, or through each region; None if not known."""
    if fact.doors is None or fact.rooms is None:
        return fact.regions
    doors = [fact.doors.get(door, 0.0) for door in np.flatnonzero(mdp.labels["door"]).tolist()]
    return np.array([*doors, *fact.rooms.values()])


def has_goal(mdp: MDP) -> bool:
    return "goal" in mdp.labels and bool(mdp.labels["goal"].any())


def outside_goal(mdp: MDP, label: str) -> Bools:
    """(S,) the states with a label that are not goals."""
    return mdp.labels[label] & ~mdp.labels["goal"]


def negligible(plans: Plans) -> float:
    """Rewards of plans of at most this size count as 0."""
    return 1e-9 * plans.criterion.value_of_one * float((plans.occupancies @ np.abs(plans.mdp.reward)).max())


def _described_labels(mdp: MDP, by_state: Floats) -> tuple[str, ...]:
    """The labels to describe, in the order of the model: if there are too many, those in which the plans differ most."""
    spread = {
        label: float(np.ptp(by_state[:, mask].sum(axis=1)))
        for label, mask in mdp.labels.items()
        if label not in ("start", "goal") and mask.any() and not mask.all()
    }
    kept = sorted(spread, key=spread.__getitem__, reverse=True)[:LABELS_AT_MOST]
    return tuple(label for label in spread if label in kept)


def preference_of(mdp: MDP, label: str) -> int:
    """Whether the states with a label are good (1) or bad (-1) to be in, whatever is done there.

    They are bad if the best rewards there are typically below the middle half of the best rewards of the other states, and good if
    even the least rewards there are above it.
    """
    first, mask = mdp.first_choice[:-1], mdp.labels[label]
    best, least = np.maximum.reduceat(mdp.reward, first), np.minimum.reduceat(mdp.reward, first)
    low, middle, high = np.quantile(best[~mask], [0.25, 0.5, 0.75])
    most, worst = float(np.median(best[mask])), float(np.median(least[mask]))
    if abs(most - middle) <= 0.01 * max(abs(most), abs(middle)):
        return 0
    return int(worst > high) - int(most < low)


def _episodes(plans: Plans) -> Episodes | None:
    """From the occupancies alone: each choice ends episodes at a known rate."""
    if not plans.mdp.ends or has_goal(plans.mdp) or plans.criterion.discount < 1:
        return None
    rates = {end: plans.occupancies @ chance for end, chance in plans.mdp.ends.items()}
    total = sum(rates.values(), np.zeros(plans.k))
    ending = total > NEVER
    on_the_way = ~restart_steps(plans.mdp, np.sum(list(plans.mdp.ends.values()), axis=0))
    lengths = np.divide(plans.occupancies @ on_the_way, total, where=ending, out=np.zeros(plans.k))
    return Episodes(
        tuple(float(length) if ends else None for length, ends in zip(lengths, ending, strict=True)),
        {
            end: tuple(
                min(float(part / whole), 1.0) if ends else 0.0 if end == "goal" else None
                for part, whole, ends in zip(rate, total, ending, strict=True)
            )
            for end, rate in rates.items()
        },
    )


# ---- the facts about one plan -----------------------------------------------------------------


def _facts(
    plans: Plans, plan: int, time: Floats, labels: tuple[str, ...], rooms: Rooms | None, regions: MapRegions | None
) -> PlanFacts:
    """The facts about a plan that spends (S,) `time` in each state."""
    mdp, step = plans.mdp, chain(plans.mdp, plans.policies[plan])
    stays = int(np.argmax(time))
    if time[stays] < STAYS or step[stays, stays] < 1 - 1e-9:
        stays = None
    if not has_goal(mdp):
        return PlanFacts(None, None, {}, None, None, None, None, stays)
    path = likely_path(mdp, step)
    run = run_of(mdp, step, mdp.labels["goal"])
    if len(run.states) > FACTORISED:
        reaches, steps = _goal_by_occupancy(plans, run, float(time[mdp.labels["goal"]].sum()))
        return PlanFacts(reaches, steps, {}, path, None, None, None, stays)
    goal = mdp.labels["goal"][run.states]
    whole = round_to(run, goal)
    touches: dict[str, float | None] = {}
    for label in labels:
        target = outside_goal(mdp, label)[run.states]
        touches[label] = chance_of_visiting(run, whole, goal, target)
    doors, visited = (None, None) if rooms is None else _passing(mdp, run, goal, whole, rooms)
    crossed = None
    if regions is not None:
        crossed = _crossed(run, goal, whole, regions.of_state[run.states], len(regions.names))
    reaches = 1.0 if whole is not None else chance_of_reaching(run, goal)
    return PlanFacts(reaches, None if whole is None else whole.steps, touches, path, doors, visited, crossed, stays)


def _passing(
    mdp: MDP, run: Run, goal: Bools, whole: Round | None, rooms: Rooms
) -> tuple[dict[int, float] | None, dict[int, float] | None]:
    """The chances of passing each door and each room on the way to the goal; None if there are too many."""
    of_state, at = rooms.of_state[run.states], np.flatnonzero(mdp.labels["door"][run.states])
    doors: list[float | None] = [None]
    if len(at) * len(of_state) <= VISITED:
        alone = np.arange(len(of_state)) == at[:, None]
        doors = (
            [chance_of_visiting(run, whole, goal, door) for door in alone] if whole is None else [*whole.chances(at)]
        )
    numbers, visited = range(1, len(rooms.names) + 1), [None]
    if len(numbers) * len(of_state) <= VISITED:
        visited = [_visiting(run, whole, goal, of_state == room) for room in numbers]
    return _known(run.states[at].tolist(), doors), _known(numbers, visited)


def _visiting(run: Run, whole: Round | None, goal: Bools, room: Bools) -> float | None:
    """The chance of entering a room. If the expected visits are below 0.001, they are returned, as an upper bound."""
    if whole is not None and not room[goal].any() and (visits := whole.visits[room[whole.inside]].sum()) < 1e-3:
        return float(visits)
    return chance_of_visiting(run, whole, goal, room)


def _crossed(run: Run, goal: Bools, whole: Round | None, region: Ints, count: int) -> Floats | None:
    """(count,) the chances of going through each region, given (R,) the region of each state of the run; None if they
    cost too much.

    A region is entered by its entrances: states in which a way can begin or which can follow a state of another region.
    These are few, so that no new system has to be factorised for them.
    """
    step = sparse.coo_array(run.step)
    entrance = run.start > 0
    entrance[step.col[region[step.row] != region[step.col]]] = True
    visits = np.zeros(len(region))
    if whole is not None:
        visits[whole.inside] = whole.visits
    found: list[float | None] = []
    for number in range(count):
        target, unseen = region == number, 0.0
        if whole is not None and not target[goal].any():
            at = np.flatnonzero(target & entrance)
            at = at[np.argsort(visits[at], kind="stable")]
            seen = np.cumsum(visits[at]) > UNSEEN
            used, unseen = at[seen], float(visits[at[~seen]].sum())
            target = np.zeros(len(region), bool)
            target[used] = True
        surely = whole is not None and bool(target[goal].all())
        factorised = whole is None or np.count_nonzero(target) > SOLVED_AT_ONCE
        if factorised and not surely and count * len(region) > VISITED:
            return None
        chance = chance_of_visiting(run, whole, goal, target)
        found.append(None if chance is None else min(chance + unseen, 1.0))
    known = [chance for chance in found if chance is not None]
    return np.array(known) if len(known) == count else None


def _known(keys: Iterable[int], values: Sequence[float | None]) -> dict[int, float] | None:
    known = [float(value) for value in values if value is not None]
    return dict(zip(keys, known, strict=True)) if len(known) == len(values) else None


def _goal_by_occupancy(plans: Plans, run: Run, at_goal: float) -> tuple[float | None, float | None]:
    """Chance of reaching the goal and steps to it without a solve, if each goal leads directly back to the start.

    A round then takes 1 / `at_goal` steps, one of them in the goal. A goal that takes a positive share of all time is
    reached in every round, since a round that misses it would be the last.
    """
    goal = plans.mdp.labels["goal"][run.states]
    back = sparse.csr_array(np.ones((np.count_nonzero(goal), 1))) @ sparse.csr_array(run.start[None, :])
    again = run.step[np.flatnonzero(goal)] - back
    if plans.criterion.discount < 1 or at_goal <= 0 or not goal.any() or abs(again).max() > 1e-9:
        can = reachable(run.step.T.tocsr(), goal)
        return (1.0 if can.all() else 0.0 if not can[run.start > 0].any() else None), None
    return 1.0, (1 - at_goal) / at_goal
