"""`Representative` on several machines: the draws of `preferences.mixture`, with worths that every process knows.

A draw has at most `MOST_PLACES` worths, so all processes draw all of them, from the same seed: they are those of one machine,
whatever the number of processes. What a plan is worth to a person is a sum over all processes, and what a choice is worth to a
person is computed by the process that has it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from manyways.behaviours import LinearMap
from manyways.distributed.part import ModelPart
from manyways.distributed.walk import SharedWalk, walk_on
from manyways.errors import SettingError
from manyways.model.mdp import MDP
from manyways.objectives import Representative
from manyways.objectives.representative import RepresentativeOnModel
from manyways.preferences import Preferences
from manyways.preferences.draws import Family
from manyways.preferences.mixture import (
    MOST_DESCRIBED,
    drawn_places,
    parted_into_zones,
    probes,
    scaled,
    smooth_radii,
    zones_of,
)
from manyways.types import Floats, Ints
from manyways.vectors import over_all, plain


@dataclass(frozen=True, eq=False)
class _SharedFamily(Family):
    """Preferences whose worths are whole in all processes; `places` (R,) are numbers of places of the whole model.

    Attributes:
        mine: which of the worths are of places of this process.
        here: the numbers that these places have in this process.
        own: how many places this process has.
        count: R.
    """

    mine: Any = ()
    here: Any = ()
    own: int = 0
    count: int = 0

    def image(self, x: Any) -> Floats:
        """(..., n) -> (..., R), of all processes."""
        found = np.zeros((*x.shape[:-1], self.count))
        found[..., self.mine] = plain(self.map.forward(x))[..., self.here]
        return over_all(x, found)

    def reward(self, worths: Floats) -> Floats:
        """(..., R) -> (..., n)."""
        full = np.zeros((*worths.shape[:-1], self.own))
        full[..., self.here] = worths[..., self.mine]
        return self.map.backward(full)


def _family(name: str, walk: SharedWalk, places: Ints, noise: int, worths: Callable[[Floats], Floats]) -> Family:
    lo = walk.places_of.lo
    mine = np.flatnonzero((places >= lo) & (places < lo + walk.places_of.own))
    return _SharedFamily(name, walk, places, noise, worths, mine, places[mine] - lo, walk.places_of.own, len(places))


def preferences_of(aim: Representative, part: ModelPart) -> Representative:
    """The objective with preferences that can be drawn on several machines.

    In models of up to 100,000 states, `Preferences` are by default about labels, regions and actions as well; here they are
    about places only, whatever the size.
    """
    prior = aim.preferences
    if not isinstance(prior, Preferences) or prior.over:
        raise SettingError(
            f"on several machines, Representative is for preferences about places and zones, not for {prior!r:.100}; ",
            in_python="use Representative(Preferences(over=()))",
            on_command_line="plan without --engine",
        )
    small = part.n_states <= MOST_DESCRIBED
    return replace(aim, preferences=replace(prior, over=())) if small and prior.over is None else aim


def representative_on(aim: Representative, part: ModelPart, compared: LinearMap) -> RepresentativeOnModel:
    """The objective on the part of a model that this process has."""
    prior, unit = cast(Preferences, aim.preferences), 1.0 if aim.unit is None else aim.unit
    drawing = part.drawing()
    shape, metres = (None, None) if drawing is None else (drawing.shape, drawing.metres_per_cell)
    found = [(walk, _smooth(walk, part)) for walk in (walk_on(part, r) for r in smooth_radii(shape, metres))]
    walks, smooth = [walk for walk, one in found if one is not None], [one for _, one in found if one is not None]
    zones = [_zones(walk) for walk in parted_into_zones(walks)] if prior.zones else []
    mixture = prior.mixed(smooth if prior.smooth else [], zones, (), unit, part.name)
    draws = mixture.draw(aim.draws, np.random.default_rng(aim.seed))
    return RepresentativeOnModel(cast(MDP, part), compared, draws, unit)


def _smooth(walk: SharedWalk, part: ModelPart) -> Family | None:
    """White noise over neighbourhoods; None if they are so large that nothing of it is left."""
    drawn = drawn_places(walk.places)
    places = np.arange(walk.places) if drawn is None else drawn
    family = _family("places", walk, places, len(places), np.asarray)
    return scaled(family, float(np.mean([_deviation(family.reward(row), part) for row in probes(len(places))])))


def _deviation(reward: Floats, part: ModelPart) -> float:
    """The standard deviation of (n,) over the choices of all processes."""
    mean = float(reward.sum()) / part.n_choices
    return float(np.sqrt(((reward - mean) ** 2).sum() / part.n_choices))


def _zones(walk: SharedWalk) -> Family:
    """Zones of few places: all processes have the whole walk from place to place."""
    whole = zones_of(walk.whole())
    return _family("zones", replace(walk, steps=0), np.arange(walk.places), whole.noise, whole.worths)
