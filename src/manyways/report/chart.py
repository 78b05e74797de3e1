"""The chart of reward (or cost) against diversity: the set, its plans, the optimum, and the curve of a sweep."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import hypot
from typing import TYPE_CHECKING, Any

import numpy as np

from manyways.describe.wording import Terms, terms_of
from manyways.errors import SettingError
from manyways.plans.planset import PlanSet

if TYPE_CHECKING:
    from manyways.studies.sweeps import Sweep

WIDTH, HEIGHT = 440.0, 280.0
LEFT, RIGHT, TOP, BOTTOM = 32.0, 20.0, 18.0, 48.0
LETTER = 9.0
"""The approximate width of a digit on narrow screens, to make room for the numbers along the left side."""
NUMBERED = 10
"""Of so many plans or more, only those with a colour have a number."""
NUMBER, CLEAR, FARTHEST = 17.0, 13.0, 120.0
"""How near a number may come to another number and to a dot, and how far it may stand from its dot."""
SHORTEST = 1e-3
"""The vertical axis covers at least this share of the largest value, so that rounding errors do not fill it."""
APART = 30.0
"""Labels along a curve are at least this far apart."""


@dataclass(frozen=True)
class _Axis:
    """From numbers to positions along one side of the chart."""

    low: float
    high: float
    begin: float
    end: float

    @staticmethod
    def over(values: list[float], least: float, begin: float, end: float) -> _Axis:
        """An axis that covers all values and has at least the length `least`."""
        low, high = min(values), max(values)
        margin = max(0.08 * (high - low), (least - (high - low)) / 2)
        return _Axis(low - margin, high + margin, begin, end)

    def at(self, value: float) -> float:
        return round(self.begin + (value - self.low) / (self.high - self.low) * (self.end - self.begin), 1)

    def ticks(self) -> list[dict[str, Any]]:
        step = _round_step((self.high - self.low) / 5)
        values = np.arange(np.ceil(self.low / step), np.floor(self.high / step) + 1) * step
        digits = int(np.clip(-np.floor(np.log10(step)), 0, 12))
        return [{"at": self.at(float(value)), "text": f"{value + 0.0:.{digits}f}"} for value in values]


def price_chart(plans: PlanSet, sweep: Sweep | None, tints: Sequence[int]) -> dict[str, Any]:
    """The positions of everything on the chart; the template draws it.

    Args:
        plans: the set.
        sweep: a sweep of the same model, whose curve is drawn; or None.
        tints: the colour of each plan; 0 for none.
    """
    terms = terms_of(plans.mdp)
    apart = plans.distances.sum(axis=1) / max(plans.k - 1, 1)
    rewards, optimum = terms.shown(plans.rewards), terms.shown(plans.optimal_reward)
    mean = float(rewards.mean())
    _check_values(plans, sweep)
    curves = [] if sweep is None else [_curve(sweep, k, terms) for k in sorted({row["k"] for row in sweep.good})]
    points = [(0.0, optimum), (plans.diversity, mean), *zip(apart.tolist(), rewards.tolist(), strict=True)]
    points += [(x, y) for curve in curves for _, x, y in curve["points"]]
    tallest = max(abs(y) for _, y in points)
    up = _Axis.over([y for _, y in points], SHORTEST * tallest or 1.0, HEIGHT - BOTTOM, TOP)
    left = LEFT + LETTER * max(len(tick["text"]) for tick in up.ticks())
    across = _Axis.over([x for x, _ in points], 0.05, left, WIDTH - RIGHT)

    def put(x: float, y: float) -> dict[str, float]:
        return {"x": across.at(x), "y": up.at(y)}

    dots = [put(float(x), float(y)) for x, y in zip(apart, rewards, strict=True)]
    marks = [put(plans.diversity, mean), put(0.0, optimum)]
    numbered = [i for i in range(plans.k) if plans.k < NUMBERED or tints[i]]
    taken = [(mark["x"], mark["y"]) for mark in (*dots, *marks)]
    numbers = dict(zip(numbered, free_places([taken[i] for i in numbered], taken), strict=True))
    return {
        "width": WIDTH,
        "height": HEIGHT,
        "middle": (TOP + HEIGHT - BOTTOM) / 2,
        "left": left,
        "bottom": HEIGHT - BOTTOM,
        "across": [tick for tick in across.ticks() if float(tick["text"]) >= 0],
        "up": up.ticks(),
        "optimum": marks[1],
        "set": marks[0] | {"text": f"this set: diversity {plans.diversity:.3f}, mean {terms.noun} {mean:.4g}"},
        "plans": [
            dots[i]
            | {"tint": tints[i], "number": i + 1, "number_at": numbers.get(i)}
            | {"text": f"plan {i + 1}: mean distance {x:.3f}, {terms.noun} {y:.4g}"}
            for i, (x, y) in enumerate(zip(apart, rewards, strict=True))
        ],
        "curves": [
            {
                "k": curve["k"],
                "line": " ".join(f"{across.at(x)},{up.at(y)}" for _, x, y in curve["points"]),
                "points": _labelled(
                    [put(x, y) | {"text": f"k = {curve['k']}, tradeoff {t:g}"} for t, x, y in curve["points"]],
                    [f"{t:g}" for t, *_ in curve["points"]],
                ),
            }
            for curve in curves
        ],
    }


def _check_values(plans: PlanSet, sweep: Sweep | None) -> None:
    """Raise an error if the values of a sweep are not those of the plans: a curve would mean nothing beside them."""
    for row in [] if sweep is None else sweep.good[:1]:
        best, own = row["optimal_reward"], plans.optimal_reward
        if abs(best - own) > 1e-6 * max(abs(best), abs(own)):
            raise SettingError(
                f"the sweep has another best value, {best:.6g}, than the plans, {own:.6g} {plans.criterion.unit}, so it "
                "counts values in another way; leave it out, or plan with the criterion that is the default for this model"
            )


def _curve(sweep: Sweep, k: int, terms: Terms) -> dict[str, Any]:
    tradeoffs, diversity, rewards = sweep.curve(k)
    columns = (tradeoffs.tolist(), diversity.tolist(), terms.shown(rewards).tolist())
    return {"k": k, "points": list(zip(*columns, strict=True))}


def _labelled(points: list[dict[str, Any]], labels: list[str]) -> list[dict[str, Any]]:
    """The points of a curve, with a label on each that is far enough from the labels before it."""
    labelled: list[dict[str, Any]] = []
    for point, label in zip(points, labels, strict=True):
        room = all(
            abs(point["x"] - other["x"]) > APART or abs(point["y"] - other["y"]) > APART / 2 for other in labelled
        )
        point["label"] = label if room else ""
        if room:
            labelled.append(point)
    return points


def _round_step(step: float) -> float:
    """The largest of 1, 2 and 5 times a power of ten that is at most `step`."""
    power = 10.0 ** np.floor(np.log10(step))
    return float(next(factor for factor in (10, 5, 2, 1) if factor * power <= step * 1.001) * power)


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Places along a line, near where they are wanted and in that order, `gap` apart if there is room for it."""
    if not wanted:
        return []
    gap = min(gap, (high - low) / max(len(wanted) - 1, 1))
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    # Each place wants to be at `wanted[i] - rank * gap`; the nearest increasing sequence comes from pooling neighbours.
    pools: list[tuple[float, int]] = []
    for rank, i in enumerate(order):
        mean, size = wanted[i] - rank * gap, 1
        while pools and pools[-1][0] >= mean:
            other, count = pools.pop()
            mean, size = (mean * size + other * count) / (size + count), size + count
        pools.append((mean, size))
    flat = [mean for mean, size in pools for _ in range(size)]
    room = high - gap * (len(order) - 1)
    places = [0.0] * len(wanted)
    for rank, i in enumerate(order):
        places[i] = min(max(flat[rank], low), room) + rank * gap
    return places


def free_places(
    points: Sequence[tuple[float, float]], taken: Sequence[tuple[float, float]]
) -> list[tuple[float, float]]:
    """Where the numbers of points stand: each at the nearest place within the chart where it hides nothing that is `taken` and
    no other number; at its point if there is no such place."""
    found: list[tuple[float, float]] = []
    for point in points:
        far = [(*place, NUMBER) for place in found] + [(*place, CLEAR) for place in taken]
        found.append(next((place for place in _around(point) if _is_free(place, far)), point))
    return found


def _around(point: tuple[float, float]) -> Iterator[tuple[float, float]]:
    """Places around a point, the nearest first, and of these the one to the upper right first."""
    for radius in np.arange(CLEAR, FARTHEST, 4.0):
        for turn in np.arange(16) * np.pi / 8 - np.pi / 4:
            yield round(float(point[0] + radius * np.cos(turn)), 1), round(float(point[1] + radius * np.sin(turn)), 1)


def _is_free(place: tuple[float, float], far: Sequence[tuple[float, float, float]]) -> bool:
    """Whether a place is within the chart, and from each of the others as far as it has to be."""
    x, y = place
    within = LEFT + NUMBER / 2 <= x <= WIDTH - NUMBER / 2 and NUMBER / 2 <= y <= HEIGHT - BOTTOM
    return within and all(hypot(x - other, y - height) >= gap for other, height, gap in far)
