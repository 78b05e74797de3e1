"""Models in HDF5 files: written in pieces, read whole or in slices."""

import json
import tracemalloc
from dataclasses import replace

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import manyways as mw
from fuzzing import read_or_refusal
from manyways.formats import exploration, room_worlds
from manyways.formats.hdf5 import ModelFile, read_hdf5, write_hdf5
from manyways.formats.writer import convert
from problems import random_mdp


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_written_and_read_is_the_same_model(seed, tmp_path_factory):
    mdp = random_mdp(np.random.default_rng(seed), max_states=6, kind="dense")
    path = tmp_path_factory.mktemp("hdf5") / "model.h5"
    write_hdf5(mdp, path)
    again = mw.read(path)
    assert again.digest == mdp.digest
    assert again.action_names == mdp.action_names
    np.testing.assert_array_equal(again.actions, mdp.actions)


def test_everything_that_a_model_has_is_kept(tmp_path):
    P = np.array([[[0.5, 0.5], [1.0, 0.0]], [[0.25, 0.75], [0.3, 0.7]]])
    mdp = mw.MDP.from_dense(P, [1.0, 2.0], start=[0.5, 0.5], state_names=["a/b\0", "ö"], labels={"./x": [True, False]})
    back = np.asarray(mdp.transitions.min(axis=1).todense()).ravel()
    variables = {"n": [1, 2], "x": [0.5, np.nan], "b": [True, False], "text": ["", "größer"]}
    mdp = replace(
        mdp,
        ends={"goal": back / 2},
        observations=np.array([7, 3]),
        variables=variables,
        costs=True,
        time_limit=9,
        layout=mw.Grid(
            np.array([0, 2]),
            np.array([[False, True, False]]),
            metres_per_cell=0.5,
            origin=(1.0, 2.0, 0.1),
            offsets=np.array([[0.1, 0.2], [0.0, 0.0]]),
        ),
    )
    write_hdf5(mdp, tmp_path / "m.h5")
    again = mw.read(tmp_path / "m.h5")
    assert again.digest == mdp.digest
    for name in ("action_names", "state_names", "costs", "time_limit"):
        assert getattr(again, name) == getattr(mdp, name)
    np.testing.assert_array_equal(again.observations, mdp.observations)
    for named in ("labels", "ends", "given_variables"):
        kept, asked = getattr(again, named), getattr(mdp, named)
        assert list(kept) == list(asked)
        for name, values in asked.items():
            np.testing.assert_array_equal(kept[name], values)
            assert kept[name].dtype.kind == values.dtype.kind
    assert again.layout is not None
    assert mdp.layout is not None
    assert again.layout.origin == mdp.layout.origin
    for name in ("cells", "blocked", "offsets"):
        np.testing.assert_array_equal(getattr(again.layout, name), getattr(mdp.layout, name))


def test_a_text_that_ends_in_nul_loses_it_already_in_numpy(tmp_path):
    mdp = mw.MDP.from_dense(np.ones((1, 1, 1)), [0.0])
    arrays = {"text": np.array(["a\0"], dtype="U2")}
    assert arrays["text"][0] == "a", "numpy itself drops it"
    write_hdf5(replace(mdp, variables=arrays), tmp_path / "m.h5")
    assert mw.read(tmp_path / "m.h5").variables["text"][0] == "a"


def test_slices_are_the_model(tmp_path):
    mdp = mw.nine_rooms(1)
    write_hdf5(mdp, tmp_path / "m.h5")
    with ModelFile(tmp_path / "m.h5") as file:
        assert (file.n_states, file.n_choices, file.n_transitions) == (361, mdp.n_choices, mdp.transitions.nnz)
        for begin, end, most in ((0, 361, 65_536), (0, 361, 7), (100, 200, 1), (360, 361, 10)):
            at = begin
            for block in file.blocks(begin, end, most):
                assert block.state == at
                rows = slice(mdp.first_choice[at], mdp.first_choice[at + len(block.counts)])
                assert (block.transitions != mdp.transitions[rows]).nnz == 0
                np.testing.assert_array_equal(block.reward, mdp.reward[rows])
                np.testing.assert_array_equal(block.counts, np.diff(mdp.first_choice)[at : at + len(block.counts)])
                at += len(block.counts)
            assert at == end
            np.testing.assert_array_equal(file.start(begin, end), mdp.start[begin:end])


# ---- in pieces --------------------------------------------------------------------------------


@pytest.mark.parametrize("cells", [1, 100, 130, 65_536])
def test_worlds_written_in_pieces_are_the_worlds(cells, tmp_path, monkeypatch):
    monkeypatch.setattr(room_worlds, "BLOCK", cells)
    source, path = "rooms-30:4?correct_transition=0.8&step_reward=-1", tmp_path / "rooms.h5"
    assert convert(source, path) == ("rooms-30:4", 900, mw.read(source).n_choices)
    again, whole = mw.read(path), mw.read(source)
    assert again.digest == whole.digest
    assert again.action_names == whole.action_names
    np.testing.assert_array_equal(again.actions, whole.actions)
    assert again.layout is not None
    assert whole.layout is not None
    np.testing.assert_array_equal(again.layout.blocked, whole.layout.blocked)
    np.testing.assert_array_equal(again.layout.cells, whole.layout.cells)


def test_a_source_with_changes_is_read_first(tmp_path):
    convert("rooms-20:0?without_action=up&minimise=true", tmp_path / "m.h5")
    assert mw.read(tmp_path / "m.h5").digest == mw.read("rooms-20:0?without_action=up&minimise=true").digest


def test_worlds_too_large_for_memory_name_the_way_out():
    with pytest.raises(mw.SettingError) as caught:
        mw.read("rooms-2001:0")
    assert "manyways convert rooms-2001:0 rooms.h5" in caught.value.on_command_line
    with pytest.raises(mw.SettingError, match="a map may have at most"):
        room_worlds.write_rooms("rooms-99999:0", None)  # pyright: ignore[reportArgumentType]


def on_a_ring(size: int):
    """Three functions of a walk around a ring, with many outcomes for each action."""

    def outcomes(state, action):
        place = state[0]
        return [(1 / 32, ((place + action * jump) % size,), float(place == 0)) for jump in range(32)]

    return (0,), lambda _: [1, 2, 3, 5, 7], outcomes


@pytest.mark.parametrize("states", [1, 7, 10_000])
def test_explored_straight_into_a_file_is_the_same_model(states, tmp_path, monkeypatch):
    monkeypatch.setattr(exploration, "STATES_PER_PIECE", states)
    functions, labels = on_a_ring(60), {"far": lambda state: state[0] > 50}
    path = mw.explore_into(tmp_path / "ring.h5", *functions, labels=labels, state_name=str, variables=["place"])
    again, whole = mw.read(path), mw.explore(*functions, labels=labels, variables=["place"])
    assert again.digest == whole.digest
    assert again.state_names == whole.state_names
    assert again.action_names == whole.action_names
    np.testing.assert_array_equal(again.variables["place"], whole.variables["place"])


def test_what_cannot_be_explored_leaves_no_file(tmp_path):
    with pytest.raises(mw.ModelError, match="more than 10 states"):
        mw.explore_into(tmp_path / "ring.h5", *on_a_ring(60), most_states=10)
    with pytest.raises(mw.ModelError, match="has no action"):
        mw.explore_into(tmp_path / "ring.h5", 0, lambda _: [], lambda *_: [])
    assert list(tmp_path.iterdir()) == []


def peak_while(work) -> int:
    """The largest number of bytes that Python and numpy had allocated at once during some work."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_model_is_never_whole_in_memory_while_it_is_written_or_read_in_slices(tmp_path, monkeypatch):
    monkeypatch.setattr(room_worlds, "BLOCK", 2_000)
    monkeypatch.setattr(exploration, "STATES_PER_PIECE", 20)
    monkeypatch.setattr("manyways.files.hdf5_arrays.BUFFERED", 4_000)
    rooms, ring = tmp_path / "rooms.h5", tmp_path / "ring.h5"
    for path, write in (
        (rooms, lambda: convert("rooms-200:0", rooms)),
        (ring, lambda: mw.explore_into(ring, *on_a_ring(1_200))),
    ):
        peak = peak_while(write)
        size = path.stat().st_size
        assert size > 2e6
        assert peak < 0.3 * size, (path, peak, size)

    def in_slices():
        with ModelFile(rooms) as file:
            for _ in file.blocks(0, file.n_states, 5_000):
                pass

    assert peak_while(in_slices) < 0.3 * rooms.stat().st_size
    assert peak_while(lambda: read_hdf5(rooms)) > rooms.stat().st_size, "the measurement notices a whole model"


# ---- malformed files --------------------------------------------------------------------------


def header_with(**changes):
    def change(file):
        header = json.loads(file["header"][:].tobytes()) | changes
        replaced(file, "header", np.frombuffer(json.dumps(header).encode(), np.uint8))

    return change


def replaced(file, name, values, **details):
    del file[name]
    file.create_dataset(name, data=values, **details)


def entry(name, at, value):
    def change(file):
        file[name][at] = value

    return change


def claiming_too_much(file):
    del file["reward"]
    file.create_dataset("reward", (10**12,), "f8", chunks=(1000,))


def packed_too_well(file):
    del file["reward"]
    file.create_dataset("reward", (10**9,), "f8", chunks=(10**6,), compression="gzip")


def elsewhere(file):
    del file["reward"]
    file["reward"] = h5py.ExternalLink("/etc/passwd", "/reward")


def in_another_file(file):
    del file["reward"]
    file.create_dataset("reward", (5,), "f8", external=[("/etc/passwd", 0, 40)])


def virtual(file):
    del file["reward"]
    layout = h5py.VirtualLayout((5,), "f8")
    layout[:] = h5py.VirtualSource("other.h5", "reward", (5,))
    file.create_virtual_dataset("reward", layout)


MALFORMED = {
    "no header": (lambda f: f.pop("header"), "has no header; 'manyways convert' writes one"),
    "another header": (lambda f: replaced(f, "header", np.arange(3.0)), "has no header"),
    "no JSON": (lambda f: replaced(f, "header", np.frombuffer(b"{", np.uint8)), "the header is not JSON"),
    "deep JSON": (lambda f: replaced(f, "header", np.frombuffer(b"[" * 99_999, np.uint8)), "the header is not JSON"),
    "another schema": (header_with(schema="x"), "is not a model of manyways"),
    "another version": (header_with(version=9), "has version 9 of the format, expected 1"),
    "no labels": (header_with(labels=["a", "b"]), "label1"),
    "a missing array": (lambda f: f.pop("reward"), "has no array 'reward'"),
    "text": (lambda f: replaced(f, "reward", "x"), "must contain numbers"),
    "one value": (lambda f: replaced(f, "reward", 1.0), "is a single value"),
    "a group": (lambda f: (f.pop("reward"), f.create_group("reward")), "is a group, expected an array"),
    "complex numbers": (lambda f: replaced(f, "reward", np.zeros(5, complex)), "must contain numbers"),
    "whole numbers": (lambda f: replaced(f, "reward", np.zeros(5, int)), "wrong shape or type"),
    "two axes": (lambda f: replaced(f, "reward", np.zeros((5, 1))), "wrong shape or type"),
    "too few": (lambda f: replaced(f, "start", np.zeros(3)), r"'start' must have the shape \(5,\)"),
    "no states": (lambda f: replaced(f, "first_choice", np.zeros(1, int)), "the model is empty"),
    "claims too much": (claiming_too_much, "claims 8,000,000,000,000 bytes, of which the file holds 0"),
    "packed too well": (packed_too_well, "claims 8,000,000,000 bytes"),
    "an external link": (elsewhere, "is a link to something else"),
    "external storage": (in_another_file, "lies in another file"),
    "a virtual array": (virtual, "lies in another file"),
    "a probability": (entry("probability", 0, 0.5), "sum to 0.5"),
    "a next state": (entry("next_state", 0, 5), r"next states must lie in 0\.\.4"),
    "a negative next state": (entry("next_state", 0, -1), r"next states must lie in 0\.\.4"),
    "a reward": (entry("reward", 2, np.nan), "is nan; rewards must be finite"),
    "first choices": (entry("first_choice", 2, 1), "first_choice|has no action"),
    "rows": (entry("row_begin", 2, 100), "row_begin|rise|CSR"),
    "start": (entry("start", 0, -1.0), "start"),
    "names": (entry("state_name_begin", 5, 3), "names of the states"),
    "names that are no text": (entry("state_name_text", 0, 255), "not UTF-8"),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_files_give_one_sentence(case, tmp_path):
    rows = [(f"ö{s}", "a", f"ö{(s + 1) % 5}", 1.0, 1.0) for s in range(5)]
    path = tmp_path / "m.h5"
    write_hdf5(mw.MDP.from_transitions(rows, labels={"a": ["ö1"]}), path)
    change, message = MALFORMED[case]
    with h5py.File(path, "r+") as file:
        change(file)
    with pytest.raises(mw.SourceError, match=message) as caught:
        mw.read(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("case", ["a probability", "a next state", "a reward", "first choices", "rows", "start"])
def test_slices_of_malformed_files_are_refused(case, tmp_path):
    rows = [(s, "a", (s + 1) % 5, 1.0, 1.0) for s in range(5)]
    write_hdf5(mw.MDP.from_transitions(rows), tmp_path / "m.h5")
    change, message = MALFORMED[case]
    with h5py.File(tmp_path / "m.h5", "r+") as file:
        change(file)
    with ModelFile(tmp_path / "m.h5") as file, pytest.raises(mw.SourceError, match=message):
        _ = [*file.blocks(0, 5), file.start(0, 5)]


@pytest.mark.parametrize("content", [b"", b"not HDF5", b"\x89HDF\r\n\x1a\n"])
def test_files_that_are_not_hdf5(content, tmp_path):
    (tmp_path / "m.h5").write_bytes(content)
    with pytest.raises(mw.SourceError, match="it is not an HDF5 file, or is truncated or damaged"):
        mw.read(tmp_path / "m.h5")


def test_damaged_files_give_a_model_or_a_sentence(tmp_path):
    write_hdf5(mw.nine_rooms(0), tmp_path / "m.h5")
    whole, rng, refused = (tmp_path / "m.h5").read_bytes(), np.random.default_rng(0), 0
    for _ in range(150):
        content = bytearray(whole)
        for _ in range(int(rng.integers(1, 5))):
            content[int(rng.integers(0, rng.choice([2_000, len(content)])))] = int(rng.integers(0, 256))
        kept = content if rng.random() < 0.9 else content[: int(rng.integers(0, len(content)))]
        (tmp_path / "damaged.h5").write_bytes(kept)
        found = read_or_refusal(mw.read, tmp_path / "damaged.h5")
        assert isinstance(found, mw.MDP | str)
        refused += isinstance(found, str)
    assert 0 < refused < 150


def test_without_h5py_the_error_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "h5py", None)
    with pytest.raises(mw.SettingError, match=r"pip install 'manyways\[hdf5\]'"):
        write_hdf5(mw.nine_rooms(0), tmp_path / "m.h5")
    assert list(tmp_path.iterdir()) == []
