"""Registries: the classes that plan files, the command line and the page know by name.

Methods, objectives, behaviours and criteria are frozen dataclasses of settings. Each axis has one `Registry`. A class
that is registered can be named in a plan file (by its class name) and on the command line (`VertexAscent` is
`vertex-ascent`). Where the classes of an axis share an ending, their words leave it out (`LeastDivergence` is `least`).
Nothing else in the package lists the classes of an axis.

Packages add their own classes with `@manyways.register`. If such a package names its module as an entry point in the
group `manyways`, it is imported when a file or a command names a class that is not known yet.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from importlib.metadata import entry_points
from inspect import isabstract
from math import isfinite
from typing import Any, Generic, TypeVar

import numpy as np

from manyways.errors import ManywaysError, SettingError

Kind = TypeVar("Kind")
Class = TypeVar("Class", bound=type)
ENTRY_POINTS = "manyways"
_REGISTRIES: dict[str, Registry[Any]] = {}
"""All of them by noun: a setting may be an object of another axis."""


class UnknownKind(SettingError):
    """A class is named that is not registered."""


class Registry(Generic[Kind]):
    """The registered classes of one axis.

    Attributes:
        noun: what an object of the axis is called in messages: "method".
        base: the class that all of them derive from.
        example: how to make one, for messages: "VertexAscent()".
        ending: of class names, left out of their words on the command line: "Divergence".
    """

    def __init__(self, noun: str, base: type[Kind], example: str, ending: str = "") -> None:
        self.noun, self.base, self.example, self.ending = noun, base, example, ending
        self._classes: dict[str, type[Kind]] = {}
        _REGISTRIES[noun] = self

    def add(self, kind: Class) -> Class:
        """Register a class; returns it, so that this can be used as a decorator."""
        if not (isinstance(kind, type) and issubclass(kind, self.base) and is_dataclass(kind)) or isabstract(kind):
            raise SettingError(
                f"a {self.noun} must be a dataclass derived from {self.base.__name__} that defines all of its abstract "
                f"methods, found {kind!r}"
            )
        known = self._classes.get(kind.__name__)
        if known is not None and (known.__module__, known.__qualname__) != (kind.__module__, kind.__qualname__):
            raise SettingError(
                f"the {self.noun} {kind.__name__} is registered already, from {known.__module__}; rename the class"
            )
        self._classes[kind.__name__] = kind
        return kind  # pyright: ignore[reportReturnType] (narrowed above)

    def words(self) -> list[str]:
        """The names of all registered classes as the command line writes them."""
        return [self.word_for(name) for name in self._classes]

    def word_for(self, class_name: str) -> str:
        """`VertexAscent` -> `vertex-ascent`; with the ending Divergence, `LeastDivergence` -> `least`."""
        return word_for(class_name.removesuffix(self.ending) or class_name)

    def named(self, word: str) -> type[Kind]:
        """The class with a command-line name."""
        return self._find(word, self.word_for)

    def check(self, value: Any) -> Kind:
        """Return `value`, or raise a `SettingError` if it is not an object of this axis."""
        if not isinstance(value, self.base):
            raise SettingError(f"the {self.noun} must be an object such as {self.example}, found {value!r:.200}")
        return value

    def to_plain(self, value: Kind, arrays: dict[str, np.ndarray], place: str | None = None) -> dict[str, Any]:
        """An object as JSON; arrays among its fields are put into `arrays` under a name that begins with `place`, by default
        the noun.

        Raises:
            SettingError: if its class is not registered or a field cannot be saved, since the file could not be read.
        """
        kind = type(value)
        if self._classes.get(kind.__name__) is not kind:
            raise SettingError(
                f"{value!r:.200} cannot be saved, because its class is not registered: put @manyways.register above "
                f"the class {kind.__name__}, and import its module before loading the file"
            )
        plain: dict[str, Any] = {"type": kind.__name__}
        for field in fields(value):  # pyright: ignore[reportArgumentType] (`add` takes dataclasses only)
            where = f"{place or self.noun}/{field.name}"
            plain[field.name] = _to_plain(getattr(value, field.name), where, arrays)
        return plain

    def from_plain(self, plain: Any, arrays: Mapping[str, np.ndarray]) -> Kind:
        """The object that `to_plain` described."""
        if not isinstance(plain, Mapping) or not isinstance(plain.get("type"), str):
            raise SettingError(f"expected the description of a {self.noun}, found {plain!r:.60}")
        settings = {name: _from_plain(item, arrays) for name, item in plain.items() if name != "type"}
        kind = self._find(plain["type"], str)
        try:
            return kind(**settings)
        except ManywaysError:
            raise
        except (TypeError, ValueError, OverflowError) as error:
            raise SettingError(f"the {self.noun} {plain['type'][:60]} cannot be made: {str(error)[:200]}") from None

    def _find(self, name: str, written: Callable[[str], str]) -> type[Kind]:
        """The class whose name, written in some way, is the given one; plug-ins are imported if none is known yet."""
        for _ in range(2):
            classes = {written(known): kind for known, kind in self._classes.items()}
            if name in classes:
                return classes[name]
            _load_plugins()
        raise UnknownKind(
            f"there is no {self.noun} {name[:60]!r}, expected one of {', '.join(map(written, self._classes))}; if another package defines it, ",
            in_python="import that package first",
            on_command_line=f"install that package, with an entry point in the group {ENTRY_POINTS!r}",
        )


def word_for(class_name: str) -> str:
    """`VertexAscent` -> `vertex-ascent`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "-", class_name).lower()


@cache
def _load_plugins() -> None:
    """Import the modules that installed packages offer; each registers its classes."""
    for entry in entry_points(group=ENTRY_POINTS):
        entry.load()


def _to_plain(value: Any, where: str, arrays: dict[str, np.ndarray]) -> Any:
    if isinstance(value, np.ndarray):
        arrays[where] = value
        return {"array": where}
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not isfinite(value):
        return {"float": str(value)}  # JSON has no infinity
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [_to_plain(item, f"{where}/{i}", arrays) for i, item in enumerate(value)]
    for registry in _REGISTRIES.values():
        if isinstance(value, registry.base):
            return {"axis": registry.noun} | registry.to_plain(value, arrays, where)
    raise SettingError(
        f"the setting {where} cannot be saved: expected numbers, text, tuples or arrays, found {value!r:.60}"
    )


def _from_plain(plain: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    if isinstance(plain, list):
        return tuple(_from_plain(item, arrays) for item in plain)
    if isinstance(plain, Mapping):
        if "array" in plain:
            return arrays[plain["array"]]
        if "axis" in plain:
            own = {name: item for name, item in plain.items() if name != "axis"}
            return _REGISTRIES[plain["axis"]].from_plain(own, arrays)
        return float(plain["float"])
    return plain
