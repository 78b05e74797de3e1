"""Random bans, and what deterministic policies do from the start, by enumeration."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from manyways import MDP
from problems import choices_of

Behaviour = frozenset[tuple[str, int]]
"""What a policy does from the start: the names of the states that it can be in, each with the action taken there."""


def behaviours(mdp: MDP) -> Iterator[Behaviour]:
    """What each deterministic policy does in the states that it can reach."""
    follows = [np.flatnonzero(row) for row in mdp.transitions.toarray()]
    for choices in product(*(choices_of(mdp, state) for state in range(mdp.n_states))):
        seen = {int(s) for s in np.flatnonzero(mdp.start)}
        waiting = list(seen)
        while waiting:
            new = {int(t) for t in follows[choices[waiting.pop()]]} - seen
            seen |= new
            waiting += new
        yield frozenset((mdp.state_name(s), int(mdp.actions[choices[s]])) for s in seen)


def with_marks(mdp: MDP, rng: np.random.Generator) -> MDP:
    """The model with names, two random labels and observations."""
    return replace(
        mdp,
        state_names=tuple(f"place {s}" for s in range(mdp.n_states)),
        labels={label: rng.random(mdp.n_states) < 0.3 for label in ("red", "blue")},
        observations=10 * np.arange(mdp.n_states),
    )


@dataclass(frozen=True)
class Bans:
    """Names of states, names of labels with the states that they mark, actions, and pairs of state and action."""

    states: frozenset[str]
    labels: dict[str, frozenset[str]]
    actions: frozenset[int]
    choices: Behaviour

    def kept_by(self, behaviour: Behaviour) -> bool:
        entered = {state for state, _ in behaviour}
        return not (
            entered & self.states
            or any(entered & marked for marked in self.labels.values())
            or {action for _, action in behaviour} & self.actions
            or behaviour & self.choices
        )

    def arguments(self, mdp: MDP, rng: np.random.Generator) -> dict[str, Any]:
        """The bans for `MDP.without`: by names, by numbers or by masks."""
        names = mdp.state_names or ()
        index = np.array([s for s, name in enumerate(names) if name in self.states], np.int64)
        mask = np.array(
            [(names[s], int(a)) in self.choices for s, a in zip(mdp.choice_state, mdp.actions, strict=True)]
        )
        pairs = [(state, mdp.action_names[action]) for state, action in self.choices]
        return {
            "states": [sorted(self.states), index, np.isin(np.arange(mdp.n_states), index)][rng.integers(3)],
            "labels": sorted(self.labels),
            "actions": [mdp.action_names[action] for action in self.actions],
            "choices": [pairs, np.flatnonzero(mask), mask][rng.integers(3)],
        }


def random_bans(mdp: MDP, rng: np.random.Generator) -> Bans:
    """Few bans, so that some policy is often left."""
    names = mdp.state_names or ()
    pairs = [(mdp.state_name(int(s)), int(a)) for s, a in zip(mdp.choice_state, mdp.actions, strict=True)]
    return Bans(
        frozenset(name for name in names if rng.random() < 0.08),
        {
            label: frozenset(names[s] for s in np.flatnonzero(mask))
            for label, mask in mdp.labels.items()
            if rng.random() < 0.15
        },
        frozenset(a for a in range(len(mdp.action_names)) if rng.random() < 0.08),
        frozenset(pair for pair in pairs if rng.random() < 0.08),
    )
