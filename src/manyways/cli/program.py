"""The Typer application with all its commands, which register themselves when they are imported."""

from __future__ import annotations

from manyways.cli import plans, choose, models, questions, outcomes, serve, gallery, studies  # isort: skip -- the order of the help
from manyways.cli.common import app

__all__ = ["app", "choose", "gallery", "models", "outcomes", "plans", "questions", "serve", "studies"]
