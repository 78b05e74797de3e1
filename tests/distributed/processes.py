"""Running the engine in several processes, where PETSc is installed."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

INSTALLED = shutil.which("mpirun") is not None and all(
    importlib.util.find_spec(name) is not None for name in ("mpi4py", "petsc4py")
)
needs_petsc = pytest.mark.skipif(not INSTALLED, reason="PETSc is not installed: 'make petsc' installs it")
COMMAND = Path(sys.executable).with_name("manyways")
TIMEOUT_S = 420
ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",  # else processes that wait keep the others from working
    "OPENBLAS_NUM_THREADS": "1",
}


def started(processes: int | None, *arguments: object, **options) -> subprocess.Popen[str]:
    """A command that mpirun starts in so many processes; or that runs as it is."""
    launched = [] if processes is None else ["mpirun", "--oversubscribe", "-n", str(processes)]
    words = [*launched, *map(str, arguments)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(words, env={**os.environ, **ENVIRONMENT}, **{**pipes, **options})


def run(processes: int | None, *arguments: object, **options) -> subprocess.CompletedProcess[str]:
    """The same to its end."""
    process = started(processes, *arguments, **options)
    try:
        out, err = process.communicate(timeout=TIMEOUT_S)
    finally:
        process.kill()
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)
