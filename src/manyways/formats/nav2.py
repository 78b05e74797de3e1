"""Maps of robots: the YAML and image files of the map servers of ROS and Nav2.

The occupancy of a pixel is its darkness (with `negate`, its brightness). A pixel above `occupied_thresh` is occupied,
one below `free_thresh` is free. Pixels in between are unknown and count as blocked, because a plan must not lead through
unexplored space. Moves go in eight directions and do not cut corners, and blocked cells are not states. Places are
metres in the frame of the map: the origin is the lower left corner of the image, whose first row is its top, and the yaw
of the origin turns the image counterclockwise around that corner.
"""

from __future__ import annotations

import io
import math
import re
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from manyways.errors import ModelError, SettingError, SourceError, check_integer
from manyways.files import read_bytes, read_text
from manyways.formats.format import FORMATS, Format, any_text, integer
from manyways.formats.placed_maps import (
    LARGEST_MAP_FILE,
    MOST_CELLS,
    OPEN_GRID,
    PLACED,
    Place,
    check_count,
    check_free,
    check_inside,
    place,
    whole_cell,
)
from manyways.model.layout import ON_THE_EDGE, Grid, from_world, to_world
from manyways.model.mdp import MDP
from manyways.worlds.coarse import coarse_world
from manyways.worlds.grid import grid_world

LARGEST_YAML = 2**16
DEEPEST_YAML = 16
"""How deep lists and mappings may be nested in the YAML file; a map needs two levels."""
UNITS = ("m", "cells")
UNKNOWN = 205
GREY_PNM = (b"P2", b"P5")
"""How PGM files begin: plain (numbers as text) and raw (one or two bytes per pixel)."""


@dataclass(frozen=True)
class MapFile:
    """The content of the YAML file.

    Attributes:
        image: the path of the image.
        resolution: metres per pixel.
        origin: (x, y, yaw) of the lower left corner of the image, in metres and radians.
        negate: whether bright pixels are occupied instead of dark ones.
        free: the occupancy below which a pixel is free.
    """

    image: str
    resolution: float
    origin: tuple[float, float, float]
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
        path: the YAML file; a relative path of the image is relative to its folder.
        start: (x, y) or "x,y".
        goal: likewise.
        unit: "m" if places are metres in the frame of the map; "cells" if they are column and row of a pixel, counted
            from 0 at the top left.
        coarsen: the number of pixels per cell in each direction. A cell is blocked if any of its pixels is, unless the
            start, the goal, or a way that would be closed lies there: `manyways.worlds.coarse`.
        settings: of `grid_world`; the defaults are 8 directions and walls that cannot be entered.
    """
    path = Path(path)
    name = path.stem
    if unit not in UNITS:
        raise SettingError(f"{name}: unit must be one of {', '.join(UNITS)}, found {unit!r}")
    coarsen = check_integer("coarsen", coarsen, 1)
    described = parse_yaml(read_text(path, LARGEST_YAML, "expected the YAML file of a map"), name)
    image = path.parent / described.image
    brightness, white = read_image(read_bytes(image, LARGEST_MAP_FILE), image.name)
    blocked = (brightness if described.negate else white - brightness) / white >= described.free
    if white == 255 and ((brightness == UNKNOWN) & ~blocked).any():
        warnings.warn(
            f"{name}: pixels of brightness {UNKNOWN}, by which map servers mark what is unknown, are free by this map's "
            f"free_thresh of {described.free:g}; to block them, set free_thresh: 0.196",
            stacklevel=2,
        )
    if coarsen > min(blocked.shape):
        raise SettingError(
            f"{name}: cells of {coarsen} x {coarsen} pixels do not fit the image, which has "
            f"{blocked.shape[1]} x {blocked.shape[0]}; lower coarsen"
        )
    if coarsen == 1:
        check_count(blocked, name, "merge pixels, as by coarsen=2")
    frame = _Frame(described, blocked.shape[0])
    ends = []
    for what, given in (("start", start), ("goal", goal)):
        x, y = place(given, what, name, f"{path.name}?start=1.5,2&goal=8,4.5 (metres)")
        cell, shown = frame.pixel(x, y, unit, what, name)
        check_inside(blocked.shape, cell, what, shown, name)
        check_free(blocked, cell, what, shown, frame.shown, name)
        ends.append(cell)
    settings = OPEN_GRID | settings
    if coarsen == 1:
        world = grid_world(blocked, *ends, name=name, **settings)
    else:
        world = coarse_world(blocked, coarsen, *ends, name=name, **settings)
    return replace(world, layout=frame.placed(world, coarsen))


@dataclass(frozen=True)
class _Frame:
    """Places on an image with so many rows of pixels."""

    map: MapFile
    rows: int

    def pixel(self, x: float, y: float, unit: str, what: str, name: str) -> tuple[tuple[int, int], str]:
        """The (row, column) of a place, and the place in both units, for messages."""
        if unit == "cells":
            row, column = cell = whole_cell(x, y, what, name)
            return cell, self.shown((row, column))
        right, up = (along / self.map.resolution + ON_THE_EDGE for along in from_world(self.map.origin, x, y))
        if not (math.isfinite(right) and math.isfinite(up)):
            raise SourceError(f"{name}: the {what} ({x:g} m, {y:g} m) lies outside the map")
        row, column = self.rows - 1 - math.floor(up), math.floor(right)
        return (row, column), f"{x:.6g} m, {y:.6g} m: column {column:.12g}, row {row:.12g} of the image"

    def shown(self, cell: tuple[int, int]) -> str:
        """The centre of a pixel, in both units."""
        row, column = cell
        right, up = ((at + 0.5) * self.map.resolution for at in (column, self.rows - 1 - row))
        x, y = to_world(self.map.origin, right, up)
        return f"{x:.6g} m, {y:.6g} m: column {column:.12g}, row {row:.12g} of the image"

    def placed(self, world: MDP, coarsen: int) -> Grid:
        """The layout of a world of this map, with its place in the frame of the map.

        The last row of cells may reach below the image; then the corner of the grid lies below that of the image.
        """
        layout, resolution = world.layout, self.map.resolution
        if layout is None:
            raise ModelError(f"{world.name} has no layout")
        below = (layout.shape[0] * coarsen - self.rows) * resolution
        corner = to_world(self.map.origin, 0.0, -below)
        return replace(layout, metres_per_cell=coarsen * resolution, origin=(*corner, self.map.origin[2]))


# ---- the YAML file ------------------------------------------------------------------------------


def parse_yaml(text: str, name: str) -> MapFile:
    """The content of a map's YAML file; errors name the entry at fault."""
    entries = _load_yaml(text, name)
    if not isinstance(entries, dict) or "image" not in entries:
        raise SourceError(f"{name} is not the YAML file of a map: expected the entries image, resolution and origin")
    image = entries["image"]
    if not isinstance(image, str) or not image:
        raise SourceError(f"{name}: image must be the path of a PGM, PNG or BMP file, found {_shown(image)}")
    mode = entries.get("mode", "trinary")
    if mode not in ("trinary", "scale"):  # both have the same free pixels
        raise SourceError(f"{name}: mode must be trinary or scale, found {_shown(mode)}")
    resolution = _number(entries.get("resolution"), "resolution", name)
    if not resolution > 0:
        raise SourceError(f"{name}: resolution must be metres per pixel, above 0, found {resolution:g}")
    occupied = _number(entries.get("occupied_thresh", 0.65), "occupied_thresh", name)
    free = _number(entries.get("free_thresh", 0.196), "free_thresh", name)
    if not 0 <= free <= occupied <= 1:
        raise SourceError(f"{name}: expected 0 <= free_thresh <= occupied_thresh <= 1, found {free:g} and {occupied:g}")
    negate = entries.get("negate", 0)
    if not isinstance(negate, int) or negate not in (0, 1):
        raise SourceError(f"{name}: negate must be 0 or 1, found {_shown(negate)}")
    return MapFile(image, resolution, _origin(entries.get("origin"), name), bool(negate), free)


def _load_yaml(text: str, name: str) -> Any:
    try:
        import yaml
    except ImportError:
        raise SettingError("reading a robot's map needs PyYAML: pip install 'manyways[maps]'") from None
    try:
        _check_events(yaml.parse(text, Loader=yaml.SafeLoader), name)
        return yaml.safe_load(text)
    except SourceError:
        raise
    except yaml.YAMLError as error:
        raise SourceError(f"{name} is not a YAML file: {' '.join(str(error).split())[:300]}") from None
    except Exception as error:  # PyYAML passes on Python's own errors for invalid dates, long numbers and deep nesting
        raise SourceError(f"{name} is not a YAML file: {type(error).__name__}: {str(error)[:200]}") from None


def _check_events(events: Iterable[Any], name: str) -> None:
    """Refuse aliases, and deep nesting at its first brackets: the time that PyYAML takes is quadratic in the depth."""
    import yaml

    depth = 0
    for event in events:
        if isinstance(event, yaml.AliasEvent):
            raise SourceError(f"{name} has YAML aliases, which are refused because they can expand without limit")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST_YAML:
            raise SourceError(
                f"{name} is not the YAML file of a map: its lists and mappings are nested more than {DEEPEST_YAML} deep"
            )


def _origin(origin: Any, name: str) -> tuple[float, float, float]:
    if not isinstance(origin, list) or len(origin) != 3:
        raise SourceError(f"{name}: origin must be [x, y, yaw], found {_shown(origin)}")
    x, y, yaw = (_number(value, f"origin[{i}]", name) for i, value in enumerate(origin))
    return x, y, yaw


def _number(value: Any, entry: str, name: str) -> float:
    if isinstance(value, str) and re.fullmatch(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)[eE][-+]?[0-9]+", value):
        value = float(value)  # PyYAML reads 5e-2 as text, as YAML 1.1 does; map servers read a number
    try:
        if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
            return float(value)
    except OverflowError:  # an integer too large for a float
        pass
    raise SourceError(f"{name}: {entry} must be a finite number, found {_shown(value)}")


def _shown(value: Any) -> str:
    """A value for a message; of lists and mappings only the length, because they may be long."""
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
    from PIL import Image, UnidentifiedImageError

    is_pgm = content[:2] in GREY_PNM
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(io.BytesIO(content), formats=("PPM",) if is_pgm else ("PNG", "BMP")) as image:
                _check_size(image.width, image.height, name)  # before any pixel is decoded
                return _pgm_brightness(image, content, name) if is_pgm else _brightness(image)
    except SourceError:
        raise
    except (Image.DecompressionBombWarning, Image.DecompressionBombError):
        raise SourceError(f"{name}: the image is too large; it may have at most {MOST_CELLS:,} pixels") from None
    except UnidentifiedImageError:
        raise SourceError(f"{name} is not a PGM, PNG or BMP image, or its header is damaged") from None
    except Exception as error:  # for damaged images, Pillow's decoders raise many kinds of errors
        raise SourceError(
            f"{name} is a damaged {'PGM' if is_pgm else 'PNG or BMP'} image: {type(error).__name__}: {str(error)[:200]}"
        ) from None


def _brightness(image: Any) -> tuple[np.ndarray, int]:
    if image.mode.startswith("I"):
        return np.asarray(image).astype(np.int32), 65535
    if image.mode in ("1", "L"):
        return np.asarray(image.convert("L")).astype(np.int32), 255
    # The mean of the colours; like the map servers, without regard to transparency.
    return np.asarray(image.convert("RGBA"))[..., :3].mean(axis=2), 255


def _pgm_brightness(image: Any, content: bytes, name: str) -> tuple[np.ndarray, int]:
    """As `_brightness`, in the units of the file.

    Pillow stretches the values 0..maxval to 0..255 or 0..65535 and rounds. The step of that scale is at least one, so
    rounding back gives exactly the values of the file, which are then compared with the thresholds.
    """
    full = 255 if image.mode == "L" else 65535
    (tile,) = image.tile
    maxval = tile.args[-1] if isinstance(tile.args, tuple) else full
    _check_pgm_length(content, tile.offset, image.width * image.height, 1 if full == 255 else 2, name)
    stretched = np.asarray(image).astype(np.int32)
    if content.startswith(b"P5"):
        raw = np.frombuffer(content, np.uint8 if full == 255 else ">u2", stretched.size, tile.offset)
        if raw.max() > maxval:  # Pillow would make it white, and so perhaps free
            raise SourceError(f"{name}: the PGM image has a pixel of {raw.max()} above its maxval {maxval}")
    return (stretched if maxval == full else np.rint(stretched * (maxval / full))), maxval


def _check_pgm_length(content: bytes, offset: int, count: int, pixel_bytes: int, name: str) -> None:
    """Refuse more pixels than the header says, which Pillow ignores: the width is probably wrong."""
    if content.startswith(b"P5"):
        too_long = len(content[offset + count * pixel_bytes :].strip()) > 0
    else:
        plain = np.frombuffer(re.sub(rb"#[^\r\n]*", b"", content[offset:]), np.uint8) > ord(" ")
        too_long = int(plain[:1].sum()) + np.count_nonzero(plain[1:] & ~plain[:-1]) > count
    if too_long:
        raise SourceError(f"{name}: the PGM image is too long: its header says {count} pixels, more follow")


def _check_size(width: int, height: int, name: str) -> None:
    if width * height > MOST_CELLS:
        raise SourceError(
            f"{name}: the image has {width} x {height} pixels; it may have at most {MOST_CELLS:,}: scale it down"
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
