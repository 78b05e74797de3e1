"""What can be said about each plan in numbers, all exact: from its occupancy, and from its chain by direct solves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from scipy import sparse

from manyways.describe.first_visits import Round, Run, chance_of_reaching, chance_of_visiting, round_to, run_of
from manyways.describe.places import Rooms, likely_path, rooms_of
from manyways.describe.wording import distinct, plain, quoted
from manyways.model.graph import reachable
from manyways.model.mdp import MDP
from manyways.model.occupancy import chain, state_occupancy
from manyways.plans.planset import PlanSet
from manyways.types import Bools, Floats

FACTORISED = 50_000
"""Plans that reach more states get only what the occupancy says: factors of such chains fill the memory."""

LABELS_AT_MOST = 12
VISITED = 200_000
"""Chances to pass each of some places are computed for so many places times states at most."""

NEVER = 1e-12
STAYS = 0.97
"""A state that keeps a plan for this share of its time is where it stays for good."""


@dataclass(frozen=True)
class Measure:
    """One number for each plan.

    Attributes:
        name: "reward", "steps to goal", "time in door".
        values: one for each plan; None where it is not defined, as for steps to a goal that is not surely reached.
        unit: "reward", "share" (0 to 1, to be shown in percent) or "steps".
        better: 1 if more is better, -1 if less is, 0 if neither.
        meaning: what it is, in one sentence for anybody.
    """

    name: str
    values: tuple[float | None, ...]
    unit: str
    better: int
    meaning: str


@dataclass(frozen=True, eq=False)
class PlanFacts:
    """What one plan's chain says; None where it is not known.

    Attributes:
        reaches: the chance of ever meeting the goal.
        steps: expected steps from the start to the goal.
        touches: by label, the chance that the way from the start to the goal meets it.
        path: the likeliest states from the start to the goal.
        doors: by state, the chance that the way passes this door.
        rooms: by number, the chance that the way meets this room.
        stays: the state in which it stays for good.
    """

    reaches: float | None
    steps: float | None
    touches: dict[str, float | None]
    path: list[int] | None
    doors: dict[int, float] | None
    rooms: dict[int, float] | None
    stays: int | None


@dataclass(frozen=True, eq=False)
class Survey:
    """What is known about a set of plans.

    Attributes:
        by_state: (k, S) time of each plan in each state.
        labels: those worth a line, with whether they are good (1) or bad (-1) to be in.
        rooms: those of a model with a goal.
        episodes: how each plan's episodes end, in a model that restarts in the middle of a step.
        facts: one of each plan's chain.
    """

    by_state: Floats
    labels: dict[str, int]
    rooms: Rooms | None
    episodes: Episodes | None
    facts: tuple[PlanFacts, ...]


@dataclass(frozen=True)
class Episodes:
    """For each plan, the mean length of an episode; and by kind of end the share of those that end so. None where no
    episode ever ends, but for the share that reach the goal, which is then none."""

    steps: tuple[float | None, ...]
    shares: dict[str, tuple[float | None, ...]]


def measures(plans: PlanSet) -> list[Measure]:
    """Everything that is measured of these plans, the most important first."""
    rows = [_reward(plans), _loss(plans)]
    names = distinct(survey(plans).labels, plain)
    if has_goal(plans.mdp):
        rows += _goal(plans)
        rows += [_touching(plans, *pair) for pair in names.items() if _on_the_way(plans.mdp, pair[0]).any()]
    if (episodes := survey(plans).episodes) is not None:
        rows += _ends(episodes)
    rows += [_time(plans, *pair) for pair in names.items()]
    return [row for row in rows if any(value is not None for value in row.values)]


def has_goal(mdp: MDP) -> bool:
    return "goal" in mdp.labels and bool(mdp.labels["goal"].any())


def negligible(plans: PlanSet) -> float:
    """Rewards of at most this size count as 0."""
    return 1e-9 * float(np.abs(plans.mdp.reward).max())


def _liking(mdp: MDP, label: str) -> int:
    """Whether the states of a label are good (1) or bad (-1) to be in, judged by the best reward on offer there.

    Clearly above or below means: the median lies outside the middle half of the other states.
    """
    best = np.maximum.reduceat(mdp.reward, mdp.first_choice[:-1])
    mask = mdp.labels[label]
    here, (low, middle, high) = float(np.median(best[mask])), np.quantile(best[~mask], [0.25, 0.5, 0.75])
    if abs(here - middle) <= 0.01 * max(abs(here), abs(middle)):
        return 0
    return int(here > high) - int(here < low)


# ---- one plan after the other -----------------------------------------------------------------

_surveyed: WeakKeyDictionary[PlanSet, Survey] = WeakKeyDictionary()


def survey(plans: PlanSet) -> Survey:
    """What numbers and sentences both start from; kept as long as the plans are."""
    if plans not in _surveyed:
        by_state = state_occupancy(plans.mdp, plans.occupancies)
        labels = _telling_labels(plans.mdp, by_state)
        rooms = rooms_of(plans.mdp) if has_goal(plans.mdp) else None
        facts = tuple(_facts(plans, plan, by_state[plan], labels, rooms) for plan in range(plans.k))
        likings = {label: _liking(plans.mdp, label) for label in labels}
        _surveyed[plans] = Survey(by_state, likings, rooms, _episodes(plans), facts)
    return _surveyed[plans]


def _episodes(plans: PlanSet) -> Episodes | None:
    """From the occupancies alone: in the long run, episodes end as often as choices are taken that may end them."""
    if not plans.mdp.ends or has_goal(plans.mdp) or plans.criterion.discount < 1:
        return None
    rates = {end: plans.occupancies @ chance for end, chance in plans.mdp.ends.items()}
    total = sum(rates.values(), np.zeros(plans.k))
    ending = total > NEVER
    return Episodes(
        tuple(1 / float(rate) if ends else None for rate, ends in zip(total, ending, strict=True)),
        {
            end: tuple(
                min(float(part / whole), 1.0) if ends else 0.0 if end == "goal" else None
                for part, whole, ends in zip(rate, total, ending, strict=True)
            )
            for end, rate in rates.items()
        },
    )


def _telling_labels(mdp: MDP, by_state: Floats) -> tuple[str, ...]:
    """The labels worth a line, in the model's order: of too many, those on which the plans differ most."""
    spread = {
        label: float(np.ptp(by_state[:, mask].sum(axis=1)))
        for label, mask in mdp.labels.items()
        if label not in ("start", "goal") and mask.any() and not mask.all()
    }
    kept = sorted(spread, key=spread.__getitem__, reverse=True)[:LABELS_AT_MOST]
    return tuple(label for label in spread if label in kept)


def _facts(plans: PlanSet, plan: int, time: Floats, labels: tuple[str, ...], rooms: Rooms | None) -> PlanFacts:
    """The facts of a plan that spends (S,) `time` in each state."""
    mdp, step = plans.mdp, chain(plans.mdp, plans.policies[plan])
    stays = int(np.argmax(time))
    if time[stays] < STAYS or step[stays, stays] < 1 - 1e-9:
        stays = None
    if not has_goal(mdp):
        return PlanFacts(None, None, {}, None, None, None, stays)
    path = likely_path(mdp, step)
    run = run_of(mdp, step, mdp.labels["goal"])
    if len(run.states) > FACTORISED:
        reaches, steps = _goal_by_occupancy(plans, run, float(time[mdp.labels["goal"]].sum()))
        return PlanFacts(reaches, steps, {}, path, None, None, stays)
    goal = mdp.labels["goal"][run.states]
    whole = round_to(run, goal)
    touches: dict[str, float | None] = {}
    for label in labels:
        target = _on_the_way(mdp, label)[run.states]
        touches[label] = chance_of_visiting(run, whole, goal, target)
    doors, visited = (None, None) if rooms is None else _passing(mdp, run, goal, whole, rooms)
    reaches = 1.0 if whole is not None else chance_of_reaching(run, goal)
    return PlanFacts(reaches, None if whole is None else whole.steps, touches, path, doors, visited, stays)


def _passing(
    mdp: MDP, run: Run, goal: Bools, whole: Round | None, rooms: Rooms
) -> tuple[dict[int, float] | None, dict[int, float] | None]:
    """The chances to pass each door and each room on the way to the goal; None where there are too many."""
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
    """The chance to meet a room; where visits are so few that it is below a thousandth, their number instead."""
    if whole is not None and not room[goal].any() and (visits := whole.visits[room[whole.inside]].sum()) < 1e-3:
        return float(visits)
    return chance_of_visiting(run, whole, goal, room)


def _known(keys: Iterable[int], values: Sequence[float | None]) -> dict[int, float] | None:
    known = [float(value) for value in values if value is not None]
    return dict(zip(keys, known, strict=True)) if len(known) == len(values) else None


def _on_the_way(mdp: MDP, label: str) -> Bools:
    """(S,) the label's states that are no goal."""
    return mdp.labels[label] & ~mdp.labels["goal"]


def _goal_by_occupancy(plans: PlanSet, run: Run, at_goal: float) -> tuple[float | None, float | None]:
    """Chance of meeting the goal and steps to it without a solve, where each goal leads straight back to the start.

    A round then takes 1 / `at_goal` steps, one of them in the goal; and a goal met for a share of all time is met in
    every round, since a round that misses it would be the last.
    """
    goal = plans.mdp.labels["goal"][run.states]
    back = sparse.csr_array(np.ones((np.count_nonzero(goal), 1))) @ sparse.csr_array(run.start[None, :])
    again = run.step[np.flatnonzero(goal)] - back
    if plans.criterion.discount < 1 or at_goal <= 0 or not goal.any() or abs(again).max() > 1e-9:
        can = reachable(run.step.T.tocsr(), goal)
        return (1.0 if can.all() else 0.0 if not can[run.start > 0].any() else None), None
    return 1.0, (1 - at_goal) / at_goal


# ---- the rows ---------------------------------------------------------------------------------


def _reward(plans: PlanSet) -> Measure:
    meaning, discount = "Mean reward per step in the long run.", plans.criterion.discount
    if discount < 1:
        less = f"later steps count less (discount {discount:g})"
        meaning = f"Mean reward per step, in which {less}: the discounted sum times {1 - discount:.3g}."
    elif len(plans.mdp.ends) > 1:
        meaning = "Mean reward per step, one episode after the other: an episode that fails soon costs little."
    return Measure("reward", tuple(map(float, plans.rewards)), "reward", 1, meaning)


def _loss(plans: PlanSet) -> Measure:
    lost, best = plans.optimal_reward - plans.rewards, abs(plans.optimal_reward)
    lost = np.where(lost <= negligible(plans), 0.0, lost)
    if best <= negligible(plans):
        meaning = "Reward per step that the plan gives up against the best possible plan."
        return Measure("below optimum", tuple(map(float, lost)), "reward", -1, meaning)
    meaning = "Reward that the plan gives up against the best possible plan, as a share of that plan's reward."
    return Measure("below optimum", tuple(map(float, lost / best)), "share", -1, meaning)


def _goal(plans: PlanSet) -> list[Measure]:
    facts = survey(plans).facts
    rows = []
    reaches = tuple(fact.reaches for fact in facts)
    if any(chance is not None and chance < 1 for chance in reaches):
        rows.append(
            Measure("chance of reaching goal", reaches, "share", 1, "Chance of ever reaching the goal from the start.")
        )
    meaning = "Mean number of steps from the start to the goal."
    rows.append(Measure("steps to goal", tuple(fact.steps for fact in facts), "steps", -1, meaning))
    return rows


def _ends(episodes: Episodes) -> list[Measure]:
    rows = []
    for end, shown in distinct(episodes.shares, plain).items():
        shares = episodes.shares[end]
        if all(share in (1.0, None) for share in shares):
            continue
        better = 1 if end == "goal" else -1 if "goal" in episodes.shares else 0
        name = "reaches goal" if end == "goal" else f"ends in {shown}"
        rows.append(Measure(name, shares, "share", better, f"Share of all episodes that end in {quoted(end)}."))
    if set(episodes.shares) == {"goal"}:
        meaning = "Mean number of steps from the start to the goal."
        return [*rows, Measure("steps to goal", episodes.steps, "steps", -1, meaning)]
    meaning = "Mean number of steps until an episode ends, in whatever way."
    return [*rows, Measure("steps per episode", episodes.steps, "steps", 0, meaning)]


def _touching(plans: PlanSet, label: str, name: str) -> Measure:
    values = tuple(fact.touches.get(label) for fact in survey(plans).facts)
    meaning = f"Chance of meeting {quoted(label)} on the way from the start to the goal."
    return Measure(f"chance of touching {name}", values, "share", survey(plans).labels[label], meaning)


def _time(plans: PlanSet, label: str, name: str) -> Measure:
    values = time_in(plans, plans.mdp.labels[label])
    meaning = f"Share of all steps that are spent in {quoted(label)}."
    if plans.criterion.discount < 1:
        meaning = f"Share of time spent in {quoted(label)}, in which later steps count less (discount {plans.criterion.discount:g})."
    return Measure(f"time in {name}", tuple(map(float, values)), "share", survey(plans).labels[label], meaning)


def time_in(plans: PlanSet, states: Bools) -> Floats:
    """(k,) share of time in (S,) marked states."""
    return np.clip(survey(plans).by_state[:, states].sum(axis=1), 0.0, 1.0)
