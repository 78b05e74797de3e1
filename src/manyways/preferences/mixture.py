"""The default prior: preferences for places, zones, labels, regions and actions.

Each draw is of one family:

- *smooth*: worths that change slowly from place to place, at three scales: white noise over the places of `Near`, so a
  random walk carries it round walls and never through them. On maps the radii are 1/16, 1/8 and 1/4 of the longer side,
  in other models 1, 2 and 4 moves. Where no move can be made both ways, each state has a worth of its own.
- *zones*: a part of the model, of any size, is disliked: the places in which a smooth field is above a level.
- *worths* of labels, regions and actions, where the model has them: independent normal numbers.

*Strength.* Draws of all families have a standard deviation, over the choices of the model, of about `strength` times a
typical reward per step of the best plan. Each draw has its own strength, uniform on a logarithmic scale between the two
that are given: a person may care little or much.

*Opposites.* Draws come in pairs of opposites (for zones, complements), so that they are zero on average.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from scipy.special import ndtr

from manyways.behaviours import BEHAVIOURS, Actions, Behaviour, Labels, LinearMap, Near, Regions, States
from manyways.behaviours.linear_map import Grouping, Walking
from manyways.errors import SettingError, check_number
from manyways.model.mdp import MDP
from manyways.preferences.base import PREFERENCES, PreferencePrior, Prior
from manyways.preferences.closures import PossibleClosures
from manyways.preferences.draws import MOST_PLACES, Draws, Family, Part
from manyways.types import Floats, Ints

Map = TypeVar("Map", bound=LinearMap)

SMOOTH, ZONES, OVER = 0.7, 0.15, 0.15
"""The shares of draws of each kind, where a model has all of them."""
RADII = (1 / 16, 1 / 8, 1 / 4)
MOVES = (1.0, 2.0, 4.0)
MOST_ZONE_PLACES = 4096
MOST_DESCRIBED = 100_000
"""In models with more states, labels and regions take longer to find than a plan."""
SMALLEST_ZONE = 0.05
LEAST_LEFT = 1e-3
"""A walk so long that it leaves less than this of white noise makes all states alike."""
GOLDEN = (5**0.5 - 1) / 2


@PREFERENCES.add
@dataclass(frozen=True)
class Preferences(PreferencePrior):
    """What a person may prefer, though nobody wrote it down.

    Attributes:
        smooth: whether some places may be worth more than others, alike in neighbouring states.
        zones: whether a part of the model may be disliked.
        over: behaviours whose places may have worths of their own, such as `Labels(["door"])` or `Actions()`; by default
            labels, regions and actions, where the model has them.
        strength: how strong preferences are against a typical reward per step: one number, or the least and the most.
    """

    smooth: bool = True
    zones: bool = True
    over: Sequence[Behaviour] | None = None
    strength: float | tuple[float, float] = (0.1, 1.0)

    def __post_init__(self) -> None:
        if self.over is not None:
            object.__setattr__(self, "over", tuple(BEHAVIOURS.check(one) for one in self.over))
        given = self.strength if isinstance(self.strength, (tuple, list)) else (self.strength, self.strength)
        if len(given) != 2:
            raise SettingError(f"the strength must be one number, or the least and the most, found {self.strength!r}")
        least, most = (check_number("the strength", value, 0) for value in given)
        if not 0 < least <= most:
            raise SettingError(f"strengths must be positive, the least before the most, found {self.strength!r}")
        object.__setattr__(self, "strength", (least, most))
        if not (self.smooth or self.zones or self.over):
            raise SettingError("preferences must be about something: smooth, zones, or worths over behaviours")

    @staticmethod
    def closures(**settings: Any) -> PossibleClosures:
        """The prior by which something is closed and nobody knows what; for the settings see `PossibleClosures`."""
        return PossibleClosures(**settings)

    def sample(self, mdp: MDP, count: int, rng: np.random.Generator) -> Floats:
        return self.on(mdp, 1.0).draw(count, rng).rewards(range(count))

    def on(self, mdp: MDP, unit: float) -> Prior:
        smooth = _neighbourhoods(mdp) if self.smooth or self.zones else []
        zones = [zones_of(near) for near in parted_into_zones([family.map for family in smooth])] if self.zones else []
        over = [_worths(word, one.on(mdp)) for word, one in _over(self.over, mdp)]
        return self.mixed(smooth if self.smooth else [], zones, over, unit, mdp.name)

    def mixed(
        self, smooth: Sequence[Family], zones: Sequence[Family], over: Sequence[Family], unit: float, name: str
    ) -> Mixture:
        """The prior on the model of a name, from families of each kind."""
        kinds = (SMOOTH, smooth), (ZONES, zones), (OVER, over)
        families = [(share / len(kind), family) for share, kind in kinds for family in kind]
        if not families:
            raise SettingError(f"{name} has nothing that these preferences are about: {self!r}")
        return Mixture(families, unit * np.array(self.strength))

    def describe(self) -> str:
        parts = [word for word, there in (("places", self.smooth), ("zones", self.zones)) if there]
        parts += ["labels, regions and actions"] if self.over is None else [one.describe() for one in self.over]
        return f"random preferences over {', '.join(parts)}"


class Mixture(Prior):
    """Draws of several families in turn, each with a strength of its own."""

    def __init__(self, families: Sequence[tuple[float, Family]], strengths: Floats) -> None:
        self._families, self._logs = [family for _, family in families], np.log(strengths)
        shares = np.cumsum([share for share, _ in families])
        self._ends = shares[:-1] / shares[-1]

    def draw(self, count: int, rng: np.random.Generator) -> Draws:
        pairs = (count + 1) // 2
        # A sequence that fills the unit interval evenly: all families are among the first draws, too.
        turn = np.searchsorted(self._ends, np.arange(pairs) * GOLDEN % 1, side="right")
        parts = []
        for which, family in enumerate(self._families):
            own = np.flatnonzero(turn == which)
            if not len(own):
                continue
            noise = rng.standard_normal((len(own), family.noise + 1))
            opposite = -noise
            opposite[:, -1] = noise[:, -1]  # of the same strength
            numbers = np.column_stack([2 * own, 2 * own + 1]).ravel()
            both = np.stack([noise, opposite], axis=1).reshape(len(numbers), -1)
            inside = numbers < count
            parts.append(self._part(family, numbers[inside], both[inside]))
        return Draws(tuple(parts))

    def moved(self, draws: Draws, step: float, rng: np.random.Generator) -> Draws:
        stay = np.sqrt(1 - step**2)
        parts = []
        for part in draws.parts:
            noise = stay * part.noise + step * rng.standard_normal(part.noise.shape)
            parts.append(self._part(part.family, part.numbers, noise))
        return Draws(tuple(parts))

    def _part(self, family: Family, numbers: np.ndarray, noise: Floats) -> Part:
        least, most = self._logs
        strength = np.exp(least + (most - least) * ndtr(noise[:, -1:]))
        return Part(family, numbers, strength * family.worths(noise[:, :-1]), noise)


def smooth_radii(shape: tuple[int, int] | None, metres_per_cell: float | None) -> tuple[float, ...]:
    """The radii of smooth worths, for the rows and columns of a map or None."""
    if shape is None:
        return MOVES
    return tuple(share * max(shape) * (metres_per_cell or 1.0) for share in RADII)


def parted_into_zones(maps: Sequence[Map]) -> Sequence[Map]:
    """Of maps from small to large radii, the one of medium radius among those with few enough places, if there is any."""
    small = [near for near in maps if near.places <= MOST_ZONE_PLACES]
    return small[len(small) // 2 :][:1]


def drawn_places(count: int) -> Ints | None:
    """(R,) the places that have worths, where there are more than `MOST_PLACES`; otherwise None, for all of them."""
    if count <= MOST_PLACES:
        return None
    return np.sort(np.random.default_rng(0).choice(count, MOST_PLACES, replace=False))


def _neighbourhoods(mdp: MDP) -> list[Family]:
    """Smooth worths at three scales; of each state by itself where no two states are near each other, or all are."""
    grid = mdp.layout
    radii = smooth_radii(None if grid is None else grid.shape, None if grid is None else grid.metres_per_cell)
    try:
        found = [_smooth(Near(radius).on(mdp)) for radius in radii]
    except SettingError:  # no move can be made both ways
        found = []
    return [family for family in found if family is not None] or [
        Family("places", States().on(mdp), None, mdp.n_states)
    ]


def _smooth(near: LinearMap) -> Family | None:
    """White noise over neighbourhoods; None if they are so large that nothing of it is left."""
    places = drawn_places(near.places)
    count = near.places if places is None else MOST_PLACES
    family = Family("places", near, places, count)
    return scaled(family, float(family.reward(probes(count)).std(axis=1).mean()))


def probes(count: int) -> Floats:
    """(16, R) white noise by which it is measured how much of it a walk leaves."""
    return np.random.default_rng(1).standard_normal((16, count))


def scaled(family: Family, left: float) -> Family | None:
    """The family with worths that leave a standard deviation of 1, if the walk leaves so much of white noise; None if nothing
    of it is left."""
    return replace(family, worths=lambda noise: noise / left) if left > LEAST_LEFT else None


def zones_of(near: LinearMap) -> Family:
    """Worth -1 in the places where a smooth field is high, so many of them as one more number says, and 1 elsewhere."""
    count = near.places

    def worths(noise: Floats) -> Floats:
        field = near.mean_nearby(noise[:, :-1].T).T if isinstance(near, Walking) else noise[:, :-1]
        share = SMALLEST_ZONE + (1 - 2 * SMALLEST_ZONE) * ndtr(noise[:, -1])
        rank = field.argsort(axis=1).argsort(axis=1) + 0.5
        return np.where(rank > (1 - share[:, None]) * count, -1.0, 1.0)

    blocks = Grouping(near.place) if isinstance(near, Walking) else near
    return Family("zones", blocks, None, count + 1, worths)


def _worths(word: str, compared: LinearMap) -> Family:
    return Family(word, compared, None, compared.places, lambda noise: noise)


def _over(given: Sequence[Behaviour] | None, mdp: MDP) -> list[tuple[str, Behaviour]]:
    """The behaviours whose places have worths, and a word for each."""
    if given is not None:
        return [(one.describe(), one) for one in given]
    found = []
    if mdp.n_states > MOST_DESCRIBED:
        return found
    for word, one in (("labels", Labels()), ("regions", Regions()), ("actions", Actions())):
        try:
            places = one.on(mdp).places
        except SettingError:
            continue
        if 2 <= places <= MOST_PLACES:
            found.append((word, one))
    return found
