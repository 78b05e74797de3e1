"""Choices of one state that have the same effect: the same transitions, reward and ends of episodes.

On a slippery lake, 'down' and 'right' may do the same beside the shore. Nobody who watches two plans that differ only in such
choices can tell them apart.
"""

from __future__ import annotations

import numpy as np

from manyways.kernels.compiler import compiled
from manyways.model.mdp import MDP
from manyways.types import Floats, Ints

ROUNDING = 1e-12
"""Probabilities, and rewards relative to their size, that differ by less are equal."""


def by_effect(mdp: MDP) -> Ints:
    """(N,) a number for each choice, from 0; choices of one state with the same effect have the same number."""
    rng = np.random.default_rng(0)
    # Two different rows have the same product with random numbers only by an unlikely accident.
    leads = mdp.transitions @ rng.random(mdp.n_states)
    brings = mdp.reward * rng.random() + sum(ends * rng.random() for ends in mdp.ends.values())
    found = np.empty(mdp.n_choices, np.int64)
    _number(mdp.first_choice, leads, np.asarray(brings, np.float64), found)
    return found


@compiled
def _number(first: Ints, leads: Floats, brings: Floats, found: Ints) -> None:
    count = 0
    for s in range(len(first) - 1):
        for x in range(first[s], first[s + 1]):
            found[x] = -1
            for other in range(first[s], x):
                same = abs(leads[other] - leads[x]) <= ROUNDING
                if same and abs(brings[other] - brings[x]) <= ROUNDING * abs(brings[x]):
                    found[x] = found[other]
                    break
            if found[x] < 0:
                found[x] = count
                count += 1
