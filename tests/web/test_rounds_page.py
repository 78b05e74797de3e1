"""Choosing by rounds in a real browser, with the real server: three rounds, back, restart, stop, export, phones."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect
from test_live_page import served

import manyways as mw
from browser import NASTY, faint_texts, nasty_plans, needs_browser, opened, running_browser, serious_findings

pytestmark = needs_browser
WAIT_MS = 60_000


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with running_browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def plans() -> mw.PlanSet:
    return mw.plan("nine-rooms:0", k=3, tradeoff=8.0)


@pytest.fixture
def plans_path(plans, tmp_path) -> Path:
    return plans.save(tmp_path / "plans.mw")


def begin(page: Page, address: str, k: int = 4) -> None:
    page.goto(f"{address}rounds")
    page.get_by_label("Plans in a round").fill(str(k))
    page.get_by_role("button", name="Start").click()
    expect(page.locator(".card")).to_have_count(k, timeout=WAIT_MS)


def take(page: Page, plan: int, then: int) -> str:
    """Take a plan and wait for the round after it; returns the key of the plan."""
    key = page.get_attribute(f".card[data-plan='{plan}']", "data-key")
    assert key is not None
    page.click(f"[data-take='{plan}']")
    expect(page).to_have_title(re.compile(f"^Round {then}:"), timeout=WAIT_MS)
    return key


def picked(page: Page) -> str | None:
    expect(page.locator(".card.chosen")).to_have_count(1)
    return page.get_attribute(".card.chosen", "data-key")


def downloaded(page: Page, address: str, path: str) -> bytes:
    answer = page.request.get(f"{address}{path}")
    assert answer.status == 200
    return answer.body()


def test_three_rounds_back_a_restart_the_export_and_the_choice(browser: Browser, plans_path, plans, tmp_path):
    with served(plans_path) as address, opened(browser, address) as page:
        page.get_by_role("link", name="Which would you take?").click()
        expect(page.get_by_role("heading", name="Choose by rounds")).to_be_visible()
        begin(page, address)
        assert "Nothing yet" in page.inner_text("#learned")
        assert page.locator("#stop").count() == 0
        for number, plan in enumerate((3, 0, 1)):
            key = take(page, plan, number + 2)
            assert picked(page) == key, "the plan that was taken is in the next set, and marked"
        assert page.locator(".answers li").count() == 3

        # What is shown is what a conversation with the same answers says.
        talk = mw.Conversation(plans.mdp, 4, slack=0.1)
        for plan in (3, 0, 1):
            talk.choose(plan)
        shown = [page.get_attribute(f".card[data-plan='{i}']", "data-key") for i in range(4)]
        assert shown == [plan.key for plan in talk.plans]
        learned = json.loads(downloaded(page, address, "rounds/learned.json"))
        np.testing.assert_allclose([row["preference"] for row in learned["choices"]], talk.preference.mean)

        # Point at a cell of the map: its number is the expected preference there.
        mean = talk.preference.by_state
        layout = plans.mdp.layout
        state = int(np.flatnonzero(~layout.blocked.ravel()[layout.cells])[7])
        row, column = layout.position(state)
        box = page.locator("#learned-map").bounding_box()
        assert box is not None
        rows, columns = layout.shape
        at = {"x": (column + 0.5) * box["width"] / columns, "y": (row + 0.5) * box["height"] / rows}
        page.hover("#learned-map", position=at)
        expect(page.locator("#learned-pointed")).to_contain_text(f"row {row}, column {column}: ")
        said = page.inner_text("#learned-pointed").split(": ")[1].split(" ± ")
        assert float(said[0].replace("−", "-")) == pytest.approx(mean[state], rel=0.06)
        assert float(said[1]) == pytest.approx(talk.preference.spread_by_state[state], rel=0.06)

        # Back: the second answer is the last one again, and another plan can be taken.
        page.get_by_role("button", name="Back").click()
        expect(page).to_have_title(re.compile("^Round 3:"))
        assert page.locator(".answers li").count() == 2
        last = take(page, 2, 4)

    with served(plans_path) as address, opened(browser, f"{address}rounds", accept_downloads=True) as page:
        expect(page).to_have_title(re.compile("^Round 4:"))
        assert picked(page) == last
        with page.expect_download() as coming:
            page.get_by_role("link", name="Learned preference as a reward").click()
        coming.value.save_as(tmp_path / "learned.json")
        assert coming.value.suggested_filename == "plans-learned.json"
        better = mw.LearnedPreference.load(tmp_path / "learned.json", plans.mdp).model()
        assert mw.plan(better, 1).rewards[0] >= (mw.plan(plans.mdp, 1).occupancies @ better.reward)[0] - 1e-9
        with page.expect_download() as coming:
            page.get_by_role("link", name="All rounds").click()
        coming.value.save_as(tmp_path / "rounds.mwc")
        assert mw.Conversation.load(tmp_path / "rounds.mwc").best.key == last
        page.get_by_role("button", name="Stop and choose").click()
        expect(page.locator(".card.chosen")).to_have_attribute("data-key", last)
        expect(page).to_have_url(re.compile(r"/#plan-\d$"))
        expect(page.locator("#chosen-line")).to_contain_text("Chosen: plan")
        expect(page.locator(".ask")).to_contain_text("You are in round 4.")
        expect(page.locator("#news")).to_be_hidden()


def test_two_people_and_a_new_start(browser: Browser, plans_path):
    with served(plans_path) as address, opened(browser, address) as ada, opened(browser, address) as ben:
        begin(ada, address, 3)
        ben.goto(f"{address}rounds")
        take(ada, 1, 2)
        expect(ben.locator("#news")).to_contain_text("Somebody has answered", timeout=20_000)
        ben.click("[data-take='0']")
        expect(ben.locator("#trouble")).to_contain_text("no longer the plans of the current round")
        assert ben.locator(".card.picked").count() == 0
        ben.complaints.clear()  # the browser logs the refusal
        ben.click("#refresh")
        expect(ben).to_have_title(re.compile("^Round 2:"))
        ben.locator("summary").click()
        ben.get_by_label("Plans in a round").fill("2")
        ben.get_by_role("button", name="Start again").click()
        expect(ben.locator(".card")).to_have_count(2, timeout=WAIT_MS)
        expect(ben).to_have_title(re.compile("^Round 1:"))


def test_a_long_start_shows_progress_and_can_be_cancelled(browser: Browser, tmp_path):
    plans = mw.plan("rooms-60:0", 1)
    with served(plans.save(tmp_path / "plans.mw")) as address, opened(browser, f"{address}rounds") as page:
        page.get_by_label("Plans in a round").fill("12")
        page.get_by_role("button", name="Start").click()
        expect(page.locator("#progress")).to_be_visible()
        expect(page.locator("#progress-text")).to_contain_text("Finding the next plans")
        expect(page.get_by_role("button", name="Start")).to_be_disabled()
        page.get_by_role("button", name="Cancel").click()
        expect(page.locator("#trouble")).to_have_text("Stopped: nothing was changed.")
        expect(page.locator("#progress")).to_be_hidden()
        expect(page.get_by_role("button", name="Start")).to_be_enabled()


def test_names_are_shown_as_text_in_models_without_a_map(browser: Browser, tmp_path):
    plans = nasty_plans()
    with served(plans.save(tmp_path / "plans.mw")) as address, opened(browser, address) as page:
        begin(page, address, 2)
        take(page, 1, 2)
        assert page.evaluate("window.hit") is None
        assert page.locator("img, canvas").count() == 0
        assert NASTY in page.inner_text("header")


def test_on_a_phone(browser: Browser, plans_path):
    phone = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}
    with served(plans_path) as address, opened(browser, address, **phone) as page:
        begin(page, address, 3)
        take(page, 1, 2)
        below = """(card) => card.querySelector('.about').getBoundingClientRect().top
            >= card.querySelector('canvas').getBoundingClientRect().bottom"""
        assert page.locator(".card").first.evaluate(below), "the map is above the text"
        assert page.locator("#learned-pointed").inner_text() == "", "there is nothing to point with"


def test_everyone_can_use_it(browser: Browser, plans_path):
    with served(plans_path) as address, opened(browser, address) as page:
        begin(page, address, 3)
        page.focus("[data-take='2']")
        page.keyboard.press("Enter")
        expect(page).to_have_title(re.compile("^Round 2:"), timeout=WAIT_MS)
        page.locator("details").evaluate_all("(all) => all.forEach((one) => { one.open = true; })")
        for width, scheme in ((360, "dark"), (1100, "light")):
            page.set_viewport_size({"width": width, "height": 780})
            page.emulate_media(color_scheme=scheme)
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert serious_findings(page) == []
            assert faint_texts(page) == []
        assert page.locator("#learned-map").evaluate("(map) => map.width > 0 && map.height > 0")
        assert page.locator("#learned-pointed").inner_text().startswith("Point at a place")
        unreachable = page.evaluate(
            "[...document.querySelectorAll('button, input, a[href], summary')].filter(e => e.tabIndex < 0).length"
        )
        assert unreachable == 0
