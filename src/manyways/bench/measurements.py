"""The benchmarks. Each returns rows of ratios, times or sizes; those that do not depend on the sizes ignore them."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from manyways.bench.models import obstacles, perturbed, scattered_model, write_maps
from manyways.bench.rivals import (
    cold_lp,
    seconds_of_mdpsolver,
    seconds_of_quantecon,
    seconds_of_storm,
)
from manyways.bench.timing import fastest, run_manyways, time_python
from manyways.formats.writer import write_model
from manyways.kernels.threads import at_most
from manyways.model.mdp import MDP
from manyways.planning import plan_or_interrupt
from manyways.plans import PlanSet
from manyways.plans.proofs import prove_set
from manyways.plans.verification import claim_of, examine, verify
from manyways.polytope import Answer, Discounted, Polytope
from manyways.polytope.large_sweeps import LargeSweeps
from manyways.polytope.renumbering import RenumberedSweeps
from manyways.worlds import four_rooms, nine_rooms, tiled_rooms

Row = dict[str, Any]
REPEATS = 3
"""How often each file is read; the fastest time counts."""


def against_others(sizes: list[int]) -> list[Row]:
    """One `best` against those other solvers that are installed, on the same model."""
    rows = []
    for size in [n for n in sizes if n <= 100]:
        mdp = tiled_rooms(size)
        polytope, discounted = Polytope(mdp), Polytope(mdp, Discounted(0.99))
        first = polytope.best(mdp.reward)
        discounted.best(mdp.reward)
        cost = perturbed(mdp, first.occupancy, 1)
        cold, warm = fastest(
            lambda p=polytope, c=mdp.reward: p.best(c),
            lambda p=polytope, c=cost, v=first: p.best(c, v),
            rounds=50 if size < 50 else 7,
        )
        # Not in turns with these: after an LP, a solve of half a millisecond would mostly wait for its data to be
        # loaded into the processor's cache again.
        (lp,) = fastest(lambda m=mdp: cold_lp(m, m.reward), rounds=15 if size < 50 else 1)
        row = {"model": mdp.name, "HiGHS cold / best cold": lp / cold, "HiGHS cold / best warm": lp / warm}
        (ours,) = fastest(lambda p=discounted, c=mdp.reward: p.best(c), rounds=7)
        for name, other in (("quantecon", seconds_of_quantecon), ("mdpsolver", seconds_of_mdpsolver)):
            seconds = other(mdp)
            row[f"{name} / best (discounted)"] = "not installed" if seconds is None else seconds / ours
        seconds = seconds_of_storm(mdp)
        row["storm / best cold"] = "not installed" if seconds is None else seconds / cold
        rows.append(row)
    return rows


def growth(sizes: list[int]) -> list[Row]:
    """One `best`, cold and warm, over the size of the model."""
    rows = []
    tiny = tiled_rooms(19)
    Polytope(tiny).best(tiny.reward)  # so that compiling is not timed
    for size in sizes:
        mdp = tiled_rooms(size)
        polytope = Polytope(mdp)
        first = polytope.best(mdp.reward)
        cost = perturbed(mdp, first.occupancy, 1)
        cold, warm = fastest(
            lambda p=polytope, c=mdp.reward: p.best(c),
            lambda p=polytope, c=cost, v=first: p.best(c, v),
            rounds=7 if size <= 100 else 3,
        )
        row = {"model": mdp.name, "choices": mdp.n_choices, "cold s": cold, "warm s": warm}
        if rows:
            step = np.log(mdp.n_choices / rows[-1]["choices"])
            row |= {"cold exponent": np.log(cold / rows[-1]["cold s"]) / step}
            row |= {"warm exponent": np.log(warm / rows[-1]["warm s"]) / step}
        rows.append(row | {"proved within": (first.bound - first.value) / abs(first.value)})
    return rows


def threads(sizes: list[int]) -> list[Row]:
    """One `best` on two threads against one, and against passes one after the other, for the long-run average."""
    rows = []
    for size in [n for n in sizes if n >= 300]:
        mdp = tiled_rooms(size)
        polytope = Polytope(mdp)
        first = polytope.best(mdp.reward)
        cost = perturbed(mdp, first.occupancy, 1)
        solves = (lambda p=polytope, c=mdp.reward: p.best(c)), (lambda p=polytope, c=cost, v=first: p.best(c, v))
        alone = [partial(_on_threads, 1, solve) for solve in solves]
        together = [partial(_on_threads, 2, solve) for solve in solves]
        single = Polytope(mdp, oracle=OnePassAtATime)
        before = single.best(mdp.reward)
        cold, cold_on_two, warm, warm_on_two, cold_single, warm_single = fastest(
            alone[0],
            together[0],
            alone[1],
            together[1],
            lambda p=single, c=mdp.reward: p.best(c),
            lambda p=single, c=cost, v=before: p.best(c, v),
            rounds=5,
        )
        row = {"model": mdp.name, "cold, one thread / two": cold / cold_on_two}
        row |= {"warm, one thread / two": warm / warm_on_two}
        row |= {"cold, one pass at a time / two threads": cold_single / cold_on_two}
        row |= {"warm, one pass at a time / two threads": warm_single / warm_on_two}
        rows.append(
            row | {"the same bits": all(_same_bits(one(), two()) for one, two in zip(alone, together, strict=True))}
        )
    return rows


class OnePassAtATime(RenumberedSweeps):
    """The oracle of large models, with passes over all states one after the other, in one thread."""

    def oracle_of(self, mdp: MDP) -> LargeSweeps:
        return LargeSweeps(mdp, 1.0)


def _on_threads(most: int, solve: Callable[[], Answer]) -> Answer:
    with at_most(most):
        return solve()


def _same_bits(a: Answer, b: Answer) -> bool:
    return np.array_equal(a.occupancy, b.occupancy) and (a.value, a.bound) == (b.value, b.bound)


def certificates(sizes: list[int]) -> list[Row]:
    """The time of the certificate and of `verify`, relative to the whole call that makes them."""
    largest = min(max(sizes), 100)
    rows = []
    for mdp, k in ((four_rooms(0), 2), (nine_rooms(0), 6), (tiled_rooms(largest), 4)):
        plans = plan_or_interrupt(mdp, k, 8.0)
        polytope = Polytope(mdp)
        _certify(polytope, plans)  # its optimum is found before anything is timed
        whole, certificate, again = fastest(
            lambda mdp=mdp, k=k: plan_or_interrupt(mdp, k, 8.0),
            lambda polytope=polytope, plans=plans: _certify(polytope, plans),
            lambda mdp=mdp, plans=plans: verify(mdp, plans),
            rounds=9 if mdp.n_states < 1000 else 3,
        )
        rows.append(
            {
                "model": mdp.name,
                "k": k,
                "certificate / whole call": certificate / whole,
                "verify / whole call": again / whole,
            }
        )
    return rows


def _certify(polytope: Polytope, plans: PlanSet) -> None:
    """All that `plan` does after its search."""
    _, claim = claim_of(plans, plans.mdp)
    proof, proved = prove_set(polytope, claim.objective, plans.policies, plans.occupancies)
    examine(claim, plans.policies, plans.occupancies, proof, proved)


def start_up(_: list[int]) -> list[Row]:
    """Import, help, and the first call with a cold and with a warm numba cache."""
    call = "import manyways as mw; mw.plan('four-rooms:0', 2, 8.0)"
    rows = [
        {"what": "python -c pass", "s": time_python("pass")},
        {"what": "import manyways", "s": time_python("import manyways")},
        {"what": "manyways --help", "s": fastest(lambda: run_manyways("--help"))[0]},
    ]
    first = second = float("inf")
    for _round in range(3):
        with tempfile.TemporaryDirectory() as cache:
            first = min(first, time_python(call, rounds=1, NUMBA_CACHE_DIR=cache))
            second = min(second, time_python(call, rounds=2, NUMBA_CACHE_DIR=cache))
    rows += [{"what": "first plan, cold cache", "s": first}, {"what": "first plan, warm cache", "s": second}]
    return [*rows, {"what": "compiling costs", "s": first - second}]


def memory(sizes: list[int]) -> list[Row]:
    """Peak memory of one `best`, in a process of its own."""
    code = (
        "import sys; from manyways.worlds import tiled_rooms; from manyways.polytope import Polytope\n"
        "m = tiled_rooms(int(sys.argv[1])); Polytope(m).best(m.reward)\n"
        "from manyways.planning import memory_needed\n"
        "peak = open('/proc/self/status').read().split('VmHWM:')[1].split()[0]\n"  # rusage includes the parent's peak
        "print(m.n_choices, peak, memory_needed(m, 4))"
    )
    rows = []
    for size in sizes:
        done = subprocess.run([sys.executable, "-c", code, str(size)], capture_output=True, text=True, check=True)
        choices, kilobytes, needed = map(int, done.stdout.split())
        row = {"model": f"rooms-{size}:0", "choices": choices, "peak of one best, MiB": kilobytes / 1024}
        rows.append(row | {"estimate before planning k=4, MiB": needed / 2**20})
    return rows


def studies(_: list[int]) -> list[Row]:
    """The paper's tradeoff study with one worker and with two, each in a process of its own."""

    def timed(workers: int) -> float:
        with tempfile.TemporaryDirectory() as folder:
            command = ("paper", "tradeoff", "--workers", str(workers), "--out", folder)
            return fastest(lambda: run_manyways(*command), rounds=1)[0]

    one, two = timed(1), timed(2)
    return [{"study": "tradeoff", "one worker, s": one, "two workers, s": two, "two / one": two / one}]


def reading(sizes: list[int]) -> list[Row]:
    """Reading files over their size, each in a process of its own: models, and square maps.

    The largest map has 512 x 512 cells and the largest model a million choices (four for each such cell). If all
    `sizes` are below 100, the largest of them replaces 512.
    """
    side = 512 if max(sizes) >= 100 else max(sizes)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for n in (side // 2, side):
            mdp = scattered_model(n * n)
            for ending in (".drn", ".tra", ".npz"):
                write_model(mdp, Path(folder) / f"model-{n}{ending}")
        for ending in (".drn", ".tra", ".npz"):
            rows += _read_each([Path(folder) / f"model-{n}{ending}" for n in (side // 2, side)])
        sides = (side // 4, side // 2, side)
        maps = [write_maps(obstacles(n), Path(folder) / f"map-{n}") for n in sides]
        for kind in range(2):
            rows += _read_each([pair[kind] for pair in maps], best=True)
    return rows


def tables(sizes: list[int]) -> list[Row]:
    """Reading a table of a million transitions, against the same model as .npz and parsing the table by pandas, each in a
    process of its own. If all `sizes` are below 100, the table shrinks with the largest of them."""
    side = 250 if max(sizes) >= 100 else max(sizes)
    code = (
        "import sys, time, manyways as mw, pandas; mw.read('four-rooms:0')\n"
        "held = lambda which: int(open('/proc/self/status').read().split(which)[1].split()[0])\n"
        "before, began = held('VmRSS:'), time.perf_counter()\n"
        "(pandas.read_csv if sys.argv[2] == 'pandas' else mw.read)(sys.argv[1])\n"
        "print(time.perf_counter() - began, held('VmHWM:') - before)"
    )
    with tempfile.TemporaryDirectory() as folder:
        mdp, found = scattered_model(side * side), {}
        for ending in (".csv", ".npz"):
            write_model(mdp, Path(folder) / f"model{ending}")
        for what, ending in (("manyways", ".csv"), ("manyways", ".npz"), ("pandas", ".csv")):
            command = [sys.executable, "-c", code, str(Path(folder) / f"model{ending}"), what]
            runs = [subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(REPEATS)]
            found[what, ending] = [min(figures) for figures in zip(*(map(float, r.split()) for r in runs), strict=True)]
    (table, memory), (npz, _), (parsing, _) = found.values()
    row = {"rows": mdp.transitions.nnz, "table, s": table, ".npz, s": npz, "pandas.read_csv, s": parsing}
    return [row | {"table / (.npz + pandas)": table / (npz + parsing), "memory on top, MiB": memory / 1024}]


def _read_each(sources: list[Any], best: bool = False) -> list[Row]:
    """A row for each source. Sources are in the order of their sizes, each about four times as large as the last."""
    code = (
        "import sys, time, manyways as mw; from manyways.polytope import Polytope; mw.read('four-rooms:0')\n"
        "held = lambda which: int(open('/proc/self/status').read().split(which)[1].split()[0])\n"
        "before, began = held('VmRSS:'), time.perf_counter()\n"
        "m = mw.read(sys.argv[1])\n"
        "took, peak = time.perf_counter() - began, held('VmHWM:') - before\n"
        "warm = mw.read('rooms-50:0'); Polytope(warm).best(warm.reward); again = time.perf_counter()\n"
        "len(sys.argv) > 2 and Polytope(m).best(m.reward)\n"
        "print(m.n_choices, m.transitions.nnz, took, peak, time.perf_counter() - again)"
    )
    rows: list[Row] = []
    for source in map(str, sources):
        command = [sys.executable, "-c", code, source, *(["best"] if best else [])]
        answers = [subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(REPEATS)]
        choices, transitions, *figures = zip(*(map(float, answer.split()) for answer in answers), strict=True)
        seconds, kilobytes, solving = map(min, figures)
        row = {
            "file": Path(source.partition("?")[0]).name,
            "choices": int(choices[0]),
            "transitions": int(transitions[0]),
        }
        row |= {"s": seconds, "memory on top, MiB": kilobytes / 1024}
        if rows:
            for what, name in (("choices", "choices"), ("s", "time"), ("memory on top, MiB", "memory")):
                row[f"{name} / {name} before"] = row[what] / (rows[-1][what] or np.nan)
        rows.append(row | ({"then Polytope and best, s": solving} if best else {}))
    return rows
