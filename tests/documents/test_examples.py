"""Every example of the documentation runs and gives the output that its page shows."""

from __future__ import annotations

import pytest
from documents.pages import PAGES, ROOT, code_of, name_of
from documents.tools import blocks_of, pages_with_examples, pictures_of, run_page, same

RUN, NEVER_RUN = {"python", "console"}, {"sh", "text", "json", "py", "inline", "", "{code-block}", "{eval-rst}", "{list-table}"}
WITH_PYTHON_THAT_CANNOT_RUN = {"docs/howto/use-a-plan.md": "a node for ROS 2"}


@pytest.mark.parametrize("page", pages_with_examples(), ids=name_of)
def test_examples(page, tmp_path):
    assert run_page(page, tmp_path) > 0, "see docs/tools/examples.py --update"
    for picture in pictures_of(page):
        assert (tmp_path / picture).read_bytes()[:4] == b"\x89PNG"


def test_nearly_all_python_in_the_documentation_is_run():
    """Blocks of Python that are not run have the language `py`, and there is a reason for each page that has one."""
    with_such = {name_of(page) for page in PAGES if any(kind == "py" for kind, _ in code_of(page.read_text()))}
    assert with_such == set(WITH_PYTHON_THAT_CANNOT_RUN)
    for page in PAGES:
        assert {kind for kind, _ in code_of(page.read_text())} <= RUN | NEVER_RUN, page


def test_the_readme_and_every_tutorial_are_run():
    pages = pages_with_examples()
    assert ROOT / "README.md" in pages
    tutorials = {path for path in (ROOT / "docs" / "tutorials").glob("*.md") if path.name != "index.md"}
    assert len(tutorials) == 6
    assert tutorials <= set(pages)


@pytest.mark.parametrize(
    ("shown", "printed", "alike"),
    [
        ("a\nb", "a \nb\n", True),
        ("a\nb", "a\nc", False),
        ("a ... c", "a b c", True),
        ("1 ...", "2 b", False),
        ("took 1.23 s", "took 7.89 s", True),
        ("│ model │ ...     │ 0e+00 │", "│ model │ 1.2e-13 │ 0e+00 │", True),
        ("│ model │ ...     │ 0e+00 │", "│ model │ 1.2e-13 │ 1e+00 │", False),
    ],
)
def test_outputs_are_compared(shown, printed, alike):
    assert same(shown, printed) is alike


@pytest.mark.parametrize(
    "text",
    [
        "```python\nprint(1)\n```\n\n```output\n2\n```\n",
        "```python\n1 / 0\n```\n",
        "```console\n$ manyways show nothing.mw\n```\n",
        "```console\n$ rm -r x\n```\n",
    ],
)
def test_a_wrong_example_is_noticed(tmp_path, text):
    page = tmp_path / "page.md"
    page.write_text(text)
    with pytest.raises(Exception, match=r"page|division|ended with|examples run"):
        run_page(page, tmp_path / "made")


def test_blocks_are_found():
    kinds = [block.kind for block in blocks_of("```python\nx\n```\n```sh\ny\n```\n```{code-block} c\n:caption: a.c\nz\n```\n")]
    assert kinds == ["python", "file"]
