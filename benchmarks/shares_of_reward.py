"""What a slack of 10 % of the reward means as a length, on maps of several sizes with 40 random obstacles.

    python benchmarks/shares_of_reward.py

prints the table of docs/formats.md, in about a minute.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

import manyways as mw
from manyways.bench.models import obstacles, write_maps


def steps_of(mdp: mw.MDP, occupancy: np.ndarray) -> float:
    """The mean number of steps of a way to the goal, without the step that leads back to the start."""
    goal = mdp.labels["goal"][mdp.choice_state]
    return float(occupancy.sum() / occupancy[goal].sum() - 1)


def row(side: int) -> str:
    """A row of the table."""
    with tempfile.TemporaryDirectory() as folder:
        source, _ = write_maps(obstacles(side), Path(folder) / "map")
        mdp = mw.read(source)
    best = mw.plan(mdp, k=1)
    plans = mw.plan(mdp, k=3, slack=0.1, behaviour=mw.Near(2))
    loss = 1 - plans.rewards.min() / plans.optimal_reward
    shortest = steps_of(mdp, best[0].occupancy)
    longer = max(steps_of(mdp, plan.occupancy) for plan in plans) / shortest - 1
    lengths = [plan.route().length for plan in plans]
    goal = mdp.reward[mdp.labels["goal"][mdp.choice_state]].max()
    return (
        f"| {side} x {side} | {goal:.0f} | {shortest:.0f} | {loss:.1%} below the best | {longer:.1%} longer "
        f"| {max(lengths):.0f} cells, best {best[0].route().length:.0f} |"
    )


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--sides", type=int, nargs="+", default=[20, 100, 300])
    for side in arguments.parse_args().sides:
        print(row(side).replace("%", " %"), flush=True)


if __name__ == "__main__":
    main()
