"""The engine gives the same rows wherever, however often and in however many attempts trials are computed."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass

import psutil
import pytest
from small_studies import QUICK, QUICK_OPTIONS, kept_rows, small_trials, timeless

import manyways as mw
from local_cluster import dask_cluster, wait_for
from manyways.errors import SettingError
from manyways.methods import METHODS
from manyways.studies import engine
from manyways.studies.engine import RunStopped, run_trials
from manyways.studies.store import Store
from manyways.studies.trial import Trial, perform

COMMAND = [sys.executable, "-m", "manyways"]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> list[dict]:
    """The rows of the quick tradeoff study, computed by one process without interruption."""
    return mw.paper("tradeoff", out=tmp_path_factory.mktemp("undisturbed"), workers=1, **QUICK)["tradeoff"].rows


def test_two_workers_find_the_same_rows(undisturbed, tmp_path):
    assert timeless(mw.paper("tradeoff", out=tmp_path, workers=2, **QUICK)["tradeoff"].rows) == timeless(undisturbed)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """The address of a Dask scheduler with two workers."""
    with dask_cluster(tmp_path_factory.mktemp("dask")) as started:
        yield started.address


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


def test_a_cluster_whose_worker_and_then_its_scheduler_are_killed(tmp_path):
    (tmp_path / "dask").mkdir()
    out = tmp_path / "out"
    with dask_cluster(tmp_path / "dask") as cluster:
        command = [*COMMAND, "paper", "tradeoff", "--trials", "20", "--cluster", cluster.address, "--out", str(out)]
        study = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            wait_for(lambda: len(kept_rows(out)) > 0)
            cluster.workers[0].kill()
            rows = len(kept_rows(out))
            wait_for(lambda: len(kept_rows(out)) > rows + 2)
            assert study.poll() is None, "the other worker goes on"
            cluster.scheduler.kill()
            printed, message = study.communicate(timeout=120)
        finally:
            study.kill()
    assert (study.returncode, printed) == (2, "")
    assert len(message.splitlines()) == 1
    assert message.startswith(f"manyways: the Dask cluster at {cluster.address} failed (")
    assert "the rows computed so far are stored" in message
    assert "run the study again to resume it" in message


def _is_of_loky(process: psutil.Process) -> bool:
    try:
        return "loky" in " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return False


@pytest.mark.parametrize("delay", [0.0, 1.5])
def test_the_worker_processes_of_a_killed_study_end(tmp_path, delay):
    command = [*COMMAND, "paper", "tradeoff", "--workers", "2", "--trials", "3", "--out", str(tmp_path)]
    study = psutil.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    left = []
    try:
        wait_for(lambda: sum(_is_of_loky(child) for child in study.children(recursive=True)) > 2)  # with its tracker
        time.sleep(delay)
        left = study.children(recursive=True)
        study.kill()
        study.wait(timeout=30)
        _, left = psutil.wait_procs(left, timeout=10)
        assert left == []
    finally:
        for program in [*left, study]:
            if program.is_running():
                program.kill()


def test_a_study_that_is_killed_three_times_is_resumed(undisturbed, tmp_path):
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
        assert before.items() <= now.items(), f"kill {number} lost a row, or computed one again"
        before = now
    assert len(before) > 0
    finished = mw.paper("tradeoff", out=tmp_path, workers=2, **QUICK)["tradeoff"]
    assert timeless(finished.rows) == timeless(undisturbed)
    assert before.items() <= kept_rows(tmp_path).items()
    assert len(kept_rows(tmp_path)) == len(undisturbed)


def test_stored_rows_are_not_computed_again(tmp_path, monkeypatch):
    trials = small_trials(3)
    with Store(tmp_path) as store:
        first = run_trials("s", trials[:2], store, workers=1)
    performed: list[Trial] = []
    monkeypatch.setattr(engine, "perform", lambda trial, **given: performed.append(trial) or perform(trial, **given))
    seen: list[tuple[int, int]] = []
    with Store(tmp_path) as store:
        rows = run_trials("s", trials, store, workers=1, progress=lambda done, total: seen.append((done, total)))
    assert performed == trials[2:]
    assert rows[:2] == first
    assert seen == [(2, 3), (3, 3)]


def test_an_interrupted_trial_has_no_row(tmp_path, monkeypatch):
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


def test_a_trial_that_fails_is_a_row_with_its_error():
    trial = Trial("plan", {"source": "no-such-world", "k": 2, "tradeoff": 1.0, "seed": 0, "method": "frank-wolfe"})
    with Store(None) as store:
        good, bad = run_trials("s", [*small_trials(1), trial], store, workers=1)
    assert good["error"] is None
    assert bad["error"].startswith("SourceError: there is no file 'no-such-world'")
    assert bad["source"] == "no-such-world"


def failing(trial: Trial, **given: object) -> dict:
    """Fails for the seed 1 as if memory had run out for a moment."""
    return {**trial.settings, "error": "MemoryError: "} if trial.settings["seed"] == 1 else perform(trial, **given)


def test_a_failed_trial_is_returned_but_not_stored_and_tried_again(tmp_path, monkeypatch):
    trials = small_trials(3)
    with monkeypatch.context() as patch, Store(tmp_path) as store:
        patch.setattr(engine, "perform", failing)
        first = run_trials("s", trials, store, workers=1)
    assert [row["error"] for row in first] == [None, "MemoryError: ", None]
    assert set(kept_rows(tmp_path)) == {trials[0].key, trials[2].key}
    seen: list[tuple[int, int]] = []
    with Store(tmp_path) as store:
        second = run_trials("s", trials, store, workers=1, progress=lambda *counts: seen.append(counts))
    assert seen == [(2, 3), (3, 3)]
    assert [second[0], second[2]] == [first[0], first[2]], "even the times are the old ones"
    assert timeless(second) == timeless([perform(trial) for trial in trials])


def test_a_stored_row_with_an_error_counts_as_not_done(tmp_path):
    """Early versions stored failed trials."""
    (trial,) = small_trials(1)
    with Store(tmp_path) as store:
        store.add("s", trial.key, {**trial.settings, "error": "MemoryError: "})
    with Store(tmp_path) as store:
        assert store.rows("s") == {}
        (row,) = run_trials("s", [trial], store, workers=1)
        assert row["error"] is None
        assert store.rows("s") == {trial.key: row}
    assert json.loads(kept_rows(tmp_path)[trial.key]) == row, "the new row replaces the old one"


def test_equal_trials_are_computed_once():
    trials = small_trials(1) * 3
    seen: list[tuple[int, int]] = []
    with Store(None) as store:
        first, second, third = run_trials("s", trials, store, progress=lambda *counts: seen.append(counts))
    assert first == second == third
    assert seen == [(0, 1), (1, 1)]


@dataclass(frozen=True)
class Killed(mw.Method):
    def run(self, *_):
        os.kill(os.getpid(), signal.SIGKILL)


def test_a_killed_worker_process_is_explained_in_the_callers_terms(monkeypatch):
    monkeypatch.setattr(METHODS, "_classes", {**METHODS._classes, "Killed": Killed})
    with Store(None) as store, pytest.raises(RunStopped, match="Run the study again to resume it") as stop:
        run_trials("s", small_trials(2, "killed"), store, workers=2)
    assert "use fewer workers" in str(stop.value)
    assert "--workers" not in str(stop.value)
    assert "--workers" in stop.value.on_command_line
