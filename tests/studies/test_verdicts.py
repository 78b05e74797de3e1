"""Verdicts: a rule on means over worlds holds, does not hold, or cannot be told."""

import numpy as np
import pytest

from manyways.studies.verdicts import interval, judged, judged_means, resampled_means, resampled_worlds


@pytest.mark.parametrize(
    ("worlds", "met", "expected"),
    [
        (20, 1000, True),
        (20, 980, True),
        (20, 960, None),
        (20, 500, None),
        (20, 20, False),
        (20, 0, False),
        (4, 1000, None),
    ],
)
def test_the_share_of_resamplings_that_meet_the_rule_decides(worlds, met, expected):
    assert judged(worlds, np.arange(1000) < met) is expected


def test_each_kind_of_world_keeps_its_number_of_worlds():
    weights = resampled_worlds(["a", "b", "a", "b", "b", "c"])
    assert weights.shape == (1000, 6)
    assert (weights[:, [0, 2]].sum(axis=1) == 2).all()
    assert (weights[:, [1, 3, 4]].sum(axis=1) == 3).all()
    assert (weights[:, 5] == 1).all()
    assert weights.mean(axis=0) == pytest.approx(np.ones(6), abs=0.1)


def test_means_of_resamplings_leave_missing_numbers_out():
    table = np.array([[1.0, 2.0, np.nan], [4.0, 5.0, 6.0]])
    weights = resampled_worlds([""] * 3)
    found = resampled_means(table)
    for row, counts in zip(found, weights, strict=True):
        drawn = np.repeat(np.arange(3), counts.astype(int))
        first = table[0, drawn]
        first = first[~np.isnan(first)]
        assert row[0] == pytest.approx(first.mean()) if len(first) else np.isnan(row[0])
        assert row[1] == pytest.approx(table[1, drawn].mean())


def test_the_interval_is_about_that_of_the_normal_distribution():
    numbers = np.random.default_rng(1).normal(3.0, 1.0, 400)
    low, high = interval(resampled_means(numbers))
    error = numbers.std() / 20
    assert low == pytest.approx(numbers.mean() - 1.96 * error, abs=0.3 * error)
    assert high == pytest.approx(numbers.mean() + 1.96 * error, abs=0.3 * error)


@pytest.mark.parametrize(("mean", "expected"), [(1.0, True), (-1.0, False), (0.02, None)])
def test_a_mean_far_from_the_limit_can_be_told(mean, expected):
    numbers = mean + np.random.default_rng(2).normal(0, 0.5, 30)
    assert judged_means(numbers[None], lambda means: means[0] > 0) is expected
