"""Groups of plans that are alike, for sets with more plans than there are colours."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import squareform

from manyways.describe import Survey
from manyways.types import Floats

COLOURS = 8
"""The plans, or groups of plans, that have a colour of their own."""


@dataclass(frozen=True)
class Group:
    """Plans that are more like each other than like the others.

    Attributes:
        leader: the plan with the best value, which is drawn and named for all of them.
        members: the plans, the leader first and the others by their value; all counted from 0.
    """

    leader: int
    members: tuple[int, ...]


def groups_of(survey: Survey) -> list[Group] | None:
    """At most `COLOURS` groups, the one with the best leader first; None if each plan can have a colour of its own."""
    plans = survey.plans
    if plans.k <= COLOURS:
        return None
    number = _clusters(survey.likeness.apart)
    ordered = np.argsort(-plans.rewards, kind="stable").tolist()
    members: dict[int, list[int]] = {}
    for plan in ordered:
        members.setdefault(int(number[plan]), []).append(plan)
    return [Group(own[0], tuple(own)) for own in members.values()]


def alike_groups(survey: Survey) -> list[list[int]]:
    """Groups of at least two plans, each two of which are alike; every two plans that are alike are in one of them.

    Likeness does not always carry over: if a plan is like two others that are not alike, each pair is a group of its own.
    """
    likeness, plans = survey.likeness, range(survey.plans.k)
    alike = np.array([[likeness.alike(i, j) for j in plans] for i in plans])
    count, number = connected_components(csr_array(alike), directed=False)
    found: list[list[int]] = []
    for component in range(count):
        members = np.flatnonzero(number == component)
        if len(members) > 1 and alike[np.ix_(members, members)].all():
            found.append(members.tolist())
        else:
            found += [[i, j] for i, j in combinations(members.tolist(), 2) if alike[i, j]]
    return found


def tints_of(k: int, groups: list[Group] | None) -> list[int]:
    """The colour of each plan, from 1; 0 for those that only a group has a colour for."""
    if groups is None:
        return list(range(1, k + 1))
    tints = [0] * k
    for colour, group in enumerate(groups, 1):
        tints[group.leader] = colour
    return tints


def _clusters(apart: Floats) -> np.ndarray:
    """(k,) the number of the cluster of each plan: average linkage of the distances, cut into `COLOURS` clusters."""
    between = (apart + apart.T) / 2
    np.fill_diagonal(between, 0.0)
    return fcluster(linkage(squareform(np.maximum(between, 0.0), checks=False), "average"), COLOURS, "maxclust")
