"""The page on plans of a model with costs: the words and signs of costs everywhere."""

from __future__ import annotations

import re

import numpy as np
import pytest
from page_files import page_data

import manyways as mw
from manyways.report import Live, render, view_of
from manyways.report.chart import price_chart


@pytest.fixture(scope="module")
def plans() -> mw.PlanSet:
    """A mean cost per step of 2, 3 or 4, with two of these chosen."""
    rows = [("home", way, "work", 1.0, cost) for way, cost in (("bike", 3.0), ("bus", 5.0), ("taxi", 7.0))]
    mdp = mw.MDP.from_transitions([*rows, ("work", "back", "home", 1.0, 1.0)], name="commute").minimising()
    return mw.plan(mdp, 2, 3.0)


def test_the_plans_are_the_two_cheapest(plans):
    np.testing.assert_allclose(plans.rewards, [-2.0, -3.0])
    assert plans.optimal_reward == pytest.approx(-2.0)


def test_the_page_speaks_of_costs(plans, tmp_path):
    path = plans.report(tmp_path / "plans.html")
    page = re.sub("<(script|style).*?</(script|style)>", "", path.read_text(), flags=re.DOTALL)
    assert "These plans cost 100 to 150 % of what the very best plan costs." in page
    assert "plans further up cost more" in page
    assert "cost per step</text>" in page
    assert "<dt>Lowest cost of any plan</dt><dd>2 per step (proved)</dd>" in page
    assert "minus mean cost + 3" in page
    assert "mean cost 2.5" in page
    described = page.lower().partition("<h3>certificate")[0]  # the checks of a certificate have fixed names
    for word in ("reward", "earn", "below"):
        assert word not in described


def test_cheaper_is_better_in_the_table_and_lower_on_the_chart(plans):
    shown = view_of(plans)
    assert [column["name"] for column in shown["table"]["columns"][:2]] == ["cost", "above least"]
    assert [[(cell.text, cell.rank) for cell in row[:2]] for row in shown["table"]["rows"]] == [
        [("2.000", "best"), ("0.0 %", "best")],
        [("3.000", "worst"), ("50.0 %", "worst")],
    ]
    assert shown["optimum"] == "2"
    chart = price_chart(plans, None, [1, 2])
    cheap, dear = (plan["y"] for plan in chart["plans"])
    assert cheap == chart["optimum"]["y"] > dear, "y counts from the top of the picture"
    assert chart["plans"][1]["text"].endswith("cost 3")


def test_the_curve_of_a_sweep_is_drawn_in_costs(plans):
    found = mw.sweep(plans.mdp, tradeoff=[3.0], k=[2], seeds=1, workers=1)
    chart = price_chart(plans, found, [1, 2])
    (curve,) = chart["curves"]
    assert [(point["x"], point["y"]) for point in curve["points"]] == [(chart["set"]["x"], chart["set"]["y"])]


def test_runs_add_up_costs(plans, tmp_path):
    data = page_data(plans.report(tmp_path / "plans.html"))
    assert data["noun"] == "cost"
    run = data["plans"][0]["runs"][0]["earned"]
    assert run[:4] == [3.0, 4.0, 7.0, 8.0]


def test_the_live_page_offers_a_price_in_costs(plans):
    page = render(view_of(plans), Live(1, ({"number": 1, "label": "plans.mw: 2 plans"},), {}, 0))
    assert "is how much additional cost you would accept for plans that differ more" in page
    assert "At 0 only the cost counts." in page
    assert "<b>Give up at most</b> so many percent of the best possible cost: every new plan keeps to that." in page


@pytest.mark.parametrize(
    ("costs", "promise"),
    [
        ((1.0, 1.004), "These plans cost 100 to 100.4 % of what the very best plan costs."),
        ((1.0, 1.00001), "These plans cost 100 to 100.1 % of what the very best plan costs."),
        ((0.0, 2.0), "These plans cost 0 to 2 per step, where no plan can cost less than 0."),
        ((3.0,), "It costs 100 % of what the very best plan costs."),
    ],
)
def test_the_promise(costs, promise):
    rows = [("a", f"stay {i}", "a", 1.0, x) for i, x in enumerate((*costs, 9.0))]
    plans = mw.plan(mw.MDP.from_transitions(rows).minimising(), len(costs), 1000.0 if len(costs) > 1 else 0.0)
    np.testing.assert_array_equal(-plans.rewards, costs)
    assert view_of(plans)["promise"] == promise
