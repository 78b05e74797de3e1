"""Writes the verdicts on the paper's claims into docs/studies.md, as `manyways paper all` finds them.

    python docs/tools/verdicts.py             # one to two minutes on two cores
    python docs/tools/verdicts.py --out paper # with the rows that `manyways paper all` left in the folder `paper`

They are not made with every build of the site, which would take much longer. tests/documents/test_paper_verdicts.py compares the
page with a run of a single trial: all claims, and the figures of those that are judged by a single trial.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path

import manyways as mw
from manyways.studies.study import StudyResults
from manyways.studies.verdicts import WORDS

PAGE = Path(__file__).parents[1] / "studies.md"
PLACE = re.compile(r"(?<=<!-- verdicts: python docs/tools/verdicts.py -->\n\n).*?(?=\n<!-- end of verdicts -->)", re.S)


def rows_of(found: Mapping[str, StudyResults]) -> list[tuple[str, ...]]:
    """Study, method, claim, the figures of this run, those of the paper, and the verdict, of each claim."""
    return [
        (study, verdict.method, verdict.claim, verdict.here, verdict.paper, WORDS[verdict.holds])
        for study, results in found.items()
        for verdict in results.verdicts
    ]


def table(rows: list[tuple[str, ...]]) -> str:
    """How many claims hold, and a table of all, in the order of the program."""
    count = {word: sum(row[-1] == word for row in rows) for word in WORDS.values()}
    sentence = (
        f"Of {len(rows)} verdicts, {count['holds']} are *holds*, {count['does not hold']} *does not hold*, and "
        f"{count['cannot be told']} *cannot be told*:"
    )
    head = ("study", "method", "claim", "here", "the paper", "verdict")
    lines = [f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in (head, ("---",) * len(head), *rows)]
    return "\n".join([sentence, "", *lines, ""])


def rows_shown(page: str) -> list[tuple[str, ...]]:
    """The rows of the table in the text of the page."""
    shown = "".join(PLACE.findall(page))
    lines = [line for line in shown.splitlines() if line.startswith("|")]
    return [tuple(cell.strip() for cell in line.split("|")[1:-1]) for line in lines[2:]]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write the verdicts on the paper's claims into docs/studies.md.")
    parser.add_argument("--out", type=Path, help="a folder of `manyways paper all`")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        results = mw.paper(out=given.out or folder)
    text = table(rows_of(results))
    PAGE.write_text(PLACE.sub(lambda _: text, PAGE.read_text()))
    print(text)
