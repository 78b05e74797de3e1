"""The paper's figures, drawn from rows: the axes are the paper's, and the methods are compared in each figure.

At the end: what the figures of other studies share.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import cycle
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter
from scipy.optimize import isotonic_regression

from manyways.draw import occupancy_maps, save_picture, world_map
from manyways.formats import read
from manyways.planning import plan_or_interrupt
from manyways.studies.results import Results
from manyways.studies.study import Settings
from manyways.studies.trial import method_named
from manyways.types import Floats

STYLES = {
    "vertex-ascent": ("#08519c", "o"),
    "frank-wolfe": ("#d95f0e", "s"),
    "projected-gradient": ("#756bb1", "^"),
    "projected-gradient-slsqp": ("#9e9ac8", "v"),
}
"""The colour and marker of each method. They can be distinguished in greyscale and by colour-blind readers."""
OTHER_STYLES = (("#31a354", "D"), ("#dd1c77", "P"), ("#636363", "X"), ("#8c6d31", "*"))
"""For the methods of other packages, in turn."""
GREY = "#888888"


def styles_of(methods: Sequence[str]) -> dict[str, tuple[str, str]]:
    """The colour and marker of each of these methods."""
    others = cycle(OTHER_STYLES)
    return {name: STYLES[name] if name in STYLES else next(others) for name in methods}


def worlds(_: Results, settings: Settings) -> dict[str, Figure]:
    """The maps of the first four-room and the first nine-room world."""
    figure = Figure(figsize=(8, 4.4), layout="constrained")
    for panel, name in zip(figure.subplots(1, 2), ("four-rooms", "nine-rooms"), strict=True):
        mdp = read(f"{name}:{settings.seed}")
        world_map(panel, mdp, np.zeros(mdp.n_states))
        panel.set_title(f"{name}:{settings.seed}")
    return {"worlds": figure}


def methods(found: Results, _: Settings) -> dict[str, Figure]:
    """Bars of mean reward, diversity and time for each method."""
    figure = Figure(figsize=(10, 3.6), layout="constrained")
    columns = (("reward", "reward per policy"), ("diversity", "diversity"), ("seconds", "seconds"))
    names = found.methods()
    styles = styles_of(names)
    for panel, (column, label) in zip(figure.subplots(1, 3), columns, strict=True):
        for i, name in enumerate(names):
            values = [row[column] for row in found.good if row["method"] == name]
            panel.bar(i, np.mean(values), yerr=np.std(values), color=styles[name][0], capsize=4, width=0.6)
            height = np.mean(values)
            panel.annotate(f"{height:.3g}", (i - 0.27, height), xytext=(0, 2), textcoords="offset points", fontsize=9)
        panel.set_xticks(range(len(names)), [name.replace("-", "\n", 1) for name in names], fontsize=8)
        panel.set_title(label, fontsize=11)
        if column == "seconds":
            panel.set_yscale("log")
            panel.yaxis.set_minor_formatter(NullFormatter())
    return {"methods": figure}


def over(axis: str, label: str) -> Callable[[Results, Settings], dict[str, Figure]]:
    """Draws reward (with the optimal reward in grey), diversity and, if the worlds have doors, distinct routes."""

    def draw(found: Results, _: Settings) -> dict[str, Figure]:
        columns = [("reward", "reward per policy"), ("diversity", "mean pairwise diversity (nats)")]
        if any((row["distinct_routes"] or 0) > 0 for row in found.good) and found.study != "transition":
            columns.append(("distinct_routes", "distinct routes"))
        figure = Figure(figsize=(4.6 * len(columns), 3.9), layout="constrained")
        for panel, (column, title) in zip(np.atleast_1d(figure.subplots(1, len(columns))), columns, strict=True):
            if column == "reward" and found.methods():
                _line(panel, *found.series(axis, "optimal_reward", found.methods()[0]), GREY, "", "optimal")
            for method, style in styles_of(found.methods()).items():
                _line(panel, *found.series(axis, column, method), *style, method)
            label_axes(panel, label, title)
            panel.legend(frameon=False, fontsize=9)
        return {found.study: figure}

    return draw


def _line(
    panel: Axes, values: np.ndarray, mean: np.ndarray, deviation: np.ndarray, colour: str, mark: str, name: str
) -> None:
    panel.plot(values, mean, color=colour, marker=mark or None, markersize=4, linewidth=1.5, label=name)
    panel.fill_between(values, mean - deviation, mean + deviation, color=colour, alpha=0.15, linewidth=0)


def maps(axis: str) -> Callable[[Results, Settings], dict[str, Figure]]:
    """Draws the plans of each row as occupancy maps.

    Rows hold no occupancies, so each row is planned again; the same settings give the same plans.
    """

    def draw(found: Results, _: Settings) -> dict[str, Figure]:
        drawn = {}
        for row in found.good:
            mdp = read(row["source"])
            method = method_named(row["method"])
            plans = plan_or_interrupt(mdp, row["k"], row["tradeoff"], seed=row["seed"], method=method)
            titles = [f"plan {i + 1}: reward {reward:.2f}" for i, reward in enumerate(plans.rewards)]
            value = f"{axis} {row[axis]:g}"
            heading = f"{mdp.name}, {row['method']}, {value}: {row['distinct_routes']} distinct routes"
            name = f"{found.study}-{row['method']}-{row[axis]:g}"
            drawn[name] = occupancy_maps(mdp, plans.occupancies, titles, heading)
        return drawn

    return draw


def theory(found: Results, _: Settings) -> dict[str, Figure]:
    """What each theorem bounds, and its bound, over the iterations."""
    figure = Figure(figsize=(9.5, 3.9), layout="constrained")
    panels = figure.subplots(1, 2)
    names = {"projected-gradient": "Theorem 1: gradient mapping", "frank-wolfe": "Theorem 2: Frank-Wolfe gap"}
    for panel, (method, title) in zip(panels, names.items(), strict=True):
        for i, row in enumerate(row for row in found.good if row["method"] == method):
            steps = np.arange(1, len(row["measured"]) + 1)
            measured = np.maximum(row["measured"], 1e-12)
            panel.loglog(steps, measured, color=STYLES[method][0], alpha=0.7, label="" if i else "smallest measured")
            panel.loglog(steps, row["bound"], "--", color=GREY, alpha=0.7, label="" if i else "bound")
        panel.set_title(title, fontsize=11)
        panel.xaxis.set_minor_formatter(NullFormatter())
        panel.set_xlabel("T + 1")
        panel.legend(frameon=False, fontsize=9)
    return {"theory": figure}


def shown_size(sizes: Sequence[int]) -> int:
    """The size of sets that figures and tables show: 6 if there is one, otherwise the largest."""
    return 6 if 6 in sizes else max(sizes)


def kept_apart(heights: Sequence[float], gap: float) -> Floats:
    """Rising heights moved as little as possible, such that neighbours are at least `gap` apart."""
    steps = gap * np.arange(len(heights))
    return isotonic_regression(np.asarray(heights) - steps).x + steps


def label_axes(panel: Axes, x: str, y: str) -> None:
    """Name both axes; no frame."""
    panel.set_xlabel(x)
    panel.set_ylabel(y)
    panel.spines[["top", "right"]].set_visible(False)


def save_all(drawn: dict[str, Figure], folder: Path) -> None:
    """Write each figure as PNG and SVG."""
    for name, figure in drawn.items():
        for ending in (".png", ".svg"):
            save_picture(figure, folder / f"{name}{ending}")
