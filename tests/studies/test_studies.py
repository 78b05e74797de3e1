"""Studies: the same rows wherever and however often they run, and claims that can fail as well as hold."""

import csv
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import manyways as mw
from manyways.errors import OutputError, SettingError
from manyways.formats.text_maps import world_from_rows
from manyways.studies import claims
from manyways.studies.engine import run_trials
from manyways.studies.experiments import STUDIES, Settings
from manyways.studies.results import Results
from manyways.studies.routes import routes
from manyways.studies.store import FILE, Store
from manyways.studies.sweeps import _knee
from manyways.studies.trial import TIMING, Trial, perform
from shared import DATA

COMMAND = [sys.executable, "-m", "manyways"]
QUICK = {"trials": 2, "values": (2.0, 8.0)}
QUICK_OPTIONS = ["--trials", "2", "--values", "2,8"]


def timeless(rows: list[dict]) -> list[dict]:
    return [{name: value for name, value in row.items() if name != TIMING} for row in rows]


def small_trials(count: int = 4) -> list[Trial]:
    return [
        Trial("plan", {"source": "four-rooms:0", "k": 2, "tradeoff": 8.0, "seed": seed, "method": "frank-wolfe"})
        for seed in range(count)
    ]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> list[dict]:
    """The rows of the quick tradeoff study, computed by one process in one go."""
    return mw.paper("tradeoff", out=tmp_path_factory.mktemp("undisturbed"), workers=1, **QUICK)["tradeoff"].rows


# ---- trials -----------------------------------------------------------------------------------


def test_a_row_holds_what_plan_finds():
    (trial,) = small_trials(1)
    plans = mw.plan("four-rooms:0", 2, 8.0, seed=0, method=mw.FrankWolfe())
    row = perform(trial)
    assert row["error"] is None
    assert row["objective"] == plans.objective
    assert row["reward"] == pytest.approx(plans.rewards.mean(), rel=1e-15)
    assert row["diversity"] == plans.diversity
    assert row["verified"]
    assert row["distinct_routes"] <= row["plans_at_goal"] <= 2


def test_a_trial_that_fails_is_a_row_with_its_error():
    trial = Trial("plan", {"source": "no-such-world", "k": 2, "tradeoff": 1.0, "seed": 0, "method": "frank-wolfe"})
    with Store(None) as store:
        good, bad = run_trials("s", [*small_trials(1), trial], store, workers=1)
    assert good["error"] is None
    assert bad["error"].startswith("SourceError: there is no file 'no-such-world'")
    assert bad["source"] == "no-such-world"


def test_a_trial_is_known_by_its_settings():
    keys = {trial.key for trial in small_trials(4)}
    assert len(keys) == 4
    settings = dict(reversed(list(small_trials(1)[0].settings.items())))
    assert Trial("plan", settings).key == small_trials(1)[0].key
    assert Trial("theory", settings).key not in keys


# ---- the same rows, wherever they ran ---------------------------------------------------------


def test_two_workers_find_the_same_rows(undisturbed, tmp_path):
    assert timeless(mw.paper("tradeoff", out=tmp_path, workers=2, **QUICK)["tradeoff"].rows) == timeless(undisturbed)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A real scheduler and two real workers, each a process of its own on this machine."""
    folder = tmp_path_factory.mktemp("dask")
    address_file = folder / "scheduler.json"
    quiet = {"cwd": folder, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    local = ["--host", "127.0.0.1", "--no-dashboard"]
    scheduler = [sys.executable, "-m", "distributed.cli.dask_scheduler", *local, "--port", "0"]
    worker = [sys.executable, "-m", "distributed.cli.dask_worker", "--scheduler-file", str(address_file)]
    started = [subprocess.Popen([*scheduler, "--scheduler-file", str(address_file)], **quiet)]
    try:
        _wait_for(address_file.exists)
        started += [subprocess.Popen([*worker, *local, "--nthreads", "1", "--no-nanny"], **quiet) for _ in range(2)]
        _wait_for(lambda: address_file.read_text().strip().endswith("}"))
        yield json.loads(address_file.read_text())["address"]
    finally:
        for program in started:
            program.kill()
            program.wait(timeout=30)


def _wait_for(condition, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.05)


def test_a_cluster_finds_the_same_rows(undisturbed, cluster, tmp_path):
    found = mw.paper("tradeoff", out=tmp_path, cluster=cluster, **QUICK)["tradeoff"]
    assert timeless(found.rows) == timeless(undisturbed)


def test_a_sweep_sends_its_model_to_the_cluster(cluster):
    mdp = mw.four_rooms(1)
    options = {"tradeoff": [0.0, 8.0], "k": [2], "seeds": 1}
    here, there = mw.sweep(mdp, workers=1, **options), mw.sweep(mdp, cluster=cluster, **options)
    assert timeless(here.rows) == timeless(there.rows)
    assert not here.failed


def test_a_scheduler_that_is_not_there(tmp_path):
    with pytest.raises(SettingError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:9 .* start one"):
        mw.paper("tradeoff", out=tmp_path, cluster="tcp://127.0.0.1:9", **QUICK)


# ---- stopped and taken up again ---------------------------------------------------------------


def kept_rows(folder: Path) -> dict[str, str]:
    """What a killed run left, read from a copy so that nothing is repaired in place."""
    if not (folder / FILE).exists():
        return {}
    for name in (FILE, f"{FILE}-journal"):
        if (folder / name).exists():
            (folder / f"copy-{name}").write_bytes((folder / name).read_bytes())
    try:
        with sqlite3.connect(folder / f"copy-{FILE}") as file:
            return dict(file.execute("SELECT key, row FROM rows").fetchall())
    except sqlite3.OperationalError:  # killed before there were tables
        return {}
    finally:
        for path in folder.glob("copy-*"):
            path.unlink()


def test_killed_three_times_and_taken_up_again(undisturbed, tmp_path):
    command = [*COMMAND, "paper", "tradeoff", *QUICK_OPTIONS, "--workers", "1", "--out", str(tmp_path)]
    rng = random.Random(os.urandom(4))
    before: dict[str, str] = {}
    for number in range(3):
        program = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while len(kept_rows(tmp_path)) <= len(before) and program.poll() is None:
            time.sleep(0.02)
        time.sleep(rng.uniform(0.0, 0.3))
        program.send_signal(signal.SIGKILL)
        program.wait(timeout=30)
        now = kept_rows(tmp_path)
        assert before.items() <= now.items(), f"kill {number} lost a row, or had one computed again"
        before = now
    assert len(before) > 0
    finished = mw.paper("tradeoff", out=tmp_path, workers=2, **QUICK)["tradeoff"]
    assert timeless(finished.rows) == timeless(undisturbed)
    assert before.items() <= kept_rows(tmp_path).items()
    assert len(kept_rows(tmp_path)) == len(undisturbed)


def test_what_is_there_is_not_computed_again(tmp_path, monkeypatch):
    trials = small_trials(3)
    with Store(tmp_path) as store:
        first = run_trials("s", trials[:2], store, workers=1)
    performed: list[Trial] = []
    monkeypatch.setattr(
        "manyways.studies.engine.perform", lambda trial, model: performed.append(trial) or perform(trial, model)
    )
    seen: list[tuple[int, int]] = []
    with Store(tmp_path) as store:
        rows = run_trials("s", trials, store, workers=1, progress=lambda done, total: seen.append((done, total)))
    assert performed == trials[2:]
    assert rows[:2] == first
    assert seen == [(2, 3), (3, 3)]


# ---- folders that cannot be used --------------------------------------------------------------


def test_an_interrupted_trial_is_no_row(tmp_path, monkeypatch):
    run, trials = mw.FrankWolfe.run, small_trials(2)

    def interrupted(*arguments):
        if arguments[4] == 1:  # the second trial's seed
            signal.raise_signal(signal.SIGINT)
        return run(*arguments)

    with Store(tmp_path) as store:
        with monkeypatch.context() as patch:
            patch.setattr(mw.FrankWolfe, "run", interrupted)
            with pytest.raises(KeyboardInterrupt):
                run_trials("s", trials, store, workers=1)
        assert list(store.rows("s")) == [trials[0].key]
        assert timeless(run_trials("s", trials, store, workers=1)) == timeless([perform(trial) for trial in trials])


def test_other_settings_in_an_old_folder_are_named(tmp_path):
    mw.paper("tradeoff", out=tmp_path, workers=1, trials=1, values=[1.0])
    before = kept_rows(tmp_path)
    with pytest.raises(OutputError, match=r"other settings \(trials: 1 there, 2 here\).* choose another folder"):
        mw.paper("tradeoff", out=tmp_path, workers=1, trials=2, values=[1.0])
    assert kept_rows(tmp_path) == before


def test_two_runs_on_one_folder(tmp_path):
    with Store(tmp_path), pytest.raises(OutputError, match="another run is working on it"):
        Store(tmp_path)
    Store(tmp_path).__exit__()


def add_large_rows(store: Store) -> None:
    for number in range(1000):
        store.add("s", str(number), {"error": "x" * 4000})


def test_a_disk_that_fills_up(tmp_path):
    with Store(tmp_path) as store:
        store.add("s", "first", {"error": None})
        store._file.execute("PRAGMA max_page_count = 10")  # SQLite then reports what it does on a full disk
        with pytest.raises(OutputError, match=r"the disk is full; the rows written so far are kept: make room"):
            add_large_rows(store)
        written = store.rows("s").keys()
    with Store(tmp_path) as store:
        assert store.rows("s").keys() == written >= {"first"}


def test_a_real_disk_that_fills_up(tmp_path):
    """On a file system of 256 KiB of its own, where the tests may mount one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "none", disk], check=False, capture_output=True
    )
    if mounted.returncode:
        pytest.skip("mounting is not allowed here")
    try:
        with Store(disk) as store, pytest.raises(OutputError, match="the disk is full"):
            add_large_rows(store)
        with Store(disk) as store:
            assert len(store.rows("s")) > 10
    finally:
        subprocess.run(["umount", disk], check=True)


@pytest.mark.parametrize("folder", ["/proc/nowhere", __file__])
def test_a_folder_that_cannot_be_made(folder):
    with pytest.raises(OutputError, match="cannot make the folder"):
        Store(Path(folder))


def test_a_file_of_rows_that_is_none(tmp_path):
    (tmp_path / FILE).write_bytes(b"not a database at all " * 100)
    with pytest.raises(OutputError, match="damaged or not a file of rows"):
        Store(tmp_path)


# ---- routes -----------------------------------------------------------------------------------


def two_doors() -> mw.MDP:
    mdp = world_from_rows(["S...", ".##.", "...G"], "two ways", correct_transition=1.0)
    doors = np.zeros(mdp.n_states, bool)
    doors[[3, 8]] = True  # the corners top right and bottom left
    return mw.MDP(
        mdp.transitions, mdp.reward, mdp.first_choice, mdp.start, mdp.actions, mdp.action_names,
        labels=dict(mdp.labels) | {"door": doors}, layout=mdp.layout,
    )  # fmt: skip


def test_the_doors_of_each_plan():
    mdp = two_doors()
    plans = mw.plan(mdp, 2, 100.0)
    found = routes(mdp, plans.policies)
    assert sorted(found) == sorted([mdp.state_name(3), mdp.state_name(8)])


def test_a_plan_that_stays_has_no_route():
    mdp = two_doors()
    stay = np.zeros(mdp.n_choices)
    last = mdp.first_choice[1:] - 1  # 'stop' is the last action everywhere
    stay[last] = 1.0
    assert routes(mdp, stay[None]) == [None]


def test_without_doors_there_are_no_routes():
    mdp = world_from_rows(["S.G"], "corridor")
    assert routes(mdp, mw.plan(mdp, 1).policies) is None


# ---- claims can hold and can fail -------------------------------------------------------------


def rows_of(axis: str, column: str, numbers: dict[float, float], **more: object) -> Results:
    base = {"method": "m", "error": None, "optimal_reward": 10.0, "reward": 9.0, "diversity": 0.5, "distinct_routes": 3}
    return Results("study", [base | more | {axis: value, column: number} for value, number in numbers.items()])


def verdict(verdicts: list[claims.Verdict], words: str) -> bool | None:
    (found,) = [v for v in verdicts if words in v.claim]
    return found.holds


@pytest.mark.parametrize(
    ("diversity", "expected"), [([0.1, 0.2, 0.3, 0.4], True), ([0.4, 0.1, 0.2, 0.1], False), ([0.2] * 4, False)]
)
def test_diversity_grows(diversity, expected):
    found = rows_of("tradeoff", "diversity", dict(zip([0.0, 2.0, 4.0, 9.0], diversity, strict=True)))
    assert verdict(claims.tradeoff(found), "Diversity grows") is expected


@pytest.mark.parametrize(
    ("rewards", "slight", "sharp"),
    [
        ([10, 9.9, 9.8, 9.7, 5, 4.9], True, True),
        ([10, 5, 4.9, 4.8, 4.7, 4.6], False, False),
        ([10, 9.9, 9.8, 9.7, 9.6, 9.5], True, False),
    ],
)
def test_reward_falls_around_eight(rewards, slight, sharp):
    found = rows_of("tradeoff", "reward", dict(zip([0.0, 2.0, 4.0, 7.0, 9.0, 12.0], rewards, strict=True)))
    verdicts = claims.tradeoff(found)
    assert verdict(verdicts, "decreases slightly") is slight
    assert verdict(verdicts, "fall sharply") is sharp


@pytest.mark.parametrize(("at_four", "expected"), [(4, True), (3.6, True), (3.4, False)])
def test_routes_per_set_size(at_four, expected):
    found = rows_of("k", "distinct_routes", {2: 2, 4: at_four, 6: 5})
    assert verdict(claims.set_size(found), "k = 4 gives four") is expected
    assert verdict(claims.set_size_maps(found), "k = 6 gives about five") is True


@pytest.mark.parametrize(("least", "expected"), [(0.8, True), (0.5, False)])
def test_the_least_diversity_near_point_eight(least, expected):
    numbers = {value: 0.1 if value == least else 0.68 for value in (0.5, 0.8, 1.0)}
    found = rows_of("correct_transition", "diversity", numbers)
    assert verdict(claims.transition(found), "minimum near 0.8") is expected
    assert verdict(claims.transition(found), "At low values") is expected


def test_frank_wolfe_against_projected_gradient():
    ours = {"method": "frank-wolfe", "reward": 2.0, "diversity": 0.1, "seconds": 3.0, "error": None}
    rows = [ours, ours | {"method": "projected-gradient", "reward": 1.0, "diversity": 0.2, "seconds": 4.0}]
    assert [v.holds for v in claims.methods(Results("methods", rows))] == [True, False, True]


@pytest.mark.parametrize(("measured", "expected"), [([2.0, 1.0], True), ([2.0, 1.6], False)])
def test_a_bound_that_is_broken_is_noticed(measured, expected):
    rows = [{"method": "frank-wolfe", "measured": measured, "bound": [2.0, 1.5], "error": None}]
    assert [v.holds for v in claims.theory(Results("theory", rows))] == [expected]


# ---- sweeps and their knees -------------------------------------------------------------------


def test_the_knee_of_a_bent_curve():
    assert _knee(np.array([0.0, 0.5, 0.6]), np.array([10.0, 9.5, 0.0])) == 1
    assert _knee(np.array([0.0, 0.5, 1.0]), np.array([10.0, 5.0, 0.0])) is None, "a straight line has none"
    assert _knee(np.array([0.0, 0.5]), np.array([10.0, 0.0])) is None
    assert _knee(np.array([0.5, 0.5, 0.5]), np.array([1.0, 1.0, 1.0])) is None


def test_a_sweep_over_a_world_file(tmp_path):
    world = DATA / "worlds" / "four-rooms-100.json"
    found = mw.sweep(world, tradeoff=[0, 4, 8, 16], k=[2, 3], seeds=2, out=tmp_path, workers=1)
    assert len(found.rows) == 16
    tradeoffs, diversity, _ = found.curve(2)
    assert tradeoffs.tolist() == [0, 4, 8, 16]
    assert diversity[-1] >= diversity[0]
    assert {path.name for path in tmp_path.iterdir()} == {FILE, "sweep.csv", "sweep.png", "sweep.svg"}
    with (tmp_path / "sweep.csv").open() as file:
        assert [float(line["objective"]) for line in csv.DictReader(file)] == [row["objective"] for row in found.rows]
    assert found.frame().groupby("k")["objective"].count().tolist() == [8, 8]
    again = mw.sweep(world, tradeoff=[0, 4, 8, 16], k=[2, 3], seeds=2, out=tmp_path, workers=1)
    assert again.rows == found.rows, "even the times are the old ones"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"tradeoff": []}, "at least one tradeoff"),
        ({"tradeoff": [-1.0]}, "a tradeoff"),
        ({"tradeoff": [1.0], "k": [2.5]}, "k must be an integer"),
        ({"tradeoff": [1.0], "seeds": 0}, "seeds must be an integer"),
        ({"tradeoff": [1.0], "method": "guess"}, "no method 'guess'"),
        ({"tradeoff": [1.0], "workers": 0}, "workers must be an integer"),
    ],
)
def test_bad_settings_of_a_sweep(settings, message):
    with pytest.raises(SettingError, match=message):
        mw.sweep("four-rooms:0", **settings)


# ---- the paper's studies ----------------------------------------------------------------------


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
    """All of them, with one trial each and few values; the real ones take minutes."""
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
    from manyways.studies.page import write_page

    row = {"method": "m", "error": "Bad: <script>alert(1)</script>"}
    page = write_page(tmp_path, Settings(), [("worlds", STUDIES["worlds"], Results("worlds", [row]))]).read_text()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "1 of 1 trials failed" in page
