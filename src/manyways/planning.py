"""`plan`: from a model to k diverse, near-optimal plans."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from math import inf
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from manyways.behaviours import BEHAVIOURS, Behaviour, StateActions
from manyways.cluster import on_cluster
from manyways.errors import SettingError, check_integer
from manyways.formats import read
from manyways.kernels.threads import one_blas_thread
from manyways.methods import METHODS, Ascent, Halted, Method, Progress, Status, Trace, VertexAscent, Watch
from manyways.methods.clones import without_clones
from manyways.model.mdp import MDP
from manyways.model.occupancy import check_policy
from manyways.objectives import OBJECTIVES, LeastDivergence, MeanDivergence, Objective, SetObjective
from manyways.plans import Certificate, Plan, PlanSet, Policy
from manyways.plans.checker import ProvedSet, SetProof
from manyways.plans.proofs import prove_set
from manyways.plans.verification import Claim, Findings, compared_with, examine
from manyways.polytope import CRITERIA, Criterion, Polytope, Vertex, shortest_way
from manyways.tasks import Task, asked_limits, default_aim, default_criterion, settled_task
from manyways.types import Floats, Ints

GivenPlans = PlanSet | Sequence[Plan | Policy] | ArrayLike
"""Plans to keep or avoid; as an array, (m, N) policies."""
WELL_KNOWN = 1e-10
"""An occupancy that is off by no more, in the 1-norm, and an optimum that is, relative to its size, stay as they are."""


def plan(
    source: MDP | str | PathLike[str],
    k: int = 4,
    tradeoff: float | None = None,
    *,
    slack: float | None = None,
    floor: float | None = None,
    longer: float | None = None,
    randomised: bool = False,
    fewer: bool = False,
    seed: int = 0,
    objective: Objective | None = None,
    method: Method | None = None,
    criterion: Criterion | None = None,
    behaviour: Behaviour | None = None,
    time_limit_s: float | None = None,
    progress: Callable[[Progress], None] | None = None,
    keep: GivenPlans | None = None,
    avoid: GivenPlans | None = None,
    cluster: str | None = None,
) -> PlanSet:
    """Find k policies that are all near-optimal and really different.

    By default every plan is within 10 % of the best one (where the best value is close to zero, within another limit, which
    `PlanSet.guarantee` says), and the set is the one from which a person whose preferences nobody wrote down gets most
    (`Representative`). With a `tradeoff` alone, nothing but the paper's objective decides how
    good each plan is.

    Args:
        source: a model, or anything that `read` takes.
        k: how many plans. With k = 1 this is plain optimal planning.
        tradeoff: the paper's objective instead: how much a nat of mean pairwise divergence is worth in reward per step;
            `math.inf` for nothing but diversity within the limits.
        slack: every plan has at least the best value minus this share of it: 0.1 for 10 %. Refused where the best value is
            close to zero.
        floor: every plan has at least this value. Instead of `slack`.
        longer: every plan's mean way to the goal is at most this share longer than the shortest one. Needs a goal that
            leads back to the start.
        randomised: whether plans may randomise where that is better within the limits.
        fewer: whether to return fewer than k plans where no further plan is really different from the others (nearer than
            `behaviour.apart`, 0.1 nats by default); `PlanSet.ways` says so. Otherwise k plans are returned even if some of
            them are equal, which their titles say.
        seed: every random draw comes from it; the same seed gives the same plans.
        objective: what to maximise: by default `Representative()`, or `MeanDivergence(tradeoff)` if a tradeoff or one of
            the paper's methods is given.
        method: how to search; `VertexAscent()` by default.
        criterion: what the value of a plan is: `Average()`, `Episodic()` or `Discounted(0.99)`. By default per episode
            for models with ends of episodes, such as Gymnasium environments, and per step for others.
        behaviour: what counts as different; `StateActions()` by default.
        time_limit_s: end the search after this many seconds with the best plans so far. Finding the best plan and the
            verification at the end are not limited by it.
        progress: called now and then with a `Progress`. An exception that it raises ends the call.
        keep: plans that must be among the k, such as some of an earlier set: a `PlanSet`, a list of `Plan` or `Policy`, or
            (m, N) policies. They may be worse than the limits allow (`PlanSet.kept_below`).
        avoid: plans, given in the same ways, from which the new plans must differ as well, such as those that they replace.
        cluster: address of a Dask scheduler, whose workers share the starts of `VertexAscent`; the plans do not depend on it.

    Ctrl-C ends the search with the best plans so far. Pressed during verification, it leaves the gap unknown. Pressed
    twice in a row, it raises KeyboardInterrupt.

    Example:
        >>> plans = plan("nine-rooms:7", k=6, slack=0.05)
        >>> plans.rewards.min() >= 0.95 * plans.optimal_reward
        True
        >>> plan("nine-rooms:7", k=6, tradeoff=8.0, keep=[plans[0], plans[1]], avoid=plans.policies[2:])
    """
    k, seed = check_integer("k", k, 1), check_integer("seed", seed, 0)
    if objective is not None and tradeoff is not None:
        raise SettingError("give either a tradeoff or an objective, not both: the tradeoff is that of MeanDivergence")
    method = VertexAscent() if method is None else METHODS.check(method)
    if cluster is not None:
        _check_cluster(cluster, method)
    if objective is None:
        aim = default_aim(method)() if tradeoff is None else MeanDivergence(tradeoff)
    else:
        aim = OBJECTIVES.check(objective)
    behaviour = StateActions() if behaviour is None else BEHAVIOURS.check(behaviour)
    asked = asked_limits(slack, floor, longer, randomised, method)
    discounted = criterion is not None and CRITERIA.check(criterion).discount < 1
    mdp = read(source, absorbing=discounted)
    criterion = default_criterion(mdp) if criterion is None else criterion
    _check_memory(mdp, k)
    kept, avoided = _given(mdp, k, method, keep, avoid)
    titles = [] if keep is None else _titles(keep)
    compared = behaviour.on(mdp)

    watch = Watch(time_limit_s, progress)
    watch.tell(0, 1, float("nan"), "finding the best plan")
    # Without the best plan there is nothing to return, so it is not limited in time.
    task = settled_task(Polytope(mdp, criterion), aim, asked, method)
    worth = task.aim.on(task.polytope.mdp, compared)
    with on_cluster(cluster), watch.catching_interrupts(), one_blas_thread():
        ascent, realised, away = _search(method, task.polytope, worth, k, seed, watch, kept, avoided)
        like, derived = None, tradeoff is None and (objective is None or getattr(objective, "tradeoff", 0.0) is None)
        if derived or fewer:
            least = LeastDivergence(inf).on(task.polytope.mdp, worth.compared)
            realised, like = _different(
                task, least, realised, len(kept), away, seed, watch, behaviour.apart if fewer else None
            )
        values = task.criterion.values(mdp, np.stack([x for _, x in realised]))
        best_first = np.argsort(-values, kind="stable")
        policies, occupancies = (np.stack([realised[i][part] for i in best_first]) for part in (0, 1))
        stayed = tuple(int(i) for i in np.flatnonzero(best_first < len(kept)))
        known = _checked(mdp, task, worth, policies, occupancies, stayed, watch, ascent)
    occupancies, found = known.occupancies, known.found
    distances, status = worth.distances(occupancies), ascent.status
    if status is Status.FEWER_PLANS and fewer and (distances + np.eye(len(distances)) > 0).all():
        status = Status.CONVERGED  # plans that were equal are left out
    plans = PlanSet(
        mdp=mdp,
        policies=policies,
        occupancies=occupancies,
        rewards=task.criterion.values(mdp, occupancies),
        distances=distances,
        objective=worth.value(occupancies),
        optimal_reward=known.optimum,
        gap=found.gap,
        status=Status.INTERRUPTED if watch.interrupted.is_set() else status,
        trace=ascent.trace,
        maximised=task.aim,
        criterion=task.criterion,
        behaviour=behaviour,
        method=method,
        seed=seed,
        seconds=watch.elapsed(),
        versions=library_versions(),
        proof=known.proof,
        kept=stayed,
        kept_titles=tuple(titles[best_first[i]] for i in stayed) if any(titles) else (),
        avoided=avoided,
        limits=task.limits,
        asked=k,
        like=None if like is None or like < 0 else int(np.flatnonzero(best_first == like)[0]),
        fewer=fewer,
        derived=derived,
    )
    # Where nothing is proved exactly, the claims are what was found, and comparing them would prove nothing.
    claims = compared_with(found, plans) if found.exact else ()
    return _certified(plans, Certificate((*found.checks, *claims)))


def _certified(plans: PlanSet, certificate: Certificate) -> PlanSet:
    """The plans with their certificate; if it fails they are never called converged."""
    failed = plans.status.converged and not certificate.ok
    return replace(plans, certificate=certificate, status=Status.NOT_VERIFIED if failed else plans.status)


def plan_or_interrupt(*arguments: Any, **settings: Any) -> PlanSet:
    """`plan` for callers that need the whole result: Ctrl-C raises KeyboardInterrupt."""
    plans = plan(*arguments, **settings)
    if plans.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return plans


def _search(
    method: Method,
    polytope: Polytope,
    objective: SetObjective,
    k: int,
    seed: int,
    watch: Watch,
    kept: Floats,
    avoided: Floats,
) -> tuple[Ascent, list[tuple[Floats, Floats]], list[Vertex]]:
    """Run the method; returns its result, k (policy, occupancy) pairs with the kept ones first, and the avoided plans.

    Kept and avoided plans are members of the set that is searched and do not move.
    """
    mdp = polytope.mdp
    given = [(policy, polytope.criterion.occupancy(mdp, policy)) for policy in (*kept, *avoided)]
    for i, (_, x) in enumerate(given[: len(kept)]):
        if not np.isfinite(polytope.criterion.values(mdp, x[None])).all():
            raise SettingError(f"plan {i + 1} of those to keep never ends an episode, so it has no value per episode")
    optimum = polytope.optimum  # with limits it is solved for here: not limited in time either
    with polytope.pausing(watch.check):
        try:
            fixed = [Vertex(x) for _, x in given]
            ascent = method.run(polytope, objective, k + len(avoided), seed, watch, fixed)
        except Halted as end:  # from a method that does not catch it; only the optimum is known then
            ascent = Ascent(np.stack([optimum.occupancy] * (k - len(kept))), end.status, Trace.of([]))
    if ascent.choices is None:
        new = [polytope.realise(row) for row in ascent.point]
    else:
        new = [polytope.realised(Vertex(x, own)) for own, x in zip(ascent.choices, ascent.point, strict=True)]
    return ascent, given[: len(kept)] + new, [Vertex(x) for _, x in given[len(kept) :]]


def _different(
    task: Task,
    least: SetObjective,
    realised: list[tuple[Floats, Floats]],
    kept: int,
    avoided: list[Vertex],
    seed: int,
    watch: Watch,
    apart: float | None,
) -> tuple[list[tuple[Floats, Floats]], int | None]:
    """The (policy, occupancy) pairs without clones of each other and of the avoided plans; see `methods.clones`.

    The first `kept` ones stay, and so does one new plan if none is kept. The number returned is that of the plan that a
    further one would be like, if plans were left out: -1 for an avoided plan.
    """
    mdp = task.polytope.mdp
    order = [*range(kept), *sorted(range(kept, len(realised)), key=lambda i: -float(realised[i][1] @ mdp.reward))]
    plans = [Vertex(realised[i][1], _choices_of(mdp, realised[i][0])) for i in order]
    known = {id(plan): realised[i] for plan, i in zip(plans, order, strict=True)}
    fixed = kept + len(avoided)
    with task.polytope.pausing(watch.check):
        try:
            both = [*plans[:kept], *avoided, *plans[kept:]]
            found, like = without_clones(task.polytope, least, both, fixed, seed, watch, apart)
        except Halted:
            return realised, None
    pairs = [known.get(id(plan)) or task.polytope.realised(plan) for plan in (*found[:kept], *found[fixed:])]
    if like is not None:
        like = like if like < kept else -1 if like < fixed else like - len(avoided)
    return pairs or [known[id(plans[0])]], like


def _choices_of(mdp: MDP, policy: Floats) -> Ints | None:
    """(S,) the choices of an (N,) policy; None if it randomises."""
    choices = np.flatnonzero(policy > 0)
    return choices if len(choices) == mdp.n_states else None


@dataclass(frozen=True)
class _Checked:
    """Plans whose numbers are checked.

    Attributes:
        occupancies: (k, N) of the plans, and `optimum`, the value of the best plan: as found, or as proved where that differs.
        proof: the vectors that prove them.
        found: what the proof says.
    """

    occupancies: Floats
    optimum: float
    proof: SetProof
    found: Findings


def _checked(
    mdp: MDP,
    task: Task,
    worth: SetObjective,
    policies: Floats,
    occupancies: Floats,
    stayed: Sequence[int],
    watch: Watch,
    ascent: Ascent,
) -> _Checked:
    """Prove and check what is known about the plans, of which those that `stayed` need not meet the limits."""
    new = tuple(i for i in range(len(policies)) if i not in stayed)
    shortest = shortest_way(task.limits, task.polytope.mdp)
    claim = Claim(worth, task.criterion, task.best, task.polytope.floors, new, shortest)
    proof, proved = _prove(task.polytope, claim, policies, occupancies, watch, ascent)
    occupancies = _as_proved(occupancies, proved)
    found = examine(claim, policies, occupancies, proof, proved)
    linear = task.criterion.planned(mdp, task.best) is mdp  # otherwise plans were found for another value
    if linear and proved.best is not None and abs(found.optimum - task.best) > WELL_KNOWN * found.size:
        claim = replace(claim, optimum=found.optimum)
        found = examine(claim, policies, occupancies, proof, proved)
    return _Checked(occupancies, claim.optimum, proof, found)


def _as_proved(occupancies: Floats, proved: ProvedSet) -> Floats:
    """(k, N) the occupancies, those replaced that are proved to be others: if a plan leaves some part of the model with a
    probability of 1e-12, double precision alone knows only some digits of how long it stays there."""
    known = list(zip(occupancies, proved.plans, strict=True))
    other = [plan is not None and np.abs(plan.x - row).sum() > plan.error + WELL_KNOWN for row, plan in known]
    if not any(other):
        return occupancies
    return np.stack(
        [
            plan.x / plan.x.sum() if new and plan is not None else row
            for new, (row, plan) in zip(other, known, strict=True)
        ]
    )


def _prove(
    polytope: Polytope, claim: Claim, policies: Floats, occupancies: Floats, watch: Watch, ascent: Ascent
) -> tuple[SetProof, ProvedSet]:
    """Prove what can be proved of the plans, even if the time limit has passed; only a new interrupt ends this early."""
    reached = float(ascent.trace.objective.max()) if len(ascent.trace) else float("nan")
    if ascent.status is Status.INTERRUPTED:  # that interrupt has ended the search, and is done with
        watch.interrupted.clear()

    def tell(done: int) -> None:
        watch.tell(done, len(policies), reached, "verifying")
        watch.check_interrupt()

    with polytope.pausing(watch.check_interrupt):
        return prove_set(polytope, claim.objective, policies, occupancies, tell, claim.shortest)


def memory_needed(mdp: MDP, k: int) -> int:
    """Bytes that planning takes at its peak, the model not counted: measured, then rounded up.

    For each choice about twenty numbers of work space and five per plan (occupancy, policy, gradient and copies); for
    each state and transition the oracle's rows, values and order, and the transitions once more, renumbered.
    """
    return 8 * (mdp.n_choices * (20 + 5 * k) + mdp.n_states * (24 + 4 * k)) + 24 * mdp.transitions.nnz


def _check_cluster(address: str, method: Method) -> None:
    """Raise an error now if the search could not use the cluster later."""
    if not isinstance(method, VertexAscent):
        raise SettingError(
            f"{method!r} has no independent starts that a cluster could share; ",
            in_python="use VertexAscent(), or leave cluster out",
            on_command_line="use --method vertex-ascent, or leave --cluster out",
        )
    with on_cluster(address):
        pass


def _check_memory(mdp: MDP, k: int) -> None:
    try:
        free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # not every system knows
        return
    needed = memory_needed(mdp, k)
    if needed > free:
        raise SettingError(
            f"planning k={k} for {mdp.n_choices:,} choices needs about {needed / 2**30:.1f} GiB, "
            f"{free / 2**30:.1f} GiB are free; plan fewer at a time or use a smaller model"
        )


def _given(
    mdp: MDP, k: int, method: Method, keep: GivenPlans | None, avoid: GivenPlans | None
) -> tuple[Floats, Floats]:
    """The policies to keep and to avoid, if `k` and the `method` allow them."""
    kept, avoided = _policies(mdp, "keep", keep), _policies(mdp, "avoid", avoid)
    if len(kept) >= k:
        raise SettingError(f"{len(kept)} plans are kept, so k must be at least {len(kept) + 1}, found {k}")
    if len(kept) + len(avoided) and not method.keeps_plans:
        raise SettingError(
            f"{method!r} cannot plan around plans to keep or avoid; ",
            in_python="use a method that can, such as VertexAscent()",
            on_command_line="use --method vertex-ascent",
        )
    return kept, avoided


def _policies(mdp: MDP, what: str, given: GivenPlans | None) -> Floats:
    """(m, N) the policies that were given, none by default."""
    if given is None:
        return np.empty((0, mdp.n_choices))
    if isinstance(given, PlanSet):
        given = given.policies
    if isinstance(given, Sequence):
        given = [_probabilities(mdp, what, one) for one in given]
    try:
        array = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise SettingError(f"{what} must be an (m, {mdp.n_choices}) array of numbers, found {given!r:.60}") from None
    if array.ndim != 2 or array.shape[1] != mdp.n_choices:
        raise SettingError(
            f"{what} must be an (m, {mdp.n_choices}) array with a policy in each row, found shape {array.shape}"
        )
    return np.stack([check_policy(mdp, row) for row in array]) if len(array) else array


def _titles(given: GivenPlans) -> list[str]:
    """The titles of plans that were given, empty where they have none."""
    if isinstance(given, PlanSet):
        return list(given.titles)
    if not isinstance(given, Sequence):
        return [""] * len(np.asarray(given))
    items: Sequence[Any] = given
    return [one.title if isinstance(one, (Plan, Policy)) else "" for one in items]


def _probabilities(mdp: MDP, what: str, given: Any) -> Any:
    """(N,) the probabilities of a plan or policy; anything else as it is."""
    policy = given.policy if isinstance(given, Plan) else given
    if not isinstance(policy, Policy):
        return given
    if policy.mdp.digest != mdp.digest:
        raise SettingError(f"{what} has a plan for {policy.mdp.name}, which is another model than {mdp.name}")
    return policy.probabilities


@cache
def library_versions() -> dict[str, str]:
    """The versions of the programs that a result depends on."""
    return {"python": platform.python_version()} | {name: version(name) for name in ("manyways", "numpy", "scipy")}
