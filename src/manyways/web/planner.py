"""The planning process: it waits for requests on a pipe and answers each with a plan set.

A request is for plans (`PlanRequest`) or for the next plans to choose from (`RoundRequest`).

Everything is loaded before the first request. The process ignores Ctrl-C, which the server handles, and ends when the
server ends, even if the server is killed.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from math import isfinite
from multiprocessing import parent_process
from multiprocessing.connection import Connection
from threading import Thread
from typing import TYPE_CHECKING, Any

from manyways.errors import ManywaysError, SettingError

if TYPE_CHECKING:
    from manyways.conversation import Conversation
    from manyways.methods import Progress
    from manyways.model.mdp import MDP
    from manyways.objectives import Objective
    from manyways.plans import PlanSet, Policy
    from manyways.polytope import Criterion
    from manyways.types import Floats

MOST_REPORTS_PER_S = 10


@dataclass(frozen=True)
class PlanRequest:
    """What to plan, for the model of a plan file and with its settings except for these.

    Attributes:
        archive: the content of the plan file.
        k: how many plans.
        tradeoff: of the new set; None leaves the objective as it is.
        slack: how much worse than the best plan, as a share, new plans may be; None leaves this open, so that only the
            other limits of the old set apply.
        seed: of every random draw.
        keep: the keys of the plans to keep. A plan that the set holds twice is kept twice; all others are replaced.
        time_limit_s: how long to search.
        like: the key of a plan: the new plans are chosen for a person who took it over the others, and it is kept. No other
            setting but `k`, `seed` and `time_limit_s` counts then.
        behaviour: what counts as different, by its word on the command line; "" leaves it as it is.
        per: what values are counted per: "step", "episode", or "" as it is.
        banned_labels, banned_actions: what plans must never enter or do.
    """

    archive: bytes
    k: int
    tradeoff: float | None
    slack: float | None
    seed: int
    keep: tuple[str, ...]
    time_limit_s: float
    like: str = ""
    behaviour: str = ""
    per: str = ""
    banned_labels: tuple[str, ...] = ()
    banned_actions: tuple[str, ...] = ()


@dataclass(frozen=True)
class RoundRequest:
    """The next plans to choose from.

    Attributes:
        archives: the contents of the plan files of all rounds so far; for the first round, of a set with the model and the
            settings to plan with.
        taken: the plan (counted from 0) that was taken in each round; empty for the first round.
        title: of the plan that was taken last, to be stored with the answer.
        asked: the number of the set about which the last answer is.
        k: how many plans a round shows.
        slack: of the first round: how much worse than the best plan, as a share, plans may be.
        seed: of every random draw.
        time_limit_s: how long to search.
    """

    archives: tuple[bytes, ...]
    taken: tuple[int, ...]
    title: str
    asked: int
    k: int
    slack: float | None
    seed: int
    time_limit_s: float


@dataclass(frozen=True)
class PlannedSet:
    """A new plan set: its file, the keys of its plans, its label, and how the search ended.

    `request` is what it was planned for, without the files. `renamed` are the new keys of plans that were kept for another
    model, by their old keys.
    """

    archive: bytes
    keys: tuple[str, ...]
    label: str
    message: str
    request: PlanRequest | RoundRequest
    renamed: tuple[tuple[str, str], ...] = ()


def run_planner(pipe: Connection) -> None:
    """Answer requests until the server closes its end of the pipe. This is all that the planning process does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()
    try:
        _warm_up()
        while True:
            request = pipe.recv()
            pipe.send(_answer(request, pipe.send))
    except (EOFError, OSError):  # the server has closed its end
        return


def set_label(plans: PlanSet, kept: int = 0) -> str:
    """A short text by which people tell sets apart."""
    words = [f"{plans.k} plan{'s' if plans.k > 1 else ''}"]
    if plans.limits.slack is not None:
        words.append(f"within {100 * plans.limits.slack:g} %")
    if plans.tradeoff is not None:
        words.append(f"tradeoff {plans.tradeoff:.4g}")
    words.append(f"seed {plans.seed}")
    if kept:
        words.append(f"{kept} kept")
    return ", ".join(words)


def conversation_of(
    rounds: Sequence[PlanSet], taken: Sequence[int], k: int, seed: int, time_limit_s: float
) -> Conversation:
    """The conversation with these plans, of which the last are a question without an answer."""
    from manyways.conversation import Conversation, Round

    asked = []
    for i, plans in enumerate(rounds):
        best = plans.kept[0] if i else None
        over = tuple(j for j in range(plans.k) if i < len(taken) and j != taken[i])
        asked.append(Round(plans, best, taken[i] if i < len(taken) else None, over))
    return Conversation.resume(asked, k, seed=seed, time_limit_s=time_limit_s)


def _answer(request: PlanRequest | RoundRequest, send: Callable[[Any], None]) -> tuple[str, Any]:
    try:
        work = _plan if isinstance(request, PlanRequest) else _plan_round
        return "planned", work(request, _Reporter(send))  # pyright: ignore[reportArgumentType] (it is of that class)
    except ManywaysError as error:
        return "refused", str(error)
    except MemoryError:
        return "refused", "there is not enough memory; ask for fewer plans"
    except (EOFError, OSError):
        raise
    except Exception as error:  # the page must report any failure, and the next request may succeed
        return "refused", f"planning failed: {type(error).__name__}: {error}"


def _plan(request: PlanRequest, progress: Callable[[Progress], None]) -> PlannedSet:
    import numpy as np

    from manyways.behaviours import BEHAVIOURS
    from manyways.describe.wording import short
    from manyways.model.bans import bans_in, named_without
    from manyways.planning import plan
    from manyways.plans import PlanSet

    old = PlanSet.from_bytes(request.archive, "the plans")
    if request.like:
        return _more_like(request, old, progress)
    mdp = old.mdp
    if request.banned_labels or request.banned_actions:
        words = [short(name) for name in (*request.banned_labels, *request.banned_actions)]
        mdp = mdp.without(labels=request.banned_labels, actions=request.banned_actions)
        mdp = replace(mdp, name=named_without(old.mdp.name, words))  # all pages and files say so
    kept = [i for i in range(old.k) if old[i].key in request.keep]
    replaced = [i for i in range(old.k) if i not in kept] if kept else []
    keep = [_kept(old, i, mdp) for i in kept]
    # What was replaced in earlier sets stays away as well, as long as the set is changed and not planned anew.
    avoid = _avoided([*old.avoided, *old.policies[replaced]], old.mdp, mdp) if kept else []
    limits = old.limits
    floor = limits.floor if request.slack is None and limits.slack is None else None
    limited = not (request.slack is None and floor is None and limits.longer is None)
    able = (old.method.keeps_plans or not kept) and (old.method.respects_floors or request.slack is None)
    plans = plan(
        mdp,
        request.k,
        seed=request.seed,
        objective=_on_part(_objective(old, request.tradeoff, limited), mdp is old.mdp),
        method=old.method if able else None,
        slack=request.slack,
        floor=floor,
        longer=limits.longer,
        randomised=limits.randomised,
        fewer=limited,
        criterion=_criterion(old, request.per),
        behaviour=BEHAVIOURS.named(request.behaviour)() if request.behaviour else old.behaviour,
        time_limit_s=request.time_limit_s,
        progress=progress,
        keep=keep or None,
        avoid=np.reshape(avoid, (-1, mdp.n_choices)),
    )
    label = ", ".join([set_label(plans, len(kept)), *[f"without {words}" for words in bans_in(mdp.name)]])
    planned = _planned(plans, label, replace(request, archive=b""))
    renamed = [(old[i].key, plans[j].key) for i, j in zip(kept, plans.kept, strict=True) if old[i].key != plans[j].key]
    return replace(planned, renamed=tuple(renamed))


def _carried(policy: Policy, mdp: MDP) -> Policy:
    """A policy for the model without what is banned."""
    return policy if mdp is policy.mdp else policy.on(mdp)


def _kept(old: PlanSet, i: int, mdp: MDP) -> Policy:
    try:
        return _carried(replace(old[i].policy, title=old[i].title), mdp)
    except SettingError as error:
        raise SettingError(f"plan {i + 1} cannot be kept: {error}") from None


def _avoided(policies: list[Floats], old: MDP, mdp: MDP) -> list[Floats]:
    """The plans that were to be replaced, except those that do what is banned: they cannot come back anyway."""
    from manyways.plans import Policy

    found = []
    for policy in policies:
        try:
            found.append(_carried(Policy(old, policy), mdp).probabilities)
        except SettingError:
            continue
    return found


def _more_like(request: PlanRequest, old: PlanSet, progress: Callable[[Progress], None]) -> PlannedSet:
    """Plans for a person who took one plan of the old set over the others; that plan is among them."""
    from manyways.conversation import Conversation, Round

    taken = next(i for i in range(old.k) if old[i].key == request.like)
    talk = Conversation.resume([Round(old)], request.k, seed=request.seed, time_limit_s=request.time_limit_s)
    plans = talk.choose(taken, progress)
    label = f"{set_label(plans)}, more like plan {taken + 1}"
    return _planned(plans, label, replace(request, archive=b""))


def _criterion(old: PlanSet, per: str) -> Criterion | None:
    """What values are counted per; None for episodes whose longest length is to be derived again."""
    from manyways.polytope import Average, Episodic

    return {"step": Average(), "episode": Episodic()}.get(per, old.criterion)


def _plan_round(request: RoundRequest, progress: Callable[[Progress], None]) -> PlannedSet:
    from manyways.conversation import Conversation
    from manyways.plans import PlanSet

    shown = [PlanSet.from_bytes(archive, "the plans") for archive in request.archives]
    if request.taken:
        so_far = conversation_of(shown, request.taken[:-1], request.k, request.seed, request.time_limit_s)
        plans = so_far.choose(request.taken[-1], progress)
    else:
        old = shown[0]
        plans = Conversation(
            old.mdp,
            request.k,
            slack=request.slack,
            seed=request.seed,
            progress=progress,
            longer=old.limits.longer,
            criterion=old.criterion,
            behaviour=old.behaviour,
            time_limit_s=request.time_limit_s,
        ).plans
    label = f"round {len(request.taken) + 1}: {set_label(plans)}"
    return _planned(plans, label, replace(request, archives=()))


def _planned(plans: PlanSet, label: str, request: PlanRequest | RoundRequest) -> PlannedSet:
    return PlannedSet(plans.to_bytes(), tuple(plan.key for plan in plans), label, str(plans.status), request)


def _objective(old: PlanSet, tradeoff: float | None, limited: bool) -> Objective | None:
    """The objective of the old set, with another tradeoff if one is given and the objective has one.

    None, so that the tradeoff is derived again, if it was derived from the model and is the same. Not without limits,
    because `plan` then adds its own.
    """
    objective = old.maximised
    if tradeoff is None or "tradeoff" not in {field.name for field in fields(objective)}:
        return objective
    if old.derived and limited and f"{tradeoff:.6g}" == f"{old.tradeoff:.6g}":  # the page shows six digits
        tradeoff = None
    return replace(objective, tradeoff=tradeoff)  # pyright: ignore[reportCallIssue] (it has that field)


def _on_part(objective: Objective | None, whole: bool) -> Objective | None:
    """The objective for the model or a part of it. What was learned from choices between plans of the whole model is left out
    for a part, in which some of these plans are impossible."""
    from manyways.objectives import Representative
    from manyways.preferences import Posterior

    if whole or not isinstance(objective, Representative) or not isinstance(objective.preferences, Posterior):
        return objective
    return replace(objective, preferences=objective.preferences.prior)


class _Reporter:
    """Sends progress to the server, at most `MOST_REPORTS_PER_S` times per second."""

    def __init__(self, send: Callable[[Any], None]) -> None:
        self._send = send
        self._last = -1.0

    def __call__(self, now: Progress) -> None:
        if time.monotonic() - self._last >= 1 / MOST_REPORTS_PER_S:
            self._last = time.monotonic()
            objective = float(now.objective) if isfinite(now.objective) else None  # JSON has no NaN
            report = {"doing": now.doing, "done": int(now.done), "total": int(now.total), "objective": objective}
            self._send(("progress", report))


def _warm_up() -> None:
    """Plan once: loading the compiled loops from their cache takes about a second."""
    from manyways.planning import plan

    plan("four-rooms:0", k=2, tradeoff=1.0)


def _end_with_parent() -> None:
    """End the process with the server. While it plans, it does not read its pipe and would not notice."""
    server = parent_process()
    if server is not None:
        server.join()
        os._exit(0)
