"""The words for rewards and for costs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from given_plans import EAST, along, going, plan_set, rooms_world, value
from hypothesis import given, settings
from hypothesis import strategies as st

import manyways as mw
from manyways.describe import measures, portraits
from manyways.describe.wording import COSTS, REWARDS, terms_of
from problems import random_accessible_mdp, random_policy


def commute() -> mw.MDP:
    """By bus for 3 or by bike for 2, and back for 1."""
    rows = [("home", "bus", "work", 1.0, 3.0), ("home", "bike", "work", 1.0, 2.0), ("work", "back", "home", 1.0, 1.0)]
    return mw.MDP.from_transitions(rows).minimising()


def both(mdp: mw.MDP) -> mw.PlanSet:
    return plan_set(mdp, [going(mdp, ("home", "bike")), going(mdp, ("home", "bus"))])


def test_costs_are_shown_as_positive_numbers_and_less_is_better():
    cost, above = measures(both(commute()))
    assert (cost.name, cost.values, cost.better) == ("cost", (1.5, 2.0), -1)
    assert cost.meaning == "Mean cost per step in the long run."
    assert (above.name, above.unit, above.better) == ("above least", "share", -1)
    assert above.values == pytest.approx((0.0, 1 / 3))
    assert above.meaning == "How much higher the cost is than that of the best possible plan, as a share of that one."


def test_the_sentences_are_about_costs():
    bike, bus = portraits(both(commute()))
    assert "The lower cost of the two, and no plan can cost less." in bike.sentences
    assert "The higher cost of the two, 33.3 % more than the least possible." in bus.sentences
    mdp = commute()
    (alone,) = portraits(plan_set(mdp, [going(mdp, ("home", "bus"))]))
    assert "Its cost is 33.3 % more than the least possible." in alone.sentences
    (best,) = portraits(plan_set(mdp, [going(mdp, ("home", "bike"))]))
    assert "Costs 1.5 per step, and no plan can cost less." in best.sentences


def test_a_cost_many_times_the_least_is_said_in_numbers():
    mdp = commute()
    mdp = mdp.with_reward(np.where(mdp.reward == -3, -99.0, mdp.reward))
    (bus,) = portraits(plan_set(replace(mdp, costs=True), [going(mdp, ("home", "bus"))]))
    assert "Costs 50 per step where 1.5 is possible." in bus.sentences


def test_of_plans_that_hardly_differ_the_cheapest_is_called_so():
    rows = [("a", "go", "b", 1.0, 1.0), ("a", "run", "b", 1.0, 1.2), ("b", "on", "a", 1.0, 1.0)]
    mdp = mw.MDP.from_transitions(rows).minimising()
    plans = plan_set(mdp, [np.array([0.51, 0.49, 1.0]), np.array([0.5, 0.5, 1.0])])
    assert portraits(plans)[0].title == "Lowest cost"


@pytest.mark.parametrize(
    ("costs", "first", "second"), [(False, "higher reward", "lower reward"), (True, "lower cost", "higher cost")]
)
def test_titles_compare_plans_with_the_same_doors_and_length(costs, first, second):
    mdp = rooms_world()
    dear = np.array([mdp.state_name(int(s)) == "r1c2" for s in mdp.choice_state])
    mdp = replace(mdp, reward=np.where(dear, -5.0, mdp.reward), costs=costs)
    around, through = portraits(plan_set(mdp, [along(mdp, "drrrrddd"), along(mdp, EAST)]))
    assert (around.title, through.title) == (f"By the north-east room — {first}", f"By the north-east room — {second}")


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_the_same_is_said_with_other_words(seed):
    """A model with costs and the same model with negative rewards: the numbers agree, and no word is about rewards."""
    rng = np.random.default_rng(seed)
    mdp = random_accessible_mdp(rng)
    plans = plan_set(mdp, [random_policy(rng, mdp) for _ in range(int(rng.integers(1, 4)))])
    costly = replace(plans, mdp=replace(mdp, costs=True))
    assert [-x for x in values(plans, "reward")] == values(costly, "cost")
    assert values(plans, "below optimum") == values(costly, "above least")
    for portrait in portraits(costly):
        text = " ".join((portrait.title, *portrait.sentences)).lower()
        assert "reward" not in text
        assert "earn" not in text
        assert "optimum" not in text


def values(plans: mw.PlanSet, name: str) -> list[float]:
    return [value(plans, name, i) or 0.0 for i in range(plans.k)]


def test_terms():
    assert terms_of(commute()) is COSTS
    assert terms_of(commute().minimising()) is REWARDS
    assert not np.signbit(COSTS.shown(0.0))
    step, phrase = mw.Average(), "mean reward + 8 × divergence"
    assert COSTS.objective(phrase, step) == "minus mean cost + 8 × divergence"
    assert COSTS.objective("divergence, without the reward", step) == "divergence, without the cost"
    assert REWARDS.objective(phrase, step) == phrase


def test_objectives_say_how_they_count_values():
    """Otherwise the figures beside them would not add up."""
    phrase = "mean reward + 8 × divergence"
    assert REWARDS.objective(phrase, mw.Discounted(0.95)) == "0.05 × mean reward + 8 × divergence"
    assert COSTS.objective(phrase, mw.Discounted(0.95)) == "minus 0.05 × mean cost + 8 × divergence"
    assert REWARDS.objective(phrase, mw.Episodic(9)) == "linearised mean reward + 8 × divergence"
    assert COSTS.objective(phrase, mw.Episodic(9)) == "minus linearised mean cost + 8 × divergence"
    plans = mw.plan("four-rooms:0", 2, 8.0, criterion=mw.Discounted(0.95), method=mw.FrankWolfe())
    assert plans.objective == pytest.approx(0.05 * plans.rewards.mean() + 8 * plans.diversity)
