"""One trial of a study: settings as plain data in, one row of plain data out.

A trial is known by its settings alone, so it can be computed anywhere, in any order, and found again: the same
trial gives the same row to the last bit, but for the time it took (`TIMING`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

from manyways.behaviours import StateActions
from manyways.formats import read
from manyways.methods import FrankWolfe, Method, ProjectedGradient, VertexAscent, Watch
from manyways.methods.theory import diameter_bound, frank_wolfe_bound, lipschitz_constant, projected_gradient_bound
from manyways.model.mdp import MDP
from manyways.objectives import MeanDivergence
from manyways.planning import plan_or_interrupt
from manyways.polytope import Polytope, largest_at_least
from manyways.studies.routes import routes

Row = dict[str, Any]

METHODS: dict[str, Method] = {
    "frank-wolfe": FrankWolfe(),
    "vertex-ascent": VertexAscent(),
    "projected-gradient": ProjectedGradient(),
    "projected-gradient-slsqp": ProjectedGradient(rough_iterations=10),
}
"""The methods that studies compare, with the settings of the paper's experiments."""

TIMING = "seconds"
"""The one column that differs from run to run."""


@dataclass(frozen=True)
class Trial:
    """What to compute: the name of a kind of work in `WORK`, and its settings, all of them JSON."""

    work: str
    settings: Mapping[str, Any]

    @property
    def key(self) -> str:
        text = json.dumps([self.work, self.settings], sort_keys=True, allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()[:24]


def perform(trial: Trial, model: MDP | None = None) -> Row:
    """Settings and results in one row; if the trial fails, settings and `error`. `model` stands in for the source."""
    # One thread for linear algebra: sums over several come out differently in the last bits.
    with _prepared().limit(limits=1):
        try:
            return {**trial.settings, **WORK[trial.work](trial.settings, model), "error": None}
        except Exception as error:
            return {**trial.settings, "error": f"{type(error).__name__}: {error}"}


@cache
def _prepared() -> ThreadpoolController:
    """Load what is compiled once per process, so that no trial's time includes it, and find the thread pools."""
    plan_or_interrupt("four-rooms:0", 2, 8.0)
    return ThreadpoolController()


def plan_row(settings: Mapping[str, Any], model: MDP | None) -> Row:
    """Plan once, with `source`, `k`, `tradeoff`, `seed` and `method`."""
    mdp = read(settings["source"]) if model is None else model
    how = METHODS[settings["method"]]
    plans = plan_or_interrupt(mdp, settings["k"], settings["tradeoff"], seed=settings["seed"], method=how)
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
        TIMING: float(plans.trace.seconds[-1]),
    }


def theory_row(settings: Mapping[str, Any], _: MDP | None) -> Row:
    """Run a method on the restricted domain of a small world, where the theorems hold, and compute their bounds.

    f* is replaced by the best value that twenty Frank-Wolfe runs find: at most f*, so the bounds are only stricter.
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


WORK: dict[str, Callable[[Mapping[str, Any], MDP | None], Row]] = {"plan": plan_row, "theory": theory_row}
