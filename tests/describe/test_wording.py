"""Wording: numbers, names and lists as they are written in sentences."""

from __future__ import annotations

import pytest

from manyways.describe.wording import counted, joined, number, percent, plain, short


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
