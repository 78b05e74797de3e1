"""First visits: against dense algebra, and on chains with known answers."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from given_plans import names, plan_set, value
from hypothesis import given, settings
from hypothesis import strategies as st

import manyways as mw
from manyways.describe import portraits, survey_of
from manyways.describe.first_visits import chance_of_reaching, chance_of_visiting, round_to, run_of
from manyways.model.occupancy import chain, deterministic
from problems import gamblers_ruin, random_mdp, random_policy


def absorbed(p: np.ndarray, start: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """(S,) where a dense chain is after ever so many steps if it stays at the ends."""
    p = np.where(ends[:, None], np.eye(len(p)), p)
    for _ in range(60):
        p = p @ p
        p /= p.sum(axis=1, keepdims=True)
    return start @ p


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_chances_and_steps_against_dense_algebra(seed):
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, 6)
    policy = random_policy(rng, mdp)
    if rng.random() < 0.5:
        policy = deterministic(
            mdp,
            np.array([rng.integers(a, b) for a, b in pairwise(mdp.first_choice)]),
        )
    target, before = rng.random((2, mdp.n_states)) < 0.3
    before &= ~target
    run = run_of(mdp, chain(mdp, policy), target)
    dense = chain(mdp, policy).toarray()
    here, there = target[run.states], before[run.states]

    ever = absorbed(dense, mdp.start, target)[target].sum()
    assert chance_of_reaching(run, here) == pytest.approx(ever, abs=1e-7)
    first = absorbed(dense, mdp.start, target | before)[before].sum()
    assert chance_of_reaching(run, there, here) == pytest.approx(first, abs=1e-7)

    either = absorbed(dense, mdp.start, target | before)[before].sum()
    assert chance_of_visiting(run, round_to(run, here), here, there) == pytest.approx(either, abs=1e-7)
    mixed = there | (here & (rng.random(len(here)) < 0.5))  # some goals belong to the place as well
    marked = np.zeros(mdp.n_states, bool)
    marked[run.states] = mixed
    either = absorbed(dense, mdp.start, target | before)[marked].sum()
    assert chance_of_visiting(run, round_to(run, here), here, mixed) == pytest.approx(either, abs=1e-7)

    found = round_to(run, here)
    assert (found is None) == (ever < 1 - 1e-7)
    if found is not None:
        outside = ~here
        block = dense[np.ix_(run.states[outside], run.states[outside])]
        visits = run.start[outside] @ np.linalg.inv(np.eye(outside.sum()) - block)
        assert found.steps == pytest.approx(visits.sum())
        assert chance_of_reaching(run, there, here, surely_ends=True) == pytest.approx(first, abs=1e-7)
        for state in range(len(run.states)):
            alone = np.zeros(mdp.n_states, bool)
            alone[run.states[state]] = ~target[run.states[state]]
            passing = absorbed(dense, mdp.start, target | alone)[alone].sum()
            assert found.chances(np.array([state]))[0] == pytest.approx(passing, abs=1e-7)


def test_the_gamblers_chance():
    known = gamblers_ruin()
    rich = next(s for s in range(known.mdp.n_states) if known.mdp.state_name(s) == "5")
    mdp = replace(known.mdp, labels={"goal": np.arange(known.mdp.n_states) == rich})
    plans = plan_set(mdp, [known.policy])
    assert value(plans, "chance of reaching goal") == pytest.approx(known.long_run[mdp.choice_state == rich].sum())
    assert "steps to goal" not in names(plans)  # it is not surely reached


@pytest.mark.parametrize("leave", [1.0, 0.25, 1e-6])
def test_waiting_for_the_goal_takes_one_over_the_chance(leave):
    rows = [("here", "wait", "there", leave, 0.0), ("there", "on", "here", 1.0, 1.0)]
    if leave < 1:
        rows.append(("here", "wait", "here", 1 - leave, 0.0))
    mdp = mw.MDP.from_transitions(rows, labels={"goal": ["there"]})
    plans = plan_set(mdp, [np.ones(2)])
    assert value(plans, "steps to goal") == pytest.approx(1 / leave)
    assert "chance of reaching goal" not in names(plans)


def test_a_chance_that_rounding_hides_is_left_out():
    """The way out is so unlikely that staying is 1 in floating point: the system is singular."""
    mdp = mw.MDP.from_transitions(
        [("here", "wait", "here", 1.0, 0.0), ("here", "wait", "there", 1e-18, 0.0), ("there", "on", "here", 1.0, 1.0)],
        labels={"goal": ["there"]},
    )
    plans = replace(mw.plan(mdp, 1), policies=np.ones((1, 2)), occupancies=np.array([[1.0, 0.0]]), rewards=np.zeros(1))
    assert survey_of(plans).facts[0].steps is None
    assert len(portraits(plans)[0].sentences) >= 2


def test_what_comes_after_the_goal_does_not_count():
    """The goal leads to where one stays forever: it is met all the same."""
    mdp = mw.MDP.from_transitions(
        [("a", "on", "goal", 1.0, 0.0), ("goal", "on", "end", 1.0, 1.0), ("end", "on", "end", 1.0, 0.0)],
        labels={"goal": ["goal"], "end": ["end"]},
    )
    plans = plan_set(mdp, [np.ones(3)])
    assert value(plans, "steps to goal") == 1.0
    assert value(plans, "chance of touching end") == 0.0
    assert value(plans, "time in end") == 1.0


def test_a_goal_at_the_start_takes_no_steps():
    mdp = mw.MDP.from_transitions([("a", "on", "b", 1.0, 0.0), ("b", "on", "a", 1.0, 1.0)], labels={"goal": ["a"]})
    assert value(plan_set(mdp, [np.ones(2)]), "steps to goal") == 0.0
