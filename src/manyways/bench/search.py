"""Benchmarks of the search for a set: its time and its objective, on worlds of the paper's kinds that nothing was tuned on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

import numpy as np
from joblib import Parallel, delayed

from manyways.bench.measurements import Row
from manyways.bench.rivals import cold_lp, literal_frank_wolfe
from manyways.bench.timing import fastest
from manyways.methods import VertexAscent
from manyways.model.mdp import MDP
from manyways.objectives import LeastDivergence, MeanDivergence, SpreadDivergence
from manyways.planning import plan_or_interrupt
from manyways.worlds import four_rooms, nine_rooms

KINDS: tuple[tuple[Callable[[int], MDP], int], ...] = ((four_rooms, 2), (nine_rooms, 6))
"""The paper's worlds, and how many plans it makes for them."""
TRADEOFF = 8.0
UNTUNED = range(19000, 19060)
"""The seeds of worlds on which no setting of a method was chosen."""
BEFORE = VertexAscent(starts=1, stages=(1.0, 0.35, 1e-3), workers=1)
"""The search of version 0.1.0."""
THOROUGH, THOROUGH_RUNS = VertexAscent(starts=24, exchanges=True, workers=1), 3
"""What the best known value of a world is found with."""


def against_the_paper(sizes: list[int]) -> list[Row]:
    """The default call, the search of version 0.1.0, one cold LP, and Algorithm 2 with cold LPs, on ten worlds of each kind;
    the last row of each kind has the medians."""
    rows: list[Row] = []
    for make, k in KINDS:
        found: list[Row] = []
        for seed in UNTUNED[:10] if max(sizes) >= 100 else UNTUNED[:1]:
            mdp = make(seed)
            plans, old = (plan_or_interrupt(mdp, k, TRADEOFF, method=method) for method in (None, BEFORE))
            lp, ours, theirs = fastest(
                lambda mdp=mdp: cold_lp(mdp, mdp.reward),
                lambda mdp=mdp, k=k: plan_or_interrupt(mdp, k, TRADEOFF),
                lambda mdp=mdp, k=k: plan_or_interrupt(mdp, k, TRADEOFF, method=BEFORE),
                rounds=15,
            )
            began = time.perf_counter()
            reached = literal_frank_wolfe(mdp, k, TRADEOFF, 0)
            literal = time.perf_counter() - began
            found.append(
                {
                    "world": mdp.name,
                    "k": k,
                    "plan / cold LP": ours / lp,
                    "plan / search of 0.1.0": ours / theirs,
                    "Algorithm 2, cold LPs / plan": literal / ours,
                    "objective / that of 0.1.0": plans.objective / old.objective,
                    "objective / that of Algorithm 2": plans.objective / reached,
                }
            )
        rows += [*found, _summary("median", k, found, np.median)]
    return rows


def sureness(sizes: list[int]) -> list[Row]:
    """How near one default call comes to the best known value: 60 four-room and 30 nine-room worlds, five seeds each.

    The best known value of a world is the best of three runs with 24 starts and all exchanges, and of the runs compared.
    """
    count, seeds = (60, 5) if max(sizes) >= 100 else (1, 1)
    rows: list[Row] = []
    for (make, k), worlds in zip(KINDS, (UNTUNED[:count], UNTUNED[: -(-count // 2)]), strict=True):
        of_worlds = Parallel(n_jobs=-1)(delayed(_objectives)(make, k, seed, seeds) for seed in worlds)
        found = np.array(of_worlds, dtype=float)  # (worlds, searches, seeds)
        for name, values in zip(("default", "search of 0.1.0"), found.transpose(1, 0, 2), strict=True):
            rows.append(
                {
                    "worlds": f"{make.__name__}, {len(worlds)}",
                    "search": name,
                    "mean of best known": values.mean(),
                    "worst": values.min(),
                    "share within 0.5 %": (values >= 0.995).mean(),
                    "runs more than 0.05 % below 0.1.0": (values / found[:, 1] < 0.9995).mean(),
                }
            )
    return rows


def _objectives(make: Callable[[int], MDP], k: int, world: int, seeds: int) -> list[list[float]]:
    """(2, seeds) objectives of the default search and of that of version 0.1.0, relative to the best known."""
    mdp = make(world)

    def reached(method: VertexAscent, those: Iterable[int]) -> list[float]:
        return [plan_or_interrupt(mdp, k, TRADEOFF, seed=seed, method=method).objective for seed in those]

    found = [reached(method, range(seeds)) for method in (VertexAscent(workers=1), BEFORE)]
    best = max(*reached(THOROUGH, range(100, 100 + THOROUGH_RUNS)), *found[0], *found[1])
    return [[value / best for value in values] for values in found]


def number_of_plans(_: list[int]) -> list[Row]:
    """The time of a plan over k."""
    mdp = nine_rooms(0)
    plan_or_interrupt(mdp, 2, TRADEOFF)
    counts = (2, 4, 8, 16)
    times = fastest(*(lambda k=k: plan_or_interrupt(mdp, k, TRADEOFF) for k in counts))
    return [{"k": k, "time / time of k=2": seconds / times[0]} for k, seconds in zip(counts, times, strict=True)]


def kinds_of_sets(sizes: list[int]) -> list[Row]:
    """The time of other kinds of sets, relative to the set that the paper's objective gives: median and worst of six worlds."""
    calls = {
        "representative, slack 10 %": {"slack": 0.1},
        "mean divergence, slack 10 %": {"slack": 0.1, "objective": MeanDivergence()},
        "mean divergence, slack 2 %": {"slack": 0.02, "objective": MeanDivergence()},
        "least distance": {"objective": LeastDivergence(TRADEOFF)},
        "least distance, slack 10 %": {"slack": 0.1, "objective": LeastDivergence()},
        "spread, slack 10 %": {"slack": 0.1, "objective": SpreadDivergence()},
        "only diversity, slack 10 %": {"slack": 0.1, "tradeoff": np.inf},
    }
    rows: list[Row] = []
    for make, k in KINDS:
        found: list[Row] = []
        for seed in UNTUNED[:6] if max(sizes) >= 100 else UNTUNED[:1]:
            mdp = make(seed)
            alone, *times = fastest(
                lambda mdp=mdp, k=k: plan_or_interrupt(mdp, k, TRADEOFF),
                *(lambda mdp=mdp, k=k, s=settings: plan_or_interrupt(mdp, k, **s) for settings in calls.values()),
                rounds=5,
            )
            found.append({"world": mdp.name} | {name: t / alone for name, t in zip(calls, times, strict=True)})
        rows += [_summary("median", k, found, np.median), _summary("worst", k, found, np.max)]
    return rows


def _summary(name: str, k: int, rows: list[Row], of: Callable[[list[float]], float]) -> Row:
    """A row with one value of each column of ratios."""
    ratios = [column for column in rows[0] if column not in ("world", "k")]
    return {"world": name, "k": k} | {column: float(of([row[column] for row in rows])) for column in ratios}
