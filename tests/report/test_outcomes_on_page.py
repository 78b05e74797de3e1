"""Closed doors, one trip and changing over on the page: every number again by luck or by the library, and in a browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from page_files import page_data
from playwright.sync_api import Browser, expect

import manyways as mw
from browser import needs_browser, opened, running_browser
from luck import trips_by_luck
from manyways.describe import measures, survey_of
from manyways.describe.wording import percent, terms_of
from manyways.gallery import example_file
from manyways.model.episodes import episode_ends
from manyways.report import outcomes, view_of
from manyways.risks import Returns
from manyways.surviving import Outcomes


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with running_browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def view(rooms) -> dict:
    return view_of(rooms)


def test_the_table_of_closures_says_what_survival_computes(rooms, view):
    closing, doors = view["closing"], {c.name: c for c in mw.closures(rooms.mdp)}
    found = mw.survival(rooms, [doors[name] for name in closing["names"]])
    for i in range(rooms.k):
        for j in range(len(closing["names"])):
            chance, steps = float(found.closed.reaches[i, j]), float(found.closed.steps[i, j])
            text = f"{steps:.1f}" if steps < 100 else f"{steps:,.0f}"
            text = text if chance >= 1 - 1e-6 else percent(chance)
            assert closing["rows"][i][j] == {"text": text, "lost": not found.survivors[i, j]}
    best = survey_of(mw.plan(rooms.mdp, 1))
    steps = next(measure for measure in measures(best) if measure.name == "steps to goal").values[0]
    assert closing["open"] == [*(f"{x:.1f}" for x in found.open.steps), f"{steps:.1f}"]
    shown = range(len(closing["names"]))
    assert [own["sentence"] for own in view["data"]["closures"]] == [found.sentence(j) for j in shown]
    assert [own["lost"] for own in view["data"]["closures"]] == [
        np.flatnonzero(~found.survivors[:, j]).tolist() for j in shown
    ]


def test_closures_that_change_nothing_are_left_out(view):
    """On an open field nothing can be closed but "stop", which nobody needs; every door of the rooms is on the way of some plan."""
    field = mw.plan(example_file("field.txt"), 2, slack=0.1, behaviour=mw.Near())
    assert view_of(field)["closing"] is None
    closing = view["closing"]
    for j, name in enumerate(closing["names"]):
        assert [row[j]["text"] for row in closing["rows"]] != closing["open"][:-1], name


def test_what_is_said_of_a_trip_is_so_for_many_trips(rooms, view):
    told = re.compile(
        r"One trip earns (\S+) on average \(median (\S+)\); (1 in 20 earns|\S+ % of its trips earn) (\S+) or less\."
    )
    worst = re.compile(
        r"The worst place that at least 1 in 100 of its trips meet is (\S+) \((\S+) % of them\): from there a trip still earns "
        r"(\S+), from the start (\S+)\."
    )
    ends, names = episode_ends(rooms.mdp), [rooms.mdp.state_name(s) for s in range(rooms.mdp.n_states)]
    for i, card in enumerate(view["cards"][:3]):
        run = trips_by_luck(rooms.mdp, rooms.policies[i], ends, 15_000, 5000, seed=i)
        mean, middle, who, low = told.match(card["trip"][0]).groups()
        mean, middle, low = float(mean), float(middle), float(low)
        share = 0.05 if who.startswith("1 in") else float(who.partition(" ")[0]) / 100
        assert mean == pytest.approx(run.returns.mean(), abs=1)
        assert (run.returns < middle - 1).mean() < 0.52
        assert (run.returns <= middle + 1).mean() > 0.48
        assert (run.returns < low - 1).mean() < share + 0.005
        assert (run.returns <= low + 1).mean() > share - 0.005
        place, met, _, first = worst.match(card["trip"][1]).groups()
        assert float(met) / 100 == pytest.approx(run.met[:, names.index(place)].mean(), abs=0.005)
        assert float(first) == pytest.approx(run.returns.mean(), abs=1)


def test_what_is_said_of_changing_over(rooms, view):
    for i in range(rooms.k):
        for j in range(rooms.k):
            text = view["data"]["changes"][i][j]["text"]
            if i == j:
                assert text == ""
                continue
            found = mw.switching(rooms, i, j)
            assert f"can tell them apart after {found.watched:.0f} trip" in text
            most = re.search(r"loses up to (\S+) in reward, lost time included, at (\S+)\.", text)
            if most:
                state = [rooms.mdp.state_name(s) for s in range(rooms.mdp.n_states)].index(most[2])
                assert float(most[1]) == pytest.approx(found.cost[state], rel=0.01)
            else:
                assert text.endswith("costs next to nothing anywhere.")


def test_models_without_a_map_or_trips_have_a_table_too():
    mdp = mw.MDP.from_transitions(
        [
            ("a", "go", "b", 1.0, 1.0),
            ("a", "wait", "a", 1.0, 0.5),
            ("b", "go", "a", 1.0, 1.0),
            ("b", "wait", "b", 1.0, 0.4),
        ]
    )
    view = view_of(mw.plan(mdp, 2, floor=-1.0))
    assert view["closing"]["names"] == ["action go", "action wait"]
    assert view["closing"]["late"] == ""
    assert view["closing"]["heading"] == "reward per step"
    assert all(card["trip"] == () for card in view["cards"])


def test_values_that_vanish_beside_the_others_and_plans_that_are_not_found():
    found = mw.survival(mw.plan(mw.four_rooms(0), 2, slack=0.2))
    nothing = np.full(2, np.nan)
    told = replace(found, open=Outcomes(nothing, nothing, np.array([0.179, 0.17]), nothing, np.zeros(2), nothing))
    values = np.array([-4.36e-5, 0.0, np.nan, -0.224, 0.0, 0.0])
    row = Outcomes(*np.full((2, 6), np.nan), values, np.full(6, np.nan), np.array([0, 0, 0, 0, 1.0, 0.4]), np.zeros(6))
    assert [told.told(row, j) for j in range(6)] == ["nearly 0", "0", "no plan", "-0.224", "stuck", "40 % stuck"]


def test_without_trips_steps_are_watched_from_the_start():
    mdp = mw.MDP.from_transitions(
        [
            ("a", "go", "b", 1.0, 1.0),
            ("a", "fly", "c", 1.0, 1.0),
            ("b", "on", "a", 1.0, 1.0),
            ("c", "on", "a", 1.0, 1.0),
        ]
    )
    texts = view_of(mw.plan(mdp, 2, slack=0.1))["data"]["changes"]
    assert texts[0][1]["text"].startswith("Whoever watches can tell them apart after the first step, ")


@needs_browser
def test_closing_a_door_on_the_map(browser: Browser, rooms, report):
    closures = page_data(report)["closures"]
    which = next(i for i, own in enumerate(closures) if 0 < len(own["lost"]) < rooms.k)
    own = closures[which]
    with opened(browser, report.as_uri()) as page:
        door = page.locator(f'#closed [data-close="{which}"]')
        door.click()
        expect(page.locator("#moment")).to_have_text(own["sentence"])
        expect(page.locator("#closed-text")).to_have_text(own["sentence"])
        shut = page.eval_on_selector_all(".card.shut", "cards => cards.map((card) => Number(card.dataset.plan))")
        assert sorted(shut) == own["lost"]
        lines = page.eval_on_selector_all(".way-line.shut", "lines => lines.map((line) => Number(line.dataset.of))")
        assert sorted(lines) == own["lost"]
        page.keyboard.press("Escape")
        assert page.locator(".shut").count() == 0
        door.focus()
        page.keyboard.press("Enter")
        expect(page.locator(f'#closing [data-close="{which}"]')).to_have_attribute("aria-pressed", "true")
        page.locator(f'#closing [data-close="{which}"]').click()
        expect(page.locator("#closed-text")).to_have_text("")


@needs_browser
def test_what_changing_over_costs_is_drawn(browser: Browser, report):
    changes = page_data(report)["changes"]
    with opened(browser, report.as_uri()) as page:
        page.select_option("#left", "0")
        page.select_option("#right", "1")
        expect(page.locator("#change")).to_have_text(changes[0][1]["text"])
        assert page.locator("#change-map").is_visible() == bool(changes[0][1].get("cost"))
        page.select_option("#right", "0")
        expect(page.locator("#change-figure")).to_be_hidden()


@pytest.mark.parametrize(
    ("chances", "told"),
    [
        ([0.176, 0.824], "; 18 % of its trips earn 0"),
        ([0.042, 0.958], "; 4.2 % of its trips earn 0"),
        ([0.02, 0.03, 0.95], "; 1 in 20 earns 1 or less"),
        ([1.0], ""),
    ],
)
def test_where_many_trips_have_the_same_return_it_is_said_how_many(chances, told):
    returns = Returns(np.arange(len(chances), dtype=float), np.array(chances), 0.0)
    assert outcomes._tail_told(returns, terms_of(mw.four_rooms(0))) == told


@pytest.mark.parametrize(("costs", "tail"), [(False, "earns 0.1 less"), (True, "costs 0.1 more")])
def test_what_changes_from_then_on_has_the_sign_of_the_values_shown(costs, tail):
    """2 per step and 1.9, or costs of 8 and 8.1: back again it is the other way round, and between equals nothing is said."""
    rows = [("a", "go", "b", 1.0, 1.0), ("b", "on", "a", 1.0, 3.0), ("b", "off", "a", 1.0, 2.8)]
    mdp = mw.MDP.from_transitions(rows)
    if costs:
        mdp = replace(mdp, reward=mdp.reward - 10, costs=True)
    plans = mw.plan(mdp, 2, floor=-100.0)
    assert plans.rewards[0] > plans.rewards[1]
    worse, better = (outcomes._change(plans, None, i, 1 - i)["text"] for i in (0, 1))
    back = tail.replace("less", "MORE").replace("more", "less").replace("MORE", "more")
    assert worse.endswith(f"; from then on plan 2 {tail} per step.")
    assert better.endswith(f" costs next to nothing anywhere; from then on plan 1 {back} per step.")
    assert "from then on" not in outcomes._cost_told(plans, mw.switching(plans, 0, 0))


def test_trips_that_are_alike_are_not_told_of_each_plan():
    """Two ways of the same length to the goal, one of which may cost a little more: within 1 % that is the same."""
    for extra, told in ((0.001, False), (1.0, True)):
        ways = (("road", 0.0), ("canal", extra))
        rows = [("home", way, to, 0.5, -10.0 - more) for way, more in ways for to in ("shop", "home")]
        mdp = mw.MDP.from_transitions(
            [*rows, ("shop", "again", "home", 1.0, 0.0)], start="home", labels={"goal": ["shop"]}
        )
        plans = mw.plan(mdp, 2, criterion=mw.Episodic(), floor=-100.0)
        assert [len(sentences) == 1 for sentences in outcomes.trips_told(plans) or ()] == [told, told]
