"""What counts as different: linear maps from occupancies to what is compared.

The paper compares state-action pairs. Compared by states, two plans that differ only in an unimportant action are
alike; compared by labels or regions, two paths through the same door are; compared by neighbourhoods, two paths side by
side are. Every behaviour is linear and keeps the total at one, so the objectives stay convex and every method applies.
docs/behaviours.md says when to use which.
"""

from manyways.behaviours.actions import Actions
from manyways.behaviours.base import BEHAVIOURS, Behaviour
from manyways.behaviours.features import Features
from manyways.behaviours.labels import Labels
from manyways.behaviours.linear_map import Grouping, LinearMap, Mixing, Walking
from manyways.behaviours.near import Near
from manyways.behaviours.regions import Regions
from manyways.behaviours.state_actions import StateActions
from manyways.behaviours.states import States

__all__ = [
    "BEHAVIOURS",
    "Actions",
    "Behaviour",
    "Features",
    "Grouping",
    "Labels",
    "LinearMap",
    "Mixing",
    "Near",
    "Regions",
    "StateActions",
    "States",
    "Walking",
]
