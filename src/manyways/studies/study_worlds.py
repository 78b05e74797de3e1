"""The worlds of our own studies: which ones, and the generated models that are not among the paper's worlds.

- `field:SEED`: an open field of 19 x 19 cells with ten rectangular obstacles, with the rewards of the nine-room world.
- `network:SEED`: 150 junctions joined by roads, without a map. Labels say which junctions are in a park and which have a
  toll booth; they have no influence on the reward, which is that of the nine-room world without walls.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import ndimage, sparse
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.spatial import Delaunay

from manyways.errors import SettingError, check_integer
from manyways.formats import read
from manyways.model.closures import DOOR, Closure, closures
from manyways.model.corridors import PASSAGE
from manyways.model.episodes import GOAL
from manyways.model.mdp import MDP
from manyways.model.regions import find_regions
from manyways.model.trips import fewest_steps
from manyways.types import Bools, Floats
from manyways.worlds import grid_world

KINDS = ("four-rooms", "nine-rooms", "field", "network")
"""Kinds of generated worlds; a name of one of them stands for worlds with several seeds."""
SIDE, OBSTACLES = 19, 10
JUNCTIONS, KEPT_ROADS = 150, 0.45
TOLL = "toll"
CORRECT_TRANSITION, GOAL_REWARD, STEP_REWARD = 0.95, 200.0, -1.2


@dataclass(frozen=True)
class WorldSettings:
    """The settings that our own studies share.

    Attributes:
        trials: the number of worlds of each kind.
        seed: of the first of them.
        worlds: kinds of worlds, or sources of single models.
        sizes: numbers of plans in a set.
    """

    trials: int = 5
    seed: int = 0
    worlds: tuple[str, ...] = KINDS
    sizes: tuple[int, ...] = (2, 4, 6, 8)

    def __post_init__(self) -> None:
        check_integer("trials", self.trials, 1)
        check_integer("seed", self.seed, 0)
        for k in self.sizes:
            check_integer("k", k, 2)
        if not self.sizes or not self.worlds:
            raise SettingError("the study needs at least one k and one world")

    def sources(self) -> list[str]:
        """The sources of all worlds."""
        seeds = range(self.seed, self.seed + self.trials)
        return [
            source
            for name in dict.fromkeys(self.worlds)
            for source in ([f"{name}:{seed}" for seed in seeds] if name in KINDS else [name])
        ]


def study_world(source: str) -> MDP:
    """The model of a source: `field:500`, `network:500`, or anything that `read` takes."""
    name, _, seed = source.partition(":")
    return GENERATED[name](int(seed)) if name in GENERATED and seed.isdigit() else read(source)


def closing(mdp: MDP) -> dict[str, tuple[str, ...]]:
    """What may be closed in a model, as settings of `closures` and `PossibleClosures`.

    In a network each toll booth; elsewhere nothing is named, so that it is doors, passages, labels or actions.
    """
    if mdp.layout is not None:
        return {} if DOOR in mdp.labels else _passages(mdp)
    if TOLL not in mdp.labels:
        return {}
    booths = mdp.labels[TOLL] & (mdp.start <= 0) & ~mdp.labels["goal"]
    return {"states": tuple(mdp.state_name(int(s)) for s in np.flatnonzero(booths))}


def _passages(mdp: MDP) -> dict[str, tuple[str, ...]]:
    """Each passage of a field, also those between an obstacle and the edge."""
    regions, ends = find_regions(mdp), (mdp.start > 0) | mdp.labels[GOAL]
    held = {regions.names[region] for region in regions.of_state[ends] if region >= 0}
    names = tuple(name for name in regions.names if PASSAGE in name and name not in held)
    return {"regions": names} if names else {}


def possible_closures(mdp: MDP) -> tuple[Closure, ...]:
    """The closures with which the goal can still be reached."""
    named = {kind: list(names) for kind, names in closing(mdp).items()}
    return tuple(found for found in closures(mdp, **named) if fewest_steps(found.applied(mdp)) is not None)


def _field(seed: int) -> MDP:
    """An open field with obstacles. The start is in the upper left quarter, the goal in the lower right one."""
    rng, half = np.random.default_rng(seed), SIDE // 2
    while True:
        start = (int(rng.integers(half)), int(rng.integers(half)))
        goal = (SIDE - 1 - int(rng.integers(half)), SIDE - 1 - int(rng.integers(half)))
        walls = np.zeros((SIDE, SIDE), dtype=bool)
        for _ in range(OBSTACLES):
            high, wide = rng.integers(1, 5, 2)
            top, left = rng.integers(SIDE - high + 1), rng.integers(SIDE - wide + 1)
            walls[top : top + high, left : left + wide] = True
        if _joined(~walls, start, goal):
            return grid_world(walls, start, goal, goal_reward=GOAL_REWARD, name=f"field:{seed}")


def _joined(free: Bools, start: tuple[int, int], goal: tuple[int, int]) -> bool:
    part = np.zeros(free.shape, dtype=np.int32)
    ndimage.label(free, output=part)
    return bool(part[start] > 0 and part[start] == part[goal])


def _network(seed: int) -> MDP:
    """Junctions at random points of a square. The goal, in one corner, leads back to the start, in the opposite one."""
    rng = np.random.default_rng(seed)
    points = rng.random((JUNCTIONS, 2))
    neighbours = _roads(points, rng)
    start, goal = int(points.sum(axis=1).argmin()), int(points.sum(axis=1).argmax())
    rows = [(goal, "return", start, 1.0, GOAL_REWARD)]
    for here in range(JUNCTIONS):
        for number, there in enumerate(neighbours[here] if here != goal else (), 1):
            others = [other for other in neighbours[here] if other != there]
            correct = CORRECT_TRANSITION if others else 1.0
            rows.append((here, f"road {number}", there, correct, STEP_REWARD))
            rows += [(here, f"road {number}", other, (1 - correct) / len(others), STEP_REWARD) for other in others]
    park = np.flatnonzero((np.abs(points - rng.random(2)) < 0.25).all(axis=1))
    toll = np.flatnonzero(rng.random(JUNCTIONS) < 0.15)
    labels = {"park": park.tolist(), TOLL: toll.tolist(), "goal": [goal]}
    return MDP.from_transitions(rows, start=start, labels=labels, name=f"network:{seed}")


def _roads(points: Floats, rng: np.random.Generator) -> list[list[int]]:
    """The neighbours of each point: some edges of the Delaunay triangulation, and its shortest spanning tree."""
    corners = Delaunay(points).simplices
    edges = np.unique(np.sort(np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [0, 2]]])), axis=0)
    lengths = np.linalg.norm(points[edges[:, 0]] - points[edges[:, 1]], axis=1)
    graph = sparse.csr_array((lengths, edges.T), shape=(len(points), len(points)))
    tree = minimum_spanning_tree(graph).toarray() > 0
    kept = edges[tree[edges[:, 0], edges[:, 1]] | (rng.random(len(edges)) < KEPT_ROADS)]
    return [
        sorted({*kept[kept[:, 0] == i, 1].tolist(), *kept[kept[:, 1] == i, 0].tolist()}) for i in range(len(points))
    ]


GENERATED: dict[str, Callable[[int], MDP]] = {"field": _field, "network": _network}
