"""The chart of reward against diversity."""

from __future__ import annotations

from itertools import combinations
from math import dist

import numpy as np
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


@pytest.mark.parametrize(
    "points",
    [
        [(400.0, 120.0)] * 9,
        [(380.0, 120.0), (384.0, 120.0), (388.0, 120.0), (392.0, 120.0)],
        [(200.0 + i, 20.0) for i in range(12)],
    ],
    ids=["at one point", "on a line at the edge", "at the top"],
)
def test_numbers_hide_neither_each_other_nor_dots(points):
    taken = [*points, (386.0, 120.0)]
    numbers = chart.free_places(points, taken)
    assert min(dist(one, other) for one, other in combinations(numbers, 2)) >= chart.NUMBER
    assert min(dist(number, dot) for number in numbers for dot in taken) >= chart.CLEAR - 0.1
    assert all(0 < x < chart.WIDTH and 0 < y <= chart.HEIGHT - chart.BOTTOM for x, y in numbers)
    assert max(dist(number, dot) for number, dot in zip(numbers, points, strict=True)) < chart.FARTHEST


def test_dots_stand_where_the_plans_are(rooms):
    found = chart.price_chart(rooms, None, [1, 2, 3, 4, 5, 6])
    heights = [plan["y"] for plan in found["plans"]]
    lost = (rooms.optimal_reward - rooms.rewards) / (rooms.optimal_reward - rooms.rewards.min())
    least, most = found["optimum"]["y"], max(heights)
    np.testing.assert_allclose(heights, least + lost * (most - least), atol=0.11)
    assert most - least > 0.8 * (chart.HEIGHT - chart.TOP - chart.BOTTOM)
    assert all(plan["number_at"] for plan in found["plans"])


def test_of_many_plans_those_with_a_colour_are_numbered():
    plans = mw.plan("nine-rooms:7", 12, 8.0, method=mw.FrankWolfe(iterations=0))
    found = chart.price_chart(plans, None, [1, 0, 2, *[0] * 9])
    assert [plan["number"] for plan in found["plans"] if plan["number_at"]] == [1, 3]
