"""Benchmarks: how fast, compared with what, as ratios measured in one run.

Machines differ and are noisy, so nothing here is judged in seconds: each part times this program and what it
is compared with on the same model, in the same run, and reports the best of a few repetitions of each.
`benchmarks/README.md` says which part shows what.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import ndimage, sparse
from scipy.optimize import linprog

from manyways.behaviours import StateActions
from manyways.formats.drn import write_drn
from manyways.formats.explicit_text import REWARD
from manyways.formats.writer import write_model
from manyways.model.mdp import MDP
from manyways.objectives import MeanDivergence
from manyways.planning import plan_or_interrupt
from manyways.polytope import Discounted, Polytope
from manyways.types import Bools, Floats
from manyways.worlds import four_rooms, nine_rooms, tiled_rooms

Row = dict[str, Any]


@dataclass(frozen=True)
class Part:
    """One benchmark: what it shows, and how to run it."""

    title: str
    run: Callable[[list[int]], list[Row]]


def fastest(*works: Callable[[], Any], rounds: int = 3) -> list[float]:
    """Seconds of the fastest of a few runs of each, taken in turns: what slows the machine down for a while slows
    down all of them."""
    times = np.empty((rounds, len(works)))
    for row in times:
        for i, work in enumerate(works):
            began = time.perf_counter()
            work()
            row[i] = time.perf_counter() - began
    return times.min(axis=0).tolist()


def perturbed(mdp: MDP, visited: Floats, seed: int) -> Floats:
    """Costs as a method would ask next: the reward, changed on a fifth of the choices in visited states."""
    rng = np.random.default_rng(seed)
    near = np.maximum.reduceat(visited > 1e-9, mdp.first_choice[:-1])[mdp.choice_state]
    return mdp.reward + 4.0 * rng.uniform(-3, 0.35, mdp.n_choices) * (near & (rng.random(mdp.n_choices) < 0.2))


def cold_lp(mdp: MDP, c: Floats) -> Floats:
    """The oracle as the paper describes it: one linear program from scratch, by scipy's HiGHS."""
    by_state = sparse.csr_array((np.ones(mdp.n_choices), (mdp.choice_state, np.arange(mdp.n_choices))))
    balance = sparse.csr_array(by_state - mdp.transitions.T)
    rows = sparse.csr_array(sparse.vstack([balance, np.ones((1, mdp.n_choices))]))
    right = np.append(np.zeros(mdp.n_states), 1.0)
    return np.maximum(linprog(-c, A_eq=rows, b_eq=right, method="highs").x, 0.0)  # HiGHS may leave -1e-10


def literal_frank_wolfe(mdp: MDP, k: int, tradeoff: float, seed: int) -> float:
    """Algorithm 2 with a cold linear program per plan and iteration; returns the objective reached."""
    polytope, objective = Polytope(mdp), MeanDivergence(tradeoff).on(mdp, StateActions().on(mdp))
    x = np.stack([polytope.sample(np.random.default_rng([seed, i])) for i in range(k)])
    for _ in range(31):
        gradient = objective.gradient(x)
        direction = np.stack([cold_lp(mdp, row) for row in gradient]) - x
        if (direction * gradient).sum() <= 1e-3:
            break
        size, value = 1.0, objective.value(x)
        while size > 1e-6 and objective.value(x + size * direction) <= value:
            size /= 2
        x = x + size * direction
    return objective.value(x)


def against_the_paper(_: list[int]) -> list[Row]:
    """(a) The default call and one cold LP, and Algorithm 2 with cold LPs, on the paper's worlds."""
    rows = []
    for make, k in ((four_rooms, 2), (nine_rooms, 6)):
        for seed in range(3):
            mdp = make(seed)
            plan_or_interrupt(mdp, k, 8.0)
            lp, ours = fastest(
                lambda mdp=mdp: cold_lp(mdp, mdp.reward), lambda mdp=mdp, k=k: plan_or_interrupt(mdp, k, 8.0), rounds=15
            )
            began = time.perf_counter()
            reached = literal_frank_wolfe(mdp, k, 8.0, 0)
            literal = time.perf_counter() - began
            rows.append(
                {
                    "world": mdp.name,
                    "k": k,
                    "plan / cold LP": ours / lp,
                    "Algorithm 2, cold LPs / plan": literal / ours,
                    "objective, plan": plan_or_interrupt(mdp, k, 8.0).objective,
                    "objective, Algorithm 2": reached,
                }
            )
    return rows


def against_others(sizes: list[int]) -> list[Row]:
    """(b) One `best` against other solvers, on the same model; those that are installed."""
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
        # Apart from these: a solve of half a millisecond right after an LP would wait for its data, not compute.
        (lp,) = fastest(lambda m=mdp: cold_lp(m, m.reward), rounds=15 if size < 50 else 1)
        row = {"model": mdp.name, "HiGHS cold / best cold": lp / cold, "HiGHS cold / best warm": lp / warm}
        (ours,) = fastest(lambda p=discounted, c=mdp.reward: p.best(c), rounds=7)
        for name, other in (("quantecon", _quantecon), ("mdpsolver", _mdpsolver)):
            seconds = other(mdp)
            row[f"{name} / best (discounted)"] = "not installed" if seconds is None else seconds / ours
        seconds = _storm(mdp)
        row["storm / best cold"] = "not installed" if seconds is None else seconds / cold
        rows.append(row)
    return rows


def growth(sizes: list[int]) -> list[Row]:
    """(c) One `best`, cold and warm, over the size of the model."""
    rows = []
    tiny = tiled_rooms(19)
    Polytope(tiny).best(tiny.reward)  # compiled before anything is timed
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


def number_of_plans(_: list[int]) -> list[Row]:
    """(d) The cost of k."""
    mdp = nine_rooms(0)
    plan_or_interrupt(mdp, 2, 8.0)
    counts = (2, 4, 8, 16)
    times = fastest(*(lambda k=k: plan_or_interrupt(mdp, k, 8.0) for k in counts))
    return [{"k": k, "time / time of k=2": seconds / times[0]} for k, seconds in zip(counts, times, strict=True)]


def start_up(_: list[int]) -> list[Row]:
    """(e) Import, help, and the first call with a cold and with a warm numba cache."""
    call = "import manyways as mw; mw.plan('four-rooms:0', 2, 8.0)"
    rows = [
        {"what": "python -c pass", "s": _run("pass")},
        {"what": "import manyways", "s": _run("import manyways")},
        {"what": "manyways --help", "s": fastest(lambda: _manyways("--help"))[0]},
    ]
    first = second = float("inf")
    for _round in range(3):
        with tempfile.TemporaryDirectory() as cache:
            first = min(first, _run(call, rounds=1, NUMBA_CACHE_DIR=cache))
            second = min(second, _run(call, rounds=2, NUMBA_CACHE_DIR=cache))
    rows += [{"what": "first plan, cold cache", "s": first}, {"what": "first plan, warm cache", "s": second}]
    return [*rows, {"what": "compiling costs", "s": first - second}]


def memory(sizes: list[int]) -> list[Row]:
    """(f) Peak memory of one `best`, in a process of its own."""
    code = (
        "import sys; from manyways.worlds import tiled_rooms; from manyways.polytope import Polytope\n"
        "m = tiled_rooms(int(sys.argv[1])); Polytope(m).best(m.reward)\n"
        "from manyways.planning import memory_needed\n"
        "peak = open('/proc/self/status').read().split('VmHWM:')[1].split()[0]\n"  # rusage counts the parent's too
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
    """(g) The paper's tradeoff study with one worker and with two, each a command of its own."""

    def timed(workers: int) -> float:
        with tempfile.TemporaryDirectory() as folder:
            command = ("paper", "tradeoff", "--workers", str(workers), "--out", folder)
            return fastest(lambda: _manyways(*command), rounds=1)[0]

    one, two = timed(1), timed(2)
    return [{"study": "tradeoff", "one worker, s": one, "two workers, s": two, "two / one": two / one}]


def reading(sizes: list[int]) -> list[Row]:
    """(h) Reading files, each in a process of its own, over their size: models of a quarter and whole, square maps.

    In full it takes models of a million choices and maps of 512 x 512, with `sizes` that are all below 100 their
    largest instead of the 512.
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


def _read_each(sources: list[Any], best: bool = False) -> list[Row]:
    """A row for each source, in the order of their sizes, each about four times as large as the one before it."""
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
        answers = [subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(3)]
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


def scattered_model(n_states: int) -> MDP:
    """Four choices in each state, of four transitions each, with probabilities and rewards of all their digits."""
    rng = np.random.default_rng(0)
    state, action = np.divmod(np.arange(4 * n_states), 4)
    target = (state[:, None] + np.array([1, 2, 3, 5]) * (1 + action)[:, None]) % n_states
    begin = np.arange(0, target.size + 1, 4)
    weights = rng.dirichlet(np.ones(4), len(target)).ravel()
    matrix = sparse.csr_array((weights, target.ravel(), begin), shape=(len(target), n_states))
    labels = {"odd": np.arange(n_states) % 2 == 1}
    return MDP.from_csr(
        matrix, rng.random(len(target)), np.arange(0, len(target) + 1, 4), actions=action, labels=labels
    )


def obstacles(side: int) -> Bools:
    """(side, side) a map with rectangles in the way, its free cells all connected."""
    rng = np.random.default_rng(side)
    blocked = np.zeros((side, side), bool)
    for top, left, height, width in rng.integers(1, [side, side, side // 8 + 2, side // 8 + 2], (40, 4)):
        blocked[top : top + height, left : left + width] = True
    parts = np.zeros(blocked.shape, np.int32)
    ndimage.label(~blocked, output=parts)
    return parts != 1 + np.argmax(np.bincount(parts.ravel())[1:])


def write_maps(blocked: Bools, stem: Path) -> tuple[str, str]:
    """The map as a MovingAI and as a nav2 map; their sources, from the first free cell to the last."""
    height, width = blocked.shape
    text = "\n".join("".join(row) for row in np.where(blocked, "@", "."))
    stem.with_suffix(".map").write_text(f"type octile\nheight {height}\nwidth {width}\nmap\n{text}\n")
    pixels = np.where(blocked, 0, 254).astype(np.uint8).tobytes()
    stem.with_suffix(".pgm").write_bytes(f"P5\n{width} {height}\n255\n".encode() + pixels)
    stem.with_suffix(".yaml").write_text(
        f"image: {stem.name}.pgm\nresolution: 0.05\norigin: [0, 0, 0]\nnegate: 0\n"
        "occupied_thresh: 0.65\nfree_thresh: 0.196\n"
    )
    (y, x), (bottom, right) = np.argwhere(~blocked)[[0, -1]].tolist()
    ends = f"start={x},{y}&goal={right},{bottom}"
    return f"{stem}.map?{ends}", f"{stem}.yaml?unit=cells&{ends}"


PARTS = {
    "paper": Part("The default call against the paper's algorithm with cold LPs", against_the_paper),
    "others": Part("One `best` against other solvers", against_others),
    "growth": Part("One `best` over the size of the model", growth),
    "plans": Part("The cost of k", number_of_plans),
    "start": Part("Start-up", start_up),
    "memory": Part("Peak memory of one `best`", memory),
    "studies": Part("Workers on the paper's tradeoff study", studies),
    "reading": Part("Reading files", reading),
}


def environment() -> str:
    """One line that says where the figures were measured."""
    from importlib.metadata import version

    versions = ", ".join(f"{name} {version(name)}" for name in ("manyways", "numpy", "scipy", "numba", "highspy"))
    return f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, {versions}"


def markdown(title: str, rows: list[Row]) -> str:
    """A part's rows as a Markdown table."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    lines = [f"## {title}", "", f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    lines += [f"| {' | '.join(_shown(row.get(name, '')) for name in columns)} |" for row in rows]
    return "\n".join(lines) + "\n"


def draw_growth(rows: list[Row], path: Path) -> None:
    """The growth as a log-log plot."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullFormatter

    figure = Figure(figsize=(6, 4.2), layout="constrained")
    panel = figure.subplots()
    choices = [row["choices"] for row in rows]
    for kind, colour in (("cold", "#08306b"), ("warm", "#3182bd")):
        panel.loglog(choices, [row[f"{kind} s"] for row in rows], "o-", color=colour, label=f"best, {kind}")
    start = rows[0]["cold s"]
    for power, style in ((1.0, ":"), (1.5, "--")):
        guide = [start * (n / choices[0]) ** power for n in choices]
        panel.loglog(choices, guide, style, color="grey", linewidth=1, label=f"choices^{power:g}")
    panel.xaxis.set_minor_formatter(NullFormatter())
    panel.set_xlabel("choices (state-action pairs)")
    panel.set_ylabel("seconds")
    panel.set_title("One oracle call on tiled rooms")
    panel.legend(frameon=False)
    figure.savefig(path, dpi=130)


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.2e}" if 0 < abs(value) < 1e-3 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _run(code: str, rounds: int = 5, **variables: str) -> float:
    command = [sys.executable, "-c", code]
    return fastest(lambda: subprocess.run(command, check=True, env=os.environ | variables), rounds=rounds)[0]


def _manyways(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "manyways", *arguments], check=True, stdout=subprocess.DEVNULL)


def _quantecon(mdp: MDP) -> float | None:
    try:
        from quantecon.markov import DiscreteDP  # pyright: ignore[reportMissingImports]
    except ImportError:
        return None
    model = DiscreteDP(mdp.reward, sparse.csr_matrix(mdp.transitions), 0.99, mdp.choice_state, mdp.actions)
    model.solve(method="policy_iteration")
    return fastest(lambda: model.solve(method="policy_iteration"))[0]


def _mdpsolver(mdp: MDP) -> float | None:
    try:
        import mdpsolver  # pyright: ignore[reportMissingImports]
    except ImportError:
        return None
    matrix, first = mdp.transitions, mdp.first_choice
    span = [range(first[s], first[s + 1]) for s in range(mdp.n_states)]
    rows = [[matrix.indptr[x : x + 2] for x in own] for own in span]
    weights = [[matrix.data[a:b].tolist() for a, b in own] for own in rows]
    columns = [[matrix.indices[a:b].tolist() for a, b in own] for own in rows]
    rewards = [[float(mdp.reward[x]) for x in own] for own in span]
    models = [mdpsolver.model() for _ in range(3)]  # a model solved twice goes on from its solution
    for model in models:
        model.mdp(discount=0.99, rewards=rewards, tranMatProbs=weights, tranMatColumns=columns)
    fresh = iter(models)
    return fastest(lambda: next(fresh).solve(tolerance=1e-9), rounds=len(models))[0]


def _storm(mdp: MDP) -> float | None:
    try:
        import stormpy  # pyright: ignore[reportMissingImports]
    except ImportError:
        return None
    with tempfile.TemporaryDirectory() as folder:
        write_drn(mdp, Path(folder) / "model.drn")
        model = stormpy.build_model_from_drn(str(Path(folder) / "model.drn"))
    formula = stormpy.parse_properties(f'R{{"{REWARD}"}}max=? [LRA]')[0]
    return fastest(lambda: stormpy.model_checking(model, formula))[0]


def run(parts: list[str], sizes: list[int], folder: Path | None, show: Callable[[str], None]) -> dict[str, list[Row]]:
    """Run the named parts, showing each as it ends; write RESULTS.md, results.json and growth.png to `folder`."""
    results: dict[str, list[Row]] = {}
    sections = []
    for name in parts:
        results[name] = PARTS[name].run(sizes)
        sections.append(markdown(PARTS[name].title, results[name]))
        show(sections[-1])
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        command = f"manyways bench {' '.join(parts)} --sizes {','.join(map(str, sizes))} --out {folder}"
        head = f"# Results\n\n{time.strftime('%Y-%m-%d')}; {environment()}.\n\nCommand: `{command}`\n"
        (folder / "RESULTS.md").write_text("\n".join([head, *sections]))
        (folder / "results.json").write_text(json.dumps(results, indent=1, default=float) + "\n")
        if "growth" in results:
            draw_growth(results["growth"], folder / "growth.png")
    return results
