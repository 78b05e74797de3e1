"""Portraits: a title and a few sentences for each plan that say what it does and how it differs from the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from manyways.describe.context import Remark, context_of
from manyways.describe.remarks import remarks
from manyways.describe.subject import Plans
from manyways.describe.survey import Survey, survey_of
from manyways.describe.titles import titles_of

SENTENCES = 5
FEWEST = 2
LEAST_WEIGHT = 0.05
"""Remarks with less weight are used only if there would be fewer than `FEWEST` sentences."""

TELLING = 0.01
"""A remark of at least this weight comes before how well the plan does, if that says the same of all plans."""

OF_A_GROUP = 2
STANDING = ("reward", "goal", "length")
"""The kinds of remarks on how well a plan does."""


@dataclass(frozen=True)
class Portrait:
    """A title that no other plan of the set has, and sentences, the most informative first.

    Attributes:
        title: what sets the plan apart, in a few words.
        sentences: what it does and how it differs from the others.
        standing: those of the sentences that say how well it does: its value, how often it reaches the goal, its length.
    """

    title: str
    sentences: tuple[str, ...]
    standing: frozenset[str] = frozenset()


def portraits(plans: Plans | Survey) -> list[Portrait]:
    """One portrait for each plan, in their order."""
    context = context_of(survey_of(plans))
    found = []
    for plan, title in enumerate(titles_of(context)):
        chosen = _chosen(remarks(context, plan))
        standing = frozenset(remark.text for remark in chosen if remark.kind in STANDING)
        found.append(Portrait(title, tuple(remark.text for remark in chosen), standing))
    kept = dict(zip(context.plans.kept, context.plans.kept_titles, strict=False))
    return _with_titles(found, [kept.get(plan, "") for plan in range(context.plans.k)])


def _with_titles(words: list[Portrait], titles: Sequence[str]) -> list[Portrait]:
    """The portraits with these titles, where they are not empty; no two titles are the same."""
    taken = {title for title in titles if title}
    found = []
    for number, (own, title) in enumerate(zip(words, titles, strict=True), 1):
        new = title or (f"{own.title} ({number})" if own.title in taken else own.title)
        found.append(replace(own, title=new))
    return found


def _chosen(found: list[Remark]) -> list[Remark]:
    """The best remarks: one of each kind, at most `OF_A_GROUP` of each group. The first is one on this plan, if there is any."""
    kinds: set[str] = set()
    groups: Counter[str] = Counter()
    kept = []
    for remark in found:
        group = remark.kind.partition(":")[0]
        weighty = remark.weight >= LEAST_WEIGHT or len(kept) < FEWEST
        if weighty and remark.kind not in kinds and groups[group] < OF_A_GROUP and len(kept) < SENTENCES:
            kept.append(remark)
            kinds.add(remark.kind)
            groups[group] += 1
    own = next((remark for remark in found if remark.kind not in STANDING and remark.weight >= TELLING), None)
    if own is not None and own not in kept and kept[0].weight < LEAST_WEIGHT:
        return [own, *kept]
    return kept
