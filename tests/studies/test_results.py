"""Rows as CSV."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyways.studies.results import Results

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6) | st.sampled_from(
    ["=1", "'=1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "a\r=1", "a\n=1", "＝1", "'"]
)


def cells(folder: Path, rows: list[dict]) -> list[dict[str, str]]:
    Results("study", rows).write_csv(folder / "study.csv")
    with (folder / "study.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, strict=True))


@given(texts=st.lists(TEXT, min_size=1, max_size=4))
def test_spreadsheets_do_not_evaluate_text(texts, tmp_path_factory):
    rows = [{"source": text, "error": None} for text in texts]
    found = [line["source"] for line in cells(tmp_path_factory.mktemp("results"), rows)]
    assert [cell.removeprefix("'") for cell in found] == texts
    assert all(cell[:1] not in tuple("=+-@\t\r\n") for cell in found)


@pytest.mark.parametrize("value", [-1.5, 1e300, -0.0, 3, -7])
def test_numbers_stay_numbers(value, tmp_path):
    (line,) = cells(tmp_path, [{"reward": value, "error": None}])
    assert float(line["reward"]) == value
    assert line["error"] == ""


def test_a_sequence_becomes_a_line_per_entry(tmp_path):
    lines = cells(tmp_path, [{"source": "=1", "measured": [-1.0, -2.0], "error": None}])
    assert lines == [
        {"iteration": "0", "source": "'=1", "measured": "-1.0", "error": ""},
        {"iteration": "1", "source": "'=1", "measured": "-2.0", "error": ""},
    ]
