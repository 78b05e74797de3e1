"""The default method: from vertex to vertex, one plan at a time, then action by action.

The objective is convex and maximised, so there are best plans among the vertices, that is among the deterministic
policies. Each step takes one plan to the vertex that the oracle finds best for it while the others stay, and keeps it
only if the objective rises. What makes this work are the costs that the oracle is given:

*Secant costs.* The gradient is infinite at zero, and only judges an infinitely small change. A secant cost is what a
choice is worth if all the time spent in its state were spent on it, which is exact for an exchange of actions that
leaves the states' shares as they are (`objectives.divergence.secant_worths`). Other objectives give costs of their own.

*Annealing.* States that a plan does not visit yet are judged as if it spent some time there. That time, the heat, starts
at about the typical time that the optimal plan spends on a step, or more, and shrinks in stages: first the plans spread out
over different routes, then they settle.

*Starts.* In the first round the plans that do not exist yet are represented by random policies. A hot first round makes
them forget these, so starts with the same heats end alike; starts with different heats do not. Some starts go through
their stages thoroughly, each until no plan can be improved. The others take one round in each stage, and only the best of
them settle. Objectives that know costs whose best plans are good candidates (`SetObjective.pool`) start from the best set
of these plans instead, and further starts from random sets of them; there is nothing to anneal.

*Exchanges.* At the end, where it pays (`VertexAscent.exchanges`) and for objectives that allow it, every exchange of one
action in one plan is tried with the exact objective, until none helps (`methods.exchange`).

*Recombination.* For other objectives, and in small models with limits, the best set among all plans that any start has
met is chosen at the end (`methods.recombination`).

docs/default-method.md has the measurements behind each of these. One start is a `methods.climb.Climb`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from numbers import Real
from queue import SimpleQueue
from typing import ClassVar, TypeVar

import numpy as np

from manyways.errors import SettingError, check_integer
from manyways.kernels.threads import cores, side_by_side
from manyways.methods.ascent import Ascent, Status, Watch
from manyways.methods.base import METHODS, Method
from manyways.methods.climb import Climb, Log
from manyways.methods.cluster_crew import ClusterCrew, cluster_crew
from manyways.methods.exchange import exchangeable
from manyways.methods.recombination import SMALL
from manyways.objectives import SetObjective
from manyways.polytope import Polytope, Vertex
from manyways.types import Floats

SETTLING = 1e-3
"""The last stage, in which nothing new is tried. Heats are in units of the optimal plan's typical time per step."""
SURE = (
    (1.0, 0.35, SETTLING),
    (10.0, 1.0, 0.1),
    (2.0, 0.7, 0.2, 0.05),
    (3.0, 1.0, 0.3),
    (20.0, 2.0, 0.2),
    (5.0, 0.5, 0.05),
)
"""The stages of the starts, in turn, in models with less than `QUICK_BELOW` states. A start that ends with `SETTLING` is gone
through thoroughly."""
HEATS = ((10.0, 1.0, 0.1), (1.0, 0.35), (3.0, 1.0, 0.3), (20.0, 2.0, 0.2), (2.0, 0.7, 0.2, 0.05))
"""Those in larger models."""
COLDER_HEATS = HEATS[0], HEATS[1], HEATS[4]
"""Within limits, where each step takes several solves, and in models with less than `EXCHANGED_BELOW` states, which have many
starts: there, hot starts reach less."""
COLD_HEATS = HEATS[1:2]
"""Of the single start in large models."""
STARTS, QUICK_STARTS, QUICK_BELOW = 3, 4, 2000
"""At least so many starts, and so many without limits in models with less than `QUICK_BELOW` states."""
SETTLING_SHARE, QUICKLY_SETTLING = 3, 2
"""One start of so many settles; in models with less than `QUICK_BELOW` states at least two."""
EXCHANGED_BELOW, PARTLY_EXCHANGED_BELOW, MOST_EXCHANGED, BUSY = 150, 1000, 10, 0.01
"""In models with less than `EXCHANGED_BELOW` states all exchanges are tried, in those with less than `PARTLY_EXCHANGED_BELOW`
those in states in which a plan spends at least `BUSY` of its typical time per step, for sets of up to `MOST_EXCHANGED` plans:
the others gain next to nothing."""
THREADS_FROM = 2000
"""Below so many states times plans, compiled code takes too little of the time for threads to pay."""
LARGE = 20_000
"""From this many states on, one start has to suffice."""

_Job = TypeVar("_Job")
_Result = TypeVar("_Result")


@METHODS.add
@dataclass(frozen=True)
class VertexAscent(Method):
    """The default: annealed vertex steps from several starts, then exchanges of single actions.

    Attributes:
        starts: how many starts; by default as many as cost little: 3 or 4, more in models with less than 150 states, and 1
            in models with 20,000 states or more.
        stages: time assumed in unvisited states, in units of the optimal plan's typical time per step. By default the
            starts take turns with different schedules, and the best of them settle. If stages are given, every start goes
            through them, each stage until nothing improves.
        exchanges: whether to end with the search over single actions (up to 2,500 states). By default where it gains most
            for its time: if plans are compared by something coarser than choices, in models with less than 150 states, and
            if stages are given; in models with less than 1,000 states and up to 10 plans without limits, in the states that a
            plan visits often.
        workers: threads that share the starts, by default one for each core; the result does not depend on it.
    """

    keeps_plans: ClassVar[bool] = True
    respects_floors: ClassVar[bool] = True
    parts_copies: ClassVar[bool] = True
    """Whether plans that equal others are replaced at the end."""

    starts: int | None = None
    stages: tuple[float, ...] | None = None
    exchanges: bool | None = None
    workers: int | None = None

    def __post_init__(self) -> None:
        for name in ("starts", "workers"):
            if getattr(self, name) is not None:
                check_integer(name, getattr(self, name), 1)
        if self.stages is None:
            return
        given = tuple(self.stages) if isinstance(self.stages, Iterable) else ()
        if not given or not all(_is_positive(stage) for stage in given):
            raise SettingError(f"stages must be a sequence of positive numbers, found {self.stages!r}")
        object.__setattr__(self, "stages", given)

    def run(
        self,
        polytope: Polytope,
        objective: SetObjective,
        k: int,
        seed: int,
        watch: Watch,
        fixed: Sequence[Vertex] = (),
    ) -> Ascent:
        """Find vertices that make, with the `fixed` ones before them, k plans of high objective."""
        optimum = polytope.optimum
        pool: list[Vertex] = []
        log = Log(watch)
        threads = self.workers or (cores() if k * polytope.mdp.n_states >= THREADS_FROM else 1)
        crew = cluster_crew(polytope, objective, log) or _Crew(polytope, threads, log)
        if k > 1:
            with log.halting():
                pool += _pool(crew, objective, k, watch)
        effort = self._effort(polytope, objective, k, founded=bool(pool))
        log.jobs = effort.starts + effort.finalists
        streams = np.random.SeedSequence(seed).spawn(effort.starts)

        def climb(own: Polytope, number: int) -> Climb:
            climb = Climb(own, objective, optimum, fixed, k, log, number)
            stages = effort.schedules[number % len(effort.schedules)]
            with log.halting():
                rng = np.random.default_rng(streams[number])
                if pool:
                    climb.start_from(pool, None if number == 0 else rng)
                    climb.run(stages[-1:], rng)
                else:
                    climb.run(stages, rng, once=not self.stages and stages[-1] > SETTLING)
            log.finished += 1
            return climb

        def settle(own: Polytope, climb: Climb) -> None:
            climb.polytope, climb.place = own, (1, climb.place[1])
            with log.halting():
                if not climb.settled:
                    climb.run((SETTLING,))
            log.finished += 1

        climbs = crew.spread(climb, range(effort.starts))
        finalists = sorted(climbs, key=lambda climb: -climb.value)[: effort.finalists]
        if finalists and log.status is None:
            crew.spread(settle, finalists)
        best = max(climbs, key=lambda climb: climb.value)  # of equals the first, whatever the order of arrival
        best.polytope, best.place = polytope, (2, 0)
        distinct = True
        if log.status is None and k > 1:
            with log.halting():
                watch.check()
                if effort.exchanged:
                    best.exchange(BUSY)
                if objective.exchange_form(k) is None or (polytope.floors and polytope.mdp.n_states < SMALL):
                    best.recombine(climbs, np.random.default_rng(streams[0].spawn(1)[0]))
                if self._exchanges(objective) and exchangeable(polytope, objective, k, best.plans[len(fixed) :]):
                    best.exchange()
                distinct = not self.parts_copies or best.part_duplicates()
        status = log.status or (Status.CONVERGED if distinct else Status.FEWER_PLANS)
        new = best.plans[len(fixed) :]
        known = [vertex.choices for vertex in new if vertex.choices is not None]
        choices = np.stack(known) if len(known) == len(new) else None
        return Ascent(np.stack([v.occupancy for v in new]), status, log.trace(), choices)

    def _effort(self, polytope: Polytope, objective: SetObjective, k: int, *, founded: bool) -> _Effort:
        """What the search does by default, by the size of the model and of the set."""
        states, limited = polytope.mdp.n_states, bool(polytope.floors)
        quick = states < QUICK_BELOW and not limited
        starts = 1 if k == 1 else self.starts or _affordable_starts(states, founded=founded, quick=quick)
        if self.stages:
            schedules: tuple[tuple[float, ...], ...] = (self.stages,)
        elif founded:
            schedules = ((SETTLING,),)
        elif states < EXCHANGED_BELOW or limited:
            schedules = COLDER_HEATS
        else:
            schedules = COLD_HEATS if starts == 1 else SURE if quick else HEATS
        if k == 1 or founded or self.stages:
            return _Effort(schedules, starts, 0, exchanged=False)
        settling = max(-(-starts // SETTLING_SHARE), QUICKLY_SETTLING if quick else 1)
        few = (
            quick
            and EXCHANGED_BELOW <= states < PARTLY_EXCHANGED_BELOW
            and k <= MOST_EXCHANGED
            and objective.compared.identity
        )
        exchanged = few and self.exchanges is None and objective.exchange_form(k) is not None
        return _Effort(schedules, starts, min(settling, starts), exchanged)

    def _exchanges(self, objective: SetObjective) -> bool:
        if self.exchanges is not None:
            return self.exchanges
        few = objective.mdp.n_states < EXCHANGED_BELOW or objective.compared.places < objective.mdp.n_choices
        return few or self.stages is not None


@dataclass(frozen=True)
class _Effort:
    """What a search does.

    Attributes:
        schedules: the stages of the starts, in turn.
        starts: how many starts there are.
        finalists: how many of the best settle.
        exchanged: whether single actions of the best start are exchanged in busy states.
    """

    schedules: tuple[tuple[float, ...], ...]
    starts: int
    finalists: int
    exchanged: bool


class _Crew:
    """Threads that share work on a polytope. Each job has a polytope of its own, because the work space of an oracle
    serves one thread at a time."""

    def __init__(self, polytope: Polytope, threads: int, log: Log) -> None:
        self.polytope, self.threads, self.log = polytope, threads, log
        self._idle: SimpleQueue[Polytope] = SimpleQueue()
        self._idle.put(polytope)
        self._known = 1

    def spread(self, work: Callable[[Polytope, _Job], _Result], jobs: Sequence[_Job]) -> list[_Result]:
        """The results of jobs in their order; jobs that have not begun when the search is halted are left out, but not the
        first."""
        while self._known < min(self.threads, len(jobs)):
            self._idle.put(self.polytope.twin())
            self._known += 1

        def one(number: int) -> list[_Result]:
            if number and self.log.status is not None:
                return []
            own = self._idle.get()
            try:
                return [work(own, jobs[number])]
            finally:
                self._idle.put(own)

        return [result for found in side_by_side(one, range(len(jobs)), self.threads) for result in found]


def _pool(crew: _Crew | ClusterCrew, objective: SetObjective, k: int, watch: Watch) -> list[Vertex]:
    """The best plan, and the best plans for the costs that the objective names."""
    costs, optimum = objective.pool(k), crew.polytope.optimum
    if not costs:
        return []
    done: list[Vertex] = []

    def solve(own: Polytope, part: Sequence[Callable[[], Floats]]) -> list[Vertex]:
        found = []
        for make in part:
            watch.check()
            answer = own.best(make(), optimum)
            found.append(Vertex(answer.occupancy, answer.choices))
            done.append(found[-1])
            watch.tell(len(done), len(costs), float("nan"), "finding candidates")
        return found

    solved = crew.spread(solve, [costs[number :: crew.threads] for number in range(crew.threads)])
    in_turn = (vertex for row in zip_longest(*solved) for vertex in row if vertex is not None)
    return [optimum, *in_turn]


def _is_positive(value: object) -> bool:
    try:
        return isinstance(value, Real) and not isinstance(value, bool) and 0 < float(value) < np.inf
    except OverflowError:  # an integer too large for a float
        return False


def _affordable_starts(states: int, *, founded: bool, quick: bool) -> int:
    """How many starts cost little; where plans to start from are known (`founded`), one of them is far better than others."""
    if founded or states >= LARGE:
        return int(np.clip(150 // states, 1, 8))
    return int(np.clip(450 // states, QUICK_STARTS if quick else STARTS, 9))
