"""What people say about plans: checked when it comes in, kept as events, summed up as marks.

An event is never changed or taken back. A name is the newest one given, a star the newest word on it, one plan at
most is chosen, and a note stands until another event removes it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from manyways.errors import ManywaysError

LONGEST = {"name": 80, "note": 2000, "author": 40}
MARKS = ("star", "name", "note", "remove-note", "choose")
"""The kinds of events that people send about a plan."""

SHOW = "show"
"""The kind of event that says which set is the current one; it is about no plan, and nobody sends it."""

REORDERING = dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A)))
"""Characters that turn the direction of the text around them, and so could make a name read as another one."""


class Refused(ManywaysError):
    """A request that cannot be met, with the status of HTTP that says so."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Event:
    """One thing that someone said. `value` is plain data: text, a truth value, or a number."""

    id: int
    time: str
    plan: str
    kind: str
    author: str
    value: Any


class Tally:
    """What the events so far come to."""

    def __init__(self) -> None:
        self.last_event = 0
        self.shown = 1
        self.chosen = ""
        self.names: dict[str, str] = {}
        self.stars: set[str] = set()
        self.notes: dict[str, dict[int, dict[str, Any]]] = {}

    def add(self, event: Event) -> None:
        plan, value = event.plan, event.value
        if event.kind == "star":
            (self.stars.add if value else self.stars.discard)(plan)
        elif event.kind == "name":
            self.names[plan] = value
        elif event.kind == "note":
            note = {"id": event.id, "author": event.author, "text": value, "time": event.time}
            self.notes.setdefault(plan, {})[event.id] = note
        elif event.kind == "remove-note":
            self.notes.get(plan, {}).pop(value, None)
        elif event.kind == "choose" and value:
            self.chosen = plan
        elif event.kind == "choose" and self.chosen == plan:
            self.chosen = ""
        elif event.kind == SHOW:
            self.shown = int(value)
        self.last_event = event.id

    def said_of(self) -> set[str]:
        """The plans that anything stands beside."""
        named = {plan for plan, name in self.names.items() if name}
        noted = {plan for plan, notes in self.notes.items() if notes}
        return named | noted | self.stars | ({self.chosen} if self.chosen else set())

    def marks(self, plans: Iterable[str]) -> dict[str, dict[str, Any]]:
        """What there is to show beside each of these plans."""
        return {
            plan: {
                "name": self.names.get(plan, ""),
                "star": plan in self.stars,
                "chosen": plan == self.chosen,
                "notes": list(self.notes.get(plan, {}).values()),
            }
            for plan in plans
        }


def checked_mark(said: Mapping[str, Any]) -> tuple[str, str, str, Any]:
    """(plan, kind, author, value) of what someone sent, or a sentence on what is wrong with it."""
    plan, kind = said.get("plan"), said.get("kind")
    if not isinstance(plan, str):
        raise Refused("'plan' must be the key of a plan")
    if kind not in MARKS:
        raise Refused(f"'kind' must be one of {', '.join(MARKS)}")
    author = checked_text("author", said.get("author", ""), LONGEST["author"])
    value = said.get("value")
    if kind in ("star", "choose"):
        if not isinstance(value, bool):
            raise Refused(f"'value' of {kind} must be true or false")
    elif kind == "remove-note":
        if isinstance(value, bool) or not isinstance(value, int):
            raise Refused("'value' of remove-note must be the id of a note")
    else:
        value = checked_text(kind, value, LONGEST[kind], lines=kind == "note")
        if kind == "note" and not value:
            raise Refused("the note is empty: write something")
    return plan, kind, author, value


def checked_text(what: str, value: Any, longest: int, *, lines: bool = False) -> str:
    """Text without control characters and outer space, on one line unless `lines`.

    What turns the direction of text is left out silently: nobody sees it, and it comes along when text is pasted.
    """
    if not isinstance(value, str):
        raise Refused(f"the {what} must be text")
    text = value.translate(REORDERING)
    text = text.replace("\r\n", "\n").strip() if lines else " ".join(text.split())
    if len(text) > longest:
        raise Refused(f"the {what} has {len(text):,} characters, at most {longest:,} are kept: make it shorter")
    if any(unicodedata.category(letter) in ("Cc", "Cs") and letter not in "\n\t" for letter in text):
        raise Refused(f"the {what} has control characters in it: leave them out")
    return text
