"""Values per episode: the expected return of an episode, r.x / e.x with e the chance that a step ends an episode.

*The best value* v comes from a few plain solves (Dinkelbach, Management Science 13, 1967): a plan better than v exists
exactly if the largest (r - v e).x is positive, and the plan that has it gives the next v.

*The longest episode.* At the best v a plan that never ends an episode also has (r - v e).x = 0, so without a bound on the
mean length 1 / e.x of an episode the value is not well defined. The bound, `longest`, is itself a floor, e.x >= 1 / longest.

*Linear.* Methods maximise a linear reward, scaled so that the best plan of about half the longest length has its value:

    r~ = v + (r - v e) longest / 2

A plan's value is at least f exactly if r~.x + (v - f) e.x longest / 2 >= v, a floor on the same polytope.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from manyways.errors import SettingError, SolverError, check_number
from manyways.model.episodes import episode_ends
from manyways.model.mdp import MDP
from manyways.model.occupancy import deterministic
from manyways.polytope.criterion import CRITERIA, Average, Best, Criterion, Solves
from manyways.polytope.floors import Floor, Slices
from manyways.polytope.vertex import Answer
from manyways.types import Floats

ENDS = 1e-9
"""A plan that ends fewer episodes per step than this practically never ends one."""
MOST_ROUNDS = 100
RISE = 1e-12
FACTORISED = 50_000
"""In larger models the factors of a chain would fill the memory."""


@CRITERIA.add
@dataclass(frozen=True)
class Episodic(Criterion):
    """The expected return of an episode. Needs a model with episodes that restart.

    Attributes:
        longest: the longest mean length of an episode that a plan may have, in steps. By default twice that of the best
            plan, and at most the time limit of the environment that the model was read from.
    """

    longest: float | None = None

    def __post_init__(self) -> None:
        if self.longest is not None and not check_number("the longest mean length of an episode", self.longest) >= 1:
            raise SettingError(f"an episode has at least 1 step, found longest={self.longest}")

    @property
    def unit(self) -> str:
        return "per episode"

    @property
    def zero_matters(self) -> bool:
        return True  # episodes that last longer get it more often

    def occupancy(self, mdp: MDP, policy: Floats) -> Floats:
        return Average().occupancy(mdp, policy)

    def values(self, mdp: MDP, x: Floats) -> Floats:
        earned, ended = x @ mdp.reward, x @ _ends(mdp)
        return np.divide(earned, ended, where=ended > 0, out=np.full_like(earned, -np.inf))

    def settled(self, polytope: Solves) -> tuple[Episodic, Best]:
        mdp = polytope.mdp
        ends = _ends(mdp)
        shortest = polytope.best(ends)
        if shortest.value <= ENDS:
            raise SettingError(
                f"no plan of {mdp.name} ever ends an episode, so there is no value per episode; ",
                in_python="use criterion=Average()",
                on_command_line="use --per step",
            )
        if self.longest is not None and self.longest * shortest.value < 1 - RISE:
            raise SettingError(
                f"no plan of {mdp.name} has episodes of at most {self.longest:g} steps on average; the shortest possible "
                f"mean length is {1 / shortest.value:.4g}"
            )
        limit = self.longest
        if limit is None and mdp.time_limit is not None and mdp.time_limit * shortest.value >= 1:
            limit = mdp.time_limit  # if no plan ends in time, the limit says nothing
        limited = polytope
        if limit is not None:
            limited = polytope.within([_length_floor(ends, limit)], shortest, randomised=True)
        best = self._sharpened(mdp, best_ratio(limited, mdp.reward, ends, shortest))
        longest = self.longest
        if longest is None:
            twice = 2 / float(ends @ best.vertex.occupancy)
            longest = twice if limit is None else min(twice, limit)
        return replace(self, longest=float(longest)), best

    def _sharpened(self, mdp: MDP, best: Best) -> Best:
        """The best plan with its value to the last digits. An oracle leaves an error that is tiny against the time of a
        step, but a plan may have very long episodes, and the proof of the optimum counts the error in each of their steps."""
        if best.vertex.choices is None or mdp.n_states > FACTORISED:
            return best
        try:
            x = self.occupancy(mdp, deterministic(mdp, best.vertex.choices))
        except SolverError:
            return best
        value = float(self.values(mdp, x[None])[0])
        return replace(best, value=value) if np.isfinite(value) else best

    @property
    def planned_per_reward(self) -> float:
        return self._half

    def planned(self, mdp: MDP, best: float) -> MDP:
        return mdp.with_reward(best + (mdp.reward - best * _ends(mdp)) * self._half)

    def values_of(self, rewards: Floats, x: Floats, mdp: MDP, best: float) -> Floats:
        ended = np.maximum(x @ _ends(mdp), 1e-300)
        return best + (rewards - best) / (self._half * ended)

    def earned(self, mdp: MDP, x: Floats, best: float) -> Floats:
        ends = _ends(mdp)
        reward = (mdp.reward - best) / self._half + best * ends  # the model's own
        return (x @ np.abs(reward)) / np.maximum(x @ ends, 1e-300)

    def sensitivity(self, mdp: MDP, x: Floats) -> Floats:
        return 1 / np.maximum(x @ _ends(mdp), 1e-300)

    def value_bound(self, bound: float, best: float) -> float:
        return best + 2 * (bound - best)  # because at least one step of `longest` ends an episode

    def value_floor(self, mdp: MDP, best: float, level: float) -> Floor:
        return Floor("value", best, per_reward=1.0, extra=(best - level) * self._half * _ends(mdp))

    def own_floors(self, mdp: MDP) -> tuple[Floor, ...]:
        return (_length_floor(_ends(mdp), 2 * self._half),)

    def describe(self) -> str:
        return "the mean return of an episode"

    @property
    def _half(self) -> float:
        if self.longest is None:
            raise SettingError("the longest mean length of an episode is not known before planning")
        return self.longest / 2


def _ends(mdp: MDP) -> Floats:
    ends = episode_ends(mdp)
    if ends is None:
        raise SettingError(
            f"{mdp.name} has no episodes: no step of it restarts at the start; ",
            in_python="use criterion=Average(), or mdp.restarting_at(states)",
            on_command_line="use --per step, or --restart LABEL",
        )
    return ends


def _length_floor(ends: Floats, longest: float) -> Floor:
    return Floor("length of episodes", 1 / longest, extra=ends)


def best_ratio(polytope: Slices, reward: Floats, ends: Floats, shortest: Answer) -> Best:
    """The highest reward.x / ends.x, for (N,) rewards and chances that a step ends an episode, and a plan that has it.

    The search starts at the plan that ends the most episodes.
    """
    plan, value = shortest, float(reward @ shortest.occupancy) / shortest.value
    for _ in range(MOST_ROUNDS):
        found = polytope.best(reward - value * ends, plan)
        ended = float(ends @ found.occupancy)
        if ended <= ENDS:
            if found.value > 1e-9 * float(np.abs(reward) @ found.occupancy):
                raise SettingError(
                    f"the longer an episode of {polytope.mdp.name} lasts, the more it earns, so the best value per "
                    "episode is infinite; ",
                    in_python="bound the mean length: criterion=Episodic(longest=100)",
                    on_command_line="bound the mean length: --per episode --longest 100",
                )
            return Best(value, plan)
        new = float(reward @ found.occupancy) / ended
        if new <= value + RISE * (abs(value) + float(np.abs(reward) @ found.occupancy) / ended):
            return Best(value, plan)
        plan, value = found, new
    return Best(value, plan)
