"""Studies: many plans over many settings, resumable, on one core, several, or a cluster."""

from manyways.studies.experiments import STUDIES, paper
from manyways.studies.results import Results
from manyways.studies.sweeping import Knee, Sweep, sweep

__all__ = ["STUDIES", "Knee", "Results", "Sweep", "paper", "sweep"]
