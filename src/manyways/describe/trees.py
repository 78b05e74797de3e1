"""Small decision trees over the variables of states, fitted to what a plan does.

A tree has depth three, or four where that is asked for. Each further leaf must be worth a share of the plan's time, so that of two trees that are nearly
equally exact the simpler one is taken. Few splits are tried in each node, those that look best on their own; all
combinations of these are compared by the time in which the whole tree is right.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from manyways.describe.conditions import Condition, missing
from manyways.model.variables import Values
from manyways.types import Bools, Floats, Ints

DEPTH = 3
TRIED, FEWER = (1, 3, 8, 8), (1, 2, 3, 3)
"""How many splits are tried in a node, by the depth that is left below it; fewer from `MANY` states on."""

MANY = 3000

STATES_AT_MOST = 20_000
"""Trees are fitted to as many states, those with the most time."""

ACTIONS_AT_MOST = 12
WORDS_AT_MOST = 40
"""Texts with more different values than this are names of states rather than variables."""

CUTS_AT_MOST = 200
"""A number is compared with at most so many thresholds."""


@dataclass(frozen=True, eq=False)
class Column:
    """A variable in the n states that a tree is fitted to.

    Attributes:
        name: of the variable.
        values: (v,) its different values in these states, sorted.
        codes: (n,) the position of each state's value among them; -1 without a value.
        ordered: whether it is a number.
    """

    name: str
    values: Values
    codes: Ints
    ordered: bool

    def bounded(self, low: int | None, high: int | None) -> Condition:
        """The condition that the value lies between two of the values, given by their positions."""
        last = len(self.values) - 1
        low, high = (low if high != 0 else 0), (high if low != last else last)
        least = None if low is None else self.values[low].item()
        return Condition(self.name, least, None if high is None else self.values[high].item())


@dataclass(frozen=True)
class Split:
    """A question on one column: whether its code is at least `code` or, if the column is not ordered, exactly it."""

    column: int
    code: int


@dataclass(frozen=True)
class Leaf:
    """The answers that lead to a leaf, and the class that it stands for."""

    path: tuple[tuple[Split, bool], ...]
    answer: int


def columns_of(variables: Mapping[str, Values], states: Ints) -> list[Column]:
    """The variables that differ among the (n,) given states, without texts of too many different values."""
    found = []
    for name, values in variables.items():
        here = values[states]
        there = ~missing(here)
        different, codes = np.unique(here[there], return_inverse=True)
        ordered = values.dtype.kind in "if"
        if len(different) < 2 or not (ordered or len(different) <= WORDS_AT_MOST):
            continue
        place = np.full(len(here), -1, np.int64)
        place[there] = codes
        found.append(Column(name, different, place, ordered))
    return found


def fitted(columns: Sequence[Column], time: Floats, per_leaf: float, depth: int = DEPTH) -> list[Leaf]:
    """The leaves of the best tree found for (n, a) the time of each state on each of a classes; each leaf after the first
    must be worth a share `per_leaf` of all time."""
    heavy = np.argsort(-time.sum(axis=1), kind="stable")[:STATES_AT_MOST]
    search = _Search(columns, time / max(float(time.sum()), 1e-300), per_leaf)
    return search.best(heavy, depth)[1]


class _Search:
    def __init__(self, columns: Sequence[Column], time: Floats, per_leaf: float) -> None:
        self.columns, self.time, self.per_leaf = columns, time, per_leaf

    def best(self, states: Ints, depth: int) -> tuple[float, list[Leaf]]:
        """The value and the leaves of the best tree found for some of the states."""
        time = self.time[states]
        total = time.sum(axis=0)
        answer = int(np.argmax(total))
        score, leaves = float(total[answer]), [Leaf((), answer)]
        if depth == 0 or total.sum() - score < self.per_leaf:  # no tree can be worth a further leaf
            return score, leaves
        for split in self._splits(states, time, depth):
            yes = self._parted(states, time, split)
            (upper, above), (lower, below) = self.best(states[yes], depth - 1), self.best(states[~yes], depth - 1)
            if upper + lower - self.per_leaf > score + 1e-12:
                score = upper + lower - self.per_leaf
                leaves = [Leaf(((split, True), *leaf.path), leaf.answer) for leaf in above]
                leaves += [Leaf(((split, False), *leaf.path), leaf.answer) for leaf in below]
        return score, leaves

    def _parted(self, states: Ints, time: Floats, split: Split) -> Bools:
        """Which states answer with yes. Those without a value go with the side that has more time: that one is likely to be
        what a rule says of all other states."""
        column = self.columns[split.column]
        codes = column.codes[states]
        yes, known, there = codes >= split.code if column.ordered else codes == split.code, codes >= 0, time.sum(axis=1)
        if known.all():
            return yes
        more = there[yes].sum() > there[known & ~yes].sum()
        return yes | ~known if more else yes

    def _splits(self, states: Ints, time: Floats, depth: int) -> list[Split]:
        """The splits to try: those that leave most time to the most frequent class of each side, or the purest sides."""
        found: list[tuple[float, float, Split]] = []
        for number, column in enumerate(self.columns):
            found += [(right, pure, Split(number, code)) for right, pure, code in _gains(column, states, time)]
        by_time = sorted(found, key=lambda entry: (-entry[0], -entry[1], entry[2].column, entry[2].code))
        by_purity = sorted(found, key=lambda entry: (-entry[1], -entry[0], entry[2].column, entry[2].code))
        tried = (TRIED if len(self.time) < MANY else FEWER)[depth - 1]
        return list(dict.fromkeys(entry[2] for entry in (*by_purity[:tried], *by_time[:tried])))


def _gains(column: Column, states: Ints, time: Floats) -> Iterator[tuple[float, float, int]]:
    """For each split of the column: the time in the most frequent class of each side, the purity (of Gini), and its code."""
    codes = column.codes[states]
    known = codes >= 0
    present, place = np.unique(codes[known], return_inverse=True)
    if len(present) < 2:
        return
    table = np.stack([np.bincount(place, row[known], len(present)) for row in time.T], axis=1)
    total = table.sum(axis=0)
    if column.ordered:
        below = np.cumsum(table, axis=0)[:-1]
        sides, at = (below, total - below), present[1:]
    else:
        sides, at = (table, total - table), present
    right = np.sum([side.max(axis=1) for side in sides], axis=0)
    pure = np.sum([(side**2).sum(axis=1) / np.maximum(side.sum(axis=1), 1e-300) for side in sides], axis=0)
    kept = np.argsort(-pure, kind="stable")[:CUTS_AT_MOST]
    yield from zip(right[kept].tolist(), pure[kept].tolist(), at[kept].tolist(), strict=True)


def conditions_of(leaf: Leaf, columns: Sequence[Column]) -> tuple[Condition, ...]:
    """The answers that lead to a leaf as conditions, one for each variable, in the order of the variables.

    The bounds are values that occur, so nothing is said about values between two that do.
    """
    found = []
    for number in sorted({split.column for split, _ in leaf.path}):
        column = columns[number]
        asked = [(split.code, answer) for split, answer in leaf.path if split.column == number]
        if column.ordered:
            low = max((code for code, answer in asked if answer), default=None)
            high = min((code - 1 for code, answer in asked if not answer), default=None)
            found.append(column.bounded(low, high))
            continue
        values = [column.values[code].item() for code, _ in asked]
        agreed = [value for value, (_, answer) in zip(values, asked, strict=True) if answer]
        left = [value for value in column.values.tolist() if value not in values]
        if agreed or len(left) == 1:
            found.append(Condition(column.name, values=tuple(agreed or left)))
        else:
            found.append(Condition(column.name, values=tuple(values), negated=True))
    return tuple(found)
