"""The default reward of the goal makes it worthwhile to go there, on maps of any size."""

from __future__ import annotations

import numpy as np
import pytest

import manyways as mw


def field(size: int, **settings) -> mw.MDP:
    """An open field with a wall across its middle that leaves two ways around."""
    walls = np.zeros((size, size), bool)
    walls[size // 2, size // 4 : -size // 4] = True
    return mw.grid_world(walls, (1, size // 2), (size - 2, size // 2), directions=8, enterable_walls=False, **settings)


def goal_reward(mdp: mw.MDP) -> float:
    return float(mdp.reward[mdp.labels["goal"][mdp.choice_state]][0])


def test_small_maps_pay_what_the_paper_pays():
    for mdp in (mw.grid_world(np.zeros((4, 4), bool), (0, 0), (3, 3)), field(30)):
        assert goal_reward(mdp) == 200.0
    assert mw.nine_rooms(3).digest == mw.nine_rooms(3, goal_reward=200.0).digest


def test_larger_maps_pay_five_times_the_costs_of_the_shortest_way():
    corridor = np.zeros((1, 101), bool)
    assert goal_reward(mw.grid_world(corridor, (0, 0), (0, 100))) == pytest.approx(5 * 100 * 1.2)
    assert goal_reward(mw.grid_world(corridor, (0, 0), (0, 100), step_reward=-2.0)) == pytest.approx(5 * 100 * 2)
    assert goal_reward(mw.grid_world(corridor, (0, 0), (0, 100), step_reward=1.0)) == 200.0
    # Diagonal moves shorten the way; walls that can be entered are no shortcut.
    square = np.zeros((60, 60), bool)
    assert goal_reward(mw.grid_world(square, (0, 0), (59, 59), directions=8)) == pytest.approx(5 * 59 * 1.2)
    assert goal_reward(mw.grid_world(square, (0, 0), (59, 59))) == pytest.approx(5 * 118 * 1.2)
    square[30, :-1] = True
    assert goal_reward(mw.grid_world(square, (0, 0), (59, 0))) == pytest.approx(5 * (59 + 118) * 1.2)


def test_explicit_rewards_stay_as_they_are():
    corridor = np.zeros((1, 301), bool)
    assert goal_reward(mw.grid_world(corridor, (0, 0), (0, 300), goal_reward=200.0)) == 200.0
    assert goal_reward(mw.grid_world(corridor, (0, 0), (0, 300), goal_reward=-3.0)) == -3.0


@pytest.mark.parametrize("size", [20, 100])
def test_ten_percent_less_is_a_way_about_ten_percent_longer(size):
    """The longest mean way within a slack of 10 %, from the closed form of the reward per step: L steps of -1.2 and the
    goal's G give (G - 1.2 L) / (L + 1)."""
    mdp = field(size)
    plans = mw.plan(mdp, k=2, slack=0.1, behaviour=mw.Near(size / 10), time_limit_s=60)
    at_goal = plans.occupancies @ mdp.labels["goal"][mdp.choice_state]
    steps = 1 / at_goal - 1
    best = (goal_reward(mdp) + 1.2) / (plans.optimal_reward + 1.2) - 1
    longest = (goal_reward(mdp) + 1.2) / (0.9 * plans.optimal_reward + 1.2) - 1
    assert 1.085 < longest / best < 1.115
    assert (steps <= longest * (1 + 1e-9)).all()
    assert plans.diversity > 0.1
