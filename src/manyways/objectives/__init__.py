"""What a set of plans is worth: one file for each objective, behind one contract (`base`)."""

from manyways.objectives.base import (
    OBJECTIVES,
    Candidates,
    ExchangeForm,
    MeanForm,
    Objective,
    Offer,
    SetObjective,
    WorkingSet,
)
from manyways.objectives.congestion import Congestion
from manyways.objectives.coverage import Coverage
from manyways.objectives.determinant_divergence import DeterminantDivergence
from manyways.objectives.joint_divergence import JointDivergence
from manyways.objectives.least_divergence import LeastDivergence
from manyways.objectives.mean_divergence import MeanDivergence
from manyways.objectives.representative import Representative
from manyways.objectives.spread_divergence import SpreadDivergence

__all__ = [
    "OBJECTIVES",
    "Candidates",
    "Congestion",
    "Coverage",
    "DeterminantDivergence",
    "ExchangeForm",
    "JointDivergence",
    "LeastDivergence",
    "MeanDivergence",
    "MeanForm",
    "Objective",
    "Offer",
    "Representative",
    "SetObjective",
    "SpreadDivergence",
    "WorkingSet",
]
