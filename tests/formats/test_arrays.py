"""Models as arrays and in .npz files."""

import pickle
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import manyways as mw
from fuzzing import read_or_refusal
from manyways.formats.arrays import read_npz, write_npz
from manyways.formats.writer import write_model
from problems import random_mdp

P = np.array([[[0.5, 0.5], [0.0, 1.0]], [[1.0, 0.0], [0.3, 0.7]]])  # (A, S, S)
R = np.array([[1.0, 2.0], [3.0, 4.0]])  # (S, A)


def test_the_layout_of_pymdptoolbox():
    mdp = mw.from_mdptoolbox(P, R)
    np.testing.assert_array_equal(mdp.transitions.toarray(), [P[0, 0], P[1, 0], P[0, 1], P[1, 1]])
    np.testing.assert_array_equal(mdp.reward, [1, 2, 3, 4])
    assert mdp.digest == mw.from_mdptoolbox([sparse.csr_array(part) for part in P], R).digest
    assert mdp.digest == mw.MDP.from_dense(P.transpose(1, 0, 2), R).digest


@pytest.mark.parametrize("sparsely", [False, True])
def test_rewards_per_transition(sparsely):
    reward = np.arange(8.0).reshape(2, 2, 2)
    given_as = [sparse.csr_array(part) for part in reward] if sparsely else reward
    np.testing.assert_allclose(mw.from_mdptoolbox(P, given_as).reward, (P * reward).sum(axis=2).T.ravel())


def test_rewards_per_state():
    np.testing.assert_array_equal(mw.from_mdptoolbox(P, [5.0, 6.0]).reward, [5, 5, 6, 6])


def test_the_layout_of_quantecon_in_any_order():
    rows = np.array([P[1, 1], P[0, 0], P[0, 1]])
    mdp = mw.from_quantecon([1, 0, 1], [1, 0, 0], rows, [4.0, 1.0, 3.0])
    np.testing.assert_array_equal(mdp.transitions.toarray(), [P[0, 0], P[0, 1], P[1, 1]])
    np.testing.assert_array_equal(mdp.reward, [1, 3, 4])
    np.testing.assert_array_equal(mdp.actions, [0, 0, 1])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: mw.from_mdptoolbox([], R), "no action"),
        (lambda: mw.from_mdptoolbox([np.eye(2), np.eye(3)], R), "action 1 have shape"),
        (lambda: mw.from_mdptoolbox(P, np.zeros((3, 3))), "the reward must have shape"),
        (lambda: mw.from_quantecon([0], [0], np.eye(2), [1.0, 1.0]), "s_indices must have one entry"),
        (lambda: mw.from_quantecon([0, 5], [0, 0], np.eye(2), [1.0, 1.0]), r"must lie in 0\.\.1"),
        (lambda: mw.from_quantecon([0.5, 1], [0, 0], np.eye(2), [1.0, 1.0]), "must be integers"),
    ],
)
def test_arrays_that_do_not_fit(make, message):
    with pytest.raises(mw.ModelError, match=message):
        make()


# ---- .npz -------------------------------------------------------------------------------------


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_written_and_read_is_the_same_model(seed, tmp_path_factory):
    mdp = random_mdp(np.random.default_rng(seed), max_states=6, kind="dense")
    path = tmp_path_factory.mktemp("npz") / "model.npz"
    write_npz(mdp, path)
    assert read_npz(path).digest == mdp.digest
    assert mw.read(str(path)).action_names == mdp.action_names


def test_names_and_labels_are_kept(tmp_path):
    mdp = mw.nine_rooms(0)
    write_npz(mdp, tmp_path / "rooms.npz")
    again = mw.read(tmp_path / "rooms.npz")
    assert again.digest == mdp.digest, "labels are part of the digest"
    assert again.labels.keys() == mdp.labels.keys()


def test_ends_and_observations_are_kept(tmp_path):
    mdp = mw.MDP.from_dense(P.transpose(1, 0, 2), R)
    to_start = np.asarray(mdp.transitions @ mdp.start)
    mdp = replace(mdp, ends={"goal": to_start / 3, "hole": to_start / 2}, observations=np.array([5, 3]))
    write_npz(mdp, tmp_path / "m.npz")
    again = mw.read(tmp_path / "m.npz")
    assert again.ends.keys() == mdp.ends.keys()
    for end, chance in mdp.ends.items():
        np.testing.assert_array_equal(again.ends[end], chance)
    np.testing.assert_array_equal(again.observations, [5, 3])
    with np.load(tmp_path / "m.npz") as file:
        arrays = dict(file)
    for wrong in (arrays["end:goal"][:-1], arrays["end:goal"].astype(str)):
        np.savez(tmp_path / "m.npz", **(arrays | {"end:goal": wrong}))
        with pytest.raises(mw.SourceError, match=r"'end:goal' must (have the shape|contain numbers)"):
            mw.read(tmp_path / "m.npz")


def test_files_in_the_layouts_of_other_libraries(tmp_path):
    np.savez(tmp_path / "toolbox.npz", P=P, R=R, start=[0.0, 1.0])
    assert mw.read(tmp_path / "toolbox.npz").digest == mw.from_mdptoolbox(P, R, start=[0.0, 1.0]).digest
    np.savez(tmp_path / "pairs.npz", s_indices=[0, 1], a_indices=[0, 0], Q=np.eye(2), R=[1.0, 2.0])
    assert mw.read(tmp_path / "pairs.npz").n_choices == 2


def test_files_without_a_model(tmp_path):
    np.savez(tmp_path / "other.npz", x=[1])
    with pytest.raises(mw.SourceError, match="contains the arrays x; expected P and R"):
        mw.read(tmp_path / "other.npz")
    (tmp_path / "broken.npz").write_bytes((tmp_path / "other.npz").read_bytes()[:50])
    with pytest.raises(mw.SourceError, match=r"not an \.npz file, or is truncated"):
        mw.read(tmp_path / "broken.npz")
    np.savez(tmp_path / "objects.npz", P=np.array([{}], dtype=object), R=[1.0])
    with pytest.raises(mw.SourceError, match="'P' must contain numbers or text, found object"):
        mw.read(tmp_path / "objects.npz")


@pytest.mark.parametrize(
    ("limit", "arrays", "message"),
    [
        (
            "LARGEST",
            {"P": np.zeros((1, 1000, 1000)), "R": np.zeros(1000)},
            "claims 8,008,256 bytes; more than",
        ),
        (
            "LARGEST_PACKED",
            {"P": np.zeros((1, 1000, 1000)), "R": np.zeros(1000)},
            "so nearly all are equal; save it with",
        ),
        ("LARGEST", {"P": P, "R": np.zeros(10**6)}, r"'R' must have the shape .* found \(1000000,\)"),
        (
            "LARGEST",
            {"P": P, "R": R, "start": np.zeros(10**6)},
            r"'start' must have the shape \(2,\), which follows from the others",
        ),
        ("LARGEST", {"P": P, "R": R, "label:x": np.zeros(10**6, bool)}, "'label:x' must have the shape"),
        ("LARGEST", {"P": P, "R": R, "action_names": np.zeros(10**6, "U1")}, "more 'action_names' than 4 choices"),
    ],
)
def test_a_zip_bomb_is_refused_before_it_is_opened(limit, arrays, message, tmp_path, monkeypatch):
    monkeypatch.setattr(f"manyways.files.zipped_arrays.{limit}", 10**6)
    monkeypatch.setattr("manyways.files.zipped_arrays.Npz._array", lambda *_: pytest.fail("an array was unpacked"))
    np.savez_compressed(tmp_path / "bomb.npz", **arrays)
    with pytest.raises(mw.SourceError, match=message):
        mw.read(tmp_path / "bomb.npz")


def test_arrays_that_do_not_belong_to_the_model_are_not_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr("manyways.files.zipped_arrays.LARGEST", 10**6)
    np.savez_compressed(tmp_path / "more.npz", P=P, R=R, notes=np.zeros(10**6))
    assert mw.read(tmp_path / "more.npz").digest == mw.from_mdptoolbox(P, R).digest


def test_a_large_model_with_equal_rows_is_not_refused_as_a_bomb(tmp_path, monkeypatch):
    monkeypatch.setattr("manyways.files.zipped_arrays.LARGEST_PACKED", 10**6)  # so that only the ratio allows it
    n = 10**6
    whole = mw.MDP.from_csr(
        sparse.csr_array((np.ones(n), np.zeros(n, np.int32), np.arange(n + 1)), shape=(n, n // 2)),
        np.zeros(n),
        np.arange(0, n + 1, 2),
    )
    write_npz(whole, tmp_path / "large.npz")
    assert read_npz(tmp_path / "large.npz").digest == whole.digest


def test_a_pickle_is_never_loaded(tmp_path):
    class Trap:
        def __reduce__(self):
            return (pytest.fail, ("the pickle was loaded",))

    for name in ("model.pkl", "model.pickle"):
        (tmp_path / name).write_bytes(pickle.dumps(Trap()))
        with pytest.raises(mw.SourceError, match="is a pickle"):
            mw.read(tmp_path / name)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_damaged_files_only_raise_our_errors(data, tmp_path_factory):
    path = tmp_path_factory.mktemp("fuzz") / "model.npz"
    write_npz(mw.MDP.from_dense(P.transpose(1, 0, 2), R), path)
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 6))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.integers(0, len(content)))] if data.draw(st.booleans()) else content)
    assert isinstance(read_or_refusal(read_npz, path), mw.MDP | str)


def member(array, **header) -> bytes:
    """An array as the bytes of an `.npy` file, with a header that may be wrong."""
    array = np.asarray(array)
    fields = {"descr": array.dtype.str, "fortran_order": False, "shape": array.shape} | header
    text = f"{fields}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + array.tobytes()


def npz_of(members: dict[str, bytes], path):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return path


@st.composite
def strange_members(draw, array):
    """The array with other entries, of another type or shape, or with a header that claims another shape or type."""
    way = draw(st.sampled_from(["type", "shape", "entry", "header", "bytes"]))
    if way == "type":
        return member(
            np.zeros(array.shape, draw(st.sampled_from(["f2", ">f8", "i1", "u8", "?", "c16", "S3", "U2", "V4"])))
        )
    if way == "shape":
        return member(np.resize(array, draw(st.lists(st.integers(0, 4), max_size=3))))
    if way == "entry":
        strange = array.astype(float)
        strange.flat[draw(st.integers(0, array.size - 1))] = draw(st.sampled_from([np.nan, np.inf, -5.0, 1e300, 0.5]))
        with np.errstate(invalid="ignore"):
            return member(strange.astype(draw(st.sampled_from([np.float64, array.dtype]))))
    if way == "header":
        shapes = [(10**11,), (2**62, 4), (-1,), (10**9, 0), (0, 10**9), (10**5, 10**5), (2.0,), "x", ()]
        types = [array.dtype.str, "|O", "|V0", "<U2147483647", [], [("a", "<f8")], "q9", 1]
        return member(array, shape=draw(st.sampled_from(shapes)), descr=draw(st.sampled_from(types)))
    return draw(st.binary(max_size=40) | st.sampled_from([b"\x93NUMPY\x01\x00\x03\x00(((", b"\x93NUMPY\x02\x00"]))


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_strange_arrays_only_raise_our_errors(data, tmp_path_factory):
    path = tmp_path_factory.mktemp("fuzz") / "model.npz"
    whole = mw.MDP.from_dense(P.transpose(1, 0, 2), R, labels={"here": np.array([True, False])})
    write_npz(whole, path)
    with np.load(path) as file:
        ours = {name: file[name] for name in file.files}
    toolbox = {"P": P, "R": R, "start": np.array([0.0, 1.0])}
    pairs = {"s_indices": np.array([0, 1]), "a_indices": np.array([0, 0]), "Q": np.eye(2), "R": np.array([1.0, 2.0])}
    arrays = data.draw(st.sampled_from([ours, toolbox, pairs]))
    members = {name: member(array) for name, array in arrays.items()}
    numeric = [name for name, array in arrays.items() if array.dtype.kind != "U"]
    for name in data.draw(st.lists(st.sampled_from(numeric), min_size=1, max_size=2)):
        members[name] = data.draw(strange_members(arrays[name]))
    assert isinstance(read_or_refusal(read_npz, npz_of(members, path)), mw.MDP | str)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("label:a", b"(((", "'label:a' is not an array"),
        ("R", b"\x93NUMPY\x01\x00\x03\x00(((", "cannot be read"),
        ("state_names", member(np.zeros(0), shape=(10**5, 10**5), descr="<U0"), "for which the file is too small"),
        ("P", member(np.zeros(0), shape=(10**9, 0)), "for which the file is too small"),
        ("P", member(np.zeros(0), shape=(10**14,)), "for which the file is too small"),
        ("P", member(np.zeros(0), shape=(2**64,)), "for which the file is too small"),
        ("P", member(np.zeros(2), shape=(-1,)), "for which the file is too small"),
        ("state_names", member(np.array([2**31 - 1, 65]), descr="<U1", shape=(2,)), "cannot be read: .*"),
        ("P", b"\x93NUMPY\x01\x00\x0b\x00{'\\escr': 1\n", "the header or the text of an array is invalid"),
        ("P", member(P.astype(complex)), "'P' must contain numbers or text, found complex128"),
    ],
    ids=[
        "no array",
        "no header",
        "entries of no size",
        "none along an axis",
        "too many",
        "beyond any",
        "negative",
        "no text",
        "escape",
        "complex",
    ],
)
@pytest.mark.filterwarnings("error")
def test_claims_that_would_exhaust_memory_or_time(tmp_path, name, content, message):
    members = {"P": member(P), "R": member(R), name: content}
    with pytest.raises(mw.SourceError, match=message):
        read_npz(npz_of(members, tmp_path / "model.npz"))


def test_rows_that_end_before_they_begin(tmp_path):
    """scipy does not check the beginnings of rows if the last one is negative, and would write past its arrays."""
    path = tmp_path / "model.npz"
    write_npz(mw.MDP.from_dense(P.transpose(1, 0, 2), R), path)
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    for last in (-5, -(2**63)):  # the difference to the latter overflows
        arrays["row_begin"] = arrays["row_begin"].astype(np.int64)
        arrays["row_begin"][-1] = last
        np.savez(path, **arrays)
        with pytest.raises(mw.ModelError, match="beginnings of the rows do not rise"):
            read_npz(path)


def test_next_states_that_do_not_exist(tmp_path):
    path = tmp_path / "model.npz"
    write_npz(mw.MDP.from_dense(P.transpose(1, 0, 2), R), path)
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    arrays["next_state"] = arrays["next_state"].astype(np.uint64)
    arrays["next_state"][0] = 2**64 - 1
    np.savez(path, **arrays)
    with pytest.raises(mw.ModelError, match=r"next states must lie in 0\.\.1, found 0 to 18446744073709551615"):
        read_npz(path)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("number", [1e308, np.inf, np.nan])
@pytest.mark.parametrize("name", ["P", "R", "start"])
def test_numbers_too_large_are_refused_without_warnings(name, number, tmp_path):
    arrays = {"P": P, "R": np.ones((2, 2, 2)), "start": np.array([1.0, 0.0])}
    arrays[name] = np.full_like(arrays[name], number)
    np.savez(tmp_path / "model.npz", **arrays)
    if (name, number) == ("R", 1e308):
        assert (read_npz(tmp_path / "model.npz").reward == 1e308).all()
    else:
        with pytest.raises(mw.ModelError):
            read_npz(tmp_path / "model.npz")


def test_action_numbers_that_are_too_large(tmp_path):
    np.savez(tmp_path / "qe.npz", s_indices=[0, 1], a_indices=[0, 30_000_000], Q=np.eye(2), R=[1.0, 2.0])
    with pytest.raises(mw.ModelError, match="number 30,000,000, which is too large for a model with 2 choices"):
        mw.read(tmp_path / "qe.npz")


def test_names_as_bytes_are_utf8(tmp_path):
    np.savez(tmp_path / "m.npz", P=P, R=R, action_names=np.array([b"ab", "é".encode()]))
    assert read_npz(tmp_path / "m.npz").action_names == ("ab", "é")
    np.savez(tmp_path / "m.npz", P=P, R=R, action_names=np.array([b"ab", b"\xff"]))
    with pytest.raises(mw.SourceError, match="cannot be read"):
        read_npz(tmp_path / "m.npz")


def test_labels_and_names_that_a_zip_cannot_hold(tmp_path):
    rows = [(s, "a", s, 1.0, 0.0) for s in ("s", "t")]
    mdp = mw.MDP.from_transitions(rows, labels={"x": ["s"], "x.npy": ["t"], "../a/b": ["s"]})
    write_npz(mdp, tmp_path / "m.npz")
    assert read_npz(tmp_path / "m.npz").digest == mdp.digest
    for label in ("x\0y", "x" * 70_000):
        with pytest.raises(mw.OutputError, match="contains NUL or is too long"):
            write_npz(mw.MDP.from_transitions(rows, labels={label: ["s"]}), tmp_path / "m.npz")
        with pytest.raises(mw.OutputError, match="contains NUL or is too long"):
            write_npz(mw.MDP.from_transitions(rows, ends={label: [0.0, 0.0]}), tmp_path / "m.npz")
    with pytest.raises(mw.OutputError, match="ends in NUL"):
        write_npz(mw.MDP.from_transitions([("s\0", "a", "s\0", 1.0, 0.0)]), tmp_path / "m.npz")


def test_an_array_that_occurs_twice(tmp_path):
    with zipfile.ZipFile(tmp_path / "m.npz", "w") as archive:
        for name in ("P.npy", "R.npy", "R"):
            archive.writestr(name, member(P if name == "P.npy" else R))
    with pytest.raises(mw.SourceError, match="contains 'R' twice"):
        read_npz(tmp_path / "m.npz")


def test_names_of_cells_are_kept(tmp_path):
    mdp = mw.nine_rooms(0)
    for ending in (".npz", ".drn", ".tra"):
        write_model(mdp, tmp_path / f"rooms{ending}")
        assert mw.read(tmp_path / f"rooms{ending}").state_name(0) == mdp.state_name(0) == "r0c0"


@pytest.mark.parametrize("name", ["next_state", "row_begin", "first_choice"])
def test_indices_that_are_not_integers(tmp_path, name):
    path = tmp_path / "model.npz"
    write_npz(mw.MDP.from_dense(P.transpose(1, 0, 2), R), path)
    with np.load(path) as file:
        arrays = {key: file[key] for key in file.files}
    np.savez(path, **arrays | {name: arrays[name] + 0.5})
    with pytest.raises(mw.SourceError, match=f"{name}' must contain integers, found float64"):
        read_npz(path)


def test_other_errors_are_not_caught():
    with pytest.raises(ZeroDivisionError):
        read_or_refusal(lambda: 1 / 0)
