"""Every example of the documentation runs and gives the output that its page shows."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import manyways as mw
from documents.pages import PAGES, ROOT, code_of, name_of
from documents.tools import (
    blocks_of,
    difference,
    pages_with_examples,
    picture_of_page,
    pictures_of,
    run_page,
    same,
    try_page,
)

RUN, NOT_RUN = {"python", "console"}, {"sh", "text", "json", "inline", "", "{code-block}"}


@pytest.mark.parametrize("page", pages_with_examples(), ids=name_of)
@pytest.mark.usefixtures("registrations")
def test_examples(page, tmp_path):
    assert run_page(page, tmp_path) > 0, "see docs/tools/examples.py --update"
    for picture in pictures_of(page):
        assert (tmp_path / picture).read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_code_that_is_not_run_is_shell_text_or_a_file(page):
    """Shell blocks are for what takes long or needs other machines; their options are checked by test_nothing_is_stale.py."""
    assert {kind for kind, _ in code_of(page.read_text())} <= RUN | NOT_RUN


def test_the_first_picture_of_the_readme_is_that_of_its_example(tmp_path):
    """The lines, not the colours and fonts, which the style of the page says."""
    run_page(ROOT / "README.md", tmp_path)
    new = picture_of_page((tmp_path / "plans.html").read_text())
    shown = (ROOT / "docs" / "pictures" / "overview.svg").read_text()
    lines = re.findall(r' d="([^"]*)"', new)
    assert len(lines) >= 6
    assert re.findall(r' d="([^"]*)"', shown) == lines, "see docs/tools/pictures.py"


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
    with pytest.raises(Exception, match=r"page shows|division|there is no file|examples run"):
        run_page(page, tmp_path / "made")


def test_all_wrong_examples_of_a_page_are_named_with_the_lines_that_differ(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "```python\nprint('a\\nb')\n```\n\n```output\na\nc\n```\n"
        "```python\nprint(3)\n```\n\n```output\n3\n```\n"
        "```python\nprint(4)\n```\n\n```output\n5\n```\n"
        "```python\n1 / 0\n```\n"
    )
    run = try_page(page, tmp_path / "made")
    assert run.ran == 3
    assert [line for line, _ in run.wrong] == [6, 21, 24]
    assert [text.splitlines()[1:] for _, text in run.wrong] == [["-c", "+b"], ["-5", "+4"], []]
    assert "ZeroDivisionError" in run.wrong[2][1]


def test_a_difference_is_short_and_knows_what_stands_for_anything():
    assert difference("took ... or so\n1\n", "took 3 or so\n2\n").splitlines()[1:] == ["-1", "+2"]
    long = difference("x\n", "\n".join(map(str, range(100))))
    assert len(long.splitlines()) == 22
    assert long.endswith("lines more")


def test_blocks_are_found():
    kinds = [
        block.kind
        for block in blocks_of("```python\nx\n```\n```sh\ny\n```\n```{code-block} c\n:caption: a.c\nz\n```\n")
    ]
    assert kinds == ["python", "file"]


class Message(SimpleNamespace):
    """A message of ROS: a field that is missing is another message."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        setattr(self, name, Message())
        return vars(self)[name]


def test_the_node_for_ros_publishes_the_route(tmp_path, monkeypatch):
    """With stand-ins for the packages of ROS, since those come with a system of their own."""
    pytest.importorskip("yaml")
    mdp = mw.read("four-rooms:8")
    grid = replace(mdp.layout, metres_per_cell=0.5, origin=(-1.0, 2.0, 0.0))
    mw.plan(replace(mdp, layout=grid), 1)[0].route().save(tmp_path / "route.yaml")
    published, timers = [], []

    class Node:
        def __init__(self, name: str) -> None:
            self.name = name

        def create_publisher(self, kind: type, topic: str, depth: int) -> Any:
            assert (kind, topic, depth) == (Message, "plan", 1)
            return SimpleNamespace(publish=published.append)

        def create_timer(self, _seconds: float, call: Any) -> None:
            timers.append(call)

        def get_clock(self) -> Any:
            return SimpleNamespace(now=lambda: SimpleNamespace(to_msg=lambda: "now"))

    def set_message_fields(message: Message, fields: dict[str, Any]) -> None:
        for name, value in fields.items():
            if isinstance(value, dict):
                set_message_fields(getattr(message, name), value)
            else:
                setattr(message, name, value)

    stand_ins = {
        "rclpy": {"init": lambda: None, "spin": lambda _: timers[0]()},
        "rclpy.node": {"Node": Node},
        "nav_msgs": {},
        "nav_msgs.msg": {"Path": Message},
        "rosidl_runtime_py": {"set_message_fields": set_message_fields},
    }
    for name, content in stand_ins.items():
        module = ModuleType(name)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)
    page = (ROOT / "docs" / "howto" / "use-a-plan.md").read_text()
    (node,) = [block for block in blocks_of(page) if block.file == "way_publisher.py"]
    monkeypatch.chdir(tmp_path)
    exec(compile(node.body, "way_publisher.py", "exec"), {})
    (path,) = published
    assert path.header.frame_id == "map"
    assert path.header.stamp == "now"
    row, column = mdp.layout.position(int(mdp.start.argmax()))
    first = path.poses[0]["pose"]["position"]
    assert (first["x"], first["y"]) == pytest.approx(
        (-1 + 0.5 * (column + 0.5), 2 + 0.5 * (mdp.layout.shape[0] - row - 0.5))
    )
