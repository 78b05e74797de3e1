"""Where plans decide differently, and the two variables to draw them over."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np
import pytest
from given_plans import by_wear_and_parts, plan_set, workshop
from hypothesis import given, settings
from hypothesis import strategies as st

import manyways as mw
from manyways.describe import decisions_of, survey_of, two_variables
from problems import jsd, random_accessible_mdp, random_policy


def careful(wear, parts):
    return ("repair" if parts else "order") if wear else "run"


def careless(wear, parts):
    return ("repair" if parts else "order") if wear == 3 else "run"


@pytest.fixture(scope="module")
def plans() -> mw.PlanSet:
    shop = workshop()
    return plan_set(shop, [by_wear_and_parts(shop, careful), by_wear_and_parts(shop, careless)])


def test_the_states_in_which_two_plans_differ(plans):
    found = decisions_of(plans)
    assert found.left_out == 0
    (row,) = found.rows  # both run at wear 0 and nothing but the first decision at wear 1 is made by both
    assert row.name == "(1, 0)"
    assert [taken.action for taken in row.taken] == ["order", "run"]
    time = np.add.reduceat(plans.occupancies, plans.mdp.first_choice[:-1], axis=1)
    assert [taken.share for taken in row.taken] == pytest.approx(time[:, row.state])
    assert decisions_of(survey_of(plans)) == found


def test_the_best_plan_is_given_for_reference():
    shop = workshop()
    best = mw.plan(shop, 1)
    policies = [by_wear_and_parts(shop, rule) for rule in (careful, careless)]
    sets = plan_set(shop, [*policies, best.policies[0]])
    for row in decisions_of(sets).rows:  # the third plan is the best one
        if row.taken[2] is None:
            assert row.best is None
        else:
            assert row.best.action == row.taken[2].action
            assert row.best.share == pytest.approx(row.taken[2].share, abs=1e-9)
    assert all(row.best is None for row in decisions_of(replace(sets, proof=None)).rows)


@given(st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_against_a_count_state_by_state(seed):
    rng = np.random.default_rng(seed)
    mdp = random_accessible_mdp(rng, 6)
    plans = plan_set(mdp, [random_policy(rng, mdp) for _ in range(3)])
    found = {row.state: row for row in decisions_of(plans, 1000).rows}
    for state in range(mdp.n_states):
        here = slice(int(mdp.first_choice[state]), int(mdp.first_choice[state + 1]))
        time = plans.occupancies[:, here].sum(axis=1)
        comes = [plan for plan in range(3) if time[plan] > 1e-12]
        apart = [np.abs(plans.policies[i, here] - plans.policies[j, here]).max() for i, j in combinations(comes, 2)]
        assert (state in found) == (max(apart, default=0.0) > 0.05)
        if state not in found:
            continue
        for plan, taken in enumerate(found[state].taken):
            assert (taken is None) == (plan not in comes)
            if taken is not None:
                assert taken.share == pytest.approx(time[plan])
                assert sum(chance for _, chance in taken.actions) == pytest.approx(1.0)
                assert taken.actions[0][1] == max(chance for _, chance in taken.actions)
    order = [sum(taken.share for taken in row.taken if taken is not None) for row in decisions_of(plans, 1000).rows]
    assert all(one >= other - 1e-12 for one, other in pairwise(order))
    few = decisions_of(plans, 1)
    assert len(few.rows) + few.left_out == len(found)


def test_the_number_of_states_is_checked(plans):
    with pytest.raises(mw.SettingError):
        decisions_of(plans, 0)


# ---- two variables ------------------------------------------------------------------------------


def test_two_variables_of_a_workshop(plans):
    assert two_variables(plans) == ("wear", "parts")
    assert two_variables(mw.plan("four-rooms:0", 1)) is None


def test_the_pair_that_separates_the_plans_best(plans):
    mdp, rng = plans.mdp, np.random.default_rng(3)
    others = {"noise": rng.integers(0, 2, mdp.n_states), "same": np.zeros(mdp.n_states, int)}
    mixed = replace(mdp, variables={**others, **mdp.variables, "many": rng.normal(size=mdp.n_states)})
    given = replace(plans, mdp=mixed)

    def apart(*names: str) -> float:
        """The divergence of the two plans by values and action, counted choice by choice."""
        tables = []
        for occupancy in plans.occupancies:
            table: dict = {}
            for x, time in enumerate(occupancy.tolist()):
                state = mdp.choice_state[x]
                key = (*(mixed.variables[name][state].item() for name in names), mdp.action_name(x))
                table[key] = table.get(key, 0.0) + time
            tables.append(table)
        keys = sorted(set(tables[0]) | set(tables[1]), key=str)
        return jsd(*(np.array([table.get(key, 0.0) for key in keys]) for table in tables))

    usable = ("noise", "wear", "parts", "many")  # all have at most 40 values here
    best = max(combinations(usable, 2), key=lambda pair: round(apart(*pair), 6))
    chosen = two_variables(given)
    assert chosen is not None
    assert apart(*chosen) == pytest.approx(apart(*best))
    assert "same" not in chosen


def test_too_few_or_too_fine_variables(plans):
    n = plans.mdp.n_states
    for variables in ({"wear": plans.mdp.variables["wear"]}, {"wear": plans.mdp.variables["wear"], "same": [1] * n}):
        assert two_variables(replace(plans, mdp=replace(plans.mdp, variables=variables))) is None
    wide = mw.MDP.from_csr(
        np.eye(50)[(np.arange(50) + 1) % 50],
        np.zeros(50),
        np.arange(51),
        variables={"a": np.arange(50), "b": [0, 1] * 25},
    )
    assert two_variables(mw.plan(wide, 1)) is None


def test_a_single_plan_is_drawn_over_what_explains_its_actions():
    shop = workshop()
    noise = np.random.default_rng(0).integers(0, 2, shop.n_states)
    shop = replace(shop, variables={"noise": noise, **shop.variables})
    assert two_variables(plan_set(shop, [by_wear_and_parts(shop, careless)])) == ("wear", "parts")
