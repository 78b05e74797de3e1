"""The first picture of the page: all plans of a set in one map, as data for an SVG drawing that needs no script."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from scipy.ndimage import distance_transform_cdt

from manyways.describe import Survey
from manyways.errors import SettingError
from manyways.model.graph import reachable
from manyways.model.mdp import MDP
from manyways.model.occupancy import chain
from manyways.plans.planset import PlanSet
from manyways.plans.route import likely_route
from manyways.report.lanes import Cell, Point, number_spots, path_text, shifted, side_by_side
from manyways.report.pictures import Canvas, world_of
from manyways.types import Bools, Floats, Sparse

WIDTH = 690.0
"""The width in which the map is drawn on a wide screen, in pixels: what the sizes below refer to."""
LANE, LEAST_LANE = 0.163, 3.3
"""The distance of lanes, in cells, and what it is at least, in pixels."""
SMALL = 8.0
"""Where cells are smaller than this, in pixels, routes are simplified and moved aside as a whole."""
DISC = 18.0
"""The largest radius of the disc with the number of a way, with its rim, in pixels."""
SHADES = 4
"""Blocks of cells are drawn in this many shades of wall."""
NAMED_FROM = 4
"""Regions with fewer cells than this along a side are not named on the map."""
FILLED = 0.8
"""The name of a region that fills less of the rectangle around it than this stands at its widest place, not in a corner."""
ARROWED = 26.0
"""Where cells are at least this large, in pixels, a cell can show an arrow for each plan."""
USED = 0.003
"""Places with a smaller share of a plan's time show no arrow."""
MOVES = {
    name: (x, y)
    for names, x, y in (
        (("right", "east", "e", "→"), 1.0, 0.0),
        (("left", "west", "w", "←"), -1.0, 0.0),
        (("up", "north", "n", "↑"), 0.0, -1.0),
        (("down", "south", "s", "↓"), 0.0, 1.0),
        (("north-east", "up-right", "ne"), 1.0, -1.0),
        (("north-west", "up-left", "nw"), -1.0, -1.0),
        (("south-east", "down-right", "se"), 1.0, 1.0),
        (("south-west", "down-left", "sw"), -1.0, 1.0),
    )
    for name in names
}
RESTS = ("stop", "stay", "wait", "none", "noop", "no-op")
"""What the actions of grids are called, as moves to the right and downwards; and actions that do not move."""
STILL = 0.05
"""A choice whose mean move is shorter than this, in cells, has no direction."""


def map_overview(
    plans: PlanSet, survey: Survey, canvas: Canvas, tints: Sequence[int], best: list[Cell] | None
) -> dict[str, Any]:
    """Everything that the drawing of the map shows.

    Args:
        plans, survey: the set, and what is known about it.
        canvas: the map as it is drawn.
        tints: the colour of each plan, from 1; 0 for plans that are drawn in grey.
        best: the route of the best plan, in cells.
    """
    rows, columns = canvas.shape
    pixels = WIDTH / max(columns, 1)
    scale = max(20.0, round(1000 / columns))  # units of the drawing per cell
    routes = [route_of(survey, i, canvas) for i in range(plans.k)]
    main = [i for i in range(plans.k) if tints[i]]
    lines = _lines([routes[i] or [] for i in main] + [best or []], pixels)
    drawn = [(i, line) for i, line in zip(main, lines, strict=False) if line]
    world = world_of(plans.mdp, canvas)
    marks = [_centre(cell, columns) for cell in (*world["start"], *world["goals"])]
    spots = number_spots([line for _, line in drawn], marks) if drawn else []
    lane = max(LANE, LEAST_LANE / pixels) * scale
    grey = [(i, _cells_line(routes[i] or [])) for i in range(plans.k) if not tints[i] and routes[i]]
    return {
        "width": columns * scale,
        "height": rows * scale,
        "pixel": round(columns * scale / WIDTH, 3),
        "scale": scale,
        "walls": _walls(canvas, scale),
        "names": _names(plans, survey, canvas, routes, scale) if pixels >= 12 else [],
        "best": path_text(lines[-1], scale) if lines[-1] else None,
        "lane": round(lane, 2),
        "grey": [{"plan": i, "d": path_text(line, scale)} for i, line in grey],
        "routes": [{"plan": i, "tint": tints[i], "d": path_text(line, scale)} for i, line in reversed(drawn)],
        "spots": [
            {"plan": i, "tint": tints[i], "x": _inside(x, columns, scale, pixels), "y": _inside(y, rows, scale, pixels)}
            for (i, _), (x, y) in zip(drawn, spots, strict=True)
        ],
        "starts": [_place(cell, columns, scale) for cell in world["start"]],
        "goals": [_place(cell, columns, scale) for cell in world["goals"]],
        "arrows": _arrows(plans, survey, canvas, tints, scale) if len(drawn) < len(main) and pixels >= ARROWED else [],
        "missing": [i + 1 for i in main if not routes[i]],
        "tries": _named_directions(plans.mdp) is not None and _slips(plans),
    }


def _inside(at: float, cells: int, scale: float, pixels: float) -> float:
    """A position in the drawing, so far from its edges that the disc of a number is not cut off, also on narrow screens."""
    edge = min(DISC / pixels, cells / 2)
    return round(min(max(at, edge), cells - edge) * scale, 1)


def route_of(survey: Survey, plan: int, canvas: Canvas) -> list[Cell] | None:
    """The cells of a plan's most likely way to the goal or to the end of an episode; None if there is no such way."""
    mdp, path = survey.plans.mdp, survey.facts[plan].path
    if path is None and mdp.ends:
        path = _way_to_an_end(mdp, survey.plans.policies[plan])
    if path is None:  # most runs go back and forth: no single way is likely
        return None
    with suppress(SettingError):  # where the goal is no state
        path = likely_route(mdp, survey.plans.policies[plan]).states
    cells = [divmod(int(cell), canvas.shape[1]) for cell in canvas.cells(canvas.layout.cells[np.array(path)])]
    if mdp.ends and canvas.layout.goals.size:  # the goal is no state: a step into it ends the episode
        goals = [divmod(int(cell), canvas.shape[1]) for cell in canvas.cells(canvas.layout.goals)]
        cells += [goal for goal in goals if abs(goal[0] - cells[-1][0]) + abs(goal[1] - cells[-1][1]) == 1][:1]
    merged = [cell for i, cell in enumerate(cells) if i == 0 or cell != cells[i - 1]]
    return merged if len(merged) > 1 else None


def _way_to_an_end(mdp: MDP, policy: Floats) -> list[int] | None:
    """From the most likely start, the most likely step again and again until one ends the episode in most cases."""
    step, at = chain(mdp, policy), int(np.argmax(mdp.start))
    ending = np.add.reduceat(policy * sum(mdp.ends.values(), np.zeros(mdp.n_choices)), mdp.first_choice[:-1])
    path, seen = [at], {at}
    while ending[at] < 0.5:
        at = _likeliest(step, at)
        if at in seen:
            return None
        path.append(at)
        seen.add(at)
    return path


def _likeliest(step: Sparse, at: int) -> int:
    row = slice(step.indptr[at], step.indptr[at + 1])
    return int(step.indices[row][np.argmax(step.data[row])])


def _lines(routes: list[list[Cell]], pixels: float) -> list[list[Point]]:
    """The line of each route, empty for an empty one."""
    known = [i for i, route in enumerate(routes) if len(route) > 1]
    chosen = [routes[i] for i in known]
    if pixels >= SMALL:
        found = side_by_side(chosen, max(LANE, LEAST_LANE / pixels))
    else:
        found = shifted(chosen, LEAST_LANE / pixels, 2.0 / pixels)
    lines: list[list[Point]] = [[] for _ in routes]
    for i, line in zip(known, found, strict=True):
        lines[i] = line
    return lines


def _cells_line(route: list[Cell]) -> list[Point]:
    return [(column + 0.5, row + 0.5) for row, column in route]


def _centre(cell: int, columns: int) -> Point:
    return cell % columns + 0.5, cell // columns + 0.5


def _place(cell: int, columns: int, scale: float) -> dict[str, float]:
    x, y = _centre(cell, columns)
    return {"x": round(x * scale, 1), "y": round(y * scale, 1)}


def _walls(canvas: Canvas, scale: float) -> list[dict[str, Any]]:
    """Walls as paths, one for each shade: in blocks, thin walls are pale and doors visible."""
    covered = canvas.total(np.ones(canvas.layout.shape))
    share = (canvas.total(canvas.layout.blocked.astype(float)) / np.maximum(covered, 1)).reshape(canvas.shape)
    shade = np.ceil(share * SHADES - 1e-9).astype(int)
    paths = []
    for level in range(1, SHADES + 1):
        text = []
        for row, line in enumerate(shade == level):
            edges = np.flatnonzero(np.diff(np.concatenate([[0], line.astype(np.int8), [0]])))
            for first, last in edges.reshape(-1, 2):
                text.append(
                    f"M{first * scale:g} {row * scale:g}h{(last - first) * scale:g}v{scale:g}H{first * scale:g}z"
                )
        if text:
            paths.append({"d": "".join(text), "opacity": level / SHADES})
    return paths


def _names(
    plans: PlanSet, survey: Survey, canvas: Canvas, routes: list[list[Cell] | None], scale: float
) -> list[dict[str, Any]]:
    """The names of rooms, each in the corner of its room that routes and walls leave most free."""
    if survey.rooms is not None:
        of_state, names = survey.rooms.of_state - 1, [name.replace(" room", "") for name in survey.rooms.names]
    elif survey.regions is not None:
        of_state = survey.regions.of_state
        names = [name.replace(" room", "") if " room" in name else "" for name in survey.regions.names]
    else:
        return []
    rows, columns = canvas.shape
    room = np.full(rows * columns, -1)
    room[canvas.cells(canvas.layout.cells)] = of_state
    room = room.reshape(rows, columns)
    busy = np.zeros((rows, columns))
    for cell in [cell for route in routes if route for cell in route]:
        busy[cell] += 4
    for cell in np.flatnonzero(plans.mdp.start > 0)[:50]:
        busy[divmod(int(canvas.cells(canvas.layout.cells[cell])), columns)] += 9
    found = []
    for number, name in enumerate(names):
        at = np.argwhere(room == number)
        if not name or not len(at) or np.ptp(at, axis=0).min() + 1 < NAMED_FROM:
            continue
        (top, left), (bottom, right) = at.min(axis=0), at.max(axis=0)
        wide = min(3, right - left + 1)

        def taken(row: int, column: int, wide: int = wide, number: int = number) -> float:
            part = slice(column, column + wide)
            return float(busy[row, part].sum() + 5 * (room[row, part] != number).sum())

        if len(at) < FILLED * (bottom - top + 1) * (right - left + 1):  # its corners may be far from most of it
            found.append({"text": name, "anchor": "middle"} | _widest_place(room == number, busy, scale))
            continue
        corners = [(row, column) for row in (bottom, top) for column in (left, right - wide + 1)]
        row, column = min(corners, key=lambda corner: taken(*corner))
        right_side = column != left
        found.append(
            {
                "text": name,
                "anchor": "end" if right_side else "start",
                "x": round((right + 1 if right_side else left) * scale + (-0.2 if right_side else 0.2) * scale, 1),
                "y": round((row + (0.45 if row == top else 0.8)) * scale, 1),
            }
        )
    return found


def _widest_place(inside: Bools, busy: Floats, scale: float) -> dict[str, float]:
    """The middle of the place in a (rows, columns) region that is farthest from its edge; of equals, from what is drawn."""
    width = np.asarray(distance_transform_cdt(np.pad(inside, 1), "chessboard"))[1:-1, 1:-1]
    free = np.asarray(distance_transform_cdt(busy == 0, "chessboard")) if busy.any() else np.ones(busy.shape)
    places = np.argwhere(width == width.max())
    off = np.abs(places - places.mean(axis=0)).sum(axis=1)
    row, column = places[np.lexsort((off, -free[tuple(places.T)]))[0]].tolist()
    return {"x": round((column + 0.5) * scale, 1), "y": round((row + 0.65) * scale, 1)}


def directions(plans: PlanSet, plan: int, canvas: Canvas, by_state: Floats) -> tuple[Floats, Floats]:
    """(cells,) the direction (angle, clockwise from east) in which a plan moves in each cell on average, NaN where it
    stays or never comes; and its time there.

    Where the names of the actions are directions, that is what the plan means to do, whatever luck makes of it. Otherwise
    it is what happens on average; jumps, as back to the start, are not moves.
    """
    mdp, columns = plans.mdp, canvas.shape[1]
    row, column = np.divmod(canvas.cells(canvas.layout.cells), columns)
    cell = row * columns + column
    named = _named_directions(mdp)
    if named is not None:
        weight = plans.policies[plan] * by_state[mdp.choice_state]
        cells, across, down = cell[mdp.choice_state], named[0][mdp.actions], named[1][mdp.actions]
    else:
        step = chain(mdp, plans.policies[plan]).tocoo()
        down, across = row[step.col] - row[step.row], column[step.col] - column[step.row]
        moves = (np.abs(down) <= 1) & (np.abs(across) <= 1)
        weight, cells = step.data * by_state[step.row] * moves, cell[step.row]
    size = canvas.shape[0] * columns
    x, y = (np.bincount(cells, weights=weight * part, minlength=size) for part in (across, down))
    time = np.bincount(cell, weights=by_state, minlength=size).astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        far = np.hypot(x, y) / time
        return np.where((time > 0) & (far > STILL), np.arctan2(y, x), np.nan), time


def _slips(plans: PlanSet) -> bool:
    """Whether some step of the plans may lead to several places, apart from the places in which episodes begin."""
    mdp = plans.mdp
    elsewhere = (mdp.transitions > 0).astype(float) @ (mdp.start == 0).astype(float)
    used = (plans.occupancies > USED).any(axis=0)
    return bool((elsewhere[used] > 1).any())


def _named_directions(mdp: MDP) -> tuple[Floats, Floats] | None:
    """The direction of each action, to the right and downwards, by its name; None unless all names are known."""
    names = [name.strip().lower().replace("_", "-") for name in mdp.action_names]
    if not any(name in MOVES for name in names) or not all(name in MOVES or name in RESTS for name in names):
        return None
    moves = np.array([MOVES.get(name, (0.0, 0.0)) for name in names])
    return moves[:, 0], moves[:, 1]


def _arrows(plans: PlanSet, survey: Survey, canvas: Canvas, tints: Sequence[int], scale: float) -> list[dict[str, Any]]:
    """For plans without a route: an arrow for each plan in each cell that it uses, all at their own place in the cell."""
    main = [i for i in range(plans.k) if tints[i]]
    side = int(np.ceil(np.sqrt(len(main))))
    columns, found = canvas.shape[1], []
    for rank, plan in enumerate(main):
        angle, time = directions(plans, plan, canvas, survey.by_state[plan])
        dx, dy = ((place + 0.5) / side for place in (rank % side, rank // side))
        for cell in np.flatnonzero((time > USED) & ~np.isnan(angle)).tolist():
            turn = round(float(np.degrees(angle[cell])) / 15) * 15
            x, y = (cell % columns + dx) * scale, (cell // columns + dy) * scale
            found.append({"plan": plan, "tint": tints[plan], "x": round(x, 1), "y": round(y, 1), "turn": turn})
    size = round(0.36 * scale / side, 2)
    return [arrow | {"size": size} for arrow in found]


def reached_cells(plans: PlanSet, plan: int, canvas: Canvas) -> Bools:
    """(cells,) whether a plan ever comes to each cell from the start: what it would do elsewhere is arbitrary."""
    states = reachable(chain(plans.mdp, plans.policies[plan]), plans.mdp.start > 0)
    return canvas.total(canvas.layout.image(states.astype(float))) > 0
