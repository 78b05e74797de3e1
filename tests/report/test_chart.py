"""The chart of reward against diversity."""

from __future__ import annotations

import manyways as mw


def test_the_price_of_diversity_with_a_sweep(tmp_path, rooms):
    found = mw.sweep("nine-rooms:7", tradeoff=[0, 4, 8], k=[3], seeds=1, workers=1)
    text = rooms.report(tmp_path / "plans.html", sweep=found).read_text()
    assert text.count('class="curve-point"') == 3
    assert "k = 3, tradeoff 4" in text
    assert "planned with another worth of diversity; the number beside a dot is that worth" in text
