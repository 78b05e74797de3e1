"""`read`: one door for every source of a model.

| source | what |
|---|---|
| an `MDP`, a Gymnasium environment | itself; its table of dynamics |
| `nine-rooms:7`, `four-rooms:0`, `rooms-100:0` | a generated world with its seed |
| `gym:FrozenLake-v1` | a Gymnasium environment by its id |
| `.txt`, `.json` | a text map, a world file |
| `.map`, `.yaml` | a MovingAI map; a map of ROS or nav2 |
| `.npz` | arrays, in one of the layouts of `formats.tables` |
| `.tra`, `.drn` | explicit files of PRISM; of Storm |
| `.prism`, `.nm`, `.jani` | models for PRISM and Storm, through stormpy |
| `.rddl` | a domain, with `instance=FILE`, through pyRDDLGym |

Settings follow a question mark: `nine-rooms:7?correct_transition=0.8&step_reward=-1`, `robot.prism?const=N=3&reward=steps`,
`maze.map?start=1,2&goal=30,40`. For every file, `restart=LABEL` has episodes that end where that label is begin again.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from manyways.errors import SourceError
from manyways.formats.drn import read_drn
from manyways.formats.gym import PREFIX, RULES, is_environment, model_of, read_gym
from manyways.formats.maps import world_from_json, world_from_text
from manyways.formats.movingai import read_movingai
from manyways.formats.nav2 import read_nav2
from manyways.formats.prism_explicit import read_prism_explicit
from manyways.formats.rddl import read_rddl
from manyways.formats.storm import read_storm
from manyways.formats.tables import read_npz
from manyways.mdp import MDP
from manyways.worlds import four_rooms, grid_world, nine_rooms, tiled_rooms

WORLDS: dict[str, Callable[..., MDP]] = {"four-rooms": four_rooms, "nine-rooms": nine_rooms}
LARGEST_MAP = 256 * 2**20
RESTART = "restart"


def _truth(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError
    return text.lower() == "true"


def _whole(text: str) -> int:
    return int(text)


KINDS: dict[Callable[[str], Any], str] = {float: "a number", _whole: "a whole number", _truth: "true or false"}
NUMBERS: dict[str, Callable[[str], Any]] = {
    name: float
    for name, parameter in inspect.signature(grid_world).parameters.items()
    if parameter.kind is parameter.KEYWORD_ONLY and isinstance(parameter.default, float)
}
GRID = NUMBERS | {"directions": _whole, "enterable_walls": _truth}
PLACED = GRID | {"start": str, "goal": str}


@dataclass(frozen=True)
class _Format:
    """How files with some ending are read: by what, with which settings."""

    read: Callable[..., MDP]
    settings: dict[str, Callable[[str], Any]]


def _read_map(path: Path, **settings: Any) -> MDP:
    try:
        size = path.stat().st_size
        if size > LARGEST_MAP:
            raise SourceError(f"{path} has {size:,} bytes; a map may have at most {LARGEST_MAP:,}")
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise SourceError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        hint = "it holds plans, whose commands are show, export and serve" if path.suffix == ".mw" else "it is no text"
        raise SourceError(f"{path} is not a model: {hint}; expected a text map or a JSON world file") from None
    reader = world_from_json if path.suffix == ".json" or text.lstrip().startswith("{") else world_from_text
    return reader(text, path.stem, **settings)


def _read_storm(path: Path, const: str = "", reward: str | None = None) -> MDP:
    return read_storm(path, const, reward)


def _read_rddl(path: Path, instance: str | None = None, most_states: int = 100_000) -> MDP:
    if instance is None:
        raise SourceError(f"{path} is a domain; name its instance, as in {path}?instance=instance.rddl")
    beside = path.parent / instance
    return read_rddl(path, beside if beside.exists() else Path(instance), most_states)


_NAV2 = _Format(read_nav2, PLACED | {"unit": str, "coarsen": _whole})
_STORM = _Format(_read_storm, {"const": str, "reward": str})
FORMATS: dict[str, _Format] = {
    ".npz": _Format(read_npz, {}),
    ".drn": _Format(read_drn, {"reward": str}),
    ".tra": _Format(read_prism_explicit, {"reward": str}),
    ".prism": _STORM,
    ".nm": _STORM,
    ".pm": _STORM,
    ".jani": _STORM,
    ".rddl": _Format(_read_rddl, {"instance": str, "most_states": _whole}),
    ".map": _Format(read_movingai, PLACED),
    ".yaml": _NAV2,
    ".yml": _NAV2,
}
MAPS = _Format(_read_map, GRID)
"""Everything else: text maps and world files."""


def read(source: Any, *, absorbing: bool = False) -> MDP:
    """The model behind a source.

    Args:
        source: see the head of this module.
        absorbing: whether the end of an episode is the end of everything, as suits a discounted reward, or, by
            default, the beginning of the next; for sources with episodes that do not say so themselves.

    Example:
        >>> read("nine-rooms:7")
        MDP('nine-rooms:7', 361 states, 1,725 choices, 6,502 transitions, ...)
    """
    if isinstance(source, MDP):
        return source
    if is_environment(source):
        return model_of(source, RULES[absorbing]).mdp
    if not isinstance(source, (str, PathLike)):
        raise SourceError(
            f"cannot read a model from {type(source).__name__}; expected an MDP, a Gymnasium environment, a path, or a "
            "name such as 'nine-rooms:7'"
        )
    text = str(source)
    return _read_named(text, absorbing).read_from(text)


def _read_named(text: str, absorbing: bool) -> MDP:
    if text.startswith(PREFIX):
        return read_gym(text, absorbing)
    if _exists(text):
        return _read_file(Path(text), "", text)
    place, _, query = text.partition("?")
    world, _, seed = place.partition(":")
    tiled = re.fullmatch(r"rooms-(\d{1,5})", world)
    if world in WORLDS or tiled:
        make = partial(tiled_rooms, int(tiled[1])) if tiled else WORLDS[world]
        return make(_seed(seed, text), **_settings(query, NUMBERS, text))
    if _exists(place):
        return _read_file(Path(place), query, text)
    hint = get_close_matches(world, WORLDS, n=1)
    raise SourceError(
        f"there is no file {_short(place)!r} and no world of that name"
        + (
            f"; did you mean '{hint[0]}:{seed or 0}'?"
            if hint
            else f"; worlds are {', '.join(f'{name}:SEED' for name in (*WORLDS, 'rooms-SIZE'))}"
        )
    )


def _read_file(path: Path, query: str, source: str) -> MDP:
    if path.is_dir():
        raise SourceError(f"{path} is a folder, expected a model file")
    if not path.is_file():
        raise SourceError(f"{path} is a device or a pipe, expected a model file")
    if path.suffix in (".pkl", ".pickle"):
        raise SourceError(f"{path} is a pickle, which could run anything on reading; write the model as .npz instead")
    kind = FORMATS.get(path.suffix, MAPS)
    settings = _settings(query, kind.settings | {RESTART: str}, source)
    label = settings.pop(RESTART, None)
    mdp = kind.read(path, **settings)
    if label is None:
        return mdp
    if label not in mdp.labels:
        known = ", ".join(mdp.labels) or "none"
        raise SourceError(f"{source}: there is no label {label!r} to restart at; the model has {known}")
    return mdp.restarting_at(mdp.labels[label])


def _short(text: str) -> str:
    return text if len(text) <= 100 else text[:97] + "..."


def _exists(path: str) -> bool:
    try:
        return Path(path).exists()
    except (OSError, ValueError):  # too long for a file name, or with a NUL in it
        return False


def _settings(query: str, kinds: dict[str, Callable[[str], Any]], source: str) -> dict[str, Any]:
    settings = {}
    for key, value in parse_qsl(query, keep_blank_values=True):
        if key not in kinds:
            raise SourceError(f"{source}: unknown setting {key!r}, expected one of {', '.join(kinds)}")
        try:
            settings[key] = kinds[key](value)
        except ValueError:
            raise SourceError(f"{source}: {key} must be {KINDS[kinds[key]]}, found {value!r}") from None
    return settings


def _seed(text: str, source: str) -> int:
    try:
        seed = int(text or "0")
    except ValueError:
        seed = -1
    if seed < 0:
        raise SourceError(f"{source}: the seed after the colon must be a whole number from 0 on, found {text!r}")
    return seed
