"""The gallery: pages of example models."""

from __future__ import annotations

import re

import pytest

import manyways as mw
from browser import needs_browser, opened, running_browser, serious_findings
from manyways.gallery import EXAMPLES, example_file, write_gallery


def test_pages_and_the_page_that_shows_them(tmp_path):
    pytest.importorskip("gymnasium")
    told: list[str] = []
    page, left_out = write_gallery(tmp_path / "pages", ("maintenance", "frozen-lake"), told.append)
    assert left_out == {}
    assert told == ["frozen-lake", "maintenance"]
    text = page.read_text()
    assert text.count("<article") == 2
    for name in told:
        assert f'href="{name}.html"' in text
        assert mw.load(tmp_path / "pages" / f"{name}.mw").certificate.ok
        shown = (tmp_path / "pages" / f"{name}.html").read_text()
        assert f"manyways verify {name}.mw" in shown
        assert str(example_file("")) not in shown
    assert "manyways plan maintenance.csv --k 5" in shown
    ids = re.findall(r' id="([^"]+)"', text)
    assert len(ids) == len(set(ids))


def test_what_cannot_be_read_is_left_out(tmp_path, monkeypatch):
    def refuse(source, **_):
        raise mw.SourceError(f"{source} needs a package")

    monkeypatch.setattr("manyways.gallery.plan", refuse)
    page, left_out = write_gallery(tmp_path, ("taxi",))
    assert left_out == {"taxi": "gym:Taxi-v3 needs a package"}
    assert page.read_text().count("<article") == 0


def test_every_example_names_a_model_that_is_there():
    assert len({example.name for example in EXAMPLES}) == len(EXAMPLES) == 12
    for example in EXAMPLES:
        place = example.source.partition("?")[0]
        assert ":" in place or example_file(place).exists()


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(mw.OutputError, match="cannot write"):
        write_gallery(tmp_path / "file" / "pages", ("field",))


@needs_browser
def test_everyone_can_use_the_page_that_shows_them(tmp_path):
    page, _ = write_gallery(tmp_path, ("maintenance",))
    with running_browser() as browser, opened(browser, page.as_uri()) as shown:
        assert serious_findings(shown) == []
        shown.keyboard.press("Tab")
        assert shown.evaluate("document.activeElement.getAttribute('href')") == "maintenance.html"
        shown.keyboard.press("Tab")
        assert shown.evaluate("document.activeElement.tagName") == "BODY", "the picture is the same link once more"
