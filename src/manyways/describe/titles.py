"""Titles: what a plan does differently in its main part, in a few words, and no two alike.

The first of these that holds is the title of a plan:

1. It stays in one place.
2. The rooms on its way, where doors separate rooms, if most of its ways to the goal take it.
3. The labels, rooms or passages that most of its ways to the goal go through and most ways of some other plan do not, if
   the shares of ways differ by at least a quarter.
4. What it does under a condition on the variables of the states, in a model without a map: "Runs at wear 2 or more". It does so
   for at least a quarter of its time, and no other plan does, or at most half of the others do.
5. What it spends at least a quarter of its time on and the others on average at most half as much: a part of the map, an action.
   A plan that does nearly as much of it must have the same title.
6. "Highest reward", if it is the only one.
7. "Like plan 2, but orders when parts are 0": the part of its rule in which it differs, if it is alike to a plan that has a
   title by one of the other rules; its loss where there is no such part.
8. The part of its rule in which it differs from all others, or its loss.

A plan that is equal to better ones, or to earlier ones that are as good, says so before all of these: "The same as plan 1".

Plans with the same title get a qualifier, which holds against all others with that title: for which the same shares are required,
then however small the part is in which they differ, and their numbers if nothing can be said.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from manyways.describe.action_words import does
from manyways.describe.comparisons import SCALE, closest, difference, distinction
from manyways.describe.context import Context
from manyways.describe.features import ALSO, SEEN, USUAL, Feature, action_shares, state_features
from manyways.describe.habits import departure, habits_of
from manyways.describe.likeness import QUARTER
from manyways.describe.places import is_passage, is_telling, listed_regions, share_beside
from manyways.describe.remarks import certainty, place_of, straying
from manyways.describe.steering import deeds_of
from manyways.describe.subject import NEVER
from manyways.describe.survey import negligible
from manyways.describe.wording import VISIBLE, distinct, finely, joined, plain, quantity, raised, short
from manyways.types import Floats

TITLE_LENGTH = 60
NAMED = 3
"""At most this many rooms or passages are named in a title."""

COMPARED = {"shortest": "shorter", "longest": "longer", "highest": "higher", "lowest": "lower"}


def titles_of(context: Context) -> list[str]:
    """The title of each plan."""
    titles: list[str | None] = [None] * context.plans.k
    ordered = np.argsort(-context.plans.rewards, kind="stable").tolist()
    habits = habits_of(context.survey, context.rules)
    equal = [_same_as(context, plan, ordered[: ordered.index(plan)]) for plan in range(context.plans.k)]
    open_to: dict[int, list[Typical]] = {}
    for rank, plan in enumerate(ordered):
        if equal[plan] is not None:
            continue
        titles[plan] = _by_way(context, plan)
        if titles[plan] is None and not any(context.survey.likeness.same_way(plan, other) for other in ordered[:rank]):
            titles[plan] = habits[plan]
            if titles[plan] is None:
                open_to[plan] = _typical(context, plan, [other for other in range(context.plans.k) if other != plan])
    titles = _agreed(context, titles, open_to)
    for plan in open_to:
        if titles[plan] is None and _best(context, plan):
            titles[plan] = f"{context.terms.best} {context.terms.noun}"
    leaders = [plan for plan, title in enumerate(titles) if title is not None]
    for plan in ordered:
        if titles[plan] is None:
            titles[plan] = equal[plan] or _by_loss(context, plan, leaders)
    return _distinct(context, [raised(title) for title in titles if title is not None])


def _same_as(context: Context, plan: int, better: list[int]) -> str | None:
    """That it is equal to some of the plans before it; None if it is not."""
    x = context.plans.occupancies
    equal = sorted(other for other in better if np.abs(x[plan] - x[other]).sum() <= NEVER)
    if not equal:
        return None
    return f"the same as plan{'s' if len(equal) > 1 else ''} {joined([str(other + 1) for other in equal])}"


def _by_way(context: Context, plan: int) -> str | None:
    """Where it stays, or the way that it takes to the goal; None if neither sets it apart."""
    fact, others = context.survey.facts[plan], [other for other in range(context.plans.k) if other != plan]
    if fact.stays is not None:
        return f"stays {place_of(context.plans.mdp, fact.stays)}"
    return _by_rooms(context, plan) or _through(context, plan, others) or _safest(context, plan, others)


def _by_rooms(context: Context, plan: int) -> str | None:
    """The rooms between the first and the last; None without rooms, or if at most half of the ways are known to take them."""
    route = context.routes[plan] if context.routes else None
    if context.rooms is None or route is None:
        return None
    if not route.passages:
        return "within one room" if straying(context, plan) < USUAL else None
    known = certainty(context, plan, route)
    if known is not None and known <= USUAL:
        return None
    between = list(dict.fromkeys(room for room in route.rooms if room not in (route.rooms[0], route.rooms[-1])))
    text = f"by {context.rooms.listed(between)}" if between else f"straight {route.turns}"
    return text if len(text) <= TITLE_LENGTH else f"by {len(between)} rooms: {route.turns}"[: TITLE_LENGTH - 1] + "…"


def _through(context: Context, plan: int, others: list[int]) -> str | None:
    """The labels, rooms or passages by which most of its ways to the goal differ from most ways of some other plan."""
    for places, listed in _places(context):
        excess: dict[str, float] = {}
        for name, chances in places.items():
            rest = chances[others] if others else np.zeros(1)
            if chances[plan] > USUAL > rest.min() and chances[plan] - rest.min() >= QUARTER:
                excess[name] = float(chances[plan] - rest.mean())
        if excess:
            kept = sorted(excess, key=lambda name: -excess[name])[:NAMED]
            return f"through {listed([name for name in excess if name in kept])}"
    return None


def _safest(context: Context, plan: int, others: list[int]) -> str | None:
    """Whether it is the only plan that keeps away from the danger of a map."""
    found = share_beside(context.plans.mdp, context.survey.by_state)
    if found is None or not others or found[1][plan] > NEVER or found[1][others].min() < VISIBLE:
        return None
    return f"safest: never beside the {short(found[0])}"


def _places(context: Context) -> Iterator[tuple[dict[str, Floats], Callable[[list[str]], str]]]:
    """By name, (k,) the chances that ways to the goal go through a place, and the function that lists such names: for
    labels, then for rooms, then for passages.

    Places without a known chance are left out. A single plan is not described by rooms: every way goes through some room.
    """
    survey = context.survey
    touching = {label: [fact.touches.get(label) for fact in survey.facts] for label in survey.labels}
    names = distinct(survey.labels, plain)
    touched = {
        names[label]: np.array(chances, float)
        for label, chances in touching.items()
        if None not in chances and not (label == "door" and context.rooms is not None)
    }
    yield touched, joined
    crossed = [fact.regions for fact in survey.facts if fact.regions is not None]
    if survey.regions is None or len(crossed) < context.plans.k:
        return
    found = zip(survey.regions.names, np.stack(crossed).T, strict=True)
    chances = {name: shares for name, shares in found if is_telling(name)}
    if context.plans.k > 1:
        yield {name: shares for name, shares in chances.items() if not is_passage(name)}, listed_regions
    yield {name: shares for name, shares in chances.items() if is_passage(name)}, listed_regions


@dataclass(frozen=True, eq=False)
class Typical:
    """What a plan spends much of its time on, as a title.

    Attributes:
        text: the words.
        also: the plans that do nearly as much of it, so that the words could be about them.
    """

    text: str
    also: frozenset[int]


def _agreed(context: Context, titles: list[str | None], found: Mapping[int, list[Typical]]) -> list[str | None]:
    """The titles, with the first of the (plan by plan) given ones that is not true of a plan with another title.

    Plans that are alike do not count: such a title says whom they are like.
    """
    agreed, turn = list(titles), dict.fromkeys(found, 0)
    while True:
        for plan, at in turn.items():
            agreed[plan] = found[plan][at].text if at < len(found[plan]) else None
        wrong = [
            plan
            for plan, at in turn.items()
            if at < len(found[plan])
            and any(
                agreed[other] != agreed[plan]
                and not (agreed[other] is None and context.survey.likeness.alike(plan, other))
                for other in found[plan][at].also
            )
        ]
        if not wrong:
            return agreed
        for plan in wrong:
            turn[plan] += 1


def _typical(context: Context, plan: int, others: list[int]) -> list[Typical]:
    """What the plan spends at least a quarter of its time on, and the others on average at most half as much, the best first.

    If there is no such feature, two or three parts of the map can be: each with at least an eighth of its time, and all of them
    together only in this plan. Plans on the same way are not compared.
    """
    apart = [other for other in others if not context.survey.likeness.same_way(plan, other)]
    if others and not apart:
        return []
    features = [f for f in context.features if f.title and not (context.sectors is not None and f.kind == "label")]
    if context.sectors is None and context.rules is None:  # rules and values of variables say more than names of states
        features += state_features(context.survey, context.reached, plan)
    own = {feature: (float(feature.values[plan]), _mean(feature.values[apart])) for feature in features}
    found = sorted(
        (feature for feature in features if own[feature][0] > 0 and 2 * own[feature][1] <= own[feature][0]),
        key=lambda feature: (own[feature][1] - own[feature][0]) * feature.part * SCALE[feature.kind],
    )
    also = {f: frozenset(other for other in apart if f.values[other] > ALSO * f.values[plan]) for f in found}
    large = []
    for feature in found:
        if feature.time[plan] >= QUARTER:
            alone = bool(apart) and bool((feature.values[apart] <= 1e-9).all())
            large.append(Typical(_words(feature, own[feature][0], alone, bool(apart)), also[feature]))
    parts = [feature for feature in found if feature.kind == "sector" and feature.time[plan] >= QUARTER / 2]
    return [*large, *_by_parts(parts, plan, also)]


def _by_parts(parts: Sequence[Feature], plan: int, also: Mapping[Feature, frozenset[int]]) -> Iterator[Typical]:
    """The two parts of the map that set a plan apart most, or three if the third one does so nearly as much as the second; if the
    next one does clearly less."""
    share = [*(float(feature.values[plan]) for feature in parts), 0.0, 0.0, 0.0]
    count = 2 if share[2] <= ALSO * share[1] else 3
    if len(parts) >= count and share[count] <= ALSO * share[count - 1]:
        named = [feature.title for feature in parts[:count]]
        by = "by " if named[0].startswith("by ") else ""
        text = by + joined([title.removeprefix(by) for title in named])
        yield Typical(text, frozenset.intersection(*(also[feature] for feature in parts[:count])))


def _mean(values: Floats) -> float:
    return float(values.mean()) if values.size else 0.0


def _words(feature: Feature, own: float, alone: bool, compared: bool) -> str:
    """The words for a feature: its name, with how much the plan does it unless it is a way or an action of its own."""
    if feature.kind in ("sector", "side", "edge") or (feature.kind == "action" and alone):
        return feature.title
    much = "mostly" if own > USUAL else "more" if compared else "often"
    if feature.kind in ("label", "state", "level"):
        within = "" if feature.kind == "level" else "in "
        return f"{'more time' if much == 'more' else much} {within}{feature.title}"
    return f"{'more often' if much == 'more' else much} {feature.title}"


def _best(context: Context, plan: int) -> bool:
    """Whether a plan of several has a better reward than all others, also as shown."""
    rewards, shown = context.plans.rewards, context.rewards
    return context.plans.k > 1 and rewards[plan] == rewards.max() and shown.count(shown[plan]) == 1


def _by_loss(context: Context, plan: int, leaders: list[int]) -> str:
    """How good a plan is, and which of the leaders it is like. A plan that is like none of them becomes a leader."""
    shown, likeness = context.earnings, context.survey.likeness
    alike = [other for other in leaders if likeness.alike(plan, other)]
    own, rest = shown[plan], [other for other in range(context.plans.k) if other != plan]
    if alike:
        other = closest(context, plan, alike)
        departs = _departure(context, plan, rest) or _departure(context, plan, [other])
        if departs is not None:
            return f"like plan {other + 1}, but {departs}"
        loss = own if own is not None and own.endswith(context.terms.off) and own != shown[other] else None
        return f"like plan {other + 1}, {loss or 'with small differences'}"
    leaders.append(plan)
    departs = _departure(context, plan, rest) or _beside_nearest(context, plan, rest)
    if departs is not None:
        return departs
    if own is None:
        return "optimal"
    return own if own.endswith(context.terms.off) else f"{context.terms.verb}s {own}"


def _departure(context: Context, plan: int, others: list[int]) -> str | None:
    """What a plan does and none of the others, however small its part is: over the variables of the states, in a single state, or
    in a region of the map."""
    if not others:
        return None
    if context.rules is not None:
        return departure(context.survey, context.rules, plan, others)
    if context.choices is None:
        place = distinction(context, plan, others)
        return (None if place is None else place.how) or _more_often(context, plan, others)
    own, rest = context.choices[plan], context.choices[others]
    alone = (own >= 0) & (rest != own).all(axis=0)
    time = np.where(alone, context.survey.by_state[plan], 0.0)
    state = int(np.argmax(time))
    if time[state] < SEEN:
        return None
    return f"{does(context.plans.mdp.action_name(int(own[state])))} in {plain(context.plans.mdp.state_name(state))}"


def _beside_nearest(context: Context, plan: int, others: list[int]) -> str | None:
    """How it differs from the plan most like it, where nothing sets it apart from all."""
    place = None if context.sectors is None else difference(context, plan, others)
    return None if place is None or place.how is None else f"{place.how} than plan {place.other + 1}"


def _more_often(context: Context, plan: int, others: list[int]) -> str | None:
    """The action that a plan takes more often than each of the others."""
    shares = action_shares(context.plans)
    more = (shares[plan] - shares[others]).min(axis=0)
    action = int(np.argmax(more))
    return f"{deeds_of(context.plans)[action]} more often" if more[action] >= VISIBLE else None


# ---- no two alike -------------------------------------------------------------------------------


def _distinct(context: Context, titles: list[str]) -> list[str]:
    """Make titles unique: add what distinguishes plans with the same title, and their numbers if nothing does."""
    result = list(titles)
    for words in (_qualifier, _loss, _otherwise):
        result = _qualified(titles, result, lambda group, plan, words=words: words(context, group, plan))
    counts = Counter(result)
    result = [f"{title} ({plan + 1})" if counts[title] > 1 else title for plan, title in enumerate(result)]
    while len(set(result)) < len(result):  # a name in the model may look like a numbered title
        result = [f"{title} ({plan + 1})" for plan, title in enumerate(result)]
    return result


def _qualified(titles: Sequence[str], result: list[str], words: Callable[[list[int], int], str | None]) -> list[str]:
    """The titles in `result`; where several are the same, the bare title with the words that distinguish it from all that have
    this bare title."""
    found = list(result)
    for title in [title for title, count in Counter(result).items() if count > 1]:
        for plan in [plan for plan, other in enumerate(result) if other == title]:
            added = words([other for other, bare in enumerate(titles) if bare == titles[plan]], plan)
            if added and added not in title.lower() and added not in map(str.lower, result):
                found[plan] = f"{titles[plan]} — {added}"
    return found


def _loss(context: Context, group: list[int], plan: int) -> str | None:
    """How much worse than the optimum it is, if that distinguishes it."""
    own = context.earnings[plan]
    alone = [context.earnings[other] for other in group].count(own) == 1
    return own if alone and own is not None and own.endswith(context.terms.off) else None


def _otherwise(context: Context, group: list[int], plan: int) -> str | None:
    """What it does and those with the same title do not."""
    return _departure(context, plan, [other for other in group if other != plan])


def _qualifier(context: Context, group: list[int], plan: int) -> str | None:
    """What distinguishes a plan from those with the same title.

    It is what the plan does in its main part and the others of the group do not; length or reward if the plan is the
    first or last in it, of the whole set if possible; or where it differs from the plan most like it.
    """
    rest = [other for other in group if other != plan]
    typical = [] if context.routes and context.routes[plan] is not None else _typical(context, plan, rest)
    alone = next((words.text for words in typical if not words.also), None)
    if alone is not None:
        return alone
    of_set = _extreme(context, plan, [other for other in range(context.plans.k) if other != plan])
    if of_set is not None and len(rest) > 1:
        return of_set
    found = _extreme(context, plan, rest)
    if found is not None:
        degree, _, noun = found.partition(" ")
        return f"{COMPARED[degree]} {noun}".rstrip() if len(rest) == 1 else None
    place = distinction(context, plan, rest)
    main = place is not None and context.survey.by_state[plan, context.regions[place.where]].sum() >= QUARTER
    return place.how if place is not None and main else None


def _extreme(context: Context, plan: int, others: list[int]) -> str | None:
    """Whether a plan is clearly the first or last in length or reward, compared with `others`."""
    terms = context.terms
    whole = (
        1.0 if abs(context.plans.optimal_reward) > negligible(context.plans) else None
    )  # losses are shares of the optimum
    for values, shown, least, most, scale in (
        (context.steps, quantity, "shortest", "longest", None),
        (context.lost, finely, f"{terms.best} {terms.noun}", f"{terms.worst} {terms.noun}", whole),
    ):
        own, known = values[plan], [value for i in others if (value := values[i]) is not None]
        if own is None or len(known) < len(others) or shown(own) in map(shown, known):
            continue
        low, high = min(own, *known), max(own, *known)
        if own in (low, high) and high - low > VISIBLE / 3 * (scale or high):
            return least if own == low else most
    return None
