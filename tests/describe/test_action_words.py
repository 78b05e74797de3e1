"""What a plan does, for arbitrary names of actions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyways.describe.action_words import does


@pytest.mark.parametrize(
    ("action", "words"),
    [
        ("repair", "repairs"),
        ("run slowly", "runs slowly"),
        ("go_left", "goes left"),
        ("goLeft", "goes Left"),
        ("left", "goes left"),
        ("north-east", "goes north-east"),
        ("[send]", "sends"),
        ("try", "tries"),
        ("pay", "pays"),
        ("fix", "fixes"),
        ("push", "pushes"),
        ("order 2", "orders 2"),
        ("repair(m1)", "repairs m1"),
        ("repair(m1)+repair(m2)", "repairs m1 and repairs m2"),
        ("noop", "does nothing"),
        ("3", "takes action 3"),
        ("a0", "takes 'a0'"),
        ("turbo", "takes 'turbo'"),
        ("[]", "takes '[]'"),
        ("slow", "slows"),
        ("train", "takes 'train'"),
        ("train dog", "trains dog"),
        ("land", "takes 'land'"),
        ("a+b", "takes 'a+b'"),
    ],
)
def test_words(action, words):
    assert does(action) == words


@given(st.text(max_size=60))
def test_any_name_can_be_said_on_one_line(name):
    said = does(name)
    assert said.split()
    assert "\n" not in said
    assert len(said) <= 140
