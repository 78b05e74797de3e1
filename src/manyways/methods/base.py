"""The contract of methods, and their registry."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from manyways.methods.ascent import Ascent, Watch
from manyways.objectives import SetObjective
from manyways.polytope import Polytope, Vertex
from manyways.registry import Registry


@dataclass(frozen=True)
class Method(ABC):
    """How a set of plans is found. Derive a frozen dataclass from it and register that with `@manyways.register`.

    A method sees the feasible set and the objective and nothing else of a model.

    Attributes:
        keeps_plans: whether `run` can plan around given plans.
        respects_floors: whether its plans meet the floors of the polytope.
    """

    keeps_plans: ClassVar[bool] = False
    respects_floors: ClassVar[bool] = False

    @abstractmethod
    def run(
        self,
        polytope: Polytope,
        objective: SetObjective,
        k: int,
        seed: int,
        watch: Watch,
        fixed: Sequence[Vertex] = (),
    ) -> Ascent:
        """Find occupancies that, together with the `fixed` ones, are k plans of high objective.

        Every random draw comes from `seed`. `watch.check()`, and the polytope in the middle of a solve, raise `Halted`
        when the search should end; a method catches it and returns what it has. Methods that do not keep plans are
        never called with any.
        """

    def describe(self) -> str:
        """How it searches, as a phrase for the page."""
        return repr(self)


METHODS: Registry[Method] = Registry("method", Method, "VertexAscent()")
