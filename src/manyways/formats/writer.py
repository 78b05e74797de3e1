"""`write_model`: a model to a file, in the format that its ending says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from manyways.errors import OutputError
from manyways.formats.archive import check_writable
from manyways.formats.drn import write_drn
from manyways.formats.prism_explicit_writing import write_prism_explicit
from manyways.formats.tables import write_npz
from manyways.mdp import MDP

WRITERS: dict[str, Callable[[MDP, Path], None]] = {
    ".npz": write_npz,
    ".drn": write_drn,
    ".tra": write_prism_explicit,
}


def check_model_path(path: Path) -> None:
    """Find out before the work whether a model can be written to `path`."""
    if path.suffix not in WRITERS:
        raise OutputError(f"cannot write {path}: a model ends in one of {', '.join(WRITERS)}")
    check_writable(path)


def write_model(mdp: MDP, path: Path) -> None:
    check_model_path(path)
    WRITERS[path.suffix](mdp, path)
