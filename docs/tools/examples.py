"""The examples of the documentation: found in its pages, run in order, and compared with the output that the page shows.

In a page, a block of Python or of a console session is an example. Blocks of one page share one folder and one Python
namespace. A block called `output` shows what the Python block before it prints; in a console block, lines that begin with
`$ ` are commands and the lines below are what they print. `...` stands for anything. A block of text with a caption is a
file, which is written under that name. Examples that must not run (a cluster, ROS) are blocks of other languages.

    python docs/tools/examples.py --update
    python docs/tools/examples.py --update docs/tutorials/maintenance.md

run all pages, or those named, and write the output into them. Without `--update`, the differences are printed, and nothing is
written. Console blocks may run `manyways`, `python`, `cc`, `node` and
programs in the folder of the page; where there is no C compiler or no Node, their blocks are left out. Sybil and pytest-examples were compared: neither runs console sessions, and the
second forgets names between blocks. This module does what is needed, for tests and for the pictures of the site alike.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import io
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

BLOCK = re.compile(
    r"^```(?P<kind>python|console|output|\{code-block\} \w+\n:caption: (?P<file>\S+))\n(?P<body>.*?)^```$", re.M | re.S
)
SECONDS = re.compile(r"\d+\.\d+\s+s\b")
ERROR = re.compile(r"\d\.\de[-+]\d\d(?= +│)")
DOCUMENTS = Path(__file__).parents[1]
PROGRAMS = ("cc", "node")
"""Programs that examples may run and that some machines lack."""


class ExampleError(AssertionError):
    """An example printed something other than its page says, or failed."""


@dataclass(frozen=True)
class Run:
    """The examples of a page that were run: how many, and what was wrong, each as the number of a line and a text."""

    ran: int = 0
    wrong: list[tuple[int, str]] = field(default_factory=list)


@dataclass(frozen=True)
class Block:
    """A block of a page: what it is, its text, the file it describes, and where its text is in the page."""

    kind: str
    body: str
    file: str | None
    begin: int
    end: int


def blocks_of(text: str) -> list[Block]:
    return [
        Block("file" if one["file"] else one["kind"], one["body"], one["file"], one.start("body"), one.end("body"))
        for one in BLOCK.finditer(text)
    ]


def pages_with_examples() -> list[Path]:
    """All pages of the documentation that have examples, and the README."""
    candidates = [*DOCUMENTS.glob("*.md"), *DOCUMENTS.glob("*/*.md"), DOCUMENTS.parent / "README.md"]
    return sorted(page for page in candidates if "made" not in page.parts and any(_runs(page)))


def folder_of(page: Path, made: Path) -> Path:
    """The folder in which the examples of a page run, and in which the site finds their pictures."""
    return made / page.stem


def pictures_of(page: Path) -> list[str]:
    """The pictures that the examples of a page make and the page shows, by their names in the page's folder."""
    return re.findall(rf"\]\((?:\.\./)*made/{re.escape(page.stem)}/([^)]+)\)", page.read_text())


def _runs(page: Path) -> Iterator[Block]:
    return (block for block in blocks_of(page.read_text()) if block.kind in ("python", "console"))


def run_page(page: Path, folder: Path, update: bool = False) -> int:
    """Run the examples of a page in a folder; returns how many ran. With `update`, output is written into the page.

    Raises:
        ExampleError: if some output differs from the page, with all differences, or if an example failed.
    """
    run = try_page(page, folder, update)
    if run.wrong:
        raise ExampleError("\n".join(f"{page}, line {line}: {text}" for line, text in run.wrong))
    return run.ran


def try_page(page: Path, folder: Path, update: bool = False) -> Run:
    """The same, for callers that go on with other pages. A page ends at the first example that fails."""
    text = page.read_text()
    changes: list[tuple[Block, str]] = []
    names: dict[str, Any] = {"__name__": "__main__"}
    printed, ran, failed = "", 0, []
    with _inside(folder):
        for block in blocks_of(text):
            try:
                if block.kind == "file":
                    Path(block.file or "").write_text(block.body)
                elif block.kind == "output":
                    changes.append((block, printed))
                elif block.kind == "python":
                    printed, ran = _python(block, page, text, names), ran + 1
                elif not _lacks_program(block):
                    changes.append((block, _console(block)))
                    ran += 1
            except Exception as error:
                failed = [(_line(text, block), f"the example failed with {type(error).__name__}: {error}")]
                break
    different = [(block, new) for block, new in changes if not same(block.body, new)]
    if update:
        changed = text
        for block, new in reversed(different):
            changed = changed[: block.begin] + _steady(new) + changed[block.end :]
        page.write_text(changed)
        return Run(ran, failed)
    return Run(ran, [(_line(text, block), difference(block.body, new)) for block, new in different] + failed)


def _line(text: str, block: Block) -> int:
    return text.count("\n", 0, block.begin) + 1


def difference(shown: str, printed: str) -> str:
    """The lines in which an output differs from what a page shows: `-` for the page, `+` for the example; at most 20."""
    page, new = (_steady(output).splitlines() for output in (shown, printed))
    # A line of the page with "..." is the line that it stands for, where there is one.
    page = [next((line for line in new if "..." in old and same(old, line)), old) for old in page]
    lines = [
        line for line in difflib.unified_diff(page, new, lineterm="", n=0) if not line.startswith(("---", "+++", "@@"))
    ]
    more = [f"... and {len(lines) - 20} lines more"] if len(lines) > 20 else []
    return "\n".join(["the page shows (-) something else than the example prints (+)", *lines[:20], *more])


def same(shown: str, printed: str) -> bool:
    """Whether an output is the one that a page shows, in which `...` stands for anything."""
    pattern = ".*?".join(re.escape(part) for part in _steady(shown).strip().split("..."))
    return re.fullmatch(pattern, _steady(printed).strip(), re.S) is not None


def _steady(output: str) -> str:
    """The output with what differs from run to run replaced."""
    lines = [line.rstrip() for line in ERROR.sub("...    ", SECONDS.sub("...", output)).splitlines()]
    return "\n".join(lines).strip("\n") + "\n"


def _python(block: Block, page: Path, text: str, names: dict[str, Any]) -> str:
    line = text.count("\n", 0, block.begin)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile("\n" * line + block.body, str(page), "exec"), names)
    return printed.getvalue()


def _console(block: Block) -> str:
    commands = [line for line in block.body.splitlines() if line.startswith("$ ")]
    return "".join(f"{command}\n{_command(command.removeprefix('$ '))}" for command in commands)


def _lacks_program(block: Block) -> bool:
    """Whether a console block needs a program that is not on this machine."""
    return any(f"$ {program} " in block.body and shutil.which(program) is None for program in PROGRAMS)


def _command(line: str) -> str:
    """What a command prints. `manyways` runs in this process, since starting a new one would take most of the time."""
    given, _, last = line.rpartition(" | ")
    words = shlex.split(last)
    if words[0] == "head":
        return "\n".join(_command(given).splitlines()[: -int(words[1])]) + "\n" if given else ""
    if words[0] == "python":
        with _captured("", words) as printed:
            runpy.run_path(words[1], run_name="__main__")
        return printed.getvalue()
    if words[0] in PROGRAMS or words[0].startswith("./"):
        ended = subprocess.run(words, check=False, capture_output=True, text=True, timeout=60)
        if ended.returncode:
            raise ExampleError(f"{line} ended with {ended.returncode}: {ended.stderr}")
        return ended.stdout
    if words[0] != "manyways":
        raise ExampleError(f"examples run manyways, python, {', '.join(PROGRAMS)} and ./programs, not {last!r}")
    answers = shlex.split(given)[1].replace("\\n", "\n") if given.startswith("printf ") else ""
    from manyways.cli.program import app

    with _captured(answers, words) as printed:
        try:
            app(words[1:], standalone_mode=True)
        except SystemExit as end:
            if end.code:
                raise ExampleError(f"{line} ended with {end.code}: {printed.getvalue()}") from None
    return printed.getvalue()


@contextlib.contextmanager
def _captured(answers: str, words: list[str]) -> Iterator[io.StringIO]:
    printed, before = io.StringIO(), (sys.stdin, sys.argv)
    sys.stdin, sys.argv = io.StringIO(answers), words
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
            yield printed
    finally:
        sys.stdin, sys.argv = before


@contextlib.contextmanager
def _inside(folder: Path) -> Iterator[None]:
    """Run in a folder, with a width of 100 columns and no colours."""
    folder.mkdir(parents=True, exist_ok=True)
    before, settings = Path.cwd(), {name: os.environ.get(name) for name in ("COLUMNS", "NO_COLOR", "TERM")}
    os.chdir(folder)
    os.environ |= {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}
    try:
        yield
    finally:
        os.chdir(before)
        for name, value in settings.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Run the examples of pages of the documentation.")
    parser.add_argument("pages", nargs="*", type=Path, help="by default all pages with examples")
    parser.add_argument("--update", action="store_true", help="write the output into the page")
    given = parser.parse_args()
    wrong = 0
    for one in map(Path.resolve, given.pages or pages_with_examples()):
        run = try_page(one, folder_of(one, DOCUMENTS / "made"), given.update)
        print(f"{one}: {run.ran} examples", flush=True)
        for line, text in run.wrong:
            print(f"{one}:{line}: {text}", flush=True)
        wrong += len(run.wrong)
    sys.exit(f"{wrong} examples differ or failed" if wrong else 0)
