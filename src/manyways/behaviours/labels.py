"""Time per combination of labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from manyways.behaviours.base import BEHAVIOURS, Behaviour
from manyways.behaviours.linear_map import Grouping
from manyways.errors import SettingError
from manyways.model.mdp import MDP


@BEHAVIOURS.add
@dataclass(frozen=True)
class Labels(Behaviour):
    """Compare the time spent in each combination of the named labels (all labels if none is named)."""

    apart: ClassVar[float] = 0.025

    names: Sequence[str] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(self.names))

    def on(self, mdp: MDP) -> Grouping:
        names = list(self.names) or sorted(mdp.labels)
        if not names:
            raise SettingError(
                f"{mdp.name} has no labels to compare plans by; ",
                in_python="use States() or StateActions()",
                on_command_line="use --behaviour states or state-actions",
            )
        for name in names:
            if name not in mdp.labels:
                raise SettingError(
                    f"{mdp.name} has no label {name!r}; it has {', '.join(sorted(mdp.labels)) or 'none'}"
                )
        code = np.stack([mdp.labels[name] for name in names], axis=1)
        _, group = np.unique(code, axis=0, return_inverse=True)
        return Grouping(group.ravel()[mdp.choice_state])

    def describe(self) -> str:
        return f"how time is shared between labels ({', '.join(self.names) or 'all'})"
