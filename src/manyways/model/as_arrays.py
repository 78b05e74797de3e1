"""A model as plain arrays and a header for JSON, and back; used by plan files and `.npz` files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from manyways.errors import ModelError, check_integer
from manyways.model.building import csr_of
from manyways.model.mdp import MDP, Grid

PREFIX = "model/"
PLAN_SCHEMA, PLAN_VERSIONS = "manyways plans", (1, 2, 3)
"""What files of plans, which hold their model, call themselves, and the versions that can be read."""


def model_to_arrays(mdp: MDP) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The header and the arrays from which `model_from_arrays` makes the model again."""
    header: dict[str, Any] = {
        "name": mdp.name,
        "source": mdp.source,
        "action_names": list(mdp.action_names),
        "state_names": None if mdp.state_names is None else list(mdp.state_names),
        "labels": list(mdp.labels),
        "ends": list(mdp.ends),
        "layout": None if mdp.layout is None else "grid",
        "blocked_means": "" if mdp.layout is None else mdp.layout.blocked_means,
        "metres_per_cell": None if mdp.layout is None else mdp.layout.metres_per_cell,
        "origin": None if mdp.layout is None else mdp.layout.origin,
        "time_limit": mdp.time_limit,
        "digest": mdp.digest,
        "costs": mdp.costs,
        "averaged": mdp.averaged,
        "variables": list(mdp.given_variables),
    }
    arrays = plain_arrays(mdp)
    for number, mask in enumerate(mdp.labels.values()):
        arrays[f"label{number}"] = mask
    for number, chance in enumerate(mdp.ends.values()):
        arrays[f"end{number}"] = chance
    for number, values in enumerate(mdp.given_variables.values()):
        arrays[f"variable{number}"] = values
    if mdp.observations is not None:
        arrays["observations"] = mdp.observations
    if mdp.layout is not None:
        arrays["cells"] = mdp.layout.cells
        arrays["blocked"] = mdp.layout.blocked
        arrays["goals"] = mdp.layout.goals
        if mdp.layout.offsets is not None:
            arrays["offsets"] = mdp.layout.offsets
    return header, {PREFIX + name: array for name, array in arrays.items()}


def _grid(header: Mapping[str, Any], part: Mapping[str, np.ndarray]) -> Grid:
    goals = part.get("goals", np.empty(0, np.int64))
    return Grid(
        part["cells"],
        part["blocked"],
        goals,
        str(header.get("blocked_means", "")),
        metres_per_cell=header.get("metres_per_cell"),
        origin=header.get("origin"),  # not in files of older versions, and neither are offsets
        offsets=part.get("offsets"),
    )


def names_of_states(mdp: MDP) -> tuple[str, ...] | None:
    """The names of the states, or of their grid cells for formats that cannot hold the grid; None if there are neither."""
    if mdp.state_names is None and mdp.layout is not None:
        return tuple(mdp.state_name(s) for s in range(mdp.n_states))
    return mdp.state_names


def plain_arrays(mdp: MDP) -> dict[str, np.ndarray]:
    """The arrays of a model without names, labels and layout."""
    return {
        "probability": mdp.transitions.data,
        "next_state": mdp.transitions.indices,
        "row_begin": mdp.transitions.indptr,
        "reward": mdp.reward,
        "first_choice": mdp.first_choice,
        "start": mdp.start,
        "actions": mdp.actions,
    }


def model_from_arrays(header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> MDP:
    """The model; validated like any other, so a manipulated file cannot give an invalid one."""
    part = {name.removeprefix(PREFIX): array for name, array in arrays.items() if name.startswith(PREFIX)}
    begin = part["first_choice"]
    if (header["layout"] is not None) != ("cells" in part):
        raise ModelError("the header and the arrays disagree on whether the model has a layout")
    for name, kinds in (
        ("probability", "f"),
        ("next_state", "i"),
        ("row_begin", "i"),
        ("reward", "f"),
        ("first_choice", "i"),
    ):
        if part[name].ndim != 1 or part[name].dtype.kind not in kinds:
            raise ModelError(f"the array {name!r} has shape {part[name].shape} and type {part[name].dtype}")
    if len(part["row_begin"]) != len(part["reward"]) + 1:
        raise ModelError("the array 'row_begin' does not fit the rewards")
    return MDP(
        transitions=csr_of(part["probability"], part["next_state"], part["row_begin"], n_states=len(begin) - 1),
        reward=part["reward"],
        first_choice=begin,
        start=part["start"],
        actions=part["actions"],
        action_names=tuple(header["action_names"]),
        state_names=None if header["state_names"] is None else tuple(header["state_names"]),
        labels={label: part[f"label{number}"] for number, label in enumerate(header["labels"])},
        ends={end: part[f"end{number}"] for number, end in enumerate(header.get("ends", ()))},
        layout=None if "cells" not in part else _grid(header, part),
        observations=part.get("observations"),
        name=header["name"],
        source=None if header.get("source") is None else str(header["source"]),
        costs=bool(header.get("costs", False)),  # not in files of older versions
        averaged=bool(header.get("averaged", False)),
        time_limit=_time_limit(header.get("time_limit")),
        variables={name: part[f"variable{number}"] for number, name in enumerate(header.get("variables", ()))},
    )


def _time_limit(given: Any) -> int | None:
    return None if given is None else check_integer("time_limit", given, 1)
