"""Sampled runs of the plans, which the page plays."""

from __future__ import annotations

from typing import Any

import numpy as np

from manyways.describe import Measure
from manyways.describe.wording import terms_of
from manyways.model.episodes import rewards_by_end
from manyways.plans.planset import PlanSet
from manyways.report.pictures import Canvas

RUNS, ROUNDS = 3, 2
STEPS_IN_ALL, LONGEST_RUN, SHORTEST_RUN, USUAL_RUN = 40_000, 2_000, 40, 200
"""Limits on the steps of all runs on a page and of one run; the usual length is for plans without a goal."""


def sampled_runs(plans: PlanSet, measured: list[Measure], canvas: Canvas | None) -> list[list[dict[str, Any]]]:
    """A few runs of each plan.

    Each has, by step, the cell (without a map: the choice) and the reward or cost of the steps so far, and whether that is
    only an expectation because a choice has only the mean of its reward; and the steps at which it reached the goal or ended an
    episode, with the kinds of these ends.

    All plans are run with the same seeds, so that runs with the same number can be compared. A run ends with its second
    visit to the goal, or with its second episode, unless the limit on its length comes first.
    """
    mdp, kinds = plans.mdp, list(plans.mdp.ends)
    goal = mdp.labels.get("goal", np.zeros(mdp.n_states, bool))
    lengths = [measure.values for measure in measured if measure.name in ("steps to goal", "steps per episode")]
    steps = lengths[0] if lengths else (None,) * plans.k
    most = STEPS_IN_ALL // (plans.k * RUNS)
    by_end = rewards_by_end(mdp.reward, mdp.ends) if kinds else None
    single = np.diff(mdp.transitions.indptr) == 1
    runs = []
    for i in range(plans.k):
        usual = steps[i]
        wanted = USUAL_RUN if usual is None else int(min(4 * usual, LONGEST_RUN))
        length = int(np.clip(wanted, SHORTEST_RUN, max(most, SHORTEST_RUN)))
        policy = plans[i].policy
        own = []
        for seed in range(RUNS):
            run = policy.rollout(length, np.random.default_rng(seed))
            met = np.flatnonzero(run.ends >= 0 if kinds else goal[run.states])[:ROUNDS].tolist()
            end = met[-1] + 1 if len(met) == ROUNDS else length
            at = run.choices if canvas is None else canvas.cells(canvas.layout.cells[run.states])
            rewards = run.rewards
            if by_end is not None:
                rewards = by_end[0] + np.append(by_end[1:], 0.0)[run.ends]  # -1, no end, is the last one
            expected = mdp.averaged and by_end is None and not single[run.choices[:end]].all()
            earned = [float(f"{x:.5g}") for x in terms_of(mdp).shown(np.cumsum(rewards)[:end])]
            ends = [kinds[kind] for kind in run.ends[met]] if kinds else None
            own.append({"at": at[:end].tolist(), "earned": earned, "expected": expected, "met": met, "ends": ends})
        runs.append(own)
    return runs
