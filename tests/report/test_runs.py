"""The runs that the page plays can happen, and earn what they say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from page_files import page_data

import manyways as mw
from manyways.describe import measures
from manyways.report.runs import sampled_runs


def test_every_step_that_is_played_can_happen_and_earns_what_it_says(rooms, report):
    for i, plan in enumerate(page_data(report)["plans"]):
        chosen = rooms.policies[i] > 0
        for run in plan["runs"]:
            assert len(run["at"]) == len(run["earned"]) >= 20
            goals = [step for step, cell in enumerate(run["at"]) if rooms.mdp.labels["goal"][cell]]
            assert run["met"] == goals
            assert len(goals) == 2
            assert goals[-1] == len(run["at"]) - 1
            assert rooms.mdp.start[run["at"][0]] > 0
            for here, there in zip(run["at"], run["at"][1:], strict=False):
                own = [x for x in np.flatnonzero(chosen) if rooms.mdp.choice_state[x] == here]
                assert any(rooms.mdp.transitions[[x], [there]][0] > 0 for x in own)
            state_reward = [float(rooms.mdp.reward[rooms.mdp.first_choice[s]]) for s in run["at"]]
            np.testing.assert_allclose(run["earned"], np.cumsum(state_reward), rtol=1e-4, atol=1e-3)


def test_runs_with_the_same_number_have_the_same_luck(rooms, report):
    first = [plan["runs"][0]["at"][0] for plan in page_data(report)["plans"]]
    assert len(set(first)) == 1
    again = rooms[0].rollout(40, np.random.default_rng(0)).states
    assert page_data(report)["plans"][0]["runs"][0]["at"][:40] == again.tolist()


def test_what_really_happened_is_added_up_where_ends_have_known_rewards():
    """A step costs 1, and the goal pays 10: each run earns what its own ends paid."""
    rows = [
        ("a", "try", "a", 0.5, 1.5),
        ("a", "try", "b", 0.5, 1.5),
        ("b", "try", "a", 1.0, 4.0),
        ("b", "go", "a", 1.0, -1.0),
    ]
    mdp = mw.MDP.from_transitions(rows, start="a")
    chance = {("a", "try"): 0.25, ("b", "try"): 0.5, ("b", "go"): 0.0}
    ends = np.array([chance[mdp.state_name(int(s)), mdp.action_name(x)] for x, s in enumerate(mdp.choice_state)])
    plans = mw.plan(replace(mdp, ends={"goal": ends}), 1)
    ((*runs,),) = sampled_runs(plans, measures(plans), None)
    for run in runs:
        goals = np.isin(np.arange(len(run["at"])), run["met"])
        np.testing.assert_allclose(run["earned"], np.cumsum(10.0 * goals - 1.0), rtol=1e-4)
        assert not run["expected"]
    rows[0] = ("a", "try", "a", 0.5, 2.5)  # what a try brings now depends on where it leads
    blended = mw.plan(mw.MDP.from_transitions(rows, start="a"), 1)
    assert sampled_runs(blended, measures(blended), None)[0][0]["expected"]
