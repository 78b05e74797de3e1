"""The feasible set of one plan, its linear oracles, and the projection onto it."""

from manyways.polytope.criterion import CRITERIA, Average, Best, Criterion, Discounted
from manyways.polytope.episodic import Episodic
from manyways.polytope.feasible_set import Polytope, largest_at_least
from manyways.polytope.floors import Floor, feasible_plan
from manyways.polytope.limits import Limits, ShortestWay, floors_of, settle_limits, shortest_way, way_lengths
from manyways.polytope.oracle import Oracle, Pause
from manyways.polytope.policy_iteration import PolicyIteration
from manyways.polytope.renumbering import RenumberedSweeps
from manyways.polytope.sweeps import Sweeps
from manyways.polytope.twins import on_twins
from manyways.polytope.vertex import Answer, Vertex

__all__ = [
    "CRITERIA",
    "Answer",
    "Average",
    "Best",
    "Criterion",
    "Discounted",
    "Episodic",
    "Floor",
    "Limits",
    "Oracle",
    "Pause",
    "PolicyIteration",
    "Polytope",
    "RenumberedSweeps",
    "ShortestWay",
    "Sweeps",
    "Vertex",
    "feasible_plan",
    "floors_of",
    "largest_at_least",
    "on_twins",
    "settle_limits",
    "shortest_way",
    "way_lengths",
]
