"""One trial of a study: settings as plain data in, one row of plain data out.

A trial is identified by its settings alone, so it can be computed anywhere, in any order, and found again. The same
trial always gives the same row to the last bit, except for the time it took (`TIMING`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from manyways.behaviours import StateActions
from manyways.errors import SettingError
from manyways.formats import read
from manyways.methods import METHODS, FrankWolfe, Method, ProjectedGradient, VertexAscent, Watch
from manyways.methods.theory import diameter_bound, frank_wolfe_bound, lipschitz_constant, projected_gradient_bound
from manyways.model.mdp import MDP
from manyways.objectives import MeanDivergence
from manyways.planning import plan_or_interrupt
from manyways.polytope import Polytope, largest_at_least
from manyways.studies.preference_trials import persons_row, rounds_row, set_row
from manyways.studies.routes import routes
from manyways.studies.team_trials import team_row

Row = dict[str, Any]

VARIANTS: dict[str, Method] = {"projected-gradient-slsqp": ProjectedGradient(rough_iterations=10)}
"""Methods of the paper's experiments whose settings are not the defaults. All others have their registered names."""

TIMING = "seconds"
"""The only column that differs from run to run."""


@dataclass(frozen=True)
class Trial:
    """What to compute.

    Attributes:
        work: the kind of work, a key of `WORK`.
        settings: its settings, all of them JSON. `method`, if there is one, is a name that `method_named` knows.
    """

    work: str
    settings: Mapping[str, Any]

    @property
    def key(self) -> str:
        text = json.dumps([self.work, self.settings], sort_keys=True, allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()[:24]


def method_named(name: str) -> Method:
    """The method with this name in studies: one of `VARIANTS`, or a registered method with its default settings."""
    if name in VARIANTS:
        return VARIANTS[name]
    kind = METHODS.named(name)
    try:
        return kind()
    except TypeError as error:
        raise SettingError(f"the method {name} cannot be used in a study without settings: {error}") from None


def perform(trial: Trial, *, model: MDP | None = None, method: Method | None = None) -> Row:
    """Compute a trial.

    Args:
        trial: what to compute.
        model: replaces the model that the settings name.
        method: replaces the method that the settings name, which may be registered in another process only.

    Returns:
        A row with the settings, the results, and `error`: None, or, if the trial failed, its message instead of results.
    """
    warm_up()
    # One thread for linear algebra: sums over several threads differ in the last bits. The limit applies only to
    # libraries that are loaded already, so it comes after the warm-up.
    with threadpool_limits(limits=1):
        try:
            return {**trial.settings, **WORK[trial.work](trial.settings, model, method), "error": None}
        except Exception as error:
            return {**trial.settings, "error": f"{type(error).__name__}: {error}"}


@cache  # once per process
def warm_up() -> None:
    """Load the compiled code of this package's methods, so that no trial's time includes it.

    Numba loads a compiled function when it is first called, and the projection's solver is imported when it is first
    used. Hence this runs two short plans, which together use all of them.
    """
    for method in (VertexAscent(), ProjectedGradient(iterations=0)):
        plan_or_interrupt("four-rooms:0", 2, 8.0, method=method)


def plan_row(settings: Mapping[str, Any], model: MDP | None, method: Method | None) -> Row:
    """Plan once, with `source`, `k`, `tradeoff`, `seed` and `method`."""
    mdp = read(settings["source"]) if model is None else model
    method = method_named(settings["method"]) if method is None else method
    plans = plan_or_interrupt(mdp, settings["k"], settings["tradeoff"], seed=settings["seed"], method=method)
    found = routes(mdp, plans.policies)
    return {
        "reward": float(plans.rewards.mean()),
        "lowest_reward": float(plans.rewards.min()),
        "diversity": plans.diversity,
        "objective": plans.objective,
        "optimal_reward": plans.optimal_reward,
        "gap": plans.gap,
        "iterations": len(plans.trace),
        "status": plans.status.name,
        "verified": plans.certificate is not None and plans.certificate.ok,
        "distinct_routes": None if found is None else len({route for route in found if route is not None}),
        "plans_at_goal": None if found is None else sum(route is not None for route in found),
        "routes": None if found is None else " | ".join("stays away" if r is None else r or "direct" for r in found),
        # Without verification; a method that keeps no trace has only the total.
        TIMING: float(plans.trace.seconds[-1]) if len(plans.trace) else plans.seconds,
    }


def theory_row(settings: Mapping[str, Any], _model: MDP | None, _method: Method | None) -> Row:
    """Run a method on the restricted domain of a small world, where the theorems hold, and compute their bounds.

    The maximum f* is not known. It is replaced by the best value that twenty Frank-Wolfe runs find, which is at most
    f*, so that the computed bounds are at most the theorems' bounds.
    """
    mdp, k, tradeoff = read(settings["source"]), settings["k"], settings["tradeoff"]
    objective = MeanDivergence(tradeoff).on(mdp, StateActions().on(mdp))
    polytope = Polytope(mdp, at_least=largest_at_least(mdp) / 2)
    lipschitz = lipschitz_constant(tradeoff, polytope.at_least)
    frank_wolfe = settings["method"] == "frank-wolfe"
    last = settings["iterations"]
    method = (
        FrankWolfe(iterations=last, tolerance=0.0)
        if frank_wolfe
        else ProjectedGradient(iterations=last, steps=1 / lipschitz, tolerance=0.0)
    )
    run = method.run(polytope, objective, k, settings["seed"], Watch())
    others = (FrankWolfe(tolerance=0.0).run(polytope, objective, k, seed, Watch()).point for seed in range(20))
    improvement = max(objective.value(x) for x in (run.point, *others)) - float(run.trace.objective[0])
    bound = (
        frank_wolfe_bound(improvement, diameter_bound(k), lipschitz, len(run.trace) - 1)
        if frank_wolfe
        else projected_gradient_bound(improvement, run.trace.step, lipschitz)
    )
    return {
        "delta": polytope.at_least,
        "lipschitz": lipschitz,
        "measured": np.minimum.accumulate(run.trace.measure).tolist(),
        "bound": bound.tolist(),
        TIMING: float(run.trace.seconds[-1]),
    }


Work = Callable[[Mapping[str, Any], MDP | None, Method | None], Row]


def _of_settings(row: Callable[[Mapping[str, Any]], Row]) -> Work:
    """Work that depends on its settings alone."""
    return lambda settings, _model, _method: row(settings)


WORK: dict[str, Work] = {
    "plan": plan_row,
    "theory": theory_row,
    "persons": _of_settings(persons_row),
    "set": _of_settings(set_row),
    "rounds": _of_settings(rounds_row),
    "team": _of_settings(team_row),
}
