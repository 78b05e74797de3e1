"""`write_model`: a model to a file, in the format that its ending says; `convert`: the model behind a source to a file."""

from __future__ import annotations

from pathlib import Path

from manyways.errors import OutputError
from manyways.files import check_writable
from manyways.formats.format import FORMATS
from manyways.formats.hdf5 import ModelFile
from manyways.formats.reader import changes_nothing, read, resolve
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


def convert(source: str, path: Path) -> tuple[str, int, int]:
    """Write the model behind a source; returns its name and its numbers of states and choices.

    If the format of the source can write HDF5 files in pieces, the model is never whole in memory.
    """
    check_model_path(path)
    kind, place, settings = resolve(source)
    if path.suffix == ".h5" and kind.write_in_pieces is not None and changes_nothing(source):
        kind.write_in_pieces(place, path, **settings)
        with ModelFile(path) as file:
            return str(place), file.n_states, file.n_choices
    mdp = read(source)
    write_model(mdp, path)
    return mdp.name, mdp.n_states, mdp.n_choices
