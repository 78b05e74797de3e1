"""The command line: what it prints where, its exit codes, and one sentence for every mistake."""

from __future__ import annotations

import dataclasses
import json
import os
import pty
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer

import manyways as mw
from manyways import cli

COMMAND = Path(sys.executable).with_name("manyways")
DONE, BAD_INPUT, NOT_CONVERGED, INTERRUPTED = 0, 2, 3, 130
PLAN = ("plan", "map.txt", "--k", "2", "--tradeoff", "8", "--method", "frank-wolfe")
COMMANDS = sorted(typer.main.get_command(cli.app).commands)


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """Standard output as one JSON object; NaN and Infinity are not JSON."""

        def refuse(constant: str) -> None:
            raise AssertionError(f"{constant} is not JSON")

        answer = json.loads(self.out, parse_constant=refuse)
        assert isinstance(answer, dict)
        return answer

    @property
    def words(self) -> str:
        """Standard output without line breaks and boxes."""
        return " ".join(self.out.replace("│", " ").split())


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch) -> Path:
    """Every test runs in a folder of its own, with one small map in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    for name in ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "map.txt").write_text("S..#.\n..#..\n....G\n")
    return tmp_path


@pytest.fixture
def manyways(monkeypatch, capsys):
    """Runs the command in this process."""

    def run(*arguments: str) -> Answer:
        monkeypatch.setattr(sys, "argv", ["manyways", *arguments])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return Answer(ended.value.code or 0, *capsys.readouterr())

    return run


def run_program(*arguments: str, **options: Any) -> Answer:
    """Runs the command as a program of its own."""
    ended = subprocess.run([COMMAND, *arguments], check=False, capture_output=True, text=True, **options)
    return Answer(ended.returncode, ended.stdout, ended.stderr)


@pytest.fixture(scope="module")
def plans() -> mw.PlanSet:
    mdp = mw.grid_world([[0, 0, 0], [0, 1, 0], [0, 0, 0]], (0, 0), (2, 2), name="square")
    return mw.plan(mdp, 2, 8.0, method=mw.FrankWolfe())


@pytest.fixture
def saved(plans) -> str:
    plans.save("saved.mw")
    return "saved.mw"


@pytest.fixture
def no_work(monkeypatch) -> list[Any]:
    """What was asked of the method; stays empty where a mistake is found in time."""
    asked: list[Any] = []

    def run(*arguments: Any) -> Any:
        asked.append(arguments)
        raise AssertionError("the mistake should have been found before the work")

    monkeypatch.setattr(mw.FrankWolfe, "run", run)
    return asked


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {"map.txt", "saved.mw"}


# ---- plan, show, verify -----------------------------------------------------------------------


def test_plan_prints_a_table(manyways, here):
    answer = manyways(*PLAN)
    assert (answer.code, answer.err) == (DONE, "")
    assert answer.out.startswith("map: 2 plans")
    expected = mw.plan("map.txt", 2, 8.0, method=mw.FrankWolfe())
    for i, reward in enumerate(expected.rewards, start=1):
        assert f" {i} {reward:.4f} " in answer.words
    assert f"objective {expected.objective:.4f} = mean reward {expected.rewards.mean():.4f} + 8 x" in answer.words
    assert "converged" in answer.words
    assert files(here) == set()


def test_plan_writes_what_it_is_asked_to(manyways, here):
    answer = manyways(*PLAN, "--out", "plans.mw", "--picture", "plans.png")
    assert answer.code == DONE
    assert "plans written to plans.mw" in answer.words
    assert "picture written to plans.png" in answer.words
    assert files(here) == {"plans.mw", "plans.png"}
    assert mw.load("plans.mw").certificate.ok
    assert (here / "plans.png").read_bytes().startswith(b"\x89PNG")


def test_plan_as_json(manyways):
    answer = manyways(*PLAN, "--seed", "3", "--json", "--out", "plans.mw")
    assert (answer.code, answer.err) == (DONE, "")
    plans = mw.load("plans.mw")
    found = answer.json
    assert found["model"] == {
        "name": "map",
        "states": 15,
        "choices": plans.mdp.n_choices,
        "digest": mw.read("map.txt").digest,
    }
    assert found["k"] == 2
    assert found["seed"] == 3
    assert found["tradeoff"] == 8.0
    assert found["status"] == "converged"
    assert found["objective"] == plans.objective
    assert found["rewards"] == plans.rewards.tolist()
    assert found["distances"] == plans.distances.tolist()
    assert found["diversity"] == plans.diversity
    assert found["optimal_reward"] == plans.optimal_reward
    assert found["verified"] is True
    assert found["written"] == {"plans": "plans.mw"}


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        (["--discount", "0.9"], {"criterion": mw.Discounted(0.9)}),
        (["--behaviour", "states"], {"behaviour": mw.States()}),
        (["--behaviour", "labels"], {"behaviour": mw.Labels()}),
        (["--behaviour", "state-actions"], {"behaviour": mw.StateActions()}),
        (["--seed", "7"], {"seed": 7}),
        (["--k", "3"], {"k": 3}),
        (["--tradeoff", "1.5"], {"tradeoff": 1.5}),
    ],
)
def test_options_reach_the_plan(manyways, options, settings):
    answer = manyways(*PLAN, *options, "--json")
    expected = mw.plan("map.txt", **({"k": 2, "tradeoff": 8.0, "method": mw.FrankWolfe()} | settings))
    assert answer.json["objective"] == expected.objective
    assert answer.json["criterion"] == repr(expected.criterion)
    assert answer.json["behaviour"] == repr(expected.behaviour)


def test_tradeoff_is_the_optimal_reward_unless_told_otherwise(manyways):
    found = manyways("plan", "map.txt", "--k", "2", "--method", "frank-wolfe", "--json").json
    assert found["tradeoff"] == found["optimal_reward"]


def test_one_plan_has_no_other_near_it(manyways):
    answer = manyways(*PLAN, "--k", "1")
    assert answer.code == DONE
    assert answer.out.startswith("map: 1 plans")


def test_nearly_equal_plans_are_pointed_out(manyways):
    assert "plans 1 and 2 are nearly the same" in manyways(*PLAN, "--tradeoff", "0").words


def test_show_repeats_the_table(manyways, here, saved, plans):
    answer = manyways("show", saved)
    assert (answer.code, answer.err) == (DONE, "")
    assert answer.out.startswith("square: 2 plans")
    assert f"objective {plans.objective:.4f}" in answer.words
    assert files(here) == set()


def test_show_as_json_with_a_picture(manyways, here, saved, plans):
    answer = manyways("show", saved, "--json", "--picture", "plans.svg")
    assert answer.json["objective"] == plans.objective
    assert answer.json["written"] == {"picture": "plans.svg"}
    assert files(here) == {"plans.svg"}


def test_verify_lists_its_checks(manyways, saved, plans):
    answer = manyways("verify", saved)
    assert (answer.code, answer.err) == (DONE, "")
    assert answer.out.startswith("verified")
    assert all(check.name in answer.words for check in plans.certificate.checks)
    assert "FAILED" not in answer.out


def test_verify_as_json(manyways, saved, plans):
    found = manyways("verify", saved, "--json").json
    assert found["ok"] is True
    assert [check["name"] for check in found["checks"]] == [check.name for check in plans.certificate.checks]
    assert all(check["ok"] and check["error"] <= check["tolerance"] for check in found["checks"])


def test_verify_does_not_believe_the_file(manyways, plans):
    dataclasses.replace(plans, objective=plans.objective + 1).save("wrong.mw")
    answer = manyways("verify", "wrong.mw")
    assert answer.code == NOT_CONVERGED
    assert answer.out.startswith("NOT verified")
    found = manyways("verify", "wrong.mw", "--json")
    assert found.code == NOT_CONVERGED
    assert found.json["ok"] is False
    assert [check["name"] for check in found.json["checks"] if not check["ok"]] == ["objective"]


# ---- did not converge -------------------------------------------------------------------------


def test_out_of_time(manyways):
    answer = manyways(*PLAN, "--time-limit", "1e-9", "--json", "--out", "plans.mw")
    assert answer.code == NOT_CONVERGED
    assert answer.json["status"] == "time limit"
    assert mw.load("plans.mw").status == mw.Status.TIME_LIMIT


def test_out_of_iterations(manyways, here):
    (here / "corridor.txt").write_text("#####\n#S.G#\n#####\n")
    answer = manyways("plan", "corridor.txt", "--k", "4", "--method", "projected-gradient", "--json")
    assert answer.code == NOT_CONVERGED
    assert answer.json["status"] == "iteration limit"
    assert answer.json["verified"] is True


# ---- mistakes ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["plan", "nine-room:7"],
            "there is no file 'nine-room:7' and no world of that name; did you mean 'nine-rooms:7'?",
        ),
        (
            ["plan", "nine-rooms:x"],
            "nine-rooms:x: the seed after the colon must be an integer of at least 0, found 'x'",
        ),
        (["plan", "map.txt?size=3"], "map.txt?size=3: unknown setting 'size'"),
        (["plan", "."], ". is a folder, expected a model file"),
        ([*PLAN, "--k", "0"], "k must be an integer of at least 1, found 0"),
        ([*PLAN, "--seed", "-1"], "seed must be an integer of at least 0, found -1"),
        ([*PLAN, "--tradeoff", "-1"], "the tradeoff must be a finite number of at least 0, found -1.0"),
        ([*PLAN, "--tradeoff", "nan"], "the tradeoff must be a finite number of at least 0, found nan"),
        ([*PLAN, "--discount", "1"], "the discount must lie strictly between 0 and 1, found 1.0"),
        ([*PLAN, "--discount", "1.5"], "the discount must lie strictly between 0 and 1, found 1.5"),
        ([*PLAN, "--time-limit", "0"], "the time limit must be a positive number of seconds, found 0.0"),
        ([*PLAN, "--out", "none/plans.mw"], "cannot write none/plans.mw: there is no folder none"),
        ([*PLAN, "--out", "."], "cannot write .: it is a folder"),
        ([*PLAN, "--picture", "plans.gif"], "cannot write plans.gif: a picture ends in one of .pdf, .png, .svg"),
        ([*PLAN, "--picture", "none/plans.png"], "cannot write none/plans.png: there is no folder none"),
        ([*PLAN, "--out", "plans.mw", "--picture", "plans.gif"], "cannot write plans.gif"),
        (["show", "none.mw"], "there is no file none.mw"),
        (["show", "map.txt"], "map.txt is not a manyways plans file, or is truncated"),
        (["show", "."], ". is a folder, expected a manyways plans file"),
        (["show", "saved.mw", "--picture", "plans.gif"], "cannot write plans.gif: a picture ends in one of"),
        (["verify", "none.mw"], "there is no file none.mw"),
        (["verify", "map.txt"], "map.txt is not a manyways plans file, or is truncated"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
@pytest.mark.usefixtures("saved")
def test_a_mistake_is_answered_with_one_sentence(manyways, here, no_work, arguments, message):
    answer = manyways(*arguments)
    assert answer.code == BAD_INPUT
    assert answer.out == ""
    assert answer.err.startswith(f"manyways: {message}")
    assert len(answer.err.splitlines()) == 1
    assert no_work == []
    assert files(here) == set()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*PLAN, "--k", "x"], "--k"),
        ([*PLAN, "--method", "magic"], "--method"),
        ([*PLAN, "--behaviour", "style"], "--behaviour"),
        ([*PLAN, "--colour", "red"], "--colour"),
        (["plan"], "source"),
        (["paint"], "paint"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_misuse_is_answered_with_the_usage(manyways, here, arguments, message):
    answer = manyways(*arguments)
    assert answer.code == BAD_INPUT
    assert answer.out == ""
    assert message in answer.err
    assert "Traceback" not in answer.err
    assert files(here) == set()


def test_ctrl_c_outside_the_search_is_said_in_one_sentence(manyways, monkeypatch):
    def interrupted(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr("manyways.formats.read", interrupted)
    answer = manyways(*PLAN)
    assert (answer.code, answer.out, answer.err) == (INTERRUPTED, "", "manyways: interrupted\n")


# ---- names that look like formatting ----------------------------------------------------------


@pytest.mark.parametrize("name", ["[red]room", "a [/b] c", "plain [1]"])
def test_names_are_printed_as_they_are(manyways, here, name):
    (here / "world.json").write_text(json.dumps({"rows": ["S.G"], "name": name}))
    answer = manyways("plan", "world.json", "--k", "2", "--method", "frank-wolfe", "--out", "plans.mw")
    assert answer.code == DONE
    assert answer.out.startswith(f"{name}: 2 plans")
    assert manyways("show", "plans.mw").out.startswith(f"{name}: 2 plans")


def test_paths_are_printed_as_they_are(manyways):
    answer = manyways(*PLAN, "--out", "plans[b].mw")
    assert Path("plans[b].mw").exists()
    assert "plans written to plans[b].mw" in answer.words


def test_plans_far_from_the_optimum_come_with_advice(manyways):
    far = manyways("plan", "map.txt", "--k", "2", "--tradeoff", "1000").words
    assert re.search(r"plan 2 gives up \d+ % of the optimal reward; a smaller --tradeoff \(now 1000\)", far)
    assert "gives up" not in manyways("plan", "map.txt", "--k", "2", "--tradeoff", "0").words


# ---- help -------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help_of_every_command_has_an_example(manyways, command, option):
    answer = manyways(command, option)
    assert (answer.code, answer.err) == (DONE, "")
    assert "Example" in answer.words
    assert f"manyways {command} " in answer.words.partition("Example")[2]


def test_help_names_every_command(manyways):
    answer = manyways("--help")
    assert (answer.code, answer.err) == (DONE, "")
    assert set(COMMANDS) <= set(answer.words.split())
    assert "manyways serve nine-rooms:7" in answer.words
    assert "..." not in answer.words.replace("[ARGS]...", ""), "a line that is cut off"


def test_help_tells_all_defaults(manyways):
    text = manyways("plan", "--help").words
    assert "the optimal reward" in text
    assert "long-run average" in text


def test_without_arguments_there_is_help(manyways):
    answer = manyways()
    assert "Usage" in answer.out + answer.err


# ---- as a program of its own ------------------------------------------------------------------


def test_in_a_pipe_there_is_the_answer_alone():
    answer = run_program(*PLAN, "--json")
    assert (answer.code, answer.err) == (DONE, "")
    assert answer.json["objective"] == mw.plan("map.txt", 2, 8.0, method=mw.FrankWolfe()).objective


def test_a_mistake_leaves_no_traceback():
    answer = run_program("plan", "no-such-map.txt")
    assert (answer.code, answer.out) == (BAD_INPUT, "")
    assert answer.err.startswith("manyways: there is no file 'no-such-map.txt'")
    assert len(answer.err.splitlines()) == 1


def test_a_reader_that_has_gone_is_no_mistake(saved):
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ended = subprocess.run([COMMAND, "show", saved], check=False, stdout=writing, stderr=subprocess.PIPE, text=True)
    finally:
        os.close(writing)
    assert ended.returncode in (DONE, -signal.SIGPIPE)
    assert ended.stderr == ""


class Terminal:
    """Runs the command with a terminal for its standard error."""

    def __init__(self, *arguments: str) -> None:
        self._screen, other_end = pty.openpty()
        environment = os.environ | {"TERM": "xterm-256color"}
        self.program = subprocess.Popen(
            [COMMAND, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=other_end, env=environment
        )
        os.close(other_end)
        self.seen = ""

    def watch(self, until: str | None = None) -> None:
        """Read the screen until a pattern shows up on it, or to the end."""
        while until is None or not re.search(until, self.seen):
            try:
                more = os.read(self._screen, 4096)
            except OSError:  # how Linux says that nobody holds the terminal any more
                more = b""
            if not more:
                break
            self.seen += more.decode(errors="replace")

    def press_ctrl_c(self) -> None:
        self.program.send_signal(signal.SIGINT)

    def end(self) -> Answer:
        self.watch()
        out, _ = self.program.communicate(timeout=60)
        os.close(self._screen)
        return Answer(self.program.returncode, out.decode(), self.seen)


def test_on_a_terminal_there_is_a_progress_bar():
    answer = Terminal(*PLAN).end()
    assert answer.code == DONE
    assert re.search("(planning|verifying).*objective", answer.err)
    assert "verifying" not in answer.out
    assert answer.out.startswith("map: 2 plans")


def test_ctrl_c_ends_cleanly_with_the_best_so_far(here):
    terminal = Terminal("plan", "rooms-100:0", "--k", "16", "--out", "plans.mw")
    terminal.watch(until=r"planning.*%  objective")  # the first iteration is under way
    terminal.press_ctrl_c()
    answer = terminal.end()
    assert answer.code == NOT_CONVERGED
    assert "Traceback" not in answer.err
    assert "interrupted" in answer.out
    plans = mw.load("plans.mw")
    assert plans.status == mw.Status.INTERRUPTED
    assert plans.certificate.ok
    assert files(here) == {"plans.mw"}, "no half-written file is left"
