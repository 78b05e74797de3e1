"""Plans of a model without a map over two variables of its states: boxes for pairs of values, bars for plans.

Colour is what a plan does, height is the share of its time. Where there are too many values for boxes, each plan has a
picture of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from manyways.describe import Survey, two_variables
from manyways.describe.rules import deciding_states
from manyways.describe.subject import NEVER
from manyways.describe.wording import percent, short
from manyways.model.mdp import MDP
from manyways.types import Bools, Floats, Ints

MOST_BOXES, MOST_BARS = 9, 9
"""Up to so many values of each variable, and up to so many plans, are drawn as bars in boxes."""
ACTIONS = 8
"""The actions with a colour of their own; the others are grey."""
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
    cells = down * len(across_values) + across
    size = len(down_values) * len(across_values)
    shown = [i for i in range(plans.k) if tints[i]]
    colours = action_colours(mdp, plans.occupancies)
    time, action = zip(*(_over(mdp, plans.occupancies[i], cells, size) for i in shown), strict=True)
    picture = {
        "down": {"name": short(down_name), "values": down_values, "falls": falls},
        "across": {"name": short(across_name), "values": across_values},
        "forced": not deciding_states(mdp)[(survey.by_state > NEVER).any(axis=0)].all(),
        "actions": [
            {"name": short(name), "colour": colours[number]}
            for number, name in enumerate(mdp.action_names)
            if any((own == number)[own_time > SEEN].any() for own, own_time in zip(action, time, strict=True))
        ],
    }
    rows, columns = len(down_values), len(across_values)
    titles = [
        [_title(mdp, t[cell], a[cell], plan) for cell in range(size)]
        for plan, t, a in zip(shown, time, action, strict=True)
    ]
    if max(rows, columns) <= MOST_BOXES and len(shown) <= MOST_BARS:
        beside = LEFT + LETTER * max(map(len, down_values))
        return picture | _boxes(shown, time, action, titles, colours, rows, columns, beside)
    return picture | _multiples(shown, time, action, colours, rows, columns)


def _axis(mdp: MDP, name: str, by_state: Floats) -> tuple[list[str], Ints]:
    """The values of a variable in the states that plans come to, and (S,) the number of each state's value; -1 for none."""
    values = mdp.variables[name]
    met = np.unique(values[(by_state > 0).any(axis=0)])
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


def _over(mdp: MDP, occupancy: Floats, cells: Ints, size: int) -> tuple[Floats, Ints]:
    """(size,) a plan's time in each cell, and the action on which it spends most of that; -1 where it never comes.

    States with only one action count for the colour of a cell only if the plan decides nothing there.
    """
    here, count = cells[mdp.choice_state], len(mdp.action_names)

    def spent(choices: Bools) -> Floats:
        at = here[choices] * count + mdp.actions[choices]
        return np.bincount(at, occupancy[choices], size * count).astype(np.float64).reshape(size, count)

    whole, decided = spent(here >= 0), spent((here >= 0) & deciding_states(mdp)[mdp.choice_state])
    time = whole.sum(axis=1)
    action = np.where(decided.sum(axis=1) > SEEN, decided.argmax(axis=1), whole.argmax(axis=1))
    return time, np.where(time > SEEN, action, -1)


def action_colours(mdp: MDP, occupancies: Floats) -> list[int]:
    """The colour of each action, from 1 in the order of the model; 0 for those that are used least, if there are many."""
    used = np.bincount(mdp.actions, occupancies.sum(axis=0), len(mdp.action_names))
    chosen = np.sort(np.argsort(-used, kind="stable")[:ACTIONS])
    colours = [0] * len(mdp.action_names)
    for colour, action in enumerate(chosen.tolist(), 1):
        colours[action] = colour
    return colours


def _title(mdp: MDP, time: float, action: int, plan: int) -> str:
    return (
        "" if action < 0 else f"plan {plan + 1}: {short(mdp.action_names[action])}, {percent(float(time))} of its time"
    )


def _boxes(
    shown: list[int],
    time: Sequence[Floats],
    action: Sequence[Ints],
    titles: list[list[str]],
    colours: list[int],
    rows: int,
    columns: int,
    beside: float,
) -> dict[str, Any]:
    wide = BAR * len(shown) + 12.0
    most = max(float(own.max()) for own in time)
    boxes, bars = [], []
    for cell in range(rows * columns):
        row, column = divmod(cell, columns)
        x, y = beside + column * (wide + GAP), (rows - 1 - row) * (BOX_HEIGHT + GAP)
        empty = all(own[cell] < 0 for own in action)
        boxes.append({"x": x, "y": y, "empty": empty})
        for place, plan in enumerate(shown):
            if action[place][cell] < 0:
                continue
            height = max((BOX_HEIGHT - 28) * float(time[place][cell]) / most, 2.0)
            left = x + 6 + place * BAR
            bars.append(
                {
                    "plan": plan,
                    "x": round(left + 1, 1),
                    "y": round(y + BOX_HEIGHT - 22 - height, 1),
                    "top": y + 5,
                    "height": round(height, 1),
                    "colour": colours[action[place][cell]],
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
