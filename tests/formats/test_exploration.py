"""Models from Python functions."""

from typing import Any, NamedTuple

import numpy as np
import pytest

import manyways as mw


def test_a_model_from_functions():
    mdp = mw.explore(
        (0, 0),
        lambda _: ["up", "right"],
        lambda s, a: [
            (0.8, ((s[0] + (a == "up")) % 3, (s[1] + (a == "right")) % 3), 1.0 if s == (2, 2) else 0.0),
            (0.1, s, -1.0),
            (0.1, s, -3.0),
        ],
        labels={"corner": lambda s: s == (2, 2)},
        name="torus",
    )
    assert (mdp.n_states, mdp.n_choices) == (9, 18)
    assert mdp.state_names[0] == "(0, 0)"
    assert mdp.labels["corner"].sum() == 1
    np.testing.assert_allclose(mdp.reward[mdp.choice_state == mdp.state_names.index("(0, 0)")], -0.4)
    assert mw.plan(mdp, 2).certificate.ok


def test_a_random_start():
    mdp = mw.explore({0: 0.25, 1: 0.75}, lambda _: ["stay"], lambda s, _: [(1.0, s, 0.0)])
    np.testing.assert_array_equal(mdp.start, [0.25, 0.75])


@pytest.mark.parametrize(
    ("actions", "outcomes", "message"),
    [
        (lambda _: [], None, "state 'home' has no action"),
        (lambda _: ["go"], lambda *_: [(0.5, "away", 0.0)], r"action 'go' in state 'home' sum to 0\.5, expected 1"),
        (lambda _: ["go"], lambda *_: [(1.5, "away", 0.0), (-0.5, "home", 0.0)], "has probability 1.5"),
        (lambda _: ["go"], lambda *_: [(1.0, "away", float("nan"))], "finite reward"),
        (lambda _: ["go"], lambda *_: [(1.0, ["away"], 0.0)], "hashable"),
        (lambda _: ["go"], lambda *_: [1.0], "expected \\(probability, next state, reward\\)"),
        (lambda _: ["go"], lambda s, _: [(1.0, s + "x", 0.0)], "more than 100 states"),
    ],
)
def test_errors_name_the_state(actions, outcomes, message):
    with pytest.raises(mw.ModelError, match=message):
        mw.explore("home", actions, outcomes, most_states=100)


def test_exploring_reports_its_progress():
    seen = []
    mw.explore(0, lambda _: [0], lambda s, _: [(1.0, (s + 1) % 2500, 0.0)], progress=lambda *now: seen.append(now))
    assert seen == [(1000, 1001), (2000, 2001)]


def test_names_of_states_and_the_order_of_actions():
    mdp = mw.explore(
        0,
        lambda s: ["b", "a"] if s else ["b"],
        lambda s, _: [(1.0, 1 - s, 0.0)],
        state_name=lambda s: f"at {s}",
        first_actions=["unused", "a"],
    )
    assert mdp.state_names == ("at 0", "at 1")
    assert mdp.action_names == ("unused", "a", "b")
    assert mdp.actions.tolist() == [2, 2, 1]


class Place(NamedTuple):
    row: int
    sunny: bool


def cyclic(states: list[Any]) -> mw.Policy:
    """A policy on a cycle of states whose actions are the numbers 2, 0, 1 and which takes the number of the state modulo 3."""
    following = dict(zip(states, [*states[1:], states[0]], strict=True))
    numbers = {s: i for i, s in enumerate(states)}
    mdp = mw.explore(states[0], lambda _: [2, 0, 1], lambda s, a: [(1.0, following[s], float(a == numbers[s] % 3))])
    return mw.plan(mdp, 1)[0].policy


@pytest.mark.parametrize(
    "states",
    [
        [7, 1, 6, 8, 0],
        [(0, 2), (1, 2), (0, 3)],
        ["a", "b", "c", "d"],
        [0.5, 2.0, -1.5],
        [False, True],
        [Place(1, True), Place(2, False), Place(0, True)],
    ],
)
def test_a_policy_acts_on_the_states_that_were_explored(states):
    policy = cyclic(states)
    assert [policy.act(state) for state in states] == [i % 3 for i in range(len(states))]
    assert [policy.act(str(state)) for state in states] == [i % 3 for i in range(len(states))]


def test_a_policy_acts_on_arrays_and_on_values_of_variables():
    policy = cyclic([(0, 2), (1, 2), (0, 3)])
    assert [policy.act(np.array(s)) for s in [(0, 2), (1, 2), (0, 3)]] == [0, 1, 2]
    assert policy.act((np.int64(1), np.int64(2))) == 1
    assert policy.act([0, 3]) == 2
    assert policy.act({"x1": 1, "x2": np.int64(2)}) == 1
    for unknown in ((5, 5), {"x1": 5, "x2": 5}, {"x1": np.zeros((2, 2))}, {}, None, 17, "none"):
        with pytest.raises(mw.SettingError, match=r"(?s)no state with the name or observation .* such as '\(0, 2\)'"):
            policy.act(unknown)
