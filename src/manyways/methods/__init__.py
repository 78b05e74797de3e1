"""How a set of plans is found. Each method is a frozen dataclass of parameters with one verb, `run`."""

from manyways.methods.ascent import Ascent, Halted, Progress, Status, Trace, Watch
from manyways.methods.base import METHODS, Method
from manyways.methods.frank_wolfe import FrankWolfe
from manyways.methods.projected_gradient import ProjectedGradient
from manyways.methods.vertex_ascent import VertexAscent

__all__ = [
    "METHODS",
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
