"""For readers that get anything at all: what comes out is a result or a sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from manyways import ManywaysError

PIECES = [
    "1e999",
    "nan",
    "-1",
    "9" * 400,
    "9223372036854775807",
    "1/3",
    "(",
    ")",
    "[",
    "]",
    '"',
    ":",
    "=",
    "#",
    "\n",
    "\r",
    "\t",
    "\0",
]


@st.composite
def damaged(draw, whole, pieces):
    """A file in which some stretches are replaced by others."""
    content = whole
    for _ in range(draw(st.integers(0, 4))):
        begin, length = draw(st.integers(0, len(content))), draw(st.integers(0, 12))
        content = content[:begin] + draw(pieces) + content[begin + length :]
    return content


def read_or_refusal(read: Callable[..., Any], *arguments: Any, **settings: Any) -> Any:
    """What was read, or the sentence with which it was refused; any other error goes through and fails the test."""
    try:
        return read(*arguments, **settings)
    except ManywaysError as error:
        sentence = str(error)
    assert 0 < len(sentence) < 10_000
    return sentence
