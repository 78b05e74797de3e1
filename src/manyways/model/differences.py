"""In what two models differ, in words."""

from __future__ import annotations

import numpy as np

from manyways.model.building import default_action_names
from manyways.model.mdp import MDP


def model_differences(mdp: MDP, planned: MDP) -> list[str]:
    """In what a model differs from the one that was planned for: nothing if it is the same one for `verify`."""
    if mdp.digest == planned.digest:
        return other_meaning(mdp, planned)
    sizes = {"states": (mdp.n_states, planned.n_states), "choices": (mdp.n_choices, planned.n_choices)}
    found = [f"number of {what} ({a:,} instead of {b:,})" for what, (a, b) in sizes.items() if a != b]
    if found:
        return found
    if mdp.costs != planned.costs:
        found.append("what is minimised (the costs)")
    elif not np.array_equal(mdp.reward, planned.reward):
        found.append("rewards")
    if not np.array_equal(mdp.first_choice, planned.first_choice) or (mdp.transitions != planned.transitions).nnz:
        found.append("transitions")
    if not np.array_equal(mdp.start, planned.start):
        found.append("start")
    names = [name for name in {*mdp.labels, *planned.labels} if _label(mdp, name) != _label(planned, name)]
    return [*found, *(f"label {name!r}" for name in sorted(names))]


def perhaps_reordered(mdp: MDP, planned: MDP) -> bool:
    """Whether two models whose transitions differ may be the same one with its states or choices in another order: they
    have the same rewards and probabilities, each as often."""
    pairs = (
        (mdp.reward, planned.reward),
        (mdp.transitions.data, planned.transitions.data),
        (mdp.start, planned.start),
        (np.diff(mdp.first_choice), np.diff(planned.first_choice)),
        (np.diff(mdp.transitions.indptr), np.diff(planned.transitions.indptr)),
    )
    return "transitions" in model_differences(mdp, planned) and all(
        np.array_equal(np.sort(a), np.sort(b)) for a, b in pairs
    )


def _label(mdp: MDP, name: str) -> bytes | None:
    return mdp.labels[name].tobytes() if name in mdp.labels else None


def other_meaning(mdp: MDP, planned: MDP) -> list[str]:
    """In what the meaning of the numbers differs between two models with the same ones. A model that does not say what
    they mean, such as one read from a format without names of states, agrees with every other."""
    if mdp is planned:
        return []
    both = (mdp, planned)
    parts = {
        "actions": [
            None if _made_up(part.action_names) else np.array(part.action_names)[part.actions] for part in both
        ],
        "state names": [part.state_names for part in both],
        "observations": [part.observations for part in both],
        "cells": [None if part.layout is None else part.layout.cells for part in both],
        "costs": [part.costs for part in both],
        "kinds of ends": [sorted(part.ends) or None for part in both],
        "ends": [np.stack([part.ends[end] for end in sorted(part.ends)]) if part.ends else None for part in both],
    }
    found = [what for what, (a, b) in parts.items() if a is not None and b is not None and not np.array_equal(a, b)]
    return found if _same_variables(mdp, planned) else [*found, "variables"]


def _same_variables(mdp: MDP, planned: MDP) -> bool:
    """Whether variables that are given in both models have the same names and values; NaN, no value, equals itself."""
    one, other = mdp.given_variables, planned.given_variables
    if not one or not other:
        return True
    return sorted(one) == sorted(other) and all(
        np.array_equal(one[name], other[name], equal_nan=one[name].dtype.kind == other[name].dtype.kind == "f")
        for name in one
    )


def _made_up(names: tuple[str, ...]) -> bool:
    return list(names) == default_action_names(np.arange(len(names)))
