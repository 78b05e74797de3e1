"""What might be said of a plan: remarks, each true on its own and weighed by how much it tells.

What says outright where a plan goes, or that it is the best or the last in something, has a fixed weight above 1. The
others weigh as much as the share by which the plan differs from the rest: see `comparing`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from manyways.describe.comparisons import decisions, nearest, parting, time_spent
from manyways.describe.measures import NEVER
from manyways.describe.places import Rooms, Route
from manyways.describe.scene import BELOW, PERFECT, USUAL, Remark, Scene, words_for
from manyways.describe.wording import (
    VISIBLE,
    counted,
    distinct,
    joined,
    number,
    percent,
    plain,
    quantity,
    quoted,
    raised,
)
from manyways.model.mdp import MDP

SELDOM = 0.1
"""A door or room is a plan's own if the others pass it with less than this chance."""

AVOIDED = 0.02
STRAYING = 0.01
LONGER = 0.05
ON_THE_CARD = 0.03
"""The weight of what the numbers beside the sentences say as well: it is said only where there is little else."""


def remarks(scene: Scene, plan: int) -> list[Remark]:
    """All that might be said of a plan, counted from 0; the most telling first."""
    found = [
        *_standing(scene, plan),
        *_twins(scene, plan),
        *_ends(scene, plan),
        *_route(scene, plan),
        *_length(scene, plan),
        *_reward(scene, plan),
        *_risks(scene, plan),
        *time_spent(scene, plan),
        *decisions(scene, plan),
        *(() if same_doors(scene, plan) else nearest(scene, plan)),
    ]
    return sorted(found, key=lambda remark: -remark.weight)


def _standing(scene: Scene, plan: int) -> Iterator[Remark]:
    fact = scene.survey.facts[plan]
    if fact.stays is not None:
        yield Remark("stays", 9.0, f"Stays {place_of(scene.plans.mdp, fact.stays)} for good.")
    if fact.reaches is not None and fact.reaches < 1:
        text = f"Reaches the goal with a chance of only {percent(fact.reaches)}."
        yield Remark("goal", 8.0, "Never reaches the goal." if fact.reaches <= 1e-9 else text)


def _ends(scene: Scene, plan: int) -> Iterator[Remark]:
    """How often it reaches the goal, where an episode may end in other ways."""
    episodes = scene.survey.episodes
    shares = [] if episodes is None else [share for share in episodes.shares.get("goal", ()) if share is not None]
    if not shares or all(share == 1 for share in shares):
        return
    own, rank = shares[plan], _rank(shares[plan], shares)
    if own >= 1 - 1e-9:
        yield Remark("goal", 5.0, "The only plan that always reaches the goal." if rank else "Always reaches the goal.")
    elif own <= NEVER:
        yield Remark("goal", 8.0, "Never reaches the goal.")
    else:
        yield Remark("goal", 5.0, f"Reaches the goal in {percent(own)} of its episodes{rank}.")


def place_of(mdp: MDP, state: int) -> str:
    """ "at r3c4" on a map, "in 'worn'" elsewhere."""
    name = mdp.state_name(state)
    return f"at {plain(name)}" if mdp.layout is not None else f"in {quoted(name)}"


def _twins(scene: Scene, plan: int) -> Iterator[Remark]:
    if scene.twins[plan]:
        yield Remark("twin", 7.0, f"Nearly the same as {_plans(scene.twins[plan])}.")


def _plans(which: Sequence[int]) -> str:
    """Plans counted from 0 -> "plan 3", "plans 1, 2 and 4", "plans 1, 2, 3 and 7 more"."""
    named = [str(plan + 1) for plan in sorted(which)]
    if len(named) > 4:
        named[3:] = [f"{len(named) - 3} more"]
    return f"plan{'s' if len(which) > 1 else ''} {joined(named)}"


# ---- the way through rooms --------------------------------------------------------------------


def _route(scene: Scene, plan: int) -> Iterator[Remark]:
    """Through which rooms, and which of them are its own."""
    route = scene.routes[plan] if scene.routes else None
    if scene.rooms is None or route is None:
        return
    yield Remark("route", 6.0, _way(scene, scene.rooms, plan, route))
    if scene.plans.k == 1:
        return
    routes = [set() if other is None else set(other.rooms) for other in scene.routes]
    own, through = _own(plan, sorted(set(route.rooms)), [fact.rooms for fact in scene.survey.facts], routes)
    if own:
        yield Remark("own", 5.0, f"{through} {scene.rooms.listed(own)}.")
    else:
        yield from _own_door(scene, scene.rooms, plan, route)
    if not own or scene.plans.k > 2:
        yield from _avoided(scene, scene.rooms, plan)


def _own(
    plan: int, places: list[int], chances: Sequence[dict[int, float] | None], routes: Sequence[set[int]]
) -> tuple[list[int], str]:
    """Those of a plan's places that are its own, and how to say so: by all plans' chances to pass a place, or where
    some are not known by the places on the likeliest ways."""
    known = [chance for i, chance in enumerate(chances) if i != plan and chance is not None]
    seldom = [place for place in places if all(chance.get(place, 0.0) < SELDOM for chance in known)]
    mine = chances[plan]
    if mine is not None and len(known) == len(chances) - 1:
        return [place for place in seldom if mine.get(place, 0.0) > USUAL], "The only plan through"
    others = set().union(*(route for i, route in enumerate(routes) if i != plan))
    return [place for place in seldom if place not in others], "The only plan whose likeliest way goes through"


def _avoided(scene: Scene, rooms: Rooms, plan: int) -> Iterator[Remark]:
    """The room that most of the others cross, and it does not."""
    chances = [fact.rooms for fact in scene.survey.facts if fact.rooms is not None]
    if len(chances) < scene.plans.k:
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


def _way(scene: Scene, rooms: Rooms, plan: int, route: Route) -> str:
    """The route in a sentence that says how sure it is, by the door or room that is passed with the least chance."""
    fact = scene.survey.facts[plan]
    if not route.passages:
        away = straying(scene, plan)
        stays = "Stays" if away < STRAYING else "Usually stays" if away < USUAL else "Its likeliest way stays"
        return f"{stays} in one room from the start to the goal."
    doors, visited = fact.doors or {}, fact.rooms or {}
    chances = [doors[step.door] for step in route.passages if step.door is not None and step.door in doors]
    chances += [visited[room] for room in route.rooms if room in visited]
    least = min(chances, default=0.0)
    how = "Its likeliest way goes" if least <= USUAL else "Usually goes" if least < 1 - 1e-9 else "Goes"
    between = list(route.rooms[1:-1])
    through = f"through {rooms.listed(between)}" if between else f"straight to {rooms.name(route.rooms[-1])}"
    walls = sum(step.door is None for step in route.passages)
    often = {1: "once", 2: "twice"}.get(walls, f"{walls} times")
    tail = f", {often} through a wall instead of a door" if walls else ""
    return f"{how} {through}: {route.turns}{tail}."


def straying(scene: Scene, plan: int) -> float:
    """At most this is the chance that a plan leaves the room in which its likeliest way ends."""
    route, chances = scene.routes[plan], scene.survey.facts[plan].rooms
    if route is None or not route.rooms or chances is None:
        return 1.0
    return sum(chance for room, chance in chances.items() if room != route.rooms[-1])


def same_doors(scene: Scene, plan: int) -> list[int]:
    """The plans whose likeliest way passes the same doors."""
    if not scene.routes or scene.routes[plan] is None:
        return []
    doors = [None if route is None else [step.door for step in route.passages] for route in scene.routes]
    own = doors[plan]
    if not own or None in own:
        return []
    return [other for other in range(len(doors)) if other != plan and doors[other] == own]


def _own_door(scene: Scene, rooms: Rooms, plan: int, route: Route) -> Iterator[Remark]:
    """Doors that no other plan passes; or that its doors are the same as another's."""
    same = same_doors(scene, plan)
    if same:
        found, but = parting(scene, plan, same), ""
        if found is not None and found.side:
            than = "" if len(same) == 1 else f" than plan {found.other + 1}"
            but = f", but keeps further {found.side} {found.where}{than}"
        elif found is not None and found.actions:
            but = f", but {found.where} {found.acting(scene.plans.k)}"
        yield Remark("own", 4.5, f"Takes the same doors as {_plans(same)}{but}.")
        return
    routes = [
        {step.door for step in way.passages if step.door is not None} if way is not None else set[int]()
        for way in scene.routes
    ]
    steps = {step.door: step for step in route.passages if step.door is not None}
    own, through = _own(plan, list(steps), [fact.doors for fact in scene.survey.facts], routes)
    if own:
        named = [f"the {steps[door].direction} door of {rooms.name(steps[door].origin)}" for door in own[:2]]
        yield Remark("own", 4.5, f"{through} {joined(named)}.")


# ---- what it costs and earns ------------------------------------------------------------------


def _length(scene: Scene, plan: int) -> Iterator[Remark]:
    own, known = scene.steps[plan], [value for value in scene.steps if value is not None]
    if own is None:
        return
    least, most, two = min(known), max(known), len(known) == scene.plans.k == 2
    said = f"{counted(own, 'step')} to the goal on average"
    alone = sum(quantity(value) == quantity(own) for value in known) == 1
    if len(known) == 1 or quantity(least) == quantity(most):
        alike = len(known) == scene.plans.k > 1
        also = f", as {scene.others} {'does' if two else 'do'}" if alike else ""
        yield Remark("length", ON_THE_CARD if alike else 1.0, f"Takes {said}{also}.")
    elif quantity(own) == quantity(least):
        lead = "The shorter of the two" if two else "The shortest" if alone else "Among the shortest"
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


def _reward(scene: Scene, plan: int) -> Iterator[Remark]:
    """How it stands against the optimum. Rewards that look the same when shown count as the same."""
    plans, shown = scene.plans, scene.earnings
    text, two = shown[plan], plans.k == 2
    ties = shown.count(text)
    best, worst = (text == shown[int(end)] for end in (np.argmax(plans.rewards), np.argmin(plans.rewards)))
    if plans.k > 1 and ties == plans.k:
        same = "The same reward as the other plan" if two else "The same reward as all the others"
        yield Remark("reward", ON_THE_CARD, f"{same}, {text}.")
    elif plans.k > 1 and (best or worst):
        one, all_of = ("higher", "highest") if best else ("lower", "lowest")
        lead = f"The {one} reward of the two" if two else f"The {all_of} reward of the set"
        lead = lead if ties == 1 else f"One of the {all_of} rewards of the set"
        yield Remark("reward", 1.3 if ties > 1 else 3.5 if best else 3.2, f"{lead}, {text}.")
    elif text.endswith(BELOW):
        yield Remark("reward", 1.0 if plans.k == 1 else ON_THE_CARD, f"Its reward is {text}.")
    else:
        own = f"{number(float(plans.rewards[plan]))} per step, " if text == PERFECT else ""
        yield Remark("reward", 1.0 if plans.k == 1 else ON_THE_CARD, f"Earns {own}{text}.")


def _risks(scene: Scene, plan: int) -> Iterator[Remark]:
    """Labels that the rewards tell one to keep out of: the chance to touch them, or time spent there."""
    facts, names = scene.survey.facts, distinct(scene.survey.labels, quoted)
    for label, liking in scene.survey.labels.items():
        if liking >= 0:
            continue
        touching = [fact.touches.get(label) for fact in facts]
        time = scene.survey.by_state[:, scene.plans.mdp.labels[label]].sum(axis=1).tolist()
        chance = touching[plan]
        own, values = (time[plan], time) if chance is None else (chance, touching)
        known = [value for value in values if value is not None]
        away = abs(len(known) * own - sum(known)) / max(len(known) - 1, 1)
        rank = _rank(own, known) if len(known) == scene.plans.k else ""
        weight = away + (1.2 if rank else 0.3 if len(known) == 1 else 0.0)
        if own > 1e-9:
            words = words_for(scene.plans, "time")
            said = f"Spends {percent(own)} of its {words} in {names[label]}"
            said = said if chance is None else _touches(own, names[label], facts[plan].reaches)
            yield Remark("risk", weight, f"{said}{rank}.")
        else:
            never = f"never {'enters' if chance is None else 'touches'} {names[label]}"
            never += " in the long run" if chance is None and scene.settles[plan] else ""
            yield Remark("risk", weight, f"The only plan that {never}." if rank else f"{raised(never)}.")


def _touches(chance: float, name: str, reaches: float | None) -> str:
    if reaches is None or reaches < 1:
        return f"Touches {name} with a chance of {percent(chance)}"
    if percent(chance) == "100 %":
        return f"Touches {name} on every way to the goal"
    return f"Touches {name} on {percent(chance)} of its ways to the goal"


def _rank(own: float, values: Sequence[float]) -> str:
    """Whether a share is the least or the most of all, as far as can be seen from how they are shown."""
    tied = [percent(value) for value in values].count(percent(own)) > 1
    if len(values) < 2 or tied or min(values) < own < max(values):
        return ""
    most = own == max(values)
    if len(values) == 2:
        return f", {'more' if most else 'less'} than the other plan"
    return f", the {'most' if most else 'least'} of all plans"
