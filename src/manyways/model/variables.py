"""Variables of states: what the state of a model is made of, such as the wear of a machine and the parts on its shelf.

A variable has one value in each state: an integer, a number, true or false, or a short text. NaN and the empty text mean that
a state has no value, as the end of an episode may have none.

Readers give the variables that their format has. In a model without any, the names of the states may still have them:
`wear1/parts2`, `wear=1,parts=2`, `(1, 2)`. Names are split only when somebody asks for the variables, since a model may
have millions of states.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyways.errors import ModelError
from manyways.model.checking import check_text, frozen

LONGEST_TEXT = 60
Values = NDArray[Any]
"""(S,) of integers, floats, booleans or text."""


def checked_variables(given: Mapping[str, Any], n_states: int) -> dict[str, Values]:
    """By name, (S,) read-only values: 64-bit integers, floats, booleans or text."""
    return {str(name): _checked(str(name), values, n_states) for name, values in given.items()}


def _checked(name: str, given: Any, n_states: int) -> Values:
    check_text(variable=[name])
    if not name.strip():
        raise ModelError("a variable of states needs a name, found an empty one")
    try:
        array = np.asarray(given)
    except (TypeError, ValueError, OverflowError):
        array = np.asarray(None)
    if array.dtype.kind == "O" and array.shape == (n_states,) and all(isinstance(value, str) for value in array):
        array = array.astype(np.str_)
    if array.dtype.kind not in "biufU" or array.shape != (n_states,):
        raise ModelError(
            f"the variable {name[:60]!r} must have {n_states} values, one for each state, which are integers, numbers, "
            f"booleans or text; found {array.dtype} of shape {array.shape}"
        )
    if array.dtype.kind == "f" and np.isinf(array).any():
        raise ModelError(f"the variable {name[:60]!r} is infinite in some states; NaN means that there is no value")
    if array.dtype.kind == "u" and array.size and array.max() > np.iinfo(np.int64).max:
        raise ModelError(f"the variable {name[:60]!r} must be below 2**63, found {array.max()}")
    if array.dtype.kind == "U":
        array = _checked_text(name, array)
    kinds = {"b": np.bool_, "i": np.int64, "u": np.int64, "f": np.float64}
    return frozen(array, kinds.get(array.dtype.kind, array.dtype))


def _checked_text(name: str, array: Values) -> Values:
    """The texts, if they are short and can be encoded. All characters are looked at as numbers, without making S strings."""
    array = np.ascontiguousarray(array, dtype=f"=U{max(array.dtype.itemsize // 4, 1)}")
    if array.size and np.char.str_len(array).max() > LONGEST_TEXT:
        raise ModelError(f"a value of the variable {name[:60]!r} has more than {LONGEST_TEXT} characters")
    characters = array.view(np.uint32)
    if ((characters >= 0xD800) & (characters <= 0xDFFF)).any():
        raise ModelError(f"a value of the variable {name[:60]!r} cannot be encoded as UTF-8; give it another one")
    return array


# ---- from the names of states -------------------------------------------------------------------


class NameVariables(Mapping[str, Values]):
    """The variables in the names of states, found when they are first asked for; empty if not every name has them."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names

    @cached_property
    def _found(self) -> dict[str, Values]:
        return split_names(self.names)

    def __getitem__(self, name: str) -> Values:
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def __repr__(self) -> str:
        return repr(self._found)


AT_ONCE = 100_000
"""As many names are split at a time, so that there are never pieces of all names at once."""

SEPARATORS = (",", ";", "/", "|", "&", " ", "_", "-")
NUMBERS_ONLY = (" ", "_", "-")
"""Separators that also occur within names; they count only if all that they separate are numbers, with or without words."""

NUMBER = r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?"
NAMED = re.compile(r"""\s*['"]?([^=:'"]*?[^=:'"\s])['"]?\s*[=:]\s*(.*\S)\s*""")
COUNTED = re.compile(rf"\s*([^\W\d][^\d]*?)([ _-]?)({NUMBER})\s*")
RUN = re.compile(r"([^\W\d_]+)_?([0-9]+)")
WRAPPED = re.compile(r"\s*(?:[^\W\d]\w*)?[(\[{](.*)[)\]}]\s*", re.DOTALL)
MEANINGLESS = {"s", "q", "n", "v", "state", "node", "st", "x"}
"""A number after one of these, alone, is the number of a state and not a variable."""


@dataclass(frozen=True)
class _Part:
    """One variable in all names: its name, or "" if it has none, and the pattern of the text that holds it, with one group."""

    name: str
    pattern: str
    is_number: bool


def split_names(names: Sequence[str]) -> dict[str, Values]:
    """By name, (S,) the variables in the names of states; empty if the names do not all have the same ones."""
    for parts, between in _readings(names[0]) if len(names) else ():
        pattern = re.compile(_wrapped(names[0], between.join(part.pattern for part in parts)), re.DOTALL)
        if any(pattern.fullmatch(name) is None for name in islice(names, 1, 100)):
            continue
        columns = _columns(pattern, names, len(parts))
        found = None if columns is None else _named(parts, columns, len(names))
        if found:
            return found
    return {}


def _wrapped(name: str, pattern: str) -> str:
    whole = WRAPPED.fullmatch(name)
    return pattern if whole is None else re.escape(name[: whole.start(1)]) + pattern + r",?\s*[)\]}]\s*"


def _readings(name: str) -> Iterator[tuple[list[_Part], str]]:
    """Ways to read a name as variables, each with the pattern between two of them; the likeliest first."""
    whole = WRAPPED.fullmatch(name)
    inside = (name if whole is None else whole[1]).rstrip(" ,")
    for separator in SEPARATORS:
        pieces = inside.split(separator)
        if len(pieces) > 1 and all(piece.strip() for piece in pieces):
            parts = [_part(piece, separator) for piece in pieces]
            if separator not in NUMBERS_ONLY or all(part.is_number or not part.name for part in parts):
                yield parts, re.escape(separator)
    found = RUN.findall(inside)
    if len(found) > 1 and "".join(f"{word}{number}" for word, number in found) == inside.replace("_", ""):
        yield [_Part(word, rf"{re.escape(word)}_?([0-9]+)", True) for word, _ in found], "_?"
    if inside.strip():
        part = _part(inside, ",")
        if part.name and not (part.is_number and part.name.lower() in MEANINGLESS):
            yield [part], ""


def _part(piece: str, separator: str) -> _Part:
    """How to read the part of a name between two separators."""
    word = rf"\s*(?:['\"])?([^{re.escape(separator)}]*?)(?:['\"])?\s*"
    if named := NAMED.fullmatch(piece):
        before = re.escape(piece[: named.start(2)])
        return _Part(named[1], rf"{before}(?:['\"])?([^{re.escape(separator)}]*?)(?:['\"])?\s*", False)
    if counted := COUNTED.fullmatch(piece):
        before = re.escape(piece[: counted.start(3)].lstrip())
        return _Part(counted[1].strip(" _-"), rf"\s*{before}({NUMBER})\s*", True)
    if re.fullmatch(rf"\s*{NUMBER}\s*", piece):
        return _Part("", rf"\s*({NUMBER})\s*", True)
    return _Part("", word, False)


def _columns(pattern: re.Pattern[str], names: Sequence[str], count: int) -> list[Values] | None:
    """For each of the variables, (S,) its values as text; None if a name does not fit the pattern."""
    pieces: list[list[Values]] = [[] for _ in range(count)]
    for begin in range(0, len(names), AT_ONCE):
        matches = [pattern.fullmatch(name) for name in names[begin : begin + AT_ONCE]]
        if None in matches:
            return None
        rows = [match.groups() for match in matches if match is not None]
        for column, texts in zip(pieces, zip(*rows, strict=True), strict=True):
            if max(map(len, texts)) > LONGEST_TEXT:
                return None
            column.append(np.array(texts, dtype=np.str_))
    return [np.concatenate(column) for column in pieces]


def _named(parts: Sequence[_Part], columns: Sequence[Values], n_states: int) -> dict[str, Values] | None:
    """The variables by name; a word that all names have in one place is the name of what follows it."""
    found: dict[str, Values] = {}
    label, unnamed = "", 0
    for part, texts in zip(parts, columns, strict=True):
        constant = bool((texts == texts[0]).all())
        if not part.name and not part.is_number and constant and n_states > 1:
            label = f"{label} {texts[0]}".strip()
            continue
        unnamed += not (part.name or label)
        name, label = part.name or label or f"x{unnamed}", ""
        values = parsed(texts)
        if name in found:
            return None
        if values.dtype.kind == "U" and n_states > 1 and len(np.unique(values)) == n_states:
            continue  # a text that is different in each state is only another name
        found[name] = values
    return {name: frozen(values, values.dtype) for name, values in found.items()}


def parsed(texts: Values) -> Values:
    """(S,) the values in texts: integers, floats or booleans if all of them are, with NaN for an empty text; otherwise the
    texts."""
    different, place = np.unique(texts, return_inverse=True)
    words = [str(text).strip() for text in different]
    said = [word.lower() for word in words if word]
    if said and len(said) == len(words) and set(said) <= {"true", "false"}:
        return np.array([word == "true" for word in said])[place]
    if said and all(re.fullmatch(r"-?[0-9]{1,18}", word) for word in said):
        if len(said) == len(words):
            return np.array([int(word) for word in words], np.int64)[place]
        return np.array([float(word) if word else np.nan for word in words])[place]
    if said and all(re.fullmatch(NUMBER, word) for word in said):
        numbers = np.array([float(word) if word else np.nan for word in words])
        if not np.isinf(numbers).any():
            return numbers[place]
    return np.array(words, dtype=np.str_)[place]


# ---- from states that are objects of Python -----------------------------------------------------


def fields_of(states: Sequence[Hashable], names: Sequence[str] | None = None) -> dict[str, Values]:
    """By name, (S,) the fields of states that are tuples, named tuples, dataclasses or mappings; empty for other states.

    Tuples within them are taken apart as well. States of another kind, such as a final one, have no values. A field
    whose values are not numbers, booleans or short texts is left out.

    Args:
        states: the states.
        names: what to call the fields of plain tuples; `x1`, `x2`, ... by default.
    """
    rows = [_row(state, names) for state in states] if len(states) and _row(states[0], names) else []
    shape = next((tuple(row) for row in rows if row), ())
    fitting = [row if row is not None and tuple(row) == shape else None for row in rows]
    if not shape or 2 * sum(row is not None for row in fitting) <= len(fitting):
        return {}
    found = {}
    for name in shape:
        column = _column([None if row is None else row[name] for row in fitting])
        if column is not None:
            found[name] = column
    return found


def _row(state: Any, names: Sequence[str] | None) -> dict[str, Any] | None:
    """The fields of a state by name; None for a state without fields."""
    if is_dataclass(state):
        given = {field.name: getattr(state, field.name) for field in fields(state)}
    elif isinstance(state, tuple) and hasattr(state, "_fields"):
        given = dict(zip(state._fields, state, strict=True))  # pyright: ignore[reportAttributeAccessIssue]
    elif isinstance(state, Mapping):
        given = {str(key): value for key, value in state.items()}
    elif isinstance(state, tuple):
        if names is not None and len(names) != len(state):
            return None
        given = dict(zip(names or [f"x{i}" for i in range(1, len(state) + 1)], state, strict=True))
    else:
        return None
    row: dict[str, Any] = {}
    for name, value in given.items():
        inner = _row(value, None) if not isinstance(value, Enum) else None
        if inner is None:
            row[name] = value
        else:
            row |= {f"{name} {key.removeprefix('x')}": part for key, part in inner.items()}
    return row


def _column(values: list[Any]) -> Values | None:
    """(S,) values of one kind, with None for those that are missing; None if they are of different kinds or no values."""
    plain = [_plain(value) for value in values]
    kinds = {type(value) for value in plain if value is not None}
    missing = None in plain
    if kinds == {bool} and not missing:
        return np.array(plain, np.bool_)
    if kinds == {int} and not missing and all(abs(value) < 2**63 for value in plain):
        return np.array(plain, np.int64)
    if kinds and kinds <= {bool, int, float}:
        try:
            numbers = np.array([np.nan if value is None else float(value) for value in plain])
        except OverflowError:
            return None
        return None if np.isinf(numbers).any() else numbers
    texts = ["" if value is None else str(value) for value in plain]
    if not kinds <= {str, bool, int, float} or not kinds or max(map(len, texts)) > LONGEST_TEXT:
        return None
    return np.array(texts, np.str_)


def _plain(value: Any) -> Any:
    """A value as one of Python's own types; an enumeration by its name. Other objects are returned as they are."""
    if isinstance(value, Enum):
        return value.name
    return value.item() if isinstance(value, np.generic) else value
