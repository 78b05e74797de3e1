"""What each plan of a set is like, and what sets it apart from the others: in numbers and in sentences."""

from manyways.describe.measures import Measure, measures
from manyways.describe.portraits import Portrait, portraits

__all__ = ["Measure", "Portrait", "measures", "portraits"]
