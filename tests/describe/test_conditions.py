"""Conditions: where they hold, and how they are said."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyways.describe.conditions import Condition, all_hold, briefly, hull, is_plural, narrowed, spent, when

NAN = float("nan")


@pytest.mark.parametrize(
    ("condition", "brief", "clause"),
    [
        (Condition("wear", 3, None), "wear 3 or more", "wear is 3 or more"),
        (Condition("wear", None, 1), "wear 1 or less", "wear is 1 or less"),
        (Condition("wear", 2, 3), "wear 2 or 3", "wear is 2 or 3"),
        (Condition("wear", 1, 3), "wear 1 to 3", "wear is 1 to 3"),
        (Condition("weight", 2.0, 3.0), "weight 2 to 3", "weight is 2 to 3"),
        (Condition("wear", 2, 2), "wear 2", "wear is 2"),
        (Condition("spare_parts", None, 1), "spare parts 1 or fewer", "spare parts are 1 or fewer"),
        (Condition("x", 3, None), "x ≥ 3", "x ≥ 3"),
        (Condition("x1", None, 0.25), "x1 ≤ 0.25", "x1 ≤ 0.25"),
        (Condition("x", 1, 2), "1 ≤ x ≤ 2", "1 ≤ x ≤ 2"),
        (Condition("x", 2, 2), "x = 2", "x = 2"),
        (Condition("broken", values=(True,)), "broken", "broken"),
        (Condition("is_broken", values=(False,)), "not broken", "not broken"),
        (Condition("has_key", values=(False,)), "it has no key", "it has no key"),
        (Condition("b", values=(True,)), "b is true", "b is true"),
        (Condition("to", values=("red",)), "to red", "to is red"),
        (Condition("colour", values=("red", "blue")), "colour red or blue", "colour is red or blue"),
        (Condition("colour", values=("red",), negated=True), "colour not red", "colour is not red"),
        (
            Condition("colour", values=("red", "blue"), negated=True),
            "colour not red or blue",
            "colour is neither red nor blue",
        ),
    ],
)
def test_words(condition, brief, clause):
    assert (condition.brief, condition.clause) == (brief, clause)


def test_several_conditions_at_once():
    wear, parts, hot = Condition("wear", 3, None), Condition("parts", 0, 0), Condition("hot", values=(True,))
    assert when([wear]) == "at wear 3 or more"
    assert when([parts]) == "when parts are 0"
    assert when([parts, wear, hot]) == "at wear 3 or more when parts are 0 and hot"
    assert when([]) == ""
    assert briefly([wear, parts]) == "wear 3 or more, parts 0"
    assert briefly([]) == "always"
    assert [spent(condition) for condition in (wear, parts, hot)] == [
        "at wear 3 or more",
        "with 0 parts",
        "with hot true",
    ]
    counts = [
        Condition("parts", 1, 1),
        Condition("parts", 1, 2),
        Condition("boxes", 1, 1),
        Condition("full_batteries", 1, 1),
    ]
    assert [*map(spent, counts)] == ["with 1 part", "with 1 or 2 parts", "with 1 box", "with 1 full battery"]
    assert spent(Condition("parts", None, 1)) == "with 1 or fewer parts"
    assert spent(Condition("x", 2, None)) == "with x ≥ 2"


def test_plurals():
    assert all(map(is_plural, ("parts", "spare parts", "orders")))
    assert not any(map(is_plural, ("wear", "status", "class", "axis", "x", "gas", "readiness")))


def test_no_value_meets_no_condition():
    numbers, words = np.array([0.0, NAN, 2.0]), np.array(["red", "", "blue"])
    assert Condition("n", 1, None).holds(numbers).tolist() == [False, False, True]
    assert Condition("n", None, 1).holds(numbers).tolist() == [True, False, False]
    assert Condition("w", values=("red",)).holds(words).tolist() == [True, False, False]
    assert Condition("w", values=("red",), negated=True).holds(words).tolist() == [False, False, True]


numbers = st.integers(0, 5)


@st.composite
def ranges(draw):
    low, high = draw(st.none() | numbers), draw(st.none() | numbers)
    if low is None and high is None:
        low = 0
    if low is not None and high is not None:
        low, high = min(low, high), max(low, high)
    return Condition(draw(st.sampled_from("ab")), low, high)


@given(st.lists(ranges(), max_size=2), st.lists(ranges(), max_size=2))
def test_a_hull_holds_wherever_one_of_the_two_does(one, other):
    one, other = (
        [c for i, c in enumerate(way) if c.variable not in [d.variable for d in way[:i]]] for way in (one, other)
    )
    grid = np.indices((6, 6)).reshape(2, -1)
    variables = {"a": grid[0], "b": grid[1]}
    either = all_hold(one, variables, 36) | all_hold(other, variables, 36)
    assert (all_hold(hull(one, other), variables, 36) >= either).all()


def test_bounds_are_narrowed_to_what_occurs():
    wear, among = np.array([0, 1, 2, 3, 4]), np.array([True, True, True, False, True])
    for wide, narrow in (
        (Condition("wear", 1, 3), "wear 1 or 2"),
        (Condition("wear", 2, 3), "wear 2"),
        (Condition("wear", 3, None), "wear 4 or more"),
        (Condition("wear", None, 3), "wear 2 or less"),
    ):
        (found,) = narrowed((wide,), {"wear": wear}, among)
        assert found.brief == narrow
        np.testing.assert_array_equal(found.holds(wear)[among], wide.holds(wear)[among])
    (found,) = narrowed((Condition("wear", 1, None),), {"wear": wear}, wear <= 2)
    assert found.brief == "wear 1 or 2"
    text = Condition("place", values=("hill",))
    assert narrowed((text,), {"place": np.array(["hill", "mill"])}, np.array([True, True])) == (text,)
    assert spent(text) == "where place is hill"
