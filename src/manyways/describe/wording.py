"""Numbers, names and lists as they are written in sentences, and the words for rewards and for costs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import floor, isfinite, log10
from typing import Any

from manyways.model.mdp import MDP
from manyways.polytope import Criterion, Episodic

NAME_LENGTH = 40
TURNING = [0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
"""Control characters that change the direction of the text around them."""

CLEANED = dict.fromkeys(TURNING) | dict.fromkeys([*range(0x20), *range(0x7F, 0xA0)], " ")

TINY = 1e-3
"""A share below this is shown as 'under 0.1 %'."""

ROUNDED = 1e-11
"""Shares below this are rounding errors in tables."""

ROUNDING = 1e-9
"""Differences between rewards below this, relative to the largest, are rounding."""

VISIBLE = 0.03
"""Shares that differ by less than this are not worth a sentence."""


@dataclass(frozen=True)
class Terms:
    """The words for what plans earn or cost, and the sign with which it is shown.

    Attributes:
        noun, verb: "reward" and "earn", or "cost" and "cost".
        sign: what a reward is multiplied by to be shown: -1 if it is minus a cost.
        best, worst: "highest" and "lowest" reward, or the other way round for costs.
        better, worse: "higher" and "lower", or the other way round.
        beyond: what no plan can do if one is optimal: "earn more", "cost less".
        loss: the measure of how much worse a plan is than the best possible one.
        off: the words after the share by which a plan is worse than the best possible one.
        largest: a share of more than this is not worth saying; the two numbers say more.
        sacrifice: what diversity is paid with.
    """

    noun: str
    verb: str
    sign: int
    best: str
    worst: str
    better: str
    worse: str
    beyond: str
    loss: str
    off: str
    largest: float
    sacrifice: str

    def shown(self, rewards: Any) -> Any:
        """Rewards, or one reward, as they are shown."""
        return self.sign * rewards + 0.0  # no -0.0

    def objective(self, phrase: str, criterion: Criterion) -> str:
        """What is maximised, as `Objective.describe` says it in terms of rewards, in these terms.

        Objectives count rewards per step: a discounted sum times 1 - discount, and a value per episode as a linear
        function of the occupancy.
        """
        mean = "mean reward" if self.sign > 0 else "mean cost"
        if isinstance(criterion, Episodic):
            mean = f"linearised {mean}"
        elif criterion.value_of_one != 1:
            mean = f"{1 / criterion.value_of_one:.4g} × {mean}"
        phrase = phrase.replace("mean reward", mean if self.sign > 0 else f"minus {mean}")
        return phrase if self.sign > 0 else phrase.replace("reward", "cost")


REWARDS = Terms(
    "reward", "earn", 1, "highest", "lowest", "higher", "lower", "earn more", "below optimum", "below the optimum", 1.0,
    "reward you would give up",
)  # fmt: skip
COSTS = Terms(
    "cost", "cost", -1, "lowest", "highest", "lower", "higher", "cost less", "above least", "more than the least possible",
    10.0, "additional cost you would accept",
)  # fmt: skip


def terms_of(mdp: MDP) -> Terms:
    return COSTS if mdp.costs else REWARDS


def percent(share: float) -> str:
    """ "34 %", "3.2 %", "0.4 %"; "0 %" and "100 %" only for exactly none and all."""
    if share <= 1e-9:
        return "0 %"
    if share < TINY:
        return "under 0.1 %"
    if 1 - 1e-9 <= share <= 1 + 1e-9:
        return "100 %"
    if 1 - TINY < share < 1:
        return "over 99.9 %"
    points = 100 * share
    digits = 1 if points < 9.95 or 99 < points < 100 else 0
    return f"{points:.{digits}f}".removesuffix(".0") + " %"


def tabled(share: float) -> str:
    """A share in a column of shares, with one decimal: "34.0 %", "0.4 %"; "0.0 %" and "100.0 %" only for exactly none and all."""
    if ROUNDED < abs(share) < TINY:
        return "under 0.1 %"
    return "over 99.9 %" if 1 - TINY < share < 1 - ROUNDED else f"{100 * share:.1f} %"


def finely(share: float) -> str:
    """The same in a sentence: "34 %" for "34.0 %"."""
    return tabled(share).replace(".0 %", " %")


def number(value: float) -> str:
    """Three significant digits or so: "1,234", "31.2", "0.0093"; no "-0"."""
    size = abs(value)
    if size >= 100:
        text = f"{value:,.0f}"
    elif size >= 10:
        text = f"{value:.1f}".removesuffix(".0")
    else:
        text = f"{value:.3g}"
    return "0" if text.strip("-0.") == "" else text


def number_beside(value: float, scale: float) -> str:
    """The same for a number that stands beside larger ones: what would vanish beside them is "nearly 0"."""
    return "nearly 0" if ROUNDED * scale < abs(value) < TINY * scale else number(value)


def aligned(values: Sequence[float | None]) -> list[str]:
    """Rewards of several plans as they stand below each other: all with so many decimals that differences can be read."""
    known = [abs(value) for value in values if value is not None and isfinite(value)]
    largest = max(known, default=0.0)
    spread = largest - min(known, default=0.0)
    finest = min((x for x in (largest, 10 * spread) if x > ROUNDING * largest), default=1.0)
    digits = min(max(3 - floor(log10(finest)), 0), 12)
    return ["–" if value is None or not isfinite(value) else f"{value + 0.0:,.{digits}f}" for value in values]


def quantity(amount: float) -> str:
    """A number of steps: "31.2", "1,234"."""
    return f"{amount:.1f}".removesuffix(".0") if amount < 100 else f"{amount:,.0f}"


def counted(amount: float, noun: str) -> str:
    """ "31.2 steps", "1 step"."""
    return f"{quantity(amount)} {noun}{'' if quantity(amount) == '1' else 's'}"


def joined(items: Sequence[str]) -> str:
    """ "a", "a and b", "a, b and c"."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"


def short(name: str) -> str:
    """The name of a state, label or action on one line, without control characters, cut to `NAME_LENGTH` characters."""
    name = " ".join(name.encode("utf-8", "replace").decode().translate(CLEANED).split())
    return name if len(name) <= NAME_LENGTH else name[: NAME_LENGTH - 1] + "…"


def quoted(name: str) -> str:
    return f"'{short(name)}'"


def plain(name: str) -> str:
    """A name as part of a title: with quotation marks only if it is not a single word."""
    shown = short(name)
    return shown if shown and " " not in shown else quoted(name)


def distinct(names: Iterable[str], form: Callable[[str], str]) -> dict[str, str]:
    """Each name as `form` shows it, with a number where two would look the same."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        shown, count = form(name), 1
        while shown in taken:
            count += 1
            shown = f"{form(name)} ({count})"
        found[name] = shown
        taken.add(shown)
    return found


def raised(text: str) -> str:
    """The text with a capital first letter."""
    return text[:1].upper() + text[1:]
