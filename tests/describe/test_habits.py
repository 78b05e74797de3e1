"""Titles by habits: true, of at least a quarter of the time, and about one plan."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from given_plans import by_wear_and_parts, going, plan_set, workshop
from hypothesis import given, settings
from hypothesis import strategies as st

import manyways as mw
from manyways.describe import portraits, rules_of, survey_of
from manyways.describe.conditions import all_hold
from manyways.describe.habits import TITLE_AT_MOST, _candidates, departure, habits_of
from problems import random_accessible_mdp, random_policy


def slow_when_worn(wear, parts):
    return ("repair" if parts else "order") if wear == 3 else "run slowly" if wear else "run"


def slow_when_new(wear, parts):
    return ("repair" if parts else "order") if wear == 3 else "run" if wear else "run slowly"


def in_stock(wear, parts):
    return "order" if parts < 2 else "repair" if wear >= 2 else "run"


@pytest.fixture(scope="module")
def shop() -> mw.MDP:
    return workshop()


@pytest.fixture(scope="module")
def plans(shop) -> mw.PlanSet:
    return plan_set(shop, [by_wear_and_parts(shop, rule) for rule in (slow_when_worn, slow_when_new, in_stock)])


def cautious(wear, parts):
    return "order" if parts == 0 else "repair" if wear >= 2 else "run"


def frugal(wear, parts):
    return "order" if parts == 0 and wear == 3 else "repair" if wear >= 2 and parts else "run"


def test_plans_that_differ_in_a_small_part_are_told_apart_by_it(shop):
    """The part of their rules in which two plans differ is said, however little time it takes."""
    plans = plan_set(shop, [by_wear_and_parts(shop, rule) for rule in (in_stock, cautious, frugal)])
    titles = [portrait.title for portrait in portraits(plans)]
    assert not any(re.search(r"\(\d\)$|small differences", title) for title in titles), titles
    survey = survey_of(plans)
    for plan, others in ((1, [2]), (2, [1])):
        words = departure(survey, rules_of(survey), plan, others)
        assert words is not None
        assert departure(survey, rules_of(survey), others[0], [plan]) != words
    assert departure(survey, rules_of(survey), 1, [1]) is None


def time_of(plans: mw.PlanSet, plan: int, action: str, where) -> tuple[float, float]:
    """The time in which a plan is where `where(wear, parts)` says, and the time that it takes the action there."""
    mdp, there, doing = plans.mdp, 0.0, 0.0
    for x, time in enumerate(plans.occupancies[plan].tolist()):
        state = mdp.choice_state[x]
        if where(mdp.variables["wear"][state], mdp.variables["parts"][state]):
            there += time
            doing += time if mdp.action_name(x) == action else 0.0
    return there, doing


def test_titles_of_three_ways_to_run_a_workshop(plans):
    titles = [portrait.title for portrait in portraits(plans)]
    assert titles == ["Runs slowly at wear 1 or 2", "Runs slowly at wear 0", "Runs at wear 1 or less when parts are 2"]
    claims = [
        ("run slowly", lambda wear, _: 1 <= wear <= 2),
        ("run slowly", lambda wear, _: wear == 0),
        ("run", lambda wear, parts: parts == 2 and wear < 2),
    ]
    for plan, (action, where) in enumerate(claims):
        there, doing = time_of(plans, plan, action, where)
        assert doing >= 0.25
        assert doing >= 0.95 * there
        for other in {0, 1, 2} - {plan}:
            there, doing = time_of(plans, other, action, where)
            assert there < 0.02 or doing < 0.5 * there


def test_a_title_is_not_narrower_than_the_truth():
    """There is a radio in rooms 0 to 2 of 4. A plan that always takes it there says so, and one that takes it in room 0 only
    names the room."""
    rows = [("s=3", "rest", "s=0", 1.0, 0.0)]
    rows += [(f"s={s}", action, f"s={s + 1}", 1.0, 0.0) for s in range(3) for action in ("walk", "radio")]
    mdp = mw.MDP.from_transitions(rows)
    assert set(mdp.variables) == {"s"}

    def radio_in(*rooms: int) -> np.ndarray:
        return going(mdp, *((f"s={s}", "radio" if s in rooms else "walk") for s in range(3)))

    plans = plan_set(mdp, [radio_in(0, 1, 2), radio_in(0), radio_in()])
    titles = [portrait.title for portrait in portraits(plans)]
    assert titles[0] == "Always takes 'radio' where it can"
    assert titles[1] == "Takes 'radio' only when s = 0"
    assert plans.occupancies[0] @ np.array([mdp.action_name(x) == "radio" for x in range(mdp.n_choices)]) == 0.75


def test_plans_that_are_the_same_have_no_habit_of_their_own(shop):
    twins = plan_set(shop, [by_wear_and_parts(shop, slow_when_new)] * 2)
    assert habits_of(survey_of(twins), rules_of(twins)) == [None, None]
    assert len({portrait.title for portrait in portraits(twins)}) == 2


def test_a_single_plan(shop):
    plans = plan_set(shop, [by_wear_and_parts(shop, slow_when_worn)])
    assert [portrait.title for portrait in portraits(plans)] == ["Runs slowly at wear 1 or 2"]
    there, doing = time_of(plans, 0, "run slowly", lambda wear, _: 1 <= wear <= 2)
    assert there == pytest.approx(doing)
    assert doing > 0.5


def test_a_set_without_variables_has_no_habits(plans):
    assert habits_of(survey_of(plans), None) == [None] * 3


def test_numbers_of_actions_never_stand_alone(plans):
    numbered = replace(plans.mdp, action_names=tuple(map(str, range(len(plans.mdp.action_names)))))
    for variables in (plans.mdp.variables, {"none": np.zeros(numbered.n_states, int)}):
        shown = replace(plans, mdp=replace(numbered, variables=variables, state_names=None))
        for portrait in portraits(shown):
            assert not portrait.title.strip("'()— ").isdigit(), portrait.title
            assert "'3'" not in portrait.title.split(" at ")[0]


@given(st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_whatever_the_model_titles_differ_and_habits_hold(seed):
    rng = np.random.default_rng(seed)
    mdp = random_accessible_mdp(rng, 8)
    variables = {"level": rng.integers(0, 3, mdp.n_states), "hot": rng.random(mdp.n_states) < 0.5}
    mdp = replace(mdp, variables=variables)
    plans = plan_set(mdp, [random_policy(rng, mdp) for _ in range(3)])
    titles = [portrait.title for portrait in portraits(plans)]
    assert len(set(titles)) == 3
    rules, survey = rules_of(plans), survey_of(plans)
    if rules is None:
        return
    for plan, rule in enumerate(rules):
        for habit in _candidates(survey, rule, plan):
            assert len(habit.text) <= TITLE_AT_MOST
            assert habit.time[plan] >= 0.25 - 1e-9
        for case in rule.ways:
            mask = all_hold(case.conditions, mdp.variables, mdp.n_states)
            assert mask.any()
