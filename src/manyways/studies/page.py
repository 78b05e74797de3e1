"""The page of a report: claims, the numbers of this run, verdicts, tables and figures."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, PackageLoader

from manyways.files import write_bytes
from manyways.planning import library_versions
from manyways.studies.study import Report, S, StudyResults
from manyways.studies.verdicts import WORDS


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
    folder: Path,
    report: Report[S],
    settings: S,
    results: Mapping[str, StudyResults],
    unfinished: Sequence[Unfinished],
) -> Path:
    """Write the page with these results, by the names of their studies, and the pictures of them in the folder."""
    template = Environment(loader=PackageLoader("manyways", "studies/templates"), autoescape=True).get_template(
        "studies.html"
    )
    sections = [
        {
            "study": study,
            "results": results[name],
            "pictures": [(path.stem, _embedded(path)) for path in _pictures(folder, name)],
            "tables": study.tables(results[name]),
            "from_paper": any(verdict.paper for verdict in results[name].verdicts),
        }
        for name, study in report.studies.items()
        if name in results
    ]
    verdicts = [verdict for section in sections for verdict in section["results"].verdicts]
    text = template.render(
        report=report,
        sections=sections,
        unfinished=unfinished,
        holding=sum(verdict.holds is True for verdict in verdicts),
        failing=sum(verdict.holds is False for verdict in verdicts),
        open=sum(verdict.holds is None for verdict in verdicts),
        words=WORDS,
        settings=settings,
        versions=library_versions(),
    )
    path = folder / f"{report.name}.html"
    write_bytes(path, text.encode())
    return path


def _pictures(folder: Path, name: str) -> list[Path]:
    exact = folder / f"{name}.png"
    return [exact] if exact.exists() else sorted(folder.glob(f"{name}-*.png"))


def _embedded(path: Path) -> str:
    return "data:image/png;base64," + base64.b64encode(path.read_bytes()).decode()
