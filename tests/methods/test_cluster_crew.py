"""A cluster finds the same plans, bit by bit, even if a worker is killed in the middle of a start."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import manyways as mw
from distributed import Client
from local_cluster import dask_cluster, wait_for
from manyways.cluster import ClusterFailed
from manyways.errors import SettingError

ROOMS = "rooms-50:0"  # large enough that its states are renumbered


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with dask_cluster(tmp_path_factory.mktemp("dask")) as started:
        yield started.address


def assert_same(here: mw.PlanSet, there: mw.PlanSet) -> None:
    assert np.array_equal(here.policies, there.policies)
    assert np.array_equal(here.occupancies, there.occupancies)
    assert here.status is there.status
    for name in ("objective", "measure", "step", "oracle_calls"):
        assert np.array_equal(getattr(here.trace, name), getattr(there.trace, name)), name
    assert replace(here.method, workers=None) == there.method


@pytest.mark.parametrize(
    ("source", "settings"),
    [
        ("four-rooms:0", {"k": 3, "tradeoff": 8.0}),  # starts, of which some settle, and exchanges
        ("four-rooms:1", {"k": 3}),  # a pool of candidates, limits
        (ROOMS, {"k": 2, "tradeoff": 8.0}),
        (ROOMS, {"k": 2, "slack": 0.1, "tradeoff": 8.0, "behaviour": mw.States()}),
        ("four-rooms:2", {"k": 3, "tradeoff": 8.0, "criterion": mw.Discounted(0.95)}),
    ],
)
def test_a_cluster_finds_the_same_plans(cluster, source, settings):
    here = mw.plan(source, method=mw.VertexAscent(workers=1), **settings)
    assert_same(here, mw.plan(source, cluster=cluster, **settings))


def test_plans_that_are_kept_and_avoided(cluster):
    plans = mw.plan("four-rooms:0", 3, 8.0)
    settings = {"k": 3, "tradeoff": 8.0, "keep": plans[:1], "avoid": plans[1:]}
    here = mw.plan("four-rooms:0", method=mw.VertexAscent(workers=1), **settings)
    assert_same(here, mw.plan("four-rooms:0", cluster=cluster, **settings))


@pytest.mark.parametrize("objective", [None, mw.MeanDivergence(8.0)])
def test_a_worker_that_is_killed_while_it_works_changes_nothing(tmp_path, objective):
    settings = {"k": 3, "objective": objective}
    here = mw.plan(ROOMS, method=mw.VertexAscent(starts=6, workers=1), **settings)
    killed = []
    with dask_cluster(tmp_path) as cluster, Client(cluster.address, set_as_default=False) as client:

        def kill_one(progress: mw.Progress) -> None:
            if killed or not progress.done or progress.doing == "verifying":
                return
            busy = [address for address, jobs in client.processing().items() if jobs]
            if busy:
                killed.append(client.run(os.getpid)[busy[0]])
                os.kill(killed[0], signal.SIGKILL)

        there = mw.plan(ROOMS, cluster=cluster.address, method=mw.VertexAscent(starts=6), progress=kill_one, **settings)
        assert killed
        assert len(client.scheduler_info(n_workers=-1)["workers"]) == 1
    assert_same(here, there)


def test_ctrl_c_reaches_the_workers(cluster):
    pressed = []

    def press(progress: mw.Progress) -> None:
        if progress.done and not pressed:
            pressed.append(True)
            signal.raise_signal(signal.SIGINT)

    settings = {"k": 4, "tradeoff": 8.0, "cluster": cluster, "progress": press}
    plans = mw.plan("rooms-100:0", method=mw.VertexAscent(starts=100), **settings)
    assert plans.status is mw.Status.INTERRUPTED
    assert len(plans.trace) > 1  # what the starts had found came back
    with Client(cluster, set_as_default=False) as client:
        wait_for(lambda: not any(client.processing().values()), 30)


def test_a_time_limit_that_passes_before_anything_arrives(cluster):
    plans = mw.plan("rooms-50:0", 2, 8.0, cluster=cluster, time_limit_s=1e-6)
    assert plans.status is mw.Status.TIME_LIMIT
    assert plans.rewards.min() >= plans.optimal_reward - 1e-9


def test_a_cluster_that_dies_is_named(tmp_path):
    with dask_cluster(tmp_path) as cluster:

        def kill_all(progress: mw.Progress) -> None:
            if progress.done:
                cluster.scheduler.kill()

        with pytest.raises(ClusterFailed, match=rf"^the Dask cluster at {cluster.address} failed .* plan again$"):
            mw.plan(
                ROOMS, 3, 8.0, cluster=cluster.address, method=mw.VertexAscent(starts=200), progress=kill_all, seed=1
            )


def test_an_exception_of_the_progress_callback_arrives(cluster):
    def refuse(progress: mw.Progress) -> None:
        if progress.done:
            raise ValueError("enough")

    with pytest.raises(ValueError, match="enough"):
        mw.plan("four-rooms:0", 3, 8.0, cluster=cluster, progress=refuse)


def test_a_method_without_independent_starts_is_refused(cluster):
    with pytest.raises(SettingError, match=r"FrankWolfe\(.*no independent starts.* leave cluster out"):
        mw.plan("four-rooms:0", 2, 8.0, method=mw.FrankWolfe(), cluster=cluster)


def test_a_scheduler_that_is_not_there():
    with pytest.raises(SettingError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:9 .* then plan again"):
        mw.plan("four-rooms:0", 2, 8.0, cluster="tcp://127.0.0.1:9")


def test_on_the_command_line(cluster, tmp_path):
    command = [sys.executable, "-m", "manyways", "plan", "four-rooms:0", "--k", "3", "--tradeoff", "8"]
    files = [tmp_path / "here.mw", tmp_path / "there.mw"]
    for file, options in zip(files, (["--workers", "1"], ["--cluster", cluster]), strict=True):
        subprocess.run([*command, *options, "--out", str(file)], check=True, capture_output=True, timeout=120)
    assert_same(*(mw.load(file) for file in files))
