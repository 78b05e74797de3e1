"""A Dask cluster on this machine, of processes that tests may kill."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Cluster:
    """A Dask scheduler with two workers, each a process of its own on this machine."""

    address: str
    scheduler: subprocess.Popen
    workers: list[subprocess.Popen]


@contextmanager
def dask_cluster(folder: Path) -> Iterator[Cluster]:
    address_file = folder / "scheduler.json"
    quiet = {"cwd": folder, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    local = ["--host", "127.0.0.1", "--no-dashboard"]
    scheduler = [sys.executable, "-m", "distributed.cli.dask_scheduler", *local, "--port", "0"]
    worker = [sys.executable, "-m", "distributed.cli.dask_worker", "--scheduler-file", str(address_file)]
    started = [subprocess.Popen([*scheduler, "--scheduler-file", str(address_file)], **quiet)]
    try:
        wait_for(address_file.exists)
        started += [subprocess.Popen([*worker, *local, "--nthreads", "1", "--no-nanny"], **quiet) for _ in range(2)]
        wait_for(lambda: address_file.read_text().strip().endswith("}"))
        yield Cluster(json.loads(address_file.read_text())["address"], started[0], started[1:])
    finally:
        for program in started:
            program.kill()
            program.wait(timeout=30)


def wait_for(condition: Callable[[], object], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"the condition was not met within {seconds:g} s"
        time.sleep(0.05)
