"""What can be said about each plan in numbers, all exact: from its occupancy, and from its chain by direct solves."""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from scipy import sparse

from manyways.arrays import Bools, Floats
from manyways.mdp import MDP
from manyways.occupancy import chain, state_occupancy
from manyways.planset import PlanSet
from manyways.portrait.hitting import Run, chance_of_reaching, round_to, run_of
from manyways.portrait.places import likely_path
from manyways.structure import reachable

FACTORISED = 50_000
"""Plans that reach more states get only what the occupancy says: factors of such chains fill the memory."""

LABELS_AT_MOST = 12
DOORS_AT_MOST = 200
NAME_LENGTH = 40
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
        touches: by label, the chance that a round from the start to the goal meets it.
        path: the likeliest states from the start to the goal.
        doors: by state, the chance that a round passes this door.
        stays: the state in which it stays for good.
    """

    reaches: float | None
    steps: float | None
    touches: dict[str, float | None]
    path: list[int] | None
    doors: dict[int, float]
    stays: int | None


@dataclass(frozen=True, eq=False)
class Survey:
    """(k, S) time of each plan in each state; the labels worth a line, with whether they are good (1) or bad (-1) to be
    in; the facts of each plan."""

    by_state: Floats
    labels: dict[str, int]
    facts: tuple[PlanFacts, ...]


def measures(plans: PlanSet) -> list[Measure]:
    """Everything that is measured of these plans, the most important first."""
    rows = [_reward(plans), _loss(plans)]
    labels = survey(plans).labels
    if has_goal(plans.mdp):
        rows += _goal(plans)
        rows += [_touching(plans, label) for label in labels if _on_the_way(plans.mdp, label).any()]
    rows += [_time(plans, label) for label in labels]
    return [row for row in rows if any(value is not None for value in row.values)]


def has_goal(mdp: MDP) -> bool:
    return "goal" in mdp.labels and bool(mdp.labels["goal"].any())


def short(name: str) -> str:
    """A state's, label's or action's name, cut to a length that fits a sentence."""
    return name if len(name) <= NAME_LENGTH else name[: NAME_LENGTH - 1] + "…"


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
        facts = tuple(_facts(plans, plan, by_state[plan], labels) for plan in range(plans.k))
        _surveyed[plans] = Survey(by_state, {label: _liking(plans.mdp, label) for label in labels}, facts)
    return _surveyed[plans]


def _telling_labels(mdp: MDP, by_state: Floats) -> tuple[str, ...]:
    """The labels worth a line, in the model's order: of too many, those on which the plans differ most."""
    spread = {
        label: float(np.ptp(by_state[:, mask].sum(axis=1)))
        for label, mask in mdp.labels.items()
        if label not in ("start", "goal") and mask.any() and not mask.all()
    }
    kept = sorted(spread, key=spread.__getitem__, reverse=True)[:LABELS_AT_MOST]
    return tuple(label for label in spread if label in kept)


def _facts(plans: PlanSet, plan: int, time: Floats, labels: tuple[str, ...]) -> PlanFacts:
    """The facts of a plan that spends (S,) `time` in each state."""
    mdp, step = plans.mdp, chain(plans.mdp, plans.policies[plan])
    stays = int(np.argmax(time))
    if time[stays] < STAYS or step[stays, stays] < 1 - 1e-9:
        stays = None
    if not has_goal(mdp):
        return PlanFacts(None, None, {}, None, {}, stays)
    path = likely_path(mdp, step)
    run = run_of(mdp, step, mdp.labels["goal"])
    if len(run.states) > FACTORISED:
        return PlanFacts(*_goal_by_occupancy(plans, run, float(time[mdp.labels["goal"]].sum())), {}, path, {}, stays)
    goal = mdp.labels["goal"][run.states]
    whole = round_to(run, goal)
    touches: dict[str, float | None] = {}
    for label in labels:
        target = _on_the_way(mdp, label)[run.states]
        touches[label] = chance_of_reaching(run, target, goal, surely_ends=whole is not None) if target.any() else 0.0
    doors: dict[int, float] = {}
    if whole is not None and "door" in mdp.labels and np.count_nonzero(mdp.labels["door"]) <= DOORS_AT_MOST:
        at = np.flatnonzero(mdp.labels["door"][run.states])
        doors = dict(zip(run.states[at].tolist(), whole.chances(at).tolist(), strict=True))
    reaches = 1.0 if whole is not None else chance_of_reaching(run, goal)
    return PlanFacts(reaches, None if whole is None else whole.steps, touches, path, doors, stays)


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
    meaning = "Mean reward per step in the long run."
    if plans.criterion.discount < 1:
        meaning = f"Mean reward per step, in which later steps count less (discount {plans.criterion.discount:g})."
    return Measure("reward", tuple(map(float, plans.rewards)), "reward", 1, meaning)


def _loss(plans: PlanSet) -> Measure:
    lost, best = plans.optimal_reward - plans.rewards, abs(plans.optimal_reward)
    scale = float(np.abs(plans.mdp.reward).max())
    lost = np.where(lost < 1e-9 * max(scale, 1e-300), 0.0, lost)
    if best <= 1e-9 * scale:
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
            Measure(
                "chance of reaching goal", reaches, "share", 1, "Chance that a run from the start ever meets the goal."
            )
        )
    meaning = "Mean number of steps from the start to the goal."
    rows.append(Measure("steps to goal", tuple(fact.steps for fact in facts), "steps", -1, meaning))
    return rows


def _touching(plans: PlanSet, label: str) -> Measure:
    values = tuple(fact.touches.get(label) for fact in survey(plans).facts)
    meaning = f"Chance that a run from the start meets '{short(label)}' before its first goal."
    return Measure(f"chance of touching {short(label)}", values, "share", survey(plans).labels[label], meaning)


def _time(plans: PlanSet, label: str) -> Measure:
    values = time_in(plans, plans.mdp.labels[label])
    meaning = f"Share of all steps that are spent in '{short(label)}'."
    if plans.criterion.discount < 1:
        meaning = f"Share of time spent in '{short(label)}', in which later steps count less (discount {plans.criterion.discount:g})."
    return Measure(f"time in {short(label)}", tuple(map(float, values)), "share", survey(plans).labels[label], meaning)


def time_in(plans: PlanSet, states: Bools) -> Floats:
    """(k,) share of time in (S,) marked states."""
    return np.clip(survey(plans).by_state[:, states].sum(axis=1), 0.0, 1.0)
