"""What several processes do for the tests: mpirun -n 2 python work.py FOLDER OUT.

FOLDER has models in .h5 files and jobs.json, which says what to do with which of them; OUT receives answers.npz, with whole
vectors, and the plan files. All of it is done by one start of the processes, because a start takes longer than most jobs.
"""

import json
import sys
from pathlib import Path

import numpy as np

import manyways as mw
from manyways.distributed.checks import upper_bound, values_of
from manyways.distributed.oracle import SharedOracle
from manyways.distributed.part import ModelPart
from manyways.distributed.planning import plan_together
from manyways.distributed.preferences import preferences_of, representative_on
from manyways.distributed.team import Team
from manyways.distributed.walk import walk_on
from manyways.errors import ManywaysError
from manyways.vectors import plain, shared


def costs_of(n_choices: int, reward: np.ndarray, number: int) -> np.ndarray:
    """The reward itself, or (with another number) something else, the same in every process."""
    return reward if number == 0 else np.random.default_rng(number).normal(size=n_choices)


def how_many_costs(name: str) -> int:
    """Where policies hardly ever change from loop to loop, only the reward is sure to be solved; see docs/scaling.md."""
    return 1 if name == "far-loops" else 3


def plans_of(count: int, n_choices: int) -> np.ndarray:
    """(count, N) distributions over choices, the same in every process."""
    given = np.random.default_rng(0).random((count, n_choices))
    return given / given.sum(axis=1, keepdims=True)


SETTINGS = {
    "tradeoff": {"tradeoff": 8.0},
    "limits": {"slack": 0.05, "behaviour": mw.States()},
    "near": {"tradeoff": 8.0, "behaviour": mw.Near(3)},
    "preferences": {"objective": mw.Representative(draws=60)},
    "discounted": {"tradeoff": 8.0, "criterion": mw.Discounted(0.99), "time_limit_s": 0.001},
}


class Work:
    """Models that several processes share, and what they find about them."""

    def __init__(self, folder: Path, out: Path) -> None:
        self.folder, self.out, self.team = folder, out, Team()
        self.found: dict[str, np.ndarray] = {}

    def part(self, name: str) -> tuple[ModelPart, slice]:
        """The part of a model that this process has, and where its choices are in the whole model."""
        part = ModelPart(self.folder / f"{name}.h5", self.team)
        return part, slice(part.choices_from, part.choices_from + len(part.owner))

    def whole(self, own: np.ndarray) -> np.ndarray:
        return np.concatenate(self.team.comm.allgather(np.asarray(own)), axis=-1)

    def solve(self, name: str, discount: float) -> None:
        try:
            part, mine = self.part(name)
            oracle, warm = SharedOracle(part, discount), None
            for number in range(how_many_costs(name)):
                c = plain(part.reward) if number == 0 else costs_of(part.n_choices, np.empty(0), number)[mine]
                warm = oracle.best(c, warm)
                again = upper_bound(part, discount, c, values_of(warm))
                whole = self.whole(warm.occupancy)
                self.found[f"{name}/{number}"] = np.concatenate([[warm.value, warm.bound, again], whole])
        except ManywaysError as error:
            self.found[f"{name}/error"] = np.array(str(error))

    def walk(self, name: str, radius: float) -> None:
        part, mine = self.part(name)
        walk = walk_on(part, radius)
        here = slice(walk.places_of.lo, walk.places_of.lo + walk.places_of.own)
        forward = walk.forward(plans_of(2, part.n_choices)[:, mine])
        backward = walk.backward(np.random.default_rng(1).normal(size=(2, walk.places))[:, here])
        self.found |= {
            f"{name}/{radius}/forward": self.whole(forward),
            f"{name}/{radius}/backward": self.whole(backward),
        }
        self.found[f"{name}/{radius}/counts"] = np.array([walk.places, walk.steps, walk.most_terms])

    def draw(self, name: str) -> None:
        part, mine = self.part(name)
        worth = representative_on(preferences_of(mw.Representative(unit=0.5), part), part, walk_on(part, 1))
        x = shared(plans_of(3, part.n_choices)[:, mine].copy(), self.team)
        self.found |= {f"{name}/worths": worth.worths(x), f"{name}/gradient": self.whole(worth.gradient(x))}

    def plan(self, name: str, settings: str) -> None:
        method = mw.VertexAscent(starts=1)
        path = self.folder / f"{name}.h5"
        plan_together(path, 2, method=method, out=self.out / f"{settings}.mw", **SETTINGS[settings])


if __name__ == "__main__":
    work = Work(Path(sys.argv[1]), Path(sys.argv[2]))
    for kind, *arguments in json.loads((work.folder / "jobs.json").read_text()):
        getattr(work, kind)(*arguments)
    if work.team.rank == 0:
        np.savez(work.out / "answers.npz", **work.found)
