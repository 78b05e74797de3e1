"""Remarks that set a plan against the others: what it spends more and less time on, where it decides differently.

Such a remark weighs as much as the share of time by which the plan differs from the mean of the others, and twice
that where it is outside their whole range.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from manyways.describe.places import compass_direction
from manyways.describe.scene import SEEN, Feature, Remark, Scene, action_shares, state_features, words_for
from manyways.describe.wording import VISIBLE, percent, quoted
from manyways.objectives.divergence import divergence_by_place
from manyways.plans.planset import PlanSet
from manyways.types import Bools

HARDLY = 0.005
SCALE = {"sector": 1.0, "edge": 1.0, "label": 0.9, "state": 0.9, "action": 0.7, "habit": 0.9}
GROUP = {"sector": "where", "edge": "where", "label": "where", "state": "where", "action": "how", "habit": "how"}
CONCENTRATED = 0.25
"""Two plans differ 'mainly' in a place if this share of their divergence lies there."""

MOVED = 0.3
"""Cells by which two plans' mean places must lie apart to be worth a word."""


def time_spent(scene: Scene, plan: int) -> Iterator[Remark]:
    """What the plan does more than the others, and what it does less."""
    if scene.survey.facts[plan].stays is not None:
        return  # all of it is said by where it stays
    rooms = 0.3 if scene.rooms is not None else 1.0  # a route says it better
    for feature in scene.features:
        yield from _compared(scene, plan, feature, SCALE[feature.kind] * rooms)
    if scene.plans.mdp.layout is None:
        for feature in state_features(scene, plan):
            yield from _compared(scene, plan, feature, SCALE["state"])
    actions = [feature for feature in scene.features if feature.kind == "action"]
    main = max(actions, key=lambda feature: feature.values[plan])
    # Of next to no weight: for plans of which there is nothing else to say.
    yield Remark("how:main", 1e-3, f"{main.does(percent(float(main.values[plan])))}, more than any other action.")


def _compared(scene: Scene, plan: int, feature: Feature, scale: float) -> Iterator[Remark]:
    own, k, group = float(feature.values[plan]), scene.plans.k, GROUP[feature.kind]
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
        settling = any(settles for i, settles in enumerate(scene.settles) if i != plan)
        average = "0 % in the long run" if settling else _never(group, k)
    if own > mean:
        yield Remark(
            f"{group}:{feature.place or 'more'}",
            weight,
            f"{feature.does(percent(own))}; {scene.others} {average}.",
        )
    elif own >= HARDLY or mean < VISIBLE:
        less = feature.does(f"only {percent(own)}")
        yield Remark(f"{group}:{feature.place or 'less'}", 0.5 * weight, f"{less}; {scene.others} {average}.")
    else:
        never = feature.never if own <= 1e-9 else feature.hardly
        never += " in the long run" if scene.settles[plan] and own <= 1e-9 else ""
        yield Remark(f"{group}:{feature.place or 'less'}", weight, f"{never}{_unlike(scene, feature, mean)}.")


def _unlike(scene: Scene, feature: Feature, mean: float) -> str:
    """How much of it the others do, after saying that a plan does not."""
    plural = scene.plans.k > 2
    average = " on average" if plural else ""
    if GROUP[feature.kind] == "where":
        return f", where {scene.others} {'spend' if plural else 'spends'} {percent(mean)}{average}"
    steps = f"{'their' if plural else 'its'} {words_for(scene.plans, 'steps')}"
    there = " there" if feature.kind == "habit" else ""
    return f"; {scene.others} {'take' if plural else 'takes'} it in {percent(mean)} of {steps}{there}{average}"


def _never(group: str, k: int) -> str:
    if group == "how":
        return "never does" if k == 2 else "never do"
    return "is never there" if k == 2 else "are never there"


def decisions(scene: Scene, plan: int) -> Iterator[Remark]:
    """How often the plan acts as no other plan ever does there, and where above all."""
    mdp, plans, choices = scene.plans.mdp, scene.plans, scene.choices
    if plans.k < 2 or choices is None:
        return
    own, others = choices[plan], np.delete(choices, plan, axis=0)
    also = np.delete(plans.policies, plan, axis=0)[:, np.maximum(own, 0)] > 1e-9
    alone = (own >= 0) & (others != -1).any(axis=0) & ~(also & (others != -1)).any(axis=0)
    time = np.where(alone, scene.survey.by_state[plan], 0.0)
    state, total = int(np.argmax(time)), float(time.sum())
    if total < VISIBLE:
        return
    action, where = quoted(mdp.action_name(int(own[state]))), quoted(mdp.state_name(state))
    if time[state] < total / 2:
        often = f"{percent(total)} of its {words_for(plans, 'steps')}"
        text = f"Acts in {often} as {scene.no_other} does, most often by taking {action} in {where}."
    elif plans.k == 2:
        other = int(others[0, state])
        does = f"takes {quoted(mdp.action_name(other))}" if _always(plans, 1 - plan, other) else "never does"
        takes = "Takes" if _always(plans, plan, int(own[state])) else "Nearly always takes"
        text = f"{takes} {action} in {where}, where the other plan {does}."
    else:
        text = f"The only plan to take {action} in {where}, where it spends {percent(time[state])} of its {words_for(plans, 'time')}."
    yield Remark("how:decision", 1.5 * total, text)


def _always(plans: PlanSet, plan: int, choice: int) -> bool:
    return choice >= 0 and bool(plans.policies[plan, choice] > 1 - 1e-6)


@dataclass(frozen=True)
class Parting:
    """Where a plan differs mainly from another one, and how if that can be said: in place, or in the actions that the
    one and the other take more often."""

    other: int
    where: str
    side: str | None
    actions: tuple[str, str] | None

    @property
    def how(self) -> str | None:
        """In a few words, for a title."""
        if self.side:
            return f"further {self.side} {self.where}"
        return f"more {self.actions[0]} {self.where}" if self.actions else None

    def acting(self, k: int) -> str | None:
        """In a sentence on one of `k` plans."""
        if self.actions is None:
            return None
        who = "the other plan" if k == 2 else f"plan {self.other + 1}"
        return f"it takes {self.actions[0]} more often and {who} {self.actions[1]}"


def parting(scene: Scene, plan: int, among: Sequence[int]) -> Parting | None:
    """Where the plan parts from that one of `among` which is most like it."""
    if not among:
        return None
    other = min(among, key=lambda other: scene.plans.distances[plan, other])
    where = _region_of_difference(scene, plan, other)
    if where is None:
        return None
    mask = scene.regions[where]
    shift = _displacement(scene, plan, other, where)
    return Parting(
        other,
        where,
        None if shift is None else compass_direction(*shift),
        _acting(scene, plan, other, mask),
    )


def nearest(scene: Scene, plan: int) -> Iterator[Remark]:
    """Where the plan parts from the one that is most like it."""
    found = parting(scene, plan, [other for other in range(scene.plans.k) if other != plan])
    if found is None or scene.twins[plan]:
        return
    how = f"it keeps further {found.side}" if found.side else found.acting(scene.plans.k)
    if how:
        lead = f"Most like plan {found.other + 1}; they differ" if scene.plans.k > 2 else "Differs from the other plan"
        yield Remark(f"how:{found.where}", 0.3, f"{lead} mainly {found.where}, where {how}.")


def _region_of_difference(scene: Scene, plan: int, other: int) -> str | None:
    """The region that holds more of the two plans' divergence than its share of time, by the most."""
    p, q = scene.plans.occupancies[plan], scene.plans.occupancies[other]
    apart = np.add.reduceat(divergence_by_place(p, q), scene.plans.mdp.first_choice[:-1])
    time = (scene.survey.by_state[plan] + scene.survey.by_state[other]) / 2
    if apart.sum() <= 0:
        return None
    share = {name: float(apart[mask].sum() / apart.sum()) for name, mask in scene.regions.items()}
    beyond = {
        name: share[name] - time[mask].sum() for name, mask in scene.regions.items() if share[name] >= CONCENTRATED
    }
    best = max(beyond, key=beyond.__getitem__, default=None)
    return best if best is not None and beyond[best] > VISIBLE else None


def _displacement(scene: Scene, plan: int, other: int, where: str) -> tuple[float, float] | None:
    """(rows, columns) from the mean place of another plan in a region to that of one; None if near, or rarely there."""
    centre = scene.centres.get(where)
    if centre is None or centre[[plan, other], 0].min() < SEEN:
        return None
    down, right = centre[plan, 1:] - centre[other, 1:]
    return (float(down), float(right)) if max(abs(down), abs(right)) >= MOVED else None


def _acting(scene: Scene, plan: int, other: int, mask: Bools) -> tuple[str, str] | None:
    """Which action the one takes more often in a region, and which the other."""
    shares = action_shares(scene.plans, mask, [plan, other])
    time = shares.sum(axis=1)
    if time.min() < SEEN:
        return None
    more = shares[0] / time[0] - shares[1] / time[1]
    up, down = int(np.argmax(more)), int(np.argmin(more))
    if min(more[up], -more[down]) < VISIBLE:
        return None
    names = scene.plans.mdp.action_names
    return quoted(names[up]), quoted(names[down])
