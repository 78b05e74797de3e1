"""The chart of reward against diversity."""

from __future__ import annotations

import pytest

import manyways as mw


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
