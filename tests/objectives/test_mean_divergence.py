"""What is maximised: values against other people's formulas, gradients against differences."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyways import MDP, Average, Labels, SettingError, StateActions, States
from manyways.polytope import Polytope
from problems import KNOWN, jsd, random_accessible_mdp, random_policy
from shared import paper_objective

LN2 = np.log(2)
seeds = st.integers(0, 2**32 - 1)
behaviours = pytest.mark.parametrize("behaviour", [StateActions(), States(), Labels(), Labels(["wet"])], ids=str)


def labelled(seed: int) -> MDP:
    """A random model of four states with two labels."""
    rng = np.random.default_rng(seed)
    mdp = random_accessible_mdp(rng, kind="dense")
    while mdp.n_states < 4:
        mdp = random_accessible_mdp(rng, kind="dense")
    return MDP.from_csr(
        mdp.transitions,
        mdp.reward,
        mdp.first_choice,
        labels={"wet": [True, False, True, False], "dark": [False, False, True, True]},
        name="labelled",
    )


def random_occupancies(rng: np.random.Generator, mdp: MDP, k: int) -> np.ndarray:
    """(k, N) inside the polytope."""
    return np.stack([Average().occupancy(mdp, random_policy(rng, mdp)) for _ in range(k)])


# ---- value ------------------------------------------------------------------------------------


@behaviours
def test_the_value_is_eq_main(behaviour):
    mdp = labelled(0)
    x = random_occupancies(np.random.default_rng(0), mdp, 3)
    image = np.stack([grouped(behaviour, mdp, row) for row in x], axis=1)
    pairs = [jsd(image[:, i], image[:, j]) for i in range(3) for j in range(i)]
    expected = (x @ mdp.reward).sum() / 3 + 2 * 8.0 / (3 * 2) * sum(pairs)
    assert paper_objective(mdp, 8.0, behaviour).value(x) == pytest.approx(expected, abs=1e-12)


def grouped(behaviour, mdp, x):
    """The occupancy added up by groups, one choice after the other."""
    group = behaviour.on(mdp).groups
    total = np.zeros(group.max() + 1)
    for choice, share in enumerate(x):
        total[group[choice]] += share
    return total


@given(seeds)
def test_coarser_behaviours_differ_less(seed):
    """JSD obeys the data-processing inequality."""
    mdp = labelled(0)
    x = random_occupancies(np.random.default_rng(seed), mdp, 3)
    fine, middle, coarse = (
        paper_objective(mdp, 1.0, behaviour).distances(x) for behaviour in (StateActions(), States(), Labels(["wet"]))
    )
    assert (fine >= middle - 1e-14).all()
    assert (middle >= coarse - 1e-14).all()


@given(seeds, st.permutations(range(4)))
def test_the_order_of_the_plans_does_not_count(seed, order):
    mdp = labelled(1)
    x = random_occupancies(np.random.default_rng(seed), mdp, 4)
    objective = paper_objective(mdp, 3.0)
    assert objective.value(x[order]) == pytest.approx(objective.value(x), abs=1e-13)
    np.testing.assert_allclose(objective.gradient(x[order]), objective.gradient(x)[order], atol=1e-12)


def test_one_plan_is_judged_by_its_reward_alone():
    mdp = labelled(0)
    x = random_occupancies(np.random.default_rng(2), mdp, 1)
    objective = paper_objective(mdp, 100.0)
    assert objective.value(x) == pytest.approx(float(x[0] @ mdp.reward))
    np.testing.assert_array_equal(objective.gradient(x)[0], mdp.reward)
    np.testing.assert_array_equal(objective.costs(list(x), 0, 1e-3), mdp.reward)


def test_equal_plans_are_worth_their_reward():
    mdp = labelled(0)
    x = np.repeat(random_occupancies(np.random.default_rng(3), mdp, 1), 3, axis=0)
    assert paper_objective(mdp, 100.0).value(x) == pytest.approx(float(x[0] @ mdp.reward), abs=1e-12)


# ---- gradient ---------------------------------------------------------------------------------


def difference_quotient(f, x: np.ndarray, step: float = 1e-6) -> np.ndarray:
    """Central differences of f at x, entry by entry."""
    slope = np.zeros_like(x)
    for place in np.ndindex(x.shape):
        nudge = np.zeros_like(x)
        nudge[place] = step
        slope[place] = (f(x + nudge) - f(x - nudge)) / (2 * step)
    return slope


@behaviours
@pytest.mark.parametrize("k", [2, 3, 4])
def test_the_gradient_agrees_with_differences(behaviour, k):
    mdp = labelled(2)
    objective = paper_objective(mdp, 5.0, behaviour)
    x = random_occupancies(np.random.default_rng(k), mdp, k)
    slope = difference_quotient(objective.value, x)
    np.testing.assert_allclose(objective.gradient(x), slope, atol=1e-6)


def test_the_differences_would_notice_a_wrong_gradient():
    mdp = labelled(2)
    objective = paper_objective(mdp, 5.0)
    x = random_occupancies(np.random.default_rng(2), mdp, 2)
    slope = difference_quotient(objective.value, x)
    with pytest.raises(AssertionError):
        np.testing.assert_allclose(objective.gradient(x) + 1e-5, slope, atol=1e-6)


@given(seeds, st.integers(2, 4))
def test_convexity_every_gradient_bounds_the_objective_from_below(seed, k):
    """f(y) >= f(x) + <gradient, y - x>, also between points that share no choice."""
    rng = np.random.default_rng(seed)
    mdp = random_accessible_mdp(rng)
    polytope = Polytope(mdp)
    objective = paper_objective(mdp, 8.0)

    def point() -> np.ndarray:
        rows = [polytope.sample(rng) if rng.random() < 0.4 else polytope.best(rng.normal(size=mdp.n_choices)).occupancy]
        while len(rows) < k:
            rows.append(polytope.best(rng.normal(size=mdp.n_choices)).occupancy)
        return np.stack(rows)

    x, y = point(), point()
    promised = objective.value(x) + float((objective.gradient(x) * (y - x)).sum())
    assert objective.value(y) >= promised - 1e-9


def test_convexity_between_two_pairs_of_opposite_plans():
    mdp = KNOWN["bandit"].mdp
    objective = paper_objective(mdp, 8.0)
    x, y = np.array([[1.0, 0, 0], [0, 1.0, 0]]), np.array([[0, 1.0, 0], [1.0, 0, 0]])
    assert objective.value(x) == pytest.approx(objective.value(y))
    assert objective.value(y) >= objective.value(x) + (objective.gradient(x) * (y - x)).sum()


# ---- refusals ---------------------------------------------------------------------------------


@pytest.mark.parametrize("tradeoff", [-0.1, float("nan"), -float("inf"), "8"])
def test_bad_tradeoffs_are_refused(tradeoff):
    with pytest.raises(SettingError, match="tradeoff must be a finite number of at least 0"):
        paper_objective(KNOWN["single"].mdp, tradeoff)


# ---- one plan among others --------------------------------------------------------------------


def share_of_divergence(p: float, q: float) -> float:
    """What one place adds to the divergence of two rows that have p and q there."""
    return jsd(np.array([p]), np.array([q]))


@behaviours
@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize("least", [1e-6, 1e-2, 1.0])
def test_the_secant_costs_by_their_definition(behaviour, k, least):
    """All the time that the plan has in a choice's state (its group, if plans are compared by groups), spent on it."""
    mdp, tradeoff = labelled(3), 5.0
    objective = paper_objective(mdp, tradeoff, behaviour)
    x = random_occupancies(np.random.default_rng(k), mdp, k)
    x[0] = Polytope(mdp).best(mdp.reward).occupancy  # one with zeros
    group = behaviour.on(mdp).groups
    for i in range(k):
        cost = objective.costs(list(x), i, least)
        for choice in range(mdp.n_choices):
            alike = mdp.choice_state == mdp.choice_state[choice]
            together = alike if isinstance(behaviour, StateActions) else group == group[choice]
            m = max(x[i][together].sum(), least)
            worth = 0.0
            for j in set(range(k)) - {i}:
                q = x[j][group == group[choice]].sum()
                worth += (share_of_divergence(m, q) - share_of_divergence(0.0, q)) / m
            expected = mdp.reward[choice] / k + tradeoff * 2 / (k * (k - 1)) * worth
            assert cost[choice] == pytest.approx(expected, abs=1e-9)


def test_the_secant_costs_of_one_plan_are_the_rewards():
    mdp = labelled(0)
    x = random_occupancies(np.random.default_rng(0), mdp, 1)
    np.testing.assert_array_equal(paper_objective(mdp, 5.0).costs(list(x), 0, 1e-3), mdp.reward)


def test_an_exchange_that_keeps_the_states_shares_gains_what_the_secant_costs_say():
    """All of one state's time moved from an action that nobody else takes to another one."""
    mdp = KNOWN["bandit"].mdp
    objective = paper_objective(mdp, 3.0)
    x = np.array([[1.0, 0.0, 0.0], [0.0, 0.4, 0.6]])
    moved = x.copy()
    for choice in range(3):
        moved[0] = np.eye(3)[choice]
        promised = objective.costs(list(x), 0, 1e-6) @ (moved[0] - x[0])
        assert objective.value(moved) - objective.value(x) == pytest.approx(promised, abs=1e-12)


@behaviours
@given(seeds, st.integers(1, 4))
def test_what_a_plan_contributes_changes_as_the_value_does(behaviour, seed, k):
    mdp = labelled(1)
    rng = np.random.default_rng(seed)
    objective = paper_objective(mdp, 5.0, behaviour)
    x, rows = random_occupancies(rng, mdp, k), random_occupancies(rng, mdp, k)
    rows[0] = Polytope(mdp).best(rng.normal(size=mdp.n_choices)).occupancy
    for i in range(k):
        moved = x.copy()
        moved[i] = rows[i]
        change = objective.contribution(list(x), i, rows[i]) - objective.contribution(list(x), i, x[i])
        assert objective.value(moved) - objective.value(x) == pytest.approx(change, abs=1e-12)


def test_the_parts_of_all_plans_count_each_distance_twice():
    mdp = labelled(1)
    x = random_occupancies(np.random.default_rng(5), mdp, 3)
    objective = paper_objective(mdp, 5.0)
    parts = sum(objective.contribution(list(x), i, x[i]) for i in range(3))
    assert parts == pytest.approx(2 * objective.value(x) - (x @ mdp.reward).mean())
