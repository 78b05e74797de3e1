"""`manyways choose`: rounds with answers from a pipe and from a terminal, files, and Ctrl-C."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import select
import signal
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import BAD_INPUT, COMMAND, DONE, INTERRUPTED, Answer, files

import manyways as mw

MAP = ("choose", "map.txt", "--k", "3", "--slack", "40%")


@pytest.fixture
def choose(manyways, monkeypatch, here):
    """Runs the command in this process with these answers."""
    del here

    def run(answers: str, *arguments: str) -> Answer:
        monkeypatch.setattr("sys.stdin", io.StringIO(answers))
        return manyways(*(arguments or MAP))

    return run


def conversation(*answers: int) -> mw.Conversation:
    talk = mw.Conversation("map.txt", 3, slack=0.4)
    for answer in answers:
        talk.choose(answer - 1)
    return talk


def test_two_rounds_from_a_pipe(choose, here):
    written = ("--reward", "learned.json", "--policy", "plan.json", "--route", "way.csv")
    answer = choose("2\n1\nq\n", *MAP, "--out", "mine.mwc", *written)
    assert (answer.code, answer.err) == (DONE, "")
    talk = conversation(2, 1)
    assert answer.out.count("Which would you take? [1-3, u = back, q = stop]") == 3
    assert [f"map: round {i}" in answer.out for i in (1, 2, 3, 4)] == [True, True, True, False]
    for one in talk.rounds:
        for title, value in zip(one.plans.titles, one.plans.rewards, strict=True):
            assert f"{value:.2f}" in answer.words
            assert title.split(",")[0].split(" — ")[0] in answer.words
    assert f"your plan after 2 rounds: {talk.plans.titles[talk.rounds[-1].best]}" in answer.words
    assert answer.words.count("(your pick so far)") == 2
    saved = mw.Conversation.load("mine.mwc")
    assert [one.better for one in saved.rounds] == [1, 0, None]
    assert [plan.key for plan in saved.plans] == [plan.key for plan in talk.plans]
    learned = mw.LearnedPreference.load("learned.json", talk.plans.mdp)
    np.testing.assert_array_equal(learned.mean, talk.preference.mean)
    policy = mw.load_policy("plan.json", talk.plans.mdp)
    assert Path("way.csv").read_bytes() == policy.route().to_bytes(".csv")
    np.testing.assert_array_equal(policy.probabilities, talk.plans.policies[talk.rounds[-1].best])
    assert files(here) == {"mine.mwc", "learned.json", "plan.json", "way.csv"}


def test_going_back_and_wrong_answers(choose):
    answer = choose("u\n4\n0\nyes\n\n²\n" + "9" * 30 + "\n3\nU\n2\n", *MAP, "--out", "mine.mwc")
    assert answer.code == DONE
    assert answer.words.count("there is no answer to take back") == 1
    for found in ("4", "0", "yes", "²", "9" * 30):
        assert f"expected a number from 1 to 3, u or q, found '{found}'" in answer.words
    assert [one.better for one in mw.Conversation.load("mine.mwc").rounds] == [1, None]
    assert "your plan after 1 round: " in answer.words, "the end of the input stops"


def test_without_an_answer(choose):
    answer = choose("", *MAP, "--reward", "learned.json", "--policy", "plan.json")
    assert (answer.code, answer.err) == (DONE, "")
    assert "no plan was taken" in answer.out
    assert json.loads(Path("learned.json").read_text())["model"] == "map"
    assert not Path("plan.json").exists()


def test_rounds_are_resumed(choose):
    choose("2\n", *MAP, "--out", "mine.mwc")
    answer = choose("1\n", "choose", "--resume", "mine.mwc", "--reward", "learned.json")
    assert "map: round 1" not in answer.out
    assert "map: round 2" in answer.out
    talk = conversation(2, 1)
    saved = mw.Conversation.load("mine.mwc")
    assert [one.better for one in saved.rounds] == [1, 0, None], "the file goes on, too"
    assert [plan.key for plan in saved.plans] == [plan.key for plan in talk.plans]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give either a source or --resume FILE.mwc"),
        (("map.txt", "--resume", "none.mwc"), "give either a source or --resume FILE.mwc"),
        (("--resume", "none.mwc"), "there is no file none.mwc"),
        (("--resume", "map.txt"), "map.txt is not a manyways conversation file"),
        (("--resume", "none.mwc", "--k", "3", "--seed", "1"), "--k, --seed cannot be used with --resume"),
        (("map.txt", "--k", "1"), "k must be an integer of at least 2, found 1"),
        (("map.txt", "--k", "0"), "k must be an integer of at least 2, found 0"),
        (("map.txt", "--out", "no/mine.mwc"), "there is no folder no"),
        (("map.txt", "--reward", "no/mine.json"), "there is no folder no"),
        (("map.txt", "--policy", "plan.txt"), "a policy ends in one of"),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, tuple) else "",
)
def test_mistakes_are_reported_in_one_sentence(choose, arguments, message):
    answer = choose("", "choose", *arguments)
    assert answer.code == BAD_INPUT
    assert message in answer.err
    assert answer.err.count("\n") == 1


def test_rounds_keep_a_limit_on_the_length_and_what_counts_as_different(choose, here):
    answer = choose("1\n", "choose", "map.txt", "--k", "2", "--longer", "60%", "--apart", "2", "--out", "mine.mwc")
    assert answer.code == DONE
    for one in mw.Conversation.load(here / "mine.mwc").rounds:
        assert one.plans.limits.longer == 0.6
        assert one.plans.behaviour == mw.Near(2)


class Person:
    """Someone at a terminal, who sees what is printed and types."""

    def __init__(self, *arguments: str) -> None:
        self._screen, end = pty.openpty()
        self.program = subprocess.Popen(
            [COMMAND, *arguments],
            stdin=end,
            stdout=end,
            stderr=end,
            env=os.environ | {"TERM": "dumb", "COLUMNS": "120"},
        )
        os.close(end)
        self.seen = ""

    def see(self, pattern: str | None, times: int = 1) -> None:
        while pattern is None or len(re.findall(pattern, self.seen)) < times:
            assert select.select([self._screen], [], [], 60)[0], f"nothing happens after {self.seen}"
            try:
                more = os.read(self._screen, 4096)
            except OSError:  # how Linux says that nobody holds the terminal any more
                more = b""
            if not more:
                assert pattern is None, self.seen
                break
            self.seen += more.decode(errors="replace")

    def type(self, text: str) -> None:
        os.write(self._screen, text.encode())

    def end(self) -> int:
        self.see(None)
        os.close(self._screen)
        return self.program.wait(60)


@pytest.mark.usefixtures("here")
def test_at_a_terminal_until_ctrl_c():
    person = Person(*MAP, "--out", "mine.mwc")
    person.see(re.escape("q = stop]"))
    person.type("2\n")
    person.see(re.escape("q = stop]"), times=2)
    person.program.send_signal(signal.SIGINT)
    assert person.end() == INTERRUPTED
    assert "Traceback" not in person.seen
    assert "your plan after 1 round" in person.seen
    assert "manyways: interrupted" in person.seen
    assert [one.better for one in mw.Conversation.load("mine.mwc").rounds] == [1, None]


def test_ctrl_c_while_the_next_plans_are_computed(choose, monkeypatch):
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(mw.Conversation, "choose", interrupted)
    answer = choose("2\n1\n", *MAP, "--out", "mine.mwc")
    assert answer.code == INTERRUPTED
    assert "no plan was taken" in answer.out
    assert [one.better for one in mw.Conversation.load("mine.mwc").rounds] == [None]


@pytest.mark.usefixtures("here")
def test_bytes_that_are_no_text():
    ended = subprocess.run([COMMAND, *MAP], check=False, input=b"\xff\xfe\nq\n", capture_output=True)
    assert ended.returncode == DONE
    assert b"Traceback" not in ended.stderr
    assert b"expected a number from 1 to 3" in ended.stdout


def test_help_has_examples(manyways):
    answer = manyways("choose", "--help")
    assert answer.code == DONE
    assert "manyways choose nine-rooms:0 --out mine.mwc" in " ".join(answer.out.split())
