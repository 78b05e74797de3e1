"""Priors over rewards that nobody wrote down."""

from manyways.preferences.base import PREFERENCES, PreferencePrior, Prior, SampledPrior
from manyways.preferences.closures import PossibleClosures
from manyways.preferences.draws import Draws, Family
from manyways.preferences.listed import PossibleRewards
from manyways.preferences.mixture import Preferences
from manyways.preferences.posterior import Posterior

__all__ = [
    "PREFERENCES",
    "Draws",
    "Family",
    "PossibleClosures",
    "PossibleRewards",
    "Posterior",
    "PreferencePrior",
    "Preferences",
    "Prior",
    "SampledPrior",
]
