"""The tables of the page."""

from __future__ import annotations

import pytest

from manyways.describe import Measure
from manyways.report.tables import cells_of, labelled_plans, measure_table, texts_of


@pytest.mark.parametrize(
    ("rewards", "best", "worst"),
    [((1.0, 0.999, 0.998, 0.0), 1, 1), ((3.0, 3.0, 1.0), 2, 1), ((2.0, 2.0), 0, 0), ((1234567.1, 1234567.5), 1, 1)],
)
def test_only_the_best_is_called_the_best(rewards, best, worst):
    cells = cells_of(Measure("reward", rewards, "reward", 1, ""))
    assert [cell.rank for cell in cells].count("best") == best
    assert [cell.rank for cell in cells].count("worst") == worst
    assert len({cell.text for cell in cells}) == len(set(rewards))


def test_small_shares_and_their_span():
    """From the least to the largest value, not by their texts; what would be rounded to nothing is not called nothing."""
    small = Measure("time in wall", (3e-5, 4e-9, 0.0), "share", -1, "")
    assert texts_of(small) == ["under 0.1 %", "under 0.1 %", "0.0 %"]
    spread = Measure("time in door", (0.102, 0.0991, 0.1), "share", 0, "")
    first = Measure("reward", (3.0, 2.0, 1.0), "reward", 1, "")
    same = measure_table([first, first, small, spread], 3)["same"]
    assert same == [("time in wall", "0.0 % to under 0.1 %"), ("time in door", "9.9 % to 10.2 %")]


@pytest.mark.parametrize(("k", "labels"), [(31, [1, 5, 10, 15, 20, 25, 30]), (200, [1, *range(20, 201, 20)])])
def test_plans_that_have_a_label_beside_the_picture_of_distances(k, labels):
    assert labelled_plans(k) == labels
