"""What is certain and what is free, as bars for the page: the range of time in each label, and in each room and
passage of a map, with a mark for each plan."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from manyways.describe.wording import percent, short
from manyways.model.episodes import episode_ends
from manyways.model.mdp import MDP
from manyways.plans.planset import PlanSet
from manyways.ranges import Range, freedom_of
from manyways.report.named_places import regions_by_name
from manyways.types import Bools, Floats

MOST_PLACES, MOST_STATES = 12, 20_000
"""Two linear problems are solved for each place, so larger models get no bars; `manyways freedom` has no such limit."""
REGIONS_UP_TO = 2_500
"""In models with more states than this, rooms and passages are left to `manyways freedom --by regions`: they take long."""
ROUNDED = 1e-7
"""Least shares below this are what a solver leaves of none."""
OVERLAP = 4.0
"""Marks nearer than this, in percent of the longest bar, are drawn as one."""
LETTER, LONGEST = 2.4, 24
"""The width of a letter of a label in percent of the longest bar, on narrow screens; and the most letters of a label."""


def leeway(plans: PlanSet, by_state: Floats, titles: Sequence[str]) -> list[dict[str, Any]]:
    """One row for each place: its range and the time (k, S) of each plan, in percent of the longest bar; none if all plans
    stand at the same marks. The places are labels, and the rooms and passages that the titles of the plans name."""
    if not plans.limits.any or plans.mdp.n_states > MOST_STATES:
        return []
    places = _places(plans.mdp, titles)
    if not 0 < len(places) <= MOST_PLACES:
        return []
    ranges = [found for found in freedom_of(plans, places) if found.most > 1e-6]
    ranges = [replace(found, least=0.0) if found.least < ROUNDED else found for found in ranges]
    longest = max((found.most for found in ranges), default=1.0)
    rows = [_row(found, [float(row[places[found.name]].sum()) for row in by_state], longest) for found in ranges]
    return [] if plans.k > 1 and all(len(row["marks"]) == 1 for row in rows) else rows


def _places(mdp: MDP, titles: Sequence[str]) -> dict[str, Bools]:
    """(S,) the states of each label that says where plans are and, if they are not too many, of each room and passage of the map
    that a title names."""
    labels = {
        name: mask for name, mask in mdp.labels.items() if name not in ("start", "goal") and not _ends_all(mdp, mask)
    }
    regions = {} if mdp.layout is None or mdp.n_states > REGIONS_UP_TO else regions_by_name(mdp)
    named = {name: mask for name, mask in regions.items() if _named(name, titles)}
    return {**labels, **named} if len(labels) + len(named) <= MOST_PLACES else labels


def _named(place: str, titles: Sequence[str]) -> bool:
    """Whether a title names a place: "By the west and south rooms" names the west room."""
    bare = re.escape(place.removesuffix(" room"))
    return any(re.search(rf"(?<![\w-]){bare}(?![\w-])", title) for title in titles)


def _ends_all(mdp: MDP, mask: Bools) -> bool:
    """Whether all episodes end in the states of a label: then the time there is only 1 / their length."""
    ends = episode_ends(mdp)
    if ends is None:
        return False
    here = mask[mdp.choice_state]
    return bool((ends[here] > 1 - 1e-9).all() and (ends[~here] <= 0).all())


def _row(found: Range, times: list[float], longest: float) -> dict[str, Any]:
    def at(share: float) -> float:
        return round(100 * min(max(share, 0.0), longest) / longest, 2)

    marks = _marks([(at(time), i + 1, percent(time)) for i, time in enumerate(times)])
    return {
        "name": short(found.name),
        "text": f"{percent(found.least)} to {percent(found.most)}",
        "sentence": found.sentence,
        "from": at(found.least),
        "width": max(at(found.most) - at(found.least), 0.4),
        "marks": marks,
        "lines": 1 + max(mark["line"] for mark in marks),
    }


def _marks(plans: list[tuple[float, int, str]]) -> list[dict[str, Any]]:
    """One mark for each group of plans that would overlap: where it is, the numbers of the plans, and their times; and on which
    line above the bar the numbers stand, so that they do not cover each other."""
    groups: list[list[tuple[float, int, str]]] = []
    for plan in sorted(plans):
        if groups and plan[0] - groups[-1][0][0] < OVERLAP:
            groups[-1].append(plan)
        else:
            groups.append([plan])
    marks = [
        {
            "at": round(sum(at for at, _, _ in group) / len(group), 2),
            "numbers": numbers_told([number for _, number, _ in group], len(plans)),
            "text": "; ".join(f"plan {number}: {text}" for _, number, text in sorted(group, key=lambda plan: plan[1])),
        }
        for group in groups
    ]
    ends: list[float] = []  # where the last label of each line ends
    for mark in marks:
        # A label begins as far to the left of its mark, as a share of its width, as the mark is along the bar.
        width = LETTER * len(mark["numbers"])
        begin = mark["at"] * (1 - width / 100)
        mark["line"] = next((line for line, end in enumerate(ends) if end <= begin), len(ends))
        ends[mark["line"] : mark["line"] + 1] = [begin + width + LETTER]
    return marks


def numbers_told(numbers: list[int], k: int) -> str:
    """The numbers of plans in few letters: "all", "2", "1–8, 11", or how many they are."""
    if len(numbers) == k > 1:
        return "all"
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    told = ", ".join(f"{run[0]}–{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs)
    return told if len(told) <= LONGEST else f"{len(numbers)} plans"
