"""`plan`: from a model to k diverse, near-optimal plans."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from importlib.metadata import version
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from manyways.arrays import Floats
from manyways.behaviour import Behaviour, StateActions
from manyways.errors import SettingError, check_number, check_whole
from manyways.formats import read
from manyways.mdp import MDP
from manyways.methods import Ascent, Halted, Method, Progress, Status, Trace, VertexAscent, Watch
from manyways.objective import Objective
from manyways.occupancy import check_policy, deterministic
from manyways.planset import PlanSet
from manyways.polytope import Average, Criterion, Polytope, Vertex
from manyways.verification import Findings, compare, examine


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
    keep: ArrayLike | None = None,
    avoid: ArrayLike | None = None,
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
        time_limit_s: search for so many seconds at most, and take the best so far. The first optimal policy and
            the verification at the end come on top.
        progress: called now and then with a `Progress`.
        keep: (m, N) policies that are to be among the k, such as some of an earlier set's.
        avoid: (m, N) policies that the new plans are to differ from as well, such as those they replace.

    Ctrl-C ends the search with the best so far, and the verification with an unknown gap; twice at once, it is a
    KeyboardInterrupt as ever. What `progress` raises comes out of here.

    Example:
        >>> plans = plan("nine-rooms:7", k=6, tradeoff=8.0)
        >>> plans.objective, plans.diversity
        >>> plan("nine-rooms:7", k=6, tradeoff=8.0, keep=plans.policies[:2], avoid=plans.policies[2:])
    """
    check_whole("k", k, 1)
    check_whole("seed", seed, 0)
    method = VertexAscent() if method is None else method
    criterion = Average() if criterion is None else criterion
    behaviour = StateActions() if behaviour is None else behaviour
    _check_kind("method", method, "run", "VertexAscent()")
    _check_kind("criterion", criterion, "discount", "Average()")
    _check_kind("behaviour", behaviour, "groups", "StateActions()")
    mdp = read(source, absorbing=criterion.discount < 1)
    _check_memory(mdp, int(k))
    kept, avoided = _given(mdp, int(k), method, keep, avoid)
    objective = Objective(mdp, 1.0 if tradeoff is None else check_number("the tradeoff", tradeoff, 0), behaviour)
    behaviour.groups(mdp)  # refuses labels that the model does not have

    watch = Watch(time_limit_s, progress)
    watch.tell(0, 1, float("nan"), "finding the optimum")
    polytope = Polytope(mdp, criterion)
    optimum = polytope.optimum  # before there is one, nothing could be handed out
    if tradeoff is None:
        objective = replace(objective, tradeoff=abs(optimum.value) or 1.0)
    with watch.minding_interrupts():
        ascent, realised = _search(method, polytope, objective, int(k), int(seed), watch, kept, avoided)
        best_first = np.argsort([-x @ mdp.reward for _, x in realised], kind="stable")
        policies, occupancies = (np.stack([realised[i][part] for i in best_first]) for part in (0, 1))
        found = _examine(polytope, objective, policies, occupancies, watch, ascent)
    plans = PlanSet(
        mdp=mdp,
        policies=policies,
        occupancies=occupancies,
        rewards=found.rewards,
        distances=found.distances,
        objective=found.objective,
        optimal_reward=optimum.value,
        gap=found.gap,
        status=Status.INTERRUPTED if watch.interrupted.is_set() else ascent.status,
        trace=ascent.trace,
        tradeoff=objective.tradeoff,
        criterion=criterion,
        behaviour=behaviour,
        method=method,
        seed=int(seed),
        seconds=watch.elapsed(),
        versions=library_versions(),
        kept=tuple(int(i) for i in np.flatnonzero(best_first < len(kept))),
        avoided=avoided,
    )
    return plans.with_certificate(compare(plans, found))


def plan_whole(*arguments: Any, **settings: Any) -> PlanSet:
    """`plan`, for those who have no use for half a search: to them, Ctrl-C is an exception."""
    plans = plan(*arguments, **settings)
    if plans.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return plans


def _search(
    method: Method,
    polytope: Polytope,
    objective: Objective,
    k: int,
    seed: int,
    watch: Watch,
    kept: Floats,
    avoided: Floats,
) -> tuple[Ascent, list[tuple[Floats, Floats]]]:
    """What the method says, and k (policy, occupancy) pairs, those kept first.

    Kept and avoided plans are members of the set that is searched and do not move; the avoided ones are left out of
    the answer.
    """
    mdp = polytope.mdp
    given = [(policy, polytope.criterion.occupancy(mdp, policy)) for policy in (*kept, *avoided)]
    with polytope.pausing(watch.check):
        try:
            if isinstance(method, VertexAscent):
                fixed = [Vertex(x, float("nan"), float("nan"), None) for _, x in given]
                ascent = method.run(polytope, objective, k + len(avoided), seed, watch, fixed)
            else:
                ascent = method.run(polytope, objective, k, seed, watch)
        except Halted as end:  # a method that does not see to its own end leaves nothing but the optimum
            ascent = Ascent(np.stack([polytope.optimum.occupancy] * (k - len(kept))), end.status, Trace.of([]))
    if ascent.choices is None:
        new = [polytope.realise(row) for row in ascent.point]
    else:  # vertices: their policies are known, and each has one recurrent class
        new = [(deterministic(mdp, own), x) for own, x in zip(ascent.choices, ascent.point, strict=True)]
    return ascent, given[: len(kept)] + new


def _examine(
    polytope: Polytope, objective: Objective, policies: Floats, occupancies: Floats, watch: Watch, ascent: Ascent
) -> Findings:
    """Examine what was found. Plans are worth their gap even if time is up, unless somebody interrupts (once more)."""
    reached = float(ascent.trace.objective[-1]) if len(ascent.trace) else float("nan")
    if ascent.status is Status.INTERRUPTED:  # that press has had its answer
        watch.interrupted.clear()

    def tell(done: int) -> None:
        watch.tell(done, len(policies), reached, "verifying")
        watch.check_interrupt()

    with polytope.pausing(watch.check_interrupt):
        return examine(polytope, objective, policies, occupancies, tell)


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


def _given(mdp: MDP, k: int, method: Method, keep: ArrayLike | None, avoid: ArrayLike | None) -> tuple[Floats, Floats]:
    """The policies to keep and to avoid, if `k` plans and the `method` allow for them."""
    kept, avoided = _policies(mdp, "keep", keep), _policies(mdp, "avoid", avoid)
    if len(kept) >= k:
        raise SettingError(f"{len(kept)} plans are kept, so k must be at least {len(kept) + 1}, found {k}")
    if len(kept) + len(avoided) and not isinstance(method, VertexAscent):
        raise SettingError(f"to keep or avoid plans, the method must be VertexAscent(), found {method!r}")
    return kept, avoided


def _policies(mdp: MDP, what: str, given: ArrayLike | None) -> Floats:
    """(m, N) the policies that were given, none by default."""
    if given is None:
        return np.empty((0, mdp.n_choices))
    array = np.asarray(given, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] != mdp.n_choices:
        raise SettingError(
            f"{what} must be an (m, {mdp.n_choices}) array with a policy in each row, found shape {array.shape}"
        )
    return np.stack([check_policy(mdp, row) for row in array]) if len(array) else array


def _check_kind(what: str, value: object, verb: str, example: str) -> None:
    if isinstance(value, type) or not hasattr(value, verb):
        raise SettingError(f"the {what} must be an object such as {example}, found {value!r}")


@cache
def library_versions() -> dict[str, str]:
    """The versions that a result depends on."""
    return {"python": platform.python_version()} | {name: version(name) for name in ("manyways", "numpy", "scipy")}
