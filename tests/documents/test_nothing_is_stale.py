"""Names, options, files and figures in the documents are those of the program."""

from __future__ import annotations

import ast
import inspect
import re
import shlex
from importlib.util import find_spec
from itertools import pairwise
from textwrap import dedent
from typing import Any

import click
import pytest
import typer

import manyways as mw
from documents.pages import DOCS, DOCUMENTS, PAGES, ROOT, code_of, name_of, sections_of
from manyways.behaviours import BEHAVIOURS
from manyways.cli.program import app
from manyways.gallery import EXAMPLES
from manyways.methods import METHODS
from manyways.objectives import OBJECTIVES

OBJECTS = {"plans": mw.PlanSet, "plan": mw.Plan, "mdp": mw.MDP, "talk": mw.Conversation, "policy": mw.Policy}
NOT_OBJECTS = {
    "plans.choices",
    "plans.mw",
    "plans.html",
    "plans.png",
    "plans.csv",
    "plan.py",
    "plans.py",
    "policy.json",
    "policy.csv",
}
OTHER_OPTIONS = {"--help", "--oversubscribe"}
"""Of `mpirun`, and of every command."""
SETTINGS = {"--behaviour": BEHAVIOURS, "--diversity": OBJECTIVES, "--method": METHODS}
every_document = pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)


def commands() -> dict[str, click.Command]:
    return dict(typer.main.get_command(app).commands)  # pyright: ignore[reportAttributeAccessIssue]


def options_of(command: click.Command) -> set[str]:
    return {"--help"} | {option for one in command.params for option in (*one.opts, *one.secondary_opts)}


COMMANDS = {name: options_of(command) for name, command in commands().items()}
ALL_OPTIONS = set().union(*COMMANDS.values(), OTHER_OPTIONS)


def stale_options(code: str) -> list[str]:
    """What is wrong with the calls of `manyways` in a piece of code, which may have several lines."""
    wrong = []
    for line in code.replace("\\\n", " ").splitlines():
        for call in re.findall(r"(?:^|[\s(|;])manyways ((?:[^|;#\n]|(?<=\S)[|;])*)", line):
            words = _words(call)
            if not words or not re.fullmatch(r"[a-z]+", words[0]):
                continue  # a table or a sentence
            name, given = words[0], [word.partition("=")[0] for word in words if word.startswith("--")]
            if name not in COMMANDS:
                wrong += [f"manyways {name}"] if given else []
                continue
            wrong += [f"manyways {name} {option}" for option in given if option not in COMMANDS[name]]
            wrong += _stale_settings(words)
    return wrong


def _words(call: str) -> list[str]:
    try:
        return shlex.split(call)
    except ValueError:
        return call.split()


def _stale_settings(words: list[str]) -> list[str]:
    return [f"{a} {b}" for a, b in pairwise(words) if a in SETTINGS and b.islower() and b not in SETTINGS[a].words()]


@every_document
def test_commands_and_their_options_exist(document):
    wrong = [found for _, code in code_of(document.read_text()) for found in stale_options(code)]
    assert wrong == []


def test_stale_options_are_found():
    assert stale_options("$ manyways plan map.txt --k 3 --apartt 2") == ["manyways plan --apartt"]
    assert stale_options("mpirun -n 4 manyways planne x --k 2") == ["manyways planne"]
    assert stale_options("manyways plan x --diversity meen | manyways show x --slack 1%") == [
        "--diversity meen",
        "manyways show --slack",
    ]
    assert stale_options("manyways plan x --slack 10% --diversity mean") == []


@every_document
def test_options_named_alone_exist(document):
    named = {code.split()[0] for kind, code in code_of(document.read_text()) if kind == "inline" and code[:2] == "--"}
    assert {option.partition("=")[0] for option in named} <= ALL_OPTIONS


def stale_names(code: str) -> list[str]:
    """Names of the package in a piece of Python that do not exist, and arguments that its functions do not take."""
    wrong = [f"mw.{name}" for name in re.findall(r"\bmw\.(\w+)", code) if name not in {*mw.__all__, "__version__"}]
    for name, attribute in re.findall(r"(?<![\w/.-])(\w+)(?:\[\d+\])?\.([a-z_]\w*)\b(?!/)", code):
        if name in OBJECTS and f"{name}.{attribute}" not in NOT_OBJECTS:
            kinds = [mw.Plan] if re.search(rf"{name}\[\d+\]\.{attribute}", code) else [OBJECTS[name]]
            wrong += [f"{name}.{attribute}" for kind in kinds if not _has(kind, attribute)]
    return wrong + [found for call in _calls(code) for found in _stale_arguments(call)]


def _has(kind: type, attribute: str) -> bool:
    package = kind.__module__.rpartition(".")[0]  # `plans.proofs` is a module
    if kind is mw.PlanSet and find_spec(f"{package}.{attribute}"):
        return True
    return hasattr(kind, attribute) or attribute in getattr(kind, "__dataclass_fields__", {}) or attribute in _set(kind)


def _set(kind: type) -> set[str]:
    return set(re.findall(r"\bself\.(\w+)(?:: [^=\n]+)? = ", inspect.getsource(kind)))


def _calls(code: str) -> list[ast.Call]:
    for text in (code, dedent(code)):
        try:
            return [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
        except SyntaxError:
            continue
    return []


def _stale_arguments(call: ast.Call) -> list[str]:
    name = _called(call.func)
    target: Any = getattr(mw, name, None) if name in mw.__all__ else None
    if not callable(target):
        return []
    try:
        taken = inspect.signature(target).parameters
    except ValueError:
        return []
    if any(one.kind is one.VAR_KEYWORD for one in taken.values()):
        return []
    return [f"{name}({one.arg}=)" for one in call.keywords if one.arg is not None and one.arg not in taken]


def _called(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == "mw":
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


@pytest.mark.parametrize(
    "document", [one for one in DOCUMENTS if one.name != "CHANGELOG.md"], ids=name_of
)  # it has old names
def test_names_of_the_package_and_arguments_exist(document):
    wrong = [found for kind, code in code_of(document.read_text()) if kind != "console" for found in stale_names(code)]
    assert wrong == []


def test_stale_names_are_found():
    assert stale_names("mw.plam(x)") == ["mw.plam"]
    assert stale_names("plans.distance[0]") == ["plans.distance"]
    assert stale_names("plans[1].rout()") == ["plans.rout"]
    assert stale_names("mw.plan(x, k=3, slak=0.1)") == ["plan(slak=)"]
    assert stale_names("    Near(radios=1)\n") == ["Near(radios=)"]
    assert stale_names("mw.plan(x, k=3, slack=0.1).report('x.html'); plans[1].route(); talk.plans") == []


@every_document
def test_files_that_are_named_exist(document):
    """Paths with a folder, such as `plans/checker.py`: in the repository, or in the package."""
    folders = {path.name for place in (ROOT, ROOT / "src" / "manyways") for path in place.iterdir() if path.is_dir()}
    named = {
        code
        for kind, code in code_of(document.read_text())
        if kind == "inline"
        and re.fullmatch(r"[\w./-]+\.(?:py|md|html|toml|txt|json)", code)
        and code.split("/")[0] in folders
    }
    missing = {
        name for name in named if not any((place / name).exists() for place in (ROOT, ROOT / "src" / "manyways"))
    }
    assert missing - WRITTEN_BY_COMMANDS == set()


WRITTEN_BY_COMMANDS = {"demo/plans.html", "site/index.html", "behaviours/my_behaviour.py"} | {
    f"{folder}/my_{kind}.py"
    for folder, kind in (("objectives", "objective"), ("methods", "method"), ("formats", "format"))
}


@pytest.mark.parametrize(("page", "registry"), [("behaviours.md", BEHAVIOURS), ("objectives.md", OBJECTIVES)])
def test_every_registered_class_has_a_row(page, registry):
    named = set(re.findall(r"`(\w+)\(", (DOCS / page).read_text()))
    assert {kind.__name__ for kind in (registry.named(word) for word in registry.words()) if _ours(kind)} <= named


def _ours(kind: type) -> bool:
    return kind.__module__.startswith("manyways.")


def test_the_reference_has_every_public_name():
    from documents.tools import KINDS

    placed = [name for names in KINDS.values() for name in names]
    assert len(placed) == len(set(placed))
    assert set(placed) | {name for name in mw.__all__ if _is_error(name)} == set(mw.__all__)


def _is_error(name: str) -> bool:
    value = getattr(mw, name)
    return isinstance(value, type) and issubclass(value, Exception)


@pytest.mark.parametrize("name", mw.__all__)
def test_every_public_name_has_a_docstring(name):
    assert (inspect.getdoc(getattr(mw, name)) or "").strip()


def test_versions_agree():
    citation = (ROOT / "CITATION.cff").read_text()
    changelog = (ROOT / "CHANGELOG.md").read_text()
    newest = re.search(r"^## (\S+)", changelog, re.M)
    assert f"\nversion: {mw.__version__}\n" in citation
    assert newest is not None
    assert newest[1] == mw.__version__


def test_extras_are_documented():
    import tomllib

    extras = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])
    page = (DOCS / "tutorials" / "index.md").read_text()
    assert {extra for extra in extras if f"`{extra}`" in page} == extras


def test_twelve_models_in_the_gallery():
    assert len(EXAMPLES) == 12
    assert len({example.name for example in EXAMPLES}) == 12


# ---- figures ------------------------------------------------------------------------------------

FIGURE = re.compile(r"^\W*-?\d+(?:[.,]\d+)?(?![\w/])")
COMMAND = re.compile(r"(?:^|[\s`$])(?:manyways|python|make|mpirun|mw\.\w+\()\s*\w*", re.M)
DESCRIBED_BYTES = {"docs/reference/plan-file.md"}


def figures_without_command(text: str) -> list[str]:
    """The headings of sections that have a table with figures but no command."""
    wrong = []
    for heading, body in sections_of(text):
        rows = [row.split("|")[1:-1] for row in body.splitlines() if row.startswith("|")]
        with_figures = [row for row in rows if sum(FIGURE.match(cell.strip()) is not None for cell in row[1:]) >= 1]
        code = [piece for _, piece in code_of(f"\n\n{body}")]
        if with_figures and not any(COMMAND.search(f" {piece}") for piece in code):
            wrong.append(heading)
    return wrong


@pytest.mark.parametrize("page", [page for page in PAGES if name_of(page) not in DESCRIBED_BYTES], ids=name_of)
def test_a_command_stands_beside_every_table_of_figures(page):
    assert set(figures_without_command(page.read_text())) == set()


def test_figures_without_command_are_found():
    table = "\n\n| set | share |\n|---|---|\n| near | 0.52 |\n"
    assert figures_without_command(f"## A\n{table}\n## B\n\n    manyways bench limits\n{table}") == ["## A"]


QUOTED = [
    ("README.md", "80 %", "docs/preferences-study.md", "| **representative (the default)** | **0.80**"),
    ("README.md", "70 %", "docs/preferences-study.md", "| spread preferences | 0.70"),
    ("README.md", "60 %", "docs/preferences-study.md", "| mean divergence | 0.60"),
    (
        "docs/howto/choose-settings.md",
        "80 %",
        "docs/preferences-study.md",
        "| **representative (the default)** | **0.80**",
    ),
    ("docs/howto/choose-settings.md", "60 %", "docs/preferences-study.md", "| mean divergence | 0.60"),
    ("docs/howto/choose-settings.md", "0.427", "docs/limits.md", "| 10 % | 0.451 against 0.412 | 0.427 against 0.355"),
    ("docs/howto/choose-settings.md", "0.355", "docs/limits.md", "| 10 % | 0.451 against 0.412 | 0.427 against 0.355"),
    ("docs/rounds.md", "0.93", "docs/preferences-study.md", "| exact answers | 0.80 | 0.88 | **0.93**"),
    ("docs/rounds.md", "0.61", "docs/preferences-study.md", "| noisy answers | 0.56 | 0.26 | 0.61"),
    ("docs/rounds.md", "0.56", "docs/preferences-study.md", "(0.56: what lies beyond the 10 % is out of reach)"),
    ("docs/tutorials/rounds.md", "61 %", "docs/preferences-study.md", "| noisy answers | 0.56 | 0.26 | 0.61"),
    ("docs/tutorials/rounds.md", "93 %", "docs/preferences-study.md", "| exact answers | 0.80 | 0.88 | **0.93**"),
]


@pytest.mark.parametrize(("page", "figure", "source", "row"), QUOTED, ids=lambda value: value[:40])
def test_a_quoted_figure_is_the_one_of_its_source(page, figure, source, row):
    assert figure in (ROOT / page).read_text()
    assert row in (ROOT / source).read_text()
