"""Benchmarks of kinds of sets: within limits, for preferences, compared by neighbourhoods, and rounds of choices."""

from __future__ import annotations

import numpy as np

from manyways.behaviours import Near, StateActions
from manyways.bench.measurements import Row
from manyways.bench.timing import fastest
from manyways.conversation import Conversation
from manyways.model.closures import closures
from manyways.objectives import MeanDivergence, Representative
from manyways.planning import plan_or_interrupt
from manyways.surviving import survival
from manyways.worlds import four_rooms, nine_rooms, tiled_rooms

SLACKS = (0.02, 0.05, 0.1, 0.2)
TRADEOFFS = np.geomspace(0.25, 32, 12)


def limits(_: list[int]) -> list[Row]:
    """Diversity of plans within a slack: nothing but diversity against the best set that any tradeoff gives.

    The sets by tradeoff have no limits; for each slack the most diverse of those whose worst plan keeps it counts.
    """
    rows = []
    for make, k in ((four_rooms, 2), (nine_rooms, 6)):
        for seed in range(10):
            mdp = make(seed)
            by_tradeoff = [plan_or_interrupt(mdp, k, float(tradeoff)) for tradeoff in TRADEOFFS]
            row: Row = {"world": mdp.name, "k": k}
            for slack in SLACKS:
                within = plan_or_interrupt(mdp, k, np.inf, slack=slack)
                level = (1 - slack) * within.optimal_reward
                others = [plans.diversity for plans in by_tradeoff if plans.rewards.min() >= level]
                row[f"{slack:.0%}"] = f"{within.diversity:.3f} / {max(others, default=0.0):.3f}"
                row[f"lowest {slack:.0%}"] = within.rewards.min() / within.optimal_reward
            rows.append(row)
    return rows


DRAWS = (100, 200, 400, 800)


def preferences(sizes: list[int]) -> list[Row]:
    """Representative sets over the number of draws and states, relative to mean divergence within the same slack."""
    rows = []
    for mdp, k in ((four_rooms(0), 2), (nine_rooms(0), 6), *((tiled_rooms(n), 4) for n in sizes if 50 <= n <= 300)):
        plan_or_interrupt(mdp, k)
        mean, *times = fastest(
            lambda mdp=mdp, k=k: plan_or_interrupt(mdp, k, objective=MeanDivergence(), slack=0.1),
            *(
                lambda mdp=mdp, k=k, draws=draws: plan_or_interrupt(
                    mdp, k, objective=Representative(draws=draws), slack=0.1
                )
                for draws in DRAWS
            ),
            rounds=7 if mdp.n_states < 1000 else 1,
        )
        row: Row = {"model": mdp.name, "states": mdp.n_states, "k": k, "mean divergence, s": mean}
        rows.append(row | {f"{draws} draws / mean": t / mean for draws, t in zip(DRAWS, times, strict=True)})
    return rows


def rounds(_: list[int]) -> list[Row]:
    """A round of choices on nine rooms: the time from an answer to the next six plans."""
    rows = []
    for seed in range(3):
        talk = Conversation(nine_rooms(seed), 6)
        for number in range(6):
            times = []
            for again in range(3):
                if again:
                    talk.undo()
                times += fastest(lambda talk=talk, number=number: talk.choose(number), rounds=1)
            rows.append({"model": talk.plans.mdp.name, "round": number + 1, "s": min(times)})
    return rows


def closed_doors(sizes: list[int]) -> list[Row]:
    """Survival: what each of six plans still does with each of 40 things closed, and a plan made for each."""
    rows = []
    for mdp in (nine_rooms(8), *(tiled_rooms(n) for n in sizes if n == 100)):
        plans = plan_or_interrupt(mdp, 6)
        doors = closures(mdp)
        chosen = [doors[i % len(doors)] for i in range(40)]
        again, whole = fastest(
            lambda plans=plans: plan_or_interrupt(plans.mdp, 6),
            lambda plans=plans, c=chosen: survival(plans, c),
            rounds=3,
        )
        rows.append(
            {"model": mdp.name, "states": mdp.n_states, "survival, s": whole, "/ planning the six": whole / again}
        )
    return rows


def neighbourhoods(sizes: list[int]) -> list[Row]:
    """Plans compared by `Near` against plans compared by state-action pairs."""
    rows = []
    for size in [n for n in sizes if n <= 100]:
        mdp = tiled_rooms(size)
        times = fastest(
            *(
                lambda mdp=mdp, kind=kind: plan_or_interrupt(
                    mdp, 4, objective=MeanDivergence(), slack=0.1, behaviour=kind
                )
                for kind in (StateActions(), Near(2.0), Near(5.0))
            )
        )
        rows.append(
            {"model": mdp.name, "radius 2 / state-actions": times[1] / times[0], "radius 5": times[2] / times[0]}
        )
    return rows
