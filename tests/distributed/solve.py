"""Solve all models of a folder in several processes: mpirun -n 2 python solve.py FOLDER OUT.

FOLDER has models 0.h5, 1.h5, ... and discounts.json; OUT receives, for each model and each of its costs, value, bound and the
whole occupancy, or the error.
"""

import json
import sys
from pathlib import Path

import numpy as np

from manyways.distributed.checks import upper_bound, values_of
from manyways.distributed.oracle import SharedOracle
from manyways.distributed.part import ModelPart
from manyways.distributed.team import Team
from manyways.errors import ManywaysError
from manyways.vectors import plain


def costs_of(n_choices: int, reward: np.ndarray, number: int) -> np.ndarray:
    """The reward itself, or (with another number) something else, the same in every process."""
    return reward if number == 0 else np.random.default_rng(number).normal(size=n_choices)


def solved(team: Team, path: Path, discount: float, found: dict) -> None:
    part = ModelPart(path, team)
    oracle, warm, mine = (
        SharedOracle(part, discount),
        None,
        slice(part.choices_from, part.choices_from + len(part.owner)),
    )
    for number in range(3):
        c = plain(part.reward) if number == 0 else costs_of(part.n_choices, np.empty(0), number)[mine]
        warm = oracle.best(c, warm)
        whole = np.concatenate(team.comm.allgather(np.asarray(warm.occupancy)))
        again = upper_bound(part, discount, c, values_of(warm))
        found[f"{path.stem}/{number}"] = np.concatenate([[warm.value, warm.bound, again], whole])


if __name__ == "__main__":
    folder, out = Path(sys.argv[1]), Path(sys.argv[2])
    discounts, team, found = json.loads((folder / "discounts.json").read_text()), Team(), {}
    for name, discount in discounts.items():
        try:
            solved(team, folder / f"{name}.h5", discount, found)
        except ManywaysError as error:
            found[f"{name}/error"] = np.array(str(error))
    if team.rank == 0:
        np.savez(out, **found)
