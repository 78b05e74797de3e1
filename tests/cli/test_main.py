"""The command line as a whole: one sentence for every mistake, help, pipes and terminals."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from typing import Any

import pytest
import typer
from commands import BAD_INPUT, COMMAND, DONE, FAILED, INTERRUPTED, PLAN, Terminal, files, run_program

import manyways as mw
from manyways.cli.program import app

COMMANDS = sorted(typer.main.get_command(app).commands)

pytestmark = pytest.mark.usefixtures("here")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["plan", "nine-room:7"],
            "there is no file 'nine-room:7' and no world of that name; did you mean something like 'nine-rooms:7'?",
        ),
        (
            ["plan", "nine-rooms:x"],
            "nine-rooms: the seed after the colon must be an integer of at least 0, found 'x'",
        ),
        (["plan", "map.txt?size=3"], "map.txt?size=3: unknown setting 'size'"),
        (["plan", "."], ". is a folder, expected a file"),
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
        (["show", "."], ". is a folder, expected a file"),
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


def test_ctrl_c_outside_the_search_is_reported_in_one_sentence(manyways, monkeypatch):
    def interrupted(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr("manyways.formats.read", interrupted)
    answer = manyways(*PLAN)
    assert (answer.code, answer.out, answer.err) == (INTERRUPTED, "", "manyways: interrupted\n")


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


def test_help_shows_all_defaults(manyways):
    text = manyways("plan", "--help").words
    for default in (
        "By default 10%, unless --tradeoff is given",
        "By default preferences, unless --tradeoff or --diversity is given",
        "By default per episode where the model says how episodes end",
        "by default twice that of the best plan",
        "By default state-actions",
    ):
        assert default in text


def test_without_arguments_three_lines_say_how_to_begin(manyways):
    answer = manyways()
    assert (answer.code, answer.err) == (DONE, "")
    lines = answer.out.splitlines()
    assert len(lines) == 3
    for line in lines:
        named = line.partition("manyways ")[2].split()[0]
        assert named in (*COMMANDS, "--help")


def test_in_a_pipe_there_is_the_answer_alone():
    answer = run_program(*PLAN, "--json")
    assert (answer.code, answer.err) == (DONE, "")
    assert answer.json["objective"] == mw.plan("map.txt", 2, 8.0, method=mw.FrankWolfe()).objective


def test_a_mistake_leaves_no_traceback():
    answer = run_program("plan", "no-such-map.txt")
    assert (answer.code, answer.out) == (BAD_INPUT, "")
    assert answer.err.startswith("manyways: there is no file 'no-such-map.txt'")
    assert len(answer.err.splitlines()) == 1


def test_a_closed_pipe_is_not_an_error(saved):
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ended = subprocess.run([COMMAND, "show", saved], check=False, stdout=writing, stderr=subprocess.PIPE, text=True)
    finally:
        os.close(writing)
    assert ended.returncode in (DONE, -signal.SIGPIPE)
    assert ended.stderr == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ("show", "saved.mw"),
        ("show", "saved.mw", "--json"),
        ("verify", "saved.mw"),
        (*PLAN, "--json"),
        ("plan", "--help"),
    ],
    ids=" ".join,
)
@pytest.mark.usefixtures("saved")
def test_output_that_cannot_be_written_is_reported_in_one_sentence(arguments):
    with open("/dev/full", "w") as full:
        ended = subprocess.run([COMMAND, *arguments], check=False, stdout=full, stderr=subprocess.PIPE, text=True)
    assert ended.returncode == BAD_INPUT
    assert ended.stderr == "manyways: cannot write to standard output: No space left on device\n"


def test_a_message_that_cannot_be_written_leaves_the_exit_code():
    with open("/dev/full", "w") as full:
        ended = subprocess.run(
            [COMMAND, "show", "none.mw"], check=False, stdout=subprocess.PIPE, stderr=full, text=True
        )
    assert (ended.returncode, ended.stdout) == (BAD_INPUT, "")


INTERRUPTED_IMPORT = """
import signal, sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == "MODULE":
            sys.meta_path.remove(self)
            signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, Interrupt())
from manyways.cli import main

main()
"""


@pytest.mark.parametrize(
    "module", ["manyways.cli.program", "typer", "manyways.planning", "numpy", "scipy.sparse", "numba", "rich.table"]
)
def test_ctrl_c_while_modules_are_loaded_is_reported_in_one_sentence(module):
    """As if Ctrl-C were pressed at the moment in which a module begins to load."""
    command = [sys.executable, "-c", INTERRUPTED_IMPORT.replace("MODULE", module), "plan", "map.txt"]
    ended = subprocess.run(command, check=False, capture_output=True, text=True)
    assert ended.returncode in (INTERRUPTED, -signal.SIGINT)  # a shell shows both as 130
    assert (ended.stdout, ended.stderr) == ("", "manyways: interrupted\n")


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
    assert answer.code == FAILED
    assert "Traceback" not in answer.err
    assert "interrupted" in answer.out
    plans = mw.load("plans.mw")
    assert plans.status == mw.Status.INTERRUPTED
    assert plans.certificate.ok
    assert files(here) == {"plans.mw"}, "no half-written file is left"


def test_errors_name_options_on_the_command_line_only(manyways, monkeypatch):
    def refuse(*_: Any, **__: Any) -> Any:
        raise mw.SettingError("wrong; ", in_python="use Discounted(0.99)", on_command_line="use --discount 0.99")

    monkeypatch.setattr("manyways.planning.plan", refuse)
    assert manyways(*PLAN).err == "manyways: wrong; use --discount 0.99\n"


def test_help_loads_nothing_heavy():
    heavy = ("numpy", "scipy", "numba", "rich.table", "matplotlib", "starlette", "uvicorn", "jinja2")
    code = f"import sys, manyways.cli.program; print([name for name in {heavy} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout == "[]\n"
