"""The contract of formats, and their registry.

A format is one module with reader, writer, settings and help, which it registers as one `Format`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from manyways.errors import SettingError
from manyways.model.mdp import MDP

Parser = Callable[[str], Any]


def number(text: str) -> float:
    """A number."""
    return float(text)


def integer(text: str) -> int:
    """An integer."""
    return int(text)


def truth(text: str) -> bool:
    """True or false."""
    if text.lower() not in ("true", "false"):
        raise ValueError
    return text.lower() == "true"


def any_text(text: str) -> str:
    """Any text."""
    return text


def any_value(text: str) -> Any:
    """True, false, a number, or the text itself."""
    for parse in (truth, integer, number):
        try:
            return parse(text)
        except ValueError:
            pass
    return text


@dataclass(frozen=True)
class Format:
    """One way in which models are written.

    Attributes:
        name: what it is, in a few words: "DRN, the explicit text format of Storm".
        read: a function of the place and settings, which returns an `MDP`. For a file the place is its `Path`, otherwise the text before the settings.
        endings: of its files: (".drn",).
        names: a regular expression for places that are not files: "gym:.+".
        settings: what may follow the question mark of a source, with the parser of each value.
        other_settings: the parser of settings that are not listed; without one they are refused.
        write: a function of the model and the path, which writes through `manyways.files.atomic`.
        write_in_pieces: a function of the place, the path and settings, which writes the model of a source to an HDF5 file without ever
            having it whole in memory.
        takes: whether an object that is neither text nor path is a source of this format.
        episodes: whether `read` also takes `absorbing`: what happens at the end of an episode.
        costs: whether the rewards of such models are often costs, so that the command line mentions `--minimise`.
        example: a source, for the help.
    """

    name: str
    read: Callable[..., MDP]
    endings: tuple[str, ...] = ()
    names: str | None = None
    settings: Mapping[str, Parser] = field(default_factory=dict)
    other_settings: Parser | None = None
    write: Callable[[MDP, Path], None] | None = None
    write_in_pieces: Callable[..., None] | None = None
    takes: Callable[[Any], bool] | None = None
    episodes: bool = False
    costs: bool = False
    example: str = ""


class Formats:
    """The registered formats."""

    def __init__(self) -> None:
        self._formats: list[Format] = []

    def takes(self, kind: Any) -> bool:
        return isinstance(kind, Format)

    def add(self, kind: Any) -> Any:
        """Register a format; returns it. One registered later with the same name replaces an earlier one."""
        taken = {ending: other.name for other in self._formats if other.name != kind.name for ending in other.endings}
        for ending in kind.endings:
            if ending in taken:
                raise SettingError(f"files that end in {ending} belong to the format {taken[ending]!r} already")
        self._formats = [other for other in self._formats if other.name != kind.name] + [kind]
        return kind

    def __iter__(self) -> Iterator[Format]:
        return iter(self._formats)


FORMATS = Formats()
