"""The requests of the page: what it shows, planning again, downloads."""

from __future__ import annotations

import os
import re
import sys
import time
from contextlib import closing
from typing import Any

import numpy as np
import pytest
from clients import LONG, served

import manyways as mw
from manyways.errors import OutputError
from manyways.plans.policy_files import FORMATS
from manyways.web.app import make_app
from manyways.web.events import Refused
from manyways.web.planner import PlanRequest
from manyways.web.session import Session
from manyways.web.store import Choices, choices_path


def test_the_page(client, keys):
    answer = client.get("/")
    assert answer.status == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert all(key in answer.body.decode() for key in keys)
    assert client.get("/").body == answer.body
    assert client.mark(keys[1], "name", "through the <cellar>").status == 200
    page = client.get("/").body.decode()
    assert "through the <cellar>" not in page
    assert "through the &lt;cellar&gt;" in page


def test_a_page_is_rendered_once_and_few_are_kept_in_memory(plans_path, keys, plans, monkeypatch):
    rendered: list[int] = []

    def render(shown: dict[str, Any], live: Any) -> str:
        assert shown == {"title": plans.mdp.name}
        rendered.append(live.number)
        return f"{live.number}, {live.chosen}"

    monkeypatch.setattr("manyways.web.session.view_of", lambda plans, **_: {"title": plans.mdp.name})
    monkeypatch.setattr("manyways.web.session.render", render)
    with served(plans_path) as client, closing(Choices(choices_path(plans_path))) as other:
        for _ in range(4):
            other.add_set("", plans.to_bytes(), keys)
        for number in (1, 2, 3, 4, 1, 2, 3, 4):
            assert client.get(f"/?set={number}").body.decode() == f"{number}, None"
        assert client.get("/").body == client.get("/?set=5").body == b"5, None"
        assert rendered == [1, 2, 3, 4, 5]
        assert client.get("/?set=1").status == 200  # it is rendered again
        client.mark(keys[0], "choose", True)
        assert client.get("/").body.decode() == "5, {'set': 5, 'plan': 1, 'name': ''}"
        assert rendered == [1, 2, 3, 4, 5, 1, 5]


def test_what_a_page_shows_is_computed_once_per_set(plans_path, keys, monkeypatch):
    computed: list[int] = []

    def view(plans: mw.PlanSet) -> dict[str, Any]:
        computed.append(plans.k)
        return {}

    monkeypatch.setattr("manyways.web.session.view_of", view)
    monkeypatch.setattr("manyways.web.session.render", lambda _, live: f"{live.last_event}")
    with closing(Session(plans_path, 60)) as session:
        first = session.page()
        session.mark({"plan": keys[0], "kind": "star", "value": True})
        assert session.page() != first
        assert computed == [3]


def test_the_plan_file_is_decoded_once(plans_path, monkeypatch):
    decoded: list[str] = []
    decode = mw.PlanSet.from_bytes

    def counted(content: bytes, name: str) -> mw.PlanSet:
        decoded.append(name)
        return decode(content, name)

    monkeypatch.setattr(mw.PlanSet, "from_bytes", counted)
    for _ in range(2):  # with and without a file of choices
        with closing(Session(plans_path, 60)) as session:
            session.page()
            session.policy(1, 2, ".json")
    assert decoded == [str(plans_path)] * 2


def test_a_request_names_the_plans_to_keep(plans_path, plans, keys, monkeypatch):
    with closing(Session(plans_path, 60)) as session:
        asked: list[PlanRequest] = []
        monkeypatch.setattr(session.worker, "start", lambda request: asked.append(request) or 1)
        wanted = {"k": 3.0, "tradeoff": 2, "seed": 5, "keep": [keys[2], keys[0]], "set": 1}
        assert session.plan(wanted) == 1
        assert asked == [PlanRequest(plans.to_bytes(), 3, 2.0, None, 5, (keys[0], keys[2]), 60)]
        session.plan(wanted | {"slack": 0.05})
        assert asked.pop() == PlanRequest(plans.to_bytes(), 3, 2.0, 0.05, 5, (keys[0], keys[2]), 60)
        with pytest.raises(Refused, match="tradeoff"):
            session.plan(wanted | {"tradeoff": None})
        monkeypatch.setattr(mw.PlanSet, "tradeoff", None)  # as with an objective that has none
        session.plan(wanted | {"tradeoff": None})
        assert asked[1].tradeoff is None


def test_large_plan_files_are_refused(plans_path, monkeypatch):
    monkeypatch.setattr("manyways.web.session.LARGEST_ARCHIVE", 1000)
    with pytest.raises(mw.PlanFileError, match="more than the 1,000 that are read"):
        make_app(plans_path)


def test_state_and_marks(client, keys):
    state = client.state()
    assert state.keys() == {"server", "set", "last_event", "job", "finished", "marks", "chosen", "rounds"}
    assert re.fullmatch("[0-9a-f]{16}", state["server"])
    assert client.state()["server"] == state["server"]
    assert state["chosen"] is None
    assert state["set"] == 1
    assert state["job"] is None
    assert state["finished"] is None
    assert list(state["marks"]) == keys
    assert not {"marks", "chosen"} & client.get(f"/state?since={state['last_event']}").json.keys()
    answer = client.mark(keys[0], "note", " so\r\nlong\n", author=" Ada  L. ")
    assert answer.status == 200
    assert answer.json["last_event"] == state["last_event"] + 1
    (note,) = answer.json["marks"][keys[0]]["notes"]
    assert note == {"id": answer.json["last_event"], "author": "Ada L.", "text": "so\nlong", "time": note["time"]}
    assert time.time() - time.mktime(time.strptime(note["time"], "%Y-%m-%dT%H:%M:%SZ")) + time.timezone < 3600
    assert client.get(f"/state?since={state['last_event']}").json["marks"] == answer.json["marks"]
    assert client.mark(keys[0], "remove-note", note["id"]).json["marks"][keys[0]]["notes"] == []
    assert client.mark(keys[0], "remove-note", note["id"]).status == 404
    client.mark(keys[2], "name", "left")
    chosen = client.mark(keys[2], "choose", True).json["chosen"]
    assert client.state()["chosen"] == chosen == {"set": 1, "plan": 3, "name": "left"}


def test_another_server_has_another_identifier(plans_path):
    names = set()
    for _ in range(2):
        with served(plans_path) as client:
            names.add(client.state()["server"])
    assert len(names) == 2


def test_replacing_plans_keeps_the_kept_one_with_its_marks(client, keys):
    client.mark(keys[1], "name", "the long way")
    client.mark(keys[1], "note", "quiet")
    asked = {"k": 4, "tradeoff": 8, "seed": 5, "keep": [keys[1]], "set": 1}
    started = client.post("/plan", asked)
    assert started.status == 202
    assert started.json == {"job": 1, "server": client.state()["server"]}
    ended = client.finished(started.json["job"])
    assert (ended["ok"], ended["set"]) == (True, 2)
    state = client.state()
    assert state["set"] == 2
    assert len(state["marks"]) == 4
    assert state["marks"][keys[1]]["name"] == "the long way"
    assert [note["text"] for note in state["marks"][keys[1]]["notes"]] == ["quiet"]
    assert not {keys[0], keys[2]} & set(state["marks"])
    assert client.get("/").body == client.get("/?set=2").body
    before = client.get("/?set=1").body.decode()
    assert all(key in before for key in keys)
    assert keys[0] not in client.get("/").body.decode()
    older = client.post("/plan", asked | {"k": 2, "keep": [keys[0]]})  # from a set that is not the newest
    assert older.status == 202
    assert client.finished(older.json["job"])["set"] == 3
    assert keys[0] in client.state()["marks"]
    assert client.post("/plan", asked | {"set": 9}).status == 404


def test_a_plan_that_is_there_twice_counts_twice(plans, tmp_path):
    twice = mw.plan(plans.mdp, k=3, tradeoff=8.0, keep=np.concatenate((plans.policies[:1], plans.policies[:1])))
    with served(twice.save(tmp_path / "twice.mw")) as client:
        asked = {"tradeoff": 8, "seed": 0, "keep": [plans[0].key], "set": 1}
        refused = client.post("/plan", asked | {"k": 2})
        assert refused.json == {"error": "you keep 2 plans, so ask for at least 3, or keep fewer"}
        started = client.post("/plan", asked | {"k": 4})
        assert client.finished(started.json["job"])["ok"]
        found = mw.PlanSet.from_bytes(client.get("/sets/2/plans.mw").body, "found")
        assert [plan.key for plan in found].count(plans[0].key) == 2
        assert len(found.kept) == 2


def test_the_number_of_plans_to_keep_is_limited(plans_path, plans):
    with served(plans_path) as client, closing(Choices(choices_path(plans_path))) as other:
        other.add_set("", plans.to_bytes(), ["a"] * 50)
        refused = client.post("/plan", {"k": 50, "tradeoff": 8, "keep": ["a"], "set": 2})
        assert refused.json == {"error": "you keep 50 plans, and there can be 50 at most: keep fewer"}


def test_downloads(client, plans, keys, tmp_path):
    for ending in FORMATS:
        answer = client.get(f"/sets/1/plans/2/policy{ending}")
        assert answer.status == 200
        assert answer.headers["content-disposition"] == f'attachment; filename="plans-set1-plan2{ending}"'
        (tmp_path / f"policy{ending}").write_bytes(answer.body)
        read = mw.load_policy(tmp_path / f"policy{ending}", plans.mdp)
        assert (read.probabilities == plans.policies[1]).all()
    whole = client.get("/sets/1/plans.mw")
    assert whole.headers["content-disposition"] == 'attachment; filename="plans-set1.mw"'
    assert [plan.key for plan in mw.PlanSet.from_bytes(whole.body, "")] == keys


def test_planning_is_refused_with_a_reason(client, keys):
    good = {"k": 3, "tradeoff": 8, "seed": 0, "keep": [], "set": 1}
    for change, words in (
        ({"k": 51}, "Plans must be an integer from 1 to 50"),
        ({"k": "3"}, "Plans must be"),
        ({"k": True}, "Plans must be"),
        ({"k": 2, "keep": keys[:2]}, "you keep 2 plans, so ask for at least 3, or keep fewer"),
        ({"k": 1, "keep": keys[:1]}, "you keep 1 plan, so ask for at least 2, or keep fewer"),
        ({"set": None}, "'set' must be the number of a set"),
        ({"set": True}, "'set' must be"),
        ({"tradeoff": -1}, "the worth of diversity (tradeoff) must be a finite number of at least 0"),
        ({"tradeoff": 10**400}, "(tradeoff) must be"),
        ({"tradeoff": None}, "(tradeoff) must be"),
        ({"slack": -0.1}, "the share that plans may give up must be a number of at least 0"),
        ({"slack": "5"}, "the share that plans may give up"),
        ({"slack": True}, "the share that plans may give up"),
        ({"slack": 10**400}, "the share that plans may give up"),
        ({"seed": 2**32}, "Seed must be"),
        ({"keep": "all"}, "'keep' must be a list"),
        ({"keep": ["0" * 16]}, "there is no plan '0000000000000000' in set 1"),
    ):
        answer = client.post("/plan", good | change)
        assert answer.status == 400, change
        assert words in answer.json["error"]
    assert client.post("/cancel").json == {"cancelled": False}
    assert client.post("/plan", good | LONG).status == 202
    assert client.post("/plan", good).status == 409
    assert client.state()["job"]["id"] == 1
    assert client.post("/cancel").json == {"cancelled": True}
    assert client.finished(1) == {"id": 1, "ok": False, "message": "Stopped: nothing was changed.", "set": None}
    assert client.state()["set"] == 1


def test_damaged_plans_and_foreign_choices_are_refused_at_the_start(plans_path, tmp_path):
    with pytest.raises(mw.PlanFileError, match="there is no file"):
        make_app(tmp_path / "none.mw")
    with pytest.raises(mw.PlanFileError, match="is a folder, expected a file"):
        make_app(tmp_path)
    (tmp_path / "bad.mw").write_bytes(b"bad")
    with pytest.raises(mw.PlanFileError, match="not a manyways plans file"):
        make_app(tmp_path / "bad.mw")
    choices_path(plans_path).write_bytes(b"not a database" * 1000)
    with pytest.raises(OutputError, match="move it away"):
        make_app(plans_path)
    choices_path(plans_path).unlink()
    with served(plans_path):
        pass
    mw.plan("four-rooms:1", k=2, tradeoff=1.0).save(plans_path)
    with pytest.raises(OutputError, match="another model"):
        make_app(plans_path)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems allow no such names")
def test_file_names_that_are_not_text(plans, tmp_path):
    name = os.fsdecode(b"pl\xe4ne.mw")
    with served(plans.save(tmp_path / name)) as client:
        assert client.get("/").status == 200
        with closing(Choices(choices_path(tmp_path / name))) as other:
            assert other.state().shown.label.startswith("pl\ufffdne.mw: 3 plans")
        assert client.get("/sets/1/plans.mw").headers["content-disposition"] == 'attachment; filename="pl-ne-set1.mw"'
        started = client.post("/plan", {"k": 2, "tradeoff": 1, "seed": 0, "set": 1})
        assert client.finished(started.json["job"])["ok"]
        assert client.get("/").status == 200
        choices_path(tmp_path / name).unlink()
        answer = client.mark(plans[0].key, "star", True)
        assert answer.status == 400
        assert "pl?ne.choices.sqlite was moved" in answer.json["error"]


@pytest.mark.parametrize(
    "asked",
    [
        {"like": "nobody"},
        {"behaviour": "moods"},
        {"per": "year"},
        {"banned_labels": ["nowhere"]},
        {"banned_actions": "up"},
    ],
    ids=str,
)
def test_settings_that_the_page_does_not_offer_are_refused(plans_path, asked):
    with served(plans_path) as client:
        answer = client.ask("POST", "/plan", {"k": 2, "tradeoff": 8.0, "seed": 0, "set": 1} | asked)
        assert answer.status == 400


def test_routes_of_plans_on_a_map(plans_path, plans):
    with served(plans_path) as client:
        answer = client.get("/sets/1/plans/2/route.csv")
        assert answer.status == 200
        assert answer.body == plans[1].route().to_bytes(".csv")
        assert client.get("/sets/1/plans/9/route.csv").status == 404
        assert client.get("/sets/1/plans/2/route.exe").status == 404
