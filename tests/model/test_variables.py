"""Variables of states: given, found in names, taken from Python's objects, and carried along."""

from collections import namedtuple
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import manyways as mw
from manyways import MDP, Grid, ModelError
from manyways.model import variables as module
from manyways.model.as_arrays import model_from_arrays, model_to_arrays
from manyways.model.variables import fields_of, split_names

GIVEN = {"wear": [0, 1, 2], "load": [0.5, float("nan"), 1.5], "hot": [True, False, True], "shift": ["day", "night", ""]}


def ring(n: int = 3, **details) -> MDP:
    """From each state on to the next one, or stay."""
    rows = np.vstack([np.eye(n)[[s, (s + 1) % n]] for s in range(n)])
    return MDP.from_csr(rows, np.zeros(2 * n), np.arange(0, 2 * n + 1, 2), **details)


def listed(mdp: MDP) -> dict[str, list]:
    return {name: values.tolist() for name, values in mdp.variables.items()}


# ---- given --------------------------------------------------------------------------------------


def test_given_variables_have_one_of_four_types_and_are_read_only():
    found = ring(variables=GIVEN).variables
    assert [found[name].dtype.kind for name in GIVEN] == ["i", "f", "b", "U"]
    assert all(not values.flags.writeable for values in found.values())
    assert found["shift"].tolist() == ["day", "night", ""]
    own = np.array([4, 5, 6])
    assert ring(variables={"x": own}).variables["x"] is not own


def test_a_model_without_variables_has_none():
    assert not ring().variables
    assert not ring(state_names=["good", "worn", "broken"]).variables


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1, 2], "must have 3 values"),
        ([[1, 2, 3]], "must have 3 values"),
        ([1, None, 2], "integers, numbers, booleans or text"),
        ([1j, 2, 3], "found complex128"),
        ([1.0, np.inf, 2.0], "is infinite"),
        (["a", "b", "c" * 61], "more than 60 characters"),
        (["a", "b", "\ud800"], "cannot be encoded"),
        (np.array([1, 2, 2**63], np.uint64), "below 2\\*\\*63"),
        ([[1], [2, 3], []], "must have 3 values"),
    ],
)
def test_values_that_are_refused(values, message):
    with pytest.raises(ModelError, match=message):
        ring(variables={"x": values})


def test_names_that_are_refused():
    with pytest.raises(ModelError, match="needs a name"):
        ring(variables={" ": [1, 2, 3]})
    with pytest.raises(ModelError, match="cannot be encoded"):
        ring(variables={"\ud800": [1, 2, 3]})


def test_the_digest_does_not_cover_them():
    assert ring().digest == ring(variables=GIVEN).digest


def test_they_are_carried_along():
    mdp = ring(variables=GIVEN, labels={"last": [False, False, True]})
    for derived in (
        mdp.minimising(),
        mdp.restarting_at([2]),
        mdp.with_reward(np.ones(6)),
        mdp.read_from("here"),
        replace(mdp, name="other"),
    ):
        assert listed(derived)["wear"] == [0, 1, 2], derived
        assert listed(derived)["shift"] == ["day", "night", ""]
    part = mdp.without(states=[2])
    assert (listed(part)["wear"], listed(part)["hot"], listed(part)["shift"]) == (
        [0, 1],
        [True, False],
        ["day", "night"],
    )
    one = ring(start=[0, 1, 0], variables=GIVEN).without(actions="a1")
    assert listed(one)["wear"] == [1]


def test_arrays_and_back():
    header, arrays = model_to_arrays(ring(variables=GIVEN))
    again = model_from_arrays(header, arrays)
    assert list(again.variables) == list(GIVEN)
    for name in GIVEN:
        np.testing.assert_array_equal(again.variables[name], ring(variables=GIVEN).variables[name])
    del header["variables"]  # as in files of earlier versions
    assert not model_from_arrays(header, arrays).variables


# ---- in the names of states ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["wear1/parts2", "wear0/parts10"], {"wear": [1, 0], "parts": [2, 10]}),
        (["wear=1,parts=2", "wear=0,parts=-3"], {"wear": [1, 0], "parts": [2, -3]}),
        (["wear: 1; hot: true", "wear: 2; hot: false"], {"wear": [1, 2], "hot": [True, False]}),
        (["(1, 2)", "(1, 4)"], {"x1": [1, 1], "x2": [2, 4]}),
        (["('a', 0.5)", "('b', 4)", "('a', 4)"], {"x1": ["a", "b", "a"], "x2": [0.5, 4, 4]}),
        (["State(x=1, y='red')", "State(x=2, y='red')"], {"x": [1, 2], "y": ["red", "red"]}),
        (["{'a': 1, 'b': 2}", "{'a': 3, 'b': 4}"], {"a": [1, 3], "b": [2, 4]}),
        (["wear 1 parts 2", "wear 3 parts 4"], {"wear": [1, 3], "parts": [2, 4]}),
        (["wear_1_parts_2", "wear_3_parts_4"], {"wear": [1, 3], "parts": [2, 4]}),
        (["r0c1", "r10c2"], {"r": [0, 10], "c": [1, 2]}),
        (["stock1", "stock2"], {"stock": [1, 2]}),
        (["x=0", "x=1"], {"x": [0, 1]}),
        (["idle/day", "idle/night", "busy/day"], {"x1": ["idle", "idle", "busy"], "x2": ["day", "night", "day"]}),
        (["at(m1)=true,n=0", "at(m1)=false,n=1"], {"at(m1)": [True, False], "n": [0, 1]}),
    ],
)
def test_regular_names(names, found):
    assert {name: values.tolist() for name, values in split_names(names).items()} == found


@pytest.mark.parametrize(
    "names",
    [
        ["good", "worn"],
        ["s1", "s2"],  # a number of the state and nothing else
        ["1", "2"],
        ["at home", "at work"],
        ["new-machine", "old-machine"],
        ["wear1/parts2", "broken"],
        ["wear1/parts2", "parts1/wear2"],
        ["wear=1,parts=2", "wear=1"],
        ["a1/a2", "a3/a4"],  # two variables of one name
        [""],
        [","],
        ["((", "))"],
        [],
    ],
)
def test_names_that_are_not_regular(names):
    assert split_names(names) == {}


@given(st.lists(st.tuples(st.integers(-99, 99), st.integers(0, 10**9), st.booleans()), min_size=1, max_size=30))
def test_what_was_written_into_names_is_found_in_them(rows):
    names = [f"a={a},long_name={b},c={str(c).lower()}" for a, b, c in rows]
    found = split_names(names)
    assert list(zip(*(found[name].tolist() for name in ("a", "long_name", "c")), strict=True)) == rows
    found = split_names([str(row[:2]) for row in rows])
    assert list(zip(*(values.tolist() for values in found.values()), strict=True)) == [row[:2] for row in rows]


@given(st.lists(st.text(max_size=20), min_size=1, max_size=5))
def test_any_names_can_be_looked_at(names):
    for values in split_names(names).values():
        assert len(values) == len(names)


def test_names_are_split_only_when_somebody_asks(monkeypatch):
    def fail(names):
        raise AssertionError(f"{len(names)} names were split")

    monkeypatch.setattr(module, "split_names", fail)
    mdp = ring(state_names=["wear0/parts0", "wear1/parts0", "wear2/parts0"])
    model_to_arrays(mdp.without(states=[2]).minimising())
    assert mw.plan(mdp, 1).to_bytes()
    with pytest.raises(AssertionError, match="3 names"):
        len(mdp.variables)


def test_names_of_a_part_and_new_names():
    mdp = ring(state_names=["wear0/parts0", "wear1/parts0", "wear2/parts1"])
    assert listed(mdp) == {"wear": [0, 1, 2], "parts": [0, 0, 1]}
    assert listed(mdp.without(states=[2])) == {"wear": [0, 1], "parts": [0, 0]}
    assert listed(replace(mdp, state_names=("k5", "k6", "k7"))) == {"k": [5, 6, 7]}
    assert listed(replace(mdp, variables={"z": [1, 2, 3]})) == {"z": [1, 2, 3]}


def test_a_model_with_a_layout_needs_none():
    drawn = ring(state_names=["a1", "a2", "a3"], layout=Grid([0, 1, 2], np.zeros((1, 3), bool)))
    assert not drawn.variables
    assert listed(replace(drawn, layout=None)) == {"a": [1, 2, 3]}


def test_many_names_are_split_in_pieces(monkeypatch):
    monkeypatch.setattr(module, "AT_ONCE", 7)
    names = [f"wear={i % 5},text={'x' * (i % 3)}y" for i in range(40)]
    found = split_names(names)
    assert found["wear"].tolist() == [i % 5 for i in range(40)]
    assert found["text"].tolist() == ["x" * (i % 3) + "y" for i in range(40)]


# ---- objects of Python --------------------------------------------------------------------------

Machine = namedtuple("Machine", ["wear", "place"])


class Colour(Enum):
    RED = 1
    BLUE = 2


@dataclass(frozen=True)
class Robot:
    battery: float
    colour: Colour
    memory: frozenset


def test_fields_of_objects():
    found = fields_of([Machine(1, (0, 2)), Machine(3, (4, 5))])
    assert {name: values.tolist() for name, values in found.items()} == {
        "wear": [1, 3],
        "place 1": [0, 4],
        "place 2": [2, 5],
    }
    found = fields_of([Robot(0.5, Colour.RED, frozenset()), Robot(1.0, Colour.BLUE, frozenset())])
    assert {name: values.tolist() for name, values in found.items()} == {
        "battery": [0.5, 1.0],
        "colour": ["RED", "BLUE"],
    }
    assert fields_of([(1, "a"), (2, "b")], ["n", "word"])["word"].tolist() == ["a", "b"]
    assert {name: values.tolist() for name, values in fields_of([{"a": 1}, {"a": 2}]).items()} == {"a": [1, 2]}


def test_a_state_of_another_kind_has_no_values():
    found = fields_of([(1, "a"), (2, "b"), "done"])
    assert found["x1"].tolist()[:2] == [1.0, 2.0]
    assert np.isnan(found["x1"][2])
    assert found["x2"].tolist() == ["a", "b", ""]
    assert fields_of([(1,), "done"]) == {}, "half of the states say too little"
    assert fields_of([1, 2]) == {}
    assert fields_of([(np.int64(1), 2**70), (3, 4)])["x1"].tolist() == [1, 3]


def test_states_of_a_list_of_transitions():
    mdp = MDP.from_transitions([((0, "up"), "on", (1, "up"), 1.0, 0.0), ((1, "up"), "on", (0, "up"), 1.0, 0.0)])
    assert listed(mdp) == {"x1": [0, 1], "x2": ["up", "up"]}
