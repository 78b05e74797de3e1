"""One start of the default method: k plans on their way up.

`methods.vertex_ascent` says what the steps are and why, and decides which starts there are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice, zip_longest
from threading import Lock

import numpy as np

from manyways.methods.ascent import Halted, Status, Trace, Watch
from manyways.methods.exchange import exchange_actions, exchangeable, neighbours
from manyways.methods.recombination import best_of_pool, most_candidates, recombined
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


class Log:
    """What the starts share: the trace, the watch, and the status of a search that was ended early."""

    def __init__(self, watch: Watch) -> None:
        self.watch, self.jobs, self.finished = watch, 1, 0
        self.status: Status | None = None
        self.best = -np.inf
        self._shown = 0
        self._rows: dict[tuple[int, int], list[tuple[float, float, float, float]]] = {}
        self._lock = Lock()

    @contextmanager
    def halting(self) -> Iterator[None]:
        """Work that may be ended at any step, and leaves feasible plans at each."""
        try:
            yield
        except Halted as end:
            self.status = end.status

    def step(self, place: tuple[int, int], value: float, rise: float, share: float) -> None:
        """A step of one start, of which about this share is done; `place` is where its row belongs in the trace."""
        with self._lock:
            self.best = max(self.best, value)
            row = value, max(rise, 0.0), float(rise > 0), self.watch.elapsed()
            self._rows.setdefault(place, []).append(row)
            # The share of a start that is done is only an estimate and may fall; the progress bar must not.
            self._shown = max(self._shown, round(100 * (self.finished + share)))
            self.watch.tell(self._shown, 100 * self.jobs, self.best)

    @property
    def rows(self) -> dict[tuple[int, int], list[tuple[float, float, float, float]]]:
        """The rows of the trace by their place."""
        return self._rows

    def add(self, rows: Mapping[tuple[int, int], list[tuple[float, float, float, float]]], finished: int) -> None:
        """Add what a job has noted elsewhere."""
        with self._lock:
            for place, more in rows.items():
                self._rows.setdefault(place, []).extend(more)
                self.best = max(self.best, *(row[0] for row in more))
            self.finished += finished
            self._shown = max(self._shown, 100 * self.finished)
            self.watch.tell(self._shown, 100 * self.jobs, self.best)

    def trace(self) -> Trace:
        """The steps of all starts, in the same order whatever the number of threads."""
        rows = [row for place in sorted(self._rows) for row in self._rows[place]]
        seconds = np.maximum.accumulate([row[-1] for row in rows]) if rows else []
        return Trace.of(
            [(*row[:-1], at, number) for number, (row, at) in enumerate(zip(rows, seconds, strict=True), 1)]
        )


class Climb:
    """One start: k plans on their way up, of which the `fixed` first ones stay. `plans` is always a feasible answer."""

    def __init__(
        self,
        polytope: Polytope,
        objective: SetObjective,
        optimum: Answer,
        fixed: Sequence[Vertex],
        k: int,
        log: Log,
        number: int = 0,
    ) -> None:
        self.polytope, self.objective, self.optimum, self.log = polytope, objective, optimum, log
        self.place: tuple[int, int] = (0, number)
        """Where its steps belong in the trace: the phase of the search, and the number of the start."""
        self.k, self.fixed = k, len(fixed)
        self.plans: list[Vertex] = [*fixed, *[optimum] * (k - len(fixed))]
        self.value = self._value() if fixed else optimum.value
        self.met: deque[Vertex] = deque(maxlen=most_candidates(polytope.mdp))
        self.settled = False
        """Whether the last stage was gone through until nothing improved."""
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
            self.log.step(self.place, self.value, 0.0, 1.0)
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
                self.log.step(self.place, self.value, offer.rise, (number + share) / len(stages))
        self.settled = not once

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

    def recombine(self, climbs: Sequence[Climb], rng: np.random.Generator) -> None:
        """Continue with the best set among the plans that any start has met."""
        latest = zip_longest(*(reversed(climb.met) for climb in climbs))  # of all starts in turn
        met = [vertex for row in latest for vertex in row if vertex is not None]
        sets = [climb.plans for climb in climbs]
        self.plans = recombined(self.polytope, self.objective, sets, met, self.fixed, rng)
        value = self._value()
        self.log.step(self.place, value, value - self.value, 0.0)
        self.value = value

    def exchange(self, busy: float = 0.0) -> None:
        """Exchange single actions in the states where a plan spends at least `busy` of its typical time per step."""
        for plans in exchange_actions(self.polytope, self.objective, self.plans, self.fixed, busy):
            self.plans = plans
            value = self._value()
            self.log.step(self.place, value, value - self.value, 0.0)
            self.value = value
            self.log.watch.check()


def _among(row: Floats, others: list[Floats]) -> bool:
    return any(np.abs(row - other).max() <= SAME for other in others)
