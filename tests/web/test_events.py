"""What people send about plans is checked."""

from __future__ import annotations

import pytest

from manyways.web.events import checked_text


def test_characters_that_change_the_direction_of_text_are_removed():
    turned = "a\u202egnp.\u2066b\u2069\u202a \u202b\u202c\u202d\u2067\u2068"
    for what in ("author", "name", "note"):
        assert checked_text(what, turned, 80, lines=what == "note") == "agnp.b"
    assert checked_text("name", "\u05d0\u05d1 \u0627", 80) == "\u05d0\u05d1 \u0627"


@pytest.mark.parametrize(
    ("change", "status", "words"),
    [
        ({"plan": "0" * 16}, 404, "there is no plan"),
        ({"plan": 7}, 400, "'plan' must be"),
        ({"kind": "show"}, 400, "'kind' must be one of star, name"),
        ({"kind": ["star"]}, 400, "'kind' must be"),
        ({"author": "a" * 41}, 400, "the author has 41 characters, at most 40"),
        ({"author": None}, 400, "the author must be text"),
        ({"value": "n" * 2001}, 400, "the note has 2,001 characters"),
        ({"value": "  "}, 400, "the note is empty"),
        ({"value": "\ud800"}, 400, "control characters"),
        ({"value": "a\0b"}, 400, "control characters"),
        ({"kind": "name", "value": "n" * 81}, 400, "the name has 81"),
        ({"kind": "star", "value": "yes"}, 400, "true or false"),
        ({"kind": "remove-note", "value": 10**30}, 404, "this plan has no note"),
    ],
)
def test_marks_are_checked(shared_client, keys, change, status, words):
    sent = {"plan": keys[0], "kind": "note", "author": "Ada", "value": "good"} | change
    answer = shared_client.post("/mark", sent)
    assert answer.status == status
    assert words in answer.json["error"]
