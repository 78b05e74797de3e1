"""Simulated persons: their preferences, and what they could gain."""

from __future__ import annotations

import numpy as np
import pytest

import manyways as mw
from manyways.studies.persons import FAMILIES, SMOOTH, STRENGTHS, Persons, persons_of, world_of, world_on
from manyways.studies.study_worlds import study_world
from problems import random_accessible_mdp, vertices

MAP, GRAPH = study_world("field:3"), study_world("network:3")


def preference(name: str, mdp: mw.MDP, seed: int = 0) -> np.ndarray:
    w = FAMILIES[name](mdp, np.random.default_rng(seed))
    assert w is not None
    assert w.shape == (mdp.n_choices,)
    return w


def by_state(mdp: mw.MDP, w: np.ndarray) -> np.ndarray:
    """(S,): all choices of a state have the same worth."""
    assert (w == w[mdp.first_choice[:-1]][mdp.choice_state]).all()
    return w[mdp.first_choice[:-1]]


@pytest.mark.parametrize("mdp", [MAP, GRAPH], ids=["map", "graph"])
@pytest.mark.parametrize(("name", "steps"), [("smooth-4", 4), ("smooth-12", 12)])
def test_a_smooth_preference_is_noise_averaged_by_a_walk(mdp, name, steps):
    leads = np.zeros((mdp.n_states, mdp.n_states), bool)
    rows, columns = mdp.transitions.nonzero()
    for choice, there in zip(rows, columns, strict=True):
        leads[mdp.choice_state[choice], there] = True
    neighbours = []
    for here in range(mdp.n_states):
        both = {there for there in range(mdp.n_states) if leads[here, there] and leads[there, here]}
        if mdp.layout is not None:
            walls = mdp.layout.blocked.ravel()[mdp.layout.cells]
            both = {there for there in both if not walls[here] and not walls[there]}
        neighbours.append(sorted(both | {here}))
    worth = np.random.default_rng(0).standard_normal(mdp.n_states)
    for _ in range(steps):
        worth = np.array([worth[near].mean() for near in neighbours])
    worth = (worth - worth.mean()) / worth.std()
    assert by_state(mdp, preference(name, mdp)) == pytest.approx(worth, abs=1e-10)


def test_zones_are_rectangles_that_are_disliked():
    rng = np.random.default_rng(5)
    cells = np.zeros(MAP.layout.shape)
    for _ in range(rng.integers(1, 4)):
        high, wide = rng.integers(2, 9), rng.integers(2, 9)
        top, left = rng.integers(0, 19 - high + 1), rng.integers(0, 19 - wide + 1)
        for row in range(top, top + high):
            for column in range(left, left + wide):
                cells[row, column] = -2
    assert (by_state(MAP, preference("zones", MAP, 5)) == cells.ravel()[MAP.layout.cells]).all()


def test_labels_and_actions_have_worths():
    worths = dict(zip(GRAPH.labels, np.random.default_rng(1).standard_normal(3), strict=True))
    expected = [sum(worths[label] for label in worths if GRAPH.labels[label][s]) for s in range(GRAPH.n_states)]
    assert by_state(GRAPH, preference("labels", GRAPH, 1)) == pytest.approx(expected)
    w = preference("actions", MAP, 1)
    for action in range(len(MAP.action_names)):
        assert len(set(w[MAP.actions == action])) == 1
    assert len(set(w)) == len(MAP.action_names)


def test_spots_are_few_and_a_trend_is_linear():
    spots = by_state(MAP, preference("spots", MAP))
    assert np.count_nonzero(spots) == MAP.n_states // 20
    worth = by_state(MAP, preference("trend", MAP))
    row, column = np.divmod(MAP.layout.cells, MAP.layout.shape[1])
    plane = np.column_stack([row, column, np.ones(len(row))])
    assert plane @ np.linalg.lstsq(plane, worth)[0] == pytest.approx(worth)
    assert (worth.mean(), worth.std()) == pytest.approx((0, 1))


def test_close_to_walls_is_worse_or_better():
    worth, blocked = by_state(MAP, preference("walls", MAP)), MAP.layout.blocked
    walls = np.argwhere(blocked)
    away = np.array(
        [min(3.0, np.hypot(*(walls - np.divmod(cell, blocked.shape[1])).T).min()) for cell in MAP.layout.cells]
    )
    assert abs(np.corrcoef(away, worth)[0, 1]) == pytest.approx(1)


@pytest.mark.parametrize("name", ["zones", "trend", "walls"])
def test_families_that_need_a_map(name):
    assert FAMILIES[name](GRAPH, np.random.default_rng(0)) is None


def test_persons_do_not_depend_on_how_many_there_are():
    world = world_of("field:3")
    few, many = persons_of(world, 1, SMOOTH), persons_of(world, 3, list(FAMILIES))
    assert len(few.families) == 3 * len(STRENGTHS)
    assert len(many.families) == 9 * 3 * len(STRENGTHS)
    picked = [i for i in range(0, len(many.families), 3) if many.families[i] in SMOOTH]
    assert (many.rewards[picked] == few.rewards).all()
    assert [many.strengths[i] for i in picked] == few.strengths
    sizes = (few.rewards - world.mdp.reward) / world.unit
    assert np.array([by_state(world.mdp, w).std() for w in sizes]) == pytest.approx(np.tile(STRENGTHS, 3))


def test_the_unit_is_half_of_the_spread_of_rewards():
    world = world_of("four-rooms:3")
    plan = mw.plan(world.mdp, 1, 0.0)
    x = plan.occupancies[0]
    assert world.unit == pytest.approx(sum(x * abs(world.mdp.reward - plan.optimal_reward)) / 2)


@pytest.mark.parametrize("seed", range(8))
def test_possible_gains_against_all_deterministic_policies(seed):
    rng = np.random.default_rng(seed)
    mdp = random_accessible_mdp(rng, 4, 3)
    mdp = mdp.with_reward(mdp.reward + 2 * abs(mdp.reward).max())  # so that a share of the best value means something
    world = world_on("small", mdp)
    rewards = mdp.reward + rng.standard_normal((10, mdp.n_choices))
    people = Persons(world, ["any"] * 10, [1.0] * 10, rewards)
    corners = vertices(mdp, mw.Average())
    values = corners @ mdp.reward
    best = corners[values.argmax()]
    assert people.base() == pytest.approx(rewards @ best)
    assert people.best(world.free) == pytest.approx((rewards @ corners.T).max(axis=1))
    near = corners[values >= 0.9 * values.max() - 1e-9]
    within, exact = people.best(world.within), (rewards @ near.T).max(axis=1)
    assert (within <= exact + 1e-9).all()
    assert (within >= people.base() - 1e-9).all()
    assert np.isclose(within, exact).mean() >= 0.5, "the oracle for deterministic plans is not exact"
    assert people.worths(corners).max(axis=1) == pytest.approx(people.best(world.free))
