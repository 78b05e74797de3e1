"""A folder with a map for each test, a saved plan set, and the command in this process."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from commands import Answer

import manyways as mw
from manyways import cli


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    """A folder of its own, with one small map in it, is the current one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    for name in ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "map.txt").write_text("S..#.\n..#..\n....G\n")
    return tmp_path


@pytest.fixture
def manyways(monkeypatch, capsys):
    """Runs the command in this process."""

    def run(*arguments: str) -> Answer:
        monkeypatch.setattr(sys, "argv", ["manyways", *arguments])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return Answer(ended.value.code or 0, *capsys.readouterr())

    return run


@pytest.fixture(scope="session")
def plans() -> mw.PlanSet:
    mdp = mw.grid_world([[0, 0, 0], [0, 1, 0], [0, 0, 0]], (0, 0), (2, 2), name="square")
    return mw.plan(mdp, 2, 8.0, method=mw.FrankWolfe())


@pytest.fixture
def saved(plans, here) -> str:
    plans.save(here / "saved.mw")
    return "saved.mw"


@pytest.fixture
def no_work(monkeypatch) -> list[Any]:
    """What was asked of the method; stays empty where a mistake is found in time."""
    asked: list[Any] = []

    def run(*arguments: Any) -> Any:
        asked.append(arguments)
        raise AssertionError("the mistake should have been found before the work")

    monkeypatch.setattr(mw.FrankWolfe, "run", run)
    return asked
