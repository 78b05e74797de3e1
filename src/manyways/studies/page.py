"""`paper.html`: the paper's statements, its numbers and the numbers of this run, side by side."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader

from manyways.files import write_bytes
from manyways.planning import library_versions
from manyways.studies.results import Results
from manyways.studies.study import Settings, Study, StudyResults

COLUMNS = ("reward", "diversity", "objective", "distinct_routes", "seconds")


@dataclass(frozen=True)
class Unfinished:
    """A study in the folder that an earlier run did not finish.

    Attributes:
        name: of the study.
        done: trials with a row.
        total: trials that the study needs.
    """

    name: str
    done: int
    total: int


def write_page(
    folder: Path, settings: Settings, studies: Sequence[tuple[Study, StudyResults]], unfinished: Sequence[Unfinished]
) -> Path:
    """Write the page for these studies, with the pictures of them that are in the folder."""
    template = Environment(loader=PackageLoader("manyways", "studies/templates"), autoescape=True).get_template(
        "paper.html"
    )
    sections = [
        {
            "study": study,
            "results": results,
            "pictures": [(path.stem, _embedded(path)) for path in _pictures(folder, results.study)],
            "summary": _summary(results),
        }
        for study, results in studies
    ]
    verdicts = [verdict for _, results in studies for verdict in results.verdicts]
    text = template.render(
        sections=sections,
        unfinished=unfinished,
        holding=sum(verdict.holds is True for verdict in verdicts),
        failing=sum(verdict.holds is False for verdict in verdicts),
        settings=settings,
        versions=library_versions(),
    )
    write_bytes(folder / "paper.html", text.encode())
    return folder / "paper.html"


def _pictures(folder: Path, name: str) -> list[Path]:
    exact = folder / f"{name}.png"
    return [exact] if exact.exists() else sorted(folder.glob(f"{name}-*.png"))


def _embedded(path: Path) -> str:
    return "data:image/png;base64," + base64.b64encode(path.read_bytes()).decode()


def _summary(results: Results) -> list[dict[str, Any]]:
    """Means per method, for the study that compares methods at one setting."""
    if results.study != "methods":
        return []
    return [
        {"method": method} | {column: results.mean(column, method=method) for column in COLUMNS}
        for method in results.methods()
    ]
