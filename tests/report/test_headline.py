"""The first words of the page promise no more than what holds."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import manyways as mw
from manyways.describe import survey_of
from manyways.report import view_of
from manyways.report.chart import spread
from manyways.report.groups import COLOURS, groups_of, tints_of
from manyways.report.headline import _down, _up, headline


def plans_with(rewards: tuple[float, ...], *, costs: bool = False) -> mw.PlanSet:
    """One plan for each reward, all in one state."""
    sign = -1 if costs else 1
    rows = [
        ("a", f"stay {i}", "a", 1.0, sign * x)
        for i, x in enumerate((*rewards, min(rewards) - 5 * (1 + abs(min(rewards)))))
    ]
    mdp = mw.MDP.from_transitions(rows)
    plans = mw.plan(mdp.minimising() if costs else mdp, len(rewards), 1000.0 if len(rewards) > 1 else 0.0)
    np.testing.assert_allclose(np.sort(plans.rewards), np.sort(rewards))
    return plans


@pytest.mark.parametrize(
    ("rewards", "costs", "words"),
    [
        ((1.0, 0.925), False, "Two ways, each at least 92 % of the best"),
        ((1.0, 0.9969), False, "Two ways, each at least 99.6 % of the best"),
        ((1.0, 1.0), False, "Two ways, each as good as the best possible"),
        ((1.0,), False, "One way, the best possible"),
        ((-10.0, -13.01), False, "Two ways, each at most 31 % worse than the best"),
        ((-2.0, -3.0), True, "Two ways, each costing at most 50 % more than the cheapest"),
        ((0.0, -3.0), False, "Two ways, each at most 3 reward per step lower than the best"),
        ((1.0, -3.0), False, "Two ways, each at most 4 reward per step lower than the best"),
    ],
)
def test_the_headline(rewards, costs, words):
    plans = plans_with(rewards, costs=costs)
    assert headline(plans, survey_of(plans)) == words


@given(st.floats(0.001, 1.0))
def test_shares_are_rounded_down(share):
    shown = float(_down(share)) / 100
    assert shown <= share + 1e-9
    assert share - shown < 0.0101


@given(st.floats(1e-9, 1e9), st.sampled_from([2, 3]))
def test_losses_are_rounded_up(value, digits):
    shown = _up(value, digits)
    assert value * (1 - 1e-9) <= shown <= value * (1 + 10 ** (1 - digits)) * (1 + 1e-9)


places = st.lists(st.floats(0, 100), min_size=1, max_size=9)


@given(places, st.floats(1, 10))
def test_places_are_spread_in_their_order(wanted, gap):
    found = spread(wanted, gap, 0, 100)
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    for before, after in itertools.pairwise(order):
        assert found[after] - found[before] >= min(gap, 100 / max(len(wanted) - 1, 1)) - 1e-6
    assert all(-1e-6 <= place <= 100 + 1e-6 for place in found)
    if all(wanted[b] - wanted[a] >= gap for a, b in itertools.pairwise(order)):
        np.testing.assert_allclose(found, wanted, atol=1e-6)


def test_many_plans_are_grouped_by_likeness():
    plans = mw.plan("rooms-9:0", k=30, tradeoff=8.0, method=mw.FrankWolfe(iterations=0))
    survey = survey_of(plans)
    groups = groups_of(survey)
    assert groups is not None
    assert 1 < len(groups) <= COLOURS
    assert sorted(plan for group in groups for plan in group.members) == list(range(30))
    apart = survey.likeness.apart
    for group in groups:
        assert plans.rewards[group.leader] == max(plans.rewards[list(group.members)])
    inside = np.mean([apart[i, j] for g in groups for i in g.members for j in g.members if i != j] or [0.0])
    assert inside < np.mean(apart[~np.eye(30, dtype=bool)])
    tints = tints_of(30, groups)
    assert sorted(tint for tint in tints if tint) == list(range(1, len(groups) + 1))
    assert groups_of(survey_of(mw.plan("four-rooms:0", 3))) is None


def test_chips_say_the_numbers_of_the_table(rooms):
    view = view_of(rooms)
    for i, card in enumerate(view["cards"]):
        loss, long = (chip["text"] for chip in card["chips"])
        figures = {figure["name"]: figure["text"] for figure in card["figures"]}
        assert float(re.findall(r"[\d.]+", loss)[0]) == float(re.findall(r"[\d.]+", figures["below optimum"])[0])
        assert float(long.removesuffix(" steps")) == float(figures["steps to goal"])
        assert float(figures["steps to goal"]) == pytest.approx(survey_of(rooms).facts[i].steps, abs=0.0501)


def test_where_the_reward_is_minus_the_length_it_is_said_once():
    pytest.importorskip("gymnasium")
    plans = mw.plan("gym:CliffWalking-v1", 3, slack=0.4)
    for card, reward in zip(view_of(plans)["cards"], plans.rewards, strict=True):
        best = ["best possible"] if reward == pytest.approx(-13) else []
        assert [chip["text"] for chip in card["chips"]] == [*best, f"{-reward:.0f} steps"]
        said = " ".join(card["sentences"])
        assert "reward" not in said
        assert ("As short as possible: 13 steps" in said) == bool(best)
