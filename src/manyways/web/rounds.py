"""Choosing by rounds on the live page: the current question, answers, taking them back, and what was learned.

The questions are sets and events in the store, so everything is there again after a restart. The conversation is made from
them when it is needed; the last one stays in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import Any

from manyways.plans import PlanSet
from manyways.report.rounds import Standing, render_rounds, round_view
from manyways.web.events import LONGEST, Refused, Rounds, checked_text
from manyways.web.planner import PlannedSet, RoundRequest, conversation_of
from manyways.web.requests import integer, share
from manyways.web.store import Choices, no_set
from manyways.web.worker import Worker

MOST_PLANS = 12
MOST_ROUNDS = 100


class RoundsDesk:
    """Answers the requests of the page for choosing by rounds.

    Args:
        choices: the store.
        worker: the planning process.
        plans: gives a stored set by its number.
        time_limit_s: how long one planning job may search.
    """

    def __init__(self, choices: Choices, worker: Worker, plans: Callable[[int], PlanSet], time_limit_s: float) -> None:
        self._choices, self._worker, self._plans, self._time_limit_s = choices, worker, plans, time_limit_s
        self._lock = Lock()
        self._last: _Asked | None = None

    def page(self, number: int | None = None) -> bytes:
        """The page with the current question, or the one that begins; new rounds begin with the model of a set: by default that
        of the rounds so far, or else the newest."""
        state = self._choices.state()
        rounds = state.rounds
        if not rounds.questions:
            begin = state.current if number is None else number
            view, settings = None, self._plans(begin)
            name = settings.mdp.name
            standing = Standing(begin, 0, (), rounds.event, _percent(settings.limits.slack), name, name)
        else:
            asked = self._asked(rounds)
            view, last = asked.view, rounds.questions[-1].set
            titles = tuple(question.title for question in rounds.questions[:-1])
            begin, slack = last if number is None else number, _percent(asked.plans.limits.slack)
            names = asked.plans.mdp.name, self._plans(begin).mdp.name
            standing = Standing(begin, last, titles, rounds.event, slack, *names)
        return render_rounds(view, standing).encode(errors="replace")

    def start(self, sent: Mapping[str, Any]) -> int:
        """Begin anew, with the model and the criterion of a set; returns the number of the job."""
        number = integer("Set", sent.get("set"), 1, 10**15)
        k = integer("Plans", sent.get("k"), 2, MOST_PLANS)
        seed = integer("Seed", sent.get("seed", 0), 0, 2**32 - 1)
        slack = share(sent.get("slack"))
        return self._worker.start(RoundRequest((self._archive(number),), (), "", 0, k, slack, seed, self._time_limit_s))

    def answer(self, sent: Mapping[str, Any]) -> int:
        """A plan (counted from 0) of the current question is the best; returns the number of the job."""
        number = integer("Set", sent.get("set"), 1, 10**15)
        self._choices.check_asked(number)
        rounds = self._choices.state().rounds
        if len(rounds.questions) > MOST_ROUNDS:
            raise Refused(f"there were {MOST_ROUNDS} rounds already: stop, or start again")
        asked = self._asked(rounds)
        taken = integer("Plan", sent.get("plan"), 0, asked.plans.k - 1)
        archives = tuple(self._archive(question.set) for question in rounds.questions)
        before = tuple(question.taken or 0 for question in rounds.questions[:-1])
        title = asked.view["cards"][taken]["title"]
        return self._worker.start(
            RoundRequest(archives, (*before, taken), title, number, rounds.k, None, rounds.seed, self._time_limit_s)
        )

    def back(self, sent: Mapping[str, Any]) -> None:
        """Take the last answer back."""
        self._check_idle()
        self._choices.take_back(integer("Set", sent.get("set"), 1, 10**15))

    def stop(self, sent: Mapping[str, Any]) -> dict[str, int]:
        """Choose the plan that was taken last; returns its `set` and its number, counted from 1."""
        self._check_idle()
        number = integer("Set", sent.get("set"), 1, 10**15)
        self._choices.check_asked(number)
        author = checked_text("author", sent.get("author", ""), LONGEST["author"])
        best = self._asked(self._choices.state().rounds).conversation.rounds[-1].best
        if best is None:
            raise Refused("no plan was taken yet: take one, or go back to all plans", 409)
        self._choices.take(number, best, author)
        return {"set": number, "plan": best + 1}

    def reward(self) -> bytes:
        """The learned preference as JSON."""
        return self._begun().conversation.preference.to_bytes()

    def conversation_file(self) -> bytes:
        """The conversation as a file for `Conversation.load` and `manyways choose --resume`."""
        return self._begun().conversation.to_bytes()

    def store(self, planned: PlannedSet, request: RoundRequest) -> int:
        """Store the plans of a new round; returns the number of their set."""
        if not request.taken:
            return self._choices.start_rounds(planned.label, planned.archive, planned.keys, request.k, request.seed)
        return self._choices.answer(
            request.asked, request.taken[-1], request.title, planned.label, planned.archive, planned.keys
        )

    def _check_idle(self) -> None:
        if self._worker.job() is not None:
            raise Refused("the next plans are being computed: wait until they are here, or cancel", 409)

    def _begun(self) -> _Asked:
        rounds = self._choices.state().rounds
        if not rounds.questions:
            raise Refused("nobody has begun to choose by rounds", 404)
        return self._asked(rounds)

    def _archive(self, number: int) -> bytes:
        found = self._choices.archive(number)
        if found is None:
            raise no_set(number)
        return found

    def _asked(self, rounds: Rounds) -> _Asked:
        with self._lock:
            if self._last is None or self._last.rounds != rounds:
                known = {} if self._last is None else self._last.sets
                sets = {
                    question.set: known.get(question.set)
                    or PlanSet.from_bytes(self._archive(question.set), f"set {question.set}")
                    for question in rounds.questions
                }
                self._last = _Asked(rounds, sets, self._time_limit_s)
            return self._last


@dataclass(eq=False)
class _Asked:
    """The current question with all that came before it, and what its page shows, computed when first asked for."""

    rounds: Rounds
    sets: dict[int, PlanSet]
    time_limit_s: float

    @property
    def plans(self) -> PlanSet:
        return self.sets[self.rounds.questions[-1].set]

    @cached_property
    def conversation(self) -> Any:
        taken = [question.taken for question in self.rounds.questions if question.taken is not None]
        shown = list(self.sets.values())
        return conversation_of(shown, taken, self.rounds.k, self.rounds.seed, self.time_limit_s)

    @cached_property
    def view(self) -> dict[str, Any]:
        return round_view(self.conversation)


def _percent(slack: float | None) -> str:
    return f"{100 * (0.1 if slack is None else slack):.6g}"
