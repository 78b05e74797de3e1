"""`read`: the model behind any source.

A source is a model, an object that a format takes (a Gymnasium environment), a file, or a name such as `nine-rooms:7`.
Settings follow a question mark: `nine-rooms:7?correct_transition=0.8&step_reward=-1`,
`robot.prism?const=N=3&reward=steps`, `maze.map?start=1,2&goal=30,40`. docs/formats.md lists all formats with their
settings. Some settings change a model of any format after it was read, in this order:

- `restart=LABEL` restarts episodes at the states with that label (files only); what is a cost is not paid there;
- `without=LABEL` (or the name of a state) and `without_action=ACTION`, which may be repeated, leave plans that never enter
  these states and never take these actions (`MDP.without`);
- `minimise=true` minimises the reward, which is a cost (`MDP.minimising`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

import numpy as np

from manyways.errors import SourceError
from manyways.files import open_regular
from manyways.formats.format import FORMATS, Format, Parser, any_text, truth
from manyways.formats.placed_maps import LARGEST_MAP_FILE
from manyways.formats.text_maps import CHARACTERS, TEXT_MAPS
from manyways.model.costs import looks_like_a_cost
from manyways.model.mdp import MDP

RESTART, WITHOUT, WITHOUT_ACTION, MINIMISE = "restart", "without", "without_action", "minimise"
CHANGES: dict[str, Parser] = {RESTART: any_text, WITHOUT: any_text, WITHOUT_ACTION: any_text, MINIMISE: truth}
"""The settings that change a model after it was read."""
REPEATED = (WITHOUT, WITHOUT_ACTION)


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
    """The format, the place and the parsed settings of a source given as text, without settings that change the model."""
    return _resolved(source)[:3]


def changes_nothing(source: str) -> bool:
    """Whether a source given as text has no settings that change the model after it was read."""
    return not _resolved(source)[3]


def with_settings(source: str, settings: Mapping[str, Any]) -> str:
    """The source with more settings, such as {"restart": "goal", "without": ["wall", "mud"], "minimise": True}.

    Settings that are None or empty lists are left out.
    """
    given = {
        name: str(value).lower() if isinstance(value, bool) else value
        for name, value in settings.items()
        if value is not None and value != []
    }
    return source if not given else source + ("&" if "?" in source else "?") + urlencode(given, doseq=True)


def may_be_a_cost(mdp: MDP) -> bool:
    """Whether a model was read from a format whose rewards are often costs, its reward looks like one, and its source does
    not say whether to minimise it."""
    if mdp.source is None:
        return False
    kind, *_, changes = _resolved(mdp.source)
    return kind.costs and MINIMISE not in changes and looks_like_a_cost(mdp)


def _resolved(source: str) -> tuple[Format, str | Path, dict[str, Any], dict[str, Any]]:
    """The format, the place, the settings of the format, and those that change the model."""
    place, _, query = (source, "", "") if _exists(source) else source.partition("?")
    kind = _format_of(place)
    is_file = kind.names is None
    known = CHANGES if is_file else {name: parse for name, parse in CHANGES.items() if name != RESTART}
    settings = _settings(query, kind, source, known)
    changes = {name: settings.pop(name) for name in known if name in settings}
    return kind, Path(place) if is_file else place, settings, changes


def _read_text(source: str, absorbing: bool) -> MDP:
    kind, place, settings, changes = _resolved(source)
    if kind.episodes:
        settings["absorbing"] = absorbing
    mdp = kind.read(place, **settings)
    if changes:
        # A format that knows a more complete source than the given one has set it.
        complete = source if mdp.source is None else with_settings(mdp.source, changes)
        return _changed(mdp, changes, source).read_from(complete)
    return mdp if mdp.source is not None else mdp.read_from(source)


def _changed(mdp: MDP, changes: Mapping[str, Any], source: str) -> MDP:
    """The model after the changes. Restarts come before bans: what comes after the end of an episode does not matter."""
    costs = changes.get(MINIMISE, mdp.costs)
    if RESTART in changes:
        label = changes[RESTART]
        if label not in mdp.labels:
            known = ", ".join(mdp.labels) or "none"
            raise SourceError(f"{source}: there is no label {label!r} to restart at; the model has {known}")
        ended = mdp.labels[label]
        if costs:  # of the way there, as in Storm's R=? [F label]
            mdp = mdp.with_reward(np.where(ended[mdp.choice_state], 0.0, mdp.reward))
        mdp = mdp.restarting_at(ended, label)
    if WITHOUT in changes or WITHOUT_ACTION in changes:
        labels, states = _labels_and_states(mdp, changes.get(WITHOUT, []))
        mdp = mdp.without(states=states or None, labels=labels or None, actions=changes.get(WITHOUT_ACTION))
    return mdp.minimising() if costs != mdp.costs else mdp


def _labels_and_states(mdp: MDP, given: Any) -> tuple[list[str], list[str]]:
    """What is given as labels, of which some may be names of states that are no labels."""
    names = [given] if isinstance(given, str) else list(given)
    rest = [name for name in names if name not in mdp.labels and name not in mdp.ends]
    known = {mdp.state_name(s) for s in range(mdp.n_states)} if rest else set()
    return [name for name in names if name not in known], [name for name in rest if name in known]


def _format_of(place: str) -> Format:
    """The format of a file, by its ending, or of a name."""
    if _exists(place):
        path = Path(place)
        if path.suffix in (".pkl", ".pickle"):
            raise SourceError(f"{path} is a pickle, which could run any code when read; save the model as .npz instead")
        found = next((kind for kind in FORMATS if path.suffix in kind.endings), None)
        if found is not None:
            return found
        if path.is_file() and path.suffix and not _may_be_a_map(path):
            raise SourceError(
                f"{path}: files that end in {path.suffix} are not known, and it is not a text map of # . S and G. Models and "
                f"maps end in {_endings()}. Rename the file if it is one of these; write a table of transitions as .csv; or "
                "build the model in Python with MDP.from_transitions"
            )
        return TEXT_MAPS
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


def _may_be_a_map(path: Path) -> bool:
    """Whether the first line of a file consists of the characters of a text map."""
    with open_regular(path, LARGEST_MAP_FILE) as file:
        return set(file.readline(LARGEST_MAP_FILE).decode("latin-1").strip()) <= set(CHARACTERS)


def _endings() -> str:
    return " ".join(ending for kind in FORMATS for ending in kind.endings)


def _exists(path: str) -> bool:
    try:
        return Path(path).exists()
    except (OSError, ValueError):  # too long for a file name, or with a NUL in it
        return False


def _settings(query: str, kind: Format, source: str, more: Mapping[str, Parser]) -> dict[str, Any]:
    """The settings after the question mark, each parsed as the format or `more` says; bans are lists."""
    parsers = {**kind.settings, **more}
    settings: dict[str, Any] = {}
    for key, value in parse_qsl(query, keep_blank_values=True):
        parse = parsers.get(key, kind.other_settings)
        if parse is None:
            raise SourceError(f"{source}: unknown setting {key!r}, expected one of {', '.join(parsers)}")
        try:
            parsed = parse(value)
        except ValueError:
            expected = (parse.__doc__ or "").strip().rstrip(".").lower()
            raise SourceError(f"{source}: {key} must be {expected}, found {value!r}") from None
        settings[key] = [*settings.get(key, []), parsed] if key in REPEATED else parsed
    return settings
