"""Objectives for teams, where meetings and places count: in rooms, with a start and a goal."""

from __future__ import annotations

import numpy as np
import pytest

import manyways as mw
from problems import random_policy

OBJECTIVES = {
    "congestion": mw.Congestion(3.0),
    "coverage": mw.Coverage(2.0),
    "pure coverage": mw.Coverage(float("inf")),
}


@pytest.fixture(scope="module")
def rooms():
    return mw.room_world(9, 2, 1)


def some(mdp, seed, k=3):
    rng = np.random.default_rng(seed)
    return np.stack([mw.Average().occupancy(mdp, random_policy(rng, mdp)) for _ in range(k)])


@pytest.mark.parametrize("objective", OBJECTIVES.values(), ids=OBJECTIVES)
def test_gradients_and_contributions(rooms, objective):
    worth = objective.on(rooms, mw.States().on(rooms))
    x, towards = some(rooms, 0), some(rooms, 1)
    step = 1e-5
    slope = (worth.value(x + step * (towards - x)) - worth.value(x - step * (towards - x))) / (2 * step)
    assert slope == pytest.approx(float((worth.gradient(x) * (towards - x)).sum()), rel=1e-5)
    for i in range(3):
        moved = x.copy()
        moved[i] = towards[i]
        rise = worth.contribution(list(x), i, towards[i]) - worth.contribution(list(x), i, x[i])
        assert worth.value(moved) - worth.value(x) == pytest.approx(rise)


def test_congestion_by_its_formula(rooms):
    worth, x = mw.Congestion(3.0).on(rooms, mw.States().on(rooms)), some(rooms, 2)
    meetings = 0.0
    for state in range(rooms.n_states):
        if rooms.start[state] <= 0 and not rooms.labels["goal"][state]:
            time = x[:, rooms.choice_state == state].sum(axis=1)
            meetings += time[0] * time[1] + time[0] * time[2] + time[1] * time[2]
    assert meetings > 0.001
    assert worth.value(x) == pytest.approx(((x @ rooms.reward).sum() - 3.0 * meetings) / 3)


def test_congestion_is_exactly_linear_in_one_plan(rooms):
    worth, x, other = mw.Congestion(3.0).on(rooms, mw.States().on(rooms)), some(rooms, 3), some(rooms, 4)[0]
    values = []
    for share in (0.0, 0.3, 1.0):
        x_mixed = x.copy()
        x_mixed[1] = (1 - share) * x[1] + share * other
        values.append(worth.value(x_mixed))
    assert values[1] == pytest.approx(0.7 * values[0] + 0.3 * values[2], rel=1e-12)
    assert values[2] - values[0] == pytest.approx(float(worth.costs(list(x), 1, 0.0) @ (other - x[1])))


def test_a_set_by_congestion_is_an_equilibrium(rooms):
    """No agent gains by another plan while the others stay."""
    plans = mw.plan(rooms, 3, objective=mw.Congestion(30.0))
    worth, polytope = mw.Congestion(30.0).on(rooms, mw.States().on(rooms)), mw.Polytope(rooms)
    for i in range(3):
        costs = worth.costs(list(plans.occupancies), i, 0.0)
        assert polytope.best(costs).value <= costs @ plans.occupancies[i] + 1e-7
    assert mw.team(plans, closed=()).meetings < mw.team(plans, [0, 0, 0], closed=()).meetings


def test_coverage_by_its_formula(rooms):
    worth, x = mw.Coverage(2.0).on(rooms, mw.States().on(rooms)), some(rooms, 5)
    time = np.array([x[:, rooms.choice_state == state].sum() for state in range(rooms.n_states)])
    seen = np.mean(1 - np.exp(-worth.steps * time))
    assert worth.value(x) == pytest.approx((x @ rooms.reward).mean() + 2.0 * seen)


def test_plans_for_coverage_see_more(rooms):
    seen = [
        mw.team(mw.plan(rooms, 3, slack=0.3, objective=one, behaviour=mw.States()), closed=(), deadline=40).seen
        for one in (mw.Coverage(), mw.MeanDivergence(0.1))
    ]
    assert seen[0] > seen[1]
