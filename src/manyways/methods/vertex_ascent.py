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
them forget these, so starts with the same heats end alike; starts with different heats do not. Each start takes one round
in each of its stages. Then the best two starts settle, or the best third: rounds until no plan can be improved. Objectives that know
costs whose best plans are good candidates (`SetObjective.pool`) start from the best set of these plans instead, and further
starts from random sets of them; there is nothing to anneal.

*Exchanges.* At the end, where it pays (`VertexAscent.exchanges`) and for objectives that allow it, every exchange of one
action in one plan is tried with the exact objective, until none helps (`methods.exchange`).

*Recombination.* For other objectives, and in small models with limits, the best set among all plans that any start has
met is chosen at the end (`methods.recombination`).

docs/default-method.md has the measurements behind each of these.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count, islice, zip_longest
from numbers import Real
from typing import ClassVar, TypeVar

import numpy as np

from manyways.errors import SettingError, check_integer
from manyways.methods.ascent import Ascent, Halted, Status, Trace, Watch
from manyways.methods.base import METHODS, Method
from manyways.methods.exchange import exchange_actions, exchangeable, neighbours
from manyways.methods.recombination import SMALL, best_of_pool, most_candidates, recombined
from manyways.objectives import SetObjective
from manyways.polytope import Answer, Polytope, Vertex
from manyways.types import Floats

SAME = 1e-9
"""Occupancies that differ by no more than this are one plan."""
DIVERSITY_WEIGHTS = (0.01, 0.1, 1.0, 10.0, 100.0)
MOST_UNUSED, LURED_UP_TO = 32, 1000
"""In models with more states, plans are made to take unused choices only if nothing else is new: each takes a long solve."""
RISE = 1e-10
"""A step counts if it raises the objective by more than this, relative to the objective's scale."""
WORTH_A_ROUND = 1e-5
"""Only a rise of more than this, on the same scale, makes the other plans try again before the stage ends."""
HEATS = ((10.0, 1.0, 0.1), (1.0, 0.35), (3.0, 1.0, 0.3), (20.0, 2.0, 0.2), (2.0, 0.7, 0.2, 0.05))
"""The stages of the starts, in turn, in units of the optimal plan's typical time per step."""
FEW_STARTS, STARTS, MANY_PLANS, QUICK_BELOW = 3, 5, range(5, 11), 2000
"""In models with fewer states than `QUICK_BELOW`, sets of many plans have more starts: there are more ways to share out
the routes, so that a start more often ends with a poor one. Even larger sets would take too long for that. And there two starts settle instead of one. Within limits, where
each step takes several solves, neither is worth its time."""
SETTLING_SHARE = 3
"""Of more starts, one of so many settles."""
COLDER_HEATS = HEATS[0], HEATS[1], HEATS[4]
"""Within limits, and in models with less than `EXCHANGED_BELOW` states, which have many starts: there, hot starts reach less."""
COLD_HEATS = HEATS[1:2]
"""Of the single start in large models."""
SETTLING = 1e-3
EXCHANGED_BELOW = 150
LARGE = 20_000
"""From this many states on, one start has to suffice."""

_Job = TypeVar("_Job")
_Result = TypeVar("_Result")


@METHODS.add
@dataclass(frozen=True)
class VertexAscent(Method):
    """The default: annealed vertex steps from several starts, then exchanges of single actions.

    Attributes:
        starts: how many starts; by default as many as cost little: 3, or 5 for 5 plans or more in models with less than
            2,000 states and without limits; more in models with less than 150 states, and 1 in models with 20,000 states or
            more.
        stages: time assumed in unvisited states, in units of the optimal plan's typical time per step. By default the
            starts take turns with five schedules, one round for each stage, and the best of them settle. If stages are
            given, every start goes through them, each stage until nothing improves.
        exchanges: whether to end with the search over single actions (up to 2,500 states). By default where it gains most
            for its time: if plans are compared by something coarser than choices, in models with less than 150 states, and
            if stages are given.
        workers: threads that share the starts; the result does not depend on it.
    """

    keeps_plans: ClassVar[bool] = True
    respects_floors: ClassVar[bool] = True
    parts_copies: ClassVar[bool] = True
    """Whether plans that equal others are replaced at the end."""

    starts: int | None = None
    stages: tuple[float, ...] | None = None
    exchanges: bool | None = None
    workers: int = 1

    def __post_init__(self) -> None:
        if self.starts is not None:
            check_integer("starts", self.starts, 1)
        check_integer("workers", self.workers, 1)
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
        log = _Log(watch)
        if k > 1:
            with log.halting():
                pool += self._pool(polytope, objective, k, watch)
        quick = polytope.mdp.n_states < QUICK_BELOW and not polytope.floors
        least = STARTS if quick and k in MANY_PLANS else FEW_STARTS
        starts = 1 if k == 1 else self.starts or _affordable_starts(polytope.mdp.n_states, least, founded=bool(pool))
        settling = min(max(-(-starts // SETTLING_SHARE), 1 + quick), starts)
        finalists = settling if k > 1 and not pool and not self.stages else 0
        log.jobs = starts + finalists
        streams = np.random.SeedSequence(seed).spawn(starts)
        colder = polytope.mdp.n_states < EXCHANGED_BELOW or bool(polytope.floors)
        several = COLDER_HEATS if colder else HEATS
        heats = COLD_HEATS if starts == 1 else several

        def climb(number: int) -> _Climb:
            # The work space of an oracle serves one thread at a time.
            own = polytope if self.workers == 1 else polytope.twin()
            climb = _Climb(own, objective, optimum, fixed, k, log)
            with log.halting():
                rng = np.random.default_rng(streams[number])
                if pool:
                    climb.start_from(pool, None if number == 0 else rng)
                    climb.run(self.stages[-1:] if self.stages else (SETTLING,), rng)
                elif self.stages:
                    climb.run(self.stages, rng)
                else:
                    climb.run(heats[number % len(heats)], rng, once=True)
            log.finished += 1
            return climb

        def settle(climb: _Climb) -> None:
            with log.halting():
                climb.run((SETTLING,))
            log.finished += 1

        climbs = self._spread(climb, range(starts), log)
        if finalists and log.status is None:
            self._spread(settle, sorted(climbs, key=lambda climb: -climb.value)[:finalists], log)
        best = max(climbs, key=lambda climb: climb.value)  # of equals the first, whatever the order of arrival
        distinct = True
        if log.status is None and k > 1:
            with log.halting():
                watch.check()
                if objective.exchange_form(k) is None or (polytope.floors and polytope.mdp.n_states < SMALL):
                    best.recombine(climbs, np.random.default_rng(streams[0].spawn(1)[0]))
                if self._exchanges(objective) and exchangeable(polytope, objective, k, best.plans[len(fixed) :]):
                    best.exchange()
                distinct = not self.parts_copies or best.part_duplicates()
        status = log.status or (Status.CONVERGED if distinct else Status.FEWER_PLANS)
        new = best.plans[len(fixed) :]
        known = [vertex.choices for vertex in new if vertex.choices is not None]
        choices = np.stack(known) if len(known) == len(new) else None
        return Ascent(np.stack([v.occupancy for v in new]), status, Trace.of(log.rows), choices)

    def _exchanges(self, objective: SetObjective) -> bool:
        if self.exchanges is not None:
            return self.exchanges
        few = objective.mdp.n_states < EXCHANGED_BELOW or objective.compared.places < objective.mdp.n_choices
        return few or self.stages is not None

    def _spread(self, work: Callable[[_Job], _Result], jobs: Sequence[_Job], log: _Log) -> list[_Result]:
        """The results of jobs, in this thread or in several; ends early if the search is halted."""
        if self.workers > 1 and len(jobs) > 1:
            with ThreadPoolExecutor(self.workers) as threads:
                return list(threads.map(work, jobs))
        results = []
        for job in jobs:
            results.append(work(job))
            if log.status is not None:
                break
        return results

    def _pool(self, polytope: Polytope, objective: SetObjective, k: int, watch: Watch) -> list[Vertex]:
        """The best plan, and the best plans for the costs that the objective names."""
        costs = objective.pool(k)
        if not costs:
            return []
        done = count(1)

        def solve(part: Sequence[Callable[[], Floats]]) -> list[Vertex]:
            own, found = polytope if self.workers == 1 else polytope.twin(), []
            for make in part:
                watch.check()
                answer = own.best(make(), polytope.optimum)
                found.append(Vertex(answer.occupancy, answer.choices))
                watch.tell(next(done), len(costs), float("nan"), "finding candidates")
            return found

        parts = [costs[number :: self.workers] for number in range(self.workers)]
        if self.workers == 1:
            solved = [solve(parts[0])]
        else:
            with ThreadPoolExecutor(self.workers) as threads:
                solved = list(threads.map(solve, parts))
        in_turn = (vertex for row in zip_longest(*solved) for vertex in row if vertex is not None)
        return [polytope.optimum, *in_turn]


class _Log:
    """What the starts share: the trace, the watch, and the status of a search that was ended early."""

    def __init__(self, watch: Watch) -> None:
        self.watch, self.jobs, self.finished = watch, 1, 0
        self.status: Status | None = None
        self.rows: list[tuple[float, float, float, float, int]] = []
        self.calls = 0
        self.best = -np.inf
        self.shown = 0

    @contextmanager
    def halting(self) -> Iterator[None]:
        """Work that may be ended at any step, and leaves feasible plans at each."""
        try:
            yield
        except Halted as end:
            self.status = end.status

    def step(self, value: float, rise: float, share: float) -> None:
        self.calls += 1
        self.best = max(self.best, value)
        self.rows.append((value, max(rise, 0.0), float(rise > 0), self.watch.elapsed(), self.calls))
        # The share of a start that is done is only an estimate and may fall; the progress bar must not.
        self.shown = max(self.shown, round(100 * (self.finished + share)))
        self.watch.tell(self.shown, 100 * self.jobs, self.best)


class _Climb:
    """One start: k plans on their way up, of which the `fixed` first ones stay. `plans` is always a feasible answer."""

    def __init__(
        self,
        polytope: Polytope,
        objective: SetObjective,
        optimum: Answer,
        fixed: Sequence[Vertex],
        k: int,
        log: _Log,
    ) -> None:
        self.polytope, self.objective, self.optimum, self.log = polytope, objective, optimum, log
        self.k, self.fixed = k, len(fixed)
        self.plans: list[Vertex] = [*fixed, *[optimum] * (k - len(fixed))]
        self.value = self._value() if fixed else optimum.value
        self.met: deque[Vertex] = deque(maxlen=most_candidates(polytope.mdp))
        self._founded = False

    def start_from(self, pool: Sequence[Vertex], rng: np.random.Generator | None) -> None:
        """Start from the best set of plans of a pool, or from a random one if `rng` is given."""
        fixed, free = self.plans[: self.fixed], self.k - self.fixed
        if rng is None:
            self.plans = best_of_pool(self.objective, fixed, pool, self.k)
        else:
            self.plans = [*fixed, *(pool[j] for j in rng.choice(len(pool), free, replace=len(pool) < free))]
        self.value, self._founded = self._value(), True
        self.met.extend(pool)

    def run(self, stages: tuple[float, ...], rng: np.random.Generator | None = None, *, once: bool = False) -> None:
        """Go through the stages, each until a whole round improves nothing, or only `once` round. The first call needs
        an `rng` unless there are plans to start from."""
        if self.k == 1:
            self.log.step(self.value, 0.0, 1.0)
            return
        fixed, free, optimum = self.fixed, self.k - self.fixed, self.optimum
        typical = float(optimum.occupancy @ optimum.occupancy)
        scale = self.objective.size(optimum.value)
        rows = [vertex.occupancy for vertex in self.plans]
        founding = free if not self._founded and rng is not None else 0
        if founding and rng is not None:
            rows[fixed:] = [self.polytope.wander(rng) for _ in range(free)]
        self._founded = True
        working = self.objective.working_set(rows)
        warm: list[Vertex] = [vertex if isinstance(vertex, Answer) else optimum for vertex in self.plans]
        for number, stage in enumerate(stages):
            idle = tried = 0
            while idle < free and not (once and tried == free):
                self.log.watch.check()
                i = fixed + tried % free
                answer = warm[i] = self.polytope.best(working.costs(i, stage * typical), warm[i])
                self.met.append(Vertex(answer.occupancy, answer.choices))
                offer = working.offer(i, answer.occupancy)
                # A random policy is not a plan yet: replace it in any case.
                if (founding > 0 and number == 0) or offer.after > offer.before + RISE * scale:
                    working.accept(offer)
                    self.plans[i], self.value = answer, working.value
                    idle = 0 if offer.after > offer.before + WORTH_A_ROUND * scale else idle + 1
                else:
                    idle += 1
                tried += 1
                founding -= 1
                # Until nothing improves, a stage takes about four rounds.
                share = max(idle / free, tried / (tried + 4 * free), once * tried / free)
                self.log.step(self.value, offer.rise, (number + share) / len(stages))

    def _value(self) -> float:
        return self.objective.value(np.stack([vertex.occupancy for vertex in self.plans]))

    def part_duplicates(self) -> bool:
        """Replace each plan that equals an earlier one by the best other vertex found; False if none is found.

        Where diversity is worth little the objective is highest with equal plans, but nobody wants the same plan
        twice. Candidates are the same plan but for one action, and what the oracle proposes as diversity gains weight;
        where none of these is new, plans made to take a choice that no plan takes yet.
        """
        lured: list[Vertex] | None = None  # each takes a solve, and they are the same for every plan
        for i in range(max(self.fixed, 1), self.k):
            rows = [vertex.occupancy for vertex in self.plans]
            if not _among(rows[i], rows[:i]):
                continue
            others = [row for j, row in enumerate(rows) if j != i]
            found = self._new(self._proposals(rows, i), others)
            if not found or self.polytope.mdp.n_states <= LURED_UP_TO:
                lured = list(self._lured(rows)) if lured is None else lured
                found += self._new(lured, others)
            if not found:
                return False
            self.plans[i] = max(found, key=lambda v, i=i, rows=rows: self.objective.contribution(rows, i, v.occupancy))
            self.value = self._value()
        return True

    def _new(self, proposals: Iterable[Vertex], others: list[Floats]) -> list[Vertex]:
        """The proposals that keep the floors and equal no other plan."""
        allowed = (v for v in proposals if self.polytope.meets_floors(v.occupancy))
        return [v for v in allowed if not _among(v.occupancy, others)]

    def _proposals(self, rows: list[Floats], i: int) -> Iterator[Vertex]:
        k = self.k
        # What the optimal plan earns, not the largest number in the model: that may be a penalty nobody ever pays.
        scale = max(float(self.optimum.occupancy @ np.abs(self.objective.mdp.reward)), 1e-12)
        if exchangeable(self.polytope, self.objective, k, self.plans[i : i + 1]):
            yield from islice(neighbours(self.polytope, self.objective, rows, self.plans[i], i), self.k)
        for factor in DIVERSITY_WEIGHTS:
            weight = max(self.objective.diversity_weight, scale) * factor
            stronger = self.objective.with_diversity_weight(weight)
            yield self.polytope.best(stronger.costs(rows, i, 1e-3), self.plans[i])

    def _lured(self, rows: list[Floats]) -> Iterator[Vertex]:
        """Plans made to take a choice that no plan takes yet."""
        reward, k = self.objective.mdp.reward, self.k
        scale = max(float(self.optimum.occupancy @ np.abs(reward)), 1e-12)
        unused = np.flatnonzero(np.sum(rows, axis=0) <= 0)
        for choice in unused[np.argsort(-reward[unused], kind="stable")][:MOST_UNUSED]:
            lure = reward / k
            lure[choice] += 1e3 * scale
            vertex = self.polytope.best(lure)
            if vertex.occupancy[choice] > 0:
                yield vertex

    def recombine(self, climbs: Sequence[_Climb], rng: np.random.Generator) -> None:
        """Continue with the best set among the plans that any start has met."""
        latest = zip_longest(*(reversed(climb.met) for climb in climbs))  # of all starts in turn
        met = [vertex for row in latest for vertex in row if vertex is not None]
        sets = [climb.plans for climb in climbs]
        self.plans = recombined(self.polytope, self.objective, sets, met, self.fixed, rng)
        value = self._value()
        self.log.step(value, value - self.value, 0.0)
        self.value = value

    def exchange(self) -> None:
        for plans in exchange_actions(self.polytope, self.objective, self.plans, self.fixed):
            self.plans = plans
            value = self._value()
            self.log.step(value, value - self.value, 0.0)
            self.value = value
            self.log.watch.check()


def _is_positive(value: object) -> bool:
    try:
        return isinstance(value, Real) and not isinstance(value, bool) and 0 < float(value) < np.inf
    except OverflowError:  # an integer too large for a float
        return False


def _among(row: Floats, others: list[Floats]) -> bool:
    return any(np.abs(row - other).max() <= SAME for other in others)


def _affordable_starts(states: int, least: int, *, founded: bool) -> int:
    """How many starts cost little; where plans to start from are known (`founded`), one of them is far better than others."""
    if founded or states >= LARGE:
        return int(np.clip(150 // states, 1, 8))
    return int(np.clip(450 // states, least, 9))
