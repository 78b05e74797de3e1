"""The results of benchmarks: Markdown tables, and the plot of the growth."""

from __future__ import annotations

import os
import platform
from contextlib import suppress
from pathlib import Path
from typing import Any

from manyways.bench.measurements import Row


def environment() -> str:
    """One line with the machine, Python and the versions of the libraries, and of other solvers that are installed."""
    from importlib.metadata import PackageNotFoundError, version

    found = [f"{name} {version(name)}" for name in ("manyways", "numpy", "scipy", "numba", "highspy")]
    for name in ("quantecon", "mdpsolver", "stormpy"):
        with suppress(PackageNotFoundError):
            found.append(f"{name} {version(name)}")
    versions = ", ".join(found)
    return f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, {versions}"


def markdown(title: str, rows: list[Row]) -> str:
    """The rows of a part as a Markdown table."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    lines = [f"## {title}", "", f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    lines += [f"| {' | '.join(_shown(row.get(name, '')) for name in columns)} |" for row in rows]
    return "\n".join(lines) + "\n"


def draw_growth(rows: list[Row], path: Path) -> None:
    """Draw the time of one `best` over the size of the model, with logarithmic axes."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullFormatter

    from manyways.draw import save_picture

    figure = Figure(figsize=(6, 4.2), layout="constrained")
    panel = figure.subplots()
    choices = [row["choices"] for row in rows]
    for kind, colour in (("cold", "#08306b"), ("warm", "#3182bd")):
        panel.loglog(choices, [row[f"{kind} s"] for row in rows], "o-", color=colour, label=f"best, {kind}")
    start = rows[0]["cold s"]
    for power, style in ((1.0, ":"), (1.5, "--")):
        guide = [start * (n / choices[0]) ** power for n in choices]
        panel.loglog(choices, guide, style, color="grey", linewidth=1, label=f"choices^{power:g}")
    panel.xaxis.set_minor_formatter(NullFormatter())
    panel.set_xlabel("choices (state-action pairs)")
    panel.set_ylabel("seconds")
    panel.set_title("One oracle call on tiled rooms")
    panel.legend(frameon=False)
    save_picture(figure, path)


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.2e}" if 0 < abs(value) < 1e-3 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
