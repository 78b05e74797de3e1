"""The paper's studies: their trials, files, verdicts and page."""

import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

import manyways as mw
from manyways.cli.program import app
from manyways.errors import SettingError
from manyways.studies import engine
from manyways.studies.experiments import PAPER, STUDIES
from manyways.studies.figures import styles_of
from manyways.studies.page import write_page
from manyways.studies.study import Settings, StudyResults
from manyways.studies.trial import Trial, perform


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"study": "everything"}, "no study 'everything'; choose from worlds, methods"),
        ({"study": "all", "values": [1.0]}, "has no axis"),
        ({"study": "tradeoff", "methods": ["guess"]}, "no method 'guess'"),
        ({"study": "tradeoff", "trials": 0}, "trials must be an integer"),
    ],
)
def test_bad_settings_of_a_study(settings, message, tmp_path):
    with pytest.raises(SettingError, match=message):
        mw.paper(**settings, out=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_studies_are_the_papers():
    usual = Settings()
    assert len(STUDIES["methods"].trials(usual)) == 3 * 10
    assert len(STUDIES["methods"].trials(Settings(slow=True))) == 4 * 10
    tradeoffs = {trial.settings["tradeoff"] for trial in STUDIES["tradeoff"].trials(usual)}
    assert len(tradeoffs) >= 8
    assert (min(tradeoffs), max(tradeoffs)) == (0.0, 16.0)
    assert {trial.settings["k"] for trial in STUDIES["tradeoff"].trials(usual)} == {6}
    assert {trial.settings["k"] for trial in STUDIES["set-size"].trials(usual)} == set(range(2, 9))
    transitions = STUDIES["transition"].trials(usual)
    assert len({trial.settings["source"].split("?")[0] for trial in transitions}) == 20


def test_every_study_writes_its_files_and_the_page(tmp_path):
    """Each study with one trial and few values; the full studies take minutes."""
    for name, study in STUDIES.items():
        values = None if study.values is None else [study.values[0], study.values[-1]]
        if name.endswith("maps"):
            values = [2]
        found = mw.paper(name, out=tmp_path, trials=1, values=values, workers=1)[name]
        assert not found.failed, found.failed[0]["error"]
        pictures = list(tmp_path.glob(f"{name}*.svg"))
        assert pictures
        assert (tmp_path / f"{name}.csv").exists()
    page = (tmp_path / "paper.html").read_text()
    assert "data:image/png;base64," in page
    assert "Both theorems, measured" in page


def test_an_error_on_the_page_is_shown_as_text(tmp_path):
    row = {"method": "m", "error": "Bad: <script>alert(1)</script>"}
    page = write_page(tmp_path, PAPER, Settings(), {"worlds": StudyResults("worlds", [row])}, []).read_text()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "1 of 1 trials failed" in page


def test_claims_are_judged_once_for_the_page_and_the_command(tmp_path, monkeypatch):
    judged: list[str] = []
    study = STUDIES["tradeoff"]

    def claims(found):
        judged.append(found.study)
        return study.claims(found)

    monkeypatch.setitem(STUDIES, "tradeoff", replace(study, claims=claims))
    options = ["--trials", "1", "--values", "0:8:4", "--workers", "1", "--out", str(tmp_path)]
    answer = CliRunner().invoke(app, ["paper", "tradeoff", *options, "--json"])
    assert answer.exit_code == 0, answer.output
    assert judged == ["tradeoff"]
    found = mw.paper("tradeoff", out=tmp_path, trials=1, values=[0.0, 4.0, 8.0])["tradeoff"]
    assert [vars(verdict) | {"study": "tradeoff"} for verdict in found.verdicts] == json.loads(answer.stdout)["claims"]
    assert len(found.frame()) == len(found.rows) == 6
    page = (tmp_path / "paper.html").read_text()
    assert all(verdict.here in page for verdict in found.verdicts)


def test_a_study_with_failed_trials_is_unfinished(tmp_path, monkeypatch):
    def failing(trial: Trial, **given: object) -> dict:
        failed = trial.settings["tradeoff"] == 2.0
        return {**trial.settings, "error": "MemoryError: "} if failed else perform(trial, **given)

    def page() -> str:
        return (tmp_path / "paper.html").read_text()

    settings = {"out": tmp_path, "trials": 1, "workers": 1}
    with monkeypatch.context() as patch:
        patch.setattr(engine, "perform", failing)
        found = mw.paper("tradeoff", values=[2.0, 8.0], **settings)["tradeoff"]
    assert (len(found.rows), len(found.failed)) == (4, 2)
    assert "2 of 4 trials failed" in page()
    mw.paper("worlds", **settings)
    assert "The study tradeoff is not shown because it is not finished: 2 of 4 trials are done." in page()
    assert not mw.paper("tradeoff", values=[2.0, 8.0], **settings)["tradeoff"].failed
    mw.paper("worlds", **settings)
    assert "not finished" not in page()
    assert "The role of the tradeoff" in page()


def test_a_method_of_another_package_has_a_style_of_its_own():
    styles = styles_of(["frank-wolfe", "mine", "vertex-ascent", "yours"])
    assert len(set(styles.values())) == 4
