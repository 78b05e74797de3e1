"""Policies and their occupancies, either way."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyways import MDP, SettingError
from manyways.model.occupancy import (
    chain,
    check_policy,
    choices_towards,
    deterministic,
    discounted_occupancy,
    flow_residual,
    long_run_occupancy,
    policy_of,
    state_occupancy,
)
from problems import (
    KINDS,
    KNOWN,
    choices_of,
    gamblers_ruin,
    random_accessible_mdp,
    random_mdp,
    random_policy,
    reaches,
    two_state_chain,
    two_traps,
)

seeds = st.integers(0, 2**32 - 1)


def dense_chain(mdp: MDP, policy: np.ndarray) -> np.ndarray:
    """(S, S) the chain of a policy, row by row."""
    rows = mdp.transitions.toarray()
    return np.array([policy[list(choices_of(mdp, s))] @ rows[list(choices_of(mdp, s))] for s in range(mdp.n_states)])


def power_average(mdp: MDP, policy: np.ndarray, doublings: int = 45) -> np.ndarray:
    """(N,) the mean of the first 2^doublings distributions: mean_2T = (mean_T + mean_T P^T) / 2."""
    power = dense_chain(mdp, policy)
    mean = mdp.start
    for _ in range(doublings):
        mean = (mean + mean @ power) / 2
        power = power @ power
        power /= power.sum(axis=1, keepdims=True)
    return policy * mean[mdp.choice_state]


def truncated_series(mdp: MDP, policy: np.ndarray, discount: float) -> np.ndarray:
    """(N,) the discounted sum, until nothing is left of it."""
    p = dense_chain(mdp, policy)
    now, total, weight = mdp.start, np.zeros(mdp.n_states), 1 - discount
    while weight > 1e-16:
        total = total + weight * now
        now, weight = now @ p, weight * discount
    return policy * total[mdp.choice_state]


# ---- from a policy to its occupancy -----------------------------------------------------------


@pytest.mark.parametrize("name", KNOWN)
def test_closed_forms(name):
    problem = KNOWN[name]
    occupancy = long_run_occupancy(problem.mdp, problem.policy)
    np.testing.assert_allclose(occupancy, problem.long_run, atol=1e-14)
    assert flow_residual(problem.mdp, occupancy) <= 1e-12


@pytest.mark.parametrize("capital", [1, 2, 3, 4])
@pytest.mark.parametrize("win", [0.2, 0.4, 0.7])
def test_a_multichain_policy_ends_in_each_class_with_the_right_chance(capital, win):
    problem = gamblers_ruin(capital, 5, win)
    np.testing.assert_allclose(long_run_occupancy(problem.mdp, problem.policy), problem.long_run, atol=1e-14)


@pytest.mark.parametrize("kind", KINDS)
def test_the_long_run_is_the_limit_of_the_mean(kind):
    """Also where the chain is periodic, has several recurrent classes, or transient states."""
    rng = np.random.default_rng(KINDS.index(kind))
    for _ in range(40):
        mdp = random_mdp(rng, kind=kind)
        policy = random_policy(rng, mdp)
        if rng.random() < 0.5:  # a deterministic one
            policy = deterministic(mdp, np.array([rng.choice(choices_of(mdp, s)) for s in range(mdp.n_states)]))
        occupancy = long_run_occupancy(mdp, policy)
        np.testing.assert_allclose(occupancy, power_average(mdp, policy), atol=1e-9)
        assert flow_residual(mdp, occupancy) <= 1e-9


def test_rarely_visited_states_keep_their_digits():
    there = 1e-12
    problem = two_state_chain(there, 0.5)
    np.testing.assert_allclose(long_run_occupancy(problem.mdp, problem.policy), problem.long_run, rtol=1e-9)


def test_a_walk_against_the_wind_keeps_its_digits():
    """A birth-death chain: pi(i) is proportional to (up / down)^i, here over 25 orders of magnitude."""
    length, up = 30, 0.1
    rows = []
    for i in range(length):
        rows += [(i, "x", min(i + 1, length - 1), up, 0.0), (i, "x", max(i - 1, 0), 1 - up, 0.0)]
    for start in (0, length - 1):
        mdp = MDP.from_transitions(rows, start=start)
        expected = (up / (1 - up)) ** np.arange(length)
        np.testing.assert_allclose(long_run_occupancy(mdp, np.ones(length)), expected / expected.sum(), rtol=1e-9)


@pytest.mark.parametrize("discount", [0.3, 0.9, 0.99])
@pytest.mark.parametrize("kind", KINDS)
def test_the_discounted_occupancy_is_its_series(kind, discount):
    rng = np.random.default_rng(50 + KINDS.index(kind))
    for _ in range(10):
        mdp = random_mdp(rng, kind=kind)
        policy = random_policy(rng, mdp)
        occupancy = discounted_occupancy(mdp, policy, discount)
        np.testing.assert_allclose(occupancy, truncated_series(mdp, policy, discount), atol=1e-12)
        assert flow_residual(mdp, occupancy, discount) <= 1e-9


def test_the_discounted_occupancy_tends_to_the_long_run_one():
    problem = gamblers_ruin()
    almost = discounted_occupancy(problem.mdp, problem.policy, 1 - 1e-9)
    np.testing.assert_allclose(almost, problem.long_run, atol=1e-7)


def test_the_long_run_does_not_need_weak_accessibility():
    mdp = two_traps()
    occupancy = long_run_occupancy(mdp, np.array([0.25, 0.75, 1.0, 1.0]))
    np.testing.assert_allclose(occupancy, [0, 0, 0.25, 0.75])
    assert float(occupancy @ mdp.reward) == pytest.approx(-0.5)


def test_the_start_distribution_counts():
    rows = [("a", "stay", "a", 1, 0), ("b", "stay", "b", 1, 0)]
    mdp = MDP.from_transitions(rows, start={"a": 0.125, "b": 0.875})
    np.testing.assert_allclose(long_run_occupancy(mdp, np.ones(2)), [0.125, 0.875])


def test_occupancies_add_up_by_state():
    mdp = KNOWN["cycle choice"].mdp
    stacked = np.array([[0.1, 0.2, 0.3, 0.2, 0.2], [0.5, 0.0, 0.5, 0.0, 0.0]])
    np.testing.assert_allclose(state_occupancy(mdp, stacked), [[0.3, 0.3, 0.2, 0.2], [0.5, 0.5, 0.0, 0.0]])


def test_the_chain_mixes_the_choices():
    mdp = KNOWN["cycle choice"].mdp
    policy = np.array([0.25, 0.75, 1.0, 1.0, 1.0])
    np.testing.assert_allclose(chain(mdp, policy).toarray(), dense_chain(mdp, policy))


# ---- and back ---------------------------------------------------------------------------------


@given(seeds)
def test_round_trip_of_a_policy_that_tries_everything(seed):
    rng = np.random.default_rng(seed)
    mdp = random_accessible_mdp(rng)
    policy = random_policy(rng, mdp)
    occupancy = long_run_occupancy(mdp, policy)
    again = policy_of(mdp, occupancy)
    visited = state_occupancy(mdp, occupancy)[mdp.choice_state] > 1e-9
    np.testing.assert_allclose(again[visited], policy[visited], atol=1e-6)
    np.testing.assert_allclose(long_run_occupancy(mdp, again), occupancy, atol=1e-9)


@given(seeds, st.floats(0.05, 0.99))
def test_round_trip_of_a_discounted_policy(seed, discount):
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng)
    occupancy = discounted_occupancy(mdp, random_policy(rng, mdp), discount)
    again = policy_of(mdp, occupancy)
    np.testing.assert_allclose(discounted_occupancy(mdp, again, discount), occupancy, atol=1e-9)


@given(seeds)
def test_a_policy_is_never_stuck_where_its_occupancy_never_goes(seed):
    """From every state, one reaches the visited ones with probability one."""
    rng = np.random.default_rng(seed)
    mdp = random_accessible_mdp(rng)
    occupancy = long_run_occupancy(
        mdp, deterministic(mdp, np.array([rng.choice(choices_of(mdp, s)) for s in range(mdp.n_states)]))
    )
    policy = check_policy(mdp, policy_of(mdp, occupancy))
    visited = state_occupancy(mdp, occupancy) > 1e-9
    path = reaches(dense_chain(mdp, policy) > 0)
    assert path[:, visited].any(axis=1).all()  # from everywhere, so also after any detour
    np.testing.assert_array_equal(path[np.ix_(visited, ~visited)], False)


def test_unvisited_states_take_the_choice_most_likely_to_get_nearer():
    mdp = MDP.from_transitions(
        [
            ("home", "stay", "home", 1.0, 0.0),
            ("home", "out", "far", 1.0, 0.0),
            ("far", "stay", "far", 1.0, 0.0),
            ("far", "crawl", "home", 0.1, 0.0),
            ("far", "crawl", "far", 0.9, 0.0),
            ("far", "run", "home", 0.9, 0.0),
            ("far", "run", "far", 0.1, 0.0),
        ]
    )
    policy = policy_of(mdp, np.array([1.0, 0, 0, 0, 0]))
    np.testing.assert_array_equal(policy, [1, 0, 0, 0, 1])
    assert [mdp.action_name(x) for x in choices_towards(mdp, np.array([True, False]))[1:]] == ["run"]


def test_a_state_that_cannot_reach_the_visited_ones_takes_its_first_choice():
    mdp = two_traps()
    np.testing.assert_array_equal(policy_of(mdp, np.array([0.5, 0.0, 0.5, 0.0])), [1, 0, 1, 1])


def test_rounding_noise_below_zero_does_not_reach_the_policy():
    mdp = KNOWN["losses"].mdp
    policy = check_policy(mdp, policy_of(mdp, np.array([-1e-17, 0.5, -1e-17, 0.5])))
    np.testing.assert_array_equal(policy, [0, 1, 0, 1])


# ---- how far off a point is -------------------------------------------------------------------


def test_the_residual_sees_every_kind_of_violation():
    mdp = KNOWN["losses"].mdp
    assert flow_residual(mdp, np.array([0.0, 0.5, 0.0, 0.5])) == 0.0
    assert flow_residual(mdp, np.array([0.0, 0.6, 0.0, 0.4])) == pytest.approx(0.2)  # flow
    assert flow_residual(mdp, np.array([0.0, 0.4, 0.0, 0.4])) == pytest.approx(0.2)  # total
    assert flow_residual(mdp, np.array([-0.1, 0.5, 0.1, 0.5])) == pytest.approx(0.1)  # sign
    discounted = np.array([0.0, 2 / 3, 0.0, 1 / 3])  # discount 1/2: home, away, home, ...
    assert flow_residual(mdp, discounted, 0.5) == pytest.approx(0.0, abs=1e-15)
    assert flow_residual(mdp, np.array([0.0, 0.5, 0.0, 0.5]), 0.5) == pytest.approx(0.25)


# ---- what is no policy ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ([1.0, 0.0, 1.0], r"each of the 4 choices, found shape \(3,\)"),
        ([[1.0, 0.0, 1.0, 0.0]], r"each of the 4 choices, found shape \(1, 4\)"),
        ([1.0, 0.0, 0.5, 0.25], "state 'away' must be >= 0 and sum to 1, found 0.75"),
        ([0.5, 0.6, 1.0, 0.0], "state 'home' must be >= 0 and sum to 1, found 1.1"),
        ([1.0, 0.0, 1.5, -0.5], "state 'away' must be >= 0"),
        ([float("nan"), 1.0, 1.0, 0.0], "state 'home' must be >= 0 and sum to 1, found nan"),
    ],
)
@pytest.mark.parametrize("occupancy", [long_run_occupancy, lambda mdp, policy: discounted_occupancy(mdp, policy, 0.9)])
def test_what_is_no_policy_is_refused(occupancy, policy, message):
    with pytest.raises(SettingError, match=message):
        occupancy(KNOWN["losses"].mdp, policy)
