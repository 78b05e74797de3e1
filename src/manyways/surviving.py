"""Which plans survive: what each plan of a set still does if something is closed and nobody told it.

For every plan and closure, from the chain of the plan in the closed model: the chance that a trip still reaches the goal, the
steps and the return of the trips that do, and the value of the plan; the same for plans that were made with the closure known. In
models without trips, whether a plan is stuck. A plan that meets the closed part keeps trying, because that is what its policy says.

A trip has a deadline, `PATIENCE` times the mean length of a trip of the slowest plan with nothing closed. One that comes later
does not count as reaching the goal, and where a model's value is the long run of one trip after another, the next one begins then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np

from manyways.describe.closure_words import ClosureWords
from manyways.describe.wording import number, number_beside, percent, quantity, terms_of
from manyways.errors import SettingError
from manyways.kernels.threads import cores, one_blas_thread, side_by_side
from manyways.methods import Progress, Watch
from manyways.model.closures import Closure, closures
from manyways.model.mdp import MDP
from manyways.model.occupancy import chain
from manyways.model.search import reachable
from manyways.model.trips import NEVER, Trip, Trips
from manyways.plans import PlanSet
from manyways.plans.outcomes import Outcome, Setting, best_by_value, best_on_trips, outcome_of
from manyways.polytope import Average, Criterion
from manyways.polytope.twins import THREADS_FROM
from manyways.types import Bools, Floats

PATIENCE = 100
"""A trip that takes more than so many times as long as those of the slowest plan with nothing closed does not count as reaching
the goal. Where moves slip, a plan surely comes out of every place, if only after 1e17 steps; such a place, met with a chance of
1e-14, would make up its mean."""
UNKNOWN = "no plan"
"""In place of an outcome: no plan was found for a closed model, or the chain of a plan could not be solved."""
LONGER = 2.0
"""A plan that takes more than twice as long does not count as getting through."""


FIELDS = len(Outcome._fields)
LESS_SURE = 1e-3
"""A plan that reaches the goal less often than with nothing closed by no more than this is as sure as before."""


@dataclass(frozen=True, eq=False)
class Outcomes:
    """What becomes of several plans, in arrays of one shape.

    Attributes:
        reaches: the chance that a trip reaches the goal by the deadline; NaN in models without trips.
        steps: the mean number of steps of the trips that do; NaN where none does.
        values: by the criterion of the set; NaN where the plan has none, as a value per episode if no episode ends.
        returns: the mean return of a trip, if it surely reaches the goal; NaN otherwise.
        stuck: in models without trips, the chance that the closure keeps the plan forever where it would leave otherwise.
        place: the state in which it is then; NaN if none.
    """

    reaches: Floats
    steps: Floats
    values: Floats
    returns: Floats
    stuck: Floats
    place: Floats


@dataclass(frozen=True, eq=False)
class Survival:
    """What becomes of the plans of a set if something is closed.

    Attributes:
        plans: the set.
        closures: the J closures.
        open: (k,) each plan with nothing closed.
        best: () the plan of the highest value with nothing closed.
        possible_open: () the same with nothing closed.
        closed: (k, J) each plan with each closure.
        replanned: (J,) for each closure, the plan of the highest value made with the closure known.
        possible: (J,) for each closure, the best plan made with the closure known: that of the highest value, on trips among the
            surest ones; of costs, the one whose trips cost least. Where no better plan was found, the best one of the set.
        has_goal: whether trips have a goal; otherwise every end counts as one.
        deadline: a trip that takes more steps has not reached the goal; 0 in models without trips.
    """

    plans: PlanSet
    closures: tuple[Closure, ...]
    open: Outcomes
    best: Outcomes
    possible_open: Outcomes
    closed: Outcomes
    replanned: Outcomes
    possible: Outcomes
    has_goal: bool
    deadline: int

    @property
    def has_trips(self) -> bool:
        """Whether the model has trips; otherwise only values are known."""
        return not bool(np.isnan(self.open.reaches).all())

    @property
    def counts_cost(self) -> bool:
        """Whether trips are counted by what they cost; otherwise by their steps."""
        return self.has_trips and self.plans.mdp.costs

    @property
    def best_reaches(self) -> Floats:
        """(J,) the chance that the surest plan of the set still reaches the goal."""
        return self.closed.reaches.max(axis=0)

    @property
    def best_values(self) -> Floats:
        """(J,) the value of the best plan of the set that is not stuck; NaN if none has one."""
        known = np.where(np.isnan(self.closed.values) | (self.closed.stuck > NEVER), -np.inf, self.closed.values)
        known = known.max(axis=0)
        return np.where(np.isfinite(known), known, np.nan)

    @property
    def survivors(self) -> Bools:
        """(k, J) the plans that reach the goal as surely as with nothing closed, and in at most `LONGER` times the steps, or of
        costs at most for so many times the cost. Without trips, those that are not stuck.

        Where moves slip, a plan that keeps trying a closed door comes round it by luck, after a long time."""
        if not self.has_trips:
            return ~(self.closed.stuck > NEVER)
        sure = (self.closed.reaches >= self.open.reaches[:, None] - LESS_SURE) & (self.closed.reaches > NEVER)
        if self.counts_cost:
            late = -self.closed.returns > LONGER * np.abs(self.open.returns[:, None])
        else:
            late = self.closed.steps > LONGER * self.open.steps[:, None]
        return sure & ~late

    @property
    def hopeless(self) -> Bools:
        """(J,) the closures with which no plan was found that reaches the goal or, without trips, that is not stuck."""
        if self.has_trips:
            return (np.nan_to_num(self.possible.reaches) <= NEVER) & (self.best_reaches <= NEVER)
        return (self.closed.stuck > 1 - NEVER).all(axis=0) & ~(self.possible.stuck <= 1 - NEVER)

    @property
    def harmless(self) -> Bools:
        """(J,) the closures with which no plan does worse than with nothing closed, in what is shown."""
        worse = [
            self.told(self.closed, i, j) != self.told(self.open, i)
            and (_rank(self, self.closed, i, j) < _rank(self, self.open, i) or not self.survivors[i, j])
            for j in range(len(self.closures))
            for i in range(self.plans.k)
        ]
        return np.logical_not(np.array(worse, bool).reshape(len(self.closures), self.plans.k).any(axis=1))

    @property
    def level(self) -> Bools:
        """(J,) the closures with which every plan does the same in what is shown, and no better plan was found."""
        rows = [
            {self.told(self.possible, j), *(self.told(self.closed, i, j) for i in range(self.plans.k))}
            for j in range(len(self.closures))
        ]
        return np.array([len(row) == 1 for row in rows], bool) & ~self.hopeless

    def told(self, outcomes: Outcomes, *at: int) -> str:
        """One outcome in a table: steps to the goal, or the cost of a trip, and the chance of reaching it where it may be missed; a
        value without trips."""
        reaches, steps, value, returns, stuck, _ = (float(row[at]) for row in _fields(outcomes))
        if not self.has_trips:
            if stuck > NEVER:
                return "stuck" if stuck > 1 - NEVER else f"{percent(stuck)} stuck"
            return UNKNOWN if np.isnan(value) else self.value_told(value)
        if np.isnan(reaches):
            return UNKNOWN
        if reaches < 1 - NEVER:
            return percent(reaches)
        if self.counts_cost:
            return number(float(terms_of(self.plans.mdp).shown(returns)))
        return f"{steps:.1f}" if steps < 100 else quantity(steps)

    def value_told(self, value: float) -> str:
        """A value beside those of the plans with nothing closed."""
        known = np.abs(self.open.values[np.isfinite(self.open.values)])
        return number_beside(float(terms_of(self.plans.mdp).shown(value)), float(known.max(initial=0.0)))

    @property
    def words(self) -> ClosureWords:
        """Headings, keys and sentences."""
        return ClosureWords(self)

    def sentence(self, j: int) -> str:
        """What happens if closure j (counted from 0) is closed, in plain words."""
        return self.words.sentence(j)

    def hopeless_told(self) -> str:
        """What nobody can do anything about, in one sentence; empty if there is nothing."""
        return self.words.hopeless()


def _fields(outcomes: Outcomes) -> tuple[Floats, ...]:
    return (
        outcomes.reaches, outcomes.steps, outcomes.values, outcomes.returns, outcomes.stuck, outcomes.place
    )  # fmt: skip


def _rank(found: Survival, outcomes: Outcomes, *at: int) -> tuple[float, float]:
    """How good an outcome is in what is shown: pairs that compare."""
    return rank(Outcome(*(float(row[at]) for row in _fields(outcomes))), found.plans.mdp.costs)


def survival(
    plans: PlanSet,
    closed: Sequence[Closure] | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Survival:
    """What becomes of the plans of a set if something is closed: exactly, without simulation.

    Args:
        plans: the set.
        closed: what may be closed, from `closures`; by default doors, passages, labels or actions (see there).
        progress: called with a `Progress` for each closure.

    Example:
        >>> found = survival(plans, closures(plans.mdp, regions=True))
        >>> found.closed.reaches, found.sentence(0)
    """
    mdp, criterion = plans.mdp, plans.criterion
    chosen = tuple(closures(mdp) if closed is None else closed)
    for closure in chosen:
        if closure.states.shape != (mdp.n_states,) or closure.choices.shape != (mdp.n_choices,):
            raise SettingError(f"the closure {closure.name!r} is of another model than the plans for {mdp.name}")
    watch = Watch(None, progress)
    with one_blas_thread():
        free = Setting.of(mdp)
        deadline = 0 if free.trips is None else _deadline(free.trips, plans.policies)
        at_home = [outcome_of(free, criterion, policy, deadline) for policy in plans.policies]
        used = [_used(mdp, policy) for policy in plans.policies]
        done: list[Closure] = []

        def under(closure: Closure) -> tuple[list[Outcome], tuple[Outcome, Outcome]]:
            watch.check()
            setting = Setting.of(mdp, closure)
            changed = setting.failing > 0
            row = [
                outcome_of(setting, criterion, policy, deadline) if (own & changed).any() else known
                for policy, own, known in zip(plans.policies, used, at_home, strict=True)
            ]
            made = _made(setting, criterion, row, deadline)
            done.append(closure)
            watch.tell(len(done), len(chosen), float("nan"), "closing")
            return row, made

        threads = cores() if mdp.n_states >= THREADS_FROM else 1
        found = side_by_side(under, chosen, threads)
        best, possible_open = _made(free, criterion, at_home, deadline)
    columns = np.array([row for row, _ in found]).reshape(len(chosen), plans.k, FIELDS)
    return Survival(
        plans=plans,
        closures=chosen,
        open=_outcomes(np.array(at_home)),
        best=_outcomes(np.array(best)),
        possible_open=_outcomes(np.array(possible_open)),
        closed=_outcomes(columns.transpose(1, 0, 2)),
        replanned=_outcomes(np.array([made[0] for _, made in found]).reshape(-1, FIELDS)),
        possible=_outcomes(np.array([made[1] for _, made in found]).reshape(-1, FIELDS)),
        has_goal=free.trips is not None and free.trips.named_goal,
        deadline=deadline,
    )


def _outcomes(table: Floats) -> Outcomes:
    return Outcomes(*np.moveaxis(table, -1, 0))


def _used(mdp: MDP, policy: Floats) -> Bools:
    """(N,) the choices that a policy may ever take."""
    return (policy > 0) & reachable(chain(mdp, policy), mdp.start > 0)[mdp.choice_state]


def _deadline(trips: Trips, policies: Floats) -> int:
    """The number of steps after which a trip is too late: many times those of the slowest plan with nothing closed."""
    found = map(trips.of, policies)
    return ceil(PATIENCE * max(1.0, *(trip.length - _leading_back(trips, trip) for trip in found)))


def _leading_back(trips: Trips, trip: Trip) -> float:
    """How many steps of a trip only lead back to the start."""
    return float(trip.visits @ (1 - trips.passing(trip)[:-1])) if trip.surely_ends else 0.0


def _made(setting: Setting, criterion: Criterion, known: list[Outcome], deadline: int) -> tuple[Outcome, Outcome]:
    """The outcomes of the plans of the highest value, and of the best as in `possible`: never worse than those that are `known`."""
    policy, costs = best_by_value(setting, criterion), setting.plain.costs
    found = [] if policy is None else [outcome_of(setting, criterion, policy, deadline)]
    by_value = max([*found, *known], key=lambda one: (-_stuck(one) if costs else 0.0, _or_least(one.values)))
    if setting.trips is not None and not (found and rank(found[0], costs)[0] == 1 and not costs):
        policy = best_on_trips(setting, setting.model.reward - _worth_of_a_step(criterion, by_value))
        found += [] if policy is None else [outcome_of(setting, criterion, policy, deadline)]
    return by_value, max([*found, *known], key=lambda one: rank(one, costs))


def _worth_of_a_step(criterion: Criterion, best: Outcome) -> float:
    """What a step must earn on a trip to be worth its time; nothing where trips count and not the time that they take."""
    return float(np.nan_to_num(best.values)) if criterion == Average() else 0.0


def rank(outcome: Outcome, costs: bool) -> tuple[float, float]:
    """How good an outcome is, as a pair that compares: on trips first the chance of reaching the goal, then the value, or the cost
    of a trip. Whoever is stuck may pay little, but has not done anything for it; who earns nothing does no worse than that."""
    if np.isnan(outcome.reaches):
        return -_stuck(outcome) if costs else 0.0, _or_least(outcome.values)
    sure = 1.0 if outcome.reaches >= 1 - NEVER else outcome.reaches
    return sure, _or_least(outcome.returns if costs else outcome.values) if sure == 1 else 0.0


def _stuck(outcome: Outcome) -> float:
    return outcome.stuck if outcome.stuck > NEVER else 0.0


def _or_least(value: float) -> float:
    return -np.inf if np.isnan(value) else value
