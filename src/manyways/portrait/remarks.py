"""What might be said of a plan: remarks, each true on its own and weighed by how much it tells.

What says outright where a plan goes, or that it is the best or the last in something, has a fixed weight above 1. The
others weigh as much as the share by which the plan differs from the rest: see `comparing`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from manyways.mdp import MDP
from manyways.portrait.comparing import decisions, nearest, parting, time_spent
from manyways.portrait.measuring import short
from manyways.portrait.places import Rooms, Route
from manyways.portrait.scene import BELOW, PERFECT, USUAL, Remark, Scene, words_for
from manyways.portrait.wording import VISIBLE, counted, joined, number, percent, quantity, quoted, raised

SELDOM = 0.1
"""A door is a plan's own if the others pass it in a smaller share of their rounds."""


def remarks(scene: Scene, plan: int) -> list[Remark]:
    """All that might be said of a plan, counted from 0; the most telling first."""
    found = [
        *_standing(scene, plan),
        *_twins(scene, plan),
        *_route(scene, plan),
        *_length(scene, plan),
        *_reward(scene, plan),
        *_risks(scene, plan),
        *time_spent(scene, plan),
        *decisions(scene, plan),
        *(() if _same_doors(scene, plan) else nearest(scene, plan)),
    ]
    return sorted(found, key=lambda remark: -remark.weight)


def _standing(scene: Scene, plan: int) -> Iterator[Remark]:
    fact = scene.survey.facts[plan]
    if fact.stays is not None:
        yield Remark("stays", 9.0, f"Stays {place_of(scene.plans.mdp, fact.stays)} for good.")
    if fact.reaches is not None and fact.reaches < 1:
        text = f"Reaches the goal in only {percent(fact.reaches)} of its runs."
        yield Remark("goal", 8.0, "Never reaches the goal." if fact.reaches <= 1e-9 else text)


def place_of(mdp: MDP, state: int) -> str:
    """ "at r3c4" on a map, "in 'worn'" elsewhere."""
    name = mdp.state_name(state)
    return f"at {short(name)}" if mdp.layout is not None else f"in {quoted(name)}"


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
    others = [crossed for i, crossed in enumerate(scene.crossed) if i != plan]
    if not others:
        return
    own = sorted(room for room in set(route.rooms) if not any(room in rooms for rooms in others))
    if own:
        yield Remark("own", 5.0, f"The only plan through {scene.rooms.listed(own)}.")
    else:
        yield from _own_door(scene, scene.rooms, plan, route)
    crossing = {room: sum(room in rooms for rooms in others) for room in set().union(*others) - scene.crossed[plan]}
    room = max(crossing, key=lambda room: (crossing[room], -room), default=0)
    if room and crossing[room] * 2 > len(others):
        yield Remark("avoids", 1.6, f"Avoids {scene.rooms.name(room)}, which {_how_many(crossing[room], len(others))}.")


def _how_many(crossing: int, others: int) -> str:
    if others == 1:
        return "the other plan crosses"
    return "all the others cross" if crossing == others else f"{crossing} of the {others} others cross"


def _way(scene: Scene, rooms: Rooms, plan: int, route: Route) -> str:
    """The route in a sentence that says how sure it is, by the door that is passed in the fewest rounds."""
    if not route.passages:
        return "Stays in one room from the start to the goal."
    fact = scene.survey.facts[plan]
    chances = [fact.doors.get(step.door) for step in route.passages if step.door is not None]
    least = min((chance for chance in chances if chance is not None), default=0.0)
    how = "Most likely goes" if least <= USUAL else "Usually goes" if least < 1 - 1e-9 else "Goes"
    between = list(route.rooms[1:-1])
    through = f"through {rooms.listed(between)}" if between else f"straight to {rooms.name(route.rooms[-1])}"
    walls = sum(step.door is None for step in route.passages)
    often = {1: "once", 2: "twice"}.get(walls, f"{walls} times")
    tail = f", {often} through a wall instead of a door" if walls else ""
    return f"{how} {through}: {route.turns}{tail}."


def _same_doors(scene: Scene, plan: int) -> list[int]:
    """The plans whose likeliest way passes the same doors."""
    if not scene.routes or scene.routes[plan] is None:
        return []
    doors = [None if route is None else [step.door for step in route.passages] for route in scene.routes]
    own = doors[plan]
    if not own or None in own:
        return []
    return [other for other in range(len(doors)) if other != plan and doors[other] == own]


def _own_door(scene: Scene, rooms: Rooms, plan: int, route: Route) -> Iterator[Remark]:
    """Doors that no other plan's likeliest way passes; or that its doors are the same as another's."""
    same = _same_doors(scene, plan)
    if same:
        found, but = parting(scene, plan, same), ""
        if found is not None and found.side:
            than = "" if len(same) == 1 else f" than plan {found.other + 1}"
            but = f", but keeps further {found.side} {found.where}{than}"
        elif found is not None and found.acting:
            but = f", but {found.where} {found.acting}"
        yield Remark("own", 4.5, f"Takes the same doors as {_plans(same)}{but}.")
        return
    others = [other for other in range(scene.plans.k) if other != plan]
    passing = [door for i in others for door, chance in scene.survey.facts[i].doors.items() if chance >= SELDOM]
    taken = {step.door for i in others if (way := scene.routes[i]) is not None for step in way.passages} | set(passing)
    own = [step for step in route.passages if step.door is not None and step.door not in taken]
    if own:
        named = joined([f"the {step.direction} door of {rooms.name(step.origin)}" for step in own[:2]])
        yield Remark("own", 4.5, f"The only plan through {named}.")


# ---- what it costs and earns ------------------------------------------------------------------


def _length(scene: Scene, plan: int) -> Iterator[Remark]:
    steps = scene.values.get("steps to goal", (None,) * scene.plans.k)
    own, known = steps[plan], [value for value in steps if value is not None]
    if own is None:
        return
    least, most = min(known), max(known)
    said = f"{counted(own, 'step')} to the goal on average"
    if len(known) == 1 or (len(known) < scene.plans.k and quantity(least) == quantity(most)):
        yield Remark("length", 1.0, f"Takes {said}.")
    elif quantity(least) == quantity(most):
        yield Remark("length", 0.2, f"Takes {said}, as {scene.others} {'does' if scene.plans.k == 2 else 'do'}.")
    elif quantity(own) == quantity(least):
        alone = sum(quantity(value) == quantity(own) for value in known) == 1
        yield Remark("length", 3.0, f"{'The shortest' if alone else 'Among the shortest'}: {said}.")
    else:
        ratio = own / least if least > 0 else np.inf
        times = f"{number(ratio)} times as long as" if np.isfinite(ratio) else "longer than"
        more = f"{percent(ratio - 1)} longer than the shortest" if ratio < 2 else f"{times} the shortest"
        last = own == most and ratio > 1 + VISIBLE and len(known) > 2
        lead = f"The longest, {more}" if last else raised(more)
        text = f"{lead} ({counted(own, 'step')} on average against {quantity(least)})."
        yield Remark("length", 2.0 if last else 1.0 + min(ratio - 1, 0.9), text)


def _reward(scene: Scene, plan: int) -> Iterator[Remark]:
    """How much of the optimum it gives up. Rewards that look the same when shown count as the same."""
    plans = scene.plans
    shown = scene.earnings
    text, share = shown[plan], scene.values["below optimum"][plan] or 0.0
    ties, best = shown.count(text), text == shown[int(np.argmax(plans.rewards))]
    if ties == plans.k > 1:
        lead = "The same reward as the other plan" if plans.k == 2 else "The same reward as all the others"
        yield Remark("reward", 0.9, f"{lead}, {text}.")
    elif best and plans.k > 1:
        lead = "The best reward of the set" if ties == 1 else "One of the best rewards of the set"
        yield Remark("reward", 3.5 if ties == 1 else 1.3, f"{lead}, {text}.")
    elif text.endswith(BELOW):
        last = plans.k > 2 and ties == 1 and plans.rewards[plan] == plans.rewards.min()
        text = f"Costs {percent(share)} of the optimal reward{', the most of all plans' if last else ''}."
        yield Remark("reward", 3.2 if last else 1.3 + share, text)
    else:
        own = f"{number(float(plans.rewards[plan]))} per step, " if text == PERFECT else ""
        yield Remark("reward", 1.0, f"Earns {own}{text}.")


def _risks(scene: Scene, plan: int) -> Iterator[Remark]:
    """Labels that the rewards tell one to keep out of: rounds that touch them, or time spent there."""
    for label, liking in scene.survey.labels.items():
        if liking >= 0:
            continue
        touching = [fact.touches.get(label) for fact in scene.survey.facts]
        rounds = touching[plan] is not None
        time = scene.survey.by_state[:, scene.plans.mdp.labels[label]].sum(axis=1)
        values = [v for v in touching if v is not None] if rounds else [float(v) for v in time]
        own = touching[plan] if rounds else float(time[plan])
        if own is None:
            continue
        said = f"Spends {percent(own)} of its {words_for(scene.plans, 'time')} in {quoted(label)}"
        if rounds:
            said = f"Touches {quoted(label)} in {percent(own)} of its rounds"
        if own <= 1e-9:
            said = f"Never {'touches' if rounds else 'enters'} {quoted(label)}"
            said += " in the long run" if not rounds and scene.settles[plan] else ""
        away = abs(len(values) * own - sum(values)) / max(len(values) - 1, 1)
        rank = _rank(own, values) if len(values) == scene.plans.k else ""
        if own <= 1e-9 and rank:
            rank = ", as the only plan"
        yield Remark("risk", away + (1.2 if rank else 0.3 if len(values) == 1 else 0.0), f"{said}{rank}.")


def _rank(own: float, values: Sequence[float]) -> str:
    """Whether a share is the least or the most of all, as far as can be seen from how they are shown."""
    tied = [percent(value) for value in values].count(percent(own)) > 1
    if len(values) < 2 or tied or min(values) < own < max(values):
        return ""
    most = own == max(values)
    if len(values) == 2:
        return f", {'more' if most else 'less'} than the other plan"
    return f", the {'most' if most else 'least'} of all plans"
