"""A real browser for the tests of the page. Without one they are skipped with a reason; `make test` installs one."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

import manyways as mw

PROGRAM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
ALONE = (
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
NASTY = "<script>window.hit = 1</script>"
BRACED = "{x} {} {0.__class__} {"
QUOTED = "\"'><img src=x onerror='window.hit = 1'>"
needs_browser = pytest.mark.skipif(PROGRAM is None, reason="there is no Chromium: apt-get install chromium")


def nasty_plans() -> mw.PlanSet:
    """Plans for a model in which every name would do harm if it were inserted as markup."""
    mdp = mw.MDP.from_transitions(
        [
            (NASTY, "go", QUOTED, 0.9, 1.0),
            (NASTY, "go", NASTY, 0.1, 1.0),
            (NASTY, QUOTED, QUOTED, 1.0, 0.5),
            (QUOTED, "</script>", NASTY, 1.0, 0.0),
            (QUOTED, "<b>wait", "{{ 7 * 7 }}", 1.0, 0.5),
            ("{{ 7 * 7 }}", "on", NASTY, 1.0, 0.2),
            ("{{ 7 * 7 }}", BRACED, BRACED, 1.0, 0.6),
            (BRACED, "\u202eback", NASTY, 1.0, 0.6),
        ],
        labels={"</title>" + NASTY: [QUOTED], BRACED: [BRACED]},
        name=NASTY + "</title><!--",
    )
    return mw.plan(mdp, k=3, tradeoff=2.0)


@contextmanager
def running_browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=PROGRAM, args=list(ALONE))
        yield browser
        browser.close()


@contextmanager
def opened(browser: Browser, address: str, **settings: object) -> Iterator[Page]:
    """A page in a context of its own. The test fails if the page raised or logged an error.

    A test that provokes errors on purpose clears `page.complaints`.
    """
    context = browser.new_context(**({"viewport": {"width": 1100, "height": 800}} | settings))  # pyright: ignore[reportArgumentType]
    page = context.new_page()
    complaints: list[str] = []
    page.complaints = complaints  # pyright: ignore[reportAttributeAccessIssue]
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.set_default_timeout(20_000)
    page.goto(address)
    yield page
    context.close()
    assert complaints == []


def serious_findings(page: Page) -> list[str]:
    """What axe-core finds on a page that keeps people from using it: the rule, and the first element that breaks it.

    axe-playwright-python was taken because it comes with axe 4.12; axe-core-python comes with axe 4.4 of 2022.
    """
    found = Axe().run(page).response["violations"]
    return [f"{one['id']}: {one['nodes'][0]['html'][:80]}" for one in found if one["impact"] in ("serious", "critical")]


FAINT_TEXT = """() => {
  // The WCAG contrast of every visible text against its background.
  const pen = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const rgba = (colour) => {
    pen.clearRect(0, 0, 1, 1); pen.fillStyle = colour; pen.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = pen.getImageData(0, 0, 1, 1).data; return [r, g, b, a / 255];
  };
  const over = (top, below) => top.slice(0, 3).map((value, i) => value * top[3] + below[i] * (1 - top[3]));
  const light = (colour) => colour.slice(0, 3).map((v) => v / 255).map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (element) => {
    const chain = []; for (let e = element; e; e = e.parentElement) chain.push(getComputedStyle(e).backgroundColor);
    return chain.reverse().reduce((below, colour) => over(rgba(colour), below), [255, 255, 255]);
  };
  const faint = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode.textContent.trim(), element = walker.currentNode.parentElement;
    if (!text || ['SCRIPT', 'STYLE', 'NOSCRIPT', 'TITLE', 'OPTION', 'title'].includes(element.tagName)) continue;
    if (!element.checkVisibility() || element.closest('.unseen, .skip, [aria-hidden=true]')) continue;
    const style = getComputedStyle(element), shape = element instanceof SVGElement && element.previousElementSibling;
    // A text in a drawing stands on the shape before it, if that has a colour.
    const filled = shape && ['circle', 'rect'].includes(shape.tagName) && rgba(getComputedStyle(shape).fill)[3] > 0;
    const below = filled ? rgba(getComputedStyle(shape).fill) : ground(element);
    const colour = element instanceof SVGElement ? style.fill : style.color;
    const [a, b] = [light(over(rgba(colour), below)), light(below)];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) faint.push(`${ratio.toFixed(2)}: ${text.slice(0, 40)}`);
  }
  return faint;
}"""


def faint_texts(page: Page) -> list[str]:
    """Texts with a contrast below 4.5, the minimum of WCAG level AA."""
    return page.evaluate(FAINT_TEXT)
