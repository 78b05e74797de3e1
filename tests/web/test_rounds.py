"""Choosing by rounds: the store, the requests without HTTP, and HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from clients import LONG, served, wait_for

import manyways as mw
from manyways.web.events import Question, Refused
from manyways.web.planner import RoundRequest, _plan_round, conversation_of
from manyways.web.session import Session
from manyways.web.store import MOST_SETS, Choices, choices_path


@pytest.fixture
def choices(tmp_path) -> Iterator[Choices]:
    with closing(Choices(tmp_path / "plans.choices.sqlite")) as choices:
        choices.add_plan_file("model", b"file", ["a", "b"], "plans.mw")
        yield choices


def rounds(choices: Choices) -> list[tuple[int, int | None]]:
    return [(question.set, question.taken) for question in choices.state().rounds.questions]


# ---- the store -----------------------------------------------------------------------------------


def test_answers_are_added_and_taken_back(choices):
    assert rounds(choices) == []
    assert choices.start_rounds("round 1", b"1", ["c", "d"], 2, 5) == 2
    assert choices.answer(2, 1, "By the sea", "round 2", b"2", ["d", "e"]) == 3
    assert choices.answer(3, 0, "Again", "round 3", b"3", ["d", "f"]) == 4
    assert rounds(choices) == [(2, 1), (3, 0), (4, None)]
    state = choices.state()
    assert (state.rounds.k, state.rounds.seed, state.rounds.event) == (2, 5, state.last_event)
    assert state.rounds.questions[0] == Question(2, 1, "By the sea")
    assert (state.current, state.shown.number) == (1, 1), "the page goes on showing its set"

    choices.take_back(4)
    assert rounds(choices) == [(2, 1), (3, None)]
    assert choices.answer(3, 1, "Other", "round 3", b"4", ["e", "g"]) == 5
    assert rounds(choices) == [(2, 1), (3, 1), (5, None)]
    with closing(Choices(choices.path)) as again:
        assert again.state() == choices.state()
    choices.start_rounds("round 1", b"5", ["h", "i"], 2, 0)
    assert rounds(choices) == [(6, None)]


def test_only_the_current_question_can_be_answered(choices):
    with pytest.raises(Refused, match="no longer the plans of the current round") as refused:
        choices.take_back(1)
    assert refused.value.status == 409
    choices.start_rounds("round 1", b"1", ["c", "d"], 2, 0)
    with pytest.raises(Refused, match="no answer to take back"):
        choices.take_back(2)
    choices.answer(2, 0, "", "round 2", b"2", ["c", "e"])
    for work in (
        lambda: choices.answer(2, 0, "", "round 2", b"3", ["c", "f"]),
        lambda: choices.take_back(2),
        lambda: choices.check_asked(2),
    ):
        with pytest.raises(Refused, match="reload the page"):
            work()
    assert rounds(choices) == [(2, 0), (3, None)]
    assert [stored.number for stored in choices.state().sets] == [1, 2, 3], "the refused set was not stored"


def test_a_plan_that_is_taken_is_chosen_and_shown(choices):
    choices.start_rounds("round 1", b"1", ["c", "d"], 2, 0)
    choices.take(2, 1, "Ada")
    state = choices.state()
    assert (state.current, state.chosen) == (2, {"set": 2, "plan": 2, "name": ""})
    assert state.marks["d"]["chosen"]


def test_the_sets_of_the_rounds_are_never_dropped(choices):
    choices.start_rounds("round 1", b"r", ["c", "d"], 2, 0)
    choices.answer(2, 0, "", "round 2", b"s", ["c", "e"])
    for i in range(MOST_SETS + 5):
        choices.add_set("", b"%d" % i, [f"k{i}"])
    numbers = [stored.number for stored in choices.state().sets]
    assert {1, 2, 3} <= set(numbers)
    assert 4 not in numbers
    assert choices.archive(3) == b"s"


# ---- planning ------------------------------------------------------------------------------------


def asked_for(archives: tuple[bytes, ...], taken: tuple[int, ...], **settings: Any) -> RoundRequest:
    return RoundRequest(archives, taken, "", 1, **({"k": 3, "slack": 0.1, "seed": 4, "time_limit_s": 60} | settings))


def test_rounds_are_those_of_a_conversation(plans):
    talk = mw.Conversation(plans.mdp, 3, slack=0.1, seed=4)
    first = _plan_round(asked_for((plans.to_bytes(),), ()), lambda _: None)
    assert first.keys == tuple(plan.key for plan in talk.plans)
    assert first.label == "round 1: 3 plans, within 10 %, seed 4"
    assert first.request == asked_for((), ())

    talk.choose(1)
    second = _plan_round(asked_for((first.archive,), (1,)), lambda _: None)
    assert second.keys == tuple(plan.key for plan in talk.plans)
    talk.choose(2)
    third = _plan_round(asked_for((first.archive, second.archive), (1, 2)), lambda _: None)
    assert third.keys == tuple(plan.key for plan in talk.plans)
    sets = [mw.PlanSet.from_bytes(one.archive, "") for one in (first, second, third)]
    again = conversation_of(sets, [1, 2], 3, 4, 60)
    np.testing.assert_array_equal(again.preference.mean, talk.preference.mean)
    assert [(one.best, one.better, one.over) for one in again.rounds] == [
        (one.best, one.better, one.over) for one in talk.rounds
    ]


def test_rounds_have_the_criterion_and_the_limits_of_the_set(plans):
    for settings in ({"criterion": mw.Discounted(0.95)}, {"behaviour": mw.States(), "longer": 0.5}):
        old = mw.plan(plans.mdp, 2, 8.0, **settings)
        planned = _plan_round(asked_for((old.to_bytes(),), (), k=2, slack=0.05), lambda _: None)
        new = mw.PlanSet.from_bytes(planned.archive, "")
        assert (new.criterion, new.behaviour) == (old.criterion, old.behaviour)
        assert (new.limits.slack, new.limits.longer) == (0.05, settings.get("longer"))


# ---- the requests, without HTTP ------------------------------------------------------------------


@pytest.fixture
def session(plans_path) -> Iterator[Session]:
    session = Session(plans_path, 60.0)
    yield session
    session.close()


def finished(session: Session, job: int) -> dict[str, Any]:
    wait_for(lambda: (session.worker.finished or {}).get("id") == job)
    assert session.worker.finished is not None
    return session.worker.finished


START = {"set": 1, "k": 3, "slack": 0.2, "seed": 0}


def test_three_rounds_back_stop_and_a_restart(session, plans_path: Path):
    desk = session.rounds
    assert "Start" in desk.page().decode()
    for work in (desk.reward, desk.conversation_file):
        with pytest.raises(Refused, match="nobody has begun"):
            work()
    assert finished(session, desk.start(START))["ok"]
    assert b"Round 1." in desk.page()
    with pytest.raises(Refused, match="no plan was taken yet"):
        desk.stop({"set": 2})
    assert session.state(None)["set"] == 1
    for number, taken in ((2, 1), (3, 0), (4, 2)):
        event = session.state(None)["rounds"]
        assert finished(session, desk.answer({"set": number, "plan": taken}))["set"] == number + 1
        assert session.state(None)["rounds"] > event
    page = desk.page().decode()
    assert "Round 4." in page
    assert page.count("your pick so far") == 1

    desk.back({"set": 5})
    assert "Round 3." in desk.page().decode()
    assert finished(session, desk.answer({"set": 4, "plan": 1}))["set"] == 6
    talk = mw.Conversation(session.plans(1).mdp, 3, slack=0.2)
    for taken in (1, 0, 1):
        talk.choose(taken)
    assert json.loads(desk.reward()) == json.loads(talk.preference.to_bytes())
    saved = mw.Conversation.from_bytes(desk.conversation_file(), "rounds.mwc")
    assert saved.best.key == talk.best.key
    before = desk.page()
    session.close()

    again = Session(plans_path, 60.0)
    try:
        assert again.rounds.page() == before
        best = talk.rounds[-1].best
        assert again.rounds.stop({"set": 6, "author": "Ada"}) == {"set": 6, "plan": best + 1}
        assert again.choices.state().chosen == {"set": 6, "plan": best + 1, "name": ""}
        assert again.state(None)["set"] == 6
        assert talk.best.key in again.page().decode()
        # They can go on afterwards.
        assert finished(again, again.rounds.answer({"set": 6, "plan": 0}))["ok"]
        assert again.reward_file()[1] == "plans-learned.json"
        assert again.conversation_file()[1] == "plans.mwc"
    finally:
        again.close()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"k": 1}, "Plans must be an integer from 2 to 12"),
        ({"k": True}, "Plans must be an integer"),
        ({"seed": -1}, "Seed must be an integer"),
        ({"slack": "much"}, "the share that plans may give up"),
        ({"set": 9}, "there is no set 9"),
        ({"set": "1"}, "Set must be an integer"),
    ],
    ids=str,
)
def test_wrong_starts_are_refused(session, change, message):
    with pytest.raises(Refused, match=message):
        session.rounds.start(START | change)
    assert session.worker.job() is None


# ---- HTTP ----------------------------------------------------------------------------------------


def test_requests_and_downloads(plans_path):
    with served(plans_path) as client:
        assert client.get("/rounds").status == 200
        assert b'data-current="1"' in client.get("/rounds?set=1").body, "rounds begin with the set that was looked at"
        assert client.get("/rounds?set=7").status == 404
        assert client.get("/rounds/learned.json").status == 404
        begun = client.post("/rounds/start", START)
        assert begun.status == 202
        assert client.finished(begun.json["job"])["ok"]
        refused = client.post("/rounds/answer", {"set": 2, "plan": 3})
        assert (refused.status, refused.json["error"]) == (400, "Plan must be an integer from 0 to 2")
        assert client.finished(client.post("/rounds/answer", {"set": 2, "plan": 0}).json["job"])["set"] == 3
        late = client.post("/rounds/answer", {"set": 2, "plan": 1})
        assert (late.status, "reload" in late.json["error"]) == (409, True)
        answer = client.get("/rounds/learned.json")
        assert answer.headers["content-type"] == "application/json"
        assert answer.headers["content-disposition"] == 'attachment; filename="plans-learned.json"'
        assert len(answer.json["choices"]) == mw.load(plans_path).mdp.n_choices
        assert client.get("/rounds/rounds.mwc").headers["content-disposition"] == 'attachment; filename="plans.mwc"'

        # While plans are computed, nothing else of the rounds changes.
        job = client.post("/plan", LONG | {"set": 1, "keep": []}).json["job"]
        for path in ("/rounds/back", "/rounds/stop", "/rounds/answer"):
            assert client.post(path, {"set": 3, "plan": 0}).status == 409
        client.post("/cancel")
        assert client.finished(job)["ok"] is False
        assert client.post("/rounds/back", {"set": 3}).status == 200
        assert client.get("/rounds").body.count(b"Round 1.") == 1


def test_a_round_that_is_cancelled_leaves_the_question_without_an_answer(plans_path):
    with served(plans_path) as client:
        client.finished(client.post("/rounds/start", START).json["job"])
        job = client.post("/rounds/start", START | {"k": 12}).json["job"]
        client.post("/cancel")
        ended = client.finished(job)
        assert ended["ok"] or ended["message"] == "Stopped: nothing was changed."
        with closing(Choices(choices_path(plans_path))) as choices:
            assert len(choices.state().rounds.questions) == 1
