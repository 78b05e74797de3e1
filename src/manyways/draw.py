"""Pictures of plans: the paper's occupancy maps, or bars for models without a layout.

Walls are black, the start is red, the goal purple, and time spent blue. Every picture is a `Figure` of its own: the
global state of matplotlib is not touched, and no screen is needed.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, PowerNorm, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from manyways.errors import OutputError, SettingError
from manyways.files import check_writable, write_bytes
from manyways.model.mdp import MDP
from manyways.model.occupancy import state_occupancy
from manyways.types import Floats

BLUES = LinearSegmentedColormap.from_list("occupancy", ["#ffffff", "#9ecae1", "#3182bd", "#08306b"])
WALL, START, GOAL, TIME = "black", "#d62728", "#7b2cbf", "#3182bd"
BARS_SHOWN = 12
SPECKS_FROM = 60
"""On maps with more cells than this along a side, starts and goals are marked by a larger dot."""
PICTURE_FORMATS = {".png", ".svg", ".pdf"}


def occupancy_maps(mdp: MDP, occupancies: Floats, titles: Sequence[str], heading: str) -> Figure:
    """(k, N) occupancies -> a figure with one panel for each plan."""
    k = len(occupancies)
    columns = min(k, 3)
    rows = -(-k // columns)
    height = 1.0 if mdp.layout is None else np.clip(mdp.layout.shape[0] / mdp.layout.shape[1], 0.25, 2.0)
    figure = Figure(figsize=(3.5 * columns, (3.5 * height + 0.25) * rows + 0.9), layout="constrained")
    figure.suptitle(heading, fontsize=12 if columns > 1 else 9, parse_math=False)
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    by_state = state_occupancy(mdp, occupancies)
    for panel, values, title in zip(panels, by_state, titles, strict=False):
        panel.set_title(title, fontsize=10, parse_math=False)
        if mdp.layout is None:
            _bars(panel, mdp, values)
        else:
            world_map(panel, mdp, values)
    for panel in panels[k:]:
        panel.set_visible(False)
    if mdp.layout is not None:
        marks = [
            Patch(color=WALL, label=mdp.layout.blocked_means or "wall"),
            Patch(color=START, label="start"),
            Patch(color=GOAL, label="goal"),
            Patch(color=TIME, label="time spent"),
        ]
        legend = figure.legend(handles=marks, loc="outside lower center", ncols=4, frameon=False, fontsize=9)
        for text in legend.get_texts():
            text.set_parse_math(False)
    return figure


def falling_distances(distances: Sequence[float], apart: float, name: str) -> Figure:
    """How far each further way is from those before it, and the distance below which ways are not called different."""
    figure = Figure(figsize=(6, 3.6), layout="constrained")
    panel = figure.subplots()
    numbers = range(2, 2 + len(distances))
    panel.plot(numbers, distances, "o-", color=TIME)
    panel.axhline(apart, color=WALL, linestyle="--", linewidth=1)
    panel.annotate("nearer ways are not called different", (1.02, apart), fontsize=8, va="bottom", xycoords="data")
    panel.set(xlim=(1, max(len(distances), 2) + 1.5), ylim=(0, 0.72), xticks=list(numbers))
    panel.set_xlabel("number of the way")
    panel.set_ylabel("distance from the nearest way before it")
    panel.set_title(name, parse_math=False)
    return figure


def check_picture_path(path: Path) -> None:
    """Raise an `OutputError` if no picture can be written to `path`. Called before long work."""
    if path.suffix.lower() not in PICTURE_FORMATS:
        raise OutputError(f"cannot write {path}: a picture ends in one of {', '.join(sorted(PICTURE_FORMATS))}")
    check_writable(path)


def save_picture(figure: Figure, path: Path) -> None:
    check_picture_path(path)
    content = io.BytesIO()
    figure.savefig(content, dpi=130, format=path.suffix[1:].lower())
    write_bytes(path, content.getvalue())


def world_map(panel: Axes, mdp: MDP, by_state: Floats) -> None:
    """Draw one panel: the map of a model with a layout, and (S,) the time spent in each state."""
    layout = mdp.layout
    if layout is None:
        raise SettingError(f"{mdp.name} has no layout, so no map of it can be drawn")
    time = layout.image(by_state)
    # The square root keeps a path that is used once a round visible beside a cell in which a plan stays.
    level = np.asarray(PowerNorm(0.5, vmin=0.0, vmax=max(time.max(), 1e-12))(time))
    picture = BLUES(level)[..., :3]
    wall, crossed = np.array(to_rgb(WALL)), 0.6 * level[layout.blocked][:, None]
    picture[layout.blocked] = (1 - crossed) * wall + crossed * np.array(to_rgb(TIME))
    for label, colour in (("start", START), ("goal", GOAL)):
        cells = layout.cells[mdp.labels[label]] if label in mdp.labels else np.empty(0, np.int64)
        cells = np.append(cells, layout.goals) if label == "goal" else cells
        picture.reshape(-1, 3)[cells] = to_rgb(colour)
        if max(layout.shape) > SPECKS_FROM:
            rows, columns = np.divmod(cells, layout.shape[1])
            panel.scatter(columns, rows, s=40, color=colour, edgecolors="white", linewidths=1, zorder=2)
    panel.imshow(picture)  # by default matplotlib smooths only pictures with more cells than pixels: thin walls stay
    panel.set_xticks([])
    panel.set_yticks([])


def _bars(panel: Axes, mdp: MDP, by_state: Floats) -> None:
    top = np.argsort(-by_state, kind="stable")[:BARS_SHOWN][::-1]
    top = top[by_state[top] > 0]
    panel.barh(range(len(top)), by_state[top], color=TIME)
    panel.set_yticks(range(len(top)), [_shortened(mdp.state_name(int(s))) for s in top], parse_math=False)
    panel.set_xlabel("share of time")
    panel.tick_params(labelsize=8)


def _shortened(name: str) -> str:
    """The name without its middle if it is long, since names of states often begin alike."""
    return name if len(name) <= 32 else f"{name[:15]}…{name[-16:]}"
