"""Whom each plan suits, for sets that were made for preferences that nobody wrote down: in words, as maps, and how much of
what people could gain the set brings.

People are drawn from the prior, and each takes the plan that is worth most to them. Plan i is then described by the mean
preference w of those who take it. What it is worth to them, against the mean plan of the set with occupancy m, is a sum over
choices,

    <w, rho_i - m> = sum over x of (w(x) - <w, m>) (rho_i(x) - m(x))

and a place is named if its part of the sum is large: a place that is liked and in which the plan spends more time than the
others, or one that is disliked and which it avoids. Each place must be a reason on its own: at most one other plan does so more,
none clearly more, and not most of them as much. Labels that are bad to be in are no reasons. Where another plan suits those who
like all the places that would be named as well, further places are added, or nothing is said.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from manyways.describe.survey import preference_of
from manyways.describe.wording import joined, percent
from manyways.model.mdp import MDP
from manyways.objectives import Representative
from manyways.plans.planset import PlanSet
from manyways.report.named_places import named_places, ninths_of_map
from manyways.report.pictures import Canvas, floats_text
from manyways.serving import Audience, audience, served
from manyways.types import Bools, Floats

MOST_STATES = 20_000
"""Larger models get no such part of the page."""
ASKED, ASKED_UP_TO = 60, 2_500
"""The possible gain of so many people is computed, by one solve each, in models up to this size."""
FEW = 0.1
"""If fewer people than this share could gain anything, shares of their gains say nothing about the set."""
TELLING = 0.15
"""A place is named if it makes up at least this share of what the plan is worth to its people."""
SECOND, NAMED, AT_MOST = 0.5, 2, 3
"""Two places are named, the second if it makes up at least half as much as the first; a third one only if another plan suits those
who like the first two as well."""
LITTLE_TIME, CLEARLY = 0.005, 0.1
"""Times that differ by less than the first are the same; by more than the second, as a part of the most, clearly different."""

Reasons = tuple[tuple[bool, str], ...]
"""Places, each with whether it is liked (True) or disliked."""


def suits_of(plans: PlanSet, canvas: Canvas | None) -> dict[str, Any] | None:
    """What the page shows; None for sets that were made for something else."""
    if not isinstance(plans.maximised, Representative) or plans.k == 1 or plans.mdp.n_states > MOST_STATES:
        return None
    found = audience(plans)
    bad = [label for label in plans.mdp.labels if _is_bad(plans.mdp, label)]
    by_room, by_ninth = named_places(plans.mdp, plans.occupancies, bad), ninths_of_map(plans.mdp)

    everyone = range(plans.k)

    x, taken = plans.occupancies, found.shares > 0
    why = [
        likes(x, wish, i, by_room) or likes(x, wish, i, by_ninth) if taken[i] else ()
        for i, wish in enumerate(found.wishes)
    ]
    known = [likes(x, wish, i, [*by_room, *by_ninth], weakly=True) for i, wish in enumerate(found.wishes)]
    return {
        "plans": [
            {"share": percent(float(found.shares[i])), "sentence": sentence(_distinct(why, known, i))} for i in everyone
        ],
        "gain": _gain(plans) if plans.mdp.n_states <= ASKED_UP_TO else None,
        "pictures": None if canvas is None else _pictures(plans, found, canvas),
    }


def _is_bad(mdp: MDP, label: str) -> bool:
    """Whether the states with a label are bad to be in, which needs no preference."""
    mask = mdp.labels[label]
    return bool(mask.any() and not mask.all()) and preference_of(mdp, label) < 0


def _distinct(why: list[Reasons], known: list[Reasons], i: int) -> Reasons:
    """The reasons for plan i; if others have the same, with one more that is not known of them, where there is one."""
    same = [j for j, other in enumerate(why) if j != i and other == why[i]]
    if not same or not why[i]:
        return why[i]
    theirs = {reason for j in same for reason in known[j]}
    return (*why[i], *[reason for reason in known[i] if reason not in theirs and reason not in why[i]][:1])


def likes(x: Floats, wish: Floats, i: int, named: list[tuple[str, Bools]], weakly: bool = False) -> Reasons:
    """Why people take plan i: (k, N) the occupancies of the set, (N,) the mean preference of those who take plan i. The strongest
    reasons or, with `weakly`, all of them."""
    typical = x.mean(axis=0)
    more = x[i] - typical
    gain = (wish - wish @ typical) * more
    whole = float(gain.sum())
    places = dict(named)
    parts = sorted(((float(gain[own].sum()), float(more[own].sum()), name) for name, own in named), reverse=True)
    strong: list[tuple[float, float, str]] = []
    for part, time, name in parts:
        spent = x[:, places[name]].sum(axis=1)
        told = any(np.abs(spent - x[:, places[other]].sum(axis=1)).max() < LITTLE_TIME for _, _, other in strong)
        if part > 0 and abs(time) > LITTLE_TIME and _is_reason(spent if time > 0 else -spent, i) and not told:
            strong.append((part, time, name))
    large = max(TELLING * whole, SECOND * max((part for part, _, _ in strong), default=0.0))
    found = tuple((time > 0, name) for _, time, name in strong)
    if weakly:
        return found
    usual = min(NAMED, sum(part >= large for part, _, _ in strong))
    for count in range(usual, AT_MOST + 1) if usual else ():
        if not _suits_another(x, i, found[:count], places):
            return found[:count]
    return ()


def _is_reason(amount: Floats, i: int) -> bool:
    """Whether plan i stands out in (k,) amounts of what somebody wants: most others do not as much, at most one does more, and
    none clearly more."""
    ahead = np.delete(amount, i) - amount[i]
    as_much = np.count_nonzero(np.abs(ahead) <= LITTLE_TIME)
    clearly = max(LITTLE_TIME, CLEARLY * float(np.abs(amount).max()))
    more = int(np.count_nonzero(ahead > LITTLE_TIME))
    return bool(2 * as_much <= len(ahead) and more <= 1 and not (ahead > clearly).any())


def _suits_another(x: Floats, i: int, reasons: Reasons, named: dict[str, Bools]) -> bool:
    """Whether some other plan spends as much time in all the places that are liked, and as little in those that are disliked."""
    better = np.stack([(1 if liked else -1) * (x[:, named[name]].sum(axis=1)) for liked, name in reasons], axis=1)
    ahead = better - better[i]
    return bool(np.delete((ahead >= -LITTLE_TIME).all(axis=1), i).any())


def sentence(reasons: Reasons) -> str:
    """Best for whom, in words; empty without a reason."""
    verbs = {True: "like", False: "would rather avoid"}
    named = {verb: [name for is_liked, name in reasons if is_liked == liked] for liked, verb in verbs.items()}
    wishes = [f"{verb} {joined(names)}" for verb, names in named.items() if names]
    return f"Best if you {' and '.join(wishes)}." if wishes else ""


def _gain(plans: PlanSet) -> dict[str, str | bool] | None:
    """How much of what people could gain the set brings, as percentages; None if nobody could gain anything."""
    found = served(plans, persons=ASKED)
    if not found.possible.any():
        return None
    gaining = int(np.count_nonzero(found.possible))
    return {
        "share": f"{100 * found.share:.0f}",
        "worst": f"{100 * found.worst_tenth:.0f}",
        "persons": str(ASKED),
        "gaining": str(gaining),
        "few": gaining < FEW * ASKED,
    }


def _pictures(plans: PlanSet, found: Audience, canvas: Canvas) -> list[dict[str, Any] | None]:
    """The mean preference of those who take each plan, against the mean plan of the set; None where nobody does."""
    mdp, typical = plans.mdp, plans.occupancies.mean(axis=0)
    first, counts = mdp.first_choice[:-1], np.diff(mdp.first_choice)
    pictures: list[dict[str, Any] | None] = []
    for share, wish in zip(found.shares, found.wishes, strict=True):
        by_state = np.add.reduceat(wish - wish @ typical, first) / counts
        mean = canvas.means(by_state)
        full = max(float(np.nanmax(np.abs(mean))), 1e-12)
        pictures.append({"mean": floats_text(mean), "full": full} if share > 0 else None)
    return pictures
