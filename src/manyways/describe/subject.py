"""What the descriptions need to know about a set of plans.

Plan sets have titles, which come from here, so this package cannot import them; `PlanSet` has all of these attributes.
"""

from __future__ import annotations

from typing import Protocol

from manyways.behaviours import Behaviour
from manyways.model.mdp import MDP
from manyways.polytope import Criterion
from manyways.types import Floats

NEVER = 1e-12
"""Shares of time below this are none."""

STATES_UP_TO = 200_000
"""The variables of larger models are not looked at for titles and sentences."""


class Plans(Protocol):
    """k plans for one model.

    Attributes:
        mdp: the model, with N choices.
        k: how many plans.
        policies: (k, N) probability of each choice within its state.
        occupancies: (k, N) share of time on each choice.
        rewards: (k,) the value of each plan under the criterion.
        distances: (k, k) pairwise distances.
        optimal_reward: the highest value of any policy.
        criterion: what counts as reward.
        behaviour: what counts as different.
        near_duplicates: pairs of plans (counted from 0) that are nearly the same.
        kept: plans (counted from 0) that were kept from an earlier set.
        kept_titles: the titles that these had there; empty where they had none.
    """

    @property
    def mdp(self) -> MDP: ...
    @property
    def k(self) -> int: ...
    @property
    def policies(self) -> Floats: ...
    @property
    def occupancies(self) -> Floats: ...
    @property
    def rewards(self) -> Floats: ...
    @property
    def distances(self) -> Floats: ...
    @property
    def optimal_reward(self) -> float: ...
    @property
    def criterion(self) -> Criterion: ...
    @property
    def behaviour(self) -> Behaviour: ...
    @property
    def near_duplicates(self) -> list[tuple[int, int]]: ...
    @property
    def kept(self) -> tuple[int, ...]: ...
    @property
    def kept_titles(self) -> tuple[str, ...]: ...


def words_for(plans: Plans, word: str) -> str:
    """What a share is a share of: "time" or "steps", with "discounted" in front if it is."""
    return word if plans.criterion.discount == 1 else f"discounted {word}"
