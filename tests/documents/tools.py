"""The tools that build the site, for tests of them."""

from __future__ import annotations

import sys

from documents.pages import DOCS

sys.path.insert(0, str(DOCS / "tools"))

from examples import blocks_of, difference, folder_of, pages_with_examples, pictures_of, run_page, same, try_page
from generated import KINDS, picture_of_page
from verdicts import rows_of, rows_shown
from verdicts import table as verdict_table

__all__ = [
    "KINDS",
    "blocks_of",
    "difference",
    "folder_of",
    "pages_with_examples",
    "picture_of_page",
    "pictures_of",
    "rows_of",
    "rows_shown",
    "run_page",
    "same",
    "try_page",
    "verdict_table",
]
