"""What is to be planned, with everything filled in that depends on the model: the best plan, limits, the tradeoff."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

import numpy as np

from manyways.errors import SettingError
from manyways.methods import Method, VertexAscent
from manyways.model.episodes import goal_ends
from manyways.model.mdp import MDP
from manyways.objectives import MeanDivergence, Objective, Representative
from manyways.polytope import (
    Average,
    Best,
    Criterion,
    Episodic,
    Limits,
    Polytope,
    Vertex,
    feasible_plan,
    floors_of,
    settle_limits,
)
from manyways.polytope.limits import DEFAULT_SLACK, is_meaningful


@dataclass(frozen=True, eq=False)
class Task:
    """What to plan, with all settings that depend on the model filled in.

    Attributes:
        polytope: the feasible set of each plan, floors included, on the model whose reward is maximised.
        aim, criterion, limits: the settings.
        best: the highest value of any plan.
    """

    polytope: Polytope
    aim: Objective
    criterion: Criterion
    limits: Limits
    best: float


def default_aim(method: Method) -> type[Objective]:
    """What is maximised if nothing else is asked for: what preferences gain that nobody wrote down. The paper's methods
    maximise the paper's objective."""
    return Representative if isinstance(method, VertexAscent) else MeanDivergence


def asked_limits(
    slack: float | None, floor: float | None, longer: float | None, randomised: bool, method: Method | None = None
) -> Limits:
    """The limits that were asked for, if they fit together and the method can keep them."""
    if slack is not None and floor is not None:
        raise SettingError(
            "give the least value of a plan in one way: ",
            in_python="either slack, a share of the best value, or floor, the value itself",
            on_command_line="either --slack, a share of the best value, or --floor, the value itself",
        )
    limits = Limits(slack=slack, floor=floor, longer=longer, randomised=randomised)
    if limits.any and method is not None and not method.respects_floors:
        raise SettingError(
            f"{method!r} cannot keep plans within limits; ",
            in_python="use a method that can, such as VertexAscent()",
            on_command_line="use --method vertex-ascent",
        )
    return limits


def settled_task(polytope: Polytope, aim: Objective, asked: Limits, method: Method | None = None) -> Task:
    """Find the best plan, and fill in what depends on it."""
    mdp, explicit = polytope.mdp, getattr(aim, "tradeoff", None)
    criterion, best = polytope.criterion.settled(polytope)
    if not asked.any and explicit is None and (method is None or method.respects_floors):
        asked = _default_limits(asked, mdp, criterion, best)
    if explicit == inf and not asked.any:
        raise SettingError(
            "a tradeoff of infinity means nothing but diversity, so plans need a limit; ",
            in_python="give slack=0.1 as well",
            on_command_line="give --slack 10% as well",
        )
    limits, seeds = settle_limits(asked, polytope, criterion, best)
    planned = polytope.with_reward_of(criterion.planned(mdp, best.value))
    planned.criterion = criterion
    own, floors = criterion.own_floors(mdp), floors_of(limits, criterion, mdp, best.value)
    if own and method is not None and not method.respects_floors:
        raise SettingError(
            f"{method!r} cannot limit the length of episodes, which a value per episode needs; ",
            in_python="use criterion=Average(), or a method that can, such as VertexAscent()",
            on_command_line="use --per step or --method vertex-ascent",
        )
    ceiling = planned.optimum
    if own:
        feasible = feasible_plan(planned, own, [best.vertex, ceiling])
        ceiling = planned.within(own, feasible, randomised=True).optimum
    scale = _worth_of_diversity(mdp, best, criterion) * criterion.planned_per_reward
    if floors:
        feasible = feasible_plan(planned, floors, [*seeds, ceiling])
        planned = planned.within(floors, feasible, randomised=limits.randomised, ceiling=ceiling)
    return Task(planned, aim.settled(scale), criterion, limits, best.value)


def _default_limits(asked: Limits, mdp: MDP, criterion: Criterion, best: Best) -> Limits:
    """Within 10 % of the best value; where a share of it means nothing, of the shortest way or of the rewards' spread."""
    if is_meaningful(mdp, best):
        return replace(asked, slack=DEFAULT_SLACK)
    if criterion.discount == 1 and goal_ends(mdp) is not None:
        return replace(asked, longer=DEFAULT_SLACK)
    less = mdp.with_reward(mdp.reward - DEFAULT_SLACK * _spread(mdp, best.vertex))
    return replace(asked, floor=min(best.value, float(criterion.values(less, best.vertex.occupancy[None])[0])))


def _spread(mdp: MDP, vertex: Vertex) -> float:
    """The mean distance of the rewards along a plan from their mean: unlike the mean, it does not depend on which reward
    counts as zero, and unlike the largest reward not on penalties that no good plan pays."""
    x = vertex.occupancy
    return float(x @ np.abs(mdp.reward - float(x @ mdp.reward)))


def _worth_of_diversity(mdp: MDP, best: Best, criterion: Criterion) -> float:
    """The tradeoff to use if none is given, measured with preferences that nobody modelled (docs/limits.md)."""
    mean, spread = abs(float(best.vertex.occupancy @ mdp.reward)), _spread(mdp, best.vertex)
    if criterion.zero_matters:  # then what all steps cost alike is also what longer ways cost
        spread = max(spread, mean)
    return (spread or mean or _typical(mdp)) / 8


def _typical(mdp: MDP) -> float:
    """The median of the rewards other than zero, without signs; 8 if there are none."""
    other = np.abs(mdp.reward[mdp.reward != 0])
    return float(np.median(other)) if len(other) else 8.0


def default_criterion(mdp: MDP) -> Criterion:
    """Per episode where the model says how episodes end, otherwise per step."""
    return Episodic() if mdp.ends else Average()
