"""Which doors a plan goes through: its route, as the paper's text talks about plans."""

from __future__ import annotations

from manyways.describe.places import likely_path
from manyways.model.mdp import MDP
from manyways.model.occupancy import chain
from manyways.types import Floats


def routes(mdp: MDP, policies: Floats) -> list[str | None] | None:
    """For each of (k, N) policies the doors on its most likely path from the start to the goal, in order.

    None for a plan that stays away from the goal; None for all if the model has no doors, start or goal.
    """
    if not {"door", "goal"} <= mdp.labels.keys():
        return None
    return [_route(mdp, policy) for policy in policies]


def _route(mdp: MDP, policy: Floats) -> str | None:
    path = likely_path(mdp, chain(mdp, policy))
    if path is None:  # it goes round, or stands still
        return None
    return " > ".join(mdp.state_name(at) for at in path[:-1] if mdp.labels["door"][at])
