"""Corridors: the passages of a map as people count doors, between the rooms that they join.

Passages (`regions`) are narrow places: also the floor between a desk and a wall, and each stretch of a corridor that a
pillar or an error of the map divides. Passages and small rooms between them that touch each other are one corridor if each of
these passages cuts it: closing any of them is the same. What leads only from a room back to the same room is no corridor,
unless the map has nothing else.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from manyways.model.episodes import episode_ends
from manyways.model.graph import state_graph
from manyways.model.mdp import MDP
from manyways.model.regions import MapRegions
from manyways.types import Bools, Ints

PASSAGE = "passage"
SMALL = 0.1
"""A room of less than this share of the largest one may be a part of a corridor."""
LARGE = 0.25
"""What has more than this share of all cells is no corridor: without it there would be no map left."""


def corridors(mdp: MDP, regions: MapRegions, fixed: Bools) -> list[tuple[str, Bools]]:
    """The corridors of a map without the states `fixed` (S,), each with its name and its states (S,)."""
    touching = _touching(mdp, regions)
    passage = np.array([PASSAGE in name for name in regions.names])
    inside = regions.of_state >= 0
    area = np.bincount(regions.of_state[inside], minlength=len(passage))
    kept = np.bincount(regions.of_state[inside & fixed], minlength=len(passage)) == 0
    parts = kept & (passage | (area < SMALL * area.max()))
    members = np.flatnonzero(parts)
    _, group = csgraph.connected_components(sparse.csr_array(touching[members][:, members]), directed=False)
    found: list[Ints] = []
    for number in np.unique(group):
        own = members[group == number]
        if passage[own].any() and len(_around(touching, own)) >= 2:
            found += _divided(touching, own, passage)
    if not found:
        found = [np.array([one]) for one in np.flatnonzero(passage & kept)]
    found = [own for own in found if area[own].sum() <= LARGE * area.sum()]
    named = zip(_names(regions, found, area, passage), found, strict=True)
    return sorted(((name, np.isin(regions.of_state, own)) for name, own in named), key=lambda one: int(one[1].argmax()))


def _touching(mdp: MDP, regions: MapRegions) -> Bools:
    """(R, R) the regions that moves lead between, in one of the two directions."""
    graph = sparse.coo_array(state_graph(mdp))
    ends = episode_ends(mdp)
    moving = np.ones(mdp.n_states, bool) if ends is None else np.add.reduceat(ends, mdp.first_choice[:-1]) <= 0
    one, other = regions.of_state[graph.row], regions.of_state[graph.col]
    move = moving[graph.row] & (one >= 0) & (other >= 0) & (one != other)
    touching = np.zeros((len(regions.names), len(regions.names)), bool)
    touching[one[move], other[move]] = True
    return touching | touching.T


def _around(touching: Bools, own: Ints) -> Ints:
    """The regions around some."""
    return np.setdiff1d(np.flatnonzero(touching[own].any(axis=0)), own)


def _divided(touching: Bools, own: Ints, passage: Bools) -> list[Ints]:
    """One corridor, if it joins two rooms and each of its passages cuts it; otherwise its passages that lead somewhere."""
    passages = own[passage[own]]
    around = _around(touching, own)
    if len(around) == 2 and all(_cuts(touching, own[own != one], around) for one in passages):
        return [own]
    return [np.array([one]) for one in passages if touching[one].sum() >= 2]


def _cuts(touching: Bools, left: Ints, ends: Ints) -> bool:
    """Whether no way leads through the regions `left` from the one end to the other."""
    inside = np.append(left, ends)
    links = touching[inside][:, inside].copy()
    links[-2, -1] = links[-1, -2] = False
    _, part = csgraph.connected_components(sparse.csr_array(links), directed=False)
    return part[-1] != part[-2]


def _names(regions: MapRegions, found: list[Ints], area: Ints, passage: Bools) -> list[str]:
    """The name of the largest passage of each, without its number if no other has the same."""
    largest = [own[passage[own]][np.argmax(area[own[passage[own]]])] for own in found]
    whole = [regions.names[one] for one in largest]
    plain = [name.rstrip("0123456789 ") for name in whole]
    count = Counter(plain)
    return [
        short if len(own) > 1 and count[short] == 1 else name
        for own, short, name in zip(found, plain, whole, strict=True)
    ]
