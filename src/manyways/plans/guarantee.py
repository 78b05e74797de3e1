"""What holds for a set of plans, in one sentence: how good each one is, and that there are no more of them."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

from manyways.describe.wording import joined, number, percent, quantity, terms_of
from manyways.model.episodes import episode_ends
from manyways.model.mdp import MDP
from manyways.polytope import Criterion, Episodic, Limits
from manyways.types import Floats

COUNTS = ("One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten", "Eleven", "Twelve")


class LimitedPlans(Protocol):
    """What the sentences need of a plan set."""

    @property
    def mdp(self) -> MDP: ...
    @property
    def k(self) -> int: ...
    @property
    def criterion(self) -> Criterion: ...
    @property
    def limits(self) -> Limits: ...
    @property
    def rewards(self) -> Floats: ...
    @property
    def occupancies(self) -> Floats: ...
    @property
    def optimal_reward(self) -> float: ...
    @property
    def kept_below(self) -> tuple[int, ...]: ...
    @property
    def asked(self) -> int | None: ...
    @property
    def like(self) -> int | None: ...
    @property
    def avoided(self) -> Floats: ...


def guarantee(plans: LimitedPlans) -> str | None:
    """The limits that every plan keeps: "Every plan earns at least 4.69 per step, within 10 % of the best possible."

    None if plans were not limited.
    """
    limits, terms, unit = plans.limits, terms_of(plans.mdp), plans.criterion.unit
    who = "Every new plan" if plans.kept_below else "Every plan" if plans.k > 1 else "It"
    parts = []
    if limits.floor is not None:
        edge = "at most" if terms.sign < 0 else "at least"
        if limits.slack is None:
            within = f"; the best possible is {number(terms.shown(plans.optimal_reward))}"
        else:
            within = f", within {percent(limits.slack)} of the best possible"
        least = number(promised(limits.floor, terms.sign))
        parts.append(f"{who} {terms.verb}s {edge} {least} {unit}{within}{length_of_best(plans)}.")
    if limits.way is not None:
        longer = "" if limits.longer is None else f", at most {percent(limits.longer)} more than the shortest way"
        parts.append(f"{who} reaches the goal in at most {quantity(limits.way)} steps on average{longer}.")
    if parts and plans.mdp.time_limit is not None and isinstance(plans.criterion, Episodic):
        parts.append(
            f"Episodes that the environment cuts off after {plans.mdp.time_limit} steps count as if they went on."
        )
    if plans.kept_below:
        kept = joined([str(i + 1) for i in plans.kept_below])
        plural = "s" if len(plans.kept_below) > 1 else ""
        parts.append(f"Plan{plural} {kept}, kept from an earlier set, {'are' if plural else 'is'} worse than that.")
    return " ".join(parts) or None


def length_of_best(plans: LimitedPlans) -> str:
    """The words after "best possible" where a longer mean episode might earn more: " among plans whose episodes last at most
    100 steps on average". Empty where the best plan needs less than that, since then no longer episode earns more."""
    criterion = plans.criterion
    if not isinstance(criterion, Episodic) or criterion.longest is None:
        return ""
    ends = episode_ends(plans.mdp)
    if ends is None:
        return ""
    best = int(np.argmax(plans.rewards))
    is_best = plans.optimal_reward - plans.rewards[best] <= 1e-9 * abs(plans.optimal_reward)
    if is_best and float(plans.occupancies[best] @ ends) * criterion.longest > 1 + 1e-6:
        return ""
    return f" among plans whose episodes last at most {quantity(criterion.longest)} steps on average"


def promised(floor: float, sign: int) -> float:
    """A least value as it is shown, rounded to three digits so that it promises no more than it should."""
    if floor == 0:
        return 0.0
    step = 10.0 ** (math.floor(math.log10(abs(floor))) - 2)
    kept = math.floor(floor / step + 1e-9) * step
    return sign * float(f"{kept:.12g}")


def fewer_ways(plans: LimitedPlans) -> str | None:
    """ "Three different ways were found. A search for one more only found one like plan 2; allow more than 10 % for others." """
    if plans.asked is None or plans.k >= plans.asked or (plans.like is None and not len(plans.avoided)):
        return None
    like = "one of the plans to be replaced" if plans.like is None else f"plan {plans.like + 1}"
    count = COUNTS[plans.k - 1] if plans.k <= len(COUNTS) else str(plans.k)
    found = f"{count} {'way was' if plans.k == 1 else 'different ways were'} found"
    away = " Plans that were replaced do not come back." if plans.like is not None and len(plans.avoided) else ""
    return f"{found}. A search for one more only found one like {like}{_how_to_find_others(plans.limits)}.{away}"


def _how_to_find_others(limits: Limits) -> str:
    """Which limit to loosen: "; allow more than 10 % for others"."""
    value = "a lower floor" if limits.slack is None else f"more than {percent(limits.slack)}"
    loosened = [] if limits.floor is None else [value]
    loosened += [] if limits.way is None else ["longer ways"]
    return f"; allow {' or '.join(loosened)} for others" if loosened else ""


def ways_found(count: int, limits: Limits) -> str:
    """ "3 different ways were found within 10 % of the best": there may be more that no search has found."""
    within = "" if limits.slack is None else f" within {percent(limits.slack)} of the best"
    return f"{count} {'way was' if count == 1 else 'different ways were'} found{within}"
