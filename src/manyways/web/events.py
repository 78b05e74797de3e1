"""What people say about plans: checked on arrival, stored as events, summed up as marks.

Events are never changed or removed. The newest name of a plan and the newest star event count, at most one plan is
chosen, and a note stands until another event removes it. Choosing by rounds is a list of questions: a new one begins the
list, an answer adds the next question, and taking it back removes that again.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from manyways.errors import ManywaysError

LONGEST = {"name": 80, "note": 2000, "author": 40}
MARK_KINDS = ("star", "name", "note", "remove-note", "choose")
"""The kinds of events that people send about a plan."""

SHOW = "show"
"""The kind of event that makes a set the current one. It is about no plan, and only the server writes it."""

START, ANSWER, BACK = "start-rounds", "answer", "back"
"""The kinds of events of choosing by rounds, which only the server writes."""

DIRECTION_CHARACTERS = dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A)))
"""Characters that change the direction of the text around them, which could make one name look like another."""


class Refused(ManywaysError):
    """A request that cannot be fulfilled, with the HTTP status of the answer."""

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


@dataclass(frozen=True)
class Question:
    """One round: the number of the set that was shown, the plan that was taken (counted from 0), and its title then."""

    set: int
    taken: int | None = None
    title: str = ""


@dataclass(frozen=True)
class Rounds:
    """Choosing by rounds as it stands.

    Attributes:
        questions: all rounds so far; the last one has no answer yet. Empty if nobody has begun.
        k: how many plans a round shows.
        seed: of every random draw.
        event: the newest event that changed anything here.
    """

    questions: tuple[Question, ...] = ()
    k: int = 0
    seed: int = 0
    event: int = 0


class EventSummary:
    """The effect of all events so far: names, stars, notes, the chosen plan and the set in which it was chosen (0 if that is
    not known), the current set and the rounds."""

    def __init__(self) -> None:
        self.last_event = 0
        self.shown = 1
        self.chosen, self.chosen_in = "", 0
        self.names: dict[str, str] = {}
        self.stars: set[str] = set()
        self.notes: dict[str, dict[int, dict[str, Any]]] = {}
        self.rounds = Rounds()

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
            self.chosen, self.chosen_in = plan, 0 if value is True else int(value)
        elif event.kind == "choose" and self.chosen == plan:
            self.chosen, self.chosen_in = "", 0
        elif event.kind == SHOW:
            self.shown = int(value)
        elif event.kind in (START, ANSWER, BACK):
            self.rounds = _rounds_after(self.rounds, event)
        self.last_event = event.id

    def marked_plans(self) -> set[str]:
        """The keys of the plans that have a name, a star or a note, or are chosen."""
        named = {plan for plan, name in self.names.items() if name}
        noted = {plan for plan, notes in self.notes.items() if notes}
        return named | noted | self.stars | ({self.chosen} if self.chosen else set())

    def marks(self, plans: Iterable[str]) -> dict[str, dict[str, Any]]:
        """What the page shows beside each of these plans."""
        return {
            plan: {
                "name": self.names.get(plan, ""),
                "star": plan in self.stars,
                "chosen": plan == self.chosen,
                "notes": list(self.notes.get(plan, {}).values()),
            }
            for plan in plans
        }


def _rounds_after(rounds: Rounds, event: Event) -> Rounds:
    asked, value = rounds.questions, event.value
    if event.kind == START:
        return Rounds((Question(value["set"]),), value["k"], value["seed"], event.id)
    if event.kind == ANSWER:
        asked = (*asked[:-1], replace(asked[-1], taken=value["plan"], title=value["title"]), Question(value["next"]))
    else:
        asked = (*asked[:-2], Question(asked[-2].set))
    return replace(rounds, questions=asked, event=event.id)


def checked_mark(sent: Mapping[str, Any]) -> tuple[str, str, str, Any]:
    """(plan, kind, author, value) of a mark that someone sent; raises `Refused` if anything is wrong with it."""
    plan, kind = sent.get("plan"), sent.get("kind")
    if not isinstance(plan, str):
        raise Refused("'plan' must be the key of a plan")
    if kind not in MARK_KINDS:
        raise Refused(f"'kind' must be one of {', '.join(MARK_KINDS)}")
    author = checked_text("author", sent.get("author", ""), LONGEST["author"])
    value = sent.get("value")
    if kind == "star":
        if not isinstance(value, bool):
            raise Refused("'value' of star must be true or false")
    elif kind == "choose":
        if not isinstance(value, bool) and (not isinstance(value, int) or value < 1):
            raise Refused("'value' of choose must be the number of the set in which the plan is chosen, true, or false")
    elif kind == "remove-note":
        if isinstance(value, bool) or not isinstance(value, int):
            raise Refused("'value' of remove-note must be the id of a note")
    else:
        value = checked_text(kind, value, LONGEST[kind], lines=kind == "note")
        if kind == "note" and not value:
            raise Refused("the note is empty: write something")
    return plan, kind, author, value


def checked_text(what: str, value: Any, longest: int, *, lines: bool = False) -> str:
    """Text without control characters and surrounding space, on one line unless `lines`.

    Characters that change the direction of text are removed silently: they are invisible, and pasted text often
    contains them.
    """
    if not isinstance(value, str):
        raise Refused(f"the {what} must be text")
    text = value.translate(DIRECTION_CHARACTERS)
    text = text.replace("\r\n", "\n").strip() if lines else " ".join(text.split())
    if len(text) > longest:
        raise Refused(f"the {what} has {len(text):,} characters, at most {longest:,} are allowed: make it shorter")
    if any(unicodedata.category(letter) in ("Cc", "Cs") and letter not in "\n\t" for letter in text):
        raise Refused(f"the {what} contains control characters: remove them")
    return text
