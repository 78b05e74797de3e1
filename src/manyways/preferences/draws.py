"""Draws from a prior over unknown rewards.

A draw is one preference that a person may have: a reward w per choice, to be added to the known reward. It is linear in
the images of a behaviour's map B, with one worth for each of R places:

    w = B' v,   <w, rho> = <v, B rho>

So smooth preferences are worths of neighbourhoods (`Near`), and worths of labels, regions or actions have the same form.
Draws are stored as worths of places, never as rewards of choices: M x R numbers with R at most `MOST_PLACES`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from manyways.behaviours import LinearMap
from manyways.types import Bools, Floats, Ints

MOST_PLACES = 1024
"""Where a map has more places, this many of them, drawn at random, have a worth: the memory of draws is bounded."""


@dataclass(frozen=True, eq=False)
class Family:
    """Preferences of one kind, made from noise.

    Attributes:
        name: what they are about, as a phrase: "places" or "labels".
        map: from choices to places.
        places: (R,) the places that have worths; None for all of them.
        noise: how many standard normal numbers make the worths of one draw; 0 if draws are given, not made.
        worths: (m, noise) -> (m, R): the worths of places, from noise. Opposite noise gives opposite worths, up to a
            constant.
    """

    name: str
    map: LinearMap
    places: Ints | None = None
    noise: int = 0
    worths: Callable[[Floats], Floats] = np.asarray

    def image(self, x: Floats) -> Floats:
        """(..., N) -> (..., R): the time in each place that has a worth."""
        image = self.map.forward(x)
        return image if self.places is None else image[..., self.places]

    def reward(self, worths: Floats) -> Floats:
        """(..., R) worths of places -> (..., N) rewards of choices."""
        if self.places is None:
            return self.map.backward(worths)
        full = np.zeros((*worths.shape[:-1], self.map.places))
        full[..., self.places] = worths
        return self.map.backward(full)


@dataclass(frozen=True, eq=False)
class Part:
    """Draws of one family.

    Attributes:
        family: what they are made by.
        numbers: (m,) which of all draws these are.
        worths: (m, R) of places.
        noise: (m, z) what they were made from; z = 0 if they were given.
    """

    family: Family
    numbers: Ints
    worths: Floats
    noise: Floats


@dataclass(frozen=True, eq=False)
class Draws:
    """M preferences, each of one family.

    Attributes:
        parts: the draws by family; their numbers are 0 to M - 1.
    """

    parts: tuple[Part, ...]

    def __len__(self) -> int:
        return sum(len(part.numbers) for part in self.parts)

    def values(self, x: Floats) -> Floats:
        """(..., N) -> (..., M): what each plan earns by each preference alone, <w, rho>."""
        found = np.empty((*x.shape[:-1], len(self)))
        for part in self.parts:
            found[..., part.numbers] = part.family.image(x) @ part.worths.T
        return found

    def reward(self, weights: Floats) -> Floats:
        """(M,) weights -> (N,) the weighted sum of the preferences, as a reward of choices."""
        return sum(
            (
                part.family.reward(weights[part.numbers] @ part.worths)
                for part in self.parts
                if weights[part.numbers].any()
            ),
            start=np.zeros(1),
        )

    def moments(self) -> tuple[Floats, Floats]:
        """(N,), (N,): mean and standard deviation of the preferences, as rewards of choices."""
        mean, squares = self.reward(np.full(len(self), 1 / len(self))), 0.0
        for number in range(len(self)):
            squares = squares + (self.rewards([number])[0] - mean) ** 2
        return mean, np.sqrt(squares / len(self))

    def rewards(self, numbers: Sequence[int]) -> Floats:
        """(m, N) some of the preferences as rewards of choices."""
        return np.stack([self.reward(np.eye(1, len(self), number)[0]) for number in numbers])

    def taken(self, numbers: Ints) -> Draws:
        """Some of the draws, in the given order and as often as given."""
        where = np.empty((len(self), 2), np.int64)
        for which, part in enumerate(self.parts):
            where[part.numbers] = np.column_stack([np.full(len(part.numbers), which), np.arange(len(part.numbers))])
        kept = []
        for which, part in enumerate(self.parts):
            own = np.flatnonzero(where[numbers, 0] == which)
            rows = where[numbers[own], 1]
            if len(own):
                kept.append(Part(part.family, own, part.worths[rows], part.noise[rows]))
        return Draws(tuple(kept))

    def where(self, changed: Bools, other: Draws) -> Draws:
        """These draws, with those of `other` in the places where `changed` (M,) is true; both have the same families."""
        parts = []
        for part, new in zip(self.parts, other.parts, strict=True):
            own = changed[part.numbers, None]
            worths, noise = np.where(own, new.worths, part.worths), np.where(own, new.noise, part.noise)
            parts.append(replace(part, worths=worths, noise=noise))
        return Draws(tuple(parts))

    @staticmethod
    def joined(several: Sequence[Draws]) -> Draws:
        """All draws, those of the first before those of the second and so on."""
        parts, before = [], 0
        for draws in several:
            parts += [replace(part, numbers=part.numbers + before) for part in draws.parts]
            before += len(draws)
        return Draws(tuple(parts))
