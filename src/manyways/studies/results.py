"""The rows of a study: as a table, as a CSV file, and averaged in groups."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from manyways.files import write_bytes
from manyways.files.data_frames import the_pandas
from manyways.files.spreadsheet_cells import cell
from manyways.studies.trial import Row

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class Results:
    """The rows of a study.

    Attributes:
        study: the study's name.
        rows: one per trial, with its settings, its results and `error`: None, or the message of a failed trial.
    """

    study: str
    rows: list[Row]

    @property
    def good(self) -> list[Row]:
        """The rows of the trials that did not fail."""
        return [row for row in self.rows if row["error"] is None]

    @property
    def failed(self) -> list[Row]:
        """The rows of the trials that failed."""
        return [row for row in self.rows if row["error"] is not None]

    def methods(self) -> list[str]:
        """The names of the methods, in the order of the rows."""
        return list(dict.fromkeys(row["method"] for row in self.good))

    def series(self, axis: str, column: str, method: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The values of `axis`, and the mean and standard deviation of `column` over the trials at each value."""
        groups: dict[float, list[float]] = {}
        for row in self.good:
            if row["method"] == method and row[column] is not None:
                groups.setdefault(row[axis], []).append(row[column])
        values = sorted(groups)
        return (
            np.array(values, dtype=float),
            np.array([np.mean(groups[value]) for value in values]),
            np.array([np.std(groups[value]) for value in values]),
        )

    def by_world(self, axis: str, column: str, method: str) -> tuple[np.ndarray, np.ndarray]:
        """The V values of `axis`, and (V, W) the `column` at each of them in each world; NaN where there is no row.

        A world is known by its `seed`; the worlds are the same at each value.
        """
        found = {
            (row[axis], row["seed"]): row[column]
            for row in self.good
            if row["method"] == method and row[column] is not None
        }
        values, worlds = sorted({value for value, _ in found}), sorted({world for _, world in found})
        table = [[found.get((value, world), np.nan) for world in worlds] for value in values]
        return np.array(values, dtype=float), np.array(table, dtype=float).reshape(len(values), len(worlds))

    def mean(self, column: str, **where: Any) -> float:
        """The mean of a column over the rows with these settings; NaN if there are none."""
        return float(np.mean(found)) if (found := list(self._select(column, where))) else float("nan")

    def _select(self, column: str, where: dict[str, Any]) -> Iterator[float]:
        for row in self.good:
            if row[column] is not None and all(row[name] == value for name, value in where.items()):
                yield row[column]

    def frame(self) -> pandas.DataFrame:
        """The rows as a pandas DataFrame."""
        return the_pandas().DataFrame(self.rows)

    def write_csv(self, path: Path, entry: str = "iteration") -> None:
        """Write the rows as CSV. A row that holds sequences, with an entry per iteration, becomes a line per entry.

        `entry` is the name of the column with the number of the entry.

        Text is written so that spreadsheets do not evaluate it (`files.spreadsheet_cells`).
        """
        lines = [line for row in self.rows for line in _lines(row, entry)]
        columns = list(dict.fromkeys(name for line in lines for name in line))
        text = io.StringIO()
        # Without quotes, a carriage return in a text would end its line.
        writer = csv.DictWriter(text, columns, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
        writer.writeheader()
        writer.writerows(
            {name: cell(value) if isinstance(value, str) else value for name, value in line.items()} for line in lines
        )
        write_bytes(path, text.getvalue().encode())


def _lines(row: Row, entry: str) -> list[Row]:
    lengths = {len(value) for value in row.values() if isinstance(value, list)}
    if not lengths:
        return [row]
    return [
        {entry: i} | {name: value[i] if isinstance(value, list) else value for name, value in row.items()}
        for i in range(max(lengths))
    ]
