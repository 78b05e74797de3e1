"""Which heats the starts of the default method should have: how often a start with each schedule reaches the best known value.

    python benchmarks/heats.py four 17000:17060,18000:18060 --seeds 8
    python benchmarks/heats.py nine 17000:17016,18000:18024 --seeds 2

On each world, every start settles and exchanges actions in busy states, as the best ones of the default method do. A set of starts
fails on a world if all of its starts fail there; that they do so independently of each other is an assumption. The sets
printed contain A, the search of version 0.1.0.
"""

from __future__ import annotations

import argparse
from itertools import combinations

import numpy as np
from joblib import Parallel, delayed

from manyways.behaviours import StateActions
from manyways.bench.search import KINDS, TRADEOFF
from manyways.methods.ascent import Watch
from manyways.methods.climb import Climb, Log
from manyways.methods.vertex_ascent import BUSY, SETTLING
from manyways.objectives import MeanDivergence
from manyways.polytope import Polytope

SCHEDULES = {
    "A": (1.0, 0.35, SETTLING),
    "B": (20.0, 2.0, 0.2),
    "C": (10.0, 1.0, 0.1),
    "D": (5.0, 0.5, 0.05),
    "E": (3.0, 1.0, 0.3),
    "F": (1.0, 0.35),
    "G": (2.0, 0.7, 0.2, 0.05),
    "H": (100.0, 10.0, 1.0, 0.1),
    "I": (0.3, 0.1),
    "J": (10.0, 3.0, 1.0, 0.3, 0.1),
    "K": (0.1,),
    "L": (30.0, 0.3),
    "M": (5.0,),
    "N": (0.03,),
}
GOOD = 0.995
"""A start reaches the best known value if its own is at least this share of it."""


def reached(kind: int, world: int, seed: int) -> list[float]:
    """The objective that a start with each schedule ends with."""
    make, k = KINDS[kind]
    mdp = make(world)
    polytope = Polytope(mdp)
    objective = MeanDivergence(TRADEOFF).on(mdp, StateActions().on(mdp))
    values = []
    for stream, stages in zip(np.random.SeedSequence(seed).spawn(len(SCHEDULES)), SCHEDULES.values(), strict=True):
        climb = Climb(polytope, objective, polytope.optimum, (), k, Log(Watch()))
        climb.run(stages, np.random.default_rng(stream), once=stages[-1] > SETTLING)
        if not climb.settled:
            climb.run((SETTLING,))
        climb.exchange(BUSY)
        values.append(climb.value)
    return values


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("kind", choices=["four", "nine"])
    parser.add_argument("worlds", help="ranges of seeds, such as 17000:17060,18000:18060")
    parser.add_argument("--seeds", type=int, default=2, help="runs on each world")
    parser.add_argument("--best", type=int, default=5, help="how many sets of each size are shown")
    arguments = parser.parse_args()
    kind = ("four", "nine").index(arguments.kind)
    worlds = [w for part in arguments.worlds.split(",") for w in range(*map(int, part.split(":")))]
    jobs = [delayed(reached)(kind, world, seed) for world in worlds for seed in range(arguments.seeds)]
    values = np.array(Parallel(n_jobs=-1)(jobs)).reshape(len(worlds), arguments.seeds, -1)
    failed = (values < GOOD * values.max(axis=(1, 2), keepdims=True)).mean(axis=1)  # (worlds, schedules)
    names = list(SCHEDULES)
    print("share of runs that reach the best known value, by the stages of the start:")
    for name, share in zip(names, 1 - failed.mean(axis=0), strict=True):
        print(f"  {name} {SCHEDULES[name]}: {share:.3f}")
    for size in (3, 4):
        sets = [(0, *rest) for rest in combinations(range(1, len(names)), size - 1)]
        shares = np.array([1 - failed[:, those].prod(axis=1).mean() for those in sets])
        print(f"sets of {size}, best first:")
        for which in np.argsort(-shares, kind="stable")[: arguments.best]:
            print(f"  {', '.join(names[i] for i in sets[which])}: {shares[which]:.4f}")


if __name__ == "__main__":
    main()
