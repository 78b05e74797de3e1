"""`read`: the model behind any source.

A source is a model, an object that a format takes (a Gymnasium environment), a file, or a name such as `nine-rooms:7`.
Settings follow a question mark: `nine-rooms:7?correct_transition=0.8&step_reward=-1`,
`robot.prism?const=N=3&reward=steps`, `maze.map?start=1,2&goal=30,40`. For every file, `restart=LABEL` restarts episodes
at the states with that label. docs/formats.md lists all formats with their settings.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from manyways.errors import SourceError
from manyways.formats.format import FORMATS, Format, any_text
from manyways.formats.text_maps import TEXT_MAPS
from manyways.model.mdp import MDP

RESTART = "restart"


def read(source: Any, *, absorbing: bool = False) -> MDP:
    """The model behind a source.

    Args:
        source: see the head of this module.
        absorbing: whether the end of an episode is final, as for a discounted reward, instead of the beginning of the
            next episode. Only for sources with episodes whose settings do not determine it.

    Example:
        >>> read("nine-rooms:7")
        MDP('nine-rooms:7', 361 states, 1,725 choices, 6,502 transitions, ...)
    """
    if isinstance(source, MDP):
        return source
    if isinstance(source, (str, PathLike)):
        return _read_text(str(source), absorbing)
    for kind in FORMATS:
        if kind.takes is not None and kind.takes(source):
            return kind.read(source, **({"absorbing": absorbing} if kind.episodes else {}))
    raise SourceError(
        f"cannot read a model from {type(source).__name__}; expected an MDP, a Gymnasium environment, a path, or a "
        "name such as 'nine-rooms:7'"
    )


def resolve(source: str) -> tuple[Format, str | Path, dict[str, Any]]:
    """The format, the place and the parsed settings of a source given as text."""
    place, _, query = (source, "", "") if _exists(source) else source.partition("?")
    kind = _format_of(place)
    is_file = kind.names is None
    return kind, Path(place) if is_file else place, _settings(query, kind, source, restart=is_file)


def _read_text(source: str, absorbing: bool) -> MDP:
    kind, place, settings = resolve(source)
    label = settings.pop(RESTART, None)
    if kind.episodes:
        settings["absorbing"] = absorbing
    mdp = kind.read(place, **settings)
    if label is not None:
        if label not in mdp.labels:
            known = ", ".join(mdp.labels) or "none"
            raise SourceError(f"{source}: there is no label {label!r} to restart at; the model has {known}")
        mdp = mdp.restarting_at(mdp.labels[label])
    return mdp if mdp.source is not None else mdp.read_from(source)


def _format_of(place: str) -> Format:
    """The format of a file, by its ending, or of a name."""
    if _exists(place):
        path = Path(place)
        if path.suffix in (".pkl", ".pickle"):
            raise SourceError(f"{path} is a pickle, which could run any code when read; save the model as .npz instead")
        return next((kind for kind in FORMATS if path.suffix in kind.endings), TEXT_MAPS)
    for kind in FORMATS:
        if kind.names is not None and re.fullmatch(kind.names, place, re.DOTALL):
            return kind
    examples = {kind.example.partition(":")[0]: kind.example for kind in FORMATS if kind.names is not None}
    similar = get_close_matches(place.partition(":")[0].lower(), examples, n=1)
    shown = place if len(place) <= 100 else place[:97] + "..."
    hint = (
        f"did you mean something like {examples[similar[0]]!r}?"
        if similar
        else f"names are {', '.join(examples.values())}"
    )
    raise SourceError(f"there is no file {shown!r} and no world of that name; {hint}")


def _exists(path: str) -> bool:
    try:
        return Path(path).exists()
    except (OSError, ValueError):  # too long for a file name, or with a NUL in it
        return False


def _settings(query: str, kind: Format, source: str, *, restart: bool) -> dict[str, Any]:
    """The settings after the question mark, each parsed as the format says."""
    parsers = {**kind.settings, **({RESTART: any_text} if restart else {})}
    settings = {}
    for key, value in parse_qsl(query, keep_blank_values=True):
        parse = parsers.get(key, kind.other_settings)
        if parse is None:
            raise SourceError(f"{source}: unknown setting {key!r}, expected one of {', '.join(parsers) or 'none'}")
        try:
            settings[key] = parse(value)
        except ValueError:
            expected = (parse.__doc__ or "").strip().rstrip(".").lower()
            raise SourceError(f"{source}: {key} must be {expected}, found {value!r}") from None
    return settings
