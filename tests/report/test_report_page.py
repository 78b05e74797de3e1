"""The page as a file."""

from __future__ import annotations

import re


def test_the_report_is_one_file_of_less_than_a_megabyte_that_asks_for_nothing(report):
    text = report.read_text()
    assert len(text.encode()) < 1_000_000
    assert not re.search(r'\s(src|href)="(?!#|data:)', text)
    assert "http-equiv" in text
    assert "://" not in text
