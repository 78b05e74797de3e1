"""Remarks that compare a plan with the others: what it spends more or less time on, and where it acts differently.

The weight of such a remark is the share of time by which the plan differs from the mean of the others, doubled if the
plan is the only one with the highest or lowest share.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from manyways.describe.context import ABSENT, Context, Remark
from manyways.describe.features import SEEN, Feature, action_shares, state_features
from manyways.describe.places import compass_direction
from manyways.describe.subject import Plans, words_for
from manyways.describe.wording import VISIBLE, percent, quoted
from manyways.objectives.divergence import divergence_by_place
from manyways.types import Bools

HARDLY = 0.005
SCALE = {"sector": 1.0, "side": 0.8, "edge": 1.0, "label": 0.9, "level": 0.9, "state": 0.9, "action": 0.7, "habit": 0.9}
GROUP = dict.fromkeys(("sector", "side", "edge", "label", "level", "state"), "where") | {
    "action": "how",
    "habit": "how",
}
CONCENTRATED = 0.25
"""Two plans differ 'mainly' in a place if at least this share of their divergence comes from there."""

MOVED = 0.3
"""The mean places of two plans in a region count as different from this many cells apart."""


def time_spent(context: Context, plan: int) -> Iterator[Remark]:
    """What the plan does more than the others, and what it does less."""
    if context.survey.facts[plan].stays is not None:
        return  # a plan that stays in one place spends all of its time there
    rooms = 0.3 if context.rooms is not None else 1.0  # with rooms, the route says more
    for feature in context.features:
        yield from _compared(context, plan, feature, SCALE[feature.kind] * rooms)
    if context.plans.mdp.layout is None:
        for feature in state_features(context.survey, plan):
            yield from _compared(context, plan, feature, SCALE["state"])
    actions = [feature for feature in context.features if feature.kind == "action"]
    main = max(actions, key=lambda feature: feature.values[plan])
    # A very small weight: it is used only for plans without other remarks.
    yield Remark("how:main", 1e-3, f"{main.does(percent(float(main.values[plan])))}, more than any other action.")


def _compared(context: Context, plan: int, feature: Feature, scale: float) -> Iterator[Remark]:
    own, k, group = float(feature.values[plan]), context.plans.k, GROUP[feature.kind]
    if k == 1:
        yield Remark(group, 0.8 * scale * own * feature.part, f"{feature.does(percent(own))}.")
        return
    low, high = feature.values.min(), feature.values.max()
    mean = (float(feature.values.sum()) - own) / (k - 1)
    alone = np.count_nonzero(feature.values == own) == 1 and own in (low, high)
    weight = scale * abs(own - mean) * feature.part * (2 if alone else 1)
    if percent(own) == percent(mean):
        return
    average = f"{percent(mean)}{' on average' if k > 2 else ''}"
    if mean <= 1e-9:
        settling = any(settles for i, settles in enumerate(context.settles) if i != plan)
        average = "0 % in the long run" if settling else _never(group, k)
    if own > mean:
        yield Remark(
            f"{group}:{feature.place or 'more'}",
            weight,
            f"{feature.does(percent(own))}; {context.others} {average}.",
        )
    elif (own >= HARDLY or mean < VISIBLE) and feature.kind == "level":
        return  # more time at other values says the same
    elif own >= HARDLY or mean < VISIBLE:
        less = feature.does(f"only {percent(own)}")
        yield Remark(f"{group}:{feature.place or 'less'}", 0.5 * weight, f"{less}; {context.others} {average}.")
    else:
        never = feature.never if own <= 1e-9 else feature.hardly
        never += " in the long run" if context.settles[plan] and own <= 1e-9 else ""
        yield Remark(f"{group}:{feature.place or 'less'}", weight, f"{never}{_unlike(context, feature, mean)}.")


def _unlike(context: Context, feature: Feature, mean: float) -> str:
    """How much of it the others do, as the second half of a sentence that a plan does not do it."""
    plural = context.plans.k > 2
    average = " on average" if plural else ""
    if GROUP[feature.kind] == "where":
        return f", where {context.others} {'spend' if plural else 'spends'} {percent(mean)}{average}"
    steps = f"{'their' if plural else 'its'} {words_for(context.plans, 'steps')}"
    there = " there" if feature.kind == "habit" else ""
    return f"; {context.others} {'take' if plural else 'takes'} it in {percent(mean)} of {steps}{there}{average}"


def _never(group: str, k: int) -> str:
    if group == "how":
        return "never does" if k == 2 else "never do"
    return "is never there" if k == 2 else "are never there"


def decisions(context: Context, plan: int) -> Iterator[Remark]:
    """How often the plan takes a choice that no other plan takes, and where it does so most."""
    mdp, plans, choices = context.plans.mdp, context.plans, context.choices
    if plans.k < 2 or choices is None:
        return
    own, others = choices[plan], np.delete(choices, plan, axis=0)
    also = np.delete(plans.policies, plan, axis=0)[:, np.maximum(own, 0)] > 1e-9
    present = others != ABSENT
    alone = (own >= 0) & present.any(axis=0) & ~(also & present).any(axis=0)
    time = np.where(alone, context.survey.by_state[plan], 0.0)
    state, total = int(np.argmax(time)), float(time.sum())
    if total < VISIBLE:
        return
    action, where = quoted(mdp.action_name(int(own[state]))), quoted(mdp.state_name(state))
    if time[state] < total / 2:
        often = f"{percent(total)} of its {words_for(plans, 'steps')}"
        text = f"Acts in {often} as {context.no_other} does, most often by taking {action} in {where}."
    elif plans.k == 2:
        other = int(others[0, state])
        does = f"takes {quoted(mdp.action_name(other))}" if _always(plans, 1 - plan, other) else "never does"
        takes = "Takes" if _always(plans, plan, int(own[state])) else "Nearly always takes"
        text = f"{takes} {action} in {where}, where the other plan {does}."
    else:
        text = f"The only plan to take {action} in {where}, where it spends {percent(time[state])} of its {words_for(plans, 'time')}."
    yield Remark("how:decision", 1.5 * total, text)


def _always(plans: Plans, plan: int, choice: int) -> bool:
    return choice >= 0 and bool(plans.policies[plan, choice] > 1 - 1e-6)


@dataclass(frozen=True)
class Difference:
    """Where a plan differs most from another one, and how.

    Attributes:
        other: the other plan, counted from 0.
        where: the region in which they differ.
        side: the direction in which the plan lies from the other one there; None if they are close together.
        actions: the action that the plan takes more often there, and the one that the other takes more often; None if
            they hardly differ in that.
    """

    other: int
    where: str
    side: str | None
    actions: tuple[str, str] | None

    @property
    def how(self) -> str | None:
        """The difference in a few words, for a title."""
        if self.side:
            return f"further {self.side} {self.where}"
        return f"more {self.actions[0]} {self.where}" if self.actions else None

    def acting(self, k: int) -> str | None:
        """The actions, as part of a sentence on one of `k` plans."""
        if self.actions is None:
            return None
        who = "the other plan" if k == 2 else f"plan {self.other + 1}"
        return f"it takes {self.actions[0]} more often and {who} {self.actions[1]}"


def difference(context: Context, plan: int, among: Sequence[int]) -> Difference | None:
    """Where the plan differs from the plan among `among` that is most like it; None if no region stands out."""
    if not among:
        return None
    other = min(among, key=lambda other: context.survey.likeness.apart[plan, other])
    where = _region_of_difference(context, plan, other)
    if where is None:
        return None
    mask = context.regions[where]
    shift = _displacement(context, plan, other, where)
    return Difference(
        other,
        where,
        None if shift is None else compass_direction(*shift),
        _acting(context, plan, other, mask),
    )


def nearest(context: Context, plan: int) -> Iterator[Remark]:
    """Where the plan differs from the plan that is most like it."""
    found = difference(context, plan, [other for other in range(context.plans.k) if other != plan])
    if found is None or context.twins[plan]:
        return
    how = f"it keeps further {found.side}" if found.side else found.acting(context.plans.k)
    if how:
        lead = (
            f"Most like plan {found.other + 1}; they differ" if context.plans.k > 2 else "Differs from the other plan"
        )
        yield Remark(f"how:{found.where}", 0.3, f"{lead} mainly {found.where}, where {how}.")


def _region_of_difference(context: Context, plan: int, other: int) -> str | None:
    """The region whose share of the divergence of two plans exceeds its share of their time most."""
    p, q = context.plans.occupancies[[plan, other]]
    apart = np.add.reduceat(divergence_by_place(p, q), context.plans.mdp.first_choice[:-1])
    time = (context.survey.by_state[plan] + context.survey.by_state[other]) / 2
    if apart.sum() <= 0:
        return None
    share = {name: float(apart[mask].sum() / apart.sum()) for name, mask in context.regions.items()}
    beyond = {
        name: share[name] - time[mask].sum() for name, mask in context.regions.items() if share[name] >= CONCENTRATED
    }
    best = max(beyond, key=beyond.__getitem__, default=None)
    return best if best is not None and beyond[best] > VISIBLE else None


def _displacement(context: Context, plan: int, other: int, where: str) -> tuple[float, float] | None:
    """(rows, columns) from the mean place of the other plan in a region to that of the plan; None if they are close, or
    if one of them is rarely there."""
    centre = context.centres.get(where)
    if centre is None or centre[[plan, other], 0].min() < SEEN:
        return None
    down, right = centre[plan, 1:] - centre[other, 1:]
    return (float(down), float(right)) if max(abs(down), abs(right)) >= MOVED else None


def _acting(context: Context, plan: int, other: int, mask: Bools) -> tuple[str, str] | None:
    """The action that the plan takes more often in a region, and the one that the other takes more often."""
    shares = action_shares(context.plans, mask, [plan, other])
    time = shares.sum(axis=1)
    if time.min() < SEEN:
        return None
    more = shares[0] / time[0] - shares[1] / time[1]
    up, down = int(np.argmax(more)), int(np.argmin(more))
    if min(more[up], -more[down]) < VISIBLE:
        return None
    names = context.plans.mdp.action_names
    return quoted(names[up]), quoted(names[down])
