"""What is certain and what is free, against linear programs with the floor as a row and against all policies."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog

import manyways as mw
from manyways.polytope.feasible_set import _equalities
from problems import random_accessible_mdp
from shared import WORLDS


def solved(mdp: mw.MDP, weights: np.ndarray, level: float) -> tuple[float, float]:
    """The least and the most <weights, x> with reward >= level, by HiGHS."""
    equalities, right = _equalities(mdp, 1.0)
    scale = float(np.abs(mdp.reward).max())
    given = {"A_ub": -mdp.reward[None] / scale, "b_ub": [-level / scale], "A_eq": equalities, "b_eq": right}
    options = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    low, high = (linprog(sign * weights, **given, options=options).fun * sign for sign in (1, -1))
    return low, high


@pytest.mark.parametrize("path", WORLDS, ids=lambda path: path.stem)
def test_the_ranges_of_the_twenty_worlds(path):
    mdp = mw.read(path)
    names = sorted(mdp.labels)[:2]
    found = mw.freedom(mdp, slack=0.05, by={name: mdp.labels[name].astype(float) for name in names})
    assert found.limits.floor == pytest.approx(0.95 * found.best)
    for each in found.ranges:
        low, high = solved(mdp, found.weights[each.name], found.limits.floor)
        assert (each.least, each.most) == pytest.approx((low, high), abs=1e-7)


@pytest.mark.parametrize("seed", range(20))
def test_no_policy_leaves_the_ranges(seed):
    mdp = random_accessible_mdp(np.random.default_rng(seed), 4, 2)
    weights = np.random.default_rng(seed).random(mdp.n_choices)
    found = mw.freedom(mdp, floor=mw.Polytope(mdp).optimum.value - 0.3, by={"something": weights})
    (only,) = found.ranges
    reached = []
    for choices in product(*(range(a, b) for a, b in zip(mdp.first_choice[:-1], mdp.first_choice[1:], strict=True))):
        policy = np.zeros(mdp.n_choices)
        policy[list(choices)] = 1.0
        x = mw.Average().occupancy(mdp, policy)
        if x @ mdp.reward >= found.limits.floor:
            reached.append(float(weights @ x))
    assert reached
    assert only.least - 1e-9 <= min(reached)
    assert max(reached) <= only.most + 1e-9
    assert (only.least, only.most) == pytest.approx(solved(mdp, weights, found.limits.floor), abs=1e-7)


def test_steps_per_trip_against_the_plans_of_a_set():
    found = mw.freedom("four-rooms:0", slack=0.1)
    plans = mw.plan("four-rooms:0", 4, float("inf"), slack=0.1)
    ends = plans.occupancies[:, plans.mdp.labels["goal"][plans.mdp.choice_state]].sum(axis=1)
    for each in found.ranges:
        steps = plans.occupancies @ found.weights[each.name] / ends
        assert each.steps[0] - 1e-6 <= steps.min()
        assert steps.max() <= each.steps[1] + 1e-6
    goal = next(each for each in found.ranges if each.name == "goal")
    assert goal.steps == pytest.approx((1.0, 1.0))
    assert goal.sentence == "Every plan within the limits spends at least 1 step per trip in 'goal'."


def test_what_nobody_must_and_nobody_can():
    rows = [("a", "left", "b", 1.0, 1.0), ("a", "right", "c", 1.0, 1.0), ("a", "never", "d", 1.0, -50.0)]
    rows += [(state, "back", "a", 1.0, 1.0) for state in "bcd"]
    mdp = mw.MDP.from_transitions(rows, labels={"left": ["b"], "bad": ["d"]})
    found = {each.name: each for each in mw.freedom(mdp, slack=0.1).ranges}
    assert (found["left"].least, found["left"].most) == pytest.approx((0.0, 0.5))
    assert not np.signbit(found["left"].least), "a table would show -0.0 %"
    assert found["left"].sentence == "Between none and 50 % of the time in 'left': yours to choose."
    assert found["bad"].most < 0.01
    by_action = {each.name: each for each in mw.freedom(mdp, slack=0.1, by="actions").ranges}
    assert by_action["back"].sentence == "Every plan within the limits spends 50 % of the time on 'back'."


def test_questions_that_mean_nothing():
    bare = mw.MDP.from_transitions([("a", "go", "a", 1.0, 1.0)])
    with pytest.raises(mw.SettingError, match="has no labels; ask by labels, regions or actions"):
        mw.freedom(bare, by="labels")
    with pytest.raises(mw.SettingError, match="expected labels, regions or actions, found 'rooms'"):
        mw.freedom(bare, by="rooms")
    with pytest.raises(
        mw.SettingError, match=r"the weights 'x' must be a number for each of the 1 states or 1 choices"
    ):
        mw.freedom(bare, by={"x": [1.0, 2.0]})
    assert [each.name for each in mw.freedom(bare).ranges] == ["go"]


def test_labels_of_no_state_are_no_places():
    """FrozenLake ends at the goal within a step: no state has the label, and nobody can spend time there."""
    lake = mw.read("gym:FrozenLake-v1")
    assert not lake.labels["goal"].any()
    names = [found.name for found in mw.freedom(lake, slack=0.2).ranges]
    assert "goal" not in names
    assert names
