"""Plans for the nine rooms, and the page on them."""

from __future__ import annotations

from pathlib import Path

import pytest

import manyways as mw


@pytest.fixture(scope="session")
def rooms() -> mw.PlanSet:
    return mw.plan("nine-rooms:7", k=6, tradeoff=8.0)


@pytest.fixture(scope="session")
def report(rooms, tmp_path_factory) -> Path:
    return rooms.report(tmp_path_factory.mktemp("report") / "plans.html")
