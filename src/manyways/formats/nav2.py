"""Maps of robots: the YAML and image files of ROS and Nav2 map servers.

A pixel's occupancy is its darkness (its brightness with `negate`). Above `occupied_thresh` it is
occupied, below `free_thresh` free. In between it is unknown, and blocked here: no plan should lead
through what nobody has seen. One moves in eight directions, past no corner, and blocked cells are
no states. Places are metres in the map's frame: the origin is the lower left corner of the image,
whose first row is its top.
"""

from __future__ import annotations

import io
import math
import re
import warnings
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from manyways.errors import SettingError, SourceError, check_integer
from manyways.formats.format import FORMATS, Format, any_text, integer
from manyways.formats.movingai import (
    LARGEST_FILE,
    LARGEST_GRID,
    OPEN_GRID,
    PLACED,
    Place,
    check_count,
    check_free,
    check_inside,
    file_content,
    place,
)
from manyways.model.mdp import MDP
from manyways.types import Bools
from manyways.worlds.grid import grid_world

LARGEST_YAML = 2**16
UNITS = ("m", "cells")


@dataclass(frozen=True)
class MapFile:
    """What the YAML file says."""

    image: str
    resolution: float
    origin: tuple[float, float]
    negate: bool
    free: float


def read_nav2(
    path: str | PathLike[str],
    *,
    start: Place | None = None,
    goal: Place | None = None,
    unit: str = "m",
    coarsen: int = 1,
    **settings: Any,
) -> MDP:
    """The world of a robot's map.

    Args:
        path: to the YAML file; the image is sought beside it, unless its path is absolute.
        start: (x, y) or "x,y".
        goal: likewise.
        unit: "m" if places are metres in the map's frame; "cells" if they are column and row of a
            pixel, counted from 0 at the top left.
        coarsen: how many pixels a cell has in each direction. It is blocked if any of them is, and
            at the right and bottom edge if the image does not fill it.
        settings: of `grid_world`; 8 directions and walls that cannot be entered unless told otherwise.
    """
    path = Path(path)
    name = path.stem
    if unit not in UNITS:
        raise SettingError(f"{name}: unit must be one of {', '.join(UNITS)}, found {unit!r}")
    coarsen = check_integer("coarsen", coarsen, 1)
    try:
        text = file_content(path, LARGEST_YAML).decode("utf-8")
    except UnicodeDecodeError:
        raise SourceError(f"{path} is not a text file; expected the YAML file of a map") from None
    said = parse_yaml(text, name)
    image = path.parent / said.image
    bright, white = read_image(file_content(image, LARGEST_FILE), image.name)
    pixels = (bright if said.negate else white - bright) / white >= said.free
    if coarsen > min(pixels.shape):
        raise SettingError(
            f"{name}: cells of {coarsen} x {coarsen} pixels do not fit the image, which has "
            f"{pixels.shape[1]} x {pixels.shape[0]}; lower coarsen"
        )
    blocked = _merged(pixels, coarsen)
    check_count(blocked, name, f"merge pixels, as by coarsen={2 * coarsen}")
    ends = []
    for what, given in (("start", start), ("goal", goal)):
        x, y = place(given, what, name, f"{path.name}?start=1.5,2&goal=8,4.5 (metres)")
        cell, shown = _pixel(x, y, unit, said, pixels.shape[0], what, name)
        check_inside(pixels.shape, cell, what, shown, name)
        if coarsen > 1:
            cell = (cell[0] // coarsen, cell[1] // coarsen)
            shown += f", in a cell of {coarsen} x {coarsen} pixels"
        check_free(blocked, cell, what, shown, name)
        ends.append(cell)
    return grid_world(blocked, *ends, name=name, **(OPEN_GRID | settings))


def _pixel(
    x: float, y: float, unit: str, said: MapFile, rows: int, what: str, name: str
) -> tuple[tuple[int, int], str]:
    """The (row, column) of a place, and how to show it in both units."""
    if unit == "cells":
        if x != math.floor(x) or y != math.floor(y):
            raise SettingError(f"{name}: the {what} must be a cell, two whole numbers x,y; found {x:g},{y:g}")
        column, row = int(x), int(y)
        x = said.origin[0] + (column + 0.5) * said.resolution
        y = said.origin[1] + (rows - row - 0.5) * said.resolution
    else:
        # A billionth of a pixel, for 0.3 m are three pixels of 0.1 m though 0.3 / 0.1 < 3 in floats.
        across, up = ((at - zero) / said.resolution + 1e-9 for at, zero in zip((x, y), said.origin, strict=True))
        if not (math.isfinite(across) and math.isfinite(up)):
            raise SourceError(f"{name}: the {what} ({x:g} m, {y:g} m) lies outside the map")
        column, row = math.floor(across), rows - 1 - math.floor(up)
    return (row, column), f"{x:.6g} m, {y:.6g} m: column {column:.12g}, row {row:.12g} of the image"


def _merged(pixels: Bools, n: int) -> Bools:
    """(rows, columns) of which each is set if any of its n x n pixels is, or lies off the image."""
    if n == 1:
        return pixels
    rows, columns = (-(-length // n) for length in pixels.shape)
    whole = np.ones((rows * n, columns * n), bool)
    whole[: pixels.shape[0], : pixels.shape[1]] = pixels
    return np.asarray(whole.reshape(rows, n, columns, n).any(axis=(1, 3)))


# ---- the YAML file ------------------------------------------------------------------------------


def parse_yaml(text: str, name: str) -> MapFile:
    """What a map's YAML says, or an error that names the entry at fault."""
    try:
        import yaml
    except ImportError:
        raise SettingError("reading a robot's map needs PyYAML: pip install 'manyways[maps]'") from None
    try:
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, Loader=yaml.SafeLoader)):
            raise SourceError(
                f"{name} refers to parts of itself, which no map needs and which can make a little very much"
            )
        said = yaml.safe_load(text)
    except SourceError:
        raise
    except yaml.YAMLError as error:
        raise SourceError(f"{name} is not a YAML file: {' '.join(str(error).split())[:300]}") from None
    except Exception as error:  # PyYAML lets out what Python says of dates, numbers and nesting beyond its limits
        raise SourceError(f"{name} is not a YAML file: {type(error).__name__}: {str(error)[:200]}") from None
    if not isinstance(said, dict) or "image" not in said:
        raise SourceError(f"{name} is not the YAML file of a map: expected the entries image, resolution and origin")
    image = said["image"]
    if not isinstance(image, str) or not image:
        raise SourceError(f"{name}: image must be the path of a PGM or PNG file, found {_shown(image)}")
    mode = said.get("mode", "trinary")
    if mode not in ("trinary", "scale"):  # which agree on what is free
        raise SourceError(f"{name}: mode must be trinary or scale, found {_shown(mode)}")
    resolution = _number(said, "resolution", None, name)
    if not resolution > 0:
        raise SourceError(f"{name}: resolution must be metres a pixel, above 0, found {resolution:g}")
    occupied = _number(said, "occupied_thresh", 0.65, name)
    free = _number(said, "free_thresh", 0.196, name)
    if not 0 <= free <= occupied <= 1:
        raise SourceError(f"{name}: expected 0 <= free_thresh <= occupied_thresh <= 1, found {free:g} and {occupied:g}")
    negate = said.get("negate", 0)
    if not isinstance(negate, int) or negate not in (0, 1):
        raise SourceError(f"{name}: negate must be 0 or 1, found {_shown(negate)}")
    return MapFile(image, resolution, _origin(said.get("origin"), name), bool(negate), free)


def _origin(origin: Any, name: str) -> tuple[float, float]:
    if not isinstance(origin, list) or len(origin) != 3:
        raise SourceError(f"{name}: origin must be [x, y, yaw], found {_shown(origin)}")
    x, y, yaw = (_number(dict(enumerate(origin)), i, None, name, f"origin[{i}]") for i in range(3))
    if yaw != 0:
        raise SourceError(
            f"{name}: the origin's yaw is {yaw:g}; turned maps are not read: turn the image and set the yaw to 0"
        )
    return x, y


def _number(said: dict[Any, Any], key: Any, default: float | None, name: str, called: str = "") -> float:
    value = said.get(key, default)
    if isinstance(value, str) and re.fullmatch(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)[eE][-+]?[0-9]+", value):
        value = float(value)  # PyYAML takes 5e-2 for text, as YAML 1.1 does; map servers do not
    try:
        if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
            return float(value)
    except OverflowError:  # a whole number beyond all floats
        pass
    raise SourceError(f"{name}: {called or key} must be a finite number, found {_shown(value)}")


def _shown(value: Any) -> str:
    """A value for a message. Lists by length only: by aliases, a short file can say an endless one."""
    if value is None:
        return "nothing"
    if isinstance(value, (str, float)) or (isinstance(value, int) and abs(value) < 10**12):
        return f"{value!r:.60}"
    if isinstance(value, (list, dict)):
        return f"a {type(value).__name__} of {len(value)}"
    return f"a value of type {type(value).__name__}"


# ---- images -------------------------------------------------------------------------------------


def read_image(content: bytes, name: str) -> tuple[np.ndarray, int]:
    """(rows, columns) brightness of a PGM, PNG or BMP image, and the brightness of white."""
    return _read_pgm(content, name) if content[:2] in (b"P2", b"P5") else _read_by_pillow(content, name)


def _read_pgm(content: bytes, name: str) -> tuple[np.ndarray, int]:
    """PGM, plain (P2) and raw (P5): magic, width, height and maxval, with comments, then the pixels."""
    gap = rb"(?:\s|#[^\r\n]*[\r\n])+"
    header = re.match(rb"P[25]" + 3 * (gap + rb"([0-9]{1,9})") + rb"(?:#[^\r\n]*)?\s", content)
    if header is None:
        raise SourceError(
            f"{name}: the header of the PGM image is damaged; expected P2 or P5, width, height and maxval"
        )
    width, height, most = map(int, header.groups())
    _check_size(width, height, name)
    if not 0 < most < 65536:
        raise SourceError(f"{name}: the PGM image's maxval must lie in 1..65535, found {most}")
    count = width * height
    if content[:2] == b"P5":
        kind = np.dtype(np.uint8 if most < 256 else ">u2")
        end = header.end() + count * kind.itemsize
        pixels = np.frombuffer(content, kind, min(count, (len(content) - header.end()) // kind.itemsize), header.end())
        more = len(content[end:].strip()) > 0
    else:
        plain = re.sub(rb"#[^\r\n]*", b"", content[header.end() :]).strip()
        if not re.fullmatch(rb"[0-9\s]*", plain) or re.search(rb"[0-9]{6}", plain):
            raise SourceError(f"{name}: the PGM image has pixels that are no whole numbers from 0 to {most}")
        pixels = np.fromstring(plain.decode(), np.int32, sep=" ") if plain else np.zeros(0, np.int32)
        more = len(pixels) > count
    if len(pixels) < count or more:
        raise SourceError(
            f"{name}: the PGM image {'is too long' if more else 'is truncated'}: {width} x {height} are {count} pixels, "
            f"found {'more' if more else len(pixels)}"
        )
    if pixels.max() > most:
        raise SourceError(f"{name}: the PGM image has a pixel of {pixels.max()} above its maxval {most}")
    return pixels.reshape(height, width).astype(np.int32), most


def _read_by_pillow(content: bytes, name: str) -> tuple[np.ndarray, int]:
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(io.BytesIO(content), formats=("PNG", "BMP")) as image:
                _check_size(image.width, image.height, name)  # before a pixel is decoded
                if image.mode.startswith("I"):
                    return np.asarray(image).astype(np.int32), 65535
                if image.mode in ("1", "L"):
                    return np.asarray(image.convert("L")).astype(np.int32), 255
                # The mean of the colours; map servers do not look at transparency either.
                return np.asarray(image.convert("RGBA"))[..., :3].mean(axis=2), 255
    except SourceError:
        raise
    except (Image.DecompressionBombWarning, Image.DecompressionBombError):
        raise SourceError(f"{name}: the image is too large; it may have at most {LARGEST_GRID:,} pixels") from None
    except Exception as error:  # a damaged image makes Pillow's decoders raise nearly anything
        raise SourceError(
            f"{name} is not a PGM, PNG or BMP image, or damaged: {type(error).__name__}: {str(error)[:200]}"
        ) from None


def _check_size(width: int, height: int, name: str) -> None:
    if width < 1 or height < 1:
        raise SourceError(f"{name}: the image has {width} x {height} pixels; expected at least one")
    if width * height > LARGEST_GRID:
        raise SourceError(
            f"{name}: the image has {width} x {height} pixels; it may have at most {LARGEST_GRID:,}: scale it down"
        )


FORMATS.add(
    Format(
        "maps of ROS and Nav2",
        read_nav2,
        endings=(".yaml", ".yml"),
        settings={**PLACED, "unit": any_text, "coarsen": integer},
        example="lab.yaml?start=1.5,2&goal=8,4.5",
    )
)
