"""What the page needs to hand out a plan as a file by itself: policies in few bytes, for models that are not too large."""

from __future__ import annotations

from typing import Any

import numpy as np

from manyways.errors import SettingError
from manyways.files.spreadsheet_cells import cell
from manyways.plans.planset import PlanSet
from manyways.plans.policy_files import check_names
from manyways.plans.route import likely_route
from manyways.types import Floats

MOST_ENTRIES = 200_000
"""Larger sets (states times plans) are handed out by the command line only."""
LONGEST_ROUTE, LONGEST_IN_ALL = 1_000, 20_000
"""Longer routes are too, and those of so many plans that all of them together would be longer than the second number."""


def handed_out(plans: PlanSet) -> dict[str, Any] | None:
    """The names of states and actions and, for each plan, the actions that it takes; None if that is too much.

    An entry of a plan that never randomises is the number of an action, one for each state; otherwise it is a triple of
    state, action and probability. `cells` are names as spreadsheets must be given them, where they differ.
    """
    mdp = plans.mdp
    if plans.k * mdp.n_states > MOST_ENTRIES:
        return None
    try:
        check_names(mdp)
    except SettingError:  # such policies can only be saved as .npz
        return None
    states = [mdp.state_name(s) for s in range(mdp.n_states)]
    names = [mdp.action_name(x) for x in range(mdp.n_choices)]
    actions = list(dict.fromkeys(names))
    number = {name: i for i, name in enumerate(actions)}
    of_choice = np.array([number[name] for name in names])
    return {
        "model": mdp.digest,
        "states": states,
        "actions": actions,
        "cells": {name: cell(name) for name in (*states, *actions) if cell(name) != name},
        "taken": [_taken(row, mdp.choice_state, of_choice) for row in plans.policies],
    }


def routes_handed_out(plans: PlanSet, plan: int) -> list[tuple[str, str, str]]:
    """The files of a plan's route: the end of their names, their kinds and contents; none without a map or a way."""
    if plans.mdp.layout is None:
        return []
    try:
        route = likely_route(plans.mdp, plans.policies[plan])
    except SettingError:  # it never reaches the goal, or there is none
        return []
    if len(route) > min(LONGEST_ROUTE, LONGEST_IN_ALL / plans.k):
        return []
    files = [("-route.csv", "text/csv", ".csv"), ("-route.json", "application/json", ".json")]
    if route.unit == "m":
        files.append(("-route.yaml", "text/yaml", ".yaml"))
    return [(name, kind, route.to_bytes(ending).decode()) for name, kind, ending in files]


def _taken(policy: Floats, state: np.ndarray, action: np.ndarray) -> list[Any]:
    used = np.flatnonzero(policy)
    if len(used) == int(state[-1]) + 1:
        return action[used].tolist()
    return [[int(state[x]), int(action[x]), float(policy[x])] for x in used]
