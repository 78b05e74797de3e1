"""A title and a few sentences for each plan: what it is like and what sets it apart from the others."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from manyways.describe.comparisons import SCALE, parting
from manyways.describe.places import Route
from manyways.describe.remarks import place_of, remarks, same_doors, straying
from manyways.describe.scene import USUAL, Feature, Remark, Scene, scene_of, state_features
from manyways.describe.wording import VISIBLE, percent, quantity, raised
from manyways.plans.planset import PlanSet

SENTENCES = 5
FEWEST = 2
LEAST_WEIGHT = 0.05
"""A remark of less weight is made only where there would be too few sentences."""

OF_A_GROUP = 2
TITLE_LENGTH = 60
COMPARED = {
    "shortest": "shorter",
    "longest": "longer",
    "highest reward": "higher reward",
    "lowest reward": "lower reward",
}


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
    if route is not None and (route.passages or straying(scene, plan) < USUAL):
        return _turns(route)
    title, excess = _most_typical(scene, plan, [other for other in range(scene.plans.k) if other != plan])
    rewards = scene.plans.rewards
    first = scene.plans.k > 1 and rewards[plan] > np.delete(rewards, plan).max() + 1e-9
    return "Highest reward" if first and excess < VISIBLE else raised(title)


def _turns(route: Route) -> str:
    text = raised(route.turns) or "Within one room"
    return text if len(text) <= TITLE_LENGTH else text[:TITLE_LENGTH].rpartition(", ")[0] + ", …"


def _most_typical(scene: Scene, plan: int, others: list[int]) -> tuple[str, float]:
    """What the plan does most beyond what others do, and by how much."""
    features = [feature for feature in scene.features if scene.sectors is None or feature.kind != "label"]
    if scene.sectors is None:
        features += state_features(scene, plan)
        own_action = _own_action(scene, plan, others)
        if own_action is not None:
            return own_action.title, float(own_action.values[plan])
    best, title = -np.inf, f"plan {plan + 1}"
    for feature in features:
        own = float(feature.values[plan])
        mean = float(feature.values[others].mean()) if others else 0.0
        excess = (own - mean) * feature.part * SCALE[feature.kind]
        if excess > best:
            much = "mostly" if own > USUAL else "more" if others else "often"
            if feature.kind in ("label", "state"):
                much = f"{'more time' if much == 'more' else much} in"
            elif much == "more":
                much = "more often"
            best, title = excess, feature.title if feature.kind in ("sector", "edge") else f"{much} {feature.title}"
    return title, best


def _own_action(scene: Scene, plan: int, others: list[int]) -> Feature | None:
    """The action that the plan, and none of the others, takes; the most frequent of them."""
    own = [
        feature
        for feature in scene.features
        if feature.kind == "action" and feature.values[plan] >= VISIBLE and (feature.values[others] <= 1e-9).all()
    ]
    return max(own, key=lambda feature: feature.values[plan], default=None) if others else None


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
    """What sets a plan apart from those of the same title: what it does more; or on a route, length or reward if it is
    an extreme, best one of the whole set; else where it parts from the plan most like it, as the sentences say."""
    rest = [other for other in group if other != plan]
    if not scene.routes or scene.routes[plan] is None:
        words, excess = _most_typical(scene, plan, rest)
        return words if excess >= VISIBLE else None
    of_set = _extreme(scene, plan, [other for other in range(scene.plans.k) if other != plan])
    if of_set is not None and len(rest) > 1:
        return of_set
    found = _extreme(scene, plan, rest)
    if found is None:
        place = parting(scene, plan, same_doors(scene, plan) or rest)
        return None if place is None else place.how
    return COMPARED[found]


def _extreme(scene: Scene, plan: int, others: list[int]) -> str | None:
    """Whether it is clearly the first or last of some plans in length or reward."""
    for values, shown, least, most in (
        (scene.steps, quantity, "shortest", "longest"),
        (scene.lost, percent, "highest reward", "lowest reward"),
    ):
        own, known = values[plan], [value for i in others if (value := values[i]) is not None]
        if own is None or len(known) < len(others) or shown(own) in map(shown, known):
            continue
        low, high = min(own, *known), max(own, *known)
        if own in (low, high) and high - low > VISIBLE / 3 * high:
            return least if own == low else most
    return None
