"""The first words of the page: how many plans there are, how good each one is at least, and what each costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import floor
from typing import Any

import numpy as np

from manyways.describe import Measure, Survey
from manyways.describe.measure import is_length
from manyways.describe.survey import has_goal, negligible
from manyways.describe.wording import TINY, finely, number, terms_of
from manyways.plans.planset import PlanSet
from manyways.report.chart import spread

COUNTS = ("One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten", "Eleven", "Twelve")
STRIP_WIDTH, STRIP_EDGE, DISC = 560.0, 14.0, 26.0
IN_TIME = "reaches goal in "
"""Begins the name of the measure of episodes that reach the goal within the time limit."""


def headline(plans: PlanSet, survey: Survey) -> str:
    """ "Six ways to the goal, each at least 92 % of the best": rounded so that it promises no more than what holds."""
    all_alike = all(survey.likeness.alike(i, j) for i, j in combinations(range(plans.k), 2))
    noun = "plan" if plans.k > 1 and all_alike else "way"
    count = COUNTS[plans.k - 1] if plans.k <= len(COUNTS) else f"{plans.k:,}"
    named = f"{count} {noun}{'' if plans.k == 1 else 's'}"
    if noun == "way" and (has_goal(plans.mdp) or "goal" in plans.mdp.ends):
        named += " to the goal"
    return f"{named}, {'' if plans.k == 1 else 'each '}{_worth(plans)}"


def _worth(plans: PlanSet) -> str:
    terms, best = terms_of(plans.mdp), plans.optimal_reward
    worst = float(plans.rewards.min())
    lost = best - worst
    if lost <= negligible(plans):
        return "the best possible" if plans.k == 1 else "as good as the best possible"
    if abs(best) <= negligible(plans) or lost > abs(best):
        return f"at most {number(_up(lost))} {terms.noun} {plans.criterion.unit} {terms.worse} than the best"
    if best > 0:
        return f"at least {_down(worst / best)} % of the best"
    more = f"{_up(100 * lost / -best, 2):g} %"
    return f"at most {more} worse than the best" if terms.sign > 0 else f"costing at most {more} more than the cheapest"


def _down(share: float) -> str:
    """In percent, rounded down: "92", "99.6"."""
    points = 100 * share
    return f"{floor(points)}" if points < 99 else f"{floor(10 * points + 1e-9) / 10:g}"


def _up(value: float, digits: int = 3) -> float:
    """Rounded up to a few significant digits."""
    step = 10.0 ** (floor(np.log10(value)) - digits + 1)
    return float(f"{np.ceil(value / step - 1e-9) * step:.12g}")


def chips(plans: PlanSet, measured: list[Measure]) -> list[list[dict[str, str]]]:
    """How good each plan is and how long, in the shortest words and as the table shows it. Where the reward is minus the length, the
    loss would say the same once more."""
    by_name = {measure.name: measure for measure in measured}
    terms = terms_of(plans.mdp)
    loss, rows = by_name[terms.loss], []
    for i in range(plans.k):
        own, steps = [{"text": _loss_text(loss, i, terms.sign), "title": loss.meaning}], by_name.get("steps to goal")
        long = None if steps is None else steps.values[i]
        if steps is not None and long is not None:
            own = own[: 0 if is_length(measured) and (loss.values[i] or 0) > 0 else 1]
            shown = f"{long:,.1f}".removesuffix(".0")
            own.append({"text": f"{shown} step{'' if shown == '1' else 's'}", "title": steps.meaning})
        for name in ("chance of reaching goal", "reaches goal"):
            value = by_name[name].values[i] if name in by_name else None
            in_time = _in_time(by_name, i)
            if value is not None and min(value, 1.0 if in_time is None else in_time[0]) < 1:
                text = f"{finely(value)} reach the goal{'' if in_time is None else in_time[1]}"
                own.append({"text": text, "title": by_name[name].meaning})
        rows.append(own[:3])
    return rows


def _in_time(by_name: Mapping[str, Measure], i: int) -> tuple[float, str] | None:
    """How often plan i reaches the goal before the environment cuts it off, and in words: ", 59 % within 100 steps"."""
    found = next((measure for name, measure in by_name.items() if name.startswith(IN_TIME)), None)
    value = None if found is None else found.values[i]
    return (
        None
        if found is None or value is None
        else (value, f", {finely(value)} within {found.name.removeprefix(IN_TIME)}")
    )


def _loss_text(loss: Measure, i: int, sign: int) -> str:
    value = loss.values[i]
    if value is None or value <= 0:
        return "best possible"
    mark = "−" if sign > 0 else "+"
    if loss.unit != "share":
        return f"{mark}{number(value)}"
    return f"{mark}{finely(value)}" if value >= TINY else f"{finely(value)} {'less' if sign > 0 else 'more'}"


def strip(plans: PlanSet, tints: Sequence[int], loss: Measure) -> dict[str, Any] | None:
    """How good each plan is by its loss, as dots on a line that ends at the best possible; None where shares mean nothing."""
    terms, best = terms_of(plans.mdp), plans.optimal_reward
    lost = np.maximum(best - plans.rewards, 0.0)
    if abs(best) <= negligible(plans) or lost.max() > abs(best) or plans.k == 1 or np.ptp(lost) < TINY * abs(best):
        return None
    share = 100 * lost / abs(best)
    most = max(float(share.max()), 0.1) * 1.12
    usable = STRIP_WIDTH - 2 * STRIP_EDGE

    def at(points: float) -> float:
        return round(STRIP_WIDTH - STRIP_EDGE - usable * points / most, 1)

    shown = [i for i in range(plans.k) if tints[i]]
    places = spread([at(float(share[i])) for i in shown], DISC, STRIP_EDGE, STRIP_WIDTH - STRIP_EDGE)
    sign = "−" if terms.sign > 0 else "+"
    step = next(s for s in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50) if most / s <= 6)
    ticks = [round(step * n, 1) for n in range(1, int(most / step) + 1)]
    return {
        "width": STRIP_WIDTH,
        "end": at(0.0),
        "ticks": [
            {
                "at": at(tick),
                "text": f"{sign}{tick:g} %",
                "tight": at(tick) >= 400,
            }  # on narrow screens letters are larger
            for tick in ticks
            if 30 < at(tick) < 455
        ],
        "plans": [
            {"number": i + 1, "tint": tints[i], "at": at(float(share[i])), "disc": round(place, 1)}
            for i, place in zip(shown, places, strict=True)
        ],
        "grey": [at(float(share[i])) for i in range(plans.k) if not tints[i]],
        "label": f"Each plan's {terms.noun} against the best possible: "
        + ", ".join(f"plan {i + 1} {_loss_text(loss, i, terms.sign)}" for i in range(plans.k)),
    }
