"""DRN, Storm's explicit text format for models.

@type: MDP, @reward_models, @nr_states, @nr_choices, then @model with, per state, a line
`state 0 [reward] init label`, per choice `action name [reward]`, per transition `target : probability`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from manyways.mdp import MDP

REWARD = "reward"


def write_drn(mdp: MDP, path: Path) -> None:
    """Write the model with its reward as the reward model `reward`; the states of its start are labelled `init`."""
    with path.open("w") as file:
        file.writelines(_lines(mdp))


def _lines(mdp: MDP) -> Iterator[str]:
    yield f"@type: MDP\n@parameters\n\n@reward_models\n{REWARD}\n"
    yield f"@nr_states\n{mdp.n_states}\n@nr_choices\n{mdp.n_choices}\n@model\n"
    labels = {"init": mdp.start > 0} | {name: mask for name, mask in mdp.labels.items() if name != "init"}
    matrix, first = mdp.transitions, mdp.first_choice
    # Python's own numbers are faster to write than numpy's, and repr keeps every digit.
    begins, targets, weights = matrix.indptr.tolist(), matrix.indices.tolist(), matrix.data.tolist()
    rewards, actions = mdp.reward.tolist(), [_one_word(name) for name in mdp.action_names]
    marked = [[] for _ in range(mdp.n_states)]
    for name, mask in labels.items():
        for s in np.flatnonzero(mask):
            marked[s].append(_one_word(name))
    for s in range(mdp.n_states):
        yield " ".join([f"state {s} [0]", *marked[s]]) + "\n"
        for x in range(first[s], first[s + 1]):
            yield f"\taction {actions[mdp.actions[x]]} [{rewards[x]!r}]\n"
            for t in range(begins[x], begins[x + 1]):
                yield f"\t\t{targets[t]} : {weights[t]!r}\n"


def _one_word(name: str) -> str:
    return "_".join(name.split()) or "_"
