"""Variables of states from every source that has them, and back from files."""

from collections import namedtuple
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import manyways as mw
from manyways.formats.writer import write_model
from manyways.gallery import example_file

MODELS = Path(__file__).parent.parent / "data" / "models"
GIVEN = {"wear": [0, 1, 2], "load": [0.5, float("nan"), 1.5], "hot": [True, False, True], "shift": ["day", "", "a,b"]}


def ring(**details) -> mw.MDP:
    rows = np.eye(3)[[1, 2, 0]]
    return mw.MDP.from_csr(rows, np.zeros(3), np.arange(4), state_names=["a", "b", "c"], **details)


def listed(mdp: mw.MDP) -> dict[str, list]:
    return {name: values.tolist() for name, values in mdp.variables.items()}


def assert_same_variables(one: mw.MDP, other: mw.MDP) -> None:
    assert list(one.variables) == list(other.variables)
    for name in one.variables:
        np.testing.assert_array_equal(one.variables[name], other.variables[name])


@pytest.mark.parametrize("ending", [".npz", ".csv"])
def test_written_and_read(ending, tmp_path):
    mdp = ring(variables=GIVEN)
    write_model(mdp, tmp_path / f"model{ending}")
    assert_same_variables(mw.read(tmp_path / f"model{ending}"), mdp)


def test_in_the_file_of_a_plan_set(tmp_path):
    plans = mw.plan(ring(variables=GIVEN), 1)
    plans.save(tmp_path / "plans.mw")
    assert_same_variables(mw.load(tmp_path / "plans.mw").mdp, plans.mdp)


@given(
    st.lists(
        st.tuples(st.integers(-(10**18), 10**18), st.booleans(), st.floats(-1e9, 1e9), st.text("abc =+'", max_size=5)),
        min_size=3,
        max_size=3,
    )
)
def test_any_values_in_arrays_and_tables(tmp_path_factory, rows):
    numbers, marks, amounts, words = map(list, zip(*rows, strict=True))
    folder = tmp_path_factory.mktemp("files")
    mdp = ring(variables={"n": numbers, "mark": marks, "amount": amounts, "word": words})
    write_model(mdp, folder / "model.npz")
    assert_same_variables(mw.read(folder / "model.npz"), mdp)
    write_model(mdp, folder / "model.csv")
    found = mw.read(folder / "model.csv").variables
    assert found["mark"].tolist() == marks
    assert found["amount"].tolist() == amounts
    if found["n"].dtype.kind == "i":  # not where some have more than 18 digits
        assert found["n"].tolist() == numbers


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (np.arange(4), r"must have the shape \(3,\)"),
        (np.zeros((3, 1)), r"must have the shape \(3,\)"),
        (np.array([1.0, np.inf, 0.0]), "is infinite"),
        (np.array([b"a", b"b", b"c"]), "integers, numbers, booleans or text"),
        (np.array(["a" * 61] * 3), "more than 60 characters"),
    ],
)
def test_arrays_that_are_refused(tmp_path, wrong, message):
    write_model(ring(), tmp_path / "model.npz")
    with np.load(tmp_path / "model.npz") as npz:
        arrays = dict(npz)
    np.savez(tmp_path / "wrong.npz", **arrays, **{"variable:x": wrong})
    with pytest.raises(mw.ManywaysError, match=message):
        mw.read(tmp_path / "wrong.npz")


# ---- tables -------------------------------------------------------------------------------------


def table(tmp_path: Path, text: str) -> mw.MDP:
    (tmp_path / "table.csv").write_text(text)
    return mw.read(tmp_path / "table.csv")


def test_further_columns_that_say_the_same_in_all_rows_of_a_state(tmp_path):
    mdp = table(
        tmp_path,
        "state,wear,action,next,next wear,prob,note,plant,hot\n"
        "a,0,run,b,1,0.5,first,north,no\n"
        "a,0,run,a,0,0.5,second,north,no\n"
        "b,1,run,a,0,1,third,north,yes\n",
    )
    assert listed(mdp) == {"wear": [0, 1], "hot": ["no", "yes"]}


def test_a_column_that_contradicts_itself_much_later(tmp_path, monkeypatch):
    monkeypatch.setattr("manyways.formats.tables.CHUNK", 2)
    rows = "a,run,b,0,0\nb,run,a,1,1\na,stay,a,,0\nb,stay,b,1,2\n"
    assert listed(table(tmp_path, f"state,action,next,wear,load\n{rows}")) == {"wear": [0, 1]}


def test_columns_of_a_state_are_called_by_its_name(tmp_path):
    mdp = table(tmp_path, "state,state_wear,state.plant,action,next\na,0,north,run,b\nb,1,north,run,a\n")
    assert listed(mdp) == {"wear": [0, 1], "plant": ["north", "north"]}


def test_a_state_without_rows_has_no_values(tmp_path):
    mdp = table(tmp_path, "state,wear,shift,action,next\na,0,day,run,b\nb,1,night,run,c\n")
    assert mdp.variables["shift"].tolist() == ["day", "night", ""]
    assert mdp.variables["wear"].tolist()[:2] == [0, 1]
    assert np.isnan(mdp.variables["wear"][2])


def test_decimal_commas_and_long_texts(tmp_path):
    mdp = table(tmp_path, f"state;load;remark;action;next\na;0,5;{'x' * 61};run;b\nb;1,25;y;run;a\n")
    assert listed(mdp) == {"load": [0.5, 1.25]}


def test_columns_of_data_frames():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    columns = {
        "state": ["a", "b"],
        "action": ["run", "run"],
        "next": ["b", "a"],
        "wear": [0.0, 1.0],
        "hot": [True, False],
    }
    for frame in (pandas.DataFrame(columns), polars.DataFrame(columns)):
        assert listed(mw.read(frame)) == {"wear": [0, 1], "hot": [True, False]}


# ---- other sources ------------------------------------------------------------------------------


def of_names(mdp: mw.MDP) -> dict[str, list]:
    return listed(replace(mdp, variables={}))


def test_models_of_prism(tmp_path):
    pytest.importorskip("stormpy")
    mdp = mw.read(f"{example_file('robot.prism')}?const=N=3,B=4&reward=gain")
    assert list(mdp.variables) == ["x", "y", "b"]
    assert mdp.given_variables
    assert of_names(mdp) == listed(mdp), "the names of the states have the same values"
    assert (mdp.labels["empty"] == (mdp.variables["b"] == 0)).all()
    write_model(mdp, tmp_path / "robot.tra")
    assert_same_variables(mw.read(tmp_path / "robot.tra"), mdp)


def test_a_model_of_jani_has_no_transient_variables():
    pytest.importorskip("stormpy")
    assert listed(mw.read(f"{MODELS / 'toll.jani'}?const=p=0.5")) == {"x": [0, 1]}


def test_files_of_prism(tmp_path):
    (tmp_path / "m.tra").write_text("2 2 2\n0 0 1 1\n1 0 0 1\n")
    (tmp_path / "m.sta").write_text("(x,ok)\n1:(5,true)\n0:(-1,false)\n")
    assert listed(mw.read(tmp_path / "m.tra")) == {"x": [-1, 5], "ok": [False, True]}
    (tmp_path / "m.sta").write_text("(name)\n0:(a/1)\n1:(b/1)\n")
    assert not mw.read(tmp_path / "m.tra").given_variables
    (tmp_path / "m.sta").write_text("(x,x)\n0:(1,2)\n1:(1,3)\n")
    assert not mw.read(tmp_path / "m.tra").given_variables, "two variables of one name"


def test_fluents_of_rddl():
    pytest.importorskip("pyRDDLGym")
    mdp = mw.read(f"{MODELS / 'maintenance_domain.rddl'}?instance=maintenance_instance.rddl")
    assert [values.dtype.kind for values in mdp.variables.values()] == ["b", "b", "i"]
    assert of_names(mdp) == listed(mdp)


def test_explored_states():
    Machine = namedtuple("Machine", ["wear", "parts"])
    worn = mw.explore(Machine(0, 1), lambda _: ["run"], lambda m, _: [(1.0, Machine((m.wear + 1) % 3, m.parts), 1.0)])
    assert listed(worn) == {"wear": [0, 1, 2], "parts": [1, 1, 1]}
    plain = mw.explore(
        (0, True), lambda _: ["run"], lambda s, _: [(1.0, ((s[0] + 1) % 2, s[1]), 1.0)], variables=["wear", "hot"]
    )
    assert listed(plain) == {"wear": [0, 1], "hot": [True, True]}


@pytest.mark.parametrize("rule", ["restart", "absorbing"])
def test_taxi(rule):
    pytest.importorskip("gymnasium")
    mdp = mw.read(f"gym:Taxi-v3?terminal={rule}")
    assert list(mdp.variables) == ["taxi row", "taxi column", "passenger", "destination"]
    for state in range(mdp.n_states):
        row, column, passenger, destination = (values[state] for values in mdp.variables.values())
        within = "in" if passenger == "taxi" else "at"
        assert mdp.state_name(state) == f"taxi r{row}c{column}, passenger {within} {passenger}, to {destination}"


class Coded:
    """An environment whose observations can be taken apart."""

    P: ClassVar = {s: {0: [(1.0, (s + 1) % 4, 0.0, s == 3)]} for s in range(4)}
    initial_state_distrib = (1.0, 0.0, 0.0, 0.0)
    spec = None

    @property
    def unwrapped(self):
        return self

    def decode(self, code):
        return divmod(code, 2)


def test_other_environments_with_decode():
    assert listed(mw.read(Coded())) == {"x1": [0, 0, 1, 1], "x2": [0, 1, 0, 1]}

    class Secret(Coded):
        def decode(self, code):
            raise RuntimeError(code)

    assert not mw.read(Secret()).variables
