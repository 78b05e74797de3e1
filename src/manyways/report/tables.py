"""The tables of the page: measures with better and worse marked, and distances between plans."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

from manyways.describe import Measure
from manyways.describe.wording import aligned, tabled
from manyways.objectives.divergence import LARGEST
from manyways.plans.planset import PlanSet

LIKE = 0.005
"""Shares that differ by less than this count as the same for all plans."""
NUMBERED_CELLS = 30
"""Up to this many plans, distances are a table of numbers; beyond, a picture that shows a number when pointed at."""


@dataclass(frozen=True)
class Cell:
    """One number of the table of measures.

    Attributes:
        text: the number as shown.
        tone: from -1, the worst of the column, to 1, the best.
        sort: the number by which the table is sorted.
        rank: "best", "worst" or "".
    """

    text: str
    tone: float
    sort: float
    rank: str = ""


def texts_of(measure: Measure) -> list[str]:
    """The values of a measure as text; rewards all have the same number of decimals."""
    if measure.unit not in ("share", "steps"):
        return aligned(measure.values)

    def text(value: float | None) -> str:
        if value is None or not isfinite(value):
            return "–"
        return tabled(value) if measure.unit == "share" else f"{value:,.1f}"

    return [text(value) for value in measure.values]


def measure_table(measured: list[Measure], k: int, best: dict[str, float | None] | None = None) -> dict[str, Any]:
    """Columns and rows; measures that are nearly the same for all k plans are listed apart, except the first two.

    `best` are the measures of the best plan, by name, which is the last row, for reference.
    """
    shown = [m for i, m in enumerate(measured) if i < 2 or k == 1 or not _alike(m)]
    columns = [{"name": m.name, "meaning": m.meaning, "better": m.better} for m in shown]
    cells = [cells_of(measure) for measure in shown]
    same = [(m.name, _span(m)) for m in measured if m not in shown]
    reference = None
    if best is not None:
        both = [replace(m, values=(*m.values, best.get(m.name))) for m in shown]
        reference = [texts_of(measure)[-1] for measure in both]
    return {
        "columns": columns,
        "folded": k > NUMBERED_CELLS,
        "rows": [[column[i] for column in cells] for i in range(k)],
        "same": same,
        "best": reference,
    }


def _span(measure: Measure) -> str:
    """The least and the largest value, or one of them if both look the same."""
    known = [(value, text) for value, text in zip(measure.values, texts_of(measure), strict=True) if value is not None]
    return " to ".join(dict.fromkeys(end(known)[1] for end in (min, max))) if known else "–"


def _alike(measure: Measure) -> bool:
    """Whether the plans hardly differ in a measure."""
    known = [value for value in measure.values if value is not None]
    close = measure.unit == "share" and len(known) == len(measure.values) and max(known) - min(known) < LIKE
    return close or len(set(texts_of(measure))) == 1


def cells_of(measure: Measure) -> list[Cell]:
    """The column of a measure."""
    known = [value for value in measure.values if value is not None and isfinite(value)]
    low, high = (min(known), max(known)) if known else (0.0, 0.0)
    texts = texts_of(measure)
    level = measure.better == 0 or len(set(texts)) == 1  # differences too small to be read are not marked
    cells = []
    for value, text in zip(measure.values, texts, strict=True):
        if value is None or not isfinite(value):
            cells.append(Cell(text, 0.0, float("-inf")))
            continue
        tone = 0.0 if level or high == low else measure.better * (2 * (value - low) / (high - low) - 1)
        cells.append(Cell(text, round(tone, 2), value))
    if level:
        return cells
    # Numbers that look the same have the same rank.
    best, worst = (max(cells, key=lambda cell: sign * cell.tone).text for sign in (1, -1))
    ranks = {worst: "worst", best: "best"}
    return [replace(cell, rank=ranks.get(cell.text, "")) for cell in cells]


def distance_table(plans: PlanSet) -> list[list[dict[str, Any]]] | None:
    """The distances between all pairs; None if there are too many plans for a table."""
    if plans.k > NUMBERED_CELLS:
        return None
    return [
        [
            {"text": f"{value:.2f}", "share": round(float(value / LARGEST), 3), "own": i == j}
            for j, value in enumerate(row)
        ]
        for i, row in enumerate(plans.distances)
    ]


def labelled_plans(k: int) -> list[int]:
    """The numbers of plans that have a label beside the picture of distances: the first and every fifth or, of very many, tenth
    and so on."""
    step = 5 * -(-k // 50)
    return [1, *range(step, k + 1, step)]
