"""What counts as behaviour: a linear image of the occupancy, in which plans are compared.

The paper compares state-action pairs. Compared by states, two plans that differ only in an
unimportant action are alike; compared by labels, two paths through the same door are. All of them
are linear and keep the total at one, so the objective stays convex and every method applies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from manyways.errors import SettingError
from manyways.mdp import MDP, Sparse


@dataclass(frozen=True)
class StateActions:
    """Time per state and action: the paper's."""

    def matrix(self, mdp: MDP) -> Sparse:
        """(B, N) the linear map."""
        return sparse.eye_array(mdp.n_choices, format="csr")


@dataclass(frozen=True)
class States:
    """Time per state."""

    def matrix(self, mdp: MDP) -> Sparse:
        return _group(mdp, mdp.choice_state)


@dataclass(frozen=True)
class Labels:
    """Time per combination of the named labels (all labels if none is named)."""

    names: Sequence[str] = ()

    def matrix(self, mdp: MDP) -> Sparse:
        names = list(self.names) or sorted(mdp.labels)
        unknown = [name for name in names if name not in mdp.labels]
        if unknown or not names:
            raise SettingError(
                f"{mdp.name} has no label {unknown[0] if unknown else ''!r}; it has {', '.join(sorted(mdp.labels)) or 'none'}"
            )
        code = np.stack([mdp.labels[name] for name in names], axis=1)
        _, group = np.unique(code, axis=0, return_inverse=True)
        return _group(mdp, group.ravel()[mdp.choice_state])


Behaviour = StateActions | States | Labels


def _group(mdp: MDP, group: np.ndarray) -> Sparse:
    shape = (int(group.max()) + 1, mdp.n_choices)
    return sparse.csr_array((np.ones(mdp.n_choices), (group, np.arange(mdp.n_choices))), shape=shape)
