"""Puts this folder on the path, for `import problems`, makes Hypothesis repeatable, and lets tests register things."""

import pytest
from hypothesis import settings

from manyways.extensions import REGISTRIES
from manyways.formats import FORMATS

settings.register_profile("manyways", deadline=None, derandomize=True, database=None, max_examples=30)
settings.load_profile("manyways")


@pytest.fixture
def registrations(monkeypatch):
    """What a test registers is forgotten after it."""
    for axis in REGISTRIES:
        monkeypatch.setattr(axis, "_classes", dict(axis._classes))
    monkeypatch.setattr(FORMATS, "_formats", list(FORMATS))
