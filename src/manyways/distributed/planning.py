"""`plan_together`: what `planning.plan` does, by several processes of which each has a part of the model.

The method, the objective, the limits and their floors are those of one machine: they compute with shared vectors. All processes
must make the same call; they take the same decisions, because every number that decides something is computed together.
"""

from __future__ import annotations

import resource
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import ClassVar, cast

import numpy as np

from manyways.behaviours import BEHAVIOURS, Behaviour, LinearMap, StateActions
from manyways.distributed.checks import certificate_checks, gap_of, values_of
from manyways.distributed.feasible_set import SharedPolytope, SharedWatch, compared_by
from manyways.distributed.part import ModelPart
from manyways.distributed.plan_set import ModelSummary, SharedPlanSet
from manyways.distributed.preferences import preferences_of, representative_on
from manyways.distributed.team import Team
from manyways.errors import SettingError, check_integer
from manyways.files import check_writable
from manyways.kernels.threads import one_blas_thread
from manyways.methods import Ascent, Halted, Progress, Status, VertexAscent
from manyways.methods.climb import SAME
from manyways.model.mdp import MDP
from manyways.objectives import (
    DeterminantDivergence,
    LeastDivergence,
    MeanDivergence,
    Objective,
    Representative,
    SetObjective,
    SpreadDivergence,
)
from manyways.planning import library_versions
from manyways.plans import Certificate
from manyways.plans.checker import unit_for
from manyways.plans.verification import PLAIN_EQUAL
from manyways.polytope import Average, Criterion
from manyways.tasks import Task, asked_limits, settled_task
from manyways.types import Floats

FEWEST = 20
"""States. Methods treat smaller models in ways that need the whole model."""


USABLE = (MeanDivergence, LeastDivergence, SpreadDivergence, DeterminantDivergence, Representative)
"""Objectives that need sums over choices only, and distances between plans."""


class _SharedAscent(VertexAscent):
    """The default method without its last step, which looks for other plans in place of equal ones choice by choice."""

    parts_copies: ClassVar[bool] = False


def plan_together(
    path: str | Path,
    k: int = 4,
    tradeoff: float | None = None,
    *,
    slack: float | None = None,
    floor: float | None = None,
    seed: int = 0,
    method: VertexAscent | None = None,
    objective: Objective | None = None,
    criterion: Criterion | None = None,
    behaviour: Behaviour | None = None,
    time_limit_s: float | None = None,
    progress: Callable[[Progress], None] | None = None,
    out: Path | None = None,
    team: Team | None = None,
) -> SharedPlanSet:
    """Find k plans for a model in an HDF5 file, of which each process reads only its part.

    By default the mean divergence is maximised, with every plan within 10 % of the best.

    Args:
        path: of the model.
        k, tradeoff, slack, floor, seed, criterion, behaviour, time_limit_s, progress: as for `manyways.plan`; the criterion is
            the average or discounted, the behaviour compares choices, states or neighbourhoods, and only the first process
            calls `progress`.
        method: its starts and stages are used; exchanges of single actions need the whole model.
        objective: instead of a tradeoff: one of diversity, such as `LeastDivergence()`, or `Representative()`.
        out: where to write the plan file, if anywhere.
        team: the processes; by default all that mpirun started.
    """
    team = Team() if team is None else team
    k, seed = check_integer("k", k, 1), check_integer("seed", seed, 0)
    if objective is not None and tradeoff is not None:
        raise SettingError("give either a tradeoff or an objective, not both: the tradeoff is that of MeanDivergence")
    aim = _usable(MeanDivergence(tradeoff) if objective is None else objective)
    behaviour = StateActions() if behaviour is None else BEHAVIOURS.check(behaviour)
    criterion = Average() if criterion is None else criterion
    given = VertexAscent() if method is None else method
    search = _SharedAscent(given.starts, given.stages, exchanges=False, workers=1)
    asked = asked_limits(slack, floor, None, False)
    if out is not None:
        team.only_first(lambda: check_writable(out))
    watch = SharedWatch(time_limit_s, progress if team.rank == 0 else None, team=team)
    with watch.catching_interrupts(), one_blas_thread():
        watch.tell(0, 1, float("nan"), "reading")
        part = ModelPart(Path(path), team)
        aim = preferences_of(aim, part) if isinstance(aim, Representative) else aim
        if part.n_states < FEWEST:
            raise SettingError(f"{part.name} has {part.n_states} states; plan for less than {FEWEST} on one machine")
        compared = compared_by(behaviour, part)
        watch.tell(0, 1, float("nan"), "finding the best plan")
        polytope = SharedPolytope(part, criterion)
        with polytope.pausing(lambda: _give_up(watch)):  # without the best plan there is nothing to return
            task = settled_task(polytope, aim, asked, search)
            _ = task.polytope.optimum
        watch.tell(0, 1, float("nan"), "drawing preferences" if isinstance(task.aim, Representative) else "planning")
        worth = _worth(task.aim, part, compared)
        with task.polytope.pausing(watch.check):
            ascent = search.run(task.polytope, worth, k, seed, watch)
        plans = _checked(task, worth, ascent, watch, behaviour, seed, search)
        plans = replace(plans, derived=tradeoff is None and getattr(objective, "tradeoff", None) is None, asked=k)
        if out is not None:
            watch.tell(k, k, plans.objective, "writing")
            digest = plans.save(out)
            plans = replace(plans, mdp=replace(plans.mdp, digest=digest), memory_mib=_memory(team))
    return plans


def _usable(aim: Objective) -> Objective:
    """The objective, if it can be computed on several machines."""
    if not isinstance(aim, USABLE):
        words = ", ".join(kind.__name__ for kind in USABLE)
        raise SettingError(f"{aim!r:.100} cannot be computed on several machines: use one of {words}")
    return aim


def _worth(aim: Objective, part: ModelPart, compared: LinearMap) -> SetObjective:
    if isinstance(aim, Representative):
        return representative_on(aim, part, compared)
    return aim.on(cast(MDP, part), compared)


def _give_up(watch: SharedWatch) -> None:
    try:
        watch.check_interrupt()
    except Halted:
        raise KeyboardInterrupt from None


def _checked(
    task: Task,
    worth: SetObjective,
    ascent: Ascent,
    watch: SharedWatch,
    behaviour: Behaviour,
    seed: int,
    search: VertexAscent,
) -> SharedPlanSet:
    """The plans, best first, with what is proved about them; only a new interrupt ends the computation of the gap early."""
    polytope = cast(SharedPolytope, task.polytope)
    part, team = polytope.part, polytope.part.team
    values = np.asarray(task.criterion.values(polytope.mdp, ascent.point))
    best_first = np.argsort(-values, kind="stable")
    x, policies = ascent.point[best_first], np.asarray(ascent.choices)[best_first]
    checks = certificate_checks(polytope, x, policies, task.best)
    status = ascent.status
    if status is Status.CONVERGED and any(_same(x[i], x[j]) for i, j in combinations(range(len(x)), 2)):
        status = Status.FEWER_PLANS
    if status is Status.INTERRUPTED:  # that interrupt has ended the search, and is done with
        watch.interrupted.clear()
    watch.tell(0, len(x), worth.value(x), "verifying")
    gap, values_of_gap, multipliers = np.inf, None, np.zeros((len(x), len(polytope.floors)))
    with polytope.pausing(watch.check_interrupt):
        try:
            gap, answers = gap_of(polytope, worth.gradient(x), x, policies)
            # It is computed in plain arithmetic, and must hold where rounding errors are counted.
            earned = float(polytope.ceiling.occupancy @ np.abs(part.reward))
            gap += PLAIN_EQUAL * (earned + worth.diversity_weight)
            values_of_gap = [values_of(answer) / unit_of(part) for answer in answers]
            multipliers = np.stack(
                [np.zeros(len(polytope.floors)) if a.multipliers is None else a.multipliers for a in answers]
            )
        except Halted:  # the plans are valid; only how good they are together stays unknown
            status = Status.INTERRUPTED
    ceiling, certificate = polytope.ceiling, Certificate(checks)
    return SharedPlanSet(
        mdp=ModelSummary(part.name, part.n_states, part.n_choices, part.costs),
        part=part,
        policies=policies,
        occupancies=x,
        rewards=values[best_first],
        distances=worth.distances(x),
        objective=worth.value(x),
        optimal_reward=task.best,
        gap=gap,
        status=Status.NOT_VERIFIED if status.converged and not certificate.ok else status,
        trace=ascent.trace,
        maximised=task.aim,
        criterion=task.criterion,
        behaviour=behaviour,
        method=VertexAscent(search.starts, search.stages, exchanges=False),
        seed=seed,
        seconds=watch.elapsed(),
        versions=library_versions() | {"processes": str(team.size)},
        certificate=certificate,
        limits=task.limits,
        vectors={
            "best": ceiling.choices,
            "best_x": ceiling.occupancy,
            "optimum": values_of(ceiling) / unit_of(part),
            "gap": values_of_gap,
        },
        multipliers={"optimum": np.zeros(0), "gap": multipliers},
        memory_mib=_memory(team),
    )


def unit_of(part: ModelPart) -> float:
    """The unit in which the vectors of a proof are given; see `plans.checker.ExactModel`."""
    return unit_for(float(np.abs(part.reward).max()))


def _same(a: Floats, b: Floats) -> bool:
    return float(np.abs(a - b).max()) <= SAME


def _memory(team: Team) -> tuple[int, ...]:
    """The largest memory that each process has had, in MiB."""
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return tuple(team.comm.allgather(int(own)))
