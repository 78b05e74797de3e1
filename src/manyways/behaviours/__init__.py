"""What counts as different: linear maps from occupancies to what is compared.

The paper compares state-action pairs. Compared by states, two plans that differ only in an unimportant action are
alike; compared by labels, two paths through the same door are. Every behaviour is linear and keeps the total at one,
so the objectives stay convex and every method applies.
"""

from manyways.behaviours.base import BEHAVIOURS, Behaviour
from manyways.behaviours.labels import Labels
from manyways.behaviours.linear_map import Grouping, LinearMap, Mixing
from manyways.behaviours.state_actions import StateActions
from manyways.behaviours.states import States

__all__ = ["BEHAVIOURS", "Behaviour", "Grouping", "Labels", "LinearMap", "Mixing", "StateActions", "States"]
