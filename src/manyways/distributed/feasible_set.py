"""The feasible set of one plan, the map by which plans are compared, and the watch, in the form that several processes share."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from manyways.behaviours import Behaviour, LinearMap, Near, StateActions, States
from manyways.distributed.oracle import SharedOracle
from manyways.distributed.part import ModelPart
from manyways.distributed.team import Team
from manyways.distributed.walk import walk_on
from manyways.errors import SettingError
from manyways.kernels import partition as kernels
from manyways.methods import Halted, Status, Watch
from manyways.model.mdp import MDP
from manyways.polytope import Criterion, Polytope, Vertex
from manyways.polytope.feasible_set import WANDERING_STEPS
from manyways.polytope.oracle import Pause
from manyways.types import Floats, Ints
from manyways.vectors import plain, shared

INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)


class SharedPolytope(Polytope):
    """All occupancies of a model, of which each process has a part, as shared vectors.

    Limits, floors and methods use it like any other polytope. What needs the whole model, such as projections, is missing.
    """

    def __init__(self, part: ModelPart, criterion: Criterion) -> None:
        self.mdp, self.criterion, self.at_least = cast(MDP, part), criterion, 0.0
        self.part, self.pause, self.floors = part, Pause(), ()
        self._kind = self._wrap = self._optimum = self._ceiling = None
        self._randomised = False
        self.oracle = SharedOracle(part, criterion.discount, self.pause)
        self._chosen = self._oracle = self._plain = self.oracle

    def wander(self, rng: np.random.Generator) -> Floats:
        """(n,) where a random policy spends its first steps from the start; see `Polytope.wander`.

        Each process draws from a stream of its own, so the policy depends on the number of processes.
        """
        part = self.part
        own = rng.spawn(part.team.size)[part.team.rank]
        weight = own.exponential(size=len(part.owner))
        policy = weight / np.add.reduceat(weight, part.first[:-1])[part.owner]
        now, total = np.array(plain(part.start)), np.zeros(part.own)
        for _ in range(WANDERING_STEPS):
            total += now
            into = np.zeros(part.known)
            kernels.flow(part.indptr, part.indices, part.data, 1.0, policy * now[part.owner], into)
            part.halo.add_back(into)
            now = into[: part.own]
        return shared(policy * (total / WANDERING_STEPS)[part.owner], part.team)

    def vertex_of_one_class(self, choices: Ints) -> Vertex | None:
        return self.oracle.vertex_of(choices)


@dataclass(frozen=True, eq=False)
class ByChoice(LinearMap):
    """Every choice is a place of its own; this process has `count` of them."""

    count: int

    @property
    def groups(self) -> Ints:
        return np.arange(self.count)

    @property
    def identity(self) -> bool:
        return True

    @property
    def places(self) -> int:
        return self.count

    @property
    def most_terms(self) -> int:
        return 1

    def forward(self, x: Floats) -> Floats:
        return x

    def backward(self, y: Floats) -> Floats:
        return y


@dataclass(frozen=True, eq=False)
class ByState(LinearMap):
    """All choices of a state are one place; a process has all choices of its states."""

    part: ModelPart

    @property
    def groups(self) -> Any:
        return self.part.owner

    @property
    def places(self) -> int:
        return self.part.own

    @property
    def most_terms(self) -> int:
        return int(np.diff(self.part.first).max())

    def forward(self, x: Floats) -> Floats:
        return np.add.reduceat(x, self.part.first[:-1], axis=-1)

    def backward(self, y: Floats) -> Floats:
        return y[..., self.part.owner]


def compared_by(behaviour: Behaviour, part: ModelPart) -> LinearMap:
    """The map of a behaviour on the part of a model that this process has."""
    if isinstance(behaviour, StateActions):
        return ByChoice(len(part.owner))
    if isinstance(behaviour, Near) and behaviour.radius > 0:
        return walk_on(part, behaviour.radius)
    if isinstance(behaviour, (States, Near)):
        return ByState(part)
    raise SettingError(
        f"plans on several machines are compared by choices, states or neighbourhoods, not by {behaviour!r:.100}; ",
        in_python="use StateActions(), States() or Near(2)",
        on_command_line="use --behaviour state-actions or states, or --apart 2",
    )


class EndNow(KeyboardInterrupt):
    """A second interrupt. Only one process raises it, so it has to end the others."""


@dataclass(frozen=True)
class SharedWatch(Watch):
    """A watch that all processes read together: what ends the search in one of them ends it in all."""

    team: Team | None = None

    def check_interrupt(self) -> None:
        if self.team is not None and self.team.any(self.interrupted.is_set()):
            self.interrupted.set()
            raise Halted(Status.INTERRUPTED)

    def check(self) -> None:
        self.check_interrupt()
        if self.team is not None and self.team.any(self.expired()):
            raise Halted(Status.TIME_LIMIT)

    @contextmanager
    def catching_interrupts(self) -> Iterator[None]:
        """Within the block, Ctrl-C sets the interrupt flag, and so do SIGUSR1, which mpirun forwards to all processes, and
        SIGTERM, which it sends to them before it kills them. A second one ends the run: the first process raises `EndNow`."""

        def set_flag(*_: object) -> None:
            if self.interrupted.is_set() and (self.team is None or self.team.rank == 0):
                raise EndNow
            self.interrupted.set()

        before = {number: signal.signal(number, set_flag) for number in INTERRUPTS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
