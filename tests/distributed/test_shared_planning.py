"""`mpirun manyways plan model.h5 --engine petsc`: what is found, and what happens if something goes wrong."""

import json
import signal
import time

import numpy as np
import psutil
import pytest
from processes import COMMAND, needs_petsc, run, started

import manyways as mw
from manyways.formats.writer import convert
from manyways.model.occupancy import long_run_occupancy

WORLD = "rooms-40:0"
PLAN = (COMMAND, "plan", "rooms.h5", "--engine", "petsc", "--k", "2", "--starts", "1")


@pytest.fixture
def here(tmp_path):
    convert(WORLD, tmp_path / "rooms.h5")
    return tmp_path


def planned(here, processes, out, *options):
    done = run(processes, *PLAN, "--json", "--out", out, *options, cwd=here)
    assert "manyways" not in done.stderr
    return done.returncode, json.loads(done.stdout), mw.load(here / out)


@needs_petsc
def test_plans_are_what_they_claim_and_the_same_in_every_run(here):
    mdp = mw.read(WORLD)
    code, answer, plans = planned(here, 2, "plans.mw", "--tradeoff", "8")
    assert code == 0
    assert answer["verified"]
    assert len(answer["memory_mib"]) == 2
    assert answer["model"]["digest"] == plans.mdp.digest == mdp.digest
    assert mw.verify(mdp, plans).ok, "with vectors that one machine finds by itself"
    for policy, reward in zip(plans.policies, plans.rewards, strict=True):
        assert float(long_run_occupancy(mdp, policy) @ mdp.reward) == pytest.approx(reward, rel=1e-9)
    alone = mw.plan(mdp, 2, 8.0, method=mw.VertexAscent(starts=1, exchanges=False))
    assert plans.optimal_reward == pytest.approx(alone.optimal_reward, rel=1e-9)
    assert plans.objective > 0.98 * alone.objective
    assert plans.diversity > 0.5
    again = planned(here, 2, "again.mw", "--tradeoff", "8")[2]
    for name in ("policies", "occupancies", "rewards", "distances"):
        np.testing.assert_array_equal(getattr(plans, name), getattr(again, name))
    assert plans.gap == again.gap


@needs_petsc
def test_limits_are_kept(here):
    code, answer, plans = planned(here, 2, "plans.mw", "--slack", "5%", "--behaviour", "states")
    assert code == 0
    assert "within 5 % of the best possible" in answer["guarantee"]
    assert plans.rewards.min() >= 0.95 * plans.optimal_reward * (1 - 1e-9)
    assert plans.optimal_reward == pytest.approx(mw.Polytope(mw.read(WORLD)).optimum.value, rel=1e-9)
    assert plans.diversity > 0.1
    assert mw.verify(plans.mdp, plans).ok


@needs_petsc
def test_a_discounted_model_within_a_time_limit(here):
    limited = ("--tradeoff", "8", "--discount", "0.99", "--time-limit", "0.001")
    code, answer, plans = planned(here, 2, "plans.mw", *limited)
    assert code == 3
    assert answer["status"] == "time limit"
    best = mw.Polytope(mw.read(WORLD), mw.Discounted(0.99)).optimum.value * 100
    np.testing.assert_allclose(plans.rewards, best, rtol=1e-8)
    assert mw.verify(plans.mdp, plans).ok


@needs_petsc
def test_a_full_disk_is_one_sentence_and_leaves_the_old_file(here):
    (here / "plans.mw").write_text("old")
    limited = ("bash", "-c", 'ulimit -f 64; exec "$@"', "bash")  # KiB
    done = run(2, *limited, *PLAN, "--tradeoff", "8", "--out", "plans.mw", "--time-limit", "0.001", cwd=here)
    assert done.returncode == 2
    assert done.stderr.count("manyways: ") == 1
    assert "manyways: cannot write plans.mw: File too large" in done.stderr
    assert sorted(path.name for path in here.iterdir()) == ["plans.mw", "rooms.h5"]
    assert (here / "plans.mw").read_text() == "old"


def processes_of(launcher: psutil.Process) -> list[psutil.Process]:
    """The processes of the command, once all have started to work."""
    for _ in range(600):
        found = [p for p in launcher.children(recursive=True) if "--engine" in p.cmdline()]
        if len(found) == 2 and all(p.memory_info().rss > 100e6 and p.cpu_times().user > 1.0 for p in found):
            return found
        time.sleep(0.05)
    raise AssertionError("the processes did not start")


@needs_petsc
@pytest.mark.parametrize("how", ["a killed process", "Ctrl-C"])
def test_what_ends_one_process_ends_all_and_leaves_no_file(how, tmp_path):
    convert("rooms-300:0", tmp_path / "rooms.h5")
    launcher = started(2, *PLAN, "--tradeoff", "8", "--out", "plans.mw", cwd=tmp_path)
    try:
        working = processes_of(psutil.Process(launcher.pid))
        if how == "Ctrl-C":
            launcher.send_signal(signal.SIGINT)
        else:
            working[1].kill()
        out, err = launcher.communicate(timeout=60)
    finally:
        launcher.kill()
    assert launcher.returncode != 0
    assert out == ""
    assert "Traceback" not in err
    assert how == "Ctrl-C" or "exited on signal 9" in err
    gone, alive = psutil.wait_procs(working, timeout=20)
    assert len(gone) == 2, alive
    assert not (tmp_path / "plans.mw").exists()


@needs_petsc
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("missing.h5", "--engine", "petsc"), "there is no file missing.h5"),
        (("rooms.h5", "--engine", "petsc", "--longer", "10%"), "the engine cannot use --longer"),
        (
            ("rooms.h5", "--engine", "petsc", "--slack", "5%", "--floor", "1"),
            "give the least value of a plan in one way",
        ),
        (("rooms-40:0", "--engine", "petsc"), "the engine plans for models in .h5 files"),
        (("rooms.h5", "--engine", "slepc"), "--engine must be petsc"),
    ],
)
def test_mistakes_are_one_sentence(options, message, here):
    done = run(1, COMMAND, "plan", *options, cwd=here)
    assert done.returncode == 2
    assert done.stderr.count("manyways: ") == 1
    assert message in done.stderr


def test_without_petsc_the_error_says_what_to_do(monkeypatch):
    from manyways.distributed.team import Team

    monkeypatch.setitem(__import__("sys").modules, "mpi4py", None)
    with pytest.raises(mw.SettingError, match="'make petsc' installs them"):
        Team()
