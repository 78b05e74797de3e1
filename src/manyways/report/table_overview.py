"""Plans of a model without a map over two variables of its states: boxes for pairs of values, bars for plans.

Colours are what a plan does, heights are shares of its time. Where there are too many values for boxes, each plan has a
picture of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from manyways.describe import Survey, two_variables
from manyways.describe.conditions import missing
from manyways.describe.rules import deciding_states
from manyways.describe.subject import NEVER
from manyways.describe.wording import percent, short
from manyways.model.mdp import MDP
from manyways.types import Bools, Floats, Ints

MOST_BOXES, MOST_BARS = 9, 9
"""Up to so many values of each variable, and up to so many plans, are drawn as bars in boxes."""
ACTIONS = 8
"""The actions with a colour of their own; the others are grey."""
UNSHOWN = 0.01
"""States without a value for a variable are not drawn, which is said if a plan spends more than this share of its time there."""
SEEN = 1e-4
"""Pairs of values with a smaller share of a plan's time are left empty."""
BAR, BOX_HEIGHT, GAP, BELOW = 18.0, 96.0, 8.0, 46.0
LEFT, LETTER, LETTERS = 40.0, 11.0, 20
"""Left of the boxes: room for the name of the variable and for its values, which are cut to so many letters."""
CELL = 16.0


def table_overview(survey: Survey, tints: Sequence[int]) -> dict[str, Any] | None:
    """The picture of a set; None if its states have no two variables to draw it over."""
    pair = two_variables(survey)
    if pair is None:
        return None
    plans, mdp = survey.plans, survey.plans.mdp
    names = [_axis(mdp, name, survey.by_state) for name in pair]
    (down_values, down), (across_values, across) = sorted(names, key=lambda axis: len(axis[0]))
    down_name, across_name = sorted(pair, key=lambda name: len(names[pair.index(name)][0]))
    falls = _is_row(down_name)
    if falls:
        down_values, down = down_values[::-1], np.where(down < 0, down, len(down_values) - 1 - down)
    cells = np.where((down < 0) | (across < 0), -1, down * len(across_values) + across)
    size = len(down_values) * len(across_values)
    shown = [i for i in range(plans.k) if tints[i]]
    colours = action_colours(mdp, plans.occupancies)
    spent = [_spent(mdp, plans.occupancies[i], cells, size) for i in shown]
    time = [own.sum(axis=1) for own in spent]
    action = [_main(mdp, plans.occupancies[i], cells, own) for i, own in zip(shown, spent, strict=True)]
    boxes = max(len(down_values), len(across_values)) <= MOST_BOXES and len(shown) <= MOST_BARS
    if boxes:
        seen = {number for own in spent for number in np.flatnonzero(own.max(axis=0) > SEEN).tolist()}
    else:
        seen = {int(number) for own in action for number in np.unique(own) if number >= 0}
    picture = {
        "down": {"name": short(down_name), "values": down_values, "falls": falls},
        "across": {"name": short(across_name), "values": across_values},
        "forced": not boxes and not deciding_states(mdp)[(survey.by_state > NEVER).any(axis=0)].all(),
        "without": bool((survey.by_state[shown][:, cells < 0].sum(axis=1) > UNSHOWN).any()),
        "actions": [
            {"name": short(name), "colour": colours[number]}
            for number, name in enumerate(mdp.action_names)
            if number in seen
        ],
    }
    rows, columns = len(down_values), len(across_values)
    if boxes:
        titles = [
            [_title(mdp, own[cell], plan) for cell in range(size)] for plan, own in zip(shown, spent, strict=True)
        ]
        beside = LEFT + LETTER * max(map(len, down_values))
        wide = max(BAR * len(shown) + 12.0, LETTER * max(map(len, across_values)) - GAP)
        return picture | _boxes(shown, spent, titles, colours, rows, columns, beside, wide)
    return picture | _multiples(shown, time, action, colours, rows, columns)


def _axis(mdp: MDP, name: str, by_state: Floats) -> tuple[list[str], Ints]:
    """The values of a variable in the states that plans come to, and (S,) the number of each state's value; -1 without one."""
    values = mdp.variables[name]
    met = np.unique(values[(by_state > 0).any(axis=0) & ~missing(values)])
    place = np.minimum(np.searchsorted(met, values), len(met) - 1)
    number = np.where(met[place] == values, place, -1)
    return [_cut(short(_plain(value))) for value in met.tolist()], number


def _is_row(name: str) -> bool:
    """Whether a variable counts the rows of a map or a table, whose first row is on top."""
    return name.replace("_", " ").split()[-1:] == ["row"]


def _cut(text: str) -> str:
    return text if len(text) <= LETTERS else text[: LETTERS - 1] + "…"


def _plain(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _spent(mdp: MDP, occupancy: Floats, cells: Ints, size: int, among: Bools | None = None) -> Floats:
    """(size, a) a plan's time in each cell on each action; with (N,) `among`, only on these choices."""
    here, count = cells[mdp.choice_state], len(mdp.action_names)
    kept = here >= 0 if among is None else (here >= 0) & among
    at = here[kept] * count + mdp.actions[kept]
    return np.bincount(at, occupancy[kept], size * count).astype(np.float64).reshape(size, count)


def _main(mdp: MDP, occupancy: Floats, cells: Ints, spent: Floats) -> Ints:
    """(size,) the action on which a plan spends most of its time in each cell; -1 where it never comes.

    States with only one action count only if the plan decides nothing in the cell.
    """
    decided = _spent(mdp, occupancy, cells, len(spent), deciding_states(mdp)[mdp.choice_state])
    action = np.where(decided.sum(axis=1) > SEEN, decided.argmax(axis=1), spent.argmax(axis=1))
    return np.where(spent.sum(axis=1) > SEEN, action, -1)


def action_colours(mdp: MDP, occupancies: Floats) -> list[int]:
    """The colour of each action, from 1 in the order of the model; 0 for those that are used least, if there are many."""
    used = np.bincount(mdp.actions, occupancies.sum(axis=0), len(mdp.action_names))
    chosen = np.sort(np.argsort(-used, kind="stable")[:ACTIONS])
    colours = [0] * len(mdp.action_names)
    for colour, action in enumerate(chosen.tolist(), 1):
        colours[action] = colour
    return colours


def _title(mdp: MDP, spent: Floats, plan: int) -> str:
    """ "plan 1 is here 38 % of its time: run 21 %, mend_c 11 %, mend_d 6 %", for (a,) the time on each action."""
    order = [action for action in np.argsort(-spent, kind="stable").tolist() if spent[action] > SEEN]
    names = [short(mdp.action_names[action]) for action in order]
    does = [f"{name} {percent(float(spent[action]))}" for name, action in zip(names, order, strict=True)]
    said = ", ".join(does) if len(does) > 1 else "".join(names)
    return f"plan {plan + 1} is here {percent(float(spent.sum()))} of its time: {said}"


def _boxes(
    shown: list[int],
    spent: Sequence[Floats],
    titles: list[list[str]],
    colours: list[int],
    rows: int,
    columns: int,
    beside: float,
    wide: float,
) -> dict[str, Any]:
    most = max(float(own.sum(axis=1).max()) for own in spent)
    boxes, bars = [], []
    for cell in range(rows * columns):
        row, column = divmod(cell, columns)
        x, y = beside + column * (wide + GAP), (rows - 1 - row) * (BOX_HEIGHT + GAP)
        boxes.append({"x": x, "y": y, "empty": all(own[cell].sum() <= SEEN for own in spent)})
        first = x + (wide - BAR * len(shown)) / 2
        for place, plan in enumerate(shown):
            if spent[place][cell].sum() <= SEEN:
                continue
            left = first + place * BAR
            bars.append(
                {
                    "plan": plan,
                    "x": round(left + 1, 1),
                    "top": y + 5,
                    "parts": _parts(spent[place][cell], most, y + BOX_HEIGHT - 22, colours),
                    "number_x": round(left + BAR / 2, 1),
                    "number_y": y + BOX_HEIGHT - 5,
                    "text": titles[place][cell],
                }
            )
    width, height = beside + columns * (wide + GAP), rows * (BOX_HEIGHT + GAP) + BELOW
    return {
        "form": "boxes",
        "most": percent(most),
        "width": width,
        "height": height,
        "left": beside,
        "pixel": round(width / 690, 3),
        "box": {"width": wide, "height": BOX_HEIGHT, "bar": BAR - 2, "full": BOX_HEIGHT - 27},
        "boxes": boxes,
        "bars": bars,
        "rows_at": [round((rows - 1 - row) * (BOX_HEIGHT + GAP) + BOX_HEIGHT / 2, 1) for row in range(rows)],
        "columns_at": [round(beside + column * (wide + GAP) + wide / 2, 1) for column in range(columns)],
    }


def _parts(spent: Floats, most: float, bottom: float, colours: list[int]) -> list[dict[str, Any]]:
    """The parts of a bar, one for each action from the bottom up, the most frequent first."""
    whole = max((BOX_HEIGHT - 28) * float(spent.sum()) / most, 2.0)
    parts = []
    for action in np.argsort(-spent, kind="stable").tolist():
        if spent[action] > SEEN:
            height = whole * float(spent[action] / spent.sum())
            bottom -= height
            parts.append({"y": round(bottom, 1), "height": round(height, 1), "colour": colours[action]})
    return parts


def _multiples(
    shown: list[int],
    time: Sequence[Floats],
    action: Sequence[Ints],
    colours: list[int],
    rows: int,
    columns: int,
) -> dict[str, Any]:
    """A small picture for each plan: colour for what it does, strength for its time."""
    across = 2 if columns <= 20 else 1
    wide, high = columns * CELL + 40, rows * CELL + 44
    pictures = []
    for place, plan in enumerate(shown):
        x, y = (place % across) * wide, (place // across) * high
        most = float(time[place].max())
        cells = [
            {
                "x": x + 20 + (cell % columns) * CELL,
                "y": y + 22 + (rows - 1 - cell // columns) * CELL,
                "colour": colours[action[place][cell]],
                "opacity": round(0.15 + 0.85 * float(np.sqrt(time[place][cell] / most)), 3),
            }
            for cell in np.flatnonzero(action[place] >= 0).tolist()
        ]
        frame = {"x": x + 20, "y": y + 22, "width": columns * CELL, "height": rows * CELL}
        pictures.append({"plan": plan, "x": x + 30, "y": y + 11, "frame": frame, "cells": cells})
    width, height = across * wide, -(-len(shown) // across) * high
    return {
        "form": "multiples",
        "width": width,
        "height": height,
        "pixel": round(width / 690, 3),
        "cell": CELL,
        "pictures": pictures,
    }
