"""Which plans survive: what each plan of a set still does if something is closed and nobody told it.

For every plan and closure, from the chain of the plan in the closed model: the chance that a trip still reaches the goal, the
steps of the trips that do, and the value of the plan; the same for a plan that was made with the closure known, and for the set,
of which somebody may pick the best plan. A plan that meets the closed part keeps trying, because that is what its policy says.

A trip has a deadline, `PATIENCE` times the mean length of a trip of the slowest plan with nothing closed. One that comes later
does not count as reaching the goal, and where a model's value is the long run of one trip after another, the next one begins then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import ceil

import numpy as np

from manyways.describe.wording import counted, joined, number_beside, percent, quantity, quoted, terms_of
from manyways.errors import ManywaysError, NotWeaklyAccessible, SettingError, SolverError
from manyways.kernels.threads import cores, one_blas_thread, side_by_side
from manyways.methods import Progress, Watch
from manyways.model.closures import Closure, closures
from manyways.model.graph import levels_towards, reachable_from_start
from manyways.model.mdp import MDP
from manyways.model.occupancy import chain
from manyways.model.search import reachable
from manyways.model.trips import Trips, trips_of
from manyways.plans import PlanSet
from manyways.polytope import Criterion, Polytope
from manyways.polytope.twins import THREADS_FROM
from manyways.types import Bools, Floats, Ints

NEVER = 1e-6
"""A plan that reaches the goal less often than this practically never does; one that misses it less often, practically always."""
PATIENCE = 100
"""A trip that takes more than so many times as long as those of the slowest plan with nothing closed does not count as reaching
the goal. Where moves slip, a plan surely comes out of every place, if only after 1e17 steps; such a place, met with a chance of
1e-14, would make up its mean."""
UNKNOWN = "no plan"
"""In place of an outcome: no plan was found for a closed model, or the chain of a plan could not be solved."""
LONGER = 2.0
"""A plan that takes more than twice as long does not count as getting through."""


@dataclass(frozen=True, eq=False)
class Outcomes:
    """What becomes of several plans, in arrays of one shape.

    Attributes:
        reaches: the chance that a trip reaches the goal by the deadline; NaN in models without trips.
        steps: the mean number of steps of the trips that do; NaN where none does.
        values: by the criterion of the set; NaN where the plan has none, as a value per episode if no episode ends.
    """

    reaches: Floats
    steps: Floats
    values: Floats


@dataclass(frozen=True, eq=False)
class Survival:
    """What becomes of the plans of a set if something is closed.

    Attributes:
        plans: the set.
        closures: the J closures.
        open: (k,) each plan with nothing closed.
        best: () the best plan with nothing closed.
        closed: (k, J) each plan with each closure.
        replanned: (J,) the best plan for each closure, made with the closure known.
        has_goal: whether trips have a goal; otherwise every end counts as one.
        deadline: a trip that takes more steps has not reached the goal; 0 in models without trips.
    """

    plans: PlanSet
    closures: tuple[Closure, ...]
    open: Outcomes
    best: Outcomes
    closed: Outcomes
    replanned: Outcomes
    has_goal: bool
    deadline: int

    @property
    def has_trips(self) -> bool:
        """Whether the model has trips; otherwise only values are known."""
        return not bool(np.isnan(self.open.reaches).all())

    @property
    def best_reaches(self) -> Floats:
        """(J,) the chance that the surest plan of the set still reaches the goal."""
        return self.closed.reaches.max(axis=0)

    @property
    def best_values(self) -> Floats:
        """(J,) the value of the best plan of the set; NaN if none has one."""
        known = np.where(np.isnan(self.closed.values), -np.inf, self.closed.values).max(axis=0)
        return np.where(np.isfinite(known), known, np.nan)

    @property
    def survivors(self) -> Bools:
        """(k, J) the plans that reach the goal as surely as with nothing closed, and in at most `LONGER` times the steps.

        Where moves slip, a plan that keeps trying a closed door comes round it by luck, after a long time."""
        sure = (self.closed.reaches >= self.open.reaches[:, None] - NEVER) & (self.closed.reaches > NEVER)
        late = self.closed.steps > LONGER * self.open.steps[:, None]
        return sure & ~late

    @property
    def hopeless(self) -> Bools:
        """(J,) the closures with which no plan was found that reaches the goal."""
        again = np.nan_to_num(self.replanned.reaches)
        return (again <= NEVER) & (self.best_reaches <= NEVER) if self.has_trips else np.zeros(len(self.closures), bool)

    def hopeless_told(self) -> str:
        """What nobody can do anything about, in one sentence; empty if there is nothing."""
        names = [self.closures[j].name for j in np.flatnonzero(self.hopeless)]
        return f"No plan was found that {self._does} with one of these closed: {', '.join(names)}." if names else ""

    def sentence(self, j: int) -> str:
        """What happens if closure j (counted from 0) is closed, in plain words."""
        told = self._closed_told(self.closures[j])
        if not self.has_trips:
            return f"{told}, {self._values_told(j)}."
        if self.hopeless[j]:
            return f"{told}, no plan at all {self._does}."
        certain = self.closed.reaches[:, j] >= 1 - NEVER
        sure = np.flatnonzero(self.survivors[:, j] & certain)
        if len(sure):
            return f"{told}, {self._who(sure, 'still ')}{self._steps_told(sure, j)}."
        return f"{told}, {self._chance_told(j)}."

    def _closed_told(self, closure: Closure) -> str:
        """ "With the north passage closed", "With 'mud' closed" for a label, "If the action left fails"."""
        if closure.choices.any():
            return f"If the {closure.name} fails"
        name = quoted(closure.name) if closure.name in self.plans.mdp.labels else f"the {closure.name}"
        return f"With {name} closed"

    def _chance_told(self, j: int) -> str:
        """What the surest plan does, where none gets through for certain and in time."""
        reaches, steps = self.closed.reaches[:, j], self.closed.steps[:, j]
        if reaches.max() <= NEVER:
            would = f"; {self._made_for_it} would" if self.replanned.reaches[j] > NEVER else ""
            return f"no plan of the set {self._does}{would}"
        likely = int(np.lexsort((np.nan_to_num(steps, nan=np.inf), -reaches))[0])
        if reaches[likely] >= 1 - NEVER:
            return f"plan {likely + 1} {self._does} only by luck{self._steps_told(np.array([likely]), j)}"
        chance = percent(float(reaches[likely]))
        surest = np.flatnonzero([percent(float(other)) == chance for other in reaches])
        who, most = self._who(surest), " most often," if len(surest) < self.plans.k else ""
        told = f"{who}{most} in {chance} of all trips"
        again = float(self.replanned.reaches[j])
        return told if np.isnan(again) else f"{told}; {self._made_for_it} does in {percent(again)}"

    def _who(self, which: Ints, still: str = "") -> str:
        """ "plans 1 and 3 reach the goal", "every plan still reaches the goal"."""
        if len(which) == self.plans.k > 1:
            return f"every plan {still}{self._does}"
        return f"plan{'s' * (len(which) > 1)} {_numbers(which)} {still}{self._do if len(which) > 1 else self._does}"

    @property
    def _made_for_it(self) -> str:
        """The plan that was made with the closure known. It has the best value, but maybe not the best chance or length."""
        terms = terms_of(self.plans.mdp)
        return f"one made for the {terms.best} {terms.noun} with this closure"

    @property
    def _does(self) -> str:
        return "reaches the goal" if self.has_goal else "comes to an end"

    @property
    def _do(self) -> str:
        return "reach the goal" if self.has_goal else "come to an end"

    def _steps_told(self, sure: Ints, j: int) -> str:
        """The steps of plans that reach the goal for certain, and those of the plan made for it if it does so too."""
        steps, again = self.closed.steps[sure, j], float(self.replanned.steps[j])
        if np.isnan(steps).all() or np.isnan(again):
            return ""
        least = f", {'at best ' if len(sure) > 1 else ''}in {counted(float(np.nanmin(steps)), 'step')}"
        chance = float(self.replanned.reaches[j])
        if chance < 1 - NEVER:
            return f"{least}; {self._made_for_it} does in {percent(chance)} of all trips"
        return f"{least}; {self._made_for_it} takes {counted(again, 'step')}"

    def _values_told(self, j: int) -> str:
        terms, best, again = terms_of(self.plans.mdp), float(self.best_values[j]), float(self.replanned.values[j])
        if np.isnan(best):
            return f"no plan of the set has a {terms.noun}"
        told = f"the best plan of the set has a {terms.noun} of {self._value_told(best)}"
        return told if np.isnan(again) else f"{told}; {self._made_for_it} has {self._value_told(again)}"

    def told(self, outcomes: Outcomes, *at: int) -> str:
        """One outcome in a table: steps to the goal, the chance of reaching it where it may be missed, a value without trips."""
        reaches, steps, value = (float(row[at]) for row in (outcomes.reaches, outcomes.steps, outcomes.values))
        if np.isnan(reaches if self.has_trips else value):
            return UNKNOWN
        if not self.has_trips:
            return self._value_told(value)
        if reaches < 1 - NEVER:
            return percent(reaches)
        return f"{steps:.1f}" if steps < 100 else quantity(steps)

    def _value_told(self, value: float) -> str:
        """A value beside those of the plans with nothing closed."""
        known = np.abs(self.open.values[np.isfinite(self.open.values)])
        return number_beside(float(terms_of(self.plans.mdp).shown(value)), float(known.max(initial=0.0)))


def _numbers(plans: Ints) -> str:
    return joined([str(i + 1) for i in plans])


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
        trips = trips_of(mdp)
        deadline = 0 if trips is None else _deadline(trips, plans.policies)
        at_home = [_outcome(mdp, trips, criterion, policy, deadline) for policy in plans.policies]
        used = [_used(mdp, policy) for policy in plans.policies]
        done: list[Closure] = []

        def under(closure: Closure) -> tuple[list[tuple[float, float, float]], tuple[float, float, float]]:
            watch.check()
            model = closure.applied(mdp)
            ends, changed = trips_of(model), closure.failing(mdp) > 0
            row = [
                _outcome(model, ends, criterion, policy, deadline) if (own & changed).any() else known
                for policy, own, known in zip(plans.policies, used, at_home, strict=True)
            ]
            replanned = _replanned(model, ends, criterion, deadline)
            done.append(closure)
            watch.tell(len(done), len(chosen), float("nan"), "closing")
            return row, replanned

        threads = cores() if mdp.n_states >= THREADS_FROM else 1
        found = side_by_side(under, chosen, threads)
        rows, again = [row for row, _ in found], [replanned for _, replanned in found]
    columns = np.array(rows).transpose(1, 0, 2) if rows else np.empty((plans.k, 0, 3))
    return Survival(
        plans,
        chosen,
        _outcomes(np.array(at_home)),
        _outcomes(np.array(_replanned(mdp, trips, criterion, deadline))),
        _outcomes(columns),
        _outcomes(np.array(again).reshape(-1, 3)),
        trips is not None and trips.named_goal,
        deadline,
    )


def _outcomes(table: Floats) -> Outcomes:
    return Outcomes(*np.moveaxis(table, -1, 0))


def _used(mdp: MDP, policy: Floats) -> Bools:
    """(N,) the choices that a policy may ever take."""
    return (policy > 0) & reachable(chain(mdp, policy), mdp.start > 0)[mdp.choice_state]


def _deadline(trips: Trips, policies: Floats) -> int:
    """The number of steps after which a trip is too late: many times those of the slowest plan with nothing closed."""
    return ceil(PATIENCE * max(1.0, *(trips.of(policy).length for policy in policies)))


def _outcome(
    mdp: MDP, trips: Trips | None, criterion: Criterion, policy: Floats, deadline: int
) -> tuple[float, float, float]:
    """Chance of reaching the goal, steps to it, value."""
    reaches = steps = np.nan
    if trips is not None:
        trip = trips.of(policy)
        found = trip.within(deadline, trips.passing(trip))
        reaches, steps = found.chance, found.steps
        if trip.surely_ends and trips.restarts and criterion.discount == 1:
            # The long run is one trip after another.
            visits = np.zeros(mdp.n_states)
            visits[trip.states] = found.visits
            time = policy * visits[mdp.choice_state]
            return reaches, steps, float(criterion.values(mdp, (time / time.sum())[None])[0])
    try:
        value = float(criterion.values(mdp, criterion.occupancy(mdp, policy)[None])[0])
    except SolverError:
        value = np.nan
    return reaches, steps, value if np.isfinite(value) else np.nan


def _replanned(model: MDP, trips: Trips | None, criterion: Criterion, deadline: int) -> tuple[float, float, float]:
    """The outcome of the best plan for a closed model; NaN if none is found."""
    kept = reachable_from_start(model)
    part = model if kept.all() else model.restricted_to(kept)
    try:
        try:
            polytope = Polytope(part, criterion)
        except NotWeaklyAccessible:
            polytope = Polytope(_never_lost(part, trips_of(part)), criterion)
        _, best = criterion.settled(polytope)
        found = polytope.realised(best.vertex)[0]
    except ManywaysError:
        return np.nan, np.nan, np.nan
    policy = np.zeros(model.n_choices)
    policy[model.first_choice[:-1]] = 1.0  # whatever it does where it never is
    policy[kept[model.choice_state]] = found
    return _outcome(model, trips, criterion, policy, deadline)


def _never_lost(mdp: MDP, trips: Trips | None) -> MDP:
    """The model in which a trip begins again where it can no longer end, so that the long-run mean does not depend on the
    start."""
    if trips is None or not trips.restarts:
        return mdp
    ending = np.logical_or.reduceat(trips.ends > 0, mdp.first_choice[:-1])
    lost = levels_towards(mdp, ending) < 0
    if not lost.any() or (mdp.start[lost] > 0).any():
        return mdp
    return replace(mdp, transitions=mdp.leading_back(lost[mdp.choice_state]), source=None)
