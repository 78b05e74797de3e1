"""Conditions of a rule made as simple and as narrow as the states that a plan comes to allow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from manyways.describe.conditions import Condition, all_hold, hull, missing
from manyways.describe.trees import WORDS_AT_MOST
from manyways.model.variables import Values
from manyways.types import Bools

Way = tuple[Condition, ...]
"""Conditions that all hold; a rule may name several such ways for one action."""


def where_taken(way: Way, variables: Mapping[str, Values], possible: Bools) -> Way:
    """The conditions with bounds that are values at which they hold and the action is (n,) possible: "at wear 4 to 6" instead of
    "at wear 4 or more" where it is not possible beyond, "b = 5" instead of "b ≥ 5" where b is never more while the rest
    holds. Bounds of variables with very many values stay wide, unless the action is not possible there."""
    held = all_hold(way, variables, len(possible))
    within, beyond = held & possible, held & ~possible
    if not within.any():
        return way
    found = []
    for condition in way:
        values = variables[condition.variable]
        if condition.is_number:
            different = np.unique(values[~missing(values)])
            least, most = values[within].min(), values[within].max()
            few = len(different) <= WORDS_AT_MOST
            low, high = condition.low, condition.high
            if (few and least > different[0]) or (values[beyond] < least).any():
                low = least.item()
            if (few and most < different[-1]) or (values[beyond] > most).any():
                high = most.item()
            if few and least == most:
                low = high = least.item()
            condition = replace(condition, low=low, high=high)  # noqa: PLW2901
        found.append(condition)
    return tuple(found)


def merged(ways: list[Way], variables: Mapping[str, Values], count: int) -> list[Way]:
    """The ways, with two of them made one where that changes nothing."""
    for i, one in enumerate(ways):
        for other in ways[i + 1 :]:
            both, either = hull(one, other), all_hold(one, variables, count) | all_hold(other, variables, count)
            if both and (all_hold(both, variables, count) == either).all():
                rest = [way for way in ways if way is not one and way is not other]
                return merged([*rest, both], variables, count)
    return ways


def without_idle(way: Way, variables: Mapping[str, Values], count: int) -> Way:
    """The conditions without those that exclude none of the plan's states."""
    kept, wanted = list(way), all_hold(way, variables, count)
    for condition in reversed(way):
        rest = [other for other in kept if other is not condition]
        if (all_hold(rest, variables, count) == wanted).all():
            kept = rest
    return tuple(kept)
