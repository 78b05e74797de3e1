"""Timing: functions in this process, and commands in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np


def fastest(*works: Callable[[], Any], rounds: int = 3) -> list[float]:
    """The shortest time in seconds of each function over a few rounds.

    Each round runs all functions in turn, so that a temporary slowdown of the machine affects all of them.
    """
    times = np.empty((rounds, len(works)))
    for row in times:
        for i, work in enumerate(works):
            began = time.perf_counter()
            work()
            row[i] = time.perf_counter() - began
    return times.min(axis=0).tolist()


def time_python(code: str, rounds: int = 5, **variables: str) -> float:
    """The shortest time in seconds of a Python process that runs `code` with these environment variables."""
    command = [sys.executable, "-c", code]
    return fastest(lambda: subprocess.run(command, check=True, env=os.environ | variables), rounds=rounds)[0]


def run_manyways(*arguments: str) -> None:
    """Run a manyways command in a process of its own."""
    subprocess.run([sys.executable, "-m", "manyways", *arguments], check=True, stdout=subprocess.DEVNULL)
