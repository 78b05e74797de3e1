"""The page for choosing by rounds, from plain data: the plans to choose from, and what the choices so far say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from manyways.conversation import Conversation
from manyways.describe import measures, portraits, survey_of
from manyways.describe.wording import terms_of
from manyways.report.learned import leaning_rows, leanings, learned_picture, sentences
from manyways.report.page import rendered
from manyways.report.pictures import bars, canvas_of, map_marks, picture_of, world_of
from manyways.report.tables import texts_of
from manyways.report.view import ON_CARDS, telling

SENTENCES = 2
"""At most this many sentences about each plan."""


@dataclass(frozen=True)
class Standing:
    """Where the rounds stand.

    Attributes:
        current: the number of the set with whose model new rounds begin.
        asked: the number of the set to choose from; 0 if nobody has begun.
        answers: the titles of the plans that were taken, round by round.
        event: the newest event of the rounds.
        slack: how many percent worse than the best plan plans may be.
        model: the name of the model.
        next_model: the name of the model of new rounds.
    """

    current: int
    asked: int
    answers: tuple[str, ...]
    event: int
    slack: str
    model: str
    next_model: str


def render_rounds(view: dict[str, Any] | None, standing: Standing) -> str:
    """The HTML of the page; `view` is what `round_view` returned, or None if nobody has begun."""
    return rendered("rounds.html", ["maps.js", "requests.js", "rounds.js"], view, standing=standing)


def round_view(conversation: Conversation) -> dict[str, Any]:
    """Everything that the page shows of the current question."""
    plans, best = conversation.plans, conversation.rounds[-1].best
    survey, canvas = survey_of(plans), canvas_of(plans.mdp)
    words = portraits(survey)
    figures = [
        (measure, texts_of(measure))
        for number, measure in enumerate(measures(survey))
        if number < 2 or measure.name in ON_CARDS
    ]
    cards = [
        {
            "number": i + 1,
            "key": plans[i].key,
            "title": words[i].title,
            "sentences": telling(words, i)[:SENTENCES],
            "figures": [
                {"name": measure.name, "text": texts[i], "meaning": measure.meaning} for measure, texts in figures
            ],
            "bars": None if canvas else bars(plans, i, survey.by_state),
            "picked": i == best,
        }
        for i in range(plans.k)
    ]
    return {
        "k": plans.k,
        "guarantee": plans.guarantee,
        "best": None if best is None else best + 1,
        "drawn": canvas is not None,
        "marks": map_marks(plans.mdp),
        "cards": cards,
        "terms": terms_of(plans.mdp),
        "unit": plans.criterion.unit,
        "learned": _learned(conversation) if best is not None else None,
        "data": {
            "world": {} if canvas is None else world_of(plans.mdp, canvas),
            "plans": [] if canvas is None else [picture_of(row, canvas) for row in survey.by_state],
            "learned": None if canvas is None or best is None else learned_picture(conversation.preference, canvas),
        },
    }


def _learned(conversation: Conversation) -> dict[str, Any]:
    found = leanings(conversation)
    return {"sentences": sentences(found), "rows": leaning_rows(found)}
