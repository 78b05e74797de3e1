"""From the names that callers give to masks, with errors that say which names there are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

import numpy as np

from manyways.errors import ModelError
from manyways.model.building import mask_of
from manyways.types import Bools

LISTED = 10
"""A message lists at most this many names."""
SEARCHED = 10_000
"""Names similar to an unknown one are looked for among at most this many."""


def names_in(given: Any) -> list[str]:
    """One name or several as a list; none for None."""
    if given is None:
        return []
    if isinstance(given, str):
        return [given]
    if not isinstance(given, Iterable):
        raise ModelError(f"expected a name or a list of names, found {given!r:.80}")
    return [str(name) for name in given]


def are_names(given: Any) -> bool:
    """Whether states or choices are given by names."""
    try:
        return np.asarray(given).dtype.kind == "U"
    except ValueError:
        return False  # `mask_of` has the message


def mask_of_states(given: Any, all_names: Sequence[str], purpose: str) -> Bools:
    """(S,) the states that are given by names, by indices or as a mask."""
    if are_names(given):
        return where_named(names_in(given), all_names, "state", purpose)
    return mask_of(given, len(all_names), "states")


def where_named(names: Iterable[str], all_names: Sequence[str], noun: str, purpose: str) -> Bools:
    """(len(all_names),) where the given names are; all places of a name that occurs more than once."""
    wanted = set(names)
    for name in sorted(wanted - set(all_names)):
        unknown_name(name, all_names, noun, purpose)
    return np.array([name in wanted for name in all_names])


def unknown_name(name: str, known: Sequence[str], noun: str, purpose: str) -> NoReturn:
    """Refuse a name; `purpose` is what was to be done with it: "ban", "close"."""
    similar = get_close_matches(name, known[:SEARCHED], n=3)
    hint = f"did you mean {' or '.join(map(repr, similar))}? " if similar else ""
    more = f" and {len(known) - LISTED:,} more" if len(known) > LISTED else ""
    listed = ", ".join(map(repr, known[:LISTED])) + more or "none"
    raise ModelError(f"there is no {noun} {name!r:.80} to {purpose}; {hint}there are {listed}")
