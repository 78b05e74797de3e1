"""What a model of a given size takes on several machines, from constants that were measured on runs in scaling_runs.json.

    python benchmarks/scaling.py --states 1e8 --processes 48 --k 2
    python benchmarks/scaling.py --check

docs/scaling.md explains the terms. `--check` compares the predictions with the runs that were made.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path

RUNS = Path(__file__).with_name("scaling_runs.json")
MIB = 2**20
FIXED_MIB = 232
"""Of each process: Python, numpy, PETSc and compiled kernels."""
SOLVER_BYTES, VECTOR_BYTES = 375, 8
"""Per state, beside the model: the system of a policy, its factors, the vectors of the solver, values and order. And for each
entry of a vector over choices."""
VECTORS, VECTORS_PER_PLAN = 6, 3
"""Vectors over choices that a search has at its peak: some, and some for each plan. Twelve were measured for k=2; how they divide
was not."""
NS_PER_ITERATION = 115
"""Time of one process per own state and inner iteration, everything else of the solve included."""
ITERATIONS, DIAMETER = 307, 2_000
"""Inner iterations of a cold solve at some number of steps across the model; they grow with it at most in proportion."""
WARM, SOLVES = 0.4, 16
"""Time of a warm solve relative to a cold one; solves of a search with k=2."""


@dataclass(frozen=True)
class Model:
    """A model on a map: its size, and how many steps it is across; room worlds by default."""

    states: float
    choices: float = 5.0
    transitions: float = 17.0
    across: float | None = None

    @property
    def diameter(self) -> float:
        return 2 * self.states**0.5 if self.across is None else self.across

    @property
    def bytes_per_state(self) -> float:
        """Of the part of the model in a process: indices of 4 bytes, numbers of 8."""
        return 12 + 16 * self.choices + 12 * self.transitions


def memory_mib(model: Model, processes: int, k: int = 0) -> float:
    """The largest memory of a process: for one `best` (k=0), or for a set of k plans."""
    own = model.states / processes
    vectors = 0 if k == 0 else (VECTORS + VECTORS_PER_PLAN * k) * VECTOR_BYTES * model.choices
    return FIXED_MIB + own * (model.bytes_per_state + SOLVER_BYTES + vectors) / MIB


def inner_iterations(model: Model) -> float:
    """Of a cold solve."""
    return ITERATIONS * model.diameter / DIAMETER


def solve_seconds(model: Model, processes: int, iterations: float | None = None) -> float:
    """Of a cold solve, with a core for each process."""
    count = inner_iterations(model) if iterations is None else iterations
    return count * model.states / processes * NS_PER_ITERATION * 1e-9


def bytes_sent(model: Model) -> float:
    """By a process in one inner iteration, on a map cut into strips: two products with two borders each."""
    return 2 * 2 * 8 * model.states**0.5


def check() -> list[tuple[str, float, float]]:
    """Of each run: what it was, and measured over predicted memory and CPU time."""
    found = []
    for run in json.loads(RUNS.read_text()):
        model = Model(run["states"])
        memory = run["mib"] / memory_mib(model, run["processes"], run["k"])
        time = run["cpu_s"] / solve_seconds(model, run["processes"], run["inner"]) if "cpu_s" in run else float("nan")
        found.append((run["command"], memory, time))
    return found


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--states", type=float, default=1e8)
    arguments.add_argument("--choices", type=float, default=5.0, help="per state")
    arguments.add_argument("--transitions", type=float, default=17.0, help="per state")
    arguments.add_argument("--across", type=float, help="steps across the model; by default those of a square map")
    arguments.add_argument("--processes", type=int, default=48)
    arguments.add_argument("--k", type=int, default=2)
    arguments.add_argument("--check", action="store_true")
    given = arguments.parse_args()
    if given.check:
        for command, memory, time in check():
            print(f"memory {memory:4.2f}  time {time:4.2f}  of the prediction: {command}")
        return
    model = Model(given.states, given.choices, given.transitions, given.across)
    one, plans = (memory_mib(model, given.processes, k) / 1024 for k in (0, given.k))
    cold = solve_seconds(model, given.processes)
    print(f"memory of each process: one best {one:.1f} GiB, k={given.k} {plans:.1f} GiB")
    print(f"memory in all: one best {one * given.processes:.0f} GiB, k={given.k} {plans * given.processes:.0f} GiB")
    print(f"a cold solve: {inner_iterations(model):,.0f} inner iterations, {cold / 60:,.0f} minutes")
    print(f"a set of k=2: about {(1 + WARM * SOLVES) * cold / 3600:.1f} hours")
    print(
        f"each process sends {bytes_sent(model) / 1e6:.2f} MB in an inner iteration of {cold / inner_iterations(model):.2f} s"
    )


if __name__ == "__main__":
    main()
