"""The paper's figures from rows: its axes, with the methods side by side."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from manyways.draw import occupancy_maps, save_picture, world_map
from manyways.formats import read
from manyways.planning import plan_or_interrupt
from manyways.studies.results import Results
from manyways.studies.trial import METHODS

if TYPE_CHECKING:
    from manyways.studies.experiments import Settings

COLOURS = {
    "vertex-ascent": "#08519c",
    "frank-wolfe": "#d95f0e",
    "projected-gradient": "#756bb1",
    "projected-gradient-slsqp": "#9e9ac8",
}
"""Told apart in grey and by the colour-blind as well, together with their marks."""
MARKS = {"vertex-ascent": "o", "frank-wolfe": "s", "projected-gradient": "^", "projected-gradient-slsqp": "v"}
GREY = "#888888"


def worlds(_: Results, settings: Settings) -> dict[str, Figure]:
    figure = Figure(figsize=(8, 4.4), layout="constrained")
    for panel, name in zip(figure.subplots(1, 2), ("four-rooms", "nine-rooms"), strict=True):
        mdp = read(f"{name}:{settings.seed}")
        world_map(panel, mdp, np.zeros(mdp.n_states))
        panel.set_title(f"{name}:{settings.seed}")
    return {"worlds": figure}


def methods(found: Results, _: Settings) -> dict[str, Figure]:
    figure = Figure(figsize=(10, 3.6), layout="constrained")
    columns = (("reward", "reward per policy"), ("diversity", "diversity"), ("seconds", "seconds"))
    names = found.methods()
    for panel, (column, label) in zip(figure.subplots(1, 3), columns, strict=True):
        for i, name in enumerate(names):
            values = [row[column] for row in found.good if row["method"] == name]
            panel.bar(i, np.mean(values), yerr=np.std(values), color=COLOURS[name], capsize=4, width=0.6)
            height = np.mean(values)
            panel.annotate(f"{height:.3g}", (i - 0.27, height), xytext=(0, 2), textcoords="offset points", fontsize=9)
        panel.set_xticks(range(len(names)), [name.replace("-", "\n", 1) for name in names], fontsize=8)
        panel.set_title(label, fontsize=11)
        if column == "seconds":
            panel.set_yscale("log")
            panel.yaxis.set_minor_formatter(NullFormatter())
    return {"methods": figure}


def over(axis: str, label: str) -> Callable[[Results, Settings], dict[str, Figure]]:
    """Reward (optimal in grey), diversity and, where there are doors to count, distinct routes along an axis."""

    def draw(found: Results, _: Settings) -> dict[str, Figure]:
        columns = [("reward", "reward per policy"), ("diversity", "mean pairwise diversity (nats)")]
        if any((row["distinct_routes"] or 0) > 0 for row in found.good) and found.study != "transition":
            columns.append(("distinct_routes", "distinct routes"))
        figure = Figure(figsize=(4.6 * len(columns), 3.9), layout="constrained")
        for panel, (column, title) in zip(np.atleast_1d(figure.subplots(1, len(columns))), columns, strict=True):
            if column == "reward" and found.methods():
                _line(panel, *found.series(axis, "optimal_reward", found.methods()[0]), GREY, "", "optimal")
            for method in found.methods():
                series = found.series(axis, column, method)
                _line(panel, *series, COLOURS[method], MARKS[method], method)
            panel.set_xlabel(label)
            panel.set_ylabel(title)
            panel.spines[["top", "right"]].set_visible(False)
            panel.legend(frameon=False, fontsize=9)
        return {found.study: figure}

    return draw


def _line(
    panel: Axes, values: np.ndarray, mean: np.ndarray, deviation: np.ndarray, colour: str, mark: str, name: str
) -> None:
    panel.plot(values, mean, color=colour, marker=mark or None, markersize=4, linewidth=1.5, label=name)
    panel.fill_between(values, mean - deviation, mean + deviation, color=colour, alpha=0.15, linewidth=0)


def maps(axis: str) -> Callable[[Results, Settings], dict[str, Figure]]:
    """The plans of each row as occupancy maps, planned again: the same settings give the same plans."""

    def draw(found: Results, _: Settings) -> dict[str, Figure]:
        drawn = {}
        for row in found.good:
            mdp = read(row["source"])
            plans = plan_or_interrupt(mdp, row["k"], row["tradeoff"], seed=row["seed"], method=METHODS[row["method"]])
            titles = [f"plan {i + 1}: reward {reward:.2f}" for i, reward in enumerate(plans.rewards)]
            value = f"{axis} {row[axis]:g}"
            heading = f"{mdp.name}, {row['method']}, {value}: {row['distinct_routes']} distinct routes"
            name = f"{found.study}-{row['method']}-{row[axis]:g}"
            drawn[name] = occupancy_maps(mdp, plans.occupancies, titles, heading)
        return drawn

    return draw


def theory(found: Results, _: Settings) -> dict[str, Figure]:
    figure = Figure(figsize=(9.5, 3.9), layout="constrained")
    panels = figure.subplots(1, 2)
    names = {"projected-gradient": "Theorem 1: gradient mapping", "frank-wolfe": "Theorem 2: Frank-Wolfe gap"}
    for panel, (method, title) in zip(panels, names.items(), strict=True):
        for i, row in enumerate(row for row in found.good if row["method"] == method):
            steps = np.arange(1, len(row["measured"]) + 1)
            measured = np.maximum(row["measured"], 1e-12)
            panel.loglog(steps, measured, color=COLOURS[method], alpha=0.7, label="" if i else "smallest measured")
            panel.loglog(steps, row["bound"], "--", color=GREY, alpha=0.7, label="" if i else "bound")
        panel.set_title(title, fontsize=11)
        panel.xaxis.set_minor_formatter(NullFormatter())
        panel.set_xlabel("T + 1")
        panel.legend(frameon=False, fontsize=9)
    return {"theory": figure}


def save_all(drawn: dict[str, Figure], folder: Path) -> None:
    for name, figure in drawn.items():
        for ending in (".png", ".svg"):
            save_picture(figure, folder / f"{name}{ending}")
