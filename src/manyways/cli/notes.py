"""Notes on plans whose limits are probably not what was meant, for standard error."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from manyways.plans import PlanSet


def notes_on(plans: PlanSet, *, limited: bool) -> list[str]:
    """What to know about the limits of a plan set; `limited` says whether limits were asked for."""
    first = _on_staying(plans) or (None if limited else _on_default_limits(plans))
    return [note for note in (first, _on_longer_ways(plans)) if note is not None]


def _on_staying(plans: PlanSet) -> str | None:
    """How to plan for the way to states that are never left, if staying there for nothing is best."""
    from manyways.describe.survey import negligible
    from manyways.describe.wording import terms_of
    from manyways.model.graph import never_left
    from manyways.model.occupancy import state_occupancy
    from manyways.polytope import Average

    mdp = plans.mdp
    if plans.criterion != Average() or abs(plans.optimal_reward) > negligible(plans):
        return None
    final, time = never_left(mdp), state_occupancy(mdp, plans.occupancies[plans.rewards.argmax()])
    label = next((name for name, mask in mdp.labels.items() if final[mask].all() and time[mask].sum() > 0.5), None)
    if label is None:
        return None
    return (
        f"the best {terms_of(mdp).noun} per step is 0, that of staying in {label!r} forever: to plan for the way there, use "
        f"--restart {shlex.quote(label)}"
    )


def _on_default_limits(plans: PlanSet) -> str | None:
    """What limits plans by default where that is not 10 % of the best value."""
    from manyways.describe.wording import number, terms_of

    limits, terms = plans.limits, terms_of(plans.mdp)
    if limits.slack is not None or not limits.any:
        return None
    if limits.longer is not None:
        instead = "plans are limited by the length of their way instead; use --longer or --floor"
    else:
        instead = f"plans may be worse by 10 % of the spread of {terms.noun}s along the best plan instead; use --floor"
    return (
        f"the best {terms.noun}, {number(terms.shown(plans.optimal_reward))} {plans.criterion.unit}, is small against the "
        f"{terms.noun}s of which it is the sum, so 10 % of it means nothing: {instead} to set another limit"
    )


def _on_longer_ways(plans: PlanSet) -> str | None:
    """That a limit on the way does not limit the cost, if some plan costs more by a larger share."""
    limits, best = plans.limits, plans.optimal_reward
    if not plans.mdp.costs or limits.longer is None or limits.floor is not None:
        return None
    if float(best - plans.rewards.min()) <= (limits.longer + 1e-9) * abs(best):
        return None
    return (
        "--longer limits the number of steps, not the cost: some plan costs more than the least possible by a larger share; "
        "to limit the cost as well, use --slack"
    )
