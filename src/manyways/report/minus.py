"""Minus signs as they are printed."""

from __future__ import annotations

import re

HYPHEN = re.compile(r"(?<![\w.)='-])-(?=\d)")


def printed(text: str) -> str:
    """A text for people: "-3" becomes "−3"; "1e-9", "x=-3" and '-3', the name of a state, stay as they are."""
    return HYPHEN.sub("−", text)
