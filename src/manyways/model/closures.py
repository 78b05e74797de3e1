"""Closures: the same model with something closed: a door, a region, a few states, an action.

A move from outside into the closed part fails: the state stays as it is, and the time passes. An action that is closed fails
everywhere. A step that fails earns nothing and costs what it would have cost. A closed model has the same states and choices as the open one,
so every policy of the one is a policy of the other, and all names and drawings come through.

Restarts are no moves: where an episode begins in the closed part, it still does, and can leave it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from manyways.errors import ModelError, SettingError
from manyways.model.corridors import corridors
from manyways.model.episodes import GOAL, episode_ends
from manyways.model.graph import state_graph
from manyways.model.mdp import MDP
from manyways.model.naming import mask_of_states, names_in, where_named
from manyways.model.regions import find_regions
from manyways.model.rooms import joined_rooms, rooms_of
from manyways.types import Bools, Floats

DOOR = "door"
NO_PLACES = ("start", "init", "deadlock", GOAL)
"""Labels that are no obstacles on the way."""
DIRECTION_LIST = """
north south east west northeast northwest southeast southwest left right up down forward forwards back backward backwards
"""
DIRECTIONS = frozenset(DIRECTION_LIST.split())
"""Moves, which do not fail everywhere at once."""


@dataclass(frozen=True, eq=False)
class Closure:
    """Something that may be closed.

    Attributes:
        name: what it is, as a phrase: "door between the north and east rooms", "north passage", "action fast".
        states: (S,) the states that cannot be entered from outside.
        choices: (N,) the choices that fail wherever they are taken.
    """

    name: str
    states: Bools
    choices: Bools

    def failing(self, mdp: MDP) -> Floats:
        """(N,) the chance that the step of each choice fails."""
        return np.where(self.choices, 1.0, np.add.reduceat(self._blocked(mdp), mdp.transitions.indptr[:-1]))

    def applied(self, mdp: MDP) -> MDP:
        """The model with this closed."""
        blocked, matrix = self._blocked(mdp), mdp.transitions
        stuck = np.repeat(self.choices, np.diff(matrix.indptr))
        left = np.where(stuck, 0.0, matrix.data - blocked)
        failing = self.failing(mdp)
        rows = np.flatnonzero(failing)
        moving = sparse.csr_array((left, matrix.indices, matrix.indptr), shape=matrix.shape)
        staying = sparse.csr_array((failing[rows], (rows, mdp.choice_state[rows])), shape=matrix.shape)
        transitions = sparse.csr_array(moving + staying)
        transitions.eliminate_zeros()
        return replace(
            mdp,
            transitions=transitions,
            reward=mdp.reward - failing * np.maximum(mdp.reward, 0.0),
            ends={end: np.where(self.choices, 0.0, chance) for end, chance in mdp.ends.items()},
            name=f"{mdp.name}, {self.name} closed",
            source=None,
        )

    def _blocked(self, mdp: MDP) -> Floats:
        """(nnz,) the chance of each transition that it is a move into the closed part from outside."""
        matrix, owner = mdp.transitions, np.repeat(mdp.choice_state, np.diff(mdp.transitions.indptr))
        entering = self.states[matrix.indices] & ~self.states[owner]
        moves = np.where(entering, matrix.data, 0.0)
        ends = episode_ends(mdp)
        if ends is None or not (mdp.start[self.states] > 0).any():
            return moves
        restarts = np.repeat(ends, np.diff(matrix.indptr)) * mdp.start[matrix.indices]
        moves = np.where(entering, matrix.data - restarts, 0.0)
        return np.where(moves > 1e-12, moves, 0.0)  # what a restart leaves may be a rounding error


def closures(
    mdp: MDP, *, labels: Any = None, regions: Any = None, states: Any = None, actions: Any = None
) -> tuple[Closure, ...]:
    """What may be closed in a model, one closure for each.

    Without arguments: each door (label "door"), otherwise each corridor of the map, otherwise each label of the map in whose
    states no less is earned than elsewhere, otherwise each action that is no direction; labels of other models may be no places,
    such as "broken". Without those that hold the start, the goal or another state in which every episode ends.

    Args:
        labels: one or several labels, or True for all. On a map, each connected part of a label is a closure of its own.
        regions: names of regions of the map, or True for all.
        states: names or indices of states, each a closure of its own.
        actions: names of actions, or True for all.

    Example:
        >>> [closure.name for closure in closures(mdp, labels="door", actions=["lift"])]
    """
    if labels is None and regions is None and states is None and actions is None:
        return _likely(mdp)
    found = [
        *(closure for name in _chosen(labels, list(mdp.labels), "label") for closure in _parts(mdp, name)),
        *(_regions(mdp, regions) if regions is not None and regions is not False else ()),
        *(_at_states(mdp, f"state {mdp.state_name(int(s))}", _only(mdp, s)) for s in _listed_states(mdp, states)),
        *(_action(mdp, name) for name in _chosen(actions, list(mdp.action_names), "action")),
    ]
    if not found:
        raise SettingError(f"nothing of {mdp.name} is to be closed; name labels, regions, states or actions")
    return tuple(found)


def _likely(mdp: MDP) -> tuple[Closure, ...]:
    """What people would close: doors, passages, labels of a map, or actions."""
    over = np.array(mdp.labels[GOAL]) if GOAL in mdp.labels else np.zeros(mdp.n_states, bool)
    if (ending := episode_ends(mdp)) is not None:
        over = over | (np.minimum.reduceat(ending, mdp.first_choice[:-1]) > 1 - 1e-9)
    ends = over | (mdp.start > 0)
    found: list[Closure] = []
    if DOOR in mdp.labels:
        found = list(_parts(mdp, DOOR))
    elif mdp.layout is not None:
        found = [_at_states(mdp, name, mask) for name, mask in corridors(mdp, find_regions(mdp), ends)]
    if mdp.layout is not None and not _without(found, ends):
        kept = [label for label in mdp.labels if label not in NO_PLACES and not _is_bad(mdp, mdp.labels[label])]
        found = [closure for label in kept for closure in _parts(mdp, label)]
    if not _without(found, ends):
        moves = [name for name in mdp.action_names if _is_direction(name)]
        if mdp.layout is None and len(moves) == 1:
            moves = []  # one way down a hill is no way to steer
        names = [name for name in mdp.action_names if name not in moves]
        found = [_action(mdp, name) for name in names] if len(mdp.action_names) > 1 else []
        # What can only be done where a trip is over already is on nobody's way.
        found = [closure for closure in found if not over[mdp.choice_state[closure.choices]].all()]
    if not (kept := _without(found, ends)):
        raise SettingError(
            f"{mdp.name} has no doors, passages, labels or actions to close that people would think of; ",
            in_python="name what to close: closures(mdp, states=[...]) or closures(mdp, actions=True)",
            on_command_line="name what to close with --label, --region, --state or --action",
        )
    return tuple(kept)


def _is_direction(action: str) -> bool:
    """Whether an action is a move in a direction: "down", "south-east", "up left", "go_left"."""
    words = action.lower().replace("_", " ").replace("-", " ").split()
    words = words[1:] if words[:1] in (["go"], ["move"]) else words
    return bool(words) and all(word in DIRECTIONS for word in words)


def _is_bad(mdp: MDP, mask: Bools) -> bool:
    """Whether the best that can be earned in a step is typically less in the marked states than in the others."""
    best = np.maximum.reduceat(mdp.reward, mdp.first_choice[:-1])
    return bool(mask.any() and not mask.all() and np.median(best[mask]) < np.median(best[~mask]))


def _without(found: Sequence[Closure], ends: Bools) -> list[Closure]:
    return [closure for closure in found if not (closure.states & ends).any()]


def _parts(mdp: MDP, label: str) -> Iterator[Closure]:
    """The connected parts of a label on a map; the whole label in a model without one."""
    mask = mdp.labels[label]
    if mdp.layout is None or not mask.any():
        if mask.any():
            yield _at_states(mdp, label, mask)
        return
    members = np.flatnonzero(mask)
    near = state_graph(mdp)[members][:, members]
    count, part = csgraph.connected_components(near, directed=False)
    owns = [members[part == number] for number in range(count)]
    between = _between(mdp, [_only(mdp, own) for own in owns]) if label == DOOR else [""] * count
    for own, rooms in zip(owns, between, strict=True):
        where = mdp.state_name(int(own[0]))
        place = f"{label} {where}" if len(own) == 1 else f"{label} at {where}"
        name = label if count == 1 else place if not rooms else f"{label} between {rooms}"
        name = f"{name} ({where})" if rooms and between.count(rooms) > 1 else name
        yield _at_states(mdp, name, _only(mdp, own))


def _between(mdp: MDP, doors: Sequence[Bools]) -> list[str]:
    """The two rooms that each door joins, in words; "" where rooms are not known, or there are not two."""
    rooms = rooms_of(mdp)
    if rooms is None:
        return [""] * len(doors)
    joined = [joined_rooms(mdp, rooms, door) for door in doors]
    return [rooms.listed(both) if len(both) == 2 else "" for both in joined]


def _regions(mdp: MDP, wanted: Any) -> Iterator[Closure]:
    regions = find_regions(mdp)
    for name in _chosen(wanted, list(regions.names), "region"):
        yield _at_states(mdp, name, regions.of_state == regions.names.index(name))


def _action(mdp: MDP, name: str) -> Closure:
    which = [number for number, known in enumerate(mdp.action_names) if known == name]
    return Closure(f"action {name}", np.zeros(mdp.n_states, bool), np.isin(mdp.actions, which))


def _at_states(mdp: MDP, name: str, mask: Bools) -> Closure:
    return Closure(name, mask, np.zeros(mdp.n_choices, bool))


def _only(mdp: MDP, states: Any) -> Bools:
    mask = np.zeros(mdp.n_states, bool)
    mask[states] = True
    return mask


def _listed_states(mdp: MDP, given: Any) -> list[int]:
    if given is None:
        return []
    names = [mdp.state_name(s) for s in range(mdp.n_states)]
    return np.flatnonzero(mask_of_states(given, names, "close")).tolist()


def _chosen(given: Any, known: list[str], noun: str) -> list[str]:
    """Names that were given, all of them if True was."""
    if given is None or given is False:
        return []
    if given is True:
        if not known:
            raise ModelError(f"the model has no {noun}s that could be closed")
        return known
    names = names_in(given)
    where_named(names, known, noun, "close")
    return names
