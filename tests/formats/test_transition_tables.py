"""Tables of transitions: CSV, Excel, pandas and polars."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import openpyxl
import pandas
import polars
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fuzzing
import manyways as mw
from manyways.formats.tables import CHUNK, SPELLINGS, read_csv, write_csv
from manyways.formats.writer import write_model
from problems import random_accessible_mdp

TABLE = """state,action,next,prob,reward
idle,start,busy,0.9,-1
idle,start,idle,0.1,-1
idle,wait,idle,1,0
busy,work,busy,0.5,4
busy,work,idle,0.5,2
"""


def put(folder: Path, text: str, name: str = "table.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_table(tmp_path):
    mdp = mw.read(put(tmp_path, TABLE))
    assert mdp.name == "table"
    assert mdp.state_names == ("idle", "busy")
    assert [mdp.action_name(x) for x in range(mdp.n_choices)] == ["start", "wait", "work"]
    np.testing.assert_array_equal(mdp.reward, [-1, 0, 3])
    np.testing.assert_array_equal(mdp.transitions.toarray(), [[0.1, 0.9], [1, 0], [0.5, 0.5]])
    np.testing.assert_array_equal(mdp.start, [1, 0])


def test_plans_of_a_table(tmp_path):
    """The best plan starts and works: of 1/0.9 steps in idle and 2 in busy, it pays 1/0.9 and earns 3 in each."""
    plans = mw.plan(put(tmp_path, TABLE), 2)
    assert plans.optimal_reward == pytest.approx((2 * 3 - 1 / 0.9) / (2 + 1 / 0.9))


@pytest.mark.parametrize(
    ("separator", "decimal"), [(",", "."), (";", "."), (";", ","), ("\t", "."), ("|", ".")], ids=repr
)
def test_separators_and_decimal_commas(tmp_path, separator, decimal):
    lines = [separator.join(cell.replace(".", decimal) for cell in line.split(",")) for line in TABLE.splitlines()]
    assert mw.read(put(tmp_path, "\n".join(lines))).digest == mw.read(put(tmp_path, TABLE, "plain.csv")).digest


@pytest.mark.parametrize(
    "header",
    [
        "State;Action;Next State;Probability;Reward",
        "from;a;to;p;r",
        "S;decision;s_next;chance;Profit",
        '"s";A;S prime;Pr;R',
    ],
)
def test_spellings_of_columns(tmp_path, header):
    body = TABLE.partition("\n")[2].replace(",", ";")
    assert mw.read(put(tmp_path, header + "\n" + body)).digest == mw.read(put(tmp_path, TABLE, "plain.csv")).digest


def test_columns_in_any_order_others_ignored_blank_lines_and_a_byte_order_mark(tmp_path):
    rows = ["﻿reward,note,next,state,action,prob", "", "1, hello,b,a,go,1", "2,,a,b,back,1", ""]
    mdp = mw.read(put(tmp_path, "\n".join(rows)))
    assert mdp.state_names == ("a", "b")
    np.testing.assert_array_equal(mdp.reward, [1, 2])


def test_moves_are_certain_and_free_without_columns_for_it(tmp_path):
    mdp = mw.read(put(tmp_path, "from,action,to\na,go,b\nb,back,a\n"))
    np.testing.assert_array_equal(mdp.transitions.toarray(), [[0, 1], [1, 0]])
    np.testing.assert_array_equal(mdp.reward, [0, 0])


def test_costs_are_minimised(tmp_path):
    mdp = mw.read(put(tmp_path, "state,action,next,cost\na,go,b,5\na,stay,a,3\nb,back,a,0\n"))
    assert mdp.costs
    np.testing.assert_array_equal(mdp.reward, [-5, -3, 0])


def test_units_in_brackets_are_no_part_of_a_column_name(tmp_path):
    mdp = mw.read(put(tmp_path, "State,Action,Next state,Probability [0..1],Profit (EUR)\na,go,a,1,5\n"))
    np.testing.assert_array_equal(mdp.reward, [5])


def test_labels_and_starts(tmp_path):
    text = "state,action,next,label,start\na,go,b,depot | safe,3\nb,go,c,,1\nc,go,a,safe,\n"
    mdp = mw.read(put(tmp_path, text))
    assert {label: list(mask) for label, mask in mdp.labels.items()} == {
        "depot": [True, False, False],
        "safe": [True, False, True],
    }
    np.testing.assert_array_equal(mdp.start, [0.75, 0.25, 0])
    np.testing.assert_array_equal(
        mw.read(put(tmp_path, text.replace("3\n", "yes\n").replace(",1\n", ",no\n"))).start, [1, 0, 0]
    )


def test_states_without_rows_are_ends(tmp_path):
    path = put(tmp_path, "state,action,next,reward\nhome,walk,work,1\nhome,bus,work,2\n")
    mdp = mw.read(path)
    assert list(mdp.labels["end"]) == [False, True]
    assert mdp.action_name(2) == "stay"
    again = mw.read(f"{path}?restart=end")
    assert mw.plan(again, 1).optimal_reward == 2


BROKEN = {
    "no column 'action'": "state,next\na,b\n",
    "row 3: prob must be a number, found 'half'": "state,action,next,prob\na,go,a,1\nb,go,b,half\n",
    "row 2: prob must be a number, found ''": "state,action,next,prob\na,go,a,\n",
    "row 3: reward must be a number, found ''; write 0": "state,action,next,reward\na,go,b,1\nb,go,a,\n",
    "row 2: cost must be a number, found 'nan'; write 0": "state,action,next,cost\na,go,a,nan\n",
    "without a column prob, each row is a move that is certain": "state,action,next,reward\na,go,a,1\na,go,b,1\nb,go,a,0\n",
    "could be the column 'state'": "state,from,action,next\na,a,go,a\n",
    "a reward and a cost": "state,action,next,reward,cost\na,go,a,1,1\n",
    "no transitions": "state,action,next\n",
    "'go'": "state,action,next,prob\na,go,a,0.5\n",
    "must mark a state": "state,action,next,start\na,go,a,no\n",
    "start must be yes, no or a number": "state,action,next,start\na,go,a,maybe\n",
    "more cells than there are columns .*; where numbers have a decimal comma, use semicolons between": (
        "state,action,next,prob\na,go,a,0,5\na,go,b,0,5\n"
    ),
    "Expected 3 fields in line 3, saw 4": "state,action,next\na,go,a\na,go,a,a\n",
    "not a CSV table with a line of column names": "",
}


@pytest.mark.parametrize("message", BROKEN)
def test_what_is_wrong_is_said(tmp_path, message):
    with pytest.raises(mw.ManywaysError, match="(?s)" + message) as error:
        mw.read(put(tmp_path, BROKEN[message]))
    assert "table.csv" in str(error.value)


def test_a_next_state_that_is_misspelt_is_named(tmp_path):
    mdp = mw.read(
        put(
            tmp_path,
            "state,action,next,prob\nhome,go,work,1\nwork,back,home,0.5\nwork,back,hmoe,0.5\nwork,stay,work,1\n",
        )
    )
    with pytest.raises(mw.NotWeaklyAccessible, match="check the spelling of 'hmoe', which leads nowhere"):
        mw.plan(mdp, 1)


def test_text_that_is_not_utf_8(tmp_path):
    path = tmp_path / "latin.csv"
    path.write_bytes("state,action,next\nGröße,go,Größe\n".encode("latin-1"))
    with pytest.raises(mw.SourceError, match="CSV UTF-8"):
        mw.read(path)


@given(st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_a_model_is_read_as_it_was_written(tmp_path_factory, seed):
    mdp = random_accessible_mdp(np.random.default_rng(seed), 5, 3)
    path = tmp_path_factory.mktemp("csv") / "model.csv"
    write_csv(mdp, path)
    again = read_csv(path)
    np.testing.assert_array_equal(again.transitions.toarray(), mdp.transitions.toarray())
    np.testing.assert_array_equal(again.reward, mdp.reward)
    np.testing.assert_allclose(again.start, mdp.start, rtol=1e-15)


@pytest.mark.parametrize("source", ["nine-rooms:3", "four-rooms:1?goal_reward=7"])
def test_worlds_keep_their_digest(tmp_path, source):
    mdp = mw.read(source)
    write_model(mdp, tmp_path / "world.csv")
    assert mw.read(tmp_path / "world.csv").digest == mdp.digest


def test_names_that_spreadsheets_would_run(tmp_path):
    rows = [("=1+1", "@go", "=1+1", 1.0, 0.0)]
    write_csv(mw.MDP.from_transitions(rows), tmp_path / "model.csv")
    assert "'=1+1,'@go,'=1+1" in (tmp_path / "model.csv").read_text()
    assert mw.read(tmp_path / "model.csv").state_names == ("=1+1",)


def test_a_table_of_more_than_one_piece(tmp_path):
    n = CHUNK + 5
    path = put(tmp_path, "state,action,next\n" + "".join(f"{i},go,{(i + 1) % n}\n" for i in range(n)))
    mdp = mw.read(path)
    np.testing.assert_array_equal(mdp.transitions.indices, (np.arange(n) + 1) % n)


@pytest.mark.parametrize("library", [pandas, polars], ids=lambda module: module.__name__)
def test_data_frames(tmp_path, library):
    path = put(tmp_path, TABLE)
    assert mw.read(library.read_csv(path)).digest == mw.read(path).digest


def test_numbers_as_names_in_a_data_frame():
    frame = pandas.DataFrame({"s": [0, 1], "a": [0.0, 0.0], "next": [1, 0], "label": ["x", None]})
    mdp = mw.read(frame)
    assert mdp.state_names == ("0", "1")
    assert mdp.action_names == ("0",)
    assert list(mdp.labels) == ["x"]


def test_a_workbook(tmp_path):
    book = openpyxl.Workbook()
    for row in pandas.read_csv(put(tmp_path, TABLE)).T.reset_index().T.itertuples(index=False):
        book.active.append(list(row))
    book.create_sheet("other").append(["nothing"])
    book.save(tmp_path / "book.xlsx")
    assert mw.read(tmp_path / "book.xlsx").digest == mw.read(put(tmp_path, TABLE)).digest
    with pytest.raises(mw.SourceError, match="no column 'state'"):
        mw.read(f"{tmp_path / 'book.xlsx'}?sheet=other")
    with pytest.raises(mw.SourceError, match="it has Sheet, other"):
        mw.read(f"{tmp_path / 'book.xlsx'}?sheet=third")
    with pytest.raises(mw.SourceError, match="not an Excel workbook"):
        mw.read(put(tmp_path, "no zip", "broken.xlsx"))


PIECES = st.sampled_from(["", ",", ";", "1,5", "yes", "next", "'", *fuzzing.PIECES])


@settings(max_examples=200, deadline=None)
@given(text=fuzzing.damaged(TABLE, PIECES))
def test_damaged_tables_are_read_or_refused(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("csv") / "table.csv"
    path.write_text(text, encoding="utf-8", newline="")
    assert isinstance(fuzzing.read_or_refusal(mw.read, path), mw.MDP | str)


def test_every_spelling_means_one_column():
    every = [spelling for spellings in SPELLINGS.values() for spelling in spellings]
    assert len(every) == len(set(every))
