"""Habits: what a plan always does under a condition on the variables, and the other plans do not, for its title.

Where a plan has no such habit for a quarter of its time, `departure` says in which smaller part it differs from given plans.

"Runs slowly at wear 0" is a habit of a plan that runs slowly in nearly all of its time at wear 0. "Runs only at wear 1 or
less" is one if it runs there and hardly ever elsewhere. "Always runs where it can" takes the place of both if it is true: a
condition would suggest that the plan does otherwise elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from manyways.describe.action_words import does
from manyways.describe.conditions import Condition, all_hold, narrowed, spent, when
from manyways.describe.features import ALSO, SEEN, VARIABLES_AT_MOST, ranges_of
from manyways.describe.likeness import QUARTER
from manyways.describe.rules import Rule, actions_by_name, deciding_states
from manyways.describe.subject import NEVER
from manyways.describe.survey import Survey
from manyways.types import Bools, Floats

TITLE_AT_MOST = 45
ENOUGH = QUARTER - 1e-9
ALWAYS, MAINLY = 0.95, 0.5
"""A plan has a habit if it does so in at least the first share of its time there. Another plan is without it only if it does so
in less than the second share."""

ELSEWHERE = 0.01
"""A plan that does something elsewhere for at least this share of the time that it does it does not do it "only" there."""

LEAST = 0.01
"""Plans depart from each other in what at least this share of their time differs in."""

HABITS_AMONG = 50
"""With more actions than this, only the actions in rules are looked at."""


@dataclass(frozen=True, eq=False)
class Habit:
    """An action under a condition.

    Attributes:
        action: by its number.
        text: "runs slowly at wear 0".
        time: (k,) the time that each plan spends on it.
        surely: (k,) whether each plan does what the text says, nearly always.
        nearly: (k,) whether the text could be taken to be about each plan.
        apart: (k,) by how much of its time each plan does otherwise than the plan that the text is about.
        everywhere: whether it is about all states in which there is a choice of the action.
    """

    action: int
    text: str
    time: Floats
    surely: Bools
    nearly: Bools
    apart: Floats
    everywhere: bool = False


def habits_of(survey: Survey, rules: Sequence[Rule] | None) -> list[str | None]:
    """For each plan what distinguishes it for at least a quarter of its time, in at most 45 characters; None if there is no
    such thing.

    It is what tells the plan apart by the most time and no other plan does or, without that, what at most half of the others
    do. Plans that share a habit share its words: what another plan does that has other words is not said.
    """
    plans = survey.plans
    if rules is None:
        return [None] * plans.k
    found = [_candidates(survey, rules[plan], plan) for plan in range(plans.k)]
    chosen = [
        next((habit for habit in of_plan if _sharing(habit, plan) == 0), None) for plan, of_plan in enumerate(found)
    ]
    for plan in np.argsort(-plans.rewards, kind="stable").tolist():
        if chosen[plan] is not None:
            continue
        for habit in found[plan]:
            sharing = np.flatnonzero(habit.nearly).tolist()
            if all(habit.surely[other] and habit.time[other] >= ENOUGH and chosen[other] is None for other in sharing):
                chosen = [habit if other in sharing else own for other, own in enumerate(chosen)]
                break
    return [None if habit is None else habit.text for habit in chosen]


def departure(survey: Survey, rules: Sequence[Rule], plan: int, others: Sequence[int]) -> str | None:
    """What a plan does and none of the other given plans, for however little time, in a few words; None if there is no such
    thing.

    It is what the plan nearly always does under a condition on the variables, and the others mainly do not. Without that, it is
    what the plan does for more time than each of the others.
    """
    rest = list(others)
    sure = [
        habit
        for habit in _habits(survey, rules[plan], plan, SEEN)
        if habit.surely[plan] and habit.time[plan] >= SEEN and not habit.nearly[rest].any()
    ]
    said = {habit.text: float(habit.apart[rest].min()) for habit in _without_narrow(sure, plan)}
    return _widest(said) or _widest(dict(_more(survey, plan, rest)))


def _widest(found: Mapping[str, float]) -> str | None:
    """The words with the largest difference, if it is large enough to be seen; the shortest of equals."""
    short = [text for text, apart in found.items() if len(text) <= TITLE_AT_MOST and apart >= LEAST]
    return min(short, key=lambda text: (-round(found[text], 3), len(text)), default=None)


def _more(survey: Survey, plan: int, others: list[int]) -> Iterator[tuple[str, float]]:
    """What the plan spends clearly more time on than each of the others, with the least difference: values of variables, and
    actions at them."""
    plans = survey.plans
    names, mdp, deciding = plans.mdp.action_names, plans.mdp, deciding_states(plans.mdp)
    taken = actions_by_name(mdp)
    for name, values in islice(mdp.variables.items(), VARIABLES_AT_MOST):
        for condition, mask in ranges_of(name, values):
            there = survey.by_state[:, mask].sum(axis=1)
            if there[others].max() <= ALSO * there[plan]:
                yield f"more time {spent(condition)}", float((there[plan] - there[others]).min())
            # Shorter than the range of all other values.
            if condition.low == condition.high and there[plan] <= ALSO * there[others].min():
                yield f"less time {spent(condition)}", float((there[others] - there[plan]).min())
            rows = (mask & deciding)[mdp.choice_state]
            time = np.stack([np.bincount(taken[rows], x[rows], len(names)) for x in plans.occupancies[[plan, *others]]])
            action = int(np.argmax((time[0] - time[1:]).min(axis=0)))
            if time[1:, action].max() <= ALSO * time[0, action]:
                more = f"{does(names[action])} more often {when((condition,))}"
                yield more, float((time[0] - time[1:])[:, action].min())


def _candidates(survey: Survey, rule: Rule, plan: int) -> list[Habit]:
    """The habits of a plan that could be its title, the best first."""
    found = [
        habit
        for habit in _habits(survey, rule, plan, QUARTER)
        if habit.surely[plan] and habit.time[plan] >= ENOUGH and len(habit.text) <= TITLE_AT_MOST
    ]
    k = survey.plans.k
    if k == 1:
        return sorted(found, key=lambda habit: (-round(float(habit.time[0]), 3), len(habit.text)))
    apart = {habit: float(np.delete(habit.apart, plan).mean()) for habit in found}
    kept = [habit for habit in found if 2 * _sharing(habit, plan) <= k - 1 and apart[habit] >= ENOUGH / 2]
    return sorted(_without_narrow(kept, plan), key=lambda habit: (-round(apart[habit], 3), len(habit.text)))


def _without_narrow(habits: Sequence[Habit], plan: int) -> list[Habit]:
    """The habits without those whose condition is narrower than the truth: the plan takes the action wherever it can, and the
    words that say so could be about no more plans."""
    wide = {habit.action: _sharing(habit, plan) for habit in habits if habit.everywhere}
    return [
        habit
        for habit in habits
        if habit.everywhere or habit.action not in wide or wide[habit.action] > _sharing(habit, plan)
    ]


def _sharing(habit: Habit, plan: int) -> int:
    """How many other plans the words could be about."""
    return int(np.delete(habit.nearly, plan).sum())


def _habits(survey: Survey, rule: Rule, plan: int, least: float) -> Iterator[Habit]:
    """The habits to choose from: those of the rule of the plan, and what it does in ranges of single variables for at least this
    share of its time."""
    mdp = survey.plans.mdp
    for case in rule.ways if rule.fits else ():
        if case.conditions:
            yield from _said(survey, plan, mdp.action_names.index(case.action), case.conditions)
    if len(mdp.action_names) > HABITS_AMONG:
        return
    shares = np.bincount(actions_by_name(mdp), survey.plans.occupancies[plan], len(mdp.action_names))
    frequent = np.flatnonzero(shares >= least).tolist()
    for action in frequent:
        yield from _wherever(survey, plan, action)
    for name, values in islice(mdp.variables.items(), VARIABLES_AT_MOST) if frequent else ():
        for condition, mask in ranges_of(name, values):
            if survey.by_state[plan, mask].sum() >= least:
                for action in frequent:
                    yield from _said(survey, plan, action, (condition,))


def _said(survey: Survey, plan: int, action: int, conditions: tuple[Condition, ...]) -> Iterator[Habit]:
    """The action where the conditions hold, with bounds as narrow as where the plan takes it, and the action only there. Nothing if
    there is mostly nothing else that it could do."""
    plans = survey.plans
    mdp, taken = plans.mdp, actions_by_name(plans.mdp) == action
    offered = np.logical_or.reduceat(taken, mdp.first_choice[:-1])
    decides = deciding_states(mdp)
    conditions = narrowed(conditions, mdp.variables, (survey.by_state[plan] > NEVER) & offered & decides)
    mask = all_hold(conditions, mdp.variables, mdp.n_states)
    if survey.by_state[plan, mask & decides].sum() < MAINLY * survey.by_state[plan, mask].sum():
        return
    everywhere = plans.occupancies[:, taken].sum(axis=1)
    time = plans.occupancies[:, taken & mask[mdp.choice_state]].sum(axis=1)
    there = survey.by_state[:, mask].sum(axis=1)
    if there.min() > 1 - SEEN:
        return  # all plans are always there
    verb, where, comes = does(mdp.action_names[action]), when(conditions), there >= SEEN
    share = time / np.maximum(there, 1e-300)
    surely, nearly = comes & (share >= ALWAYS), comes & (share >= MAINLY)
    yield Habit(action, f"{verb} {where}", time, surely, nearly, time[plan] - time)
    elsewhere = everywhere - time
    yield Habit(
        action,
        f"{verb} only {where}",
        everywhere,
        surely & (elsewhere <= NEVER),
        nearly & (elsewhere < ELSEWHERE * everywhere),
        elsewhere,
    )


def _wherever(survey: Survey, plan: int, action: int) -> Iterator[Habit]:
    """The action in all states in which it is one of several."""
    mdp = survey.plans.mdp
    taken = actions_by_name(mdp) == action
    offered = np.logical_or.reduceat(taken, mdp.first_choice[:-1])
    mask = offered & deciding_states(mdp)
    time = survey.plans.occupancies[:, taken & mask[mdp.choice_state]].sum(axis=1)
    there = survey.by_state[:, mask].sum(axis=1)
    share, comes = time / np.maximum(there, 1e-300), there >= SEEN
    where = "" if offered.all() else " where it can"
    text = f"always {does(mdp.action_names[action])}{where}"
    surely, nearly = comes & (share >= ALWAYS), comes & (share >= MAINLY)
    yield Habit(action, text, time, surely, nearly, time[plan] - time, everywhere=True)
