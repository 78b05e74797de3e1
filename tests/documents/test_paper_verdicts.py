"""The verdicts on the paper's claims that docs/studies.md shows are those of `manyways paper all`."""

from __future__ import annotations

import pytest

import manyways as mw
from documents.pages import DOCS
from documents.tools import rows_of, rows_shown, verdict_table

MAPS = ("tradeoff-maps", "set-size-maps")
"""Studies that have a single trial in any case."""


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return rows_of(mw.paper(trials=1, workers=1, out=tmp_path_factory.mktemp("paper")))


def test_the_page_shows_all_claims(found):
    shown = rows_shown((DOCS / "studies.md").read_text())
    assert [row[:3] for row in shown] == [row[:3] for row in found], "see docs/tools/verdicts.py"


def test_the_page_shows_the_verdicts_of_studies_with_a_single_trial(found):
    shown = rows_shown((DOCS / "studies.md").read_text())
    assert [row for row in shown if row[0] in MAPS] == [row for row in found if row[0] in MAPS]


def test_the_page_counts_its_verdicts():
    page = (DOCS / "studies.md").read_text()
    assert verdict_table(rows_shown(page)).splitlines()[0] in page
