"""Models as arrays: the layouts of pymdptoolbox and QuantEcon, and `.npz` files.

An `.npz` file holds one of these sets of arrays, told apart by their names:

- `P` (A, S, S) and `R` (S,), (S, A) or (A, S, S): pymdptoolbox;
- `s_indices` (N,), `a_indices` (N,), `Q` (N, S), `R` (N,): QuantEcon's state-action pairs;
- `probability`, `next_state`, `row_begin` (the CSR parts of the (N, S) transitions), `reward` (N,), `first_choice`
  (S + 1,): ours, which `write_npz` writes. `action_names`, `actions`, `state_names`, and `label:NAME` (S,) may be there.

`start` (S,) may be there in each; without it the first state is the start.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from manyways.arrays import Sparse
from manyways.errors import ModelError, OutputError, SourceError
from manyways.formats.archive import check_writable
from manyways.formats.model_arrays import plain_arrays
from manyways.mdp import MDP

LARGEST = 16 * 2**30
LABEL = "label:"
DAMAGED = (
    ValueError,
    TypeError,
    KeyError,
    EOFError,
    OSError,
    RuntimeError,
    MemoryError,
    SyntaxError,
    TokenError,
    zlib.error,
)
"""What numpy and zipfile raise on damaged files."""


def from_mdptoolbox(transitions: Any, reward: ArrayLike | Any, **details: Any) -> MDP:
    """From pymdptoolbox's layout.

    Args:
        transitions: (A, S, S) array, or a sequence of A sparse or dense (S, S) matrices.
        reward: (S,), (S, A), (A, S, S), or a sequence of A matrices (S, S).
        details: `start`, `action_names`, `state_names`, `labels`, `layout`, `name`.
    """
    by_action = _matrices(transitions, "transitions")
    n, count = by_action[0].shape[0], len(by_action)
    rewards = _rewards(reward, by_action)
    stacked = sparse.csr_array(sparse.vstack(by_action))
    order = np.arange(n * count).reshape(count, n).T.ravel()  # from action by action to state by state
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
    """From QuantEcon's state-action pairs, in any order.

    Args:
        s_indices: (N,) state of each pair.
        a_indices: (N,) action of each pair.
        transitions: (N, S) sparse or dense, Q of DiscreteDP.
        reward: (N,) R of DiscreteDP.
        details: as for `from_mdptoolbox`.
    """
    states, actions = np.asarray(s_indices), np.asarray(a_indices)
    matrix: Sparse = sparse.csr_array(transitions)
    reward = np.asarray(reward, dtype=np.float64)
    for name, array in (("s_indices", states), ("a_indices", actions), ("R", reward)):
        if array.shape != (matrix.shape[0],):
            raise ModelError(
                f"{name} must have one entry for each of the {matrix.shape[0]} rows of Q, found {array.shape}"
            )
    if states.dtype.kind not in "iu" or actions.dtype.kind not in "iu":
        raise ModelError("s_indices and a_indices must be whole numbers")
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
    """A model from an `.npz` file in one of the layouts above."""
    try:
        with zipfile.ZipFile(path) as archive:
            claimed = sum(entry.file_size for entry in archive.infolist())
        if claimed > LARGEST:
            raise SourceError(f"{path} claims {claimed:,} bytes of arrays; more than {LARGEST:,} are refused")
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        for name, array in arrays.items():
            if not isinstance(array, np.ndarray):  # numpy gives the bytes of a member that does not begin like an array
                raise SourceError(f"{path}: {name[:60]!r} is not an array")
            if (
                array.dtype.kind not in "biufUS"
            ):  # complex numbers would lose their imaginary parts, dates their meaning
                raise SourceError(f"{path}: {name[:60]!r} must hold numbers or text, found {str(array.dtype)[:60]}")
            # Entries of no bytes, or none along one axis, leave room for any number of them along the others.
            if max(array.size, *array.shape, 0) > claimed:
                raise SourceError(f"{path}: {name[:60]!r} has shape {array.shape}, which the file is too small for")
    except zipfile.BadZipFile:
        raise SourceError(f"{path} is not an .npz file, or is truncated") from None
    except DAMAGED as error:
        if isinstance(error, SourceError):
            raise
        raise SourceError(f"{path} cannot be read: {error}") from None
    details: dict[str, Any] = {"name": path.stem}
    if "start" in arrays:
        details["start"] = arrays["start"]
    for name in ("action_names", "state_names"):
        if name in arrays:
            details[name] = [str(value) for value in np.ravel(arrays[name])]
    details["labels"] = {
        name.removeprefix(LABEL): _mask(array, name, path) for name, array in arrays.items() if name.startswith(LABEL)
    }
    try:
        return _from_named(arrays, details, path)
    except (TypeError, ValueError, IndexError, MemoryError) as error:
        if isinstance(error, ModelError):
            raise
        raise SourceError(f"{path}: the arrays do not fit together: {error}") from None


def write_npz(mdp: MDP, path: Path) -> None:
    """Write the model in our own layout; `read_npz` gives it back (drawing layouts are left behind)."""
    check_writable(path)
    arrays = plain_arrays(mdp) | {"action_names": np.array(mdp.action_names, dtype=np.str_)}
    if mdp.state_names is not None:
        arrays["state_names"] = np.array(mdp.state_names, dtype=np.str_)
    arrays |= {LABEL + name: mask for name, mask in mdp.labels.items()}
    try:
        with path.open("wb") as file:
            np.savez_compressed(file, **arrays)  # pyright: ignore[reportArgumentType]
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror}") from None


def _from_named(arrays: Mapping[str, np.ndarray], details: dict[str, Any], path: Path) -> MDP:
    def has(*names: str) -> bool:
        return all(name in arrays for name in names)

    if has("probability", "next_state", "row_begin", "reward", "first_choice"):
        for name in ("next_state", "row_begin", "first_choice"):
            if arrays[name].dtype.kind not in "iu" or arrays[name].ndim != 1:  # scipy would cut 0.5 off to 0
                found = f"{arrays[name].dtype} of shape {arrays[name].shape}"
                raise SourceError(f"{path}: {name!r} must be a row of whole numbers, found {found}")
        n = len(arrays["first_choice"]) - 1
        parts = (arrays["probability"], arrays["next_state"], arrays["row_begin"])
        matrix: Sparse = sparse.csr_array(parts, shape=(len(arrays["reward"]), n))
        matrix.check_format(full_check=True)
        if "actions" in arrays:
            details["actions"] = arrays["actions"]
        return MDP.from_csr(matrix, arrays["reward"], arrays["first_choice"], **details)
    if has("s_indices", "a_indices", "Q", "R"):
        return from_quantecon(arrays["s_indices"], arrays["a_indices"], arrays["Q"], arrays["R"], **details)
    if has("P", "R"):
        return from_mdptoolbox(arrays["P"], arrays["R"], **details)
    raise SourceError(
        f"{path} holds the arrays {', '.join(sorted(arrays)) or '(none)'}; expected P and R (pymdptoolbox), s_indices, "
        "a_indices, Q and R (QuantEcon), or probability, next_state, row_begin, reward and first_choice"
    )


def _matrices(given: Any, what: str) -> list[Any]:
    matrices: list[Sparse] = [sparse.csr_array(part) for part in given] if len(given) else []
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


def _mask(array: np.ndarray, name: str, path: Path) -> np.ndarray:
    if array.dtype != np.bool_:
        raise SourceError(f"{path}: {name!r} must be an array of true and false, found {array.dtype}")
    return array
