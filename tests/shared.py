"""What tests in several folders share: where the data is, and the paper's objective on a model."""

from __future__ import annotations

from pathlib import Path

from manyways import MDP, Behaviour, MeanDivergence, SetObjective, StateActions

DATA = Path(__file__).parent / "data"
WORLDS = sorted((DATA / "worlds").glob("*.json"))
"""The twenty worlds that come with the authors' results and the best known ones."""
MODELS = DATA / "models"


def paper_objective(mdp: MDP, tradeoff: float, behaviour: Behaviour | None = None) -> SetObjective:
    """Mean reward + tradeoff x mean divergence, of plans compared by state-action pairs unless told otherwise."""
    return MeanDivergence(tradeoff).on(mdp, (behaviour or StateActions()).on(mdp))
