"""Routes: the doors that a plan goes through. The paper's text describes plans by their doors."""

from __future__ import annotations

from manyways.describe.places import likely_path
from manyways.model.mdp import MDP
from manyways.model.occupancy import chain
from manyways.types import Floats


def routes(mdp: MDP, policies: Floats) -> list[str | None] | None:
    """(k, N) policies -> the doors on each one's most likely path from the start to the goal, in order.

    A plan that does not go to the goal has None. The result is None if the model has no doors or no goal.
    """
    if not {"door", "goal"} <= mdp.labels.keys():
        return None
    return [_route(mdp, policy) for policy in policies]


def _route(mdp: MDP, policy: Floats) -> str | None:
    path = likely_path(mdp, chain(mdp, policy))
    if path is None:  # the most likely steps form a cycle without the goal
        return None
    return " > ".join(mdp.state_name(at) for at in path[:-1] if mdp.labels["door"][at])
