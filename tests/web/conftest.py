"""Plans for a small world, and servers that show them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from clients import Client, served

import manyways as mw


@pytest.fixture(scope="session")
def plans() -> mw.PlanSet:
    return mw.plan("four-rooms:0", k=3, tradeoff=8.0)


@pytest.fixture
def plans_path(plans, tmp_path) -> Path:
    return plans.save(tmp_path / "plans.mw")


@pytest.fixture
def endless_path(plans, tmp_path) -> Path:
    """The same plans, by a method that has not finished when a test has: to plan with these settings takes hours."""
    return replace(plans, method=mw.VertexAscent(starts=10**6)).save(tmp_path / "plans.mw")


@pytest.fixture
def keys(plans) -> list[str]:
    return [plan.key for plan in plans]


@pytest.fixture
def client(plans_path) -> Iterator[Client]:
    with served(plans_path) as client:
        yield client


@pytest.fixture(scope="session")
def shared_client(plans, tmp_path_factory) -> Iterator[Client]:
    """A server for all tests that change nothing."""
    with served(plans.save(tmp_path_factory.mktemp("web") / "plans.mw"), allowed_hosts=["lab.example"]) as client:
        yield client
