"""How much alike two plans are, in words that hold for what a person sees.

The distance of a set compares what its behaviour compares, by default the time on each choice. Two plans can have next to
nothing in common there and still take the same way, one cell beside each other. On maps, the words therefore also
depend on two other comparisons:

*Near.* The distance for the behaviour `Near`, with a radius of a sixteenth of the longer side of the map and at least one
cell. Two plans that are everywhere one radius apart have a distance of 0.20, two radii apart 0.50. Plans are called different,
clearly different or very different only if both distances are large enough for it.

*Passages.* Two plans take the same passages if, for every passage and room, the shares of their ways to the goal that go
through it differ by less than a quarter. This is known only for models with a goal and at least two regions.

Models without a map, and maps with fewer than 8 rows or columns, have no such comparisons; there the words depend on the distance
of the set alone: plans are different from `Behaviour.apart` on. There are two exceptions. Plans without a map that nearly always act
by the same rule (`describe.rules`) differ only in the states that they are in, however large their distance is. And plans on a map
that differ only in actions with the same effect, such as two directions in which a slippery lake lets nobody go, are alike: nobody
who watches can tell them apart. Without a map the names of actions may matter to somebody, whatever they do.

Behaviours with few groups, such as `Regions`, have smaller distances: each behaviour says from which distance on ways are
different (`Behaviour.apart`), and distances are taken in proportion to that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import inf

import numpy as np

from manyways.behaviours import Behaviour, Grouping, Near
from manyways.describe.rules import Rule
from manyways.describe.subject import Plans
from manyways.errors import SettingError
from manyways.model.effects import by_effect
from manyways.objectives.divergence import pairwise_divergences
from manyways.types import Bools, Floats

QUARTER = 0.25
NEARBY = 16
"""The longer side of the map by the radius of `Near`."""

NARROW = 8
"""On maps with fewer rows or columns than this, ways one cell apart are seen as different: `Near` is not asked."""

NEARLY_SAME, SIMILAR, CLEAR = 0.01, 0.2, 0.45
"""Distances below these are called nearly the same, similar (of `Near`) or just different, and clearly different."""
OTHER_PASSAGES = 0.1
"""Plans that take other passages are not called similar from this distance of `Near` on."""

SAME_EFFECT = "different in actions that have the same effect, and otherwise the same"
SAME_RULE = "in different states, but act by the same rule"
GRADES = (
    "nearly the same",
    "similar",
    "different cell by cell, but near each other most of the way",
    SAME_EFFECT,
    SAME_RULE,
    "the same in what is compared, but on different ways",
    "different",
    "clearly different",
    "very different",
)
ALIKE = 5
"""The first grades, as many as this, are those of plans that are alike."""


@dataclass(frozen=True, eq=False)
class Likeness:
    """How much alike the plans of a set are.

    Attributes:
        distances: (k, k) the distances of the set, in proportion to what its behaviour calls different.
        near: (k, k) the distances for `Near`; None without a map, on narrow ones, and where no state is near another.
        radius: the radius of `near`, in words: "2 cells", "1.2 m".
        passages: (k, k) whether two plans take the same passages; None if that is not known.
        rules: (k, k) whether two plans act by the same rule; None without rules.
        effects: (k, k) whether two plans spend their time on choices with the same effects; None without a map.
    """

    distances: Floats
    near: Floats | None
    radius: str
    passages: Bools | None
    rules: Bools | None
    effects: Bools | None = None

    @property
    def apart(self) -> Floats:
        """(k, k) the distances by which many plans are grouped."""
        return self.distances if self.near is None else self.near

    def same_passages(self, one: int, other: int) -> bool:
        """Whether two plans are known to take the same passages and are not far from each other on the way."""
        close = self.near is None or self.near[one, other] < CLEAR
        return bool(close and self.passages is not None and self.passages[one, other])

    def same_way(self, one: int, other: int) -> bool:
        """Whether two plans on a map take the same passages and keep close to each other."""
        close = self.near is not None and self.near[one, other] < SIMILAR
        return bool(close and (self.passages is None or self.passages[one, other]))

    @property
    def all_same_way(self) -> bool:
        """Whether there are several plans and all of them go the same way."""
        pairs = list(combinations(range(len(self.distances)), 2))
        return bool(pairs) and all(self.same_way(one, other) for one, other in pairs)

    def grade(self, one: int, other: int) -> int:
        """The index in `GRADES` of the words for two plans."""
        own = float(self.distances[one, other])
        near = inf if self.near is None else float(self.near[one, other])
        if own < NEARLY_SAME:
            return 0 if self.near is None or near < SIMILAR else 5
        if self.effects is not None and self.effects[one, other]:
            return 3
        if own >= SIMILAR and self.same_way(one, other):
            return 2
        parted = self.passages is not None and not self.passages[one, other]
        if own < Behaviour.apart or near < (OTHER_PASSAGES if parted else SIMILAR):
            return 1
        if self.rules is not None and self.rules[one, other]:
            return 4
        least = min(own, near)
        return 6 if least < SIMILAR else 7 if least < CLEAR else 8

    def alike(self, one: int, other: int) -> bool:
        """Whether two plans are the same but for small differences."""
        return self.grade(one, other) < ALIKE

    def same_effect(self, one: int, other: int) -> bool:
        """Whether nobody who watches two plans can tell them apart."""
        return GRADES[self.grade(one, other)] == SAME_EFFECT

    def act_alike(self, one: int, other: int) -> bool:
        """Whether two plans are alike only in that they act by the same rule."""
        return GRADES[self.grade(one, other)] == SAME_RULE


def likeness_of(plans: Plans, chances: Sequence[Floats | None], rules: Sequence[Rule] | None) -> Likeness:
    """Compare the plans of a set; (P,) `chances` of each plan are those that its way goes through each of P places."""
    passages, known = None, [chance for chance in chances if chance is not None and chance.size]
    if len(known) == plans.k:
        passages = np.stack([np.abs(np.stack(known) - own).max(axis=1) < QUARTER for own in known])
    by_rule = None if rules is None else np.array([[one.same_as(other) for other in rules] for one in rules])
    layout, distances = plans.mdp.layout, plans.distances * (Behaviour.apart / plans.behaviour.apart)
    if layout is None:
        return Likeness(distances, None, "", passages, by_rule)
    effects = pairwise_divergences(Grouping(by_effect(plans.mdp)).forward(plans.occupancies)) < NEARLY_SAME
    if min(layout.shape) < NARROW:
        return Likeness(distances, None, "", passages, by_rule, effects)
    cells = max(max(layout.shape) / NEARBY, 1.0)
    metres = None if layout.metres_per_cell is None else cells * layout.metres_per_cell
    radius = f"{cells:.2g} cell{'' if cells == 1 else 's'}" if metres is None else f"{metres:.2g} m"
    try:
        nearby = Near(cells if metres is None else metres).on(plans.mdp)
    except SettingError:  # no move can be made both ways
        return Likeness(distances, None, "", passages, by_rule, effects)
    near = pairwise_divergences(nearby.forward(plans.occupancies))
    return Likeness(distances, near, radius, passages, by_rule, effects)
