"""`paper.html`: the paper's statements, its numbers and this run's, side by side."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader

from manyways.files import write_bytes
from manyways.planning import library_versions

if TYPE_CHECKING:
    from manyways.studies.experiments import Settings, Study
    from manyways.studies.results import Results

COLUMNS = ("reward", "diversity", "objective", "distinct_routes", "seconds")


def write_page(folder: Path, settings: Settings, studies: Sequence[tuple[str, Study, Results]]) -> Path:
    """Write the page for these studies; their pictures, found in the folder, become part of it."""
    template = Environment(loader=PackageLoader("manyways", "studies/templates"), autoescape=True).get_template(
        "paper.html"
    )
    sections = [
        {
            "name": name,
            "study": study,
            "results": found,
            "verdicts": study.claims(found),
            "pictures": [(path.stem, _embedded(path)) for path in _pictures(folder, name)],
            "summary": _summary(found),
        }
        for name, study, found in studies
    ]
    verdicts = [verdict for section in sections for verdict in section["verdicts"]]
    text = template.render(
        sections=sections,
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


def _summary(found: Results) -> list[dict[str, Any]]:
    """Means per method, for studies that compare methods at one setting."""
    if found.study != "methods":
        return []
    return [
        {"method": method} | {column: found.mean(column, method=method) for column in COLUMNS}
        for method in found.methods()
    ]
