"""`write_model`: a model to a file, in the format that its ending says."""

from __future__ import annotations

from pathlib import Path

from manyways.errors import OutputError
from manyways.files import check_writable
from manyways.formats.format import FORMATS
from manyways.model.mdp import MDP


def check_model_path(path: Path) -> None:
    """Raise an `OutputError` if a model cannot be written to `path`; called before the work."""
    endings = [ending for kind in FORMATS if kind.write is not None for ending in kind.endings]
    if path.suffix not in endings:
        raise OutputError(f"cannot write {path}: a model ends in one of {', '.join(endings)}")
    check_writable(path)


def write_model(mdp: MDP, path: Path) -> None:
    """Write a model; the file is complete or, after an error or interrupt, unchanged."""
    check_model_path(path)
    for kind in FORMATS:
        if kind.write is not None and path.suffix in kind.endings:
            kind.write(mdp, path)
