"""What holds for every text format that models are written in."""

import pytest

import manyways as mw
from manyways.formats.writer import write_model

ROWS = [(s, "a", t, 0.5, 0.0) for s in (0, 1) for t in (0, 1)]
REFUSED = {
    "an uneven start": (ROWS, {"start": {0: 0.25, 1: 0.75}}, "some states are likelier to start in than others"),
    "a label init": (ROWS, {"labels": {"init": [0]}}, "means the start by the label 'init'"),
    "a label deadlock": (
        ROWS,
        {"labels": {"deadlock": [1]}},
        "means states without actions by the label 'deadlock'",
    ),
    "a label in two lines": (ROWS, {"labels": {"a\nb": [1]}}, "line break"),
    "actions that become one": (
        [(0, name, 0, 1.0, 0.0) for name in ("a b", "a_b")],
        {},
        "the actions 'a b' and 'a_b' would both be called 'a_b'",
    ),
    "states that become one": (
        [(name, "a", name, 1.0, 0.0) for name in ("a b", "a\nb")],
        {},
        r"the states 'a b' and 'a\\nb' would both be called 'a b'",
    ),
}

each_format = pytest.mark.parametrize("ending", [".drn", ".tra"])


@each_format
@pytest.mark.parametrize("case", REFUSED)
def test_what_a_format_cannot_hold_is_refused_and_not_written(ending, case, tmp_path):
    rows, details, message = REFUSED[case]
    with pytest.raises(mw.OutputError, match=message):
        write_model(mw.MDP.from_transitions(rows, **details), tmp_path / f"model{ending}")
    assert list(tmp_path.iterdir()) == []


@each_format
def test_a_folder_that_is_not_there(ending, tmp_path):
    with pytest.raises(mw.OutputError, match="cannot write"):
        write_model(mw.MDP.from_transitions(ROWS), tmp_path / "no" / f"model{ending}")
