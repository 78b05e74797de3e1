"""Paths that are not files, and files that claim too much, are refused in a sentence, before they take time or memory."""

import os
import zipfile

import pytest

import manyways as mw
from manyways.formats.writer import write_model

ENDINGS = [".txt", ".json", ".drn", ".tra", ".npz", ".prism", ".jani", ".rddl", ".map", ".yaml"]
LONG, NUL = "a" * 300, "a\0b"


@pytest.fixture(scope="module")
def plans() -> mw.PlanSet:
    return mw.plan(mw.grid_world([[False, False]], (0, 0), (0, 1)), 1)


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_pipe_is_refused(ending, tmp_path):
    os.mkfifo(tmp_path / f"model{ending}")
    with pytest.raises(mw.SourceError, match="is a device or a pipe"):
        mw.read(tmp_path / f"model{ending}")


@pytest.mark.parametrize("ending", [".lab", ".sta", ".srew", ".trew", "1.rews"])
def test_a_pipe_beside_the_files_of_prism_is_refused(ending, tmp_path):
    (tmp_path / "model.tra").write_text("1 1 1\n0 0 0 1\n")
    os.mkfifo(tmp_path / f"model{ending}")
    with pytest.raises(mw.SourceError, match="is a device or a pipe"):
        mw.read(tmp_path / "model.tra")


def test_a_pipe_instead_of_an_image_or_an_instance_is_refused(tmp_path):
    pytest.importorskip("yaml")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "map.yaml").write_text("image: pipe\nresolution: 1\norigin: [0, 0, 0]\n")
    (tmp_path / "domain.rddl").write_text("domain d {}")
    for source in ("map.yaml?start=0,0&goal=1,1", "domain.rddl?instance=pipe"):
        with pytest.raises(mw.SourceError, match="is a device or a pipe"):
            mw.read(f"{tmp_path}/{source}")


def test_a_device_is_not_read():
    with pytest.raises(mw.SourceError, match="is a device or a pipe"):
        mw.read("/dev/zero")
    with pytest.raises(mw.PlanFileError, match="is a device or a pipe"):
        mw.load("/dev/zero")


@pytest.mark.parametrize("name", [LONG, NUL])
def test_names_that_files_cannot_have(name, plans, tmp_path):
    place = tmp_path / name
    for act in (lambda: mw.read(place), lambda: mw.load(place), lambda: mw.load_policy(f"{place}.csv", plans.mdp)):
        with pytest.raises((mw.SourceError, mw.PlanFileError)):
            act()
    for act in (
        lambda: plans.save(place),
        lambda: plans.report(f"{place}.html"),
        lambda: plans.draw(f"{place}.png"),
        lambda: plans[0].policy.save(f"{place}.csv"),
        *(
            lambda ending=ending: write_model(plans.mdp, tmp_path / f"{name}{ending}")
            for ending in (".npz", ".drn", ".tra")
        ),
    ):
        with pytest.raises(mw.OutputError, match="cannot write"):
            act()
    assert list(tmp_path.iterdir()) == []


def test_a_small_file_of_plans_that_claims_to_be_huge(plans, tmp_path):
    path = plans.save(tmp_path / "plans.mw")
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive, archive.open("more.npy", "w") as member:
        for _ in range(300):
            member.write(bytes(2**20))
    with pytest.raises(mw.PlanFileError, match=r"claims 3\d\d,\d\d\d,\d\d\d bytes in a file of"):
        mw.load(path)


@pytest.mark.parametrize("source", ["rooms-2001:0", "rooms-99999:0"])
def test_worlds_that_would_exhaust_memory(source):
    with pytest.raises(mw.SettingError, match="cells are too many; a world may have at most 4,000,000 cells"):
        mw.read(source)


def test_maps_that_would_exhaust_memory(tmp_path):
    (tmp_path / "map.txt").write_text(("." * 2001 + "\n") * 2000)
    with pytest.raises(mw.SourceError, match="has 4,002,000 cells; it may have at most 4,000,000"):
        mw.read(tmp_path / "map.txt")


def test_yaml_aliases_are_refused(tmp_path):
    pytest.importorskip("yaml")
    levels = (f"a{i}: &a{i}\n  <<: [{','.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 9))
    (tmp_path / "map.yaml").write_text("a0: &a0 {k: v}\n" + "".join(levels) + "image: x\n")
    with pytest.raises(
        mw.SourceError, match="has YAML aliases, which are refused because they can expand without limit"
    ):
        mw.read(tmp_path / "map.yaml?start=0,0&goal=1,1")


def test_a_model_for_storm_that_is_not_text(tmp_path):
    (tmp_path / "model.prism").write_bytes(b"mdp\nmodule m\n x : [0..1] init 0;\n [] \xff true -> true;\nendmodule\n")
    with pytest.raises(mw.SourceError, match="is not a text file: byte 37 is not UTF-8"):
        mw.read(tmp_path / "model.prism")
