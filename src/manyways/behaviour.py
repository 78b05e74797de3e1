"""What counts as behaviour: a grouping of the choices, in which plans are compared.

The paper compares state-action pairs. Compared by states, two plans that differ only in an unimportant
action are alike; compared by labels, two paths through the same door are. Adding up the occupancy by
groups is linear and keeps the total at one, so the objective stays convex and every method applies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from manyways.arrays import Ints
from manyways.errors import SettingError
from manyways.mdp import MDP


@dataclass(frozen=True)
class StateActions:
    """Time per state and action: the paper's."""

    def groups(self, mdp: MDP) -> Ints:
        """(N,) the group of each choice, counted from 0."""
        return np.arange(mdp.n_choices)


@dataclass(frozen=True)
class States:
    """Time per state."""

    def groups(self, mdp: MDP) -> Ints:
        return mdp.choice_state


@dataclass(frozen=True)
class Labels:
    """Time per combination of the named labels (all labels if none is named)."""

    names: Sequence[str] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(self.names))

    def groups(self, mdp: MDP) -> Ints:
        names = list(self.names) or sorted(mdp.labels)
        if not names:
            raise SettingError(f"{mdp.name} has no labels to compare plans by; use States() or StateActions()")
        for name in names:
            if name not in mdp.labels:
                raise SettingError(
                    f"{mdp.name} has no label {name!r}; it has {', '.join(sorted(mdp.labels)) or 'none'}"
                )
        code = np.stack([mdp.labels[name] for name in names], axis=1)
        _, group = np.unique(code, axis=0, return_inverse=True)
        return group.ravel()[mdp.choice_state]


Behaviour = StateActions | States | Labels
