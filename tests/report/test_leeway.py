"""The bars of what is certain and what is free: the labels of the plans on them."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

import manyways as mw
from manyways.report import leeway


@pytest.mark.parametrize(
    ("numbers", "k", "told"),
    [
        ([1], 1, "1"),
        ([1, 2, 3], 3, "all"),
        ([2], 3, "2"),
        ([2, 1], 3, "1, 2"),
        ([1, 2, 3, 4, 5, 6, 7, 8, 11], 40, "1–8, 11"),
        (list(range(1, 40, 2)), 40, "20 plans"),
    ],
)
def test_numbers_are_told_in_few_letters(numbers, k, told):
    assert leeway.numbers_told(numbers, k) == told


@pytest.mark.parametrize("seed", range(10))
def test_labels_lie_within_the_bar_and_do_not_cover_each_other(seed):
    times = np.random.default_rng(seed).uniform(0, 100, 30)
    marks = leeway._marks([(float(time), i + 1, "") for i, time in enumerate(times)])
    assert {mark["line"] for mark in marks} > {0}
    placed = []
    for mark in marks:
        width = leeway.LETTER * len(mark["numbers"])
        begin = mark["at"] - width * mark["at"] / 100
        assert 0 <= begin <= mark["at"] <= begin + width <= 100
        placed.append((mark["line"], begin, begin + width))
    for (line, begin, end), (other, first, last) in combinations(placed, 2):
        assert line != other or end < first or last < begin


def test_only_places_that_say_something_have_a_bar():
    """Three ways to the goal: the start, the goal and the place where all episodes end say only how long they are."""
    rows = [("start", way, way, 1.0, -1.0) for way in ("one", "two", "three")]
    rows += [(way, "on", "goal", 1.0, -1.0) for way in ("one", "two", "three")] + [("goal", "back", "start", 1.0, 0.0)]
    labels = {"start": ["start"], "goal": ["goal"], "arrived": ["goal"], "wet": ["two"]}
    plans = mw.plan(mw.MDP.from_transitions(rows, start="start", labels=labels), 3, slack=0.1)
    time = np.add.reduceat(plans.occupancies, plans.mdp.first_choice[:-1], axis=1)
    assert [row["name"] for row in leeway.leeway(plans, time, ["", "", ""])] == ["wet"]
    same = np.stack([time[0]] * 3)
    assert leeway.leeway(plans, same, ["", "", ""]) == [], "all plans share every mark"


def test_places_are_those_that_titles_name():
    titles = ["By the west and south rooms", "Through the north-east"]
    assert [leeway._named(place, titles) for place in ("west room", "south room", "north room", "east", "room")] == [True, True, False, False, False]  # fmt: skip
