"""The sets that the preference study compares."""

from __future__ import annotations

import numpy as np
import pytest

import manyways as mw
from manyways.model.occupancy import deterministic, flow_residual, long_run_occupancy
from manyways.polytope import Polytope
from manyways.studies.contestants import CONTESTANTS, SOLVES, UNLIMITED, _paper_tradeoff
from manyways.studies.persons import SLACK, world_of

SMALL = "rooms-9:0"
K = 3


@pytest.mark.parametrize("name", CONTESTANTS)
def test_a_set_has_k_plans_within_the_slack(name):
    world = world_of(SMALL)
    plans = CONTESTANTS[name](world, K, 0)
    assert plans.shape == (K, world.mdp.n_choices)
    for x in plans:
        assert flow_residual(world.mdp, x) < 1e-9
    least = (plans @ world.mdp.reward).min()
    if name not in UNLIMITED:
        assert least >= (1 - SLACK) * world.free.optimum.value - 1e-9
    again = CONTESTANTS[name](world_of(SMALL), K, 0)
    assert (again == plans).all(), "the same to the last bit"


@pytest.mark.parametrize(
    "name", ["random preferences", "spread preferences", "random plans", "novelty search", "MAP-Elites"]
)
def test_a_baseline_solves_no_more_linear_problems_than_allowed(name, monkeypatch):
    world, best, solved = world_of(SMALL), Polytope.best, []
    assert world.within.optimum.value > 0 < world.unit, "both are known before the count begins"
    monkeypatch.setattr(Polytope, "best", lambda *given: solved.append(given[0]) or best(*given))
    CONTESTANTS[name](world, K, 0)
    assert K <= len(solved) <= SOLVES * K
    assert all(polytope is world.within for polytope in solved)


def test_the_representative_set_solves_about_as_many(monkeypatch):
    world, best, solved = world_of("nine-rooms:0"), Polytope.best, []
    monkeypatch.setattr(Polytope, "best", lambda *given: solved.append(1) or best(*given))
    CONTESTANTS["representative"](world, 6, 0)
    assert len(solved) == pytest.approx(SOLVES * 6, rel=0.25)


def test_k_best_against_all_single_changes():
    world = world_of(SMALL)
    mdp, best = world.mdp, world.free.optimum
    values = []
    for choice in range(mdp.n_choices):
        state = mdp.choice_state[choice]
        visited = best.occupancy[best.choices[state]] >= 1e-9
        if visited and best.choices[state] != choice:
            choices = best.choices.copy()
            choices[state] = choice
            values.append(float(long_run_occupancy(mdp, deterministic(mdp, choices)) @ mdp.reward))
    plans = CONTESTANTS["k-best"](world, K, 0)
    expected = [best.value, *sorted(values, reverse=True)[: K - 1]]
    assert plans @ mdp.reward == pytest.approx(expected)


def test_farthest_first_begins_with_the_best_plan():
    world = world_of(SMALL)
    plans = CONTESTANTS["farthest first"](world, K, 0)
    assert plans[0] @ world.mdp.reward == pytest.approx(world.free.optimum.value)
    spread = CONTESTANTS["spread preferences"](world, K, 0)
    assert spread[0] == pytest.approx(world.free.optimum.occupancy)
    assert len(np.unique(spread.round(9), axis=0)) == K


def test_the_papers_tradeoff_in_other_models():
    assert _paper_tradeoff(world_of("four-rooms:1")) == 8.0
    assert _paper_tradeoff(world_of("field:1")) == 8.0
    assert _paper_tradeoff(world_of(SMALL)) == pytest.approx(1.36 * mw.plan(SMALL, 1, 0.0).optimal_reward)
