"""Measures: the numbers by which plans are compared, each with a sentence that says what it means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from manyways.describe.places import share_beside
from manyways.describe.subject import Plans
from manyways.describe.survey import Episodes, Survey, has_goal, negligible, outside_goal, survey_of
from manyways.describe.wording import ROUNDING, distinct, plain, quoted, short, terms_of

MOST_WORK = 200_000_000
"""Transitions times steps up to which episodes are followed step by step."""


@dataclass(frozen=True)
class Measure:
    """One number for each plan.

    Attributes:
        name: "reward", "steps to goal", "time in door"; "cost" instead of "reward" for models with costs.
        values: one for each plan; None where it is not defined, such as the steps to a goal that may not be reached.
        unit: "reward", "share" (0 to 1, to be shown in percent) or "steps".
        better: 1 if more is better, -1 if less is, 0 if neither.
        meaning: what it is, in one plain sentence.
    """

    name: str
    values: tuple[float | None, ...]
    unit: str
    better: int
    meaning: str


def measures(plans: Plans | Survey) -> list[Measure]:
    """All measures of a set of plans, the most important first: reward, loss, goal, episodes, labels."""
    survey = survey_of(plans)
    mdp, names = survey.plans.mdp, distinct(survey.labels, plain)
    rows = [_reward(survey.plans), _loss(survey.plans)]
    if has_goal(mdp):
        rows += _goal(survey)
        rows += [_touching(survey, *pair) for pair in names.items() if outside_goal(mdp, pair[0]).any()]
    if survey.episodes is not None:
        rows += _ends(survey.episodes)
        rows += in_time(survey.plans)
    rows += [_time(survey, *pair) for pair in names.items()]
    rows += _beside(survey)
    return [row for row in rows if any(value is not None for value in row.values)]


def is_length(measured: Sequence[Measure]) -> bool:
    """Whether the rewards of plans are minus a multiple of their steps to the goal, and not all the same."""
    steps = next((measure for measure in measured if measure.name == "steps to goal"), None)
    rewards = measured[0].better * np.array(measured[0].values, float)
    if steps is None or None in steps.values or np.ptp(rewards) <= ROUNDING * np.abs(rewards).max():
        return False
    ratio = rewards / np.maximum(np.array(steps.values, float), ROUNDING)
    return bool((ratio < 0).all() and np.ptp(ratio) <= 1e-6 * np.abs(ratio).max())


def _reward(plans: Plans) -> Measure:
    terms, criterion = terms_of(plans.mdp), plans.criterion
    meaning = f"Mean {terms.noun} {criterion.unit}."
    if criterion.discount < 1:
        meaning = f"Expected sum of {terms.noun}s, in which later steps count less (discount {criterion.discount:g})."
    elif criterion.unit == "per step" and len(plans.mdp.ends) > 1:
        meaning = f"Mean {terms.noun} per step over many episodes in a row: an episode that fails soon costs little."
    elif criterion.unit == "per step":
        meaning = f"Mean {terms.noun} per step in the long run."
    return Measure(terms.noun, tuple(map(float, terms.shown(plans.rewards))), "reward", terms.sign, meaning)


def _loss(plans: Plans) -> Measure:
    terms, lost, best = terms_of(plans.mdp), plans.optimal_reward - plans.rewards, abs(plans.optimal_reward)
    lost = np.where(lost <= negligible(plans), 0.0, lost)
    meaning = f"How much {terms.worse} the {terms.noun} is than that of the best possible plan"
    if best <= negligible(plans):
        return Measure(terms.loss, tuple(map(float, lost)), "reward", -1, f"{meaning}.")
    return Measure(terms.loss, tuple(map(float, lost / best)), "share", -1, f"{meaning}, as a share of that one.")


def _goal(survey: Survey) -> list[Measure]:
    rows = []
    reaches = tuple(fact.reaches for fact in survey.facts)
    if any(chance is not None and chance < 1 for chance in reaches):
        rows.append(
            Measure("chance of reaching goal", reaches, "share", 1, "Chance of ever reaching the goal from the start.")
        )
    meaning = "Mean number of steps from the start to the goal."
    rows.append(Measure("steps to goal", tuple(fact.steps for fact in survey.facts), "steps", -1, meaning))
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
    meaning = "Mean number of steps until an episode ends, however it ends."
    return [*rows, Measure("steps per episode", episodes.steps, "steps", 0, meaning)]


def in_time(plans: Plans) -> list[Measure]:
    """How many episodes reach the goal before the environment cuts them off, step by step through the chain of each plan.

    Empty where there is no such limit.
    """
    mdp, limit = plans.mdp, plans.mdp.time_limit
    if limit is None or "goal" not in mdp.ends or limit * mdp.transitions.nnz > MOST_WORK:
        return []
    ending = sum(mdp.ends.values(), np.zeros(mdp.n_choices))
    shares = []
    for policy in plans.policies:
        taken = sparse.csr_array((policy, np.arange(mdp.n_choices), mdp.first_choice), (mdp.n_states, mdp.n_choices))
        goal, step = taken @ mdp.ends["goal"], sparse.csr_array(taken @ mdp.transitions)
        ends = taken @ ending
        at, reached = mdp.start, 0.0
        for _ in range(limit):
            reached += float(at @ goal)
            at = step.T @ at - (at @ ends) * mdp.start  # what ended begins again at the start, in another episode
        shares.append(min(max(reached, 0.0), 1.0))
    meaning = f"Share of all episodes that reach the goal before the environment cuts them off after {limit} steps."
    return [Measure(f"reaches goal in {limit} steps", tuple(shares), "share", 1, meaning)]


def _touching(survey: Survey, label: str, name: str) -> Measure:
    values = tuple(fact.touches.get(label) for fact in survey.facts)
    meaning = f"Chance of meeting {quoted(label)} on the way from the start to the goal."
    return Measure(f"chance of touching {name}", values, "share", survey.labels[label], meaning)


def _beside(survey: Survey) -> list[Measure]:
    found = share_beside(survey.plans.mdp, survey.by_state)
    if found is None:
        return []
    danger, shares = found
    meaning = f"Share of its way, start and goal left out, that is in cells next to a {short(danger)}."
    return [Measure(f"way beside {short(danger)}", tuple(map(float, shares)), "share", -1, meaning)]


def _time(survey: Survey, label: str, name: str) -> Measure:
    plans = survey.plans
    values = np.clip(survey.by_state[:, plans.mdp.labels[label]].sum(axis=1), 0.0, 1.0)
    meaning = f"Share of all steps that are spent in {quoted(label)}."
    if plans.criterion.discount < 1:
        meaning = f"Share of time spent in {quoted(label)}, in which later steps count less (discount {plans.criterion.discount:g})."
    return Measure(f"time in {name}", tuple(map(float, values)), "share", survey.labels[label], meaning)
