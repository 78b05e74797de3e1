"""Limits: how much worse than the best plan every plan of a set may be.

They are given in the words of a user, a share of the best value or of the shortest way, and settled to numbers once the
best plan is known. A plan set stores both.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from manyways.errors import SettingError, check_number
from manyways.model.episodes import goal_ends, restart_steps
from manyways.model.mdp import MDP
from manyways.polytope.criterion import Best, Criterion, Solves
from manyways.polytope.episodic import best_ratio
from manyways.polytope.floors import Floor
from manyways.polytope.vertex import Vertex
from manyways.types import Floats

DEFAULT_SLACK = 0.1
MEANINGFUL = 0.05
"""A best value smaller than this share of the rewards, by size, of which it is the sum is a difference of large numbers."""


@dataclass(frozen=True)
class Limits:
    """How much worse than the best plan every plan may be.

    Attributes:
        slack: at most this share of the best value (of its size) below it.
        floor: the least value that every plan has. Settled from `slack` where that was given.
        longer: the mean way to the goal is at most this share longer than the shortest one.
        way: the longest mean way to the goal, in steps. Settled from `longer`.
        randomised: whether plans may randomise where that is better within the limits.
    """

    slack: float | None = None
    floor: float | None = None
    longer: float | None = None
    way: float | None = None
    randomised: bool = False

    def __post_init__(self) -> None:
        for name in ("slack", "longer", "way"):
            given = getattr(self, name)
            if given is not None:
                object.__setattr__(self, name, check_number(name, given, 0))
        if self.floor is not None:
            object.__setattr__(self, "floor", check_number("floor", self.floor))

    @property
    def any(self) -> bool:
        """Whether plans are limited at all."""
        return not (self.slack is None and self.floor is None and self.longer is None)


def settle_limits(limits: Limits, polytope: Solves, criterion: Criterion, best: Best) -> tuple[Limits, list[Vertex]]:
    """The limits as numbers, and plans of which one probably meets them: the best one, and the one with the shortest way.

    Raises:
        SettingError: if the limits mean nothing on this model, or no plan meets them.
    """
    mdp, seeds = polytope.mdp, [best.vertex]
    if limits.slack is not None:
        if not is_meaningful(mdp, best):
            raise SettingError(
                f"the best value of {mdp.name}, {best.value:.4g} {criterion.unit}, is tiny against the rewards of which it "
                "is the sum, so a share of it means nothing; ",
                in_python="give the least value itself with floor=, or a longest way to the goal with longer=",
                on_command_line="give the least value itself with --floor, or a longest way to the goal with --longer; if plans stay "
                "at an end for nothing, plan for the way there with --restart LABEL",
            )
        limits = replace(limits, floor=best.value - limits.slack * abs(best.value))
    elif limits.floor is not None and limits.floor > best.value + 1e-9 * abs(best.value):
        raise SettingError(
            f"no plan of {mdp.name} has a value of {limits.floor:g}; the best one has {best.value:.6g} {criterion.unit}"
        )
    if limits.longer is not None:
        if criterion.discount < 1:
            raise SettingError(
                "longer limits the mean number of steps to the goal, which is not known where later steps count less; ",
                in_python="give slack= or floor=, or use criterion=Average()",
                on_command_line="give --slack or --floor, or leave --discount out",
            )
        ends, steps = _way(mdp)
        most = polytope.best(ends)
        if most.value <= 1e-9:
            raise SettingError(f"no plan of {mdp.name} reaches the goal, so there is no longest way to it")
        shortest = best_ratio(polytope, -steps, ends, most)
        limits = replace(limits, way=(1 + limits.longer) * -shortest.value)
        seeds.append(shortest.vertex)
    return limits, seeds


def is_meaningful(mdp: MDP, best: Best) -> bool:
    """Whether a share of the best value means something: it is not tiny against the rewards of which it is the sum."""
    x = best.vertex.occupancy
    return abs(float(x @ mdp.reward)) > MEANINGFUL * float(x @ np.abs(mdp.reward))


def floors_of(limits: Limits, criterion: Criterion, mdp: MDP, best: float) -> tuple[Floor, ...]:
    """The floors by which plans keep within settled limits, on the model of `criterion.planned`."""
    floors = list(criterion.own_floors(mdp))
    if limits.floor is not None:
        floors.append(criterion.value_floor(mdp, best, limits.floor))
    if limits.way is not None:
        ends, steps = _way(mdp)
        floors.append(Floor("way to the goal", 0.0, extra=ends - steps / max(limits.way, 1e-9)))
    return tuple(floors)


def way_lengths(mdp: MDP, occupancies: Floats) -> Floats:
    """(k, N) -> (k,) the mean number of steps to the goal; infinite for a plan that never gets there."""
    ends, steps = _way(mdp)
    with np.errstate(divide="ignore"):
        return (occupancies @ steps) / (occupancies @ ends)


@dataclass(frozen=True, eq=False)
class ShortestWay:
    """The claim that no way to the goal is shorter than `longer` and `way` of some limits say.

    Attributes:
        costs: (N,) every plan has at most zero of them exactly if that is true. Rounded upwards, so that what they prove
            holds for the limits as they are.
        ends: (N,) the chance that a step ends an episode at the goal.
        length: of the shortest way, in steps.
    """

    costs: Floats
    ends: Floats
    length: float


def shortest_way(limits: Limits, mdp: MDP) -> ShortestWay | None:
    """What limits claim about the shortest way; None if they are not about ways."""
    if limits.longer is None or limits.way is None:
        return None
    ends, steps = _way(mdp)
    length = limits.way / (1 + limits.longer)
    return ShortestWay(length * (1 + 1e-15) * ends - steps, ends, length)


def _way(mdp: MDP) -> tuple[Floats, Floats]:
    """(N,) the chance that a step ends an episode at the goal, and 1 for steps that are part of the way there."""
    ends = goal_ends(mdp)
    if ends is None:
        raise SettingError(
            f"{mdp.name} has no goal that leads back to the start, so there is no way to it that could be longer; ",
            in_python="give slack= or floor=, or restart the model at its goal with mdp.restarting_at(states, 'goal')",
            on_command_line="give --slack or --floor, or restart the model at its goal with --restart LABEL",
        )
    return ends, np.where(restart_steps(mdp, ends), 0.0, 1.0)
