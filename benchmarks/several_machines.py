"""The engine for several machines against one machine, on models of up to 260,000 states.

    python benchmarks/several_machines.py [--only NAME] [--processes 1 2 4]

For each model and number of processes: one `best`, compared with `Sweeps`; a set of k=2, each of whose policies is evaluated
again on one machine, and whose file one machine verifies; and both once more with two processes, to see whether all bits are the
same. Prints one line for each, and ends with an error if anything disagrees.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import manyways as mw
from manyways.formats.writer import write_model
from manyways.polytope import PolicyIteration, Sweeps

HERE = Path(__file__).parent
FLEET = f"{Path(mw.__file__).parent}/gallery/models/fleet.prism?const=W=5"
ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def map_of(side: int) -> mw.MDP:
    """A text map with obstacles of all sizes, like the game maps of MovingAI, from a fixed seed."""
    rng = np.random.default_rng(0)
    cells = np.full((side, side), ".")
    for _ in range(side // 2):
        size = rng.integers(2, side // 8, 2)
        row, column = (int(rng.integers(0, side - part)) for part in size)
        cells[row : row + size[0], column : column + size[1]] = "#"
    cells[:4], cells[-4:], cells[:, :4], cells[:, -4:] = ".", ".", ".", "."
    cells[0, 0], cells[-1, -1] = "S", "G"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"map-{side}.txt"
        file.write_text("\n".join("".join(row) for row in cells) + "\n")
        return mw.read(str(file))


def without_stop(side: int) -> mw.MDP:
    """A walk on a torus, with moves that slip, on which no choice stays where it is."""
    paid = np.random.default_rng(0).normal(size=(side, side))
    moves = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}

    def outcomes(state: tuple[int, int], action: str):
        for name, (down, right) in moves.items():
            target = (state[0] + down) % side, (state[1] + right) % side
            yield (0.85 if name == action else 0.05), target, paid[state]

    return mw.explore((0, 0), lambda _: list(moves), outcomes)


MODELS = {
    "rooms-100": (lambda: mw.read("rooms-100:0"), 1.0),
    "rooms-300": (lambda: mw.read("rooms-300:0"), 1.0),
    "map-512": (lambda: map_of(512), 1.0),
    "fleet (PRISM)": (lambda: mw.read(FLEET), 1.0),
    "torus without stop": (lambda: without_stop(60), 1.0),
    "rooms-100, discounted": (lambda: mw.read("rooms-100:0"), 0.99),
    "map-256, discounted": (lambda: map_of(256), 0.999),
}


def run(processes: int, *words: object) -> dict:
    """The JSON that a command prints in so many processes."""
    command = ["mpirun", "--oversubscribe", "-n", str(processes), sys.executable, *map(str, words)]
    done = subprocess.run(command, env={**os.environ, **ROOT}, capture_output=True, text=True, check=False)
    if not done.stdout.startswith("{"):
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


def compared(name: str, processes: int, path: Path, mdp: mw.MDP, discount: float, alone) -> tuple[list[str], tuple]:
    """What disagrees in one run, and the numbers in which another run must not differ."""
    wrong: list[str] = []
    best = run(processes, HERE / "distributed_best.py", path, "--discount", discount)
    size = float(np.abs(mdp.reward) @ alone.occupancy)
    if best["value"] > alone.bound + 1e-9 * size or alone.value > best["value"] + best["above"] + 1e-9 * size:
        wrong.append("optimum")
    out = path.with_suffix(f".{processes}.mw")
    options = ("--discount", discount) if discount < 1 else ()
    words = ("--engine", "petsc", "--k", 2, "--starts", 1, "--tradeoff", float(f"{size:.3g}"), "--out", out, "--json")
    run(processes, "-m", "manyways", "plan", path, *words, *options)
    plans = mw.load(out)
    if not mw.verify(mdp, plans).ok:
        wrong.append("certificate")
    policies = [np.flatnonzero(policy) for policy in plans.policies]
    polytope = mw.Polytope(mdp, mw.Average() if discount == 1 else mw.Discounted(discount))
    again = np.array([polytope.vertex_of(choices).occupancy for choices in policies])
    rewards = polytope.criterion.values(mdp, again)
    off = float(np.abs(rewards - plans.rewards).max() / np.abs(plans.optimal_reward))
    if off > 1e-8:
        wrong.append("rewards")
    print(
        f"{name:22} {mdp.n_states:8,} {processes}  {best['value']:.11g}  +{best['above']:.0e}  Sweeps {alone.value:.11g} "
        f"+{alone.bound - alone.value:.0e}  rewards off by {off:.0e}  {', '.join(wrong) or 'agree'}",
        flush=True,
    )
    return wrong, (best["value"], best["above"], plans.occupancies.tobytes(), plans.policies.tobytes(), plans.gap)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--only", choices=MODELS)
    arguments.add_argument("--processes", type=int, nargs="+", default=[1, 2, 4])
    given, wrong = arguments.parse_args(), []
    with tempfile.TemporaryDirectory() as folder:
        for name, (make, discount) in MODELS.items():
            if given.only not in (None, name):
                continue
            mdp, path = make(), Path(folder) / "model.h5"
            write_model(mdp, path)
            alone = (PolicyIteration if mdp.n_states < 100 else Sweeps)(mdp, discount).best(np.array(mdp.reward))
            seen = {}
            for processes in [*given.processes, *(n for n in given.processes if n == 2)]:
                found, bits = compared(name, processes, path, mdp, discount, alone)
                if seen.setdefault(processes, bits) != bits:
                    found.append("bits")
                    print(f"{name:22} another run with {processes} processes gives other bits")
                wrong += found
    raise SystemExit(f"{len(wrong)} disagreements" if wrong else 0)


if __name__ == "__main__":
    main()
