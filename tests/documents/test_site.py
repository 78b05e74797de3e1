"""The site builds without warnings, and everything that its pages link to is there.

Examples are run by test_examples.py, so the site is built with empty pictures, and with two models in the gallery.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

import pytest

from documents.pages import DOCS, ROOT

IN_GALLERY = ("cliff", "maintenance")


class Links(HTMLParser):
    """The links, the loaded files and the anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.loaded: set[str] = set()
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value is None:
                continue
            if name in ("id", "name"):
                self.anchors.add(value)
            elif name == "src" or (name == "href" and tag == "link"):
                self.loaded.add(value)
            elif name == "href":
                self.links.add(value)


def wrong_links(site: Path) -> list[str]:
    """Links of the site that lead nowhere, and files that its pages load from elsewhere."""
    pages = {page: Links(page.read_text()) for page in sorted(site.rglob("*.html"))}
    wrong = []
    for page, found in pages.items():
        for link in sorted(found.links | found.loaded):
            where = f"{page.relative_to(site)}: {link}"
            if urlsplit(link).scheme in ("http", "https") or link.startswith("//"):
                wrong += [where] if link in found.loaded else []
                continue
            if urlsplit(link).scheme in ("data", "mailto"):
                continue
            place, anchor = urldefrag(link)
            target = (page.parent / unquote(place.partition("?")[0])).resolve() if place else page
            if target.is_dir():
                target /= "index.html"
            if not target.exists() or (
                anchor and target in pages and unquote(anchor) not in pages[target].anchors and place + anchor != "top"
            ):
                wrong.append(where)
    return wrong


def test_the_site_builds_without_warnings_and_all_links_lead_somewhere(tmp_path):
    pytest.importorskip("gymnasium")
    left_out = shutil.ignore_patterns("made", "__pycache__", "gallery.md", "api.md", "commands.md")
    shutil.copytree(DOCS, tmp_path / "docs", ignore=left_out)
    shutil.copy(ROOT / "README.md", tmp_path)
    command = [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "--keep-going", "-b", "html"]
    settings = ["-D", "run_examples=0", "-D", f"gallery_models={','.join(IN_GALLERY)}"]
    places = [str(tmp_path / "docs"), str(tmp_path / "site")]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    built = subprocess.run([*command, *settings, *places], check=False, capture_output=True, text=True, env=environment)
    assert built.returncode == 0, built.stderr
    assert wrong_links(tmp_path / "site") == []
    for page in ("index", "tutorials/robot-map", "reference/api", "reference/commands", "gallery", "gallery/cliff"):
        assert (tmp_path / "site" / f"{page}.html").exists()


def test_wrong_links_are_found(tmp_path):
    (tmp_path / "b.html").write_text('<h1 id="here">b</h1>')
    (tmp_path / "a.html").write_text(
        '<a href="b.html#here">1</a><a href="b.html#there">2</a><a href="c.html">3</a><a href="https://x.example">4</a>'
        '<script src="https://x.example/a.js"></script><a href="#own">5</a><img src="none.png">'
    )
    assert wrong_links(tmp_path) == [
        "a.html: #own",
        "a.html: b.html#there",
        "a.html: c.html",
        "a.html: https://x.example/a.js",
        "a.html: none.png",
    ]


OUTSIDE_THE_SITE = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "benchmarks/README.md")


@pytest.mark.parametrize("name", OUTSIDE_THE_SITE)
def test_links_of_documents_that_are_not_in_the_site(name):
    text = (ROOT / name).read_text()
    links = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'(?:src|href)="([^"]+)"', text)
    assert [
        link for link in links if urlsplit(link).scheme == "" and not leads_somewhere((ROOT / name).parent, link)
    ] == []


def leads_somewhere(folder: Path, link: str) -> bool:
    place, anchor = urldefrag(link)
    target = folder / place
    if not anchor or not target.is_file():
        return target.exists()
    headings = re.findall(r"^#+ (.*)$", target.read_text(), re.M)
    return anchor in {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_that_lead_nowhere_are_found():
    assert leads_somewhere(ROOT, "docs/tutorials/index.md#install")
    assert not leads_somewhere(ROOT, "docs/tutorials/index.md#instal")
    assert not leads_somewhere(ROOT, "docs/nothing.md")
