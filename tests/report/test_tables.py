"""The tables of the page."""

from __future__ import annotations

import pytest

from manyways.describe import Measure
from manyways.report.tables import cells_of


@pytest.mark.parametrize(
    ("rewards", "best", "worst"),
    [((1.0, 0.999, 0.998, 0.0), 1, 1), ((3.0, 3.0, 1.0), 2, 1), ((2.0, 2.0), 0, 0), ((1234567.1, 1234567.5), 1, 1)],
)
def test_only_the_best_is_called_the_best(rewards, best, worst):
    cells = cells_of(Measure("reward", rewards, "reward", 1, ""))
    assert [cell.rank for cell in cells].count("best") == best
    assert [cell.rank for cell in cells].count("worst") == worst
    assert len({cell.text for cell in cells}) == len(set(rewards))
