"""`register`: classes and formats from outside the package."""

from __future__ import annotations

from typing import Any, TypeVar

from manyways.behaviours import BEHAVIOURS
from manyways.errors import SettingError
from manyways.formats import FORMATS
from manyways.methods import METHODS
from manyways.objectives import OBJECTIVES
from manyways.polytope import CRITERIA
from manyways.preferences import PREFERENCES
from manyways.registry import Registry

REGISTRIES: tuple[Registry[Any], ...] = (METHODS, OBJECTIVES, BEHAVIOURS, CRITERIA, PREFERENCES)

T = TypeVar("T")


def register(kind: T) -> T:
    """Make a class of your own known to plan files, the command line and the page; returns it.

    Args:
        kind: a frozen dataclass derived from `Method`, `Objective`, `Behaviour`, `Criterion` or `PreferencePrior`, or a
            `Format`.

    Example:
        >>> @manyways.register
        ... @dataclass(frozen=True)
        ... class Actions(manyways.Behaviour):
        ...     def on(self, mdp):
        ...         return manyways.Grouping(mdp.actions)
    """
    if FORMATS.takes(kind):
        return FORMATS.add(kind)
    for registry in REGISTRIES:
        if isinstance(kind, type) and issubclass(kind, registry.base):
            return registry.add(kind)  # pyright: ignore[reportReturnType]
    bases = ", ".join(registry.base.__name__ for registry in REGISTRIES)
    raise SettingError(f"expected a dataclass derived from {bases}, or a Format, found {kind!r:.200}")
