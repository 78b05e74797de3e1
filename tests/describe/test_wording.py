"""Wording: numbers, names and lists as they are written in sentences."""

from __future__ import annotations

import pytest

from manyways.describe.wording import aligned, counted, finely, joined, number, percent, plain, short, tabled


@pytest.mark.parametrize(
    ("share", "shown"),
    [(0, "0 %"), (-1e-17, "0 %"), (1e-5, "under 0.1 %"), (0.004, "0.4 %"), (0.03, "3 %"), (0.0995, "10 %"), (0.342, "34 %"),
     (0.0009, "under 0.1 %"), (0.9989, "99.9 %"), (0.9994, "over 99.9 %"), (0.99999, "over 99.9 %"), (1 - 1e-12, "100 %"), (1.234, "123 %")],
)  # fmt: skip
def test_percent(share, shown):
    assert percent(share) == shown


def test_numbers_and_lists():
    assert [number(x) for x in (0.0, -0.0, 31.24, 12345.6, 0.00934, -2.0, 99.96)] == [
        "0", "0", "31.2", "12,346", "0.00934", "-2", "100",
    ]  # fmt: skip
    assert [counted(x, "step") for x in (1.0, 1.04, 2, 0, 31.24, 1500)] == [
        "1 step", "1 step", "2 steps", "0 steps", "31.2 steps", "1,500 steps",
    ]  # fmt: skip
    assert [joined(items) for items in (["a"], ["a", "b"], ["a", "b", "c"])] == ["a", "a and b", "a, b and c"]


def test_short_names_are_one_harmless_line():
    assert short("\u202eab\u2066c\u200f\u061c") == "abc"
    assert short("a\nb\tc\x00d\u2028e") == "a b c d e"
    assert short("x\ud800") == "x?"
    assert (plain("word"), plain("two words"), plain("two\nwords"), plain("")) == (
        "word",
        "'two words'",
        "'two words'",
        "''",
    )


def test_rewards_below_each_other_have_one_number_of_decimals():
    assert aligned((4.35163, 4.34385, None)) == ["4.35163", "4.34385", "–"]
    assert aligned((-13.0, -17.0)) == ["-13.00", "-17.00"]
    assert aligned((0.0, 0.0)) == ["0.000", "0.000"]


def test_a_share_in_a_sentence_is_that_in_the_table():
    for share in (0.145, 0.2, 0.99951, 1.0, 0.0, 0.0004, 0.0309):
        assert finely(share) == tabled(share).replace(".0 %", " %")
    assert (finely(0.145), finely(0.24), finely(0.99951), finely(0.0004)) == (
        "14.5 %",
        "24 %",
        "over 99.9 %",
        "under 0.1 %",
    )
