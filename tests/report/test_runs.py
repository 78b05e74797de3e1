"""The runs that the page plays can happen, and earn what they say."""

from __future__ import annotations

import numpy as np
from page_files import page_data


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
