"""`plan`: from a model to k diverse, near-optimal plans."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from os import PathLike

import numpy as np

from manyways.behaviour import Behaviour, StateActions
from manyways.errors import SettingError, check_number, check_whole
from manyways.formats import read
from manyways.mdp import MDP
from manyways.methods import Method, Progress, VertexAscent, Watch
from manyways.objective import Objective
from manyways.occupancy import deterministic
from manyways.planset import PlanSet
from manyways.polytope import Average, Criterion, Polytope
from manyways.verification import compare, examine


def plan(
    source: MDP | str | PathLike[str],
    k: int = 4,
    tradeoff: float | None = None,
    *,
    seed: int = 0,
    method: Method | None = None,
    criterion: Criterion | None = None,
    behaviour: Behaviour | None = None,
    time_limit_s: float | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> PlanSet:
    """Find k policies that are all near-optimal and really different.

    Args:
        source: a model, or anything that `read` takes.
        k: how many plans. With k = 1 this is plain optimal planning.
        tradeoff: how much a nat of mean pairwise divergence is worth in reward per step. By default
            as much as the optimal reward itself (its absolute value; 1 if that is zero).
        seed: every random draw comes from it; the same seed gives the same plans.
        method: how to search; `VertexAscent()` by default.
        criterion: `Average()` by default, or `Discounted(0.99)`.
        behaviour: what counts as different; `StateActions()` by default.
        time_limit_s: stop after so many seconds, with the best so far.
        progress: called now and then with a `Progress`.

    Example:
        >>> plans = plan("nine-rooms:7", k=6, tradeoff=8.0)
        >>> plans.objective, plans.diversity
    """
    check_whole("k", k, 1)
    check_whole("seed", seed, 0)
    method = VertexAscent() if method is None else method
    behaviour = StateActions() if behaviour is None else behaviour
    _check_kind("method", method, "run", "VertexAscent()")
    _check_kind("criterion", criterion or Average(), "discount", "Average()")
    _check_kind("behaviour", behaviour, "groups", "StateActions()")
    mdp = read(source, absorbing=(criterion or Average()).discount < 1)
    _check_memory(mdp, int(k))
    watch = Watch(time_limit_s, progress)
    polytope = Polytope(mdp, Average() if criterion is None else criterion)
    if tradeoff is None:
        tradeoff = abs(polytope.optimum.value) or 1.0
    objective = Objective(mdp, check_number("the tradeoff", tradeoff, 0), behaviour)

    ascent = method.run(polytope, objective, int(k), int(seed), watch)
    if ascent.choices is None:
        realised = [polytope.realise(row) for row in ascent.point]
    else:  # vertices: their policies are known, and each has one recurrent class
        realised = [(deterministic(mdp, own), x) for own, x in zip(ascent.choices, ascent.point, strict=True)]
    best_first = np.argsort([-x @ mdp.reward for _, x in realised], kind="stable")
    policies, occupancies = (np.stack([realised[i][part] for i in best_first]) for part in (0, 1))
    reached = float(ascent.trace.objective[-1]) if len(ascent.trace) else float("nan")
    found = examine(
        polytope, objective, policies, occupancies, lambda done: watch.tell(done, int(k), reached, "verifying")
    )
    plans = PlanSet(
        mdp=mdp,
        policies=policies,
        occupancies=occupancies,
        rewards=found.rewards,
        distances=found.distances,
        objective=found.objective,
        optimal_reward=polytope.optimum.value,
        gap=found.gap,
        status=ascent.status,
        trace=ascent.trace,
        tradeoff=float(tradeoff),
        criterion=polytope.criterion,
        behaviour=behaviour,
        method=method,
        seed=int(seed),
        seconds=watch.elapsed(),
        versions=library_versions(),
    )
    return plans.with_certificate(compare(plans, found))


def memory_needed(mdp: MDP, k: int) -> int:
    """Bytes that planning will take at its peak, the model not counted: measured, then rounded up.

    Per choice some twenty numbers in work and five per plan (occupancy, policy, gradient and copies), per state
    and transition the oracle's rows, values and order, and the transitions once more with their states renumbered.
    """
    return 8 * (mdp.n_choices * (20 + 5 * k) + mdp.n_states * (24 + 4 * k)) + 24 * mdp.transitions.nnz


def _check_memory(mdp: MDP, k: int) -> None:
    try:
        free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # a system that does not tell
        return
    needed = memory_needed(mdp, k)
    if needed > free:
        raise SettingError(
            f"planning k={k} for {mdp.n_choices:,} choices needs about {needed / 2**30:.1f} GiB, "
            f"{free / 2**30:.1f} GiB are free; ask for fewer plans or a smaller model"
        )


def _check_kind(what: str, value: object, verb: str, example: str) -> None:
    if isinstance(value, type) or not hasattr(value, verb):
        raise SettingError(f"the {what} must be an object such as {example}, found {value!r}")


@cache
def library_versions() -> dict[str, str]:
    """The versions that a result depends on."""
    return {"python": platform.python_version()} | {name: version(name) for name in ("manyways", "numpy", "scipy")}
