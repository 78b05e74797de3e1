"""The wheel, installed alone into an empty environment, plans, verifies, reports and serves.

The environment has the packages that the wheel requires, and theirs, and nothing else: no extra, no test tool, no source.
They are linked from the environment of the tests, which saves the minute of downloading them.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import urllib.request
import venv
import zipfile
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
PATIENCE_S = 300


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    # From a copy, since setuptools leaves a folder `build` behind.
    listed = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard", "src"]
    names = subprocess.run(listed, capture_output=True, check=True, text=True).stdout.split("\0")
    for name in [*filter(None, names), "pyproject.toml", "README.md", "LICENSE"]:
        if (ROOT / name).is_file():
            (folder / "source" / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / "source" / name).write_bytes((ROOT / name).read_bytes())
    build = [sys.executable, "-m", "build", "--wheel", "--outdir", str(folder), str(folder / "source")]
    built = subprocess.run(build, check=False, capture_output=True, text=True, timeout=PATIENCE_S)
    assert built.returncode == 0, built.stdout + built.stderr
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory) -> Path:
    """The folder of an environment that has the wheel and what it requires."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False)
    (packages,) = folder.glob("lib/python*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
    for name in required(distribution("manyways").requires or []):
        link(distribution(name), packages)
    return folder


def required(requirements: list[str]) -> set[str]:
    """The names of all packages that these requirements need on this machine, without extras."""
    found: set[str] = set()
    waiting = [Requirement(text) for text in requirements]
    while waiting:
        requirement = waiting.pop()
        name = re.sub(r"[-_.]+", "-", requirement.name).lower()
        if name in found or not (requirement.marker is None or requirement.marker.evaluate({"extra": ""})):
            continue
        found.add(name)
        waiting += [Requirement(text) for text in distribution(name).requires or []]
    return found


def link(package: Distribution, packages: Path) -> None:
    for top in {file.parts[0] for file in package.files or [] if file.parts[0] not in ("..", "__pycache__")}:
        if not (packages / top).exists():
            (packages / top).symlink_to(Path(str(package.locate_file(top))).resolve())


def call(environment: Path, *arguments: str, folder: Path) -> str:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    command = [str(environment / "bin" / "python"), "-W", "error", *arguments]
    answer = subprocess.run(
        command, check=False, cwd=folder, env=clean, capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def test_it_has_what_belongs_to_it_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        metadata = archive.read(next(name for name in names if name.endswith("METADATA"))).decode()
    sources = ROOT / "src"
    expected = {
        str(path.relative_to(sources))
        for path in (sources / "manyways").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {name for name in names if ".dist-info/" not in name} == expected
    assert {"manyways/py.typed", "manyways/report/templates/page.html"} <= names
    assert "\nClassifier: Typing :: Typed\n" in metadata
    assert "\nLicense-Expression: MIT\n" in metadata
    assert "[console_scripts]" in _entry_points(wheel)


def _entry_points(wheel: Path) -> str:
    with zipfile.ZipFile(wheel) as archive:
        return archive.read(next(name for name in archive.namelist() if name.endswith("entry_points.txt"))).decode()


def test_alone_it_plans_verifies_reports_and_serves(environment, tmp_path):
    # The map is not one of the repository, and nothing of the repository is in the environment.
    (tmp_path / "map.txt").write_text("#########\n#S......#\n#.##.##.#\n#.##.##.#\n#......G#\n#########\n")
    where = call(environment, "-c", "import manyways; print(manyways.__file__)", folder=tmp_path)
    assert where.startswith(str(environment))
    options = ("--k", "2", "--slack", "10%", "--out", "plans.mw", "--report", "plans.html", "--picture", "plans.png")
    table = call(environment, "-m", "manyways", "plan", "map.txt", *options, folder=tmp_path)
    assert "Every plan earns at least" in table
    assert "verified" in call(
        environment, "-m", "manyways", "verify", "plans.mw", "--model", "map.txt", folder=tmp_path
    )
    assert "<svg" in (tmp_path / "plans.html").read_text()
    assert (tmp_path / "plans.png").read_bytes()[:4] == b"\x89PNG"
    assert "<title>" in served_page(environment, tmp_path)


def served_page(environment: Path, folder: Path) -> str:
    """What `manyways serve` shows in a browser."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    command = [str(environment / "bin" / "python"), "-u", "-m", "manyways", "serve", "plans.mw", "--port", "0"]
    with subprocess.Popen(
        command, cwd=folder, env=clean, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as server:
        try:
            assert server.stdout is not None
            for line in server.stdout:
                if found := re.search(r"http://\S+", line):
                    with urllib.request.urlopen(found[0], timeout=60) as answer:
                        return answer.read().decode()
            raise AssertionError("the server ended without an address")
        finally:
            server.terminate()


def test_without_its_extras_it_says_what_is_missing(environment, tmp_path):
    code = """
import manyways as mw
try:
    mw.read("gym:FrozenLake-v1")
except mw.ManywaysError as error:
    print(error)
"""
    assert "pip install" in call(environment, "-c", code, folder=tmp_path)
