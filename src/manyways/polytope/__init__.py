"""The feasible set of one plan, its linear oracles, and the projection onto it."""

from manyways.polytope.criterion import CRITERIA, Average, Criterion, Discounted
from manyways.polytope.feasible_set import Polytope, largest_at_least
from manyways.polytope.oracle import Oracle, Pause
from manyways.polytope.policy_iteration import PolicyIteration
from manyways.polytope.renumbering import RenumberedSweeps
from manyways.polytope.sweeps import Sweeps
from manyways.polytope.vertex import Answer, Vertex

__all__ = [
    "CRITERIA",
    "Answer",
    "Average",
    "Criterion",
    "Discounted",
    "Oracle",
    "Pause",
    "PolicyIteration",
    "Polytope",
    "RenumberedSweeps",
    "Sweeps",
    "Vertex",
    "largest_at_least",
]
