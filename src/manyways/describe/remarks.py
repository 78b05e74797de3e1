"""Remarks: sentences that could be said about a plan, each true on its own, with a weight that says how informative it is.

Remarks on where a plan goes, and on what it is best or worst at, have fixed weights above 1. The weights of the others
are shares of time by which the plan differs from the rest: see `comparisons`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from manyways.describe.comparisons import decisions, difference, nearest, plans_named, time_spent
from manyways.describe.context import Context, Remark
from manyways.describe.features import USUAL
from manyways.describe.likeness import NEARLY_SAME
from manyways.describe.places import Route, is_passage, is_telling, listed_regions, share_beside
from manyways.describe.subject import NEVER, words_for
from manyways.describe.wording import (
    VISIBLE,
    counted,
    distinct,
    finely,
    joined,
    number,
    percent,
    plain,
    quantity,
    quoted,
    raised,
    short,
)
from manyways.model.mdp import MDP
from manyways.model.regions import MapRegions
from manyways.model.rooms import Rooms
from manyways.types import Bools

SELDOM, BARELY = 0.1, 1e-6
"""A plan is the only one that usually goes through a door or room if each other plan passes it with less than the first chance, and
the only one at all if with less than the second one."""

AVOIDED = 0.02
MOST_NAMED = 3
STRAYING = 0.01
LONGER = 0.05
ON_THE_CARD = 0.03
"""The weight of remarks that repeat a number on the card of the plan: they are used only if there are few others."""


def remarks(context: Context, plan: int) -> list[Remark]:
    """All remarks on a plan, counted from 0; the most informative first."""
    found = [
        *_standing(context, plan),
        *_twins(context, plan),
        *_ends(context, plan),
        *_rule(context, plan),
        *_route(context, plan),
        *_regions(context, plan),
        *_length(context, plan),
        *_reward(context, plan),
        *_risks(context, plan),
        *_danger(context, plan),
        *time_spent(context, plan),
        *decisions(context, plan),
        *(() if same_doors(context, plan) else nearest(context, plan)),
    ]
    return sorted(found, key=lambda remark: -remark.weight)


def _standing(context: Context, plan: int) -> Iterator[Remark]:
    fact = context.survey.facts[plan]
    if fact.stays is not None:
        yield Remark("stays", 9.0, f"Stays {place_of(context.plans.mdp, fact.stays)} for good.")
    if fact.reaches is not None and fact.reaches < 1:
        text = f"Reaches the goal with a chance of only {finely(fact.reaches)}."
        yield Remark("goal", 8.0, "Never reaches the goal." if fact.reaches <= 1e-9 else text)


def _ends(context: Context, plan: int) -> Iterator[Remark]:
    """How often it reaches the goal, if episodes can also end in other ways."""
    episodes = context.survey.episodes
    shares = [] if episodes is None else [share for share in episodes.shares.get("goal", ()) if share is not None]
    if not shares or all(share == 1 for share in shares):
        return
    own, rank = shares[plan], _rank(shares[plan], shares)
    if own >= 1 - 1e-9:
        yield Remark("goal", 5.0, "The only plan that always reaches the goal." if rank else "Always reaches the goal.")
    elif own <= NEVER:
        yield Remark("goal", 8.0, "Never reaches the goal.")
    else:
        yield Remark("goal", 5.0, f"Reaches the goal in {finely(own)} of its episodes{rank}.")


def _rule(context: Context, plan: int) -> Iterator[Remark]:
    """What it does in which states, if a short rule says it. A rule that names one action only is left to other remarks."""
    rule = None if context.rules is None else context.rules[plan]
    if rule is not None and rule.fits and len(rule.cases) > 1:
        yield Remark("rule", 6.0, f"{raised(rule.text)}.")
    if rule is not None and context.rules is not None:
        same = [i for i, other in enumerate(context.rules) if i != plan and rule.same_as(other)]
        if same and not set(same) <= set(context.twins[plan]):
            only = "only" if min(context.rules[i].exact for i in (plan, *same)) >= 1 - 1e-9 else "mainly"
            lasting = "" if all(context.rules[i].cases == rule.cases for i in same) else " in the long run"
            text = (
                f"Acts by the same rule as {plans_named(same)}{lasting}; they differ {only} in the states they are in."
            )
            yield Remark("same", 5.5, text)


def place_of(mdp: MDP, state: int) -> str:
    """ "at r3c4" on a map, "in 'worn'" elsewhere."""
    name = mdp.state_name(state)
    return f"at {plain(name)}" if mdp.layout is not None else f"in {quoted(name)}"


def _twins(context: Context, plan: int) -> Iterator[Remark]:
    if context.twins[plan]:
        yield Remark("twin", 7.0, f"Nearly the same as {plans_named(context.twins[plan])}.")


# ---- the way through rooms --------------------------------------------------------------------


def _route(context: Context, plan: int) -> Iterator[Remark]:
    """The rooms it goes through, the rooms or doors that only it goes through, and the room that it avoids."""
    route = context.routes[plan] if context.routes else None
    if context.rooms is None or route is None:
        return
    yield Remark("route", 6.0, _way(context, context.rooms, plan, route))
    if context.plans.k == 1:
        return
    routes = [set() if other is None else set(other.rooms) for other in context.routes]
    own, through = _own(plan, sorted(set(route.rooms)), [fact.rooms for fact in context.survey.facts], routes)
    if own:
        yield Remark("own", 5.0, f"{through} {context.rooms.listed(own)}.")
    else:
        yield from _own_door(context, context.rooms, plan, route)
    if not own or context.plans.k > 2:
        yield from _avoided(context, context.rooms, plan)


def _own(
    plan: int, places: list[int], chances: Sequence[dict[int, float] | None], routes: Sequence[set[int]]
) -> tuple[list[int], str]:
    """The places that only this plan passes, and how to say so: judged by the chances of all plans to pass a place or,
    if some are not known, by the places on the most likely ways."""
    known = [chance for i, chance in enumerate(chances) if i != plan and chance is not None]
    seldom = [place for place in places if all(chance.get(place, 0.0) < SELDOM for chance in known)]
    mine = chances[plan]
    if mine is not None and len(known) == len(chances) - 1:
        own = [place for place in seldom if mine.get(place, 0.0) > USUAL]
        alone = all(chance.get(place, 0.0) < BARELY for chance in known for place in own)
        return own, "The only plan through" if alone else "The only plan that usually goes through"
    others = set().union(*(route for i, route in enumerate(routes) if i != plan))
    return [place for place in seldom if place not in others], "The only plan whose likeliest way goes through"


def _avoided(context: Context, rooms: Rooms, plan: int) -> Iterator[Remark]:
    """The room that most of the others cross and this plan does not."""
    chances = [fact.rooms for fact in context.survey.facts if fact.rooms is not None]
    if len(chances) < context.plans.k:
        return
    others = [chance for i, chance in enumerate(chances) if i != plan]
    crossing = {room: sum(c[room] > USUAL for c in others) for room, own in chances[plan].items() if own < AVOIDED}
    room = max(crossing, key=lambda room: (crossing[room], -room), default=0)
    if room and crossing[room] * 2 > len(others):
        yield Remark("avoids", 1.6, f"Avoids {rooms.name(room)}, which {_how_many(crossing[room], len(others))}.")


def _how_many(crossing: int, others: int) -> str:
    if others == 1:
        return "the other plan crosses"
    return "all the others cross" if crossing == others else f"{crossing} of the {others} others cross"


def _way(context: Context, rooms: Rooms, plan: int, route: Route) -> str:
    """The route in a sentence; the least likely door or room on it decides how certain the sentence is."""
    if not route.passages:
        away = straying(context, plan)
        stays = "Stays" if away < STRAYING else "Usually stays" if away < USUAL else "Its likeliest way stays"
        return f"{stays} in one room from the start to the goal."
    least = certainty(context, plan, route) or 0.0
    how = "Its likeliest way goes" if least <= USUAL else "Usually goes" if least < 1 - 1e-9 else "Goes"
    between = list(route.rooms[1:-1])
    through = f"through {rooms.listed(between)}" if between else f"straight to {rooms.name(route.rooms[-1])}"
    walls = sum(step.door is None for step in route.passages)
    often = {1: "once", 2: "twice"}.get(walls, f"{walls} times")
    tail = f", {often} through a wall instead of a door" if walls else ""
    return f"{how} {through}: {route.turns}{tail}."


def certainty(context: Context, plan: int, route: Route) -> float | None:
    """The chance of the least likely door or room on a route; None if none of them is known."""
    fact = context.survey.facts[plan]
    doors, visited = fact.doors or {}, fact.rooms or {}
    chances = [doors[step.door] for step in route.passages if step.door is not None and step.door in doors]
    chances += [visited[room] for room in route.rooms if room in visited]
    return min(chances, default=None)


def straying(context: Context, plan: int) -> float:
    """An upper bound on the chance that a plan is ever outside of the room in which its most likely way ends."""
    route, chances = context.routes[plan], context.survey.facts[plan].rooms
    if route is None or not route.rooms or chances is None:
        return 1.0
    return sum(chance for room, chance in chances.items() if room != route.rooms[-1])


def same_doors(context: Context, plan: int) -> list[int]:
    """The plans whose most likely way passes the same doors, except for those that usually take others."""
    if not context.routes or context.routes[plan] is None:
        return []
    doors = [None if route is None else [step.door for step in route.passages] for route in context.routes]
    own = doors[plan]
    if not own or None in own:
        return []
    usual = context.survey.likeness.passages
    return [
        other
        for other in range(len(doors))
        if other != plan and doors[other] == own and (usual is None or usual[plan, other])
    ]


def _own_door(context: Context, rooms: Rooms, plan: int, route: Route) -> Iterator[Remark]:
    """The doors that no other plan passes, or the plans that pass the same doors."""
    same = same_doors(context, plan)
    if same:
        found, but = difference(context, plan, same), _in_detail(context, plan, same)
        if found is not None and found.side:
            than = "" if len(same) == 1 else f" than plan {found.other + 1}"
            but = f", but keeps further {found.side} {found.where}{than}"
        elif found is not None and found.actions:
            but = f", but {found.where} {found.acting(context.plans.k)}"
        yield Remark("own", 4.5, f"Takes the same doors as {plans_named(same)}{but}.")
        return
    routes = [
        {step.door for step in way.passages if step.door is not None} if way is not None else set[int]()
        for way in context.routes
    ]
    steps = {step.door: step for step in route.passages if step.door is not None}
    own, through = _own(plan, list(steps), [fact.doors for fact in context.survey.facts], routes)
    if own:
        named = [f"the {steps[door].direction} door of {rooms.name(steps[door].origin)}" for door in own[:2]]
        yield Remark("own", 4.5, f"{through} {joined(named)}.")


# ---- the way through regions --------------------------------------------------------------------


def _regions(context: Context, plan: int) -> Iterator[Remark]:
    """The regions that only this plan goes through, and the plans that take the same passages or go the same way."""
    survey, k = context.survey, context.plans.k
    if k == 1 or context.routes or survey.facts[plan].stays is not None:
        return
    beside, taken, same = _beside(context, plan), [], []
    if survey.regions is not None and survey.likeness.passages is not None:
        names, chances = survey.regions.names, [fact.regions for fact in survey.facts if fact.regions is not None]
        telling = [region for region, name in enumerate(names) if is_telling(name)]
        own, through = _own(plan, telling, [dict(enumerate(row.tolist())) for row in chances], [])
        if own:
            yield Remark("own", 5.0, f"{through} {listed_regions([names[region] for region in own[:2]])}.")
        everywhere = np.min(chances, axis=0) > USUAL
        taken = np.flatnonzero((chances[plan] > USUAL) & ~everywhere & ~_ends_within(context, survey.regions))
        taken = [names[region] for region in taken if is_passage(names[region])]
        same = [other for other in range(k) if other != plan and survey.likeness.same_passages(plan, other)]
    if taken and same:
        named = len(taken) <= MOST_NAMED and all(map(is_telling, taken))
        which = f" ({listed_regions(taken)})" if named else ""
        but = _in_detail(context, plan, same)
        yield Remark("route", 4.5, f"Takes the same passages as {_whom(context, same)}{which}{but}.")
    elif beside:
        but = _in_detail(context, plan, beside)
        yield Remark("route", 4.5, f"Stays near {_whom(context, beside)} most of the way{but}.")


def _ends_within(context: Context, regions: MapRegions) -> Bools:
    """(R,) the regions that hold a start or a goal: every way goes through those."""
    mdp, found = context.plans.mdp, np.zeros(len(regions.names), bool)
    at = regions.of_state[(mdp.start > 0) | mdp.labels["goal"]]
    found[at[at >= 0]] = True
    return found


def _in_detail(context: Context, plan: int, others: Sequence[int]) -> str:
    return "; they differ only in detail" if all(context.in_detail(plan, other) for other in others) else ""


def _beside(context: Context, plan: int) -> list[int]:
    """The plans on the same way, except for those that are nearly the same."""
    likeness = context.survey.likeness
    return [
        other
        for other in range(context.plans.k)
        if other != plan and likeness.same_way(plan, other) and likeness.distances[plan, other] >= NEARLY_SAME
    ]


def _whom(context: Context, which: Sequence[int]) -> str:
    if len(which) == context.plans.k - 1:
        return "the other plan" if context.plans.k == 2 else "all the others"
    return plans_named(which)


# ---- length, reward and risks -----------------------------------------------------------------


def _length(context: Context, plan: int) -> Iterator[Remark]:
    own, known = context.steps[plan], [value for value in context.steps if value is not None]
    if own is None:
        return
    least, most, two = min(known), max(known), len(known) == context.plans.k == 2
    said = f"{counted(own, 'step')} to the goal on average"
    alone = sum(quantity(value) == quantity(own) for value in known) == 1
    if len(known) == 1 or quantity(least) == quantity(most):
        alike = len(known) == context.plans.k > 1
        also = f", as {context.others} {'does' if two else 'do'}" if alike else ""
        yield Remark("length", ON_THE_CARD if alike else 1.0, f"Takes {said}{also}.")
    elif quantity(own) == quantity(least):
        lead = "The shorter of the two" if two else "The shortest" if alone else "Among the shortest"
        lead = "As short as possible" if context.by_length and context.earnings[plan] is None else lead
        yield Remark("length", 3.0, f"{lead}: {said}.")
    else:
        ratio, than = own / least if least > 0 else np.inf, "the other plan" if two else "the shortest"
        more = f"{number(ratio)} times as long as {than}" if np.isfinite(ratio) else f"longer than {than}"
        more = f"{percent(ratio - 1)} longer than {than}" if ratio < 2 else more
        last = own == most and ratio > 1 + VISIBLE
        lead = f"{'The' if alone else 'Among the'} longest, {more}" if last and not two else raised(more)
        text = f"{lead} ({counted(own, 'step')} on average against {quantity(least)})."
        weight = 2.0 if last else 1.0 + min(ratio - 1, 0.9) if ratio >= 1 + LONGER else ON_THE_CARD
        yield Remark("length", weight, text)


def _reward(context: Context, plan: int) -> Iterator[Remark]:
    """How its reward compares with the optimum. Rewards that look the same in the table count as equal."""
    plans, shown, terms, column = context.plans, context.earnings, context.terms, context.rewards
    text, two = shown[plan] or context.perfect, plans.k == 2
    ties = column.count(column[plan])
    best, worst = (column[plan] == column[int(end)] for end in (np.argmax(plans.rewards), np.argmin(plans.rewards)))
    if context.by_length:
        return  # the length says the same
    if plans.k > 1 and ties == plans.k:
        whose = "the other plan" if two else "all the others"
        yield Remark("reward", ON_THE_CARD, f"The same {terms.noun} as {whose}, {text}.")
    elif plans.k > 1 and (best or worst):
        one, all_of = (terms.better, terms.best) if best else (terms.worse, terms.worst)
        lead = f"The {one} {terms.noun} of the two" if two else f"The {all_of} {terms.noun} of the set"
        lead = lead if ties == 1 else f"One of the {all_of} {terms.noun}s of the set"
        yield Remark("reward", 1.3 if ties > 1 else 3.5 if best else 3.2, f"{lead}, {text}.")
    elif text.endswith(terms.off):
        yield Remark("reward", 1.0 if plans.k == 1 else ON_THE_CARD, f"Its {terms.noun} is {text}.")
    else:
        own = f"{number(float(terms.shown(plans.rewards[plan])))} {plans.criterion.unit}, "
        said = f"{own if shown[plan] is None else ''}{text}"
        yield Remark("reward", 1.0 if plans.k == 1 else ON_THE_CARD, f"{raised(terms.verb)}s {said}.")


def _risks(context: Context, plan: int) -> Iterator[Remark]:
    """Labels with bad rewards: the chance of touching them, or the time spent there."""
    facts, names = context.survey.facts, distinct(context.survey.labels, quoted)
    for label, preference in context.survey.labels.items():
        if preference >= 0:
            continue
        touching = [fact.touches.get(label) for fact in facts]
        time = context.survey.by_state[:, context.plans.mdp.labels[label]].sum(axis=1).tolist()
        chance = touching[plan]
        own, values = (time[plan], time) if chance is None else (chance, touching)
        known = [value for value in values if value is not None]
        away = abs(len(known) * own - sum(known)) / max(len(known) - 1, 1)
        rank = _rank(own, known) if len(known) == context.plans.k else ""
        # That a plan does most often what all of them hardly ever do is not what sets it apart.
        telling = rank and (own <= 1e-9 or max(known) - min(known) >= VISIBLE)
        weight = away + (1.2 if telling else 0.3 if len(known) == 1 else 0.0)
        if own > 1e-9:
            words = words_for(context.plans, "time")
            where = f"states labelled {names[label]}" if context.plans.mdp.layout is None else names[label]
            said = f"Spends {percent(own)} of its {words} in {where}"
            said = said if chance is None else _touches(own, names[label], facts[plan].reaches)
            yield Remark("risk", weight, f"{said}{rank}.")
        else:
            never = f"never {'enters' if chance is None else 'touches'} {names[label]}"
            ever = context.reached[plan, context.plans.mdp.labels[label]].any()
            never += " in the long run" if chance is None and context.settles[plan] and ever else ""
            yield Remark("risk", weight, f"The only plan that {never}." if rank else f"{raised(never)}.")


def _danger(context: Context, plan: int) -> Iterator[Remark]:
    """How much of its way is beside the danger of the map, if the plans differ in that."""
    found = share_beside(context.plans.mdp, context.survey.by_state)
    if found is None or context.plans.k == 1:
        return
    danger, shares = short(found[0]), found[1].tolist()
    own = shares[plan]
    rank = _rank(own, shares)
    safest = "Safest: " if rank and own == min(shares) else ""
    if own <= NEVER and max(shares) > NEVER:
        yield Remark("risk", 4.0, raised(f"{safest}never beside the {danger}, except at the start and the goal."))
    elif own > NEVER:
        weight = 4.0 if safest else abs(own - sum(shares) / len(shares))
        yield Remark("risk", weight, raised(f"{safest}{percent(own)} of its way is beside the {danger}{rank}."))


def _touches(chance: float, name: str, reaches: float | None) -> str:
    if reaches is None or reaches < 1:
        return f"Touches {name} with a chance of {percent(chance)}"
    if percent(chance) == "100 %":
        return f"Touches {name} on every way to the goal"
    return f"Touches {name} on {percent(chance)} of its ways to the goal"


def _rank(own: float, values: Sequence[float]) -> str:
    """Whether a share is the least or the most of all. Shares that look the same when shown count as equal."""
    tied = [percent(value) for value in values].count(percent(own)) > 1
    if len(values) < 2 or tied or min(values) < own < max(values):
        return ""
    most = own == max(values)
    if len(values) == 2:
        return f", {'more' if most else 'less'} than the other plan"
    return f", the {'most' if most else 'least'} of all plans"
