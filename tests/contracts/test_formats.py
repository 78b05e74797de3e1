"""The contract of all registered formats; it covers a new format as soon as it is registered."""

import os
import re
import signal
from pathlib import Path

import numpy as np
import pytest

import manyways as mw
from manyways.errors import SettingError
from manyways.formats.format import FORMATS, Format, Formats
from manyways.formats.reader import resolve
from manyways.formats.writer import write_model
from problems import random_mdp

ALL = list(FORMATS)
every_format = pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.example)
every_ending = pytest.mark.parametrize(
    ("kind", "ending"), [(kind, ending) for kind in ALL for ending in kind.endings], ids=lambda value: str(value)[:20]
)
every_writer = pytest.mark.parametrize("ending", [kind.endings[0] for kind in ALL if kind.write is not None])


@pytest.fixture
def _watchdog():
    """Ends a test that waits for a pipe."""

    def expired(*_: object) -> None:
        pytest.fail("waited for a file that never ends")

    before = signal.signal(signal.SIGALRM, expired)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@every_format
def test_it_has_a_name_and_an_example_of_its_own(kind):
    place, _, query = kind.example.partition("?")
    assert kind.name
    assert [other.name for other in ALL].count(kind.name) == 1
    assert [other.example for other in ALL].count(kind.example) == 1
    if kind.names is None:
        assert Path(place).suffix in kind.endings
    else:
        assert not kind.endings
        assert re.fullmatch(kind.names, place)
        assert resolve(kind.example)[0] is kind
    assert all(part.partition("=")[0] in kind.settings for part in query.split("&") if part)


def test_endings_are_unique():
    endings = [ending for kind in ALL for ending in kind.endings]
    assert len(set(endings)) == len(endings)
    assert all(re.fullmatch(r"\.[a-z0-9]+", ending) for ending in endings)


def test_an_ending_of_another_format_is_refused():
    formats = Formats()
    first = formats.add(Format("first", mw.read, endings=(".one",)))
    with pytest.raises(SettingError, match=r"files that end in \.one belong to the format 'first' already"):
        formats.add(Format("second", mw.read, endings=(".two", ".one")))
    again = formats.add(Format("first", mw.read, endings=(".one", ".three")))
    assert list(formats) == [again]
    assert again is not first


@pytest.mark.usefixtures("_watchdog")
@every_ending
def test_what_is_not_a_file_is_refused(kind, ending, tmp_path):
    folder, pipe, device, missing = (tmp_path / f"{what}{ending}" for what in ("folder", "pipe", "device", "missing"))
    folder.mkdir()
    os.mkfifo(pipe)
    device.symlink_to("/dev/zero")
    for path, message in ((folder, "is a folder"), (pipe, "is a device or a pipe"), (device, "is a device or a pipe")):
        for read in (mw.read, kind.read):
            with pytest.raises(mw.SourceError, match=message):
                read(path)
    for read in (mw.read, kind.read):
        with pytest.raises(mw.SourceError, match="there is no file"):
            read(missing)


@pytest.mark.parametrize("kind", [kind for kind in ALL if kind.other_settings is None], ids=lambda kind: kind.example)
def test_unknown_settings_are_refused_with_the_known_ones(kind, tmp_path):
    place = kind.example.partition("?")[0]
    if kind.names is None:
        (tmp_path / place).touch()
        place = str(tmp_path / place)
    with pytest.raises(mw.SourceError, match="unknown setting 'nonsense', expected one of") as caught:
        mw.read(f"{place}?nonsense=1")
    known = str(caught.value).rpartition("expected one of ")[2].split(", ")
    assert known == [
        *kind.settings,
        *(["restart"] if kind.names is None else []),
        "without",
        "without_action",
        "minimise",
    ]


@every_writer
@pytest.mark.parametrize("seed", range(5))
def test_a_written_model_comes_back(ending, seed, tmp_path):
    random = random_mdp(np.random.default_rng(seed), max_states=8)
    mdp = mw.MDP.from_csr(random.transitions, random.reward, random.first_choice, actions=random.actions)
    for number, model in enumerate((mdp, mw.nine_rooms(seed))):
        path = tmp_path / f"model{number}{ending}"
        write_model(model, path)
        again = mw.read(path)
        assert again.digest == model.digest
        assert again.name == path.stem
        assert again.source == str(path)


def test_a_model_cannot_be_written_to_an_unknown_ending(tmp_path):
    with pytest.raises(mw.OutputError, match=r"a model ends in one of \.npz, \.drn, \.h5, \.tra"):
        write_model(mw.nine_rooms(0), tmp_path / "model.txt")
