"""The chart of reward against diversity."""

from __future__ import annotations

from itertools import combinations
from math import hypot

import pytest

import manyways as mw
from manyways.report import chart


def test_the_price_of_diversity_with_a_sweep(tmp_path, rooms):
    found = mw.sweep("nine-rooms:7", tradeoff=[0, 4, 8], k=[3], seeds=1, workers=1)
    text = rooms.report(tmp_path / "plans.html", sweep=found).read_text()
    assert text.count('class="curve-point"') == 3
    assert "k = 3, tradeoff 4" in text
    assert "planned with another worth of diversity; the number beside a dot is that worth" in text


def test_a_sweep_that_counts_values_in_another_way_is_refused(tmp_path):
    pytest.importorskip("gymnasium")
    found = mw.sweep("gym:FrozenLake-v1", tradeoff=[0, 1], k=[2], seeds=1, workers=1)
    plans = mw.plan("gym:FrozenLake-v1", 2, 1.0, criterion=mw.Average())
    with pytest.raises(mw.SettingError, match=r"another best value, 0\.823529, than the plans, 0\.0179739 per step"):
        plans.report(tmp_path / "plans.html", sweep=found)
    mw.plan("gym:FrozenLake-v1", 2, 1.0).report(tmp_path / "plans.html", sweep=found)


def _gaps(places: list[tuple[float, float]]) -> list[float]:
    return [hypot(a[0] - b[0], a[1] - b[1]) for a, b in combinations(places, 2)]


@pytest.mark.parametrize(
    "points",
    [
        [(400.0, 120.0)] * 4,
        [(380.0, 120.0), (384.0, 120.0), (388.0, 120.0), (392.0, 120.0)],
        [(200.0 + i, 20.0) for i in range(12)],
    ],
    ids=["at one point", "on a line at the edge", "at the top"],
)
def test_discs_hide_neither_each_other_nor_the_mark_of_the_set(points):
    mark = (386.0, 120.0)
    discs = chart.pushed_apart(points, chart.RADIUS, [mark])
    assert min(_gaps(discs)) >= 2 * chart.RADIUS - 0.5
    assert min(hypot(x - mark[0], y - mark[1]) for x, y in discs) >= chart.RADIUS + 5
    assert all(chart.RADIUS <= x <= chart.WIDTH - chart.RADIUS and y >= chart.RADIUS for x, y in discs)
