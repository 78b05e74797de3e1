"""The contract of all writers of models: unsuitable models are refused, and an interrupt changes no file."""

import errno
import io
from pathlib import Path

import numpy as np
import pytest

import manyways as mw
from manyways.formats import FORMATS
from manyways.formats.writer import write_model

ROWS = [(s, "a", t, 0.5, 0.0) for s in (0, 1) for t in (0, 1)]
REFUSED = {
    "an uneven start": (ROWS, {"start": {0: 0.25, 1: 0.75}}, "a start in which some states are likelier than others"),
    "a label init": (ROWS, {"labels": {"init": [0]}}, "marks the start with the label 'init'"),
    "a label deadlock": (
        ROWS,
        {"labels": {"deadlock": [1]}},
        "marks states without actions with the label 'deadlock'",
    ),
    "a label in two lines": (ROWS, {"labels": {"a\nb": [1]}}, "line break"),
    "actions that become one": (
        [(0, name, 0, 1.0, 0.0) for name in ("a b", "a_b")],
        {},
        "the actions 'a b' and 'a_b' would both be written as 'a_b'",
    ),
    "states that become one": (
        [(name, "a", name, 1.0, 0.0) for name in ("a b", "a\nb")],
        {},
        r"the states 'a b' and 'a\\nb' would both be written as 'a b'",
    ),
}

each_text_format = pytest.mark.parametrize("ending", [".drn", ".tra"])
each_writer = pytest.mark.parametrize("ending", [kind.endings[0] for kind in FORMATS if kind.write is not None])


@each_text_format
@pytest.mark.parametrize("case", REFUSED)
def test_what_a_format_cannot_hold_is_refused_and_not_written(ending, case, tmp_path):
    rows, details, message = REFUSED[case]
    with pytest.raises(mw.OutputError, match=message):
        write_model(mw.MDP.from_transitions(rows, **details), tmp_path / f"model{ending}")
    assert list(tmp_path.iterdir()) == []


@each_writer
def test_a_missing_folder(ending, tmp_path):
    with pytest.raises(mw.OutputError, match="cannot write"):
        write_model(mw.MDP.from_transitions(ROWS), tmp_path / "no" / f"model{ending}")


class Interruption:
    """Makes files that are being written raise an error at the write with the given number, counted from 0."""

    def __init__(self, error: BaseException, at: int) -> None:
        self.error, self.left = error, at

    def open(self, handle: int, mode: str) -> io.FileIO:
        interruption = self

        class File(io.FileIO):
            def write(self, data):
                if interruption.left == 0:
                    raise interruption.error
                interruption.left -= 1
                return super().write(data)

        return File(handle, mode)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def unnamed() -> mw.MDP:
    """A model whose states have no names, so that it is written without a `.sta` file."""
    return mw.MDP.from_csr(np.eye(5)[[1, 2, 3, 4, 0]], np.arange(5.0), np.arange(6))


@each_writer
@pytest.mark.parametrize("make", [lambda: mw.nine_rooms(2), unnamed], ids=["named", "unnamed"])
@pytest.mark.parametrize(
    ("error", "seen"),
    [(KeyboardInterrupt(), KeyboardInterrupt), (OSError(errno.ENOSPC, "No space left on device"), mw.OutputError)],
    ids=["interrupt", "full disk"],
)
def test_an_interrupted_writer_changes_nothing(ending, make, error, seen, tmp_path, monkeypatch):
    """Interrupted at the first, second, third, ... write, in the middle of any of its files, until it succeeds."""
    path, mdp = tmp_path / f"model{ending}", make()
    write_model(mw.nine_rooms(1), path)
    before, interrupted = contents(tmp_path), 0
    while True:
        with monkeypatch.context() as patch:
            patch.setattr("manyways.files.writing.os.fdopen", Interruption(error, interrupted).open)
            try:
                write_model(mdp, path)
            except seen:
                assert contents(tmp_path) == before
            else:
                break
        interrupted = interrupted + 1 if interrupted < 20 else interrupted * 3 // 2
    assert interrupted >= 2
    assert mw.read(path).digest == mdp.digest
    assert (tmp_path / "model.sta").exists() == (ending == ".tra" and mdp.layout is not None)
