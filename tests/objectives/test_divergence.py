"""The Jensen-Shannon divergence in all its forms, against scipy, the definition, and each other."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon

from manyways.objectives.divergence import (
    divergence_by_place,
    divergence_from_one_place,
    divergences_from,
    gradient_of_sum,
    pairwise_divergences,
    secant_worths,
)
from problems import jsd

LN2 = np.log(2)
seeds = st.integers(0, 2**32 - 1)


def random_rows(seed: int, k: int, width: int = 6) -> np.ndarray:
    """(k, width) distributions, some of them with zeros."""
    rng = np.random.default_rng(seed)
    x = rng.dirichlet(np.ones(width), size=k) * (rng.random((k, width)) < 0.7)
    x[x.sum(axis=1) == 0, 0] = 1.0
    return x / x.sum(axis=1, keepdims=True)


# ---- values -----------------------------------------------------------------------------------


@given(seeds)
def test_distances_are_scipys_and_the_definitions(seed):
    x = random_rows(seed, 4)
    distances = pairwise_divergences(x)
    for i in range(4):
        for j in range(4):
            assert distances[i, j] == pytest.approx(jsd(x[i], x[j]), abs=1e-14)
            if i != j:  # scipy takes the root of what may be -1e-17 between equal rows
                assert distances[i, j] == pytest.approx(jensenshannon(x[i], x[j]) ** 2, abs=1e-14)


@given(seeds)
def test_distances_are_symmetric_and_between_zero_and_ln_2(seed):
    distances = pairwise_divergences(random_rows(seed, 5))
    np.testing.assert_array_equal(distances, distances.T)
    np.testing.assert_array_equal(np.diag(distances), 0.0)
    assert distances.min() >= 0
    assert distances.max() <= LN2


def test_equal_behaviours_are_at_zero_and_disjoint_ones_at_ln_2():
    p, q = np.array([0.3, 0.7, 0.0, 0.0]), np.array([0.0, 0.0, 0.9, 0.1])
    assert pairwise_divergences(np.stack([p, p]))[0, 1] == 0.0
    assert pairwise_divergences(np.stack([p, q]))[0, 1] == pytest.approx(LN2, abs=1e-15)


@given(seeds)
def test_the_parts_by_place_add_up_to_the_divergence(seed):
    p, q = random_rows(seed, 2)
    parts = divergence_by_place(p, q)
    assert parts.sum() == pytest.approx(jsd(p, q), abs=1e-14)
    for place in range(len(p)):
        assert parts[place] == pytest.approx(jsd(p[[place]], q[[place]]), abs=1e-14)


@given(seeds)
def test_all_time_in_one_place_has_a_closed_form(seed):
    q = random_rows(seed, 1)[0]
    for place, closed in enumerate(divergence_from_one_place(q)):
        assert closed == pytest.approx(jsd(np.eye(len(q))[place], q), abs=1e-14)


# ---- gradient ---------------------------------------------------------------------------------


def joint_gradient(x: np.ndarray, smoothing: float) -> np.ndarray:
    """Of the mean over all pairs."""
    k = len(x)
    return np.stack([gradient_of_sum(x, i, smoothing, np.ones(k - 1)) for i in range(k)]) / (k * (k - 1))


def test_the_gradient_of_the_paper():
    """d JSD / d p = 1/2 log(2p / (p + q))."""
    x = np.array([[0.1, 0.9], [0.6, 0.4]])
    np.testing.assert_allclose(joint_gradient(x, 1e-15), np.log(2 * x / x.sum(axis=0)) / 2, atol=1e-12)


def test_where_nobody_goes_the_joint_gradient_promises_nothing():
    x = np.array([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0]])
    np.testing.assert_array_equal(joint_gradient(x, 1e-12)[:, 2], 0.0)


def test_where_only_another_goes_the_gradient_falls_without_bound():
    x = np.array([[1.0, 0.0], [0.5, 0.5]])
    for d in (1e-4, 1e-8, 1e-12):
        assert joint_gradient(x, d)[0, 1] == pytest.approx(np.log(2 * d / 0.5) / 2, abs=1e-3)


@given(seeds, st.sampled_from([1e-12, 1e-6, 1e-3]))
def test_smoothing_raises_the_gradient_where_it_is_steep(seed, smoothing):
    """Where the plan goes less than the other one."""
    x = random_rows(seed, 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        true = np.log(2 * x / x.sum(axis=0)) / 2
    true[:, x.sum(axis=0) == 0] = -np.inf  # no gradient there, but a corner
    less = x <= x[::-1]
    assert (joint_gradient(x, smoothing) >= true - 1e-14)[less].all()


def test_a_weighted_gradient_is_the_weighted_sum():
    x, weights = random_rows(0, 3), np.array([0.5, 2.0])
    each = [gradient_of_sum(x[[0, j]], 0, 1e-6, np.ones(1)) for j in (1, 2)]
    np.testing.assert_allclose(gradient_of_sum(x, 0, 1e-6, weights), weights @ each, atol=1e-13)


# ---- one row among others ---------------------------------------------------------------------


@given(seeds)
def test_divergences_of_one_from_many_are_scipys(seed):
    x = random_rows(seed, 4)
    found = divergences_from(x[0], list(x[1:]))
    for j in range(1, 4):
        assert found[j - 1] == pytest.approx(jensenshannon(x[0], x[j]) ** 2 if (x[0] != x[j]).any() else 0.0, abs=1e-14)
    np.testing.assert_allclose(found, pairwise_divergences(x)[0, 1:], atol=1e-14)


def test_divergences_of_equal_and_of_disjoint_rows():
    p, q = np.array([0.3, 0.7, 0.0]), np.array([0.0, 0.0, 1.0])
    np.testing.assert_allclose(divergences_from(p, [p, q, p]), [0.0, LN2, 0.0], atol=1e-16)
    assert divergences_from(p, []).shape == (0,)


def share_of_divergence(p: float, q: float) -> float:
    """What one entry adds to the divergence of two rows that have p and q there."""
    return jsd(np.array([p]), np.array([q]))


@given(seeds)
def test_a_secant_is_the_gain_of_the_whole_per_unit(seed):
    rng = np.random.default_rng(seed)
    mass = rng.exponential(size=6)
    others, weights = random_rows(seed, 3) * rng.choice([1e-9, 1e-3, 1.0, 1e3], size=6), rng.random(3)
    for b in range(6):
        gains = [share_of_divergence(mass[b], q) - share_of_divergence(0.0, q) for q in others[:, b]]
        scale = max(others[:, b].max() / mass[b], 1.0)  # what the difference of two such numbers can lose
        found = secant_worths(mass, list(others), weights)[b]
        assert found == pytest.approx(float(weights @ gains) / mass[b], abs=1e-13 * scale)
