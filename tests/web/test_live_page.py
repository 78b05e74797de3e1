"""The live page in a real browser, with the real server: plan again, keep, star, note, choose, download, restart."""

from __future__ import annotations

import math
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

import manyways as mw
from browser import NASTY, faint_texts, nasty_plans, needs_browser, opened, running_browser, serious_findings

pytestmark = needs_browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with running_browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def plans() -> mw.PlanSet:
    return mw.plan("four-rooms:0", k=4, tradeoff=8.0)


@pytest.fixture
def plans_path(plans, tmp_path) -> Path:
    return plans.save(tmp_path / "plans.mw")


@contextmanager
def served(path: Path) -> Iterator[str]:
    """The address of a server in a process of its own, which Ctrl-C ends."""
    command = [sys.executable, "-m", "manyways", "serve", str(path), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            address = re.search(r"http://\S+", server.stdout.readline())
            assert address is not None
            yield address[0]
        finally:
            server.send_signal(signal.SIGINT)
            assert server.wait(30) == 0


def card(page: Page, number: int):
    return page.locator(f"#plan-{number}")


def write_about(page: Page, number: int, form: str, text: str) -> None:
    own = card(page, number)
    own.locator("details").evaluate("(details) => { details.open = true; }")
    own.locator(f"[data-form={form}] [name=value]").fill(text)
    own.locator(f"[data-form={form}] button").click()


def test_a_visit_from_first_look_to_choice_and_a_restart(browser: Browser, plans_path, tmp_path):
    before = mw.load(plans_path)
    with served(plans_path) as address, opened(browser, address, accept_downloads=True) as page:
        # Plan again, with another tradeoff and one more plan.
        page.fill("[name=k]", "5")
        page.fill("[name=tradeoff]", "4")
        page.fill("[name=seed]", "1")
        page.click("#replan")
        expect(page.locator(".card")).to_have_count(5, timeout=60_000)
        assert page.input_value("[name=tradeoff]") == "4"
        keys = [page.get_attribute(f"#plan-{i}", "data-key") for i in range(1, 6)]
        assert keys != [before[i].key for i in range(4)]

        # Keep two, replace the others by one: three plans.
        page.fill("#author", "Ada")
        write_about(page, 2, "name", "By the river")
        expect(card(page, 2).locator(".title")).to_have_text("By the river")
        for number in (2, 3):
            card(page, number).get_by_role("checkbox").check()
        assert page.inner_text("#replan") == "Keep 2, replace the others"
        page.fill("[name=k]", "3")
        page.click("#replan")
        expect(page.locator(".card")).to_have_count(3, timeout=60_000)
        now = [page.get_attribute(f"#plan-{i}", "data-key") for i in range(1, 4)]
        assert set(keys[1:3]) < set(now)
        assert len(set(now) - set(keys)) == 1
        river = now.index(keys[1]) + 1
        expect(card(page, river).locator(".title")).to_have_text("By the river")

        # Star, note, choose.
        card(page, river).get_by_role("button", name="Star").click()
        expect(card(page, river).get_by_role("button", name="Star")).to_have_attribute("aria-pressed", "true")
        write_about(page, river, "note", f"Past the old mill. {NASTY}")
        expect(card(page, river).locator(".notes li")).to_have_count(1)
        write_about(page, river, "note", "Not in winter.")
        expect(card(page, river).locator(".notes li")).to_have_count(2)
        card(page, river).get_by_role("button", name="Choose").click()
        expect(card(page, river)).to_have_class(re.compile("chosen"))

        # Download it in every format.
        for ending in (".json", ".csv", ".npz", ".scheduler"):
            with page.expect_download() as coming:
                card(page, river).locator(f"a[href$='policy{ending}']").click()
            policy = mw.load_policy(_saved(coming.value, tmp_path / f"policy{ending}"), before.mdp)
            assert policy.probabilities.shape == (before.mdp.n_choices,)
        with page.expect_download() as coming:
            page.get_by_role("link", name="Download the set").click()
        whole = mw.load(_saved(coming.value, tmp_path / "downloaded.mw"))
        np.testing.assert_array_equal(whole.policies[river - 1], policy.probabilities)
        assert whole[river - 1].key == keys[1]
        assert mw.verify(before.mdp, whole).ok

    with served(plans_path) as address, opened(browser, address) as page:
        expect(page.locator(".card")).to_have_count(3)
        own = card(page, river)
        expect(own.locator(".title")).to_have_text("By the river")
        expect(own).to_have_class(re.compile("chosen"))
        expect(own.get_by_role("button", name="Star")).to_have_attribute("aria-pressed", "true")
        notes = own.locator(".notes .text").all_inner_texts()
        assert notes == [f"Past the old mill. {NASTY}", "Not in winter."]
        assert own.locator(".notes .author").all_inner_texts() == ["Ada", "Ada"]
        assert page.evaluate("window.hit") is None
        # Back to the first set: only in this browser, with the set in the address.
        assert page.inner_text("#chosen-line") == f"Chosen: plan {river} of set 3 (By the river)"
        for place in ("#left", "#right", "#measures"):
            assert "By the river" in page.inner_text(place)
        assert card(page, river).get_by_role("button", name="Chosen").count() == 1
        page.select_option("#sets", index=0)
        expect(page.locator(".card")).to_have_count(4)
        assert page.url.endswith("?set=1")
        with opened(browser, address) as other:
            expect(other.locator(".card")).to_have_count(3)
        assert [page.get_attribute(f"#plan-{i}", "data-key") for i in range(1, 5)] == [before[i].key for i in range(4)]
    assert mw.load(plans_path)[0].key == before[0].key


def _saved(download, path: Path) -> Path:
    download.save_as(path)
    return path


def test_how_much_plans_may_give_up(browser: Browser, plans_path):
    before = mw.load(plans_path)
    assert before.rewards.min() < 0.95 * before.optimal_reward
    with served(plans_path) as address, opened(browser, address) as page:
        field = page.get_by_label("Give up at most")
        assert field.input_value() == "", "the plans were not limited"
        assert "within" not in page.inner_text("header .lead")

        # At most 5 %.
        field.fill("5")
        page.click("#replan")
        expect(page.locator("header .lead")).to_contain_text("within 5 % of the best possible", timeout=60_000)
        assert field.input_value() == "5"
        assert "within 5 %" in page.inner_text("#sets")
        limited = downloaded(page, address, 2)
        assert limited.limits.slack == 0.05
        assert limited.rewards.min() >= 0.95 * before.optimal_reward
        assert mw.verify(before.mdp, limited).ok

        # An empty field removes the limit: the same set as in the beginning.
        field.fill("")
        page.click("#replan")
        expect(page.locator("header .lead")).not_to_contain_text("within 5 %", timeout=60_000)
        assert field.input_value() == ""
        assert [plan.key for plan in downloaded(page, address, 3)] == [plan.key for plan in before]

        # The browser itself refuses what is no share.
        field.fill("-1")
        page.click("#replan")
        assert field.evaluate("(field) => field.validity.rangeUnderflow")
        expect(page.locator("#progress")).to_be_hidden()


def test_a_set_without_a_tradeoff_needs_a_limit(browser: Browser, tmp_path):
    plans = mw.plan("four-rooms:0", 2, math.inf, slack=0.05)
    with served(plans.save(tmp_path / "plans.mw")) as address, opened(browser, address) as page:
        field = page.get_by_label("Give up at most")
        assert field.input_value() == "5"
        assert page.locator("[name=tradeoff]").count() == 0
        field.fill("")
        page.click("#replan")
        assert field.evaluate("(field) => field.validity.valueMissing")
        field.fill("2.5")
        page.click("#replan")
        expect(page.locator("header .lead")).to_contain_text("within 2.5 % of the best possible", timeout=60_000)
        new = downloaded(page, address, 2)
        assert (new.tradeoff, new.limits.slack) == (math.inf, 0.025)
        assert new.rewards.min() >= 0.975 * new.optimal_reward


def downloaded(page: Page, address: str, number: int) -> mw.PlanSet:
    content = page.request.get(f"{address.rstrip('/')}/sets/{number}/plans.mw").body()
    return mw.PlanSet.from_bytes(content, f"set {number}")


def test_names_are_shown_as_text_and_never_run(browser: Browser, tmp_path):
    plans = nasty_plans()
    with served(plans.save(tmp_path / "plans.mw")) as address, opened(browser, address) as page:
        write_about(page, 1, "name", NASTY)
        expect(card(page, 1).locator(".title")).to_have_text(NASTY)
        page.reload()
        page.click("#play")
        expect(page.locator("#left-map li").nth(2)).to_be_visible()
        assert page.evaluate("window.hit") is None
        assert page.locator("img").count() == 0
        assert page.inner_text("#left-name") == f"Plan 1: {NASTY}"
        assert plans.mdp.name in page.inner_text(".over")


def test_two_people_at_once(browser: Browser, plans_path):
    with served(plans_path) as address, opened(browser, address) as ada, opened(browser, address) as ben:
        ada.fill("#author", "Ada")
        ben.fill("#author", "Ben")
        write_about(ada, 1, "note", "I like this one.")
        write_about(ben, 1, "note", "I do not.")
        for page in (ada, ben):
            expect(card(page, 1).locator(".notes .text")).to_have_text(["I like this one.", "I do not."])
        # Ben is writing while Ada plans again: his text stays, and the page shows him that there is a new set.
        card(ben, 2).locator("details").evaluate("(details) => { details.open = true; }")
        card(ben, 2).locator("textarea").fill("half a thou")
        ada.fill("[name=seed]", "7")
        ada.fill("[name=k]", "3")
        ada.click("#replan")
        expect(ada.locator(".card")).to_have_count(3, timeout=60_000)
        expect(ben.locator("#news")).to_be_visible()
        assert card(ben, 2).locator("textarea").input_value() == "half a thou"
        card(ben, 2).locator("[data-form=note] button").click()
        expect(card(ben, 2).locator(".notes li")).to_have_count(1)
        ben.click("#refresh")
        expect(ben.locator(".card")).to_have_count(3)
        # A note can be removed.
        write_about(ben, 3, "note", "a mistake")
        card(ben, 3).get_by_role("button", name="Remove this note").click()
        expect(card(ben, 3).locator(".notes li")).to_have_count(0)


def test_text_that_is_being_written_is_never_lost(browser: Browser, plans_path):
    with served(plans_path) as address, opened(browser, address) as ada, opened(browser, address) as ben:
        card(ada, 1).locator("details").evaluate("(details) => { details.open = true; }")
        card(ada, 1).locator("[data-form=name] input").fill("half a na")
        card(ada, 1).locator("textarea").fill("half a thou")
        write_about(ben, 2, "note", "Something happens meanwhile.")
        expect(card(ada, 2).locator(".notes li")).to_have_count(1)
        assert card(ada, 1).locator("[data-form=name] input").input_value() == "half a na"
        # Not even when the person who writes has planned again.
        ada.fill("[name=k]", "2")
        ada.click("#replan")
        expect(ada.locator("#news")).to_contain_text("not saved yet", timeout=60_000)
        assert card(ada, 1).locator("textarea").input_value() == "half a thou"
        # Names that others give are shown at once, and the focus stays on the same button.
        ada.focus("#plan-2 .notes button")
        write_about(ben, 2, "name", "By the sea")
        expect(card(ada, 2).locator(".title")).to_have_text("By the sea")
        assert ada.evaluate("document.activeElement.dataset.do") == "forget"
        ada.click("#refresh")
        expect(ada.locator(".card")).to_have_count(2)


def test_a_long_plan_shows_progress_is_not_started_twice_and_can_be_stopped(browser: Browser, plans_path):
    with served(plans_path) as address, opened(browser, address) as ada:
        ada.fill("[name=k]", "50")
        ada.click("#replan")
        expect(ada.locator("#progress")).to_be_visible()
        expect(ada.locator("#progress-text")).to_contain_text("%", timeout=60_000)
        expect(ada.locator("#replan")).to_be_disabled()
        with opened(browser, address) as ben:
            expect(ben.locator("#progress")).to_be_visible()
            refused = ben.evaluate(
                """() => fetch('plan', { method: 'POST', headers: { 'Content-Type': 'application/json' },
                body: JSON.stringify({ k: 2, tradeoff: 1, seed: 0, keep: [], set: 1 }) }).then((answer) => answer.status)"""
            )
            assert refused == 409
            ben.complaints.clear()  # the browser logs the refusal
        ada.click("#cancel")
        expect(ada.locator("#progress")).to_be_hidden()
        expect(ada.locator("#trouble")).to_have_text("Stopped: nothing was changed.")
        expect(ada.locator(".card")).to_have_count(4)


def test_the_page_says_what_cannot_be_planned(browser: Browser, plans_path):
    with served(plans_path) as address, opened(browser, address) as page:
        for number in (1, 2, 3, 4):
            card(page, number).get_by_role("checkbox").check()
        page.click("#replan")
        expect(page.locator("#trouble")).to_contain_text("you keep 4 plans, so ask for at least 5")
        expect(page.locator("#trouble")).to_be_in_viewport()
        page.complaints.clear()


def test_the_page_says_that_the_server_has_gone(browser: Browser, plans_path):
    with served(plans_path) as address:
        context = opened(browser, address)
        page = context.__enter__()
    expect(page.locator("#trouble")).to_contain_text("does not answer", timeout=30_000)
    page.complaints.clear()
    context.__exit__(None, None, None)


def test_everyone_can_use_it(browser: Browser, plans_path):
    with served(plans_path) as address, opened(browser, address) as page:
        write_about(page, 1, "note", "A word.")
        card(page, 2).get_by_role("button", name="Choose").click()
        page.locator("details").evaluate_all("(all) => all.forEach((one) => { one.open = true; })")
        expect(card(page, 1).locator(".notes li")).to_have_count(1)
        for width, scheme in ((360, "dark"), (1100, "light")):
            page.set_viewport_size({"width": width, "height": 780})
            page.emulate_media(color_scheme=scheme)
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert serious_findings(page) == []
            assert faint_texts(page) == []
        reached = page.evaluate(
            "[...document.querySelectorAll('button, input, select, textarea, a[href], summary')].filter(e => e.tabIndex < 0).length"
        )
        assert reached == 0


def test_a_ban_keeps_the_kept_plan_with_its_name_and_the_page_is_a_file(browser: Browser, tmp_path):
    rows = [("home", way, "work", 1.0, pay) for way, pay in (("bus", 3.0), ("bike", 3.0), ("walk", 2.9), ("run", 2.8))]
    mdp = mw.MDP.from_transitions([*rows, ("work", "back", "home", 1.0, 1.0)], name="commute")
    plans = mw.plan(mdp, 3, slack=0.2)
    number = next(i for i, policy in enumerate(plans.policies, 1) if np.argmax(policy[:4]) != 0)
    with served(plans.save(tmp_path / "plans.mw")) as address, opened(browser, address, accept_downloads=True) as page:
        title = card(page, number).locator(".title").inner_text()
        write_about(page, number, "note", "fresh air")
        expect(card(page, number).locator("[data-notes] .text")).to_have_text("fresh air")
        card(page, number).get_by_label("Keep").check()
        page.locator("#again .settings summary").click()
        page.get_by_label("do bus").check()
        page.click("#replan")
        expect(page.locator("body")).to_have_attribute("data-set", "2", timeout=60_000)
        assert "kept" in card(page, 1).inner_text()
        expect(card(page, 1).locator("[data-notes] .text")).to_have_text("fresh air")
        assert "bus" not in page.inner_text("#decisions") if page.locator("#decisions").count() else True
        page.set_viewport_size({"width": 360, "height": 740})
        assert page.evaluate("document.documentElement.scrollWidth") == 360, (
            "names of sets are longer than a phone is wide"
        )
        with page.expect_download() as download:
            page.get_by_role("link", name="Download this page").click()
        download.value.save_as(tmp_path / "page.html")
        page.goto(f"{address}?set=1")
        assert card(page, number).locator(".title").inner_text() == title
    with opened(browser, (tmp_path / "page.html").as_uri()) as page:
        assert "fresh air" in page.inner_text("#plan-1")
        assert page.locator("[data-form]").count() == 0


def test_more_and_less_like_a_plan(browser: Browser, plans_path):
    plans = mw.load(plans_path)
    with served(plans_path) as address, opened(browser, address) as page:
        title = card(page, 2).locator(".title").inner_text()
        card(page, 2).locator(".more").evaluate("(more) => { more.open = true; }")
        card(page, 2).get_by_role("button", name="More like this").click()
        expect(page.locator("body")).to_have_attribute("data-set", "2", timeout=60_000)
        keys = [one.get_attribute("data-key") for one in page.locator(".card").all()]
        assert plans[1].key in keys
        assert page.locator(f'.card[data-key="{plans[1].key}"] .title').inner_text() == title, "it keeps its title"
        page.goto(f"{address}?set=1")
        card(page, 3).locator(".more").evaluate("(more) => { more.open = true; }")
        card(page, 3).get_by_role("button", name="Less like this").click()
        expect(page.locator("body")).to_have_attribute("data-set", "3", timeout=60_000)
        keys = [one.get_attribute("data-key") for one in page.locator(".card").all()]
        assert plans[2].key not in keys
        assert {plans[i].key for i in (0, 1, 3)} <= set(keys)
