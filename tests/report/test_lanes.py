"""Routes side by side: where lines lie, and that they do not cross where they need not."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyways.report.lanes import _simplified, number_spots, path_text, shifted, side_by_side

GAP = 0.2


def walk(moves: str, start=(5, 5)) -> list[tuple[int, int]]:
    step = {"u": (-1, 0), "d": (1, 0), "l": (0, -1), "r": (0, 1), "x": (1, 1)}
    cells = [start]
    for move in moves:
        cells.append((cells[-1][0] + step[move][0], cells[-1][1] + step[move][1]))
    return cells


def test_a_route_alone_runs_through_the_middle_of_its_cells():
    (line,) = side_by_side([walk("rrdd")], GAP)
    assert line == [(5.5, 5.5), (7.5, 5.5), (7.5, 7.5)]


def test_two_routes_on_one_way_are_a_gap_apart():
    one, other = side_by_side([walk("rrr"), walk("rrr")], GAP)
    assert {y for _, y in one} == {5.4}
    assert {y for _, y in other} == {5.6}


@pytest.mark.parametrize(("first", "second"), [("rrru", "rrrd"), ("rrr", "rrrd"), ("rrru", "rrr")])
def test_the_route_that_leaves_to_the_left_lies_left(first, second):
    """Eastwards, left is north: a smaller y."""
    one, other = side_by_side([walk(first + "rr"), walk(second + "rr")], GAP)
    assert one[0][1] < other[0][1]
    other, one = side_by_side([walk(second + "rr"), walk(first + "rr")], GAP)
    assert one[0][1] < other[0][1]


def test_routes_that_never_part_keep_the_order_in_which_they_met():
    north, south = [(3, 6), (4, 6), (5, 6), *walk("rr", (5, 7))], [(7, 6), (6, 6), (5, 6), *walk("rr", (5, 7))]
    one, other = side_by_side([north, south], GAP)
    assert one[-1][1] < other[-1][1]
    other, one = side_by_side([south, north], GAP)
    assert one[-1][1] < other[-1][1]


def test_opposite_directions_count_as_the_same_way():
    one, other = side_by_side([walk("rrru"), walk("lll", (5, 8))], GAP)
    assert abs(one[0][1] - other[0][1]) == pytest.approx(GAP)


moves = st.text("udlrx", min_size=1, max_size=12)


@given(st.lists(moves, min_size=1, max_size=5))
def test_lines_stay_near_their_cells(walks):
    """No point of a line is further from a cell of its route than all lanes together, even in sharp corners."""
    routes = [walk(one) for one in walks]
    for route, line in zip(routes, side_by_side(routes, GAP), strict=True):
        centres = np.array([(column + 0.5, row + 0.5) for row, column in route])
        far = [np.hypot(*(centres - point).T).min() for point in line]
        uses = max(len(walks) * 12, 1)
        assert max(far) <= 0.5 + uses * GAP * 2
        assert len(line) >= 2
        assert all(np.isfinite(line).ravel())


def segments_cross(a, b, c, d) -> bool:
    def side(p, q, r):
        return (q[0] - p[0]) * (r[1] - p[1]) - (q[1] - p[1]) * (r[0] - p[0])

    return side(a, b, c) * side(a, b, d) < -1e-12 and side(c, d, a) * side(c, d, b) < -1e-12


@given(st.text("rd", min_size=6, max_size=10), st.text("rd", min_size=6, max_size=10))
def test_two_monotone_routes_cross_only_where_they_change_sides(first, second):
    """Two ways that only go right and down change sides as often as the cells say; their lines cross no more often."""
    routes = [walk(first), walk(second)]
    one, other = side_by_side(routes, GAP)
    crossings = sum(
        segments_cross(a, b, c, d) for a, b in itertools.pairwise(one) for c, d in itertools.pairwise(other)
    )
    places = [{row + column: column - row for row, column in route} for route in routes]
    gaps = [np.sign(places[0][t] - places[1][t]) for t in sorted(places[0].keys() & places[1].keys())]
    sides = [side for side in gaps if side]
    assert crossings <= sum(a != b for a, b in itertools.pairwise(sides))


@given(st.lists(st.tuples(st.floats(-9, 9), st.floats(-9, 9)), min_size=2, max_size=30), st.floats(0.01, 2.0))
def test_a_simplified_line_stays_within_its_tolerance(points, tolerance):
    whole = np.array(points)
    kept = _simplified(whole, tolerance)
    assert (kept[0] == whole[0]).all()
    assert (kept[-1] == whole[-1]).all()
    for point in whole:
        far = min(distance_to_segment(point, a, b) for a, b in itertools.pairwise(kept))
        assert far <= tolerance + 1e-9


def distance_to_segment(p, a, b) -> float:
    length = float(((b - a) ** 2).sum())
    t = 0.0 if length == 0 else min(max(float((p - a) @ (b - a)) / length, 0.0), 1.0)
    return float(np.hypot(*(p - a - t * (b - a))))


def test_shifted_routes_are_apart_on_straight_pieces():
    one, other = shifted([walk("rrrrrr"), walk("rrrrrr")], 0.5, 1.0)
    assert len(one) == 2
    assert abs(one[0][1] - other[0][1]) == pytest.approx(0.5 / np.sqrt(2))


def test_numbers_stand_on_their_lines_and_apart():
    lines = side_by_side([walk("rrrrrr"), walk("rrddrr"), walk("ddrrrr")], GAP)
    spots = number_spots(lines, [(5.5, 5.5)])
    for line, spot in zip(lines, spots, strict=True):
        assert (
            min(distance_to_segment(np.array(spot), np.array(a), np.array(b)) for a, b in itertools.pairwise(line))
            < 1e-6
        )
    assert all(np.hypot(a[0] - b[0], a[1] - b[1]) > 1 for a, b in itertools.combinations(spots, 2))


def test_a_path_begins_and_ends_where_the_line_does():
    text = path_text([(0, 0), (2, 0), (2, 2)], 10)
    assert text.startswith("M0.0 0.0L")
    assert text.endswith("L20.0 20.0")
    assert "Q20.0 0.0 " in text


def test_numbers_stand_where_lines_are_farthest_apart_on_maps_of_any_size():
    for size in (6, 60):
        lines = [[(0.0, 0.0), (size, 0.0), (size, size)], [(0.0, 0.0), (0.0, size), (size, size)]]
        for corner, spot in zip([(size, 0), (0, size)], number_spots(lines, [(0.0, 0.0), (size, size)]), strict=True):
            assert np.hypot(spot[0] - corner[0], spot[1] - corner[1]) < 0.1 * size
