"""Episodes in a model that goes on forever: the steps with which one ends and the next one starts."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from manyways.model.mdp import MDP
from manyways.types import Bools, Floats

GOAL = "goal"


def episode_ends(mdp: MDP) -> Floats | None:
    """(N,) the chance that the step of each choice ends an episode; None if the model has no episodes.

    These are the model's `ends` or, in a model without any, the steps out of the states with the label "goal", if all of
    them lead back to the start, as in the paper's worlds.
    """
    if mdp.ends:
        return np.sum(list(mdp.ends.values()), axis=0)
    return _back_from_goal(mdp)


def goal_ends(mdp: MDP) -> Floats | None:
    """(N,) the chance that the step of each choice ends an episode at the goal; None if there is no such end."""
    if GOAL in mdp.ends:
        return np.array(mdp.ends[GOAL])
    found = _back_from_goal(mdp)
    return episode_ends(mdp) if found is None and len(mdp.ends) == 1 else found


def rewards_by_end(rewards: Floats, ends: Mapping[str, Floats]) -> Floats | None:
    """What a step earns, and what is added by each kind of end: (1 + ends,); None where the rewards are not of that form.

    A choice has only the mean of its reward. If all (n,) rewards are one reward per step and one more for each kind of end, of
    which `ends` has the (n,) chances, then what a step earned is known from how it ended.
    """
    parts = np.column_stack([np.ones(len(rewards)), *ends.values()])
    found = np.linalg.lstsq(parts, rewards, rcond=None)[0]
    if np.abs(parts @ found - rewards).max() > 1e-9 * max(float(np.abs(rewards).max()), 1e-300):
        return None
    return np.asarray(found.round(12), dtype=np.float64)


def restart_steps(mdp: MDP, ends: Floats) -> Bools:
    """(N,) the choices in states that only lead back to the start: their steps are no part of the way to the end."""
    surely = np.logical_and.reduceat(ends > 1 - 1e-9, mdp.first_choice[:-1])
    return surely[mdp.choice_state]


def _back_from_goal(mdp: MDP) -> Floats | None:
    """(N,) 1 for choices in states with the label "goal"; None if there are none, or if they do not restart."""
    if GOAL not in mdp.labels or not mdp.labels[GOAL].any():
        return None
    at_goal = mdp.labels[GOAL][mdp.choice_state]
    rows = mdp.transitions[np.flatnonzero(at_goal)]
    complete = (np.diff(rows.indptr) == np.count_nonzero(mdp.start)).all()
    if not complete or np.abs(rows.data - mdp.start[rows.indices]).max() > 1e-9:
        return None
    return at_goal.astype(np.float64)
