"""What a set of plans is worth: one file for each objective, behind one contract (`base`)."""

from manyways.objectives.base import OBJECTIVES, ExchangeForm, Objective, Offer, SetObjective, WorkingSet
from manyways.objectives.mean_divergence import MeanDivergence

__all__ = ["OBJECTIVES", "ExchangeForm", "MeanDivergence", "Objective", "Offer", "SetObjective", "WorkingSet"]
