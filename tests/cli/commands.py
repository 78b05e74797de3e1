"""What the tests of the command line share: answers, exit codes, and the command as a program."""

from __future__ import annotations

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

COMMAND = Path(sys.executable).with_name("manyways")
DONE, BAD_INPUT, FAILED, INTERRUPTED = 0, 2, 3, 130
PLAN = ("plan", "map.txt", "--k", "2", "--tradeoff", "8", "--method", "frank-wolfe")


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


def run_program(*arguments: str, **options: Any) -> Answer:
    """Runs the command as a program of its own."""
    ended = subprocess.run([COMMAND, *arguments], check=False, capture_output=True, text=True, **options)
    return Answer(ended.returncode, ended.stdout, ended.stderr)


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {"map.txt", "saved.mw"}


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
