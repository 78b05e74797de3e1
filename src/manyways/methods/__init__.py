"""How a set of plans is found. Each method is a frozen set of parameters with one verb, `run`."""

from typing import Protocol

from manyways.methods.ascent import Ascent, Halted, Progress, Status, Trace, Watch
from manyways.methods.frank_wolfe import FrankWolfe
from manyways.methods.projected_gradient import ProjectedGradient
from manyways.methods.vertex_ascent import VertexAscent
from manyways.objective import Objective
from manyways.polytope import Polytope

__all__ = [
    "Ascent",
    "FrankWolfe",
    "Halted",
    "Method",
    "Progress",
    "ProjectedGradient",
    "Status",
    "Trace",
    "VertexAscent",
    "Watch",
]


class Method(Protocol):
    """What `plan` asks of a method. It sees the feasible set and the objective, nothing else."""

    def run(self, polytope: Polytope, objective: Objective, k: int, seed: int, watch: Watch) -> Ascent:
        """Find k occupancies of high objective; every random draw comes from `seed`.

        `watch.check()`, and the polytope in the middle of a solve, raise `Halted` when it is time to end with what
        there is.
        """
        ...
