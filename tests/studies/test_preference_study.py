"""The preference study: its trials, files, page and command."""

from __future__ import annotations

import json

import numpy as np
import pytest
from small_studies import timeless
from typer.testing import CliRunner

import manyways as mw
from manyways.cli.program import app
from manyways.errors import SettingError
from manyways.studies import engine
from manyways.studies.contestants import CONTESTANTS
from manyways.studies.persons import SLACK, persons_of, world_of
from manyways.studies.preferences import STUDIES, PreferenceSettings, preference_study
from manyways.studies.trial import Trial, perform

TINY = {"worlds": ("rooms-9:0",), "k": (2,), "persons": 1, "rounds": 2, "workers": 1}
OPTIONS = ["--world", "rooms-9:0", "--k", "2", "--persons", "1", "--rounds", "2", "--workers", "1"]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """The folder and the results of the study on one tiny world."""
    folder = tmp_path_factory.mktemp("tiny")
    return folder, preference_study(out=folder, **TINY)


def test_the_study_writes_its_files_and_the_page(tiny):
    folder, found = tiny
    assert not found["sets"].failed, found["sets"].failed[0]["error"]
    assert not found["rounds"].failed, found["rounds"].failed[0]["error"]
    assert len(found["sets"].rows) == 1 + len(CONTESTANTS)
    assert len(found["rounds"].rows) == 2
    for name in ("sets-smooth", "sets-families", "sets-size", "rounds"):
        assert (folder / f"{name}.svg").exists()
    page = (folder / "preferences.html").read_text()
    assert page.count("data:image/png;base64,") == 4
    assert all(name.replace("'", "&#39;") in page for name in CONTESTANTS)
    assert "cannot be told at this number of trials" in page
    lines = (folder / "sets.csv").read_text().splitlines()
    assert lines[0].startswith('"person"')
    persons = len(found["sets"].rows[0]["family"])
    assert len(lines) == 1 + persons * (1 + len(CONTESTANTS))


def test_a_row_holds_the_gains_of_the_same_persons(tiny):
    rows = tiny[1]["sets"].rows
    world = world_of("rooms-9:0")
    people = persons_of(world, 1, rows[0]["families"].split())
    plans = mw.plan(world.mdp, 2, slack=SLACK, objective=mw.Representative(), criterion=mw.Average())
    (row,) = [row for row in rows if row.get("contestant") == "representative"]
    best = [max(x @ reward for x in plans.occupancies) for reward in people.rewards]
    known = mw.plan(world.mdp, 1, 0.0).occupancies[0]
    assert row["gain"] == pytest.approx(np.array(best) - people.rewards @ known)
    for reward, possible in zip(people.rewards, rows[0]["possible"], strict=True):
        optimum = mw.plan(world.mdp.with_reward(reward), 1, 0.0).optimal_reward
        assert possible == pytest.approx(optimum - reward @ known)


def test_rounds_follow_a_conversation(tiny):
    (row,) = [row for row in tiny[1]["rounds"].rows if row["chooser"] == "exact"]
    world = world_of("rooms-9:0")
    people = persons_of(world, 1, row["families"].split())
    for person in (0, 5, len(people.rewards) - 1):
        talk = mw.Conversation(world.mdp, 6, slack=SLACK, criterion=mw.Average())
        for number in (1, 2):
            worths = talk.plans.occupancies @ people.rewards[person]
            assert row[f"round_{number}"][person] == pytest.approx(worths.max() - people.base()[person])
            talk.choose(int(worths.argmax()))


def test_an_interrupted_study_is_resumed(tiny, tmp_path, monkeypatch):
    def failing(trial: Trial, **given: object) -> dict:
        failed = trial.settings.get("contestant") == "near"
        return {**trial.settings, "error": "MemoryError: "} if failed else perform(trial, **given)

    with monkeypatch.context() as patch:
        patch.setattr(engine, "perform", failing)
        first = preference_study(out=tmp_path, **TINY)
    assert [row["contestant"] for row in first["sets"].failed] == ["near"]
    assert first["sets"].verdicts == (), "no world is complete"
    assert "1 of 18 trials failed" in (tmp_path / "preferences.html").read_text()
    performed: list[Trial] = []
    monkeypatch.setattr(engine, "perform", lambda trial, **given: performed.append(trial) or perform(trial, **given))
    second = preference_study(out=tmp_path, **TINY)
    assert [trial.settings["contestant"] for trial in performed] == ["near"]
    for name in ("sets", "rounds"):
        assert timeless(second[name].rows) == timeless(tiny[1][name].rows)


def test_other_settings_need_another_folder(tiny):
    with pytest.raises(mw.OutputError, match=r"other settings .*persons: 1 there, 2 here"):
        preference_study(out=tiny[0], **TINY | {"persons": 2})


def test_the_command_end_to_end(tiny, tmp_path):
    answer = CliRunner().invoke(app, ["study", "preferences", *OPTIONS, "--out", str(tmp_path), "--json"])
    assert answer.exit_code == 0, answer.output
    found = json.loads(answer.stdout)
    assert found["rows"] == {"sets": 18, "rounds": 2}
    assert found["failed"] == {}
    assert found["page"] == str(tmp_path / "preferences.html")
    claims = [vars(verdict) | {"study": name} for name, results in tiny[1].items() for verdict in results.verdicts]
    assert found["claims"] == claims
    printed = CliRunner().invoke(app, ["study", "preferences", *OPTIONS, "--out", str(tmp_path)])
    assert printed.exit_code == 0
    lines = printed.stdout.splitlines()
    assert len(lines) == len(claims) + 1
    assert lines[0].startswith("cannot be told  sets, representative: For smooth preferences, 2 representative plans")
    assert lines[-1] == f"Look at {tmp_path / 'preferences.html'}."


def test_the_usual_worlds_and_sizes():
    usual = PreferenceSettings(seed=500)
    assert len(usual.sources()) == 4 * 5
    assert {source.split(":")[1] for source in usual.sources()} == {"500", "501", "502", "503", "504"}
    assert PreferenceSettings(worlds=("field", "gym:Taxi-v3"), trials=1).sources() == ["field:0", "gym:Taxi-v3"]
    assert len(STUDIES["sets"].trials(usual)) == 20 * (1 + 4 * len(CONTESTANTS))
    assert len(STUDIES["rounds"].trials(usual)) == 20 * 2


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"k": [1]}, "k must be an integer"),
        ({"k": []}, "at least one k"),
        ({"persons": 0}, "persons must be an integer"),
        ({"trials": 0}, "trials must be an integer"),
    ],
)
def test_bad_settings(settings, message, tmp_path):
    with pytest.raises(SettingError, match=message):
        preference_study(out=tmp_path, **settings)
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_study():
    answer = CliRunner().invoke(app, ["study", "planets"])
    assert isinstance(answer.exception, SettingError)
    assert "no study 'planets'; choose preferences or teams" in str(answer.exception)
