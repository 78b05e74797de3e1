"""`mpirun manyways plan model.h5 --engine petsc`: what is said, and what happens if something goes wrong."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from processes import COMMAND, needs_petsc, run, started

import manyways as mw
from manyways import cli
from manyways.cli import engine
from manyways.distributed import team as teams
from manyways.distributed.feasible_set import EndNow, SharedWatch
from manyways.formats.writer import convert

WORLD = "rooms-40:0"
PLAN = (COMMAND, "plan", "rooms.h5", "--engine", "petsc", "--k", "2", "--starts", "1", "--tradeoff", "8")
SCRIPT = Path(__file__).with_name("interrupted.py")


@pytest.fixture
def here(tmp_path, monkeypatch):
    convert(WORLD, tmp_path / "rooms.h5")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@needs_petsc
@pytest.mark.usefixtures("here")
def test_the_command_starts_the_processes_and_says_what_they_found():
    words = (*PLAN, "--workers", "2", "--apart", "3", "--json", "--out", "plans.mw")
    done = run(None, *words)
    assert done.returncode == 0, done.stderr
    answer, plans = json.loads(done.stdout), mw.load("plans.mw")
    assert answer["verified"]
    assert len(answer["memory_mib"]) == 2
    assert answer["model"]["digest"] == mw.read(WORLD).digest
    assert plans.behaviour == mw.Near(3)
    assert answer["rewards"] == list(plans.rewards)


@needs_petsc
def test_a_full_disk_is_one_sentence_and_leaves_the_old_file(here):
    Path("plans.mw").write_text("old")
    limited = ("bash", "-c", 'ulimit -f 64; exec "$@"', "bash")  # KiB
    done = run(2, *limited, *PLAN, "--out", "plans.mw", "--time-limit", "0.001")
    assert done.returncode == 2
    assert done.stderr.count("manyways: ") == 1
    assert "manyways: cannot write plans.mw: File too large" in done.stderr
    assert sorted(path.name for path in here.iterdir()) == ["plans.mw", "rooms.h5"]
    assert Path("plans.mw").read_text() == "old"


def searching(launcher, ready):
    """The two processes of the script, once the first one says that it is searching."""
    for _ in range(1200):
        if ready.exists():
            found = [p for p in psutil.Process(launcher.pid).children(recursive=True) if str(SCRIPT) in p.cmdline()]
            assert len(found) == 2
            return found
        assert launcher.poll() is None, launcher.communicate()
        time.sleep(0.05)
    raise AssertionError("the search did not begin")


@needs_petsc
@pytest.mark.parametrize("how", ["SIGUSR1", "a killed process"])
def test_what_ends_one_process_ends_all(how, here):
    launcher = started(2, sys.executable, SCRIPT, "rooms.h5", "plans.mw", "ready")
    try:
        working = searching(launcher, here / "ready")
        if how == "SIGUSR1":
            launcher.send_signal(signal.SIGUSR1)
        else:
            working[1].kill()
        out, err = launcher.communicate(timeout=60)
    finally:
        launcher.kill()
    assert "Traceback" not in err
    gone, alive = psutil.wait_procs(working, timeout=20)
    assert len(gone) == 2, alive
    if how == "SIGUSR1":
        assert (launcher.returncode, json.loads(out)) == (0, ["interrupted", True])
        plans = mw.load("plans.mw")
        assert plans.status is mw.Status.INTERRUPTED
        assert plans.k == 3
        assert mw.verify(mw.read(WORLD), plans).ok
        assert sorted(path.name for path in here.iterdir()) == ["plans.mw", "ready", "rooms.h5"]
    else:
        assert launcher.returncode != 0
        assert out == ""
        assert "exited on signal 9" in err
        assert sorted(path.name for path in here.iterdir()) == ["ready", "rooms.h5"]


# ---- in this process ----------------------------------------------------------------------------


class Alone:
    """MPI with one process: what is needed before there is anything to solve."""

    rank, size = 0, 1
    ended = None
    allgather = staticmethod(lambda value: [value])
    alltoall = staticmethod(lambda values: values)
    Barrier = staticmethod(lambda: None)

    def Abort(self, code):
        self.ended = code
        raise SystemExit(0)


@pytest.fixture
def alone(monkeypatch):
    comm = Alone()
    monkeypatch.setattr(teams, "the_mpi", lambda: type("MPI", (), {"COMM_WORLD": comm}))
    return comm


@pytest.fixture
def manyways(monkeypatch, capsys):
    """Runs the command in this process: its exit code, and what it wrote to standard error."""

    def command(*arguments):
        monkeypatch.setattr(sys, "argv", ["manyways", *arguments])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return ended.value.code, capsys.readouterr().err

    return command


@pytest.mark.usefixtures("here", "alone")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("missing.h5",), "there is no file missing.h5"),
        (("rooms.h5", "--longer", "10%"), "the engine cannot use --longer"),
        (("rooms.h5", "--per", "episode"), "the engine cannot use --per episode"),
        (("rooms.h5", "--slack", "5%", "--floor", "1"), "give the least value of a plan in one way"),
        (("rooms-40:0",), "the engine plans for models in .h5 files"),
        (("rooms.h5", "--behaviour", "labels"), "compared by choices, states or neighbourhoods, not by Labels"),
        (("rooms.h5", "--diversity", "coverage"), "Coverage(tradeoff=None) cannot be computed on several machines"),
        (("rooms.h5", "--engine", "slepc"), "--engine must be petsc"),
    ],
)
def test_mistakes_are_one_sentence(options, message, manyways):
    words = options if "--engine" in options else (*options, "--engine", "petsc")
    code, said = manyways("plan", *words)
    assert code == 2
    assert said.count("manyways: ") == 1
    assert message in " ".join(said.split())


@pytest.mark.usefixtures("here", "alone")
def test_workers_are_not_for_what_mpirun_has_started(manyways, monkeypatch):
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "1")
    code, said = manyways("plan", "rooms.h5", "--engine", "petsc", "--workers", "3")
    assert code == 2
    assert "mpirun has started 1 processes: leave --workers out" in said


@pytest.mark.parametrize("interrupt", [EndNow, KeyboardInterrupt])
def test_an_interrupt_ends_all_processes_and_is_said_once(interrupt, alone, manyways, monkeypatch):
    def planning(*_):
        raise interrupt

    monkeypatch.setattr(engine, "_plan", planning)
    assert manyways("plan", "rooms.h5", "--engine", "petsc") == (130, "manyways: interrupted\n")
    alone.size = 2
    assert manyways("plan", "rooms.h5", "--engine", "petsc") == (0, "manyways: interrupted\n")
    assert alone.ended == 130


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1])
def test_only_the_first_process_acts_on_a_second_interrupt(rank, number, alone):
    alone.rank = rank
    before = signal.getsignal(number)
    watch = SharedWatch(team=teams.Team())
    with watch.catching_interrupts():
        os.kill(os.getpid(), number)
        assert watch.interrupted.is_set()
        if rank == 0:
            with pytest.raises(EndNow):
                os.kill(os.getpid(), number)
        else:
            os.kill(os.getpid(), number)
    assert signal.getsignal(number) is before


MPIRUN = f"""#!{sys.executable}
import signal, sys, time
from pathlib import Path
told = []
for number in (signal.SIGUSR1, signal.SIGTERM, signal.SIGINT):
    signal.signal(number, lambda number, _: told.append(signal.Signals(number).name))
Path("words").write_text(" ".join(sys.argv[1:]))
while len(told) < int(Path("signals").read_text()):
    time.sleep(0.01)
    Path("told").write_text(" ".join(told))
Path("told").write_text(" ".join(told))
sys.exit(int(Path("code").read_text()))
"""


@pytest.mark.parametrize(
    ("signals", "code", "told", "ended", "message"),
    [
        (0, 0, "", 0, ""),
        (1, 3, "SIGUSR1", 3, ""),
        (2, 143, "SIGUSR1 SIGTERM", 130, "manyways: interrupted\n"),
        (0, 137, "", 3, "manyways: one of the 2 processes has died, so all have ended\n"),
    ],
    ids=["undisturbed", "Ctrl-C", "Ctrl-C twice", "a killed process"],
)
def test_ctrl_c_reaches_the_processes_that_were_started(signals, code, told, ended, message, tmp_path):
    for name, content in {"signals": signals, "code": code, "mpirun": MPIRUN}.items():
        (tmp_path / name).write_text(str(content))
    (tmp_path / "mpirun").chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if name not in engine.STARTED}
    environment["PATH"] = f"{tmp_path}:{environment['PATH']}"
    words = [COMMAND, "plan", "rooms.h5", "--engine", "petsc", "--workers", "2"]
    # A shell that runs tests in the background lets them ignore Ctrl-C, and their children too.
    command = [sys.executable, "-c", "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])"]  # fmt: skip
    process = subprocess.Popen([*command, *words], cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        for number in range(signals):
            wait_for(lambda number=number: len((tmp_path / "told").read_text().split()) == number, tmp_path / "told")
            process.send_signal(signal.SIGINT)
        err = process.communicate(timeout=60)[1]
    finally:
        process.kill()
    assert (tmp_path / "words").read_text().startswith("--quiet --oversubscribe --mca mpi_yield_when_idle 1 -n 2 ")
    assert (tmp_path / "words").read_text().endswith("-m manyways plan rooms.h5 --engine petsc --workers 2")
    assert (tmp_path / "told").read_text() == told
    assert (process.returncode, err) == (ended, message)


def wait_for(condition, file):
    for _ in range(1200):
        if file.exists() and condition():
            return
        time.sleep(0.05)
    raise AssertionError("nothing happened for a minute")


def test_without_petsc_the_error_says_what_to_do(monkeypatch):
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(mw.SettingError, match="'make petsc' installs them"):
        teams.Team()
