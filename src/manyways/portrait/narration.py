"""A title and a few sentences for each plan: what it is like and what sets it apart from the others."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from manyways.planset import PlanSet
from manyways.portrait.comparing import SCALE, displacement
from manyways.portrait.places import Route, compass_direction
from manyways.portrait.remarks import place_of, remarks
from manyways.portrait.scene import USUAL, Remark, Scene, scene_of, state_features
from manyways.portrait.wording import VISIBLE, raised

SENTENCES = 5
FEWEST = 2
LEAST_WEIGHT = 0.05
"""A remark of less weight is made only where there would be too few sentences."""

OF_A_GROUP = 2
TITLE_LENGTH = 60


@dataclass(frozen=True)
class Portrait:
    """A title unlike that of any other plan of the set, and sentences, the most telling first."""

    title: str
    sentences: tuple[str, ...]


def portraits(plans: PlanSet) -> list[Portrait]:
    """One portrait for each plan, in their order."""
    scene = scene_of(plans)
    titles = _distinct(scene, [_title(scene, plan) for plan in range(plans.k)])
    return [Portrait(title, _chosen(remarks(scene, plan))) for plan, title in enumerate(titles)]


def _chosen(found: list[Remark]) -> tuple[str, ...]:
    """The best remark of each kind, as many as are worth it, two at most of each group."""
    kinds: set[str] = set()
    groups: Counter[str] = Counter()
    kept = []
    for remark in found:
        group = remark.kind.partition(":")[0]
        weighty = remark.weight >= LEAST_WEIGHT or len(kept) < FEWEST
        if weighty and remark.kind not in kinds and groups[group] < OF_A_GROUP and len(kept) < SENTENCES:
            kept.append(remark.text)
            kinds.add(remark.kind)
            groups[group] += 1
    return tuple(kept)


# ---- titles -----------------------------------------------------------------------------------


def _title(scene: Scene, plan: int) -> str:
    fact = scene.survey.facts[plan]
    if fact.stays is not None:
        return f"Stays {place_of(scene.plans.mdp, fact.stays)}"
    route = scene.routes[plan] if scene.routes else None
    if route is not None:
        return _turns(route)
    title, excess = _most_typical(scene, plan, [other for other in range(scene.plans.k) if other != plan])
    rewards = scene.plans.rewards
    first = scene.plans.k > 1 and rewards[plan] > np.delete(rewards, plan).max() + 1e-9
    return "Best reward" if first and excess < VISIBLE else title


def _turns(route: Route) -> str:
    text = raised(route.turns) or "Within one room"
    return text if len(text) <= TITLE_LENGTH else text[:TITLE_LENGTH].rpartition(", ")[0] + ", …"


def _most_typical(scene: Scene, plan: int, others: list[int]) -> tuple[str, float]:
    """What the plan does most beyond what others do, and by how much."""
    features = [feature for feature in scene.features if scene.sectors is None or feature.kind != "label"]
    if scene.sectors is None:
        features += state_features(scene, plan)
    best, title = -np.inf, f"Plan {plan + 1}"
    for feature in features:
        own = float(feature.values[plan])
        mean = float(feature.values[others].mean()) if others else 0.0
        excess = (own - mean) * feature.part * SCALE[feature.kind]
        if excess > best:
            best, title = excess, feature.title
            much = "Mostly" if own > USUAL else "More" if others else "Often"
            if feature.kind in ("action", "habit"):
                title = f"{much} {feature.title}"
            elif feature.kind in ("label", "state"):
                title = f"{'More time' if much == 'More' else much} in {feature.title}"
    return title, best


def _distinct(scene: Scene, titles: list[str]) -> list[str]:
    """Titles that several plans share get what tells these plans apart, in the end their numbers."""
    result = list(titles)
    # Once among all of the same title, and once among those whom the same words then tell apart from the rest.
    for _ in range(2):
        for title in [title for title, count in Counter(result).items() if count > 1]:
            group = [plan for plan, other in enumerate(result) if other == title]
            told = {plan: _qualifier(scene, group, plan) for plan in group}
            for plan, words in told.items():
                result[plan] = f"{titles[plan]} — {words}" if words else result[plan]
    counts = Counter(result)
    for plan, title in enumerate(result):
        if counts[title] > 1:
            result[plan] = f"{title} ({plan + 1})"
    while len(set(result)) < len(result):  # a name that looks like one of ours
        result = [f"{title} ({plan + 1})" for plan, title in enumerate(result)]
    return result


def _qualifier(scene: Scene, group: list[int], plan: int) -> str | None:
    """What sets a plan apart from those of the same title: what it does more; or on a route, length or cost if it is
    clearly an extreme, else where it keeps in some room."""
    rest = [other for other in group if other != plan]
    if not scene.routes or scene.routes[plan] is None:
        words, excess = _most_typical(scene, plan, rest)
        return words[0].lower() + words[1:] if excess >= VISIBLE else None
    comparisons = (
        ("steps to goal", "shorter", "shortest", "longer", "longest"),
        ("below optimum", "better paid", "best paid", "costlier", "costliest"),
    )
    for name, less, least, more, most in comparisons:
        values = [None if name not in scene.values else scene.values[name][i] for i in (plan, *rest)]
        known = [value for value in values if value is not None]
        if len(known) < len(group) or max(known) - min(known) <= VISIBLE / 3 * max(known):
            continue
        if known[0] < min(known[1:]):
            return less if len(group) == 2 else f"the {least} such plan"
        if known[0] > max(known[1:]):
            return more if len(group) == 2 else f"the {most} such plan"
    return _side(scene, rest, plan)


def _side(scene: Scene, rest: list[int], plan: int) -> str | None:
    """The room, or part of the map, in which it keeps furthest from where the rest of its group keeps."""
    shifts = {name: displacement(scene, plan, rest, name) for name in scene.centres}
    moved = {name: shift for name, shift in shifts.items() if shift is not None}
    if not moved:
        return None
    name = max(moved, key=lambda name: float(np.hypot(*moved[name])))
    return f"further {compass_direction(*moved[name])} {name}"
