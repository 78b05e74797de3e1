"""The team study: its trials, rules, files, page and command."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing as closing_file

import numpy as np
import pytest
from small_studies import timeless
from typer.testing import CliRunner

import manyways as mw
from manyways.cli.program import app
from manyways.errors import SettingError
from manyways.studies import engine
from manyways.studies.results import Results
from manyways.studies.store import FILE
from manyways.studies.study_worlds import closing, possible_closures, study_world
from manyways.studies.team_claims import team_claims
from manyways.studies.team_measures import BEST_VALUE, MEASURES, REACHES, measures_of
from manyways.studies.team_trials import CLOSURES, CONGESTION, COPIES, NO_SLACK, TEAM_SETS, team_row
from manyways.studies.teams import STUDIES, TeamSettings, team_study
from manyways.studies.trial import Trial, perform
from manyways.surviving import survival

TINY = {"worlds": ("rooms-9:0", "rooms-9:1"), "k": (2,), "slack": (0.3,), "workers": 1}
SETTINGS = TeamSettings(worlds=TINY["worlds"], sizes=TINY["k"], slacks=TINY["slack"])
OPTIONS = ["--world", "rooms-9:0", "--world", "rooms-9:1", "--k", "2", "--slack", "0.3", "--workers", "1"]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """The folder and the results of the study on two tiny worlds."""
    folder = tmp_path_factory.mktemp("teams")
    return folder, team_study(out=folder, **TINY)["teams"]


def test_the_study_writes_its_files_and_the_page(tiny):
    folder, found = tiny
    assert not found.failed, found.failed[0]["error"]
    assert len(found.rows) == 2 * len(TEAM_SETS)
    for name in ("teams-measures", "teams-size", "teams-price"):
        assert (folder / f"{name}.svg").exists()
    page = (folder / "teams.html").read_text()
    assert page.count("data:image/png;base64,") == 3
    assert all(name.replace("'", "&#39;") in page for name in TEAM_SETS)
    assert all(verdict.holds is None for verdict in found.verdicts), "two worlds are too few"


def test_a_row_by_the_functions_that_users_have(tiny):
    (row,) = [row for row in tiny[1].rows if row["set"] == CLOSURES and row["source"] == "rooms-9:0"]
    prior = mw.Representative(mw.Preferences.closures())
    plans = mw.plan("rooms-9:0", 2, slack=0.3, objective=prior, criterion=mw.Average())
    best = mw.plan("rooms-9:0", 1, 0.0)
    steps = survival(best, closed=()).open.steps[0]
    assert row["deadline"] == round(2 * steps)
    team, found = mw.team(plans, deadline=row["deadline"]), survival(plans)
    assert row["reaches"] == pytest.approx(team.reaches.mean())
    assert row["reaches_worst"] == pytest.approx(team.reaches.min())
    assert row["best_value"] == pytest.approx(found.closed.values.max(axis=0).sum() / found.replanned.values.sum())
    assert row["reward"] == pytest.approx(plans.rewards.mean() / best.rewards[0])
    assert row["delayed"] == pytest.approx(team.delayed / best.rewards[0])
    assert (row["seen"], row["meetings"]) == pytest.approx((team.seen, team.meetings))


def test_copies_are_agents_with_one_plan(tiny):
    (row,) = [row for row in tiny[1].rows if row["set"] == COPIES and row["source"] == "rooms-9:1"]
    same = mw.team(mw.plan("rooms-9:1", 1, 0.0), [0, 0], deadline=row["deadline"])
    assert (row["reaches"], row["seen"]) == pytest.approx((same.reaches.mean(), same.seen))
    assert row["meetings"] == pytest.approx(same.meetings)
    assert row["reward"] == pytest.approx(1.0)


def test_an_interrupted_study_is_resumed(tiny, tmp_path, monkeypatch):
    lost = next(trial for trial in STUDIES["teams"].trials(SETTINGS) if trial.settings["set"] == CONGESTION)
    shutil.copy(tiny[0] / FILE, tmp_path)
    with closing_file(sqlite3.connect(tmp_path / FILE)) as file, file:
        assert file.execute("DELETE FROM rows WHERE key = ?", (lost.key,)).rowcount == 1
    performed: list[Trial] = []
    monkeypatch.setattr(engine, "perform", lambda trial, **given: performed.append(trial) or perform(trial, **given))
    again = team_study(out=tmp_path, **TINY)["teams"]
    assert performed == [lost]
    assert timeless(again.rows) == timeless(tiny[1].rows)


def test_a_world_that_is_not_complete_does_not_count(tiny):
    rows = [dict(row) for row in tiny[1].rows]
    rows[-1] = {name: rows[-1][name] for name in ("source", "set", "k", "slack", "seed")} | {"error": "MemoryError: "}
    measures = measures_of(Results("teams", rows))
    assert measures is not None
    assert measures.worlds == ["rooms-9:0"]
    assert measures_of(Results("teams", [rows[-1]])) is None


def test_the_command_prints_what_the_study_finds(tiny):
    folder, found = tiny
    answer = CliRunner().invoke(app, ["study", "teams", *OPTIONS, "--out", str(folder), "--json"])
    assert answer.exit_code == 0, answer.output
    told = json.loads(answer.stdout)
    assert told["rows"] == {"teams": 2 * len(TEAM_SETS)}
    assert told["page"] == str(folder / "teams.html")
    assert told["claims"] == [vars(verdict) | {"study": "teams"} for verdict in found.verdicts]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["teams", "--rounds", "2"], "--rounds is for the study preferences"),
        (["preferences", "--slack", "0.1"], "--slack is for the study teams"),
        (["teams", "--slack", "-1"], "slack must be"),
        (["teams", "--k", "1"], "k must be an integer"),
    ],
)
def test_bad_settings(arguments, message, tmp_path):
    answer = CliRunner().invoke(app, ["study", *arguments, "--out", str(tmp_path / "none")])
    assert isinstance(answer.exception, SettingError)
    assert message in str(answer.exception)
    assert not (tmp_path / "none").exists()


def test_the_usual_trials():
    usual = TeamSettings(seed=800)
    limited = len(TEAM_SETS) - len(NO_SLACK)
    assert len(STUDIES["teams"].trials(usual)) == 20 * 4 * (2 * limited + len(NO_SLACK))
    with pytest.raises(SettingError, match="at least one slack"):
        TeamSettings(slacks=())


def test_what_may_be_closed():
    network = study_world("network:900")
    booths = closing(network)["states"]
    tolls = {network.state_name(int(s)) for s in np.flatnonzero(network.labels["toll"])}
    assert set(booths) <= tolls
    passable = possible_closures(network)
    assert 0 < len(passable) < len(booths), "behind one of them there is no other way"
    assert np.isfinite(survival(mw.plan(network, 1, 0.0), passable[:3]).replanned.steps).all()
    rooms = study_world("rooms-9:0")
    assert closing(rooms) == {}
    assert [closure.name for closure in possible_closures(rooms)] == [closure.name for closure in mw.closures(rooms)]


def made_up(numbers: dict[tuple[str, str], float], worlds: int = 6) -> Results:
    """Rows in which every set is alike but for the numbers given by set and measure, and a little by world."""
    rows = [
        {"source": f"a:{world}", "set": name, "k": k, "slack": None if name in NO_SLACK else 0.1, "error": None}
        | {measure: numbers.get((name, measure), 0.5) + 0.001 * world for measure in MEASURES}
        for world in range(worlds)
        for k in (2, 4)
        for name in TEAM_SETS
    ]
    return Results("teams", rows)


def test_rules_on_made_up_rows():
    def judged(found: Results, claim: str) -> list[bool | None]:
        return [verdict.holds for verdict in team_claims(found) if claim in verdict.claim]

    better = made_up({(CLOSURES, BEST_VALUE): 0.6, ("near", REACHES): 0.56, ("mean divergence", REACHES): 0.53})
    assert judged(better, "highest value under one closure") == [True, True]
    assert judged(better, "With near") == [True]
    assert judged(better, "With mean divergence") == [False], "more, but not clearly more"
    assert judged(better, "highest reward if a meeting") == [False], "all are alike"
    assert judged(better, "see most") == [False]
    assert judged(better, "2 agents with near") == [True]
    assert judged(better, "Whatever is closed") == [True]
    costly = made_up({("near", "delayed"): 0.4})
    assert judged(costly, "near (within 10 %) costs a team more") == [True]
    assert judged(costly, "representative (within 10 %) costs a team more") == [False]
    assert set(judged(made_up({}, worlds=4), "")) == {None}


def test_the_same_row_twice():
    settings = {"source": "rooms-9:0", "set": "random plans", "k": 2, "slack": 0.1, "seed": 0}
    assert timeless([team_row(settings)]) == timeless([team_row(settings)])
