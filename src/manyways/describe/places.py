"""Places on the map of a model, in words: rooms and doors, or parts of the map, and the route of a plan through them.

North is up. Rooms are the areas that cells with the label `door` separate. Without doors, the map is divided into
thirds in each direction.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

import numpy as np

from manyways.describe.wording import joined, short
from manyways.model.mdp import MDP
from manyways.model.regions import ACROSS, DOWN, compass
from manyways.model.rooms import Rooms
from manyways.types import Bools, Floats, Ints, Sparse

LISTED = 6
"""Longer lists of rooms or turns are shortened."""


@dataclass(frozen=True)
class Passage:
    """A step of a route from one room to the next; `door` is a state, or None for a way through a wall."""

    door: int | None
    direction: str
    origin: int
    target: int


@dataclass(frozen=True)
class Route:
    """The rooms along a path, in order, and the passages between them."""

    rooms: tuple[int, ...]
    passages: tuple[Passage, ...]

    @property
    def turns(self) -> str:
        """ "east, south, south, east"; long routes with counts: "east ×3, south ×2"."""
        directions = [step.direction for step in self.passages]
        if len(directions) > LISTED:
            runs = [(name, len(list(run))) for name, run in groupby(directions)]
            directions = [name if count == 1 else f"{name} ×{count}" for name, count in runs]
            directions[2 * LISTED :] = ["…"] if len(directions) > 2 * LISTED else []
        return ", ".join(directions)


@dataclass(frozen=True, eq=False)
class Sectors:
    """Parts of a map.

    Attributes:
        of_state: (S,) the part of each state, -1 for states that do not count (start and goal).
        of_deeds: (S,) the same for what is done there: the start counts, the goal does not, where what is done is arbitrary.
        names: the name of each part.
        edges: (S,) masks of what one can go along, by name: "north edge", "cliff".
        whole: what shares are shares of: "way" if start or goal are left out, otherwise "time".
    """

    of_state: Ints
    of_deeds: Ints
    names: tuple[str, ...]
    edges: dict[str, Bools]
    whole: str


def likely_path(mdp: MDP, step: Sparse) -> list[int] | None:
    """The states from the most likely start to the goal, always taking the most likely step of an (S, S) chain.

    None if this path enters a cycle before it meets the goal.
    """
    goal, at = mdp.labels["goal"], int(np.argmax(mdp.start))
    path, seen = [at], {at}
    while not goal[at]:
        row = slice(step.indptr[at], step.indptr[at + 1])
        at = int(step.indices[row][np.argmax(step.data[row])])
        if at in seen:
            return None
        path.append(at)
        seen.add(at)
    return path


def beside_danger(mdp: MDP) -> tuple[str, Bools] | None:
    """What the blocked cells of a map are, if not walls ("cliff"), and (S,) the states beside them, start and goal left out.

    None without such cells, and where episodes can end in them: how many do says more.
    """
    layout = mdp.layout
    if layout is None or not layout.blocked_means or layout.blocked_means in mdp.ends or not layout.blocked.any():
        return None
    wide = np.pad(layout.blocked, 1)
    beside = (wide[:-2, 1:-1] | wide[2:, 1:-1] | wide[1:-1, :-2] | wide[1:-1, 2:]) & ~layout.blocked
    return layout.blocked_means, beside.ravel()[layout.cells] & on_the_way(mdp)


def on_the_way(mdp: MDP) -> Bools:
    """(S,) the states other than start and goal."""
    goal = mdp.labels.get("goal", np.zeros(mdp.n_states, bool))
    return ~goal & (mdp.start == 0)


def share_beside(mdp: MDP, by_state: Floats) -> tuple[str, Floats] | None:
    """The danger of the map, and (k,) the share of its way that each plan is beside it, for (k, S) times in states."""
    found = beside_danger(mdp)
    if found is None:
        return None
    way = by_state[:, on_the_way(mdp)].sum(axis=1)
    return found[0], by_state[:, found[1]].sum(axis=1) / np.maximum(way, 1e-300)


# ---- rooms ------------------------------------------------------------------------------------


def route_of(mdp: MDP, rooms: Rooms, path: list[int]) -> Route:
    """The rooms along a path of states. A step into a door and back into the same room is not a passage."""
    visited, passages = [], []
    door = before = None
    for state in path:
        room = int(rooms.of_state[state])
        if room == 0:
            door = state if mdp.labels["door"][state] else door
            continue
        if not visited or room != visited[-1]:
            if before is not None:
                passages.append(Passage(door, _direction(mdp, before, state), visited[-1], room))
            visited.append(room)
        before, door = state, None
    return Route(tuple(visited), tuple(passages))


def _direction(mdp: MDP, origin: int, target: int) -> str:
    """The compass direction from one state's cell to another's."""
    if mdp.layout is None:
        return ""
    (row, column), (to_row, to_column) = mdp.layout.position(origin), mdp.layout.position(target)
    return compass_direction(to_row - row, to_column - column)


def compass_direction(down: float, right: float) -> str:
    """ "north", "south-east"; the smaller component is dropped if it is less than half of the larger one."""
    vertical = ("south" if down > 0 else "north") if abs(down) * 2 >= abs(right) and down else ""
    horizontal = ("east" if right > 0 else "west") if abs(right) * 2 >= abs(down) and right else ""
    return "-".join(filter(None, (vertical, horizontal)))


# ---- regions found in a map ---------------------------------------------------------------------


def is_passage(region: str) -> bool:
    """Whether a region with this name is a passage; the others are rooms."""
    return "passage" in region


def is_telling(region: str) -> bool:
    """Whether the name of a region says where it is. Those with numbers do not: the page shows no numbers on its maps."""
    return not region[-1].isdigit()


def listed_regions(names: list[str]) -> str:
    """ "the west passage", "the west and north rooms", "the west passage and the east room"; names that are telling."""
    kinds = {name.rpartition(" ")[2] for name in names}
    if len(names) > 1 and len(kinds) == 1 and kinds <= {"room", "passage"}:
        return f"the {joined([name.rpartition(' ')[0] for name in names])} {kinds.pop()}s"
    return joined([f"the {name}" for name in names])


# ---- parts of a map ---------------------------------------------------------------------------


def sectors_of(mdp: MDP) -> Sectors | None:
    """The thirds in each direction of the bounding box of all free cells; None without a layout, or for a single part."""
    if mdp.layout is None:
        return None
    rows, columns = np.divmod(mdp.layout.cells, mdp.layout.shape[1])
    free = ~mdp.layout.blocked.ravel()[mdp.layout.cells]
    if not free.any():
        free[:] = True
    across, names = [], []
    for at, words in ((rows, DOWN), (columns, ACROSS)):
        low, high = int(at[free].min()), int(at[free].max()) + 1
        parts = min(3, high - low)
        across.append(np.clip((at - low) * parts // (high - low), 0, parts - 1))
        names.append(words[parts])
    if len(names[0]) * len(names[1]) < 2:
        return None
    ends = np.zeros(mdp.n_states, bool)
    for label in ("start", "goal"):
        ends |= mdp.labels.get(label, False)
    part, goal = across[0] * len(names[1]) + across[1], mdp.labels.get("goal", np.zeros(mdp.n_states, bool))
    of_state, of_deeds = np.where(ends, -1, part), np.where(goal, -1, part)
    grid = [compass(r, c, len(names[0]), len(names[1])) for r in range(len(names[0])) for c in range(len(names[1]))]
    edges, danger = _edges(rows, columns, free & ~ends), beside_danger(mdp)
    if danger is not None:  # what looks like an edge may be the danger's
        edges = {name: mask for name, mask in edges.items() if danger[1][mask].mean() < 0.5}
        edges[short(danger[0])] = danger[1]
    return Sectors(of_state, of_deeds, tuple(grid), edges, "way" if ends.any() else "time")


def sides_of(sectors: Sectors) -> dict[str, list[int]]:
    """The three parts on each side of a map of 3 x 3 parts, by name: "north-east" are the north, the north-east and the
    east. Empty for other maps."""
    if len(sectors.names) != 9:
        return {}
    around = [0, 1, 2, 5, 8, 7, 6, 3]  # clockwise from the north-west
    return {sectors.names[part]: [around[i - 1], part, around[(i + 1) % 8]] for i, part in enumerate(around)}


def _edges(rows: Ints, columns: Ints, counted: Bools) -> dict[str, Bools]:
    """The outermost cells on each side, in directions in which the map has at least three cells."""
    edges = {}
    for at, first, last in ((rows, "north", "south"), (columns, "west", "east")):
        inside = at[counted]
        if inside.size and inside.max() - inside.min() >= 2:
            edges[f"{first} edge"] = counted & (at == inside.min())
            edges[f"{last} edge"] = counted & (at == inside.max())
    return edges


def shares_by_sector(sectors: Sectors, by_state: Floats) -> tuple[Floats, dict[str, Floats]]:
    """(k, S) time by state -> (k, sectors) shares of the way, and by edge (k,) shares of the way.

    The way is the time outside start and goal. If it is at most 1 % of a plan's time, the shares of the plan are zero.
    """
    counted = sectors.of_state >= 0
    way = by_state[:, counted].sum(axis=1)
    scale = np.where(way > 0.01, 1 / np.maximum(way, 0.01), 0.0)[:, None]
    shares = np.stack(
        [by_state[:, sectors.of_state == sector].sum(axis=1) for sector in range(len(sectors.names))], axis=1
    )
    return shares * scale, {name: by_state[:, mask].sum(axis=1) * scale[:, 0] for name, mask in sectors.edges.items()}
