"""The plans that several processes found together, and their file.

No process has more than its part of the plans. The first one writes the file: it reads the model from the HDF5 file a piece at
a time and receives the parts of the plans from the others, one after the other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from manyways.behaviours import Behaviour
from manyways.distributed.part import ModelPart
from manyways.errors import OutputError
from manyways.files import atomic
from manyways.files.archive import ArchiveInPieces
from manyways.formats.hdf5 import ModelFile
from manyways.methods import Method, Status, Trace
from manyways.model.as_arrays import PLAN_SCHEMA
from manyways.objectives import Objective
from manyways.plans import Certificate
from manyways.plans.guarantee import guarantee
from manyways.plans.plan_file import VERSION, header_of
from manyways.plans.planset import NEARLY_SAME
from manyways.polytope import Criterion, Limits
from manyways.types import Floats

PIECE = 2**20
"""Entries that are sent or read at a time."""


@dataclass(frozen=True)
class ModelSummary:
    """What can be said about a model that no process has whole."""

    name: str
    n_states: int
    n_choices: int
    costs: bool
    digest: str = ""
    time_limit: int | None = None


@dataclass(frozen=True, eq=False)
class SharedPlanSet:
    """k plans for a model of which each process has a part, best reward first; see `PlanSet` for what it claims.

    Attributes:
        part: the part of the model.
        policies: (k, m) the choice of each state in each plan, as numbers of this process.
        occupancies: (k, n) as a shared vector.
        vectors: of the proof: `best` (m,) the best policy, `best_x` (n,) its occupancy, `optimum` (m,) and `gap` (k, m) relative
            values; the gap is None if it was not computed.
        multipliers: of the floors in the proof, whole in all processes: `optimum` (0,) and `gap` (k, floors).
        memory_mib: the largest memory of each process so far.
    """

    mdp: ModelSummary
    part: ModelPart = field(repr=False)
    policies: np.ndarray = field(repr=False)
    occupancies: Floats = field(repr=False)
    rewards: Floats
    distances: Floats
    objective: float
    optimal_reward: float
    gap: float
    status: Status
    trace: Trace = field(repr=False)
    maximised: Objective
    criterion: Criterion
    behaviour: Behaviour
    method: Method
    seed: int
    seconds: float
    versions: Mapping[str, str]
    certificate: Certificate
    limits: Limits
    vectors: Mapping[str, Any] = field(repr=False)
    multipliers: Mapping[str, Floats] = field(repr=False)
    memory_mib: tuple[int, ...]
    asked: int | None = None
    like: int | None = None
    kept: tuple[int, ...] = ()
    fewer: bool = False
    derived: bool = False
    ways: str | None = None
    kept_below: tuple[int, ...] = ()
    kept_titles: tuple[str, ...] = ()

    @property
    def k(self) -> int:
        return len(self.rewards)

    @property
    def tradeoff(self) -> float | None:
        return getattr(self.maximised, "tradeoff", None)

    @property
    def diversity(self) -> float:
        return float(self.distances.sum() / (self.k * (self.k - 1))) if self.k > 1 else 0.0

    @property
    def guarantee(self) -> str | None:
        return None if self.status is Status.NOT_VERIFIED else guarantee(self)  # pyright: ignore[reportArgumentType]

    @property
    def near_duplicates(self) -> list[tuple[int, int]]:
        first, second = np.nonzero(np.triu(self.distances < NEARLY_SAME * self.behaviour.apart, 1))
        return [(int(i), int(j)) for i, j in zip(first, second, strict=True)]

    def save(self, path: Path) -> str:
        """Write a plan file like that of `PlanSet.save`; all processes call this together. Returns the digest of the model."""
        if self.part.team.rank:
            self._send()
            self.part.team.only_first(lambda: None)
            return ""
        digest: list[str] = []
        self.part.team.only_first(lambda: digest.append(self._write(path)))
        return digest[0]

    # ---- the first process writes -------------------------------------------------------------

    def _write(self, path: Path) -> str:
        arriving = self._arriving()
        try:
            with ModelFile(self.part.path) as model, atomic(path) as file:
                return self._written(ArchiveInPieces(file), model, arriving)
        except OutputError:
            for _ in arriving:  # the other processes must not wait forever
                pass
            raise

    def _written(self, archive: ArchiveInPieces, model: ModelFile, arriving: Iterator[Arrival]) -> str:
        for key, name in model.whole_arrays.items():
            shape, dtype = model.arrays.shape(name), model.arrays.dtype(name)
            kind = {"u": np.dtype(np.int64), "S": np.dtype(f"U{dtype.itemsize}")}.get(dtype.kind, dtype)
            archive.add(key, shape, kind, _pieces(model, name, shape[0]))
        digest, settings = digest_of(model), {}
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        header = header_of(fields, _model_header(model, self.mdp.name, digest), settings)
        small = settings | {f"trace/{name}": column for name, column in vars(self.trace).items()}
        small |= {"rewards": self.rewards, "distances": self.distances, "avoided": np.empty((0, self.mdp.n_choices))}
        small |= {f"proof/multipliers/{name}": values for name, values in self.multipliers.items()}
        for name, array in small.items():
            archive.add(name, array.shape, array.dtype, [array])
        for (name, shape), pieces in groupby(arriving, lambda arrival: arrival[:2]):
            archive.add(name, shape, np.float64, (piece for *_, piece in pieces))
        archive.finish(PLAN_SCHEMA, VERSION, header)
        return digest

    def _arriving(self) -> Iterator[Arrival]:
        """All arrays that the processes share, a piece at a time: name and shape of the array, and the next entries."""
        comm = self.part.team.comm
        for name, shape, rows in self._shared():
            for row in rows:
                yield name, shape, row
                for rank in range(1, self.part.team.size):
                    left = int(comm.recv(source=rank))
                    while left > 0:
                        piece = np.empty(min(left, PIECE))
                        comm.Recv(piece, source=rank)
                        left -= len(piece)
                        yield name, shape, piece

    def _shared(self) -> Iterator[tuple[str, tuple[int, ...], Iterable[Floats]]]:
        """Name, shape and own parts of rows of all arrays that the processes share; in the same order in all of them."""
        n, s, k = self.mdp.n_choices, self.mdp.n_states, self.k
        yield "policies", (k, n), (self._indicator(own) for own in self.policies)
        yield "occupancies", (k, n), iter(np.asarray(self.occupancies))
        yield "proof/best", (n,), (self._indicator(self.vectors["best"]) for _ in range(1))
        yield "proof/best_x", (n,), iter([np.asarray(self.vectors["best_x"])])
        yield "proof/optimum", (1, s), iter([self.vectors["optimum"]])
        if self.vectors["gap"] is not None:
            yield "proof/gap", (k, s), iter(self.vectors["gap"])

    def _indicator(self, choices: Any) -> Floats:
        """(m,) one choice per state -> (n,) policy."""
        policy = np.zeros(len(self.part.owner))
        policy[choices] = 1.0
        return policy

    def _send(self) -> None:
        """The same in the other processes."""
        comm = self.part.team.comm
        for *_, rows in self._shared():
            for row in rows:
                comm.send(len(row), dest=0)
                for begin in range(0, len(row), PIECE):
                    comm.Send(np.ascontiguousarray(row[begin : begin + PIECE], dtype=np.float64), dest=0)


Arrival = tuple[str, tuple[int, ...], Floats]


def _pieces(model: ModelFile, name: str, length: int) -> Iterator[np.ndarray]:
    for begin in range(0, length, PIECE):
        piece = model.arrays.read(name, begin, min(begin + PIECE, length))
        yield np.char.decode(piece, "utf-8") if piece.dtype.kind == "S" else piece


def digest_of(model: ModelFile) -> str:
    """`MDP.digest` of the model in a file, which is read a piece at a time."""
    hasher = hashlib.sha256(b"manyways-mdp-1")
    whole, parts = ("first_choice", "row_begin", "next_state"), ("probability", "reward", "start")
    for name, kind in [*((name, np.int64) for name in whole), *((name, np.float64) for name in parts)]:
        length = model.arrays.shape(name)[0]
        hasher.update(length.to_bytes(8, "little"))
        for piece in _pieces(model, name, length):
            hasher.update(np.ascontiguousarray(piece.astype(kind) + 0).data)
    labels = list(model.header["labels"])
    for label in sorted(labels):
        hasher.update(label.encode())
        for piece in _pieces(
            model, f"label{labels.index(label)}", model.n_states
        ):  # a multiple of eight, but for the last
            hasher.update(np.packbits(piece).data)
    return hasher.hexdigest()


def _model_header(model: ModelFile, name: str, digest: str) -> dict[str, Any]:
    """The header of the model in a plan file."""
    own = {key: value for key, value in model.header.items() if key not in ("schema", "version")}
    return own | {"name": name, "source": str(model.path), "digest": digest, "state_names": model.state_names()}
