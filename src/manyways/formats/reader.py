"""`read`: one door for every source of a model.

A source is an `MDP`, the name of a generated world with its seed (`nine-rooms:7`, `four-rooms:0`, or
`rooms-100:0` for rooms on 100 x 100 cells), or a path to a text map or a world file. World settings may follow a question mark, as in
`nine-rooms:7?correct_transition=0.8&step_reward=-1`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from urllib.parse import parse_qsl

from manyways.errors import SourceError
from manyways.formats.maps import world_from_json, world_from_text
from manyways.mdp import MDP
from manyways.worlds import four_rooms, grid_world, nine_rooms, tiled_rooms

WORLDS: dict[str, Callable[..., MDP]] = {"four-rooms": four_rooms, "nine-rooms": nine_rooms}
SETTINGS = [
    name
    for name, parameter in inspect.signature(grid_world).parameters.items()
    if parameter.kind is parameter.KEYWORD_ONLY and isinstance(parameter.default, float)
]
LARGEST_MAP = 256 * 2**20


def read(source: MDP | str | PathLike[str]) -> MDP:
    """The model behind a source.

    Example:
        >>> read("nine-rooms:7")
        MDP('nine-rooms:7', 361 states, 1,725 choices, 6,502 transitions, ...)
    """
    if isinstance(source, MDP):
        return source
    if not isinstance(source, (str, PathLike)):
        raise SourceError(
            f"cannot read a model from {type(source).__name__}; expected an MDP, a path, or a name such as 'nine-rooms:7'"
        )
    text = str(source)
    if _exists(text):
        return _read_file(Path(text), {})
    place, _, query = text.partition("?")
    settings = _settings(query, text)
    world, _, seed = place.partition(":")
    if world in WORLDS:
        return WORLDS[world](_seed(seed, text), **settings)
    if tiled := re.fullmatch(r"rooms-(\d{1,5})", world):
        return tiled_rooms(int(tiled[1]), _seed(seed, text), **settings)
    if _exists(place):
        return _read_file(Path(place), settings)
    hint = get_close_matches(world, WORLDS, n=1)
    raise SourceError(
        f"there is no file {_short(place)!r} and no world of that name"
        + (
            f"; did you mean '{hint[0]}:{seed or 0}'?"
            if hint
            else f"; worlds are {', '.join(f'{name}:SEED' for name in (*WORLDS, 'rooms-SIZE'))}"
        )
    )


def _short(text: str) -> str:
    return text if len(text) <= 100 else text[:97] + "..."


def _exists(path: str) -> bool:
    try:
        return Path(path).exists()
    except (OSError, ValueError):  # too long for a file name, or with a NUL in it
        return False


def _read_file(path: Path, settings: dict[str, float]) -> MDP:
    if path.is_dir():
        raise SourceError(f"{path} is a folder, expected a map or a world file")
    try:
        size = path.stat().st_size
        if size > LARGEST_MAP:
            raise SourceError(f"{path} has {size:,} bytes; a map may have at most {LARGEST_MAP:,}")
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise SourceError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SourceError(f"{path} is not a text file; expected a text map or a JSON world file") from None
    reader = world_from_json if path.suffix == ".json" or text.lstrip().startswith("{") else world_from_text
    return reader(text, path.stem, **settings)


def _settings(query: str, source: str) -> dict[str, float]:
    settings = {}
    for key, value in parse_qsl(query, keep_blank_values=True):
        if key not in SETTINGS:
            raise SourceError(f"{source}: unknown setting {key!r}, expected one of {', '.join(SETTINGS)}")
        try:
            settings[key] = float(value)
        except ValueError:
            raise SourceError(f"{source}: {key} must be a number, found {value!r}") from None
    return settings


def _seed(text: str, source: str) -> int:
    try:
        seed = int(text or "0")
    except ValueError:
        seed = -1
    if seed < 0:
        raise SourceError(f"{source}: the seed after the colon must be a whole number from 0 on, found {text!r}")
    return seed
