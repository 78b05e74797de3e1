"""Paths that are not files, and files that claim too much, are refused in a sentence, before they take time or memory."""

import os
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import manyways as mw
from manyways.formats.writer import write_model
from manyways.plans.policy_files import FORMATS as POLICY_ENDINGS
from manyways.studies.sweeps import load_sweep
from manyways.web.session import Session

ENDINGS = [".txt", ".json", ".drn", ".tra", ".npz", ".prism", ".jani", ".rddl", ".map", ".yaml"]
LONG, NUL = "a" * 300, "a\0b"


@pytest.fixture(scope="module")
def plans() -> mw.PlanSet:
    return mw.plan(mw.grid_world([[False, False]], (0, 0), (0, 1)), 1)


@pytest.fixture(autouse=True)
def _watchdog():
    """Ends a test that waits for a pipe or reads a device without end."""

    def expired(*_: object) -> None:
        pytest.fail("waited for a file that never ends")

    before = signal.signal(signal.SIGALRM, expired)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(params=["pipe", "link to a pipe", "link to a device"])
def make_endless(request, tmp_path):
    """Makes something at a path from which one could read without end."""

    def make(path: Path) -> Path:
        match request.param:
            case "pipe":
                os.mkfifo(path)
            case "link to a pipe":
                os.mkfifo(tmp_path / "the pipe")
                path.symlink_to(tmp_path / "the pipe")
            case "link to a device":
                path.symlink_to("/dev/zero")
        return path

    return make


def expect_refusal():
    """The block must be refused because of what the file is."""
    return pytest.raises(mw.ManywaysError, match="is a device or a pipe, expected a file")


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_model_that_is_not_a_file(ending, make_endless, tmp_path):
    with expect_refusal():
        mw.read(make_endless(tmp_path / f"model{ending}"))


@pytest.mark.parametrize("ending", [".lab", ".sta", ".srew", ".trew", "1.rews"])
def test_a_file_of_prism_beside_the_transitions(ending, make_endless, tmp_path):
    (tmp_path / "model.tra").write_text("1 1 1\n0 0 0 1\n")
    make_endless(tmp_path / f"model{ending}")
    with expect_refusal():
        mw.read(tmp_path / "model.tra")


def test_the_image_of_a_map(make_endless, tmp_path):
    pytest.importorskip("yaml")
    image = make_endless(tmp_path / "image.pgm")
    for name in ("image.pgm", image):
        (tmp_path / "map.yaml").write_text(f"image: {name}\nresolution: 1\norigin: [0, 0, 0]\n")
        with expect_refusal():
            mw.read(f"{tmp_path}/map.yaml?start=0,0&goal=1,1")


def test_an_instance_of_rddl(make_endless, tmp_path):
    make_endless(tmp_path / "instance.rddl")
    (tmp_path / "domain.rddl").write_text("domain d {}")
    with expect_refusal():
        mw.read(f"{tmp_path}/domain.rddl?instance=instance.rddl")


@pytest.mark.parametrize("ending", POLICY_ENDINGS)
def test_a_policy_file(ending, make_endless, plans, tmp_path):
    with expect_refusal():
        mw.load_policy(make_endless(tmp_path / f"policy{ending}"), plans.mdp)


def test_a_plan_file(make_endless, tmp_path):
    path = make_endless(tmp_path / "plans.mw")
    with expect_refusal():
        mw.load(path)
    with expect_refusal():
        Session(path, 1.0)


def test_a_store_of_rows(make_endless, plans, tmp_path):
    make_endless(tmp_path / "rows.sqlite")
    with pytest.raises(mw.OutputError, match=r"cannot use .*rows\.sqlite"):
        mw.sweep(plans.mdp, tradeoff=[1.0], k=[1], seeds=1, out=tmp_path)
    with pytest.raises(mw.OutputError, match=r"cannot use .*rows\.sqlite"):
        load_sweep(tmp_path, plans.mdp)


def test_a_store_of_choices(make_endless, plans, tmp_path):
    plans.save(tmp_path / "plans.mw")
    make_endless(tmp_path / "plans.choices.sqlite")
    with pytest.raises(mw.OutputError, match=r"cannot use .*choices\.sqlite"):
        Session(tmp_path / "plans.mw", 1.0)


@pytest.mark.parametrize("arguments", [["show", "plans.mw"], ["verify", "plans.mw"], ["serve", "plans.mw"]])
def test_a_command_with_a_plan_file(arguments, make_endless, tmp_path):
    make_endless(tmp_path / "plans.mw")
    command = [sys.executable, "-m", "manyways", *arguments]
    ended = subprocess.run(command, check=False, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == "manyways: plans.mw is a device or a pipe, expected a file\n"


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


@pytest.mark.parametrize(
    "nested", ["[" * 60_000, "{" * 60_000, "{a: " * 15_000, "- " * 30_000, "? " * 30_000, "[\n" * 30_000]
)
def test_deeply_nested_yaml_is_refused_before_it_takes_time(nested, tmp_path):
    pytest.importorskip("yaml")
    (tmp_path / "map.yaml").write_text(nested)
    with pytest.raises(mw.SourceError, match="lists and mappings are nested more than 16 deep"):
        mw.read(tmp_path / "map.yaml?start=0,0&goal=1,1")


def test_yaml_aliases_are_refused(tmp_path):
    pytest.importorskip("yaml")
    levels = (f"a{i}: &a{i}\n  <<: [{','.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 9))
    (tmp_path / "map.yaml").write_text("a0: &a0 {k: v}\n" + "".join(levels) + "image: x\n")
    with pytest.raises(
        mw.SourceError, match="has YAML aliases, which are refused because they can expand without limit"
    ):
        mw.read(tmp_path / "map.yaml?start=0,0&goal=1,1")


@pytest.mark.parametrize(
    ("ending", "content"),
    [
        (".prism", b"mdp\nmodule m\n x : [0..1] init 0;\n [] \xff true -> true;\nendmodule\n"),
        (".nm", b"mdp // \xfcber\n"),
        (".jani", b'{"jani-version": 1, "name": "\xff"}'),
        (".jani", b"\xff\xfe{\x00}\x00"),
        (".txt", b"S.\xff.G\n"),
        (".json", b'{"rows": ["S.G"], "name": "\xff"}'),
        (".map", b"type octile\n\xff"),
        (".yaml", b"image: \xff"),
        (".rddl", b"domain \xff {}"),
    ],
)
def test_a_text_file_that_is_not_utf_8(ending, content, tmp_path):
    (tmp_path / f"model{ending}").write_bytes(content)
    with pytest.raises(
        mw.SourceError, match=rf"is not a text file: byte {content.index(0xFF if 0xFF in content else 0xFC)} is not"
    ):
        mw.read(tmp_path / f"model{ending}")
