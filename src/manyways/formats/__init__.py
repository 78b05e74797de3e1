"""Where models come from and go to: one module per format, registered once. `read` and `write_model` use the registry."""

from manyways.formats import (  # importing a format registers it
    arrays,
    drn,
    gym,
    hdf5,
    movingai,
    nav2,
    plan_files,
    prism_explicit,
    rddl,
    room_worlds,
    storm,
    tables,
    text_maps,
)
from manyways.formats.format import FORMATS, Format
from manyways.formats.reader import read
from manyways.formats.writer import check_model_path, write_model

__all__ = [
    "FORMATS",
    "Format",
    "arrays",
    "check_model_path",
    "drn",
    "gym",
    "hdf5",
    "movingai",
    "nav2",
    "plan_files",
    "prism_explicit",
    "rddl",
    "read",
    "room_worlds",
    "storm",
    "tables",
    "text_maps",
    "write_model",
]
