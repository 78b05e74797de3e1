"""Which doors a plan goes through: its route, as the paper's text talks about plans."""

from __future__ import annotations

import numpy as np

from manyways.arrays import Floats
from manyways.mdp import MDP
from manyways.occupancy import chain


def routes(mdp: MDP, policies: Floats) -> list[str | None] | None:
    """For each of (k, N) policies the doors on its most likely path from the start to the goal, in order.

    None for a plan that stays away from the goal; None for all if the model has no doors, start or goal.
    """
    if not {"door", "goal"} <= mdp.labels.keys():
        return None
    return [_route(mdp, policy) for policy in policies]


def _route(mdp: MDP, policy: Floats) -> str | None:
    step = chain(mdp, policy)
    goal, door = mdp.labels["goal"], mdp.labels["door"]
    at, doors = int(np.argmax(mdp.start)), []
    for _ in range(mdp.n_states):
        if goal[at]:
            return " > ".join(doors)
        if door[at]:
            doors.append(mdp.state_name(at))
        row = slice(step.indptr[at], step.indptr[at + 1])
        at = int(step.indices[row][np.argmax(step.data[row])])
    return None  # it goes round, or stands still
