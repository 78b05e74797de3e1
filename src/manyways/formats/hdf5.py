"""Models in HDF5 files (`.h5`), for models that do not fit into memory: written in pieces, read in slices.

The file contains arrays and a header, the bytes of a JSON text. The arrays are those of our own layout of `.npz` files:

    probability, next_state, row_begin (N + 1,)     the CSR parts of the (N, S) transitions
    reward (N,), actions (N,), first_choice (S + 1,), start (S,)
    label0, label1, ... (S,)                        in the order of "labels" in the header
    variable0, ... (S,), end0, ... (N,)             in the order of "variables" and "ends"
    observations (S,)
    cells (S,), blocked (rows, columns), goals, offsets (S, 2)       the map
    state_name_text, state_name_begin (S + 1,)      the names of the states in UTF-8, one after the other

So the choices of consecutive states, their rewards and their transitions are consecutive in the file, and a process that
works on some of the states reads only their part (`ModelFile.blocks`). `read_hdf5` reads the whole model.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from manyways.errors import ManywaysError, ModelError, SourceError
from manyways.files.hdf5_arrays import ArrayFile, ArrayWriter, writing_arrays
from manyways.files.zipped_arrays import DAMAGED, LARGEST, reason
from manyways.formats.format import FORMATS, Format
from manyways.model.as_arrays import PREFIX, model_from_arrays, model_to_arrays
from manyways.model.checking import checked_reward, checked_transitions, rises
from manyways.model.mdp import MDP
from manyways.types import Floats, Ints, Sparse

SCHEMA, VERSION = "manyways model", 1
LARGEST_HEADER = 64 * 2**20
NARROW = 2**31
"""Numbers of states below this are stored in 32 bits."""
BLOCK = 65_536
"""Choices that are read and checked at a time, about."""
NEEDED = {"probability": "f", "next_state": "iu", "row_begin": "iu", "reward": "f", "first_choice": "iu", "start": "f"}
"""The arrays that every model has, and the kinds of their types."""


# ---- writing ------------------------------------------------------------------------------------


class ModelWriter:
    """Writes a model in pieces: the choices of some states after those of the others, then the header.

    Args:
        arrays: the file.
        most_states: that the model will have; decides how many bytes the number of a state takes.
    """

    def __init__(self, arrays: ArrayWriter, most_states: int) -> None:
        self._arrays = arrays
        self._state_type = np.int32 if most_states < NARROW else np.int64
        self._choices = self._transitions = 0
        for name in ("row_begin", "first_choice"):
            arrays.append(name, np.zeros(1, np.int64))

    @property
    def n_states(self) -> int:
        """How many states have their choices in the file."""
        return self._arrays.length("first_choice") - 1

    def add_states(self, counts: Ints, transitions: Sparse, reward: Floats, actions: NDArray[np.integer]) -> None:
        """Add the choices of the next states.

        Args:
            counts: (s,) the number of choices of each state.
            transitions: (n, S) CSR of their choices.
            reward: (n,) of their choices.
            actions: (n,) of their choices, as indices.
        """
        first = self.n_states

        def where(choice: int) -> str:
            state = first + int(np.searchsorted(np.cumsum(counts), choice, side="right"))
            return f"action {int(actions[choice])} in state {state}"

        matrix = checked_transitions(transitions, where, str)
        reward = checked_reward(reward, matrix.shape[0], where)
        if len(counts) and counts.min() < 1:
            raise ModelError(f"state {first + int(np.argmin(counts))} has no action")
        append = self._arrays.append
        append("first_choice", self._choices + np.cumsum(counts, dtype=np.int64))
        append("row_begin", self._transitions + matrix.indptr[1:].astype(np.int64))
        append("next_state", matrix.indices.astype(self._state_type))
        append("probability", matrix.data)
        append("reward", reward)
        append("actions", np.asarray(actions, np.int32))
        self._choices += matrix.shape[0]
        self._transitions += matrix.nnz

    def append(self, name: str, values: np.ndarray) -> None:
        """Add entries to another array of the model, as the head of this module lists them."""
        self._arrays.append(name, _storable(values))

    def append_names(self, names: Sequence[str]) -> None:
        """Add names of states."""
        texts = [name.encode() for name in names]
        begin = self._arrays.length("state_name_text")
        if not self._arrays.length("state_name_begin"):
            self._arrays.append("state_name_begin", np.zeros(1, np.int64))
        self._arrays.append("state_name_begin", begin + np.cumsum([len(text) for text in texts], dtype=np.int64))
        self._arrays.append("state_name_text", np.frombuffer(b"".join(texts), np.uint8))

    def finish(self, action_names: Sequence[str], **header: Any) -> None:
        """Write the header: names of actions, labels and variables, and what else `model_from_arrays` takes from one."""
        given = {
            "labels": [],
            "ends": [],
            "variables": [],
            "layout": None,
            **header,
            "action_names": list(action_names),
        }
        text = json.dumps({"schema": SCHEMA, "version": VERSION, **given})
        self._arrays.append("header", np.frombuffer(text.encode(), np.uint8))


@contextmanager
def writing_model(path: Path, most_states: int) -> Iterator[ModelWriter]:
    """A file to write a model to in pieces, which takes the place of `path` when the block ends without an exception."""
    with writing_arrays(path) as arrays:
        yield ModelWriter(arrays, most_states)


def write_hdf5(mdp: MDP, path: Path) -> None:
    """Write a whole model. `read_hdf5` returns the same model."""
    header, arrays = model_to_arrays(mdp)
    names = header.pop("state_names")
    with writing_model(path, mdp.n_states) as writer:
        for state in range(0, mdp.n_states, BLOCK):
            first = mdp.first_choice[state : state + BLOCK + 1]
            rows = slice(int(first[0]), int(first[-1]))
            writer.add_states(np.diff(first), mdp.transitions[rows], mdp.reward[rows], mdp.actions[rows])
        for name, array in arrays.items():
            if name.removeprefix(PREFIX) not in (*NEEDED, "actions") or name == f"{PREFIX}start":
                writer.append(name.removeprefix(PREFIX), array)
        if names is not None:
            writer.append_names(names)
        writer.finish(**header)


def _storable(values: np.ndarray) -> np.ndarray:
    """The array in a type that HDF5 has: text as bytes."""
    if values.dtype.kind != "U":
        return values
    encoded = np.char.encode(values, "utf-8")
    return encoded if encoded.dtype.itemsize else encoded.astype("S1")


# ---- reading ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Block:
    """The choices of some consecutive states, checked.

    Attributes:
        state: the first of the states.
        counts: (s,) the number of choices of each state.
        transitions: (n, S) CSR of their choices; the columns are all states.
        reward: (n,) of their choices.
        as_stored: whether the file has exactly these transitions: sorted, merged, and with probabilities that sum to one.
    """

    state: int
    counts: Ints
    transitions: Sparse
    reward: Floats
    as_stored: bool


class ModelFile:
    """A model in an HDF5 file, opened for reading in slices.

    Attributes:
        path: of the file.
        header: names and settings.
        n_states, n_choices, n_transitions: the size of the model.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.arrays = path, ArrayFile(path)
        try:
            self.header = self._header()
            self._check_shapes()
        except BaseException:
            self.arrays.close()
            raise

    def __enter__(self) -> ModelFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.arrays.close()

    def _header(self) -> dict[str, Any]:
        if "header" not in self.arrays or self.arrays.dtype("header") != np.uint8:
            raise SourceError(
                f"{self.path} is not a model of manyways: it has no header; 'manyways convert' writes one"
            )
        if self.arrays.shape("header")[0] > LARGEST_HEADER:
            raise SourceError(f"{self.path}: the header has more than {LARGEST_HEADER:,} bytes")
        try:
            header = json.loads(self.arrays.read("header").tobytes())
        except (*DAMAGED, RecursionError):
            raise SourceError(f"{self.path}: the header is not JSON") from None
        if not isinstance(header, dict) or header.get("schema") != SCHEMA:
            raise SourceError(f"{self.path} is not a model of manyways")
        if header.get("version") != VERSION:
            raise SourceError(
                f"{self.path} has version {header.get('version')!r:.60} of the format, expected {VERSION}; read it with the "
                "manyways that wrote it"
            )
        return header

    def _check_shapes(self) -> None:
        for name, kinds in NEEDED.items():
            shape, dtype = self.arrays.shape(name), self.arrays.dtype(name)
            if len(shape) != 1 or dtype.kind not in kinds:
                raise SourceError(f"{self.path}: {name!r} has the wrong shape or type, {shape} of {dtype}")
        self.n_choices = self.arrays.shape("reward")[0]
        self.n_states = self.arrays.shape("first_choice")[0] - 1
        self.n_transitions = self.arrays.shape("probability")[0]
        if self.n_states < 1:
            raise SourceError(f"{self.path}: the model is empty")
        fixed = {"start": (self.n_states,), "row_begin": (self.n_choices + 1,), "next_state": (self.n_transitions,)}
        for name, wanted in fixed.items():
            if self.arrays.shape(name) != wanted:
                raise SourceError(
                    f"{self.path}: the arrays do not fit together: {name!r} must have the shape {wanted}, which follows from "
                    f"the others, found {self.arrays.shape(name)}"
                )

    @property
    def whole_arrays(self) -> dict[str, str]:
        """The arrays of the model, without header and names, by the name that `model_from_arrays` has for them."""
        own = ("header", "state_name_text", "state_name_begin")
        return {PREFIX + name: name for name in self.arrays.names() if name not in own}

    def state_names(self) -> list[str] | None:
        if "state_name_begin" not in self.arrays:
            return None
        begin, text = self.arrays.read("state_name_begin"), self.arrays.read("state_name_text").tobytes()
        if begin.shape != (self.n_states + 1,) or begin.dtype.kind not in "iu" or not rises(begin):
            raise SourceError(f"{self.path}: the names of the states do not fit the states")
        if begin[0] != 0 or begin[-1] != len(text):
            raise SourceError(f"{self.path}: the names of the states do not fit their text")
        try:
            return [text[a:b].decode() for a, b in pairwise(begin.tolist())]
        except UnicodeDecodeError:
            raise SourceError(f"{self.path}: a name of a state is not UTF-8") from None

    def first_choices(self, begin: int, end: int) -> Ints:
        """(end - begin + 1,) where the choices of these states begin, and where the last of them end."""
        first = self.arrays.read("first_choice", begin, end + 1).astype(np.int64)
        inside = first[0] >= 0 and first[-1] <= self.n_choices and (begin > 0 or first[0] == 0)
        if not inside or (first[1:] <= first[:-1]).any() or (end == self.n_states and first[-1] != self.n_choices):
            raise SourceError(
                f"{self.path}: first_choice must rise from 0 to the number of choices, {self.n_choices:,}, by at least 1 for "
                f"each state; it does not in the states {begin:,} to {end - 1:,}"
            )
        return first

    def blocks(self, begin: int, end: int, most_choices: int = BLOCK) -> Iterator[Block]:
        """The choices of the states begin:end, a block at a time."""
        first = self.first_choices(begin, end)
        state = 0
        while state < end - begin:
            last = int(np.searchsorted(first, first[state] + most_choices, side="right")) - 1
            last = min(max(last, state + 1), end - begin)
            yield self._block(begin + state, first[state : last + 1])
            state = last

    def _block(self, state: int, first: Ints) -> Block:
        a, b = int(first[0]), int(first[-1])
        begin = self.arrays.read("row_begin", a, b + 1).astype(np.int64)
        if begin[0] < 0 or begin[-1] > self.n_transitions or not rises(begin):
            raise SourceError(f"{self.path}: row_begin does not rise from 0 to the number of transitions")
        target = self.arrays.read("next_state", int(begin[0]), int(begin[-1]))
        if target.size and not (target.min() >= 0 and target.max() < self.n_states):
            raise SourceError(
                f"{self.path}: next states must lie in 0..{self.n_states - 1}, found {target.min()} to {target.max()}"
            )
        chance = self.arrays.read("probability", int(begin[0]), int(begin[-1]))
        owner = np.repeat(np.arange(state, state + len(first) - 1), np.diff(first))

        def where(choice: int) -> str:
            return f"choice {a + choice} in state {owner[choice]}"

        given = sparse.csr_array((chance, target, begin - begin[0]), shape=(b - a, self.n_states))
        with _named(self.path):
            matrix = checked_transitions(given, where, str)
            reward = checked_reward(self.arrays.read("reward", a, b), b - a, where)
        same = np.array_equal(matrix.indices, target) and np.array_equal(matrix.data, chance)
        return Block(state, np.diff(first), matrix, reward, same)

    def start(self, begin: int, end: int) -> Floats:
        """(end - begin,) the start distribution in the states begin:end."""
        part = self.arrays.read("start", begin, end).astype(np.float64)
        if not (np.isfinite(part).all() and part.min(initial=0.0) >= 0):
            raise SourceError(f"{self.path}: start probabilities must be finite and not negative")
        return part


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Errors of a model in a file name the file."""
    try:
        yield
    except ModelError as error:
        raise SourceError(f"{path}: {error}") from None


def read_hdf5(path: Path) -> MDP:
    """The whole model of a file."""
    with ModelFile(path) as file:
        if file.arrays.claimed() > LARGEST:
            raise SourceError(
                f"{path} holds {file.arrays.claimed():,} bytes, more than the {LARGEST:,} that are read at once; ",
                in_python="plan on several machines with manyways.distributed, which reads it in slices",
                on_command_line="plan on several machines with --engine petsc, which reads it in slices",
            )
        arrays = {key: _text_again(file.arrays.read(name)) for key, name in file.whole_arrays.items()}
        header = {**file.header, "state_names": file.state_names(), "name": path.stem, "source": None}
    try:
        return model_from_arrays(header, arrays)
    except ManywaysError as error:
        raise SourceError(f"{path}: {error}") from None
    except DAMAGED as error:
        raise SourceError(f"{path} cannot be read: {reason(error)}") from None


def _text_again(values: np.ndarray) -> np.ndarray:
    return np.char.decode(values, "utf-8") if values.dtype.kind == "S" else values


FORMATS.add(Format("models in an HDF5 file", read_hdf5, endings=(".h5",), write=write_hdf5, example="model.h5"))
