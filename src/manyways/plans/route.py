"""The most likely way of a plan to the goal, as waypoints on the map.

A plan says what to do in every state; a route is one path of it, for programs that follow waypoints. It follows what the
choices of the plan aim for: from each state, a choice leads to its most likely other state, and slips to other states are
left out. Of several such paths, as of plans that randomise, the most likely one is taken. Where no such path reaches the
goal, as in models whose outcomes are seldom what was aimed for, slips count as well. Both are shortest paths with -ln p as
the length of a step, so no state is visited twice, and models of millions of states are no problem.

Files of routes, by their ending:

- `.csv`: the columns `step`, `x`, `y`, `state`;
- `.json`: the same, with the unit, the frame and the probability of the route;
- `.yaml`: a `nav_msgs/Path` as ROS prints and reads messages; each pose looks towards the next one.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from manyways.errors import OutputError, SettingError
from manyways.files import write_bytes
from manyways.files.spreadsheet_cells import cell
from manyways.model.checking import frozen
from manyways.model.episodes import GOAL, goal_ends
from manyways.model.mdp import MDP
from manyways.model.occupancy import chain
from manyways.types import Bools, Floats, Ints, Sparse

FRAME = "map"
"""The name of the frame of maps in ROS."""
STEP = 1e-12
"""Added to the length of each step, so that the shorter of two equally likely paths is taken."""
DECIMALS = 6
"""Of coordinates in files: a micrometre."""


@dataclass(frozen=True, eq=False)
class Route:
    """A path of states with their places.

    Attributes:
        states: (n,) from the start to the goal.
        points: (n, 2) x and y of each, in metres in the frame of the map, or column and row of the cell.
        unit: "m" or "cells", as `Grid.unit`; rows of cells grow downwards.
        names: (n,) of the states.
        probability: that a run of the plan takes exactly this path, however long it waits in a state.
        frame: the name of the frame, for ROS.
    """

    states: Ints
    points: Floats
    unit: str
    names: tuple[str, ...]
    probability: float
    frame: str = FRAME

    def __post_init__(self) -> None:
        object.__setattr__(self, "states", frozen(self.states, np.int64))
        object.__setattr__(self, "points", frozen(self.points, np.float64))

    def __len__(self) -> int:
        return len(self.states)

    @property
    def length(self) -> float:
        """From the first point to the last one along straight lines, in the unit of the points."""
        return float(np.hypot(*np.diff(self.points, axis=0).T).sum())

    @property
    def headings(self) -> Floats:
        """(n,) the direction from each point to the next, in radians from the x axis towards the y axis; the last point
        has that of the one before it, and a single point has 0."""
        if len(self) == 1:
            return np.zeros(1)
        along = np.diff(self.points, axis=0)
        found = np.arctan2(along[:, 1], along[:, 0])
        return np.append(found, found[-1])

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the route in the format that the ending says (.csv, .json, .yaml); returns the path."""
        path = Path(path)
        check_route_path(path)
        write_bytes(path, self.to_bytes(path.suffix))
        return path

    def to_bytes(self, ending: str) -> bytes:
        """The content of a file with this ending."""
        return WRITERS[ending](self).encode()


def check_route_path(path: Path) -> None:
    """Raise an `OutputError` unless the ending of `path` is one of a route file; called before the work."""
    if path.suffix not in WRITERS:
        raise OutputError(f"cannot write {path}: a route ends in one of {', '.join(WRITERS)}")


# ---- finding the route ----------------------------------------------------------------------------


def likely_route(mdp: MDP, policy: Floats) -> Route:
    """The route of an (N,) policy from the most likely start to the goal; see the head of this module.

    Raises:
        SettingError: if the model has no layout or no goal, or if the policy never reaches the goal.
    """
    if mdp.layout is None:
        raise SettingError(f"{mdp.name} has no map, so its plans have no routes")
    step, start, goal = _leaving(chain(mdp, policy)), int(np.argmax(mdp.start)), _goal(mdp, policy)
    path = likeliest_path(_aimed(mdp, policy, step), start, goal)
    if path is None:
        path = likeliest_path(step, start, goal)
    if path is None:
        raise SettingError(f"the plan never reaches the goal of {mdp.name}, so it has no route")
    chances = np.asarray(step[path[:-1], path[1:]]).ravel() if len(path) > 1 else np.ones(1)
    return Route(
        path,
        mdp.layout.coordinates(path),
        mdp.layout.unit,
        tuple(mdp.state_name(int(state)) for state in path),
        float(np.exp(np.log(chances).sum())),
    )


def likeliest_path(step: Sparse, start: int, goal: Bools) -> Ints | None:
    """The path from a state to any state of `goal` (S,) with the largest product of the entries of `step` (S, S).

    None if no path leads there.
    """
    lengths = sparse.csr_array((STEP - np.log(step.data), step.indices, step.indptr), shape=step.shape)
    away, before = csgraph.dijkstra(lengths, indices=start, return_predecessors=True)
    ends = np.flatnonzero(goal & np.isfinite(away))
    if not ends.size:
        return None
    path = [int(ends[np.argmin(away[ends])])]
    while path[-1] != start:
        path.append(int(before[path[-1]]))
    return np.array(path[::-1])


def _goal(mdp: MDP, policy: Floats) -> Bools:
    """(S,) where a route may end: in the states with the label "goal", or else where the plan ends episodes there."""
    if GOAL in mdp.labels and mdp.labels[GOAL].any():
        return mdp.labels[GOAL]
    ends = goal_ends(mdp)
    if ends is None:
        raise SettingError(f"{mdp.name} has no goal, so its plans have no routes: no state has the label {GOAL!r}")
    return np.add.reduceat(ends * policy, mdp.first_choice[:-1]) > 0


def _leaving(step: Sparse) -> Sparse:
    """(S, S) where a chain goes when it leaves each state: without the steps that stay."""
    source = np.repeat(np.arange(step.shape[0]), np.diff(step.indptr))
    away = step.indices != source
    out = np.bincount(source[away], step.data[away], minlength=step.shape[0])
    begin = np.concatenate([[0], np.cumsum(np.bincount(source[away], minlength=step.shape[0]))])
    return sparse.csr_array((step.data[away] / out[source[away]], step.indices[away], begin), shape=step.shape)


def _aimed(mdp: MDP, policy: Floats, step: Sparse) -> Sparse:
    """(S, S) the entries of `step` that are the most likely move to another state of some choice that is taken."""
    used = np.flatnonzero(policy > 0)
    rows = mdp.transitions[used]
    row = np.repeat(np.arange(len(used)), np.diff(rows.indptr))
    state = mdp.choice_state[used][row]
    chance = np.where(rows.indices == state, 0.0, rows.data)
    most = np.maximum.reduceat(chance, rows.indptr[:-1])[row]
    aims = (chance > 0) & (chance >= most * (1 - 1e-9))
    pattern = sparse.coo_array((np.ones(np.count_nonzero(aims)), (state[aims], rows.indices[aims])), step.shape)
    pattern = sparse.csr_array(pattern)
    pattern.data[:] = 1.0
    return sparse.csr_array(step.multiply(pattern))


# ---- files ----------------------------------------------------------------------------------------


def _rows(route: Route) -> list[tuple[int, float, float, str]]:
    """(step, x, y, state) of each point."""
    points = np.round(route.points, DECIMALS) + 0.0  # no -0.0
    return [(i, x, y, name) for i, ((x, y), name) in enumerate(zip(points.tolist(), route.names, strict=True))]


def _to_csv(route: Route) -> str:
    text = io.StringIO(newline="")
    text.write("step,x,y,state\n")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows((i, repr(x), repr(y), cell(name)) for i, x, y, name in _rows(route))
    return text.getvalue()


def _to_json(route: Route) -> str:
    points = [{"step": i, "x": x, "y": y, "state": name} for i, x, y, name in _rows(route)]
    head = {"unit": route.unit, "frame_id": route.frame if route.unit == "m" else None}
    return json.dumps({**head, "probability": route.probability, "waypoints": points}, indent=1) + "\n"


def _to_path(route: Route) -> str:
    """A `nav_msgs/Path`. Orientations are turns around the z axis as quaternions."""
    if route.unit != "m":
        raise OutputError(
            "a path of ROS is in metres, and the map has no origin: save the route as .csv or .json, in cells"
        )
    header = ["header:", "  stamp: {sec: 0, nanosec: 0}", f"  frame_id: {json.dumps(route.frame)}"]
    lines = [*header, "poses:"]
    for (_, x, y, _), heading in zip(_rows(route), route.headings.tolist(), strict=True):
        lines += [("- " if i == 0 else "  ") + line for i, line in enumerate(header)]
        z, w = (round(part, 12) + 0.0 for part in (math.sin(heading / 2), math.cos(heading / 2)))
        lines += [
            "  pose:",
            f"    position: {{x: {x:f}, y: {y:f}, z: 0.0}}",
            f"    orientation: {{x: 0.0, y: 0.0, z: {z:.12f}, w: {w:.12f}}}",
        ]
    return "\n".join(lines) + "\n"


WRITERS: dict[str, Callable[[Route], str]] = {".csv": _to_csv, ".json": _to_json, ".yaml": _to_path}
