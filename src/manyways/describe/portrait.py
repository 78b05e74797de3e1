"""Portraits: a title and a few sentences for each plan that say what it does and how it differs from the others."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from manyways.describe.comparisons import SCALE, difference
from manyways.describe.context import Context, Remark, context_of
from manyways.describe.features import USUAL, Feature, state_features
from manyways.describe.places import Route
from manyways.describe.remarks import place_of, remarks, same_doors, straying
from manyways.describe.subject import Plans
from manyways.describe.survey import Survey, survey_of
from manyways.describe.wording import VISIBLE, percent, quantity, raised

SENTENCES = 5
FEWEST = 2
LEAST_WEIGHT = 0.05
"""Remarks with less weight are used only if there would be fewer than `FEWEST` sentences."""

OF_A_GROUP = 2
TITLE_LENGTH = 60
COMPARED = {"shortest": "shorter", "longest": "longer", "highest": "higher", "lowest": "lower"}


@dataclass(frozen=True)
class Portrait:
    """A title that no other plan of the set has, and sentences, the most informative first."""

    title: str
    sentences: tuple[str, ...]


def portraits(plans: Plans | Survey) -> list[Portrait]:
    """One portrait for each plan, in their order."""
    context = context_of(survey_of(plans))
    titles = _distinct(context, [_title(context, plan) for plan in range(context.plans.k)])
    return [Portrait(title, _chosen(remarks(context, plan))) for plan, title in enumerate(titles)]


def _chosen(found: list[Remark]) -> tuple[str, ...]:
    """The texts of the best remarks: one of each kind, at most `OF_A_GROUP` of each group."""
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


def _title(context: Context, plan: int) -> str:
    fact = context.survey.facts[plan]
    if fact.stays is not None:
        return f"Stays {place_of(context.plans.mdp, fact.stays)}"
    route = context.routes[plan] if context.routes else None
    if route is not None and (route.passages or straying(context, plan) < USUAL):
        return _turns(route)
    title, excess = _most_typical(context, plan, [other for other in range(context.plans.k) if other != plan])
    rewards = context.plans.rewards
    first = context.plans.k > 1 and rewards[plan] > np.delete(rewards, plan).max() + 1e-9
    best = f"{context.terms.best} {context.terms.noun}"
    return raised(best if first and excess < VISIBLE else title)


def _turns(route: Route) -> str:
    text = raised(route.turns) or "Within one room"
    return text if len(text) <= TITLE_LENGTH else text[:TITLE_LENGTH].rpartition(", ")[0] + ", …"


def _most_typical(context: Context, plan: int, others: list[int]) -> tuple[str, float]:
    """What the plan does most in excess of the others, and by how much."""
    features = [feature for feature in context.features if context.sectors is None or feature.kind != "label"]
    if context.sectors is None:
        features += state_features(context.survey, plan)
        own_action = _own_action(context, plan, others)
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


def _own_action(context: Context, plan: int, others: list[int]) -> Feature | None:
    """The most frequent action among those that only this plan takes; None if there is no such action."""
    own = [
        feature
        for feature in context.features
        if feature.kind == "action" and feature.values[plan] >= VISIBLE and (feature.values[others] <= 1e-9).all()
    ]
    return max(own, key=lambda feature: feature.values[plan], default=None) if others else None


def _distinct(context: Context, titles: list[str]) -> list[str]:
    """Make titles unique: add what distinguishes plans with the same title, and their numbers if nothing does."""
    result = list(titles)
    # The second time for plans that got the same words the first time.
    for _ in range(2):
        for title in [title for title, count in Counter(result).items() if count > 1]:
            group = [plan for plan, other in enumerate(result) if other == title]
            added = {plan: _qualifier(context, group, plan) for plan in group}
            for plan, words in added.items():
                result[plan] = f"{titles[plan]} — {words}" if words else result[plan]
    counts = Counter(result)
    for plan, title in enumerate(result):
        if counts[title] > 1:
            result[plan] = f"{title} ({plan + 1})"
    while len(set(result)) < len(result):  # a name in the model may look like a numbered title
        result = [f"{title} ({plan + 1})" for plan, title in enumerate(result)]
    return result


def _qualifier(context: Context, group: list[int], plan: int) -> str | None:
    """What distinguishes a plan from those with the same title.

    Without a route it is what the plan does more. With a route it is length or reward if the plan is the first or last
    in it, of the whole set if possible; otherwise where it differs from the plan most like it, as its sentences say.
    """
    rest = [other for other in group if other != plan]
    if not context.routes or context.routes[plan] is None:
        words, excess = _most_typical(context, plan, rest)
        return words if excess >= VISIBLE else None
    of_set = _extreme(context, plan, [other for other in range(context.plans.k) if other != plan])
    if of_set is not None and len(rest) > 1:
        return of_set
    found = _extreme(context, plan, rest)
    if found is None:
        place = difference(context, plan, same_doors(context, plan) or rest)
        return None if place is None else place.how
    degree, _, noun = found.partition(" ")
    return f"{COMPARED[degree]} {noun}".rstrip()


def _extreme(context: Context, plan: int, others: list[int]) -> str | None:
    """Whether a plan is clearly the first or last in length or reward, compared with `others`."""
    terms = context.terms
    for values, shown, least, most in (
        (context.steps, quantity, "shortest", "longest"),
        (context.lost, percent, f"{terms.best} {terms.noun}", f"{terms.worst} {terms.noun}"),
    ):
        own, known = values[plan], [value for i in others if (value := values[i]) is not None]
        if own is None or len(known) < len(others) or shown(own) in map(shown, known):
            continue
        low, high = min(own, *known), max(own, *known)
        if own in (low, high) and high - low > VISIBLE / 3 * high:
            return least if own == low else most
    return None
