"""The pictures of the page as data: maps as bytes, one for each cell; bars for models without a map."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

import numpy as np

from manyways.model.layout import Grid
from manyways.model.mdp import MDP
from manyways.plans.planset import PlanSet
from manyways.types import Floats, Ints

LARGEST_SIDE = 256
"""Maps with more cells than this along a side are drawn in blocks of cells."""
MOST_MARKS = 50
"""At most this many starts and goals are marked."""
BARS = 5
LEAST_MORE = 0.002
"""A choice is shown as typical of a plan if its share of time exceeds that of each other plan by more than this."""
NOT_SHOWN = 0.0005
"""Shares of time up to this would be shown as 0.0 %."""


def choice_name(mdp: MDP, choice: int) -> str:
    """ "home: bike"."""
    return f"{mdp.state_name(int(mdp.choice_state[choice]))}: {mdp.action_name(choice)}"


def bars(plans: PlanSet, i: int, by_state: Floats) -> list[dict[str, Any]]:
    """What plan i does more than each other plan, the labels in which plans differ, and its most visited states, by share of
    time; (k, S) `by_state` is the time of all plans."""
    mdp, own_time = plans.mdp, by_state[i]
    top = np.argsort(-own_time, kind="stable")[:BARS]
    rows = [(mdp.state_name(int(s)), float(own_time[s]), "Most visited states") for s in top if own_time[s] > NOT_SHOWN]
    times = {name: by_state[:, mask].sum(axis=1) for name, mask in mdp.labels.items() if mask.any()}
    differing = [name for name, time in times.items() if plans.k == 1 or len({_tenths(share) for share in time}) > 1]
    marked = [(name, float(times[name][i]), "Labels") for name in differing]
    marked = sorted((row for row in marked if NOT_SHOWN < row[1] < 1), key=lambda row: -row[1])[:BARS]
    own: list[tuple[str, float, str]] = []
    if plans.k > 1:
        more = plans.occupancies[i] - np.delete(plans.occupancies, i, axis=0).max(axis=0)
        most = np.argsort(-more, kind="stable")[:BARS]
        heading = f"Does more than {'any' if plans.k > 2 else 'the'} other plan"
        own = [
            (choice_name(mdp, int(x)), float(plans.occupancies[i, x]), heading) for x in most if more[x] > LEAST_MORE
        ]
        own.sort(key=lambda row: -row[1])
    # Widths are relative to the longest bar of a kind: among thousands of states, each has a very small share.
    return [
        {"name": name, "kind": kind, "share": _tenths(share), "width": round(100 * share / part[0][1], 1)}
        for part in (own, marked, rows)
        for name, share, kind in part
    ]


def _tenths(share: float) -> str:
    return f"{100 * share:.1f} %"


@dataclass(frozen=True, eq=False)
class Canvas:
    """A grid as it is drawn: cells of the picture, each a block of `block` x `block` cells of the world."""

    layout: Grid
    block: int

    @property
    def shape(self) -> tuple[int, int]:
        rows, columns = self.layout.shape
        return -(-rows // self.block), -(-columns // self.block)

    def cells(self, world_cells: Ints) -> Ints:
        row, column = np.divmod(np.asarray(world_cells, np.int64), self.layout.shape[1])
        return row // self.block * self.shape[1] + column // self.block

    def total(self, picture: np.ndarray) -> Floats:
        """(rows, columns) of the world -> (cells of the picture,) sums."""
        cells = self.cells(np.arange(picture.size))
        return np.bincount(cells, weights=picture.ravel(), minlength=self.shape[0] * self.shape[1]).astype(np.float64)

    def means(self, by_state: Floats) -> Floats:
        """(S,) -> (cells of the picture,) means over the states of each cell; NaN in cells without a state."""
        states = self.total(self.layout.image(np.ones(len(by_state))))
        with np.errstate(invalid="ignore"):
            return self.total(self.layout.image(by_state)) / np.where(states > 0, states, np.nan)


def canvas_of(mdp: MDP) -> Canvas | None:
    """The canvas of a model with a layout."""
    return None if mdp.layout is None else Canvas(mdp.layout, -(-max(mdp.layout.shape) // LARGEST_SIDE))


def map_marks(mdp: MDP) -> dict[str, Any]:
    """The marks that the legend of the maps explains, and what the dark cells are."""
    if mdp.layout is None:
        return {"wall": "", "start": False, "goal": False}
    entered = mdp.layout.blocked.ravel()[mdp.layout.cells].any()
    wall = mdp.layout.blocked_means or ("wall (can be crossed, at a cost)" if entered else "no way through")
    return {
        "wall": wall if mdp.layout.blocked.any() else "",
        "start": bool(mdp.start.any()),
        "goal": bool(mdp.layout.goals.size) or bool(mdp.labels.get("goal", np.zeros(1)).any()),
    }


def world_of(mdp: MDP, canvas: Canvas) -> dict[str, Any]:
    """The map without plans: its size, walls, starts and goals."""
    layout = canvas.layout
    covered = canvas.total(np.ones(layout.shape))
    walls = canvas.total(layout.blocked.astype(float)) / np.maximum(covered, 1)
    goals = np.concatenate([layout.goals, layout.cells[mdp.labels.get("goal", np.zeros(mdp.n_states, bool))]])
    return {
        "rows": canvas.shape[0],
        "columns": canvas.shape[1],
        "block": canvas.block,
        "walls": _text(np.round(255 * walls).astype(np.uint8)),  # in blocks, thin walls are grey and doors visible
        "start": np.unique(canvas.cells(layout.cells[mdp.start > 0])).tolist()[:MOST_MARKS],
        "goals": np.unique(canvas.cells(goals)).tolist()[:MOST_MARKS],
    }


def picture_of(by_state: Floats, canvas: Canvas) -> dict[str, Any]:
    """(S,) time by state -> one byte for each cell.

    The square root keeps a path that is used once a round visible beside a cell in which a plan stays.
    """
    time = canvas.total(canvas.layout.image(by_state))
    peak = max(float(time.max()), 1e-12)
    return {"peak": peak, "time": _text(np.round(255 * np.sqrt(time / peak)).astype(np.uint8))}


def bytes_text(shares: Floats) -> str:
    """Shares of 0 to 1 as text for the script: a byte each."""
    return _text(np.round(255 * shares).astype(np.uint8))


def floats_text(array: Floats) -> str:
    """Numbers as text for the script: 32-bit floats."""
    return _text(array.astype("<f4"))


def _text(array: np.ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
