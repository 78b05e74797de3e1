"""The Typer application with all its commands, which register themselves when they are imported."""

from __future__ import annotations

from manyways.cli import choose, models, plans, questions, serve, studies
from manyways.cli.common import app

__all__ = ["app", "choose", "models", "plans", "questions", "serve", "studies"]
