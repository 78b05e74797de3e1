"""A small model without a map as a drawing: its states as boxes in layers, and the steps of each plan as lines.

States stand in the layer of their fewest steps from the start; within a layer they are ordered so that lines cross little
(the barycentre heuristic of Sugiyama, Tagawa and Toda, 1981). Layers are columns, or rows if there are more layers than
states in the largest one. Both are computed with `along`, across the layers, and `aside`, within them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csgraph, csr_array

from manyways.describe.wording import short
from manyways.model.episodes import episode_ends
from manyways.model.occupancy import chain
from manyways.plans.planset import PlanSet
from manyways.types import Floats, Ints

MOST_STATES = 60
USED = 0.002
"""Steps with a smaller share of a plan's time are left out."""
LETTERS = 16
BOX_WIDTH, BOX_HEIGHT, MARGIN = 118.0, 34.0, 30.0
ACROSS, DOWN = (176.0, 62.0), (144.0, 84.0)
"""The distances of boxes to the right and downwards, for layers that are columns and for layers that are rows."""
LANE = 6.0
ROUNDS = 8


def graph_overview(plans: PlanSet, by_state: Floats, tints: Sequence[int]) -> dict[str, Any] | None:
    """The drawing of a set; None if its plans use too many states.

    Args:
        plans: the set.
        by_state: (k, S) the time of each plan in each state.
        tints: the colour of each plan, from 1; plans with 0 are not drawn.
    """
    flows, restarts = _flows(plans, by_state)
    states = np.flatnonzero((by_state > USED).any(axis=0) | (plans.mdp.start > 0))
    if len(states) > MOST_STATES:
        return None
    among = {(s, t) for flow in flows for s, t in flow if s in states and t in states}
    layers = _layers(plans, states, among)
    frame = _frame(len(layers), max(map(len, layers)))
    along, aside = _places(layers, among, frame)
    x, y = (along, aside) if frame.columns else (aside, along)
    shown = [i for i in range(plans.k) if tints[i]]
    lanes: dict[tuple[int, int], list[int]] = defaultdict(list)
    for i in shown:
        for pair in sorted(flows[i]):
            if pair in among:
                lanes[_unordered(pair)].append(i)
    most = by_state.max()
    curves = [
        (i, share, *_curve(pair, along, aside, lanes[_unordered(pair)], i, frame))
        for i in shown
        for pair, share in sorted(flows[i].items())
        if pair in among
    ]
    boxes = np.array([(x[s], y[s]) for s in states.tolist()])
    half = np.array([BOX_WIDTH, BOX_HEIGHT]) / 2 + MARGIN
    reached = np.vstack(
        [boxes - half, boxes + half, *(corners + end for *_, corners in curves for end in (-LANE, LANE))]
    )
    (left, top), (width, height) = reached.min(axis=0), np.ptp(reached, axis=0)
    return {
        "left": round(float(left), 1),
        "top": round(float(top), 1),
        "width": round(float(width), 1),
        "height": round(float(height), 1),
        "pixel": round(float(width) / 690.0, 3),
        "box": {"width": BOX_WIDTH, "height": BOX_HEIGHT},
        "states": [
            {
                "x": round(x[s], 1),
                "y": round(y[s], 1),
                "name": _cut(plans.mdp.state_name(s)),
                "full": short(plans.mdp.state_name(s)),
                "start": bool(plans.mdp.start[s] > 0),
                "shares": [
                    {"plan": i, "tint": tints[i], "opacity": round(float(np.sqrt(by_state[i, s] / most)) * 0.6, 3)}
                    for i in shown
                    if by_state[i, s] > USED
                ],
            }
            for s in states.tolist()
        ],
        "restarts": restarts,
        "steps": [
            {"plan": i, "tint": tints[i], "width": round(1.4 + 4 * float(np.sqrt(share)), 2)} | curve
            for i, share, curve, _ in curves
        ],
    }


def _flows(plans: PlanSet, by_state: Floats) -> tuple[list[dict[tuple[int, int], float]], bool]:
    """For each plan, the share of its time on each step from a state to another, without the steps with which an episode ends and
    the next one begins; and whether there are such steps."""
    mdp, ends, found = plans.mdp, episode_ends(plans.mdp), []
    for policy, time in zip(plans.policies, by_state, strict=True):
        step = chain(mdp, policy)
        if ends is not None:
            ending = np.add.reduceat(policy * ends, mdp.first_choice[:-1])
            step = csr_array(step - csr_array(ending[:, None]) @ csr_array(mdp.start[None, :]))
        step = step.tocoo()
        share = step.data * time[step.row]
        kept = share > USED
        found.append(
            {(int(s), int(t)): float(f) for s, t, f in zip(step.row[kept], step.col[kept], share[kept], strict=True)}
        )
    return found, ends is not None


@dataclass(frozen=True)
class _Frame:
    """How layers are drawn: whether they are columns, how far layers and states are apart, and half the size of a box."""

    columns: bool
    layer_step: float
    state_step: float
    half_along: float
    half_aside: float


def _frame(layers: int, largest: int) -> _Frame:
    if layers <= max(largest, 4):
        return _Frame(True, *ACROSS, BOX_WIDTH / 2, BOX_HEIGHT / 2)
    return _Frame(False, DOWN[1], DOWN[0], BOX_HEIGHT / 2, BOX_WIDTH / 2)


def _layers(plans: PlanSet, states: Ints, among: set[tuple[int, int]]) -> list[list[int]]:
    """The states by their fewest steps from the start; those that no drawn step leads to come last."""
    position = {int(s): i for i, s in enumerate(states)}
    rows, targets = ([position[pair[end]] for pair in among] for end in (0, 1))
    graph = csr_array((np.ones(len(rows)), (rows, targets)), shape=(len(states), len(states)))
    starts = [position[int(s)] for s in np.flatnonzero(plans.mdp.start > 0)]
    far = csgraph.dijkstra(graph, indices=starts, unweighted=True).min(axis=0)
    far = np.where(np.isfinite(far), far, far[np.isfinite(far)].max() + 1).astype(int)
    return [layer for n in range(far.max() + 1) if (layer := [int(s) for s in states[far == n]])]


def _places(
    layers: list[list[int]], among: set[tuple[int, int]], frame: _Frame
) -> tuple[dict[int, float], dict[int, float]]:
    """Where the middle of each state's box is, along and aside."""
    near: dict[int, list[int]] = defaultdict(list)
    for s, t in among:
        if s != t:
            near[s].append(t)
            near[t].append(s)
    largest = max(len(layer) for layer in layers)
    aside: dict[int, float] = {}

    def settle(layer: list[int]) -> None:
        first = (largest - len(layer)) / 2
        for rank, s in enumerate(layer):
            aside[s] = MARGIN + frame.half_aside + (first + rank) * frame.state_step

    for layer in layers:
        settle(layer)
    for _ in range(ROUNDS):
        for layer in layers:
            layer.sort(key=lambda s: np.mean([aside[t] for t in near[s]]) if near[s] else aside[s])
            settle(layer)
    along = {s: MARGIN + frame.half_along + i * frame.layer_step for i, layer in enumerate(layers) for s in layer}
    return along, aside


def _unordered(pair: tuple[int, int]) -> tuple[int, int]:
    return min(pair), max(pair)


def _loop(x: float, y: float, rank: int) -> tuple[dict[str, Any], Floats]:
    """A step from a state to itself, round those of the plans before it."""
    rise, out = 14 + LANE * 4 / 3 * rank, LANE * rank / 2
    left, top = x - BOX_WIDTH / 2 + 14, y - BOX_HEIGHT / 2
    corners = np.array(
        [(left - out, top), (left - 4 - out, top - rise), (left + 28 + out, top - rise), (left + 24 + out, top)]
    )
    return {"d": _path(corners), "tip": None}, corners


def _depth(s: int, t: int, along: dict[int, float], aside: dict[int, float], side: int, frame: _Frame) -> float:
    """How far aside an arc back has to go to pass all boxes between its ends; a cubic curve reaches 3/4 of its corners."""
    first, last = sorted((along[s], along[t]))
    between = [side * aside[u] for u in along if first < along[u] < last]
    beyond = max(between, default=-np.inf) + LANE * 2 - max(side * aside[s], side * aside[t])
    return max(18 + 0.1 * abs(along[t] - along[s]), (beyond + frame.half_aside / 2) * 4 / 3)


def _curve(
    pair: tuple[int, int],
    along: dict[int, float],
    aside: dict[int, float],
    users: list[int],
    plan: int,
    frame: _Frame,
) -> tuple[dict[str, Any], Floats]:
    """The line of a step, and (4, 2) corners between which it lies: straight on to a later layer, an arc back to an earlier one,
    a loop to the state itself. It has a lane of its own beside those of the other plans that take the step."""
    s, t = pair
    rank = users.index(plan)
    lane = (rank - (len(users) - 1) / 2) * LANE
    if s == t:
        return _loop(*((along[s], aside[s]) if frame.columns else (aside[s], along[s])), rank)
    apart = along[t] - along[s]
    if apart > 0:
        a, b = (along[s] + frame.half_along, aside[s] + lane), (along[t] - frame.half_along, aside[t] + lane)
        bend = (b[0] - a[0]) / 2
        c, d = (a[0] + bend, a[1]), (b[0] - bend, b[1])
    else:
        side = 1 if aside[t] >= aside[s] else -1
        edge, depth = side * frame.half_aside, side * (_depth(s, t, along, aside, side, frame) + abs(lane))
        a = (along[s] + lane, aside[s] + edge)
        b = (along[t] + lane, aside[t] + (edge if apart else -edge))
        c, d = (a[0], a[1] + depth), (b[0], b[1] + (depth if apart else -depth))
        if not apart:  # two states of one layer: between them if they are neighbours, else around those in between
            out = 0.0 if abs(aside[t] - aside[s]) <= frame.state_step else frame.layer_step / 2
            c, d = (a[0] + out, (a[1] + b[1]) / 2), (b[0] + out, (a[1] + b[1]) / 2)
    points = (a, c, d, b) if frame.columns else tuple(point[::-1] for point in (a, c, d, b))
    corners = np.array(points)
    middle = np.array([1, 3, 3, 1]) @ corners / 8
    across, down = np.array([-1, -1, 1, 1]) @ corners
    tip = {"x": round(float(middle[0]), 1), "y": round(float(middle[1]), 1)}
    turn = round(float(np.degrees(np.arctan2(down, across))), 1)
    return {"d": _path(corners), "tip": tip | {"turn": turn}}, corners


def _path(corners: Floats) -> str:
    return "M{:.1f} {:.1f}C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}".format(*corners.ravel())


def _cut(name: str) -> str:
    shown = short(name)
    return shown if len(shown) <= LETTERS else shown[: LETTERS - 1] + "…"
