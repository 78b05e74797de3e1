"""What the answers of a conversation say: in words, as numbers, and as a map.

*What is compared.* Answers say which of the shown plans a person likes more, and nothing about places that all of them visit
alike. So the question for a place is what plans with more time there are worth. With t_i the time of shown plan i in the
place and rho_i its occupancy, both minus their means over all T shown plans, the occupancy that comes with one more unit of
time there is that of a least-squares line:

    delta = sum_i t_i rho_i / sum_i t_i^2,    worth of the place = <w, delta>

for each preference w drawn from the posterior. Places in which the shown plans spend about the same time have no worth.

*Words.* A place is named only if its worth has the same sign in at least `CLEAR` of the draws. Of places that the same plans
visit, which therefore say the same, the one in which they spend most time is named.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from manyways.conversation import Conversation, LearnedPreference
from manyways.describe.wording import joined, number, percent
from manyways.report.named_places import named_places
from manyways.report.pictures import Canvas, floats_text
from manyways.types import Floats

CLEAR = 0.9
LEAST_RANGE = 0.02
"""Places are compared if the shares of time of the shown plans differ by at least this."""
ALIKE = 0.9
"""Places say the same if their times in the shown plans have at least this correlation."""
NAMED = 2
MOST_ROWS = 6
FULL = 0.5
"""Means of this many standard deviations of the prior have the full colour on the map, or the largest mean if that is more:
what says little looks faint."""
LITTLE = "Your choices do not say much yet."


@dataclass(frozen=True, eq=False)
class Leaning:
    """What more time in a place is worth to the person, known reward left out.

    Attributes:
        name: the place, action or label, as part of a sentence: "the middle room".
        times: (T,) the share of time of each shown plan in it.
        worth: how much more the shown plan with the most time there is worth than the one with the least, for this reason;
            the mean over draws from the posterior, in units of the reward.
        spread: its standard deviation.
        agreeing: the share of draws from the posterior in which the worth has the sign of the mean.
    """

    name: str
    times: Floats
    worth: float
    spread: float
    agreeing: float

    @property
    def clear(self) -> bool:
        return self.agreeing >= CLEAR

    @property
    def range(self) -> float:
        return float(np.ptp(self.times))


def leanings(conversation: Conversation) -> list[Leaning]:
    """What the answers so far say about each place, action or label, the largest worth first; empty without an answer."""
    rounds = [one for one in conversation.rounds if one.better is not None]
    if not rounds:
        return []
    shown = np.concatenate([one.plans.occupancies for one in rounds])
    worths = conversation.worth(shown - shown.mean(axis=0))
    found = []
    for name, own in named_places(conversation.plans.mdp, shown):
        times = shown[:, own].sum(axis=1)
        if np.ptp(times) < LEAST_RANGE:
            continue
        off = times - times.mean()
        worth = np.ptp(times) * (off @ worths) / (off @ off)
        mean = float(worth.mean())
        agreeing = float((np.sign(worth) == np.sign(mean)).mean())
        found.append(Leaning(name, times, mean, float(worth.std()), agreeing))
    return sorted(found, key=lambda one: -abs(one.worth))


def sentences(found: list[Leaning]) -> list[str]:
    """What is clear, in one or two sentences."""
    texts = []
    peak = max((abs(one.worth) for one in found), default=0.0)
    by_time = sorted(found, key=lambda one: (-round(abs(one.worth) / peak, 1), -one.range))
    for sign, verb in ((1, "prefer"), (-1, "avoid")):
        named: list[Leaning] = []
        for one in by_time:
            new = all(np.corrcoef(one.times, other.times)[0, 1] < ALIKE for other in named)
            if one.clear and sign * one.worth > 0 and new and len(named) < NAMED:
                named.append(one)
        if named:
            texts.append(f"You seem to {verb} {joined([one.name for one in named])}.")
    return texts or [LITTLE]


def leaning_rows(found: list[Leaning]) -> list[dict[str, Any]]:
    """The largest worths as bars."""
    rows = found[:MOST_ROWS]
    longest = max((abs(one.worth) for one in rows), default=1.0) or 1.0
    return [
        {
            "name": one.name.removeprefix("the "),
            "text": _signed(one.worth),
            "spread": number(one.spread),
            "times": f"{percent(one.times.min())} to {percent(one.times.max())}",
            "liked": one.worth > 0,
            "width": round(100 * abs(one.worth) / longest, 1),
            "sure": one.clear,
            "agreeing": f"{100 * one.agreeing:.0f} %",
        }
        for one in rows
    ]


def learned_picture(learned: LearnedPreference, canvas: Canvas) -> dict[str, Any]:
    """Mean and spread for each cell of the map, as 32-bit numbers; NaN in cells without a state.

    `least` and `most` are those of the cells that are coloured: all but walls.
    """
    layout = canvas.layout
    states = canvas.total(layout.image(np.ones(learned.mdp.n_states)))
    mean, spread = (canvas.means(part) for part in (learned.by_state, learned.spread_by_state))
    walls = canvas.total(layout.blocked.astype(float)) > canvas.total(np.ones(layout.shape)) / 2
    coloured = mean[(states > 0) & ~walls]
    least, most = (float(coloured.min()), float(coloured.max())) if coloured.size else (0.0, 0.0)
    return {
        "mean": floats_text(mean),
        "spread": floats_text(spread),
        "full": max(abs(least), abs(most), FULL * learned.before, 1e-12),
        "least": _signed(least),
        "most": _signed(most),
    }


def _signed(value: float) -> str:
    text = number(value)
    return "0" if text == "0" else f"−{text[1:]}" if text.startswith("-") else f"+{text}"
