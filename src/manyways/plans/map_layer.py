"""The time that a plan spends in each cell, as a map of ROS and Nav2 that is loaded beside the robot's own map.

The image has a pixel for each cell of the model's map, so its resolution is that of the map times `coarsen`. White cells are
never visited, black ones most often. With `mode: scale`, map servers make it an occupancy grid from 0 to 99.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from manyways.errors import OutputError, SettingError
from manyways.files import atomic
from manyways.model.mdp import MDP
from manyways.types import Floats

ENDING = ".pgm"
WHITE = 255


def check_layer_path(path: Path) -> None:
    """Raise an `OutputError` unless `path` can be that of a layer; called before the work."""
    if path.suffix != ENDING:
        raise OutputError(f"cannot write {path}: a layer of a map ends in {ENDING}; its YAML file is written beside it")


def write_layer(mdp: MDP, time: Floats, path: Path) -> Path:
    """Write (S,) time by state as a PGM image, and the YAML file of the same name beside it; returns the path.

    Raises:
        SettingError: if the model's map has no place in the world.
    """
    check_layer_path(path)
    layout = mdp.layout
    if layout is None or layout.origin is None or layout.metres_per_cell is None:
        raise SettingError(
            f"{mdp.name} has no map with an origin in metres, beside which a layer could be loaded; maps of ROS and Nav2 "
            "have one"
        )
    picture = layout.image(time)
    darkness = np.rint(WHITE * picture / max(float(picture.max()), 1e-300)).astype(np.uint8)
    rows, columns = layout.shape
    x, y, yaw = layout.origin
    described = (
        f"# time that a plan spends in each cell; black is {picture.max():.6g} of all time\n"
        f"image: {json.dumps(path.name)}\nmode: scale\nresolution: {layout.metres_per_cell!r}\n"
        f"origin: [{x!r}, {y!r}, {yaw!r}]\nnegate: 0\noccupied_thresh: 1.0\nfree_thresh: 0.0\n"
    )
    with atomic(path) as image, atomic(path.with_suffix(".yaml")) as text:
        image.write(f"P5\n{columns} {rows}\n{WHITE}\n".encode() + (WHITE - darkness).tobytes())
        text.write(described.encode())
    return path
