"""Models as arrays: the layouts of pymdptoolbox and QuantEcon, and `.npz` files.

An `.npz` file contains one of these sets of arrays, distinguished by their names:

- `P` (A, S, S) and `R` (S,), (S, A) or (A, S, S): pymdptoolbox;
- `s_indices` (N,), `a_indices` (N,), `Q` (N, S), `R` (N,): QuantEcon's state-action pairs;
- `probability`, `next_state`, `row_begin` (the CSR parts of the (N, S) transitions), `reward` (N,), `first_choice`
  (S + 1,): our own layout, which `write_npz` writes. Optional: `action_names`, `actions`, `state_names`,
  `observations` (S,), `end:NAME` (N,), and `costs` (), whether the reward is minus a cost. The map, if
  there is one: `map:cells` (S,), `map:blocked` (rows, columns), `map:goals`, `map:blocked_means` (), and, if they are known,
  `map:metres_per_cell` (), `map:origin` (3,) and `map:offsets` (S, 2); see `Grid`.

`start` (S,) is optional in all of them; without it, the first state is the start. So are `label:NAME` (S,) and
`variable:NAME` (S,), the values of a variable of the states.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from manyways.errors import ManywaysError, ModelError, OutputError, SourceError
from manyways.files import atomic, open_regular
from manyways.files.zipped_arrays import DAMAGED, LARGEST, Npz, reason, texts
from manyways.formats.format import FORMATS, Format
from manyways.model.as_arrays import plain_arrays
from manyways.model.building import csr_of, most_actions
from manyways.model.layout import Grid
from manyways.model.mdp import MDP
from manyways.types import Sparse

LABEL, END, VARIABLE, MAP = "label:", "end:", "variable:", "map:"
LONGEST_LABEL = 60_000
"""In bytes; a name in a zip archive may have at most 65,535."""
MOST_CELLS = 64_000_000
"""Cells of a map, blocked ones included."""
MAP_TYPES = {
    "cells": "iu",
    "blocked": "b",
    "goals": "iu",
    "blocked_means": "U",
    "metres_per_cell": "f",
    "origin": "f",
    "offsets": "f",
}
"""The parts of a map in a file, which are those of `Grid`, and the kinds of their types."""
OURS = ("probability", "next_state", "row_begin", "reward", "first_choice")
QUANTECON = ("s_indices", "a_indices", "Q", "R")
LAYOUTS = (OURS, QUANTECON, ("P", "R"))


@np.errstate(all="ignore")  # the model refuses what is not finite
def from_mdptoolbox(transitions: Any, reward: ArrayLike | Any, **details: Any) -> MDP:
    """A model from the arrays of pymdptoolbox.

    Args:
        transitions: (A, S, S) array, or a sequence of A sparse or dense (S, S) matrices.
        reward: (S,), (S, A), (A, S, S), or a sequence of A matrices (S, S).
        details: `start`, `action_names`, `state_names`, `labels`, `layout`, `name`.
    """
    by_action = _matrices(transitions, "transitions")
    n, count = by_action[0].shape[0], len(by_action)
    rewards = _rewards(reward, by_action)
    stacked = sparse.csr_array(sparse.vstack(by_action))
    order = np.arange(n * count).reshape(count, n).T.ravel()  # from sorted by action to sorted by state
    return MDP.from_csr(
        stacked[order],
        rewards.ravel(),
        np.arange(0, n * count + 1, count),
        actions=np.tile(np.arange(count), n),
        **details,
    )


def from_quantecon(
    s_indices: ArrayLike, a_indices: ArrayLike, transitions: Any, reward: ArrayLike, **details: Any
) -> MDP:
    """A model from QuantEcon's state-action pairs, in any order.

    Args:
        s_indices: (N,) state of each pair.
        a_indices: (N,) action of each pair.
        transitions: (N, S) sparse or dense, Q of DiscreteDP.
        reward: (N,) R of DiscreteDP.
        details: as for `from_mdptoolbox`.
    """
    states, actions = np.asarray(s_indices), np.asarray(a_indices)
    with np.errstate(all="ignore"):  # the model refuses what is not finite
        matrix: Sparse = sparse.csr_array(transitions, dtype=np.float64)
        reward = np.asarray(reward, dtype=np.float64)
    for name, array in (("s_indices", states), ("a_indices", actions), ("R", reward)):
        if array.shape != (matrix.shape[0],):
            raise ModelError(
                f"{name} must have one entry for each of the {matrix.shape[0]} rows of Q, found {array.shape}"
            )
    if states.dtype.kind not in "iu" or actions.dtype.kind not in "iu":
        raise ModelError("s_indices and a_indices must be integers")
    if states.size and (states.min() < 0 or states.max() >= matrix.shape[1]):
        raise ModelError(f"s_indices must lie in 0..{matrix.shape[1] - 1}, found {states.min()} to {states.max()}")
    order = np.lexsort((actions, states))
    return MDP.from_csr(
        matrix[order],
        reward[order],
        np.searchsorted(states[order], np.arange(matrix.shape[1] + 1)),
        actions=actions[order],
        **details,
    )


def read_npz(path: Path) -> MDP:
    """A model from an `.npz` file with one of the sets of arrays in the head of this module."""
    try:
        with open_regular(path, LARGEST) as file, Npz(file, str(path)) as npz:
            arrays = npz.read(_wanted(npz))
        details: dict[str, Any] = {"name": path.stem}
        for name in ("start", "observations"):
            if name in arrays:
                details[name] = arrays[name]
        for name in ("action_names", "state_names"):
            if name in arrays:
                details[name] = texts(arrays[name])
        for what, prefix in (("labels", LABEL), ("ends", END), ("variables", VARIABLE)):
            named = [name for name in arrays if name.startswith(prefix)]
            details[what] = {name.removeprefix(prefix): arrays[name] for name in named}
        if "costs" in arrays:
            details["costs"] = bool(arrays["costs"])
        if f"{MAP}cells" in arrays:
            details["layout"] = _map_from({name: arrays.get(MAP + name) for name in MAP_TYPES})
        return _from_named(arrays, details)
    except ManywaysError:
        raise
    except DAMAGED as error:
        raise SourceError(f"{path} cannot be read: {reason(error)}") from None


def write_npz(mdp: MDP, path: Path) -> None:
    """Write the model in our own layout. `read_npz` returns the same model."""
    names = {"action_names": mdp.action_names, "state_names": mdp.state_names}
    for name in (name for these in names.values() for name in these or ()):
        if name.endswith("\0"):
            raise OutputError(f"the name {name[:60]!r} ends in NUL, which the format cannot hold; rename it")
    parts = {"label": mdp.labels, "end": mdp.ends, "variable": mdp.given_variables}
    for kind, label in ((kind, name) for kind, named in parts.items() for name in named):
        if "\0" in label or len(label.encode()) > LONGEST_LABEL:
            raise OutputError(f"the {kind} {label[:60]!r} contains NUL or is too long for the format; rename it")
    arrays = plain_arrays(mdp) | {key: np.array(these, dtype=np.str_) for key, these in names.items() if these}
    arrays |= {LABEL + name: mask for name, mask in mdp.labels.items()}
    arrays |= {END + name: chance for name, chance in mdp.ends.items()}
    arrays |= {VARIABLE + name: values for name, values in mdp.given_variables.items()}
    if mdp.observations is not None:
        arrays["observations"] = mdp.observations
    if mdp.costs:
        arrays["costs"] = np.array(True)
    if mdp.layout is not None:
        held = {name: getattr(mdp.layout, name) for name in MAP_TYPES}
        arrays |= {MAP + name: np.asarray(value) for name, value in held.items() if value is not None}
    with atomic(path) as file:
        np.savez_compressed(file, **arrays)  # pyright: ignore[reportArgumentType]


def _wanted(npz: Npz) -> list[str]:
    """The names of the arrays that make up the model, after checking that their shapes and types fit together."""
    held = npz.members
    layout = next((names for names in LAYOUTS if all(name in held for name in names)), None)
    if layout is None:
        names = [name[:60] for name in sorted(held)]
        listed = ", ".join(names[:10]) + (f" and {len(names) - 10} others" if len(names) > 10 else "")
        raise SourceError(
            f"{npz.name} contains the arrays {listed or '(none)'}; expected P and R (pymdptoolbox), s_indices, a_indices, "
            "Q and R (QuantEcon), or probability, next_state, row_begin, reward and first_choice"
        )
    shape = {name: member.shape for name, member in held.items()}
    n_states, n_choices, expected = _sizes(layout, shape, npz.name)
    labels = [name for name in held if name.startswith(LABEL)]
    ends = [name for name in held if name.startswith(END) and layout is OURS]
    variables = [name for name in held if name.startswith(VARIABLE)]
    expected |= dict.fromkeys(("start", "state_names", "observations", *labels, *variables), (n_states,))
    expected |= dict.fromkeys(ends, (n_choices,)) | {"costs": ()}
    drawn = [MAP + name for name in MAP_TYPES if MAP + name in held] if layout is OURS else []
    expected |= {f"{MAP}cells": (n_states,), f"{MAP}offsets": (n_states, 2), f"{MAP}origin": (3,)}
    expected |= dict.fromkeys((f"{MAP}metres_per_cell", f"{MAP}blocked_means"), ())
    for name, wanted in expected.items():
        if shape.get(name, wanted) != wanted:
            raise SourceError(
                f"{npz.name}: the arrays do not fit together: {name[:60]!r} must have the shape {wanted}, "
                f"which follows from the others, found {shape[name]}"
            )
    if math.prod(shape.get("action_names", ())) > most_actions(n_choices):
        raise SourceError(f"{npz.name}: there are more 'action_names' than {n_choices:,} choices can use")
    _check_types(npz, labels, ends)
    _check_map(npz, drawn)
    names = ("start", "state_names", "action_names", "actions", "observations", *(["costs"] if layout is OURS else []))
    optional = [name for name in names if name in held]
    return [*layout, *optional, *labels, *ends, *variables, *drawn]


def _sizes(
    layout: tuple[str, ...], shape: Mapping[str, tuple[int, ...]], file: str
) -> tuple[int, int, dict[str, tuple[int, ...]]]:
    """The numbers of states and choices, and the shapes that other arrays of the layout must have."""
    if layout is OURS:
        for name in layout:
            if len(shape[name]) != 1:
                raise SourceError(f"{file}: {name!r} must be one-dimensional, found the shape {shape[name]}")
        n_choices, n_states = shape["reward"][0], shape["first_choice"][0] - 1
        expected = {"row_begin": (n_choices + 1,), "next_state": shape["probability"], "actions": (n_choices,)}
        return n_states, n_choices, expected
    if layout is QUANTECON:
        if len(shape["Q"]) != 2:
            raise SourceError(f"{file}: 'Q' must have the shape (choices, states), found {shape['Q']}")
        n_choices, n_states = shape["Q"]
        return n_states, n_choices, dict.fromkeys(("s_indices", "a_indices", "R"), (n_choices,))
    if len(shape["P"]) != 3 or shape["P"][1] != shape["P"][2]:
        raise SourceError(f"{file}: 'P' must have the shape (actions, states, states), found {shape['P']}")
    n_actions, n_states, _ = shape["P"]
    if shape["R"] not in ((n_states,), (n_states, n_actions), shape["P"]):
        raise SourceError(
            f"{file}: 'R' must have the shape (S,), (S, A) or (A, S, S) with S={n_states}, A={n_actions}, "
            f"found {shape['R']}"
        )
    return n_states, n_actions * n_states, {}


def _check_types(npz: Npz, labels: Sequence[str], ends: Sequence[str]) -> None:
    held = npz.members
    for name in ("next_state", "row_begin", "first_choice", "actions", "s_indices", "a_indices", "observations"):
        if name in held and held[name].dtype.kind not in "iu":
            raise SourceError(f"{npz.name}: {name!r} must contain integers, found {held[name].dtype}")
    for name in ("probability", "reward", "start", "P", "Q", "R", *ends):
        if name in held and held[name].dtype.kind not in "biuf":
            raise SourceError(f"{npz.name}: {name[:60]!r} must contain numbers, found text")
    for name in (*labels, "costs"):
        if name in held and held[name].dtype != np.bool_:
            raise SourceError(f"{npz.name}: {name[:60]!r} must contain booleans, found {held[name].dtype}")


def _check_map(npz: Npz, drawn: Sequence[str]) -> None:
    """Refuse a map that lacks parts, or whose parts have the wrong types or more cells than a map may have."""
    needed = [MAP + name for name in ("cells", "blocked")]
    if drawn and not all(name in drawn for name in needed):
        raise SourceError(f"{npz.name}: a map needs the arrays {' and '.join(needed)}, found {', '.join(drawn)}")
    for name in drawn:
        kinds, found = MAP_TYPES[name.removeprefix(MAP)], npz.members[name]
        if found.dtype.kind not in kinds:
            raise SourceError(f"{npz.name}: {name!r} has the wrong type, {found.dtype}")
        if math.prod(found.shape) > MOST_CELLS:
            raise SourceError(f"{npz.name}: {name!r} has more than {MOST_CELLS:,} entries")


def _map_from(part: Mapping[str, np.ndarray | None]) -> Grid:
    plain: dict[str, Any] = {name: value for name, value in part.items() if value is not None}
    if "blocked_means" in plain:
        plain["blocked_means"] = str(plain["blocked_means"])
    if "metres_per_cell" in plain:
        plain["metres_per_cell"] = float(plain["metres_per_cell"])
    return Grid(**plain)


def _from_named(arrays: Mapping[str, np.ndarray], details: dict[str, Any]) -> MDP:
    if "first_choice" in arrays:
        parts = (arrays["probability"], arrays["next_state"], arrays["row_begin"])
        matrix = csr_of(*parts, n_states=len(arrays["first_choice"]) - 1)
        if "actions" in arrays:
            details["actions"] = arrays["actions"]
        return MDP.from_csr(matrix, arrays["reward"], arrays["first_choice"], **details)
    if "Q" in arrays:
        return from_quantecon(arrays["s_indices"], arrays["a_indices"], arrays["Q"], arrays["R"], **details)
    return from_mdptoolbox(arrays["P"], arrays["R"], **details)


def _matrices(given: Any, what: str) -> list[Any]:
    matrices: list[Sparse] = [sparse.csr_array(part, dtype=np.float64) for part in given] if len(given) else []
    if not matrices:
        raise ModelError(f"the {what} have no action")
    n = matrices[0].shape[0]
    for action, matrix in enumerate(matrices):
        if matrix.shape != (n, n):
            raise ModelError(f"the {what} of action {action} have shape {matrix.shape}, expected ({n}, {n})")
    return matrices


def _rewards(reward: Any, by_action: Sequence[Any]) -> np.ndarray:
    """(S, A) expected rewards."""
    n, count = by_action[0].shape[0], len(by_action)
    if isinstance(reward, (list, tuple)) and len(reward) == count and all(sparse.issparse(part) for part in reward):
        parts = _matrices(reward, "rewards")
    else:
        array = np.asarray(reward, dtype=np.float64)
        if array.shape == (n,):
            return np.repeat(array[:, None], count, axis=1)
        if array.shape == (n, count):
            return array
        if array.shape != (count, n, n):
            raise ModelError(
                f"the reward must have shape (S,), (S, A) or (A, S, S) with S={n}, A={count}, found {array.shape}"
            )
        parts = list(array)
    return np.column_stack(
        [np.asarray(p.multiply(r).sum(axis=1)).ravel() for p, r in zip(by_action, parts, strict=True)]
    )


FORMATS.add(Format("arrays in an .npz file", read_npz, endings=(".npz",), write=write_npz, example="model.npz"))
