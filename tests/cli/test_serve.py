"""`manyways serve`: plans a source first, names its file, and serves it."""

from __future__ import annotations

import dataclasses
import os
import signal
import socket
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

import manyways as mw
from manyways import cli
from manyways.cli.serve import file_name
from manyways.plans.certificate import Check

SMALL = "four-rooms:0"
TIMEOUT_S = 60.0
PROGRAM = (sys.executable, "-m", "manyways", "serve")


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("nine-rooms:7", "nine-rooms-7.mw"),
        ("maps/lab.yaml?start=1,2", "lab.mw"),
        ("gym:FrozenLake-v1", "gym-FrozenLake-v1.mw"),
        ("..", "plans.mw"),
        ("a b/c d.txt", "c-d.mw"),
    ],
)
def test_plans_are_named_after_their_source(source, name):
    assert file_name(source) == name


@pytest.fixture
def command(tmp_path, monkeypatch, capsys):
    """Runs `manyways serve` in this process without listening; returns how it would have served, and its output."""
    asked: list[Any] = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("manyways.web.server.listen", lambda host, port: nullcontext((host, port)))
    monkeypatch.setattr("manyways.web.server.serve", lambda *given: asked.append(given))

    def run(*arguments: str) -> tuple[list[Any], str, str]:
        asked.clear()
        monkeypatch.setattr(sys, "argv", ["manyways", "serve", *arguments])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        assert (ended.value.code or 0) == (0 if asked else 2)
        return (list(asked), *capsys.readouterr())

    return run


def test_the_command_says_that_plans_are_not_verified(command, plans, monkeypatch):
    failed = mw.Certificate((Check("rewards", 0.5, 1e-9),))
    for status, words in (
        (mw.Status.NOT_VERIFIED, "(not verified: a check of the certificate failed)"),
        (mw.Status.TIME_LIMIT, "(time limit, NOT verified)"),
    ):
        wrong = dataclasses.replace(plans, certificate=failed, status=status)
        monkeypatch.setattr("manyways.planning.plan", lambda *_, wrong=wrong, **__: wrong)
        asked, out, _ = command(SMALL, "--out", f"{status.name}.mw")
        assert len(asked) == 1
        assert out.startswith(
            f"manyways: 2 plans written to {status.name}.mw {words}\nmanyways: their figures may be wrong"
        )


def test_plans_that_are_made_first_keep_to_the_slack(command):
    """Given or by default; a tradeoff alone is the paper's objective."""
    for options, slack in (
        (("--slack", "5%"), 0.05),
        ((), 0.1),
        (("--tradeoff", "8"), None),
        (("--slack", "2%", "--tradeoff", "8"), 0.02),
    ):
        _, out, err = command(SMALL, "--k", "2", *options, "--out", "new.mw")
        assert ("2 plans written to new.mw (converged, verified)" in out, err) == (True, "")
        found = mw.load("new.mw")
        assert found.limits.slack == slack
        assert slack is None or found.rewards.min() >= (1 - slack) * found.optimal_reward
        Path("new.mw").unlink()


def test_the_command_plans_first_and_serves_what_is_there(command, plans, tmp_path):
    plans_path = plans.save(tmp_path / "plans.mw")
    own = Path("four-rooms-0.mw")
    asked, out, _ = command(SMALL, "--k", "2", "--discount", "0.9", "--port", "0")
    assert asked == [(own, ("127.0.0.1", 0), "127.0.0.1", False)]
    assert "2 plans written to four-rooms-0.mw (converged, verified)" in out
    assert (mw.load(own).k, mw.load(own).criterion) == (2, mw.Discounted(0.9))
    asked, out, _ = command(SMALL, "--host", "::1", "--open")
    assert asked == [(own, ("::1", 8321), "::1", True)]
    assert out == "manyways: four-rooms-0.mw already holds plans for this model and is served unchanged\n"
    asked, out, _ = command(SMALL, "--k", "3", "--seed", "0", "--out", str(own))
    assert asked
    assert "--k, --seed were ignored; to use them, remove four-rooms-0.mw, choose another file with --out" in out
    assert mw.load(own).k == 2
    assert command(str(plans_path))[0] == [(plans_path, ("127.0.0.1", 8321), "127.0.0.1", False)]
    (tmp_path / "other.txt").write_text("S..\n..G\n")
    for arguments, words in (
        (("other.txt", "--out", str(own)), "another model; choose another file with --out"),
        ((str(own), "--k", "3"), "--k can only be used with a source"),
        (("nowhere.txt",), "nowhere.txt"),
        (("other.txt", "--out", "none/x.mw"), "there is no folder none"),
    ):
        asked, _, err = command(*arguments)
        assert words in err
        assert not asked


def test_the_command_says_when_there_is_no_file(tmp_path):
    command = [*PROGRAM, "none.mw"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (2, "", "manyways: there is no file none.mw\n")


def test_a_port_in_use_is_reported_before_planning(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        command = [*PROGRAM, SMALL, "--port", port]
        ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert (
        ended.stderr
        == f"manyways: port {port} of 127.0.0.1 is in use; choose another with --port, or --port 0 for any free one\n"
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform != "linux", reason="other systems allow no such names")
def test_the_command_takes_files_whose_names_are_not_text(tmp_path):
    out = tmp_path / os.fsdecode(b"pl\xe4ne.mw")
    command = [*PROGRAM, SMALL, "--k", "2", "--port", "0", "--out", str(out)]
    environment = os.environ | {"PYTHONUTF8": "1", "PYTHONIOENCODING": "utf-8:strict"}
    for words in ("2 plans written to", "already holds plans for this model"):
        with subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8"
        ) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            line = process.stdout.readline()
            assert words in line, process.stderr.read()
            assert "pl\ufffdne.mw" in line
            while "look at http" not in line:
                line = process.stdout.readline()
                assert line, process.stderr.read()
            process.send_signal(signal.SIGINT)
            assert process.wait(TIMEOUT_S) == 0
            assert process.stderr.read() == ""
