"""Remarks that compare a plan with the others: what it spends more or less time on, and where it acts differently.

The weight of such a remark is the share of time by which the plan differs from the mean of the others, doubled if the
plan is the only one with the highest or lowest share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from manyways.describe.context import ABSENT, Context, Remark
from manyways.describe.features import SEEN, USUAL, Feature, action_shares, state_features
from manyways.describe.likeness import QUARTER
from manyways.describe.places import compass_direction, is_telling, listed_regions
from manyways.describe.subject import Plans, words_for
from manyways.describe.wording import VISIBLE, joined, percent, quoted, raised
from manyways.objectives.divergence import divergence_by_place
from manyways.types import Bools, Floats

HARDLY = 0.005
SCALE = {"sector": 1.0, "side": 0.8, "edge": 1.0, "label": 0.9, "level": 0.9, "state": 0.9, "action": 0.7, "habit": 0.9}
GROUP = dict.fromkeys(("sector", "side", "edge", "label", "level", "state"), "where") | {
    "action": "how",
    "habit": "how",
}
CONCENTRATED, MAINLY = 0.25, 0.5
"""Two plans are compared in a place if at least the first share of their divergence comes from there, and differ 'mainly' there
from the second one on."""

LIKE = 1 / 3
"""A plan that is this much nearer to another one than to the mean of the others does like that one."""

NAMED = 3
"""At most so many plans are named; more are "the others"."""

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
        for feature in state_features(context.survey, context.reached, plan):
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
    gap, ahead = _ahead(feature, plan, [other for other in range(k) if other != plan])
    if (ahead > LIKE * gap).any():
        return  # another plan does so far more
    if _apart_from(context, plan, feature)[0]:
        weight /= 2  # what another plan does, too, says less about this one
    if own > mean:
        does = f"{feature.does(percent(own))}{_others_do(context, plan, feature)}"
        yield Remark(f"{group}:{feature.place or 'more'}", weight, f"{does}.")
    elif (own >= HARDLY or mean < VISIBLE) and feature.kind == "level":
        return  # more time at other values says the same
    elif own >= HARDLY or mean < VISIBLE:
        less = feature.does(f"only {percent(own)}")
        text = f"{less}{_others_do(context, plan, feature)}."
        yield Remark(f"{group}:{feature.place or 'less'}", 0.5 * weight, text)
    else:
        never = feature.never if own <= 1e-9 else feature.hardly
        never += " in the long run" if context.settles[plan] and own <= 1e-9 and feature.ever[plan] else ""
        yield Remark(f"{group}:{feature.place or 'less'}", weight, f"{never}{_unlike(context, plan, feature)}.")


def _apart_from(context: Context, plan: int, feature: Feature) -> tuple[list[int], list[int], str]:
    """The plans that do about as much of it as this one; the rest; and what the rest is called."""
    others = [other for other in range(context.plans.k) if other != plan]
    gap, ahead = _ahead(feature, plan, others)
    like = [other for other in others if abs(ahead[other]) <= LIKE * gap]
    rest = [other for other in others if other not in like]
    return like, rest, plans_named(rest) if like and len(rest) <= NAMED else context.others


def _ahead(feature: Feature, plan: int, others: Sequence[int]) -> tuple[float, Floats]:
    """How far the plan is from the mean of the others, and (k,) how much further in the same direction each plan is."""
    own, mean = float(feature.values[plan]), float(feature.values[others].mean())
    return abs(own - mean), (feature.values - own) * (1 if own > mean else -1)


def _others_do(context: Context, plan: int, feature: Feature) -> str:
    """How much of it the others do, as the second half of a sentence on what a plan does."""
    like, rest, who = _apart_from(context, plan, feature)
    too, mean = f", like {plans_named(like)}" if like else "", float(feature.values[rest].mean())
    who = who if who.startswith("plan") or not like else "the rest"
    if mean > 1e-9:
        return f"{too}; {who} {percent(mean)}{' on average' if len(rest) > 1 else ''}"
    if any(context.settles[other] and feature.ever[other] for other in rest):
        return f"{too}; {who} 0 % in the long run"
    return f"{too}; {who} {_never(GROUP[feature.kind], len(rest))}"


def _unlike(context: Context, plan: int, feature: Feature) -> str:
    """How much of it the others do, as the second half of a sentence that a plan does not do it."""
    like, rest, who = _apart_from(context, plan, feature)
    who, plural = who if who.startswith("plan") or not like else "most others", len(rest) > 1
    average, mean = " on average" if plural else "", percent(float(feature.values[rest].mean()))
    if GROUP[feature.kind] == "where":
        return f", where {who} {'spend' if plural else 'spends'} {mean}{average}"
    steps = f"{'their' if plural else 'its'} {words_for(context.plans, 'steps')}"
    there = " there" if feature.kind == "habit" else ""
    return f"; {who} {'take' if plural else 'takes'} it in {mean} of {steps}{there}{average}"


def _never(group: str, count: int) -> str:
    if group == "how":
        return "never does" if count == 1 else "never do"
    return "is never there" if count == 1 else "are never there"


def plans_named(which: Sequence[int]) -> str:
    """Plans counted from 0 -> "plan 3", "plans 1, 2 and 4", "plans 1, 2, 3, 4, 5 and 7 others"."""
    named = [str(plan + 1) for plan in sorted(which)]
    if len(named) > 6:
        named[5:] = [f"{len(named) - 5} others"]
    return f"plan{'s' if len(which) > 1 else ''} {joined(named)}"


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
    """Where a plan differs from another one, and how.

    Attributes:
        other: the other plan, counted from 0.
        where: the region in which they differ.
        mainly: whether they differ in it more than everywhere else together.
        side: the direction in which the plan lies from the other one there; None if they are close together.
        actions: the action that the plan takes more often there, and the one that the other takes more often; None if
            they hardly differ in that.
    """

    other: int
    where: str
    mainly: bool
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
    """Where and how the plan differs from the plan among `among` that is most like it; None if no region stands out."""
    if not among:
        return None
    other = closest(context, plan, among)
    places = _regions_of_difference(context, plan, other)
    return _difference_in(context, plan, other, *places[0]) if places else None


def distinction(context: Context, plan: int, others: Sequence[int]) -> Difference | None:
    """A difference from the plan most like it that holds against every plan of `others`: further in the same direction, or more of
    the same action. None if there is none."""
    if not others:
        return None
    other = closest(context, plan, others)
    for where, mainly in _regions_of_difference(context, plan, other):
        found = _difference_in(context, plan, other, where, mainly)
        if found.side and all(_further(_displacement(context, plan, one, where), found.side) for one in others):
            return found
        found = replace(found, side=None)
        if found.actions and all(_more_of(context, plan, one, where, found.actions[0]) for one in others):
            return found
    return None


def closest(context: Context, plan: int, among: Sequence[int]) -> int:
    """The plan among `among` at the least distance."""
    return min(among, key=lambda other: context.plans.distances[plan, other])


def _difference_in(context: Context, plan: int, other: int, where: str, mainly: bool) -> Difference:
    shift = _displacement(context, plan, other, where)
    side = None if shift is None else compass_direction(*shift)
    return Difference(other, where, mainly, side, _acting(context, plan, other, context.regions[where]))


def _further(shift: tuple[float, float] | None, side: str) -> bool:
    """Whether a shift, (rows, columns), can be seen in each part of a direction: "north" and "east" of "north-east"."""
    if shift is None:
        return False
    down, right = shift
    amount = {"north": -down, "south": down, "west": -right, "east": right}
    return all(amount[part] >= MOVED for part in side.split("-"))


def _more_of(context: Context, plan: int, other: int, where: str, action: str) -> bool:
    """Whether a plan takes an action, as it is shown, clearly more often in a region than another plan that is there, too."""
    shares = action_shares(context.plans, context.regions[where], [plan, other])
    time = shares.sum(axis=1)
    at = [quoted(name) for name in context.plans.mdp.action_names].index(action)
    return bool(time.min() >= SEEN and shares[0, at] / time[0] - shares[1, at] / time[1] >= VISIBLE)


def nearest(context: Context, plan: int) -> Iterator[Remark]:
    """How the plan differs from the plan that is most like it, where one is, also as its distance is shown."""
    others, distances = [other for other in range(context.plans.k) if other != plan], context.plans.distances[plan]
    if not others or context.twins[plan]:
        return
    other, two = closest(context, plan, others), len(others) == 1
    if [round(float(distances[one]), 2) for one in others].count(round(float(distances[other]), 2)) > 1:
        return
    ways = None if two else _other_ways(context, plan, other)
    if ways:
        yield Remark("how:ways", 0.3, f"Most like plan {other + 1}, but {ways}.")
        return
    found = difference(context, plan, [other])
    how = found and (f"it keeps further {found.side}" if found.side else found.acting(context.plans.k))
    if found is None or not how:
        return
    if found.mainly:
        lead = "Differs from the other plan" if two else f"Most like plan {other + 1}; they differ"
        text = f"{lead} mainly {found.where}, where {how}."
    else:
        text = f"keeps further {found.side} {found.where}" if found.side else f"{found.where} {how}"
        than = " than the other plan" if found.side else ""
        text = raised(f"{text}{than}.") if two else f"Most like plan {other + 1}, but {text}."
    yield Remark(f"how:{found.where}", 0.3, text)


def _other_ways(context: Context, plan: int, other: int) -> str | None:
    """The rooms or passages that one of two plans usually goes through and the other does not; None without such."""
    found = _places_passed(context)
    if found is None:
        return None
    (own, theirs), listed = found[0][[plan, other]], found[1]
    mine = np.flatnonzero((own > USUAL) & (theirs <= USUAL) & (own - theirs >= QUARTER))
    rest = np.flatnonzero((theirs > USUAL) & (own <= USUAL) & (theirs - own >= QUARTER))
    sure = min([1.0, *own[mine], *theirs[rest]]) >= 1 - HARDLY
    often, who = "" if sure else "usually ", f"plan {other + 1}"
    if len(mine) and len(rest):
        return f"{often}goes through {listed(mine.tolist())}, and {who} through {listed(rest.tolist())}"
    if len(mine):
        return f"{often}goes through {listed(mine.tolist())}, and {who} does not"
    return f"{often}does not go through {listed(rest.tolist())}" if len(rest) else None


def _places_passed(context: Context) -> tuple[Floats, Callable[[list[int]], str]] | None:
    """(k, P) the chances that the ways of each plan go through rooms or regions whose names are telling, and the function that
    lists some of these; None where they are not known."""
    survey, rooms = context.survey, context.rooms
    if rooms is not None:
        visited = [fact.rooms for fact in survey.facts if fact.rooms is not None]
        if len(visited) < context.plans.k:
            return None
        numbers = list(visited[0])
        return np.array([[row[n] for n in numbers] for row in visited]), lambda at: rooms.listed(
            [numbers[i] for i in at]
        )
    crossed = [fact.regions for fact in survey.facts if fact.regions is not None]
    if survey.regions is None or len(crossed) < context.plans.k:
        return None
    names = survey.regions.names
    telling = [region for region, name in enumerate(names) if is_telling(name)]
    return np.stack(crossed)[:, telling], lambda at: listed_regions([names[telling[i]] for i in at])


def _regions_of_difference(context: Context, plan: int, other: int) -> list[tuple[str, bool]]:
    """The regions whose share of the divergence of two plans is large and exceeds their share of the plans' time, the largest
    first, and whether the two plans differ mainly there."""
    p, q = context.plans.occupancies[[plan, other]]
    apart = np.add.reduceat(divergence_by_place(p, q), context.plans.mdp.first_choice[:-1])
    time = (context.survey.by_state[plan] + context.survey.by_state[other]) / 2
    if apart.sum() <= 0:
        return []
    share = {name: float(apart[mask].sum() / apart.sum()) for name, mask in context.regions.items()}
    found = [
        name
        for name, mask in context.regions.items()
        if share[name] >= CONCENTRATED and share[name] - time[mask].sum() > VISIBLE
    ]
    ordered = sorted(share.values(), reverse=True)
    alone = len(ordered) < 2 or ordered[0] - ordered[1] > VISIBLE
    return [
        (name, alone and MAINLY <= share[name] == ordered[0]) for name in sorted(found, key=lambda name: -share[name])
    ]


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
