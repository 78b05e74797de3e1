"""Rooms and passages of a map: its free space, cut at its narrow places, and names for the parts.

*Furniture.* An obstacle does not divide space if it stands apart from all walls and other obstacles by more than half of
its own length. It counts as free.

*Width.* The width of the space at a free cell is the diameter of the largest disc of free cells that contains it: as wide
as the room in a room, one in a door of one cell. Diameters of more than ten cells are taken in steps of a fifth.

*Regions.* The widest cells that are left and all cells connected to them that are more than 0.6 times as wide form a
region; this is repeated until no cell is left. So a door or a corridor is a region of its own if it is at most 0.6 times
as wide as what it leads to. A part that has a single opening to the wider regions found before (a niche, a corner, a dead
end) does not lead anywhere and joins the region there. In thin walls the discs on both sides leave no cells for a door;
there the cells on both sides of the border between two rooms become the region of the door.

*Passages* are the doors, the regions with at least two openings to wider regions, and those that are long: with at least
the area of five squares of their width. All others are rooms.

Finding the regions of 150 x 200 cells takes 0.1 s, of 1,000 x 1,000 cells 4 s.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

import numpy as np
from scipy import ndimage

from manyways.errors import SettingError
from manyways.model.mdp import MDP
from manyways.types import Bools, Floats, Ints

NARROW = 0.6
LONG = 5
APART = 0.5
DOWN: dict[int, tuple[str, ...]] = {1: ("",), 2: ("north", "south"), 3: ("north", "", "south")}
ACROSS: dict[int, tuple[str, ...]] = {1: ("",), 2: ("west", "east"), 3: ("west", "", "east")}
ALL_AROUND = np.ones((3, 3), bool)


@dataclass(frozen=True, eq=False)
class MapRegions:
    """The regions of a map, numbered from 0 in reading order of their first cells.

    Attributes:
        of_state: (S,) the region of each state; -1 for states in cells that are drawn as blocked.
        names: "north-west room", "middle passage" and so on of each region, all different.
    """

    of_state: Ints
    names: tuple[str, ...]


def find_regions(mdp: MDP) -> MapRegions:
    """The rooms and passages of a model with a layout; see the head of this module.

    Raises:
        SettingError: if the model has no layout.
    """
    if mdp.layout is None:
        raise SettingError(
            f"{mdp.name} has no map in which regions could be found; ",
            in_python="use Labels() to compare sets of states that the model names",
            on_command_line="use --behaviour labels to compare sets of states that the model names",
        )
    free = np.zeros(mdp.layout.blocked.size, bool)
    free[mdp.layout.cells] = True
    free = free.reshape(mdp.layout.shape) & ~mdp.layout.blocked
    number, is_passage = _cut(free)
    return MapRegions(number.ravel()[mdp.layout.cells] - 1, _names(number, is_passage))


def components(free: Bools) -> Ints:
    """(rows, columns) 4-connected components, numbered from 1 in reading order of their first cells; 0 elsewhere."""
    return ndimage.label(free)[0]  # pyright: ignore[reportIndexIssue, reportReturnType]


def widths(free: Bools, distance: Floats) -> tuple[Ints, Ints]:
    """(rows, columns) the diameter of the largest disc of free cells that contains each cell, and the index of its middle.

    Discs have diameters of 1 to 10, 12, 14, 16, 19 and so on cells. Cells that are not free have a width of 0.
    """
    width, middle = np.zeros(free.shape, np.int64), np.arange(free.size).reshape(free.shape)
    for diameter in _diameters(min(free.shape)):
        fits, nearest = _in_discs(distance, diameter)
        if not fits.any():
            break
        width[fits], middle[fits] = diameter, nearest[fits]
    return width, middle


def _diameters(most: int) -> Iterator[int]:
    """1 to 10, then in steps of a fifth."""
    diameter = 1
    while diameter <= most:
        yield diameter
        diameter = max(diameter + 1, int(1.2 * diameter))


def _distance_to_walls(free: Bools) -> Floats:
    """(rows, columns) the distance between the middles of each cell and the nearest one that is not free or not on the map."""
    return ndimage.distance_transform_edt(np.pad(free, 1))[1:-1, 1:-1]  # pyright: ignore[reportCallIssue, reportArgumentType, reportIndexIssue, reportOptionalSubscript]


def _in_discs(distance: Floats, diameter: int) -> tuple[Bools, Ints]:
    """(rows, columns) the cells that some disc of free cells of this diameter contains, and the index of its middle."""
    radius = (diameter + 1) / 2
    middles = distance >= radius
    if not middles.any():
        return middles, np.zeros(middles.shape, np.int64)
    away, (row, column) = ndimage.distance_transform_edt(~middles, return_indices=True)  # pyright: ignore[reportGeneralTypeIssues]
    return away < radius, row.astype(np.int64) * distance.shape[1] + column


# ---- cutting ------------------------------------------------------------------------------------


def _cut(free: Bools) -> tuple[Ints, Bools]:
    """(rows, columns) the region of each free cell, from 1 in reading order, and (R,) which regions are passages."""
    space = _cleared(free)
    distance = _distance_to_walls(space)
    width, middle = widths(space, distance)
    number = np.zeros(free.shape, np.int64)
    between, wide = [False], [0]
    left = width > 0
    while left.any():
        top = int(width[left].max())
        chosen = left & (width > NARROW * top)
        rim = _belongs(number, middle)
        cores = components(left & ~rim & (2 * distance - 1 > NARROW * top))
        for part in (components(chosen & rim), np.where(chosen & ~rim, cores.ravel()[middle], 0)):
            for box, own in _parts(part, np.unique(part[chosen & (width == top)])):
                hosts = _openings(own, number[box])
                if len(hosts) == 1:
                    number[box][own] = hosts[0]
                else:
                    number[box][own] = len(wide)
                    between.append(len(hosts) > 1 and top <= NARROW * max(wide[host] for host in hosts))
                    wide.append(top)
        left &= number == 0
    for box, own, across in _doors(number, np.array(between)):
        if across <= NARROW * min(wide[region] for region in np.unique(number[box][own])):
            number[box][own] = len(wide)
            between.append(True)
            wide.append(across)
    number[~free] = 0
    kept, first, area = np.unique(number[free], return_index=True, return_counts=True)
    order = np.argsort(first)
    rank = np.zeros(len(wide), np.int64)
    rank[kept[order]] = np.arange(1, len(kept) + 1)
    passage = np.array(between)[kept] | (area >= LONG * np.array(wide)[kept] ** 2)
    return rank[number], passage[order]


def _doors(number: Ints, between: Bools) -> Iterator[tuple[tuple[slice, slice], Bools, int]]:
    """Where rooms touch: the cells on both sides, as a box and a mask in it, and how long the border is.

    In thin walls the discs of two rooms leave no cells for the door between them.
    """
    room = (number > 0) & ~between[number]
    touching = np.zeros(number.shape, bool)
    for one, other in ((np.s_[1:, :], np.s_[:-1, :]), (np.s_[:, 1:], np.s_[:, :-1])):
        border = room[one] & room[other] & (number[one] != number[other])
        touching[one] |= border
        touching[other] |= border
    part: Ints = ndimage.label(touching, structure=ALL_AROUND)[0]  # pyright: ignore[reportAssignmentType, reportIndexIssue]
    for box, own in _parts(part, np.arange(1, part.max() + 1)):
        yield box, own, int(max(own.any(axis=0).sum(), own.any(axis=1).sum()))


def _belongs(number: Ints, middle: Ints) -> Bools:
    """(rows, columns) the cells at the rim of a region: the middle of their disc, or its middle and so on, has a number."""
    found = number > 0
    while True:
        more = found | found.ravel()[middle]
        if (more == found).all():
            return found
        found = more


def _cleared(free: Bools) -> Bools:
    """(rows, columns) the free cells and those of furniture."""
    island: Ints = ndimage.label(~free, structure=ALL_AROUND)[0]  # pyright: ignore[reportAssignmentType, reportIndexIssue]
    boxes = ndimage.find_objects(island)
    length = np.array([0] + [max(part.stop - part.start for part in box) for box in boxes])
    length[np.concatenate([island[0], island[-1], island[:, 0], island[:, -1]])] = 0  # walls around the map
    cleared = free.copy()
    for index in np.argsort(length, kind="stable").tolist():
        gap = APART * (length[index] + 1)
        if length[index] == 0 or gap > min(free.shape):
            continue
        reach = ceil(gap) + 1
        (top, bottom), (left, right) = ((part.start - reach, part.stop + reach) for part in boxes[index - 1])
        if min(top, left) < -1 or bottom > free.shape[0] + 1 or right > free.shape[1] + 1:
            continue  # too near to the edge of the map
        box = (slice(max(top, 0), bottom), slice(max(left, 0), right))
        own = island[box] == index
        away: Floats = ndimage.distance_transform_edt(~own)  # pyright: ignore[reportAssignmentType]
        if not (~free[box] & ~own & (away < gap + 1)).any():
            cleared[box] |= own
    return cleared


def _parts(part: Ints, chosen: Ints) -> Iterator[tuple[tuple[slice, slice], Bools]]:
    """The parts with the chosen numbers: a box that holds each with a border of one cell, and which cells of it they are."""
    boxes = ndimage.find_objects(part)
    for index in chosen[chosen > 0].tolist():
        rows, columns = boxes[index - 1]
        box = (slice(max(rows.start - 1, 0), rows.stop + 1), slice(max(columns.start - 1, 0), columns.stop + 1))
        yield box, part[box] == index


def _openings(own: Bools, number: Ints) -> list[int]:
    """The region behind each opening of a part to cells that have a number: connected cells just outside of the part."""
    around = np.asarray(ndimage.binary_dilation(own, ALL_AROUND), bool) & (number > 0)
    touched = np.asarray(ndimage.binary_dilation(own), bool) & (number > 0)
    opening: Ints = ndimage.label(around, structure=ALL_AROUND)[0]  # pyright: ignore[reportAssignmentType, reportIndexIssue]
    return [int(np.bincount(number[opening == index]).argmax()) for index in np.unique(opening[touched])]


# ---- names --------------------------------------------------------------------------------------


def _names(number: Ints, is_passage: Bools) -> tuple[str, ...]:
    """The name of each region: its kind, where it lies, and a number where these are the same for several."""
    names = [""] * len(is_passage)
    for kind, chosen in (("room", ~is_passage), ("passage", is_passage)):
        regions = (np.flatnonzero(chosen) + 1).tolist()
        where = _where(number, regions)
        alike, count = Counter(where.values()), Counter[str]()
        for region, side in where.items():
            count[side] += 1
            which = f" {count[side]}" if alike[side] > 1 else ""
            names[region - 1] = f"{side} {kind}{which}" if len(regions) > 1 else kind
    return tuple(names)


def _where(number: Ints, regions: list[int]) -> dict[int, str]:
    """Where regions lie: in which row and column if they form a grid of at most 3 x 3, otherwise in which third of the
    free space their middle is."""
    if not regions:
        return {}
    places = arrangement(number, regions)
    high, wide = (1 + max(where[axis] for where in places.values()) if places else 9 for axis in (0, 1))
    if high <= 3 and wide <= 3:
        return {region: compass(*places[region], high, wide) for region in regions}
    middles = np.array(ndimage.center_of_mass(number > 0, number, regions))
    cells = np.argwhere(number)
    low, high = cells.min(axis=0), cells.max(axis=0) + 1
    thirds = np.clip((3 * (middles + 0.5 - low) / (high - low)).astype(np.int64), 0, 2)
    return {region: compass(row, column, 3, 3) for region, (row, column) in zip(regions, thirds.tolist(), strict=True)}


def arrangement(number: Ints, kept: list[int]) -> dict[int, tuple[int, int]]:
    """(row, column) of each of the regions `kept` if these form a full grid; otherwise empty."""
    boxes = ndimage.find_objects(number)
    axes = []
    for axis in (0, 1):
        spans = sorted((boxes[room - 1][axis].start, boxes[room - 1][axis].stop, room) for room in kept)
        rank, end, line = {}, -1, -1
        for begin, stop, room in spans:
            line += begin >= end  # no overlap with the rooms before: a new row or column
            end = max(end, stop)
            rank[room] = line
        axes.append(rank)
    places = {room: (axes[0][room], axes[1][room]) for room in kept}
    high, wide = (1 + max(axis.values()) for axis in axes)
    return places if len(set(places.values())) == len(kept) == high * wide else {}


def compass(row: int, column: int, high: int, wide: int) -> str:
    """ "north-west", "middle": the name of a place in a grid of at most 3 x 3 places."""
    return "-".join(filter(None, (DOWN[high][row], ACROSS[wide][column]))) or "middle"
