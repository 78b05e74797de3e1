"""The two pictures of the documentation that its build does not make, because GitHub shows them or they need a browser.

    python docs/tools/pictures.py

plans the six ways of the README and writes the picture of all plans, `docs/pictures/overview.svg`, and, with Chromium and
Playwright, the page itself, `docs/pictures/page.png`. A test compares the first one with a page that is made anew.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import manyways as mw
from generated import picture_of_page

PICTURES = Path(__file__).parents[1] / "pictures"


def photograph(page: Path, picture: Path) -> None:
    """The top of a page, as a browser shows it."""
    from playwright.sync_api import sync_playwright

    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        opened = browser.new_page(viewport={"width": 1280, "height": 1000})
        opened.goto(page.as_uri())
        opened.screenshot(path=picture)
        browser.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "plans.html"
        mw.plan("nine-rooms:8", k=6, slack=0.1).report(page)
        (PICTURES / "overview.svg").write_text(picture_of_page(page.read_text()) + "\n")
        if "--without-browser" not in sys.argv:
            photograph(page, PICTURES / "page.png")
