"""The parts of a model that have names, for sentences about preferences: "the middle room", "the action 'bus'"."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from manyways.describe.places import is_passage, is_telling, sectors_of
from manyways.describe.wording import quoted, short
from manyways.model.mdp import MDP
from manyways.model.occupancy import state_occupancy
from manyways.model.regions import find_regions
from manyways.types import Bools, Floats

MOST_STATES = 200
MOST_REGIONS = 50
LARGE = 0.25
"""A passage with more than this share of all states is none to the eye."""


def named_places(mdp: MDP, shown: Floats, without: Collection[str] = ()) -> list[tuple[str, Bools]]:
    """Names, and the (N,) choices that belong to them: parts of the map and labels; without a map, labels, actions and the
    states in which the (T, N) shown plans differ most. Labels in `without` are left out."""
    noun = "states" if mdp.layout is None else "places"
    places = [
        (f"{noun} labelled {quoted(label)}", mask)
        for label, mask in mdp.labels.items()
        if label not in ("start", "goal", *without) and mask.any() and not mask.all()
    ]
    actions: list[tuple[str, Bools]] = []
    if mdp.layout is not None:
        places = [*_parts_of_map(mdp), *places]
    else:
        if len(mdp.action_names) > 1:
            actions = [(f"the action {quoted(name)}", mdp.actions == i) for i, name in enumerate(mdp.action_names)]
        most = np.argsort(-np.ptp(state_occupancy(mdp, shown), axis=0), kind="stable")[:MOST_STATES]
        one = np.arange(mdp.n_states)
        places += [(f"the state {quoted(mdp.state_name(int(s)))}", one == s) for s in most]
    return [*actions, *((name, mask[mdp.choice_state]) for name, mask in places)]


def _parts_of_map(mdp: MDP) -> list[tuple[str, Bools]]:
    """Rooms and passages; where there are none, or too many to name them, the nine parts of the map."""
    regions = {name: mask for name, mask in regions_by_name(mdp).items() if _can_be_meant(mdp, name, mask)}
    return [(f"the {short(name)}", mask) for name, mask in regions.items()] if len(regions) > 1 else _ninths(mdp)


def _can_be_meant(mdp: MDP, name: str, mask: Bools) -> bool:
    """Whether people who look at the map know which region the name means: no passage to which start or goal or a large part of
    the map belongs, and no region with a number in place of a direction."""
    ends = mdp.labels.get("goal", np.zeros(mdp.n_states, bool)) | (mdp.start > 0)
    return is_telling(name) and not (is_passage(name) and (mask[ends].any() or mask.mean() > LARGE))


def regions_by_name(mdp: MDP) -> dict[str, Bools]:
    """(S,) the states of each room and passage of a map; empty where there are none, or too many to name them."""
    regions = find_regions(mdp)
    telling = [name for name in regions.names if " " in name]  # "room" alone says nothing
    if 1 < len(telling) <= MOST_REGIONS and len(regions.names) <= MOST_REGIONS:
        return {name: regions.of_state == i for i, name in enumerate(regions.names)}
    return {}


def ninths_of_map(mdp: MDP) -> list[tuple[str, Bools]]:
    """The nine parts of the map, for what differs within rooms; nothing without a map."""
    return [(name, mask[mdp.choice_state]) for name, mask in _ninths(mdp)]


def _ninths(mdp: MDP) -> list[tuple[str, Bools]]:
    """The same parts of the map as in the sentences on each plan."""
    sectors = sectors_of(mdp)
    if sectors is None:
        return []
    return [(f"the {name} of the map", sectors.of_deeds == i) for i, name in enumerate(sectors.names)]
