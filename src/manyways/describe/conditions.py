"""Conditions on the variables of states, and how they are said: "wear 3 or more", "parts are 1 or fewer", "not broken"."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from manyways.describe.wording import joined, short
from manyways.model.variables import Values
from manyways.types import Bools

Value = str | bool


@dataclass(frozen=True)
class Condition:
    """What the value of one variable must be: within bounds, or one of some values, or none of them.

    Attributes:
        variable: its name.
        low, high: the least and the highest number allowed, both included; None without such a bound.
        values: for texts and booleans, the values.
        negated: whether these are the values that are not allowed.
    """

    variable: str
    low: float | None = None
    high: float | None = None
    values: tuple[Value, ...] = ()
    negated: bool = False

    def holds(self, values: Values) -> Bools:
        """(S,) where it holds, for (S,) values of the variable. It holds nowhere without a value."""
        if self.values:
            found = np.isin(values, np.array(self.values))
            return ~found & ~missing(values) if self.negated else found
        found = ~missing(values)
        if self.low is not None:
            found &= values >= self.low
        if self.high is not None:
            found &= values <= self.high
        return found

    @property
    def brief(self) -> str:
        """A few words for a table: "wear 3 or more", "x ≥ 3", "not broken", "destination red"."""
        name = shown(self.variable)
        if not self.values:
            return self._in_symbols(name) if is_symbol(name) else f"{name} {self.bounds(name)}"
        if isinstance(self.values[0], bool):
            return _boolean(name, self.is_true)
        return f"{name} {'not ' if self.negated else ''}{_either(self.values)}"

    @property
    def clause(self) -> str:
        """The condition after "when": "parts are 1 or fewer", "x ≥ 3", "not broken", "destination is not red"."""
        name = shown(self.variable)
        if not self.values:
            be = "are" if is_plural(name) else "is"
            return self._in_symbols(name) if is_symbol(name) else f"{name} {be} {self.bounds(name)}"
        if isinstance(self.values[0], bool):
            return _boolean(name, self.is_true)
        if not self.negated:
            return f"{name} is {_either(self.values)}"
        if len(self.values) == 1:
            return f"{name} is not {_said(self.values[0])}"
        return f"{name} is neither {' nor '.join(map(_said, self.values))}"

    @property
    def is_level(self) -> bool:
        """Whether it can stand after "at": "at wear 3 or more"."""
        name = shown(self.variable)
        return self.is_number and not is_symbol(name) and not is_plural(name)

    @property
    def is_number(self) -> bool:
        """Whether it is about bounds."""
        return not self.values and (self.low is not None or self.high is not None)

    @property
    def is_true(self) -> bool:
        """For a boolean, which of the two it must be."""
        return bool(self.values[0]) != self.negated

    def bounds(self, name: str) -> str:
        """The bounds in words: "3", "3 or more"; the name says whether it is "less" or "fewer"."""
        if self.low is None and self.high is None:
            return "known"
        if self.low is None:
            return f"{figure(self.high)} or {'fewer' if is_plural(name) else 'less'}"
        if self.high is None:
            return f"{figure(self.low)} or more"
        if self.low == self.high:
            return figure(self.low)
        whole = isinstance(self.low, int) and isinstance(self.high, int)
        return f"{figure(self.low)} {'or' if whole and self.high == self.low + 1 else 'to'} {figure(self.high)}"

    def _in_symbols(self, name: str) -> str:
        if self.low is not None and self.low == self.high:
            return f"{name} = {figure(self.low)}"
        if self.low is not None and self.high is not None:
            return f"{figure(self.low)} ≤ {name} ≤ {figure(self.high)}"
        return f"{name} ≥ {figure(self.low)}" if self.high is None else f"{name} ≤ {figure(self.high)}"


def hull(one: Sequence[Condition], other: Sequence[Condition]) -> tuple[Condition, ...]:
    """The narrowest conditions that hold wherever the conditions of one or of the other list do. Bounds are made wider, and
    variables that only one of them has are left out."""
    found = []
    for first in one:
        for second in (condition for condition in other if condition.variable == first.variable):
            if first == second:
                found.append(first)
            elif not first.values and not second.values:
                lows, highs = (first.low, second.low), (first.high, second.high)
                low = None if None in lows else min(low for low in lows if low is not None)
                high = None if None in highs else max(high for high in highs if high is not None)
                found += [] if low is high is None else [Condition(first.variable, low, high)]
            elif not first.negated and not second.negated and not isinstance(first.values[0], bool):
                values = dict.fromkeys((*first.values, *second.values))
                found.append(Condition(first.variable, values=tuple(values)))
    return tuple(found)


def missing(values: Values) -> Bools:
    """(S,) where a variable has no value."""
    if values.dtype.kind == "f":
        return np.isnan(values)
    return values == "" if values.dtype.kind == "U" else np.zeros(len(values), bool)


def all_hold(conditions: Sequence[Condition], variables: Mapping[str, Values], count: int) -> Bools:
    """(count,) where all conditions hold, for (count,) values of each variable."""
    found = np.ones(count, bool)
    for condition in conditions:
        found &= condition.holds(variables[condition.variable])
    return found


def narrowed(conditions: Sequence[Condition], variables: Mapping[str, Values], among: Bools) -> tuple[Condition, ...]:
    """The conditions with bounds at values that occur in the (S,) states of `among` in which they hold: "at wear 2" instead of "at
    wear 2 or more" where 2 is the most that occurs. A bound beyond which the variable has no value at all stays away."""
    held, found = among & all_hold(conditions, variables, len(among)), []
    for condition in conditions:
        values = variables[condition.variable]
        if condition.is_number and held.any():
            least, most, known = values[held].min().item(), values[held].max().item(), values[~missing(values)]
            low = None if condition.low is None and known.min() == least else least
            high = None if condition.high is None and known.max() == most else most
            condition = replace(condition, low=low, high=high) if (low, high) != (None, None) else condition  # noqa: PLW2901
        found.append(condition)
    return tuple(found)


def when(conditions: Sequence[Condition]) -> str:
    """The conditions as the end of a sentence: "at wear 3 or more when parts are 0"; empty without any."""
    levels = [condition.brief for condition in conditions if condition.is_level]
    clauses = [condition.clause for condition in conditions if not condition.is_level]
    at = f"at {joined(levels)}" if levels else ""
    return f"{at} when {joined(clauses)}".strip() if clauses else at


def spent(condition: Condition) -> str:
    """The condition after "spends time": "at wear 3 or more", "with 0 parts", "with x ≥ 3", "where place is hill"."""
    if condition.is_level:
        return f"at {condition.brief}"
    name = shown(condition.variable)
    if condition.is_number and not is_symbol(name):
        return f"with {condition.bounds(name)} {_singular(name) if condition.low == condition.high == 1 else name}"
    if condition.values and isinstance(condition.values[0], bool):
        return f"with {shown(condition.variable)} {str(condition.is_true).lower()}"
    return f"where {condition.clause}" if condition.values else f"with {condition.brief}"


def briefly(conditions: Sequence[Condition]) -> str:
    """The conditions in a cell of a table."""
    return ", ".join(condition.brief for condition in conditions) or "always"


def figure(value: float | None) -> str:
    """A bound as it is written: "3", "0.25"."""
    return "" if value is None else f"{value:.6g}"


def shown(variable: str) -> str:
    """The name of a variable in a sentence; underscores become blanks."""
    return short(variable.strip("_").replace("_", " ")) or short(variable)


def is_symbol(name: str) -> bool:
    """Whether a name is no word, such as `x` or `x1`: then bounds are written with signs."""
    return len(name) <= 2 or re.search(r"[a-zA-Z]{3}", name) is None


def is_plural(name: str) -> bool:
    """Whether a name is probably a plural: "parts", and not "status"."""
    return bool(re.search(r"[a-z]{2}s$", name)) and not re.search(r"(ss|us|is|as|ness)$", name)


def _singular(name: str) -> str:
    """ "part" for "parts", "battery" for "batteries", "box" for "boxes"."""
    if name.endswith("ies"):
        return f"{name[:-3]}y"
    return re.sub(r"(?<=x|z|s)es$|(?<=ch|sh)es$|s$", "", name)


def _boolean(name: str, is_true: bool) -> str:
    if is_symbol(name):
        return f"{name} is {str(is_true).lower()}"
    if name.startswith("has "):
        return f"it {name}" if is_true else f"it has no {name.removeprefix('has ')}"
    name = name.removeprefix("is ")
    return name if is_true else f"not {name}"


def _said(value: Value) -> str:
    return short(str(value))


def _either(values: Sequence[Value]) -> str:
    said = list(map(_said, values))
    return said[0] if len(said) == 1 else f"{', '.join(said[:-1])} or {said[-1]}"
