"""Diversities and priors compared: the tables of docs/objectives.md and docs/preferences.md.

    python benchmarks/objectives.py diversities   # about a minute
    python benchmarks/objectives.py offsets
    python benchmarks/objectives.py priors

prints the rows of the tables as Markdown. All plans come from the current default search.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from math import inf
from pathlib import Path

import numpy as np

import manyways as mw

WORLDS = Path(__file__).parents[1] / "tests" / "data" / "worlds"
CHOSEN = ("nine-rooms-0", "nine-rooms-3", "nine-rooms-7", "four-rooms-100", "four-rooms-103")
SEEDS = (0, 1)
DIVERSITIES: dict[str, type[mw.MeanDivergence]] = {
    "mean": mw.MeanDivergence,
    "least": mw.LeastDivergence,
    "spread": mw.SpreadDivergence,
    "joint": mw.JointDivergence,
    "determinant": mw.DeterminantDivergence,
}
OFFSETS = (0.005, 0.02, 0.1, 0.5)
PRIORS = {
    "400 draws (the default)": mw.Representative(),
    "200 draws": mw.Representative(draws=200),
    "without zones, labels, regions and actions": mw.Representative(mw.Preferences(zones=False, over=())),
    "strengths 0.05 to 0.5": mw.Representative(mw.Preferences(strength=(0.05, 0.5))),
    "strengths 0.2 to 2": mw.Representative(mw.Preferences(strength=(0.2, 2.0))),
    "mean pairwise divergence": mw.MeanDivergence(),
}


def figures(objective: mw.Objective, seeds: Sequence[int] = SEEDS, **settings: object) -> tuple[float, float, float]:
    """Least distance, mean distance, and reward as a share of the optimum: means over worlds and seeds."""
    rows = []
    for name in CHOSEN:
        mdp = mw.read(WORLDS / f"{name}.json")
        for seed in seeds:
            plans = mw.plan(mdp, objective=objective, seed=seed, **settings)  # pyright: ignore[reportArgumentType]
            apart = plans.distances[np.triu_indices(len(plans), 1)]
            rows.append((apart.min(), apart.mean(), plans.rewards.mean() / plans.optimal_reward))
    return tuple(np.mean(rows, axis=0))


def diversities() -> None:
    print("| | k = 4, tradeoff 2: least, mean, reward | k = 6, tradeoff 2 | k = 4, tradeoff 8 | k = 6, tradeoff 8 |")
    print("|---|---|---|---|---|")
    for word, kind in DIVERSITIES.items():
        cells = [figures(kind(tradeoff), k=k) for tradeoff in (2.0, 8.0) for k in (4, 6)]
        print(f"| `{word}` |", " | ".join(", ".join(f"{value:.3f}" for value in cell) for cell in cells), "|")
    print("\n| | k = 4, slack 5 %: least, mean distance | k = 6, slack 15 % |\n|---|---|---|")
    rows = [(word, kind, mw.VertexAscent(), SEEDS) for word, kind in DIVERSITIES.items()]
    more = mw.VertexAscent(starts=8)
    rows += [(f"{word}, eight starts (one seed)", DIVERSITIES[word], more, SEEDS[:1]) for word in ("least", "spread")]
    for word, kind, method, seeds in rows:
        cells = [figures(kind(inf), seeds, k=k, slack=slack, method=method) for k, slack in ((4, 0.05), (6, 0.15))]
        print(f"| {word} |", " | ".join(", ".join(f"{value:.3f}" for value in cell[:2]) for cell in cells), "|")


def offsets() -> None:
    print("| offset | k = 4, slack 5 %: least, mean distance |\n|---|---|")
    for offset in OFFSETS:
        least, mean, _ = figures(mw.SpreadDivergence(inf, offset=offset), k=4, slack=0.05)
        print(f"| {offset} | {least:.3f}, {mean:.3f} |")


def priors() -> None:
    """The share of the gain that is possible within a slack of 10 %, as in the preference study, on worlds of other seeds."""
    from manyways.studies.persons import FAMILIES, persons_of, world_of

    gains, possible = {name: Counter() for name in PRIORS}, Counter()
    sources = [f"nine-rooms:{seed}" for seed in range(100, 104)] + [f"four-rooms:{seed}" for seed in range(100, 103)]
    for source in sources:
        world = world_of(source)
        people = persons_of(world, 8, [family for family in FAMILIES if family != "labels"])
        _add(possible, people.families, people.best(world.within) - people.base())
        for name, objective in PRIORS.items():
            plans = mw.plan(world.mdp, k=6, slack=0.1, objective=objective, fewer=False)
            _add(gains[name], people.families, people.worths(plans.occupancies).max(axis=1) - people.base())
    print("| set | share |\n|---|---|")
    for name, gained in gains.items():
        print(f"| {name} | {np.mean([gained[family] / possible[family] for family in possible]):.2f} |")


def _add(sums: Counter[str], families: list[str], values: np.ndarray) -> None:
    """Sums over the persons of one family, since what a single person could gain may be next to nothing."""
    for family, value in zip(families, values, strict=True):
        sums[family] += value  # pyright: ignore[reportArgumentType]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Compare diversities and priors.")
    parser.add_argument("part", choices=("diversities", "offsets", "priors"))
    {"diversities": diversities, "offsets": offsets, "priors": priors}[parser.parse_args().part]()
