"""`manyways survival`, `risk` and `team`: what they print is what the library computes."""

from __future__ import annotations

import numpy as np
import pytest
from commands import BAD_INPUT, DONE

import manyways as mw
from manyways.describe.wording import REWARDS, number, percent
from manyways.plans.guarantee import promised


@pytest.fixture
def plans(here) -> mw.PlanSet:
    del here
    plans = mw.plan(mw.room_world(9, 2, seed=1), 2, slack=0.3)
    plans.save("plans.mw")
    return plans


def test_survival(manyways, plans):
    found = mw.survival(plans)
    answer = manyways("survival", "plans.mw")
    assert answer.code == DONE
    assert all(found.sentence(j) in answer.words for j in range(len(found.closures)))
    assert found.words.late in answer.words
    assert "counts as one that misses the goal" in answer.words
    assert "No plan: " not in answer.words
    rows = manyways("survival", "plans.mw", "--json").json["closures"]
    assert [row["closed"] for row in rows] == [closure.name for closure in found.closures]
    assert [[one["steps"] for one in row["plans"]] for row in rows] == found.closed.steps.T.tolist()
    assert [row["replanned"]["values"] for row in rows] == found.replanned.values.tolist()


def test_what_to_close(manyways, plans):
    names = [row["closed"] for row in manyways("survival", "plans.mw", "--region", "all", "--json").json["closures"]]
    assert names == [closure.name for closure in mw.closures(plans.mdp, regions=True)]
    one = manyways("survival", "plans.mw", "--state", "r1c1", "--action", "stop", "--json").json["closures"]
    assert [row["closed"] for row in one] == ["state r1c1", "action stop"]
    wrong = manyways("survival", "plans.mw", "--label", "dor")
    assert wrong.code == BAD_INPUT
    assert "there is no label 'dor' to close; did you mean 'door'?" in wrong.err


def test_risk(manyways, plans):
    cards = mw.risk(plans)
    rows = manyways("risk", "plans.mw", "--worse-than", "100", "--json").json["plans"]
    assert [row["chance_worse"] for row in rows] == [card.returns.chance_below(100.0) for card in cards]
    assert [row["mean"] for row in rows] == [card.mean for card in cards]
    answer = manyways("risk", "plans.mw")
    assert answer.code == DONE
    for i, card in enumerate(cards, 1):
        tail = card.returns.tail()
        assert f"{tail.bound(REWARDS)}: {percent(tail.share)}" in answer.words
        worst = card.worst.sentence(REWARDS, f"plan {i}'s")
        assert worst in answer.words
    assert "below 0" in answer.words
    mw.plan(mw.MDP.from_transitions([("a", "go", "b", 1.0, 0.0), ("b", "go", "a", 1.0, 1.0)]), 1).save("no-trips.mw")
    refused = manyways("risk", "no-trips.mw")
    assert refused.code == BAD_INPUT
    assert "--restart LABEL" in refused.err


def test_costs_are_shown_as_costs(manyways, here):
    del here
    mdp = mw.room_world(9, 2, seed=1)
    mw.plan(mdp.with_reward(-mdp.reward).minimising(), 1).save("costs.mw")
    mw.plan(mdp, 1).save("rewards.mw")
    assert "above 0" not in manyways("risk", "costs.mw").words
    cost, reward = (manyways("risk", name, "--json").json for name in ("costs.mw", "rewards.mw"))
    assert (cost["counted_in"], reward["counted_in"]) == ("cost", "reward")
    assert cost["plans"][0]["mean"] == pytest.approx(-reward["plans"][0]["mean"])


def test_team(manyways, plans):
    found = mw.team(plans, [0, 1, 1])
    told = manyways("team", "plans.mw", "--agent", "1", "--agent", "2", "--agent", "2", "--json").json
    assert told["meetings"] == found.meetings
    assert list(told["reaches"].values()) == found.reaches.tolist()
    assert told["seen"] == found.seen
    answer = manyways("team", "plans.mw")
    assert answer.code == DONE
    assert "2 agents; what counts happens within" in answer.words
    assert np.isfinite(mw.team(plans).first_visit)


def test_a_plan_file_is_asked_within_its_own_limits(manyways, here):
    """Its slack, its behaviour and its criterion, unless others are given."""
    del here
    mdp = mw.room_world(9, 2, seed=1)
    plans = mw.plan(mdp, 2, slack=0.3, behaviour=mw.States())
    plans.save("plans.mw")
    given = mw.freedom(mdp, slack=0.3)
    answer = manyways("freedom", "plans.mw")
    assert (
        f"Limits: at least {number(promised(given.limits.floor, 1))} per step, within 30 % of the best possible."
        in answer.words
    )
    assert all(found.sentence in answer.words for found in given.ranges)
    assert "-0 to" not in answer.words
    assert "within 5 % of the best possible" in manyways("freedom", "plans.mw", "--slack", "5%").words
    ways = manyways("ways", "plans.mw", "--most", "2")
    assert "within 30 % of the best" in ways.words
    assert f"What is compared: {mw.States().describe()}." in ways.words
    assert "differ only from cell to cell, count as different ways" in ways.words
