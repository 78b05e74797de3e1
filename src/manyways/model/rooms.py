"""Rooms of a map: the areas that cells with the label `door` separate, named by where they lie; north is up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from manyways.model.graph import state_graph
from manyways.model.mdp import MDP
from manyways.model.regions import arrangement, compass, components
from manyways.types import Bools, Ints

SMALLEST_ROOM = 2
LISTED = 6
"""Longer lists of rooms are shortened."""


@dataclass(frozen=True, eq=False)
class Rooms:
    """The rooms of a model, numbered from 1.

    Attributes:
        of_state: (S,) the room of each state, 0 for doors and walls.
        names: "north-west room" or "room 4" of each room, by number - 1.
        compass: whether the names are compass directions.
    """

    of_state: Ints
    names: tuple[str, ...]
    compass: bool

    def name(self, room: int) -> str:
        return f"the {self.names[room - 1]}" if self.compass else self.names[room - 1]

    def listed(self, numbers: list[int]) -> str:
        """ "the north, middle and east rooms", "rooms 1, 2 and 5", "the middle room"."""
        if len(numbers) == 1:
            return self.name(numbers[0])
        short = [self.names[n - 1].removesuffix(" room") if self.compass else str(n) for n in numbers]
        if len(short) > LISTED:
            short[LISTED - 1 :] = [f"{len(short) - LISTED + 1} more"]
        together = f"{', '.join(short[:-1])} and {short[-1]}"
        return f"the {together} rooms" if self.compass else f"rooms {together}"


def rooms_of(mdp: MDP) -> Rooms | None:
    """The rooms that doors separate; None without a layout, without doors, or with fewer than two rooms."""
    door = mdp.labels.get("door")
    if mdp.layout is None or door is None or not door.any():
        return None
    free = np.zeros(mdp.layout.blocked.size, bool)
    free[mdp.layout.cells[~door]] = True
    free[mdp.layout.cells[door]] = False
    number = components(free.reshape(mdp.layout.shape) & ~mdp.layout.blocked)
    sizes = np.bincount(number.ravel())
    kept = [room for room in range(1, len(sizes)) if sizes[room] >= SMALLEST_ROOM]
    if len(kept) < 2:
        return None
    places = arrangement(number, kept)
    ordered = sorted(kept, key=places.__getitem__) if places else kept
    renumbered = np.zeros(len(sizes), np.int64)
    renumbered[ordered] = np.arange(1, len(ordered) + 1)
    of_state = renumbered[number.ravel()[mdp.layout.cells]]
    of_state[door] = 0
    high, wide = (1 + max(where[axis] for where in places.values()) if places else 9 for axis in (0, 1))
    if high > 3 or wide > 3:
        return Rooms(of_state, tuple(f"room {n}" for n in range(1, len(ordered) + 1)), False)
    return Rooms(of_state, tuple(f"{compass(*places[room], high, wide)} room" for room in ordered), True)


def joined_rooms(mdp: MDP, rooms: Rooms, door: Bools) -> list[int]:
    """The rooms that a door, given by its (S,) states, leads to from one step away; sorted."""
    graph = state_graph(mdp)
    beside = np.asarray((graph + graph.T)[np.flatnonzero(door)].sum(axis=0)).ravel() > 0
    return sorted(set(rooms.of_state[beside & ~door].tolist()) - {0})
