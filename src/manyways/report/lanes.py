"""Routes on a map as lines that run side by side where they share the way.

Each step between two cells knows the routes that take it. Seen along the step, a route lies left of another if it leaves to
the left where the two part, or, if they never part, if it came from the left where they met: lines cross only where they
must. The routes on a step get lanes across it, centred. Points are (x, y), one unit a cell, y downwards.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import cmp_to_key
from math import atan2, hypot

import numpy as np

from manyways.types import Floats

Cell = tuple[int, int]
Point = tuple[float, float]

SLANT = 0.28
"""A line that changes its lane on a straight piece does so over twice this length, in cells."""
CORNER = 0.27
"""The radius of corners, in cells."""
NUMBERS_APART = 0.15
"""Numbers further apart than this, as a share of the extent of all lines, are far enough from each other."""
SAMPLES = 400


def side_by_side(routes: Sequence[Sequence[Cell]], gap: float) -> list[list[Point]]:
    """The line of each route, given as cells (row, column); lanes are `gap` cells apart."""
    users: dict[tuple[Cell, Cell], list[tuple[int, int]]] = defaultdict(list)
    for number, route in enumerate(routes):
        for step in range(len(route) - 1):
            users[_along(route[step], route[step + 1])].append((number, step))
    lanes: dict[tuple[int, int], float] = {}
    for way, own in users.items():
        ordered = sorted(own, key=cmp_to_key(lambda one, other, way=way: _order(routes, way, one, other)))
        for rank, (number, step) in enumerate(ordered):
            lane = (rank - (len(ordered) - 1) / 2) * gap
            lanes[number, step] = lane if routes[number][step] == way[0] else -lane
    return [_line(route, [lanes[i, step] for step in range(len(route) - 1)]) for i, route in enumerate(routes)]


def shifted(routes: Sequence[Sequence[Cell]], gap: float, coarseness: float) -> list[list[Point]]:
    """The line of each route on a large map, where cells are too small for lanes: simplified, and moved aside as a whole."""
    lines = []
    for number, route in enumerate(routes):
        aside = (number - (len(routes) - 1) / 2) * gap / np.sqrt(2)
        points = np.array([(column + 0.5, row + 0.5) for row, column in route])
        lines.append([(float(x) + aside, float(y) - aside) for x, y in _simplified(points, coarseness)])
    return lines


def path_text(line: Sequence[Point], scale: float, corner: float = CORNER) -> str:
    """A line with round corners as the `d` of an SVG path."""
    points = [(x * scale, y * scale) for x, y in line]
    text = [f"M{_pair(points[0])}"]
    for before, at, after in zip(points, points[1:], points[2:], strict=False):
        come, go = hypot(at[0] - before[0], at[1] - before[1]), hypot(after[0] - at[0], after[1] - at[1])
        radius = min(corner * scale, come / 2, go / 2)
        begin = _towards(at, before, radius, come)
        text.append(f"L{_pair(begin)}Q{_pair(at)} {_pair(_towards(at, after, radius, go))}")
    if len(points) > 1:
        text.append(f"L{_pair(points[-1])}")
    return "".join(text)


def number_spots(lines: Sequence[Sequence[Point]], taken: Sequence[Point]) -> list[Point]:
    """Where the number of each line stands: on it, far from the other lines, the other numbers and the `taken` points."""
    fine = [_sampled(np.array(line)) for line in lines]
    extent = float(np.ptp(np.concatenate(fine), axis=0).max())
    put = [np.array(point) for point in taken]
    spots = []
    for number, own in enumerate(fine):
        others = [line for i, line in enumerate(fine) if i != number]
        free = np.full(len(own), extent)
        for line in others:
            free = np.minimum(free, _least_distance(own, line))
        clear = np.full(len(own), NUMBERS_APART * extent)
        if put:
            clear = np.minimum(clear, _least_distance(own, np.array(put)))
        best = own[int(np.argmax(free + clear))]
        put.append(best)
        spots.append((float(best[0]), float(best[1])))
    return spots


def _along(one: Cell, other: Cell) -> tuple[Cell, Cell]:
    return (one, other) if one < other else (other, one)


def _order(
    routes: Sequence[Sequence[Cell]], way: tuple[Cell, Cell], one: tuple[int, int], other: tuple[int, int]
) -> int:
    """Below 0 if the first use of a step lies left of the second, seen along `way`."""
    if one[0] == other[0]:
        return one[1] - other[1]
    a, b = _ahead(routes, way, one), _ahead(routes, way, other)
    for ahead, sign in ((1, 1), (-1, -1)):  # where they part; then, looking back, where they met
        angle = _parting(a[ahead], b[ahead])
        if angle is not None and angle != 0:
            return sign if angle > 0 else -sign
    return one[0] - other[0]


def _ahead(routes: Sequence[Sequence[Cell]], way: tuple[Cell, Cell], use: tuple[int, int]) -> dict[int, Sequence[Cell]]:
    """The cells of a route from a step on, seen along `way` (1) and against it (-1); both begin with the step itself."""
    route, step = routes[use[0]], use[1]
    on, back = route[step:], route[step + 1 :: -1]
    return {1: on, -1: back} if route[step] == way[0] else {1: back, -1: on}


def _parting(a: Sequence[Cell], b: Sequence[Cell]) -> float | None:
    """How much further right the first of two routes goes where they part; None if one of them ends before that."""
    n = 2
    while n < len(a) and n < len(b) and a[n] == b[n]:
        n += 1
    if n >= len(a) or n >= len(b):
        return None
    return _turn(a[n - 2], a[n - 1], a[n]) - _turn(b[n - 2], b[n - 1], b[n])


def _turn(before: Cell, at: Cell, after: Cell) -> float:
    """The angle by which a route turns in a cell: above 0 to the right."""
    (y1, x1), (y2, x2) = (at[0] - before[0], at[1] - before[1]), (after[0] - at[0], after[1] - at[1])
    return atan2(x1 * y2 - y1 * x2, x1 * x2 + y1 * y2)


def _line(route: Sequence[Cell], lanes: list[float]) -> list[Point]:
    """The points of a route whose steps are moved to the right by `lanes`."""
    centres = np.array([(column + 0.5, row + 0.5) for row, column in route])
    if len(route) < 2:
        return [tuple(centres[0].tolist())]
    steps = np.diff(centres, axis=0)
    ahead = steps / np.hypot(*steps.T)[:, None]
    aside = np.stack([-ahead[:, 1], ahead[:, 0]], axis=1) * np.array(lanes)[:, None]
    right = np.stack([-ahead[:, 1], ahead[:, 0]], axis=1)
    points = [centres[0] + aside[0]]
    for i in range(len(lanes) - 1):
        at, cross = centres[i + 1], ahead[i, 0] * ahead[i + 1, 1] - ahead[i, 1] * ahead[i + 1, 0]
        if abs(cross) > 1e-9:  # a corner: where the two lanes meet
            points.append(at + np.linalg.solve(right[i : i + 2], np.array(lanes[i : i + 2])))
        elif ahead[i] @ ahead[i + 1] < 0:  # straight back
            points += [at + aside[i], at + aside[i + 1]]
        elif lanes[i] != lanes[i + 1]:
            points += [at - SLANT * ahead[i] + aside[i], at + SLANT * ahead[i] + aside[i + 1]]
    points.append(centres[-1] + aside[-1])
    return [(float(x), float(y)) for x, y in points]


def _simplified(points: Floats, tolerance: float) -> Floats:
    """The points without those that lie within `tolerance` of the line along the others (Douglas and Peucker, 1973)."""
    keep = np.zeros(len(points), bool)
    keep[[0, -1]] = True
    parts = [(0, len(points) - 1)]
    while parts:
        first, last = parts.pop()
        if last - first < 2:
            continue
        base, inner = points[last] - points[first], points[first + 1 : last] - points[first]
        along = np.clip(inner @ base / max(float(base @ base), 1e-300), 0.0, 1.0)
        off = np.hypot(*(inner - along[:, None] * base).T)
        worst = int(np.argmax(off))
        if off[worst] > tolerance:
            keep[first + 1 + worst] = True
            parts += [(first, first + 1 + worst), (first + 1 + worst, last)]
    return points[keep]


def _sampled(line: Floats) -> Floats:
    """At most `SAMPLES` points along a line; without its ends, where all routes meet."""
    if len(line) < 2:
        return line
    lengths = np.hypot(*np.diff(line, axis=0).T)
    at = np.concatenate([[0.0], np.cumsum(lengths)])
    places = np.linspace(0, at[-1], min(int(4 * at[-1]) + 4, SAMPLES + 1) + 1)[1:-1]
    return np.stack([np.interp(places, at, line[:, axis]) for axis in (0, 1)], axis=1)


def _least_distance(own: Floats, others: Floats) -> Floats:
    """(n,) how far each point is from the nearest of the others."""
    return np.sqrt(((own[:, None, :] - others[None, :, :]) ** 2).sum(axis=2)).min(axis=1)


def _towards(at: Point, other: Point, radius: float, length: float) -> Point:
    share = radius / (length or 1.0)
    return at[0] + (other[0] - at[0]) * share, at[1] + (other[1] - at[1]) * share


def _pair(point: Point) -> str:
    return f"{point[0]:.1f} {point[1]:.1f}"
