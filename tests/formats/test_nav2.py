"""Maps of ROS and Nav2: YAML files and images."""

from __future__ import annotations

import io
import os
import re
import struct
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

import manyways as mw
from fuzzing import damaged, read_or_refusal
from manyways.errors import ManywaysError
from manyways.formats.nav2 import MapFile, parse_yaml, read_image, read_nav2
from manyways.formats.placed_maps import OPEN_GRID
from manyways.model.occupancy import state_occupancy


def drawn(*rows: str) -> np.ndarray:
    return np.array([[cell == "#" for cell in row] for row in rows])


def position(mdp: mw.MDP, label: str) -> tuple[int, int]:
    return mdp.layout.position(int(np.flatnonzero(mdp.labels[label])[0]))


YAML = """image: map.pgm
resolution: 0.5
origin: [-1.0, 2.0, 0.0]
negate: 0
occupied_thresh: 0.65
free_thresh: 0.196
mode: trinary
"""
PIXELS = np.array([[254, 254, 0, 254], [254, 254, 205, 254], [254, 254, 254, 254]], np.uint8)
BLOCKED = drawn("..#.", "..#.", "....")
ENDS: dict[str, Any] = {"start": (-0.9, 2.1), "goal": "0.6,3.4"}


def pgm(pixels: np.ndarray, kind: str = "P5", most: int = 255) -> bytes:
    rows, columns = pixels.shape
    head = f"{kind}\n# by hand\n{columns} {rows}\n{most}\n".encode()
    if kind == "P2":
        return head + "\n".join(" ".join(map(str, row)) for row in pixels).encode() + b"\n"
    return head + pixels.astype(np.uint8 if most < 256 else ">u2").tobytes()


def encoded(pixels: np.ndarray, mode: str, kind: str = "PNG") -> bytes:
    file = io.BytesIO()
    if mode == "I;16":
        Image.fromarray(pixels.astype(np.uint16) * 257).save(file, kind)
    else:
        Image.fromarray(pixels).convert(mode).save(file, kind)
    return file.getvalue()


@pytest.fixture
def write(tmp_path):
    """Writes the YAML file and the image of a map; returns the path of the YAML file."""

    def write(text: str = YAML, image: bytes | None = None) -> Path:
        (tmp_path / "map.pgm").write_bytes(pgm(PIXELS) if image is None else image)
        (tmp_path / "map.yaml").write_text(text)
        return tmp_path / "map.yaml"

    return write


def test_a_small_nav2_map(write):
    mdp = read_nav2(write(), **ENDS, goal_reward=30.0)
    assert mdp.name == "map"
    assert (mdp.layout.blocked == BLOCKED).all(), "occupied and unknown pixels are blocked"
    assert (position(mdp, "start"), position(mdp, "goal")) == ((2, 0), (0, 3))
    assert mdp.layout.metres_per_cell == 0.5
    same = mw.grid_world(BLOCKED, (2, 0), (0, 3), goal_reward=30.0, **OPEN_GRID)
    assert mdp.digest == same.digest
    assert read_nav2(write(), start="0,2", goal=(3, 0), unit="cells", goal_reward=30.0).digest == mdp.digest
    assert read_nav2(write(), **ENDS, directions=4, enterable_walls=True).digest == (
        mw.grid_world(BLOCKED, (2, 0), (0, 3)).digest
    )


def images() -> dict[str, bytes]:
    found = {
        f"{kind} {most}": pgm(PIXELS.astype(int) * (most // 255), kind, most)
        for kind in ("P2", "P5")
        for most in (255, 65535)
    }
    found |= {f"PNG {mode}": encoded(PIXELS, mode) for mode in ("L", "RGB", "RGBA", "LA", "P", "I;16")}
    return found | {"BMP": encoded(PIXELS, "RGB", "BMP"), "P5 and a newline": pgm(PIXELS) + b"\n"}


@pytest.mark.parametrize("kind", images())
def test_every_kind_of_image(write, kind):
    assert (read_nav2(write(image=images()[kind]), **ENDS).layout.blocked == BLOCKED).all()


@pytest.mark.parametrize("kind", ["P2", "P5"])
@pytest.mark.parametrize("most", [1, 7, 51, 100, 254, 255, 256, 1000, 40000, 65534, 65535])
def test_values_of_a_pgm_image_are_exact_for_every_maxval(kind, most):
    """Pillow rescales them; a pixel beside a threshold must stay on its side."""
    values = np.unique(np.linspace(0, most, 2000).astype(int))[None, :]
    brightness, white = read_image(pgm(values, kind, most), "a")
    assert white == most
    np.testing.assert_array_equal(brightness, values)


def test_black_and_white_images_and_images_in_other_folders(write, tmp_path):
    (tmp_path / "other").mkdir()
    image = tmp_path / "other" / "a.png"
    image.write_bytes(encoded(np.where(BLOCKED, 0, 255).astype(np.uint8), "1"))
    for said in (str(image), "other/a.png"):
        assert (read_nav2(write(YAML.replace("map.pgm", said)), **ENDS).layout.blocked == BLOCKED).all()


def test_negate_and_thresholds(write):
    negated = write(YAML.replace("negate: 0", "negate: 1"), pgm(255 - PIXELS))
    assert (read_nav2(negated, **ENDS).layout.blocked == BLOCKED).all()
    bold = write(YAML.replace("free_thresh: 0.196", "free_thresh: 0.25"))
    with pytest.warns(UserWarning, match=r"what is unknown, are free by this map's free_thresh of 0\.25"):
        mdp = read_nav2(bold, **ENDS)
    assert (mdp.layout.blocked == drawn("..#.", "....", "....")).all(), "205 is 0.196.. occupied"


def test_optional_entries_of_the_yaml_file(write):
    short = write("image: map.pgm\nresolution: 5e-1\norigin: [-1, 2, 0]\n")
    assert read_nav2(short, **ENDS).digest == read_nav2(write(), **ENDS).digest


def test_a_place_on_the_edge_of_a_pixel_belongs_to_the_next_pixel(write):
    said = write("image: map.pgm\nresolution: 0.1\norigin: [0, 0, 0]\n", pgm(np.full((10, 10), 255)))
    assert 0.3 / 0.1 < 3
    assert position(read_nav2(said, start=(0.3, 0.0), goal=(0.55, 0.35)), "start") == (9, 3)


def test_coarse_cells_are_blocked_if_any_pixel_is(write):
    pixels = np.full((5, 8), 254, np.uint8)
    pixels[0, 3] = 0
    mdp = read_nav2(write(image=pgm(pixels)), start="0,0", goal="7,3", unit="cells", coarsen=2)
    assert (mdp.layout.blocked == drawn(".#..", "....", "####")).all(), "what the image does not fill is blocked"
    assert (position(mdp, "start"), position(mdp, "goal")) == ((0, 0), (1, 3))
    assert mdp.layout.metres_per_cell == 1.0
    assert mdp.layout.offsets is not None
    free = read_nav2(write(image=pgm(pixels)), start="2,1", goal="7,4", unit="cells", coarsen=2)
    assert (free.layout.blocked == drawn("....", "....", "###.")).all(), "the cells of start and goal stay free"
    assert (position(free, "start"), position(free, "goal")) == ((0, 1), (2, 3))
    with pytest.raises(
        mw.SourceError, match=r"column 3, row 0 of the image\) lies in a blocked cell; the nearest free "
    ):
        read_nav2(write(image=pgm(pixels)), start="3,0", goal="7,3", unit="cells", coarsen=2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"start": None}, r"does not contain the start; give start and goal, as in map.yaml\?start="),
        ({"goal": "x"}, "the goal must be two numbers x,y; found 'x'"),
        ({"start": (-1.1, 2.1)}, r"start \(-1.1 m, 2.1 m: column -1, row 2 of the image\) lies outside .* 4 columns"),
        ({"start": (0, 1e300)}, "start .* lies outside"),
        ({"start": (0, 1.7e308), "unit": "m"}, "start .* lies outside"),
        (
            {"goal": (0.2, 3.2)},
            r"goal \(0.2 m, 3.2 m: column 2, row 0 of the image\) lies in a blocked cell; the nearest free cell is "
            r"\(-0.25 m, 3.25 m: column 1, row 0 of the image\)",
        ),
        ({"start": (2, 1), "unit": "cells"}, r"start \(0.25 m, 2.75 m: column 2, row 1 of the image\) lies in a block"),
        ({"start": (0.5, 1), "unit": "cells"}, "the start must be a cell, two integers x,y; found 0.5,1"),
        ({"unit": "feet"}, "unit must be one of m, cells, found 'feet'"),
        ({"coarsen": 0}, "coarsen must be an integer of at least 1, found 0"),
        ({"coarsen": 10**9}, "cells of 1000000000 x 1000000000 pixels do not fit the image, which has 4 x 3"),
    ],
)
def test_impossible_places_of_nav2_maps_are_refused(write, change, message):
    with pytest.raises(ManywaysError, match=message):
        read_nav2(write(), **(ENDS | change))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (YAML, "{", "m is not a YAML file: while parsing"),
        (
            YAML,
            "[" * 1000 + "]" * 1000,
            "m is not the YAML file of a map: its lists and mappings are nested more than 16 deep",
        ),
        (YAML, "image: 2001-99-99", "m is not a YAML file: ValueError"),
        (YAML, "S.G", "m is not the YAML file of a map: expected the entries image, resolution and origin"),
        (YAML, "resolution: 1", "m is not the YAML file of a map"),
        ("map.pgm", "[1, 2]", "image must be the path of a PGM, PNG or BMP file, found a list of 2"),
        ("map.pgm", "", "image must be the path of a PGM, PNG or BMP file, found nothing"),
        ("resolution: 0.5\n", "", "resolution must be a finite number, found nothing"),
        ("resolution: 0.5", "resolution: fine", "resolution must be a finite number, found 'fine'"),
        ("resolution: 0.5", "resolution: .nan", "resolution must be a finite number, found nan"),
        ("resolution: 0.5", "resolution: true", "resolution must be a finite number, found True"),
        (
            "resolution: 0.5",
            "resolution: 0x" + "f" * 5000,
            "resolution must be a finite number, found a value of type int",
        ),
        ("resolution: 0.5", "resolution: -1", "resolution must be metres per pixel, above 0, found -1"),
        ("[-1.0, 2.0, 0.0]", "[-1.0, 2.0]", r"origin must be \[x, y, yaw\], found a list of 2"),
        ("[-1.0, 2.0, 0.0]", "home", r"origin must be \[x, y, yaw\], found 'home'"),
        ("[-1.0, 2.0, 0.0]", "[a, 2.0, 0]", r"origin\[0\] must be a finite number, found 'a'"),
        ("0.0]", "north]", r"origin\[2\] must be a finite number, found 'north'"),
        ("negate: 0", "negate: 2", "negate must be 0 or 1, found 2"),
        ("0.65", "0.1", "expected 0 <= free_thresh <= occupied_thresh <= 1, found 0.196 and 0.1"),
        ("trinary", "raw", "mode must be trinary or scale, found 'raw'"),
    ],
)
def test_damaged_yaml_is_refused(old, new, message):
    assert old in YAML
    with pytest.raises(mw.SourceError, match=message):
        parse_yaml(YAML.replace(old, new), "m")


def test_yaml_cannot_create_objects(tmp_path):
    with pytest.raises(mw.SourceError, match="could not determine a constructor"):
        parse_yaml(f"image: !!python/object/apply:os.mkdir ['{tmp_path}/made']", "m")
    assert not (tmp_path / "made").exists()


def test_without_pyyaml_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(mw.SettingError, match=re.escape("pip install 'manyways[maps]'")):
        parse_yaml(YAML, "m")


def png_of_size(width: int, height: int) -> bytes:
    """The beginning of a PNG file with this size in its header."""
    head = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + head + struct.pack(">I", zlib.crc32(head)) + b"\0\0\0\0IDAT" * 9
    )


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (pgm(PIXELS)[:-1], "a is a damaged PGM image: OSError: image file is truncated"),
        (pgm(PIXELS, most=65535)[:-1], "a is a damaged PGM image: OSError: image file is truncated"),
        (pgm(PIXELS, most=300)[:-1], "a is a damaged PGM image: ValueError: not enough image data"),
        (b"P5 4 3 255\n", "a is a damaged PGM image: OSError: image file is truncated"),
        (pgm(PIXELS) + b"x", "a: the PGM image is too long: its header says 12 pixels, more follow"),
        (pgm(PIXELS, "P2")[:-4], "a is a damaged PGM image: ValueError: not enough image data"),
        (b"P2 1 1 9\n", "a is a damaged PGM image: ValueError: not enough image data"),
        (pgm(PIXELS, "P2") + b"1", "a: the PGM image is too long: its header says 12 pixels, more follow"),
        (b"P2 2 1 9 1 -1", "Channel value is negative: -1"),
        (b"P2 2 1 9 1 x", "invalid literal for int"),
        (b"P2 2 1 9 1 1000000", "Channel value too large for this mode: 1000000"),
        (b"P2 2 1 9 1 10", "Channel value too large for this mode: 10"),
        (b"P5 4 3", "a is a damaged PGM image: ValueError: Reached EOF while reading header"),
        (b"P5 four 3 255 ", "a is a damaged PGM image: ValueError: invalid literal"),
        (b"P5 0 3 255 ", "a is not a PGM, PNG or BMP image, or its header is damaged"),
        (b"P5 2 2 65536 ", "maxval must be greater than 0 and less than 65536"),
        (b"P5 2 2 0 ", "maxval must be greater than 0 and less than 65536"),
        (b"P5 9000 9000 255 ", "the image has 9000 x 9000 pixels; it may have at most 64,000,000: scale it down"),
        (png_of_size(9000, 9000), "the image has 9000 x 9000 pixels; it may have at most 64,000,000"),
        (png_of_size(10000, 10000), "the image is too large; it may have at most 64,000,000 pixels"),
        (png_of_size(30000, 30000), "the image is too large; it may have at most 64,000,000 pixels"),
        (encoded(PIXELS, "L")[:-30], "a is a damaged PNG or BMP image"),
        (b"", "a is not a PGM, PNG or BMP image, or its header is damaged"),
        (b"GIF89a", "a is not a PGM, PNG or BMP image, or its header is damaged"),
    ],
)
def test_damaged_images_are_refused(image, message):
    with pytest.raises(mw.SourceError, match=message):
        read_image(image, "a")


def test_maps_that_would_exhaust_memory_are_refused(write):
    wide = np.full((2000, 2001), 255, np.uint8)
    message = "map has 4,002,000 free cells; it may have at most 4,000,000: "
    with pytest.raises(mw.SourceError, match=message + "merge pixels, as by coarsen=2"):
        read_nav2(write(image=pgm(wide)), **ENDS)


def test_files_that_cannot_be_read(tmp_path):
    ends: dict[str, Any] = {"start": "0,0", "goal": "1,1"}
    with pytest.raises(mw.SourceError, match=r"there is no file .*nothing"):
        read_nav2(tmp_path / "nothing", **ends)
    with pytest.raises(mw.SourceError, match="is a folder, expected a file"):
        read_nav2(tmp_path, **ends)
    with pytest.raises(mw.SourceError, match="cannot read"):
        read_nav2("a\0b", **ends)
    (tmp_path / "binary").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(mw.SourceError, match="is not a text file"):
        read_nav2(tmp_path / "binary", **ends)
    with (tmp_path / "large").open("wb") as file:
        os.truncate(file.fileno(), 2**29)
    with pytest.raises(mw.SourceError, match=r"has 536,870,912 bytes, more than the [0-9,]+ that are read"):
        read_nav2(tmp_path / "large", **ends)


def test_a_missing_image_and_a_device_as_image(write):
    with pytest.raises(mw.SourceError, match=r"there is no file .*gone\.pgm"):
        read_nav2(write(YAML.replace("map.pgm", "gone.pgm")), **ENDS)
    with pytest.raises(mw.SourceError, match="/dev/zero is a device or a pipe, expected a file"):
        read_nav2(write(YAML.replace("map.pgm", "/dev/zero")), **ENDS)


# ---- arbitrary input ---------------------------------------------------------------------------


PIECES = st.one_of(
    st.text(max_size=8), st.sampled_from(["map", "\n", "height 1", "-1", "1e999", "&a [*a]", "!!int", ": "])
)


@settings(max_examples=150, deadline=None)
@given(st.one_of(damaged(YAML, PIECES), st.text(max_size=80)))
def test_any_text_is_a_maps_yaml_or_refused(text):
    assert isinstance(read_or_refusal(parse_yaml, text, "m"), MapFile | str)


@settings(max_examples=150, deadline=None)
@given(
    st.one_of(
        damaged(pgm(PIXELS), st.binary(max_size=8)),
        damaged(pgm(PIXELS, "P2"), st.binary(max_size=8)),
        damaged(encoded(PIXELS, "RGB"), st.binary(max_size=8)),
        st.binary(max_size=80),
    )
)
def test_any_bytes_are_an_image_or_refused(content):
    assert isinstance(read_or_refusal(read_image, content, "m"), tuple | str)


# ---- planning ---------------------------------------------------------------------------------


def test_plans_on_a_robots_map_take_different_corridors(write, tmp_path):
    """Two rooms with three corridors between them; compared by corridor, three plans take one each."""
    pixels = np.full((20, 30), 254, np.uint8)
    pixels[[0, -1]] = pixels[:, [0, -1]] = 0
    pixels[1:19, 10:20] = 0
    lanes = {"upper": 4, "middle": 10, "lower": 15}
    for row in lanes.values():
        pixels[row - 1 : row + 2, 10:20] = 254
    row, column = np.indices(pixels.shape)
    inside = (column >= 10) & (column < 20)
    mdp = read_nav2(
        write(image=pgm(pixels)),
        start=(4, 10),
        goal=(25, 10),
        unit="cells",
        step_reward=-1.0,
        goal_reward=60.0,
        diagonal_steps=1.0,
        labels={lane: inside & (abs(row - at) <= 1) for lane, at in lanes.items()},
    )
    plans = mw.plan(mdp, k=3, behaviour=mw.Labels(tuple(lanes)))
    by_state = state_occupancy(mdp, plans.occupancies)
    time = np.stack([by_state @ mdp.labels[lane] for lane in lanes], axis=1)
    assert sorted(time.argmax(axis=1)) == [0, 1, 2]
    assert (time.max(axis=1) > 0.9 * time.sum(axis=1)).all()
    assert (plans.rewards > 0.5 * plans.optimal_reward).all()
    plans.draw(tmp_path / "plans.png")


@pytest.mark.parametrize(("maxval", "pixels"), [(100, bytes([0, 101, 7, 3])), (300, bytes([0, 1, 1, 45, 0, 0, 0, 0]))])
def test_a_raw_pgm_pixel_above_maxval_is_refused(maxval, pixels):
    """It would otherwise count as white, and a robot might be sent there."""
    with pytest.raises(mw.SourceError, match=rf"above its maxval {maxval}"):
        read_image(b"P5\n2 2\n%d\n" % maxval + pixels, "lab.pgm")
