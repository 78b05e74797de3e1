"""Bans: the part of a model whose policies never enter or do what is banned.

A ban holds with certainty. A banned choice is removed, and so is every choice that can lead into a banned state, however
unlikely that is. A state without choices is removed like a banned one, until nothing changes. Every policy of the rest
keeps the ban, and every policy that keeps it takes only choices of the rest, so nothing else is lost. The rest is found in
time linear in the number of transitions (`search.peeled`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol

import numpy as np

from manyways.errors import ModelError
from manyways.model.building import mask_of
from manyways.model.naming import LISTED, are_names, mask_of_states, names_in, unknown_name, where_named
from manyways.model.search import collapse, peeled, reachable
from manyways.types import Bools, Floats, Ints, Sparse

WITHOUT = ", without "


def named_without(name: str, banned: Sequence[str]) -> str:
    """The name of a model without what is banned: "plant, without run slow, without outside service"."""
    return name + "".join(WITHOUT + words for words in banned)


def bans_in(name: str) -> list[str]:
    """What is banned in a model with such a name."""
    return name.split(WITHOUT)[1:]


class Model(Protocol):
    """What this module needs to know about an `MDP`, which imports it; see there."""

    @property
    def transitions(self) -> Sparse: ...
    @property
    def first_choice(self) -> Ints: ...
    @property
    def start(self) -> Floats: ...
    @property
    def actions(self) -> np.ndarray: ...
    @property
    def action_names(self) -> tuple[str, ...]: ...
    @property
    def labels(self) -> Mapping[str, Bools]: ...
    @property
    def ends(self) -> Mapping[str, Floats]: ...
    @property
    def name(self) -> str: ...
    @property
    def n_states(self) -> int: ...
    @property
    def n_choices(self) -> int: ...
    def state_name(self, state: int) -> str: ...


@dataclass(frozen=True, eq=False)
class Ban:
    """What one ban is called in messages, and the states (S,) and choices (N,) that it forbids."""

    name: str
    states: Bools
    choices: Bools


def allowed(model: Model, states: Any, labels: Any, actions: Any, choices: Any) -> tuple[Bools, Bools]:
    """(S,) and (N,) the states and choices that policies can use without entering or doing what is banned.

    See `MDP.without` for the arguments.

    Raises:
        ModelError: if no policy is left, or if a name is unknown.
    """
    states, choices = (list(given) if isinstance(given, Set) else given for given in (states, choices))
    bans = [
        *([] if states is None else [_states(model, states)]),
        *(_label(model, name) for name in names_in(labels)),
        *(_action(model, name) for name in names_in(actions)),
        *([] if choices is None else [_choices(model, choices)]),
    ]
    kept_states, kept_choices = _left(model, bans)
    if (model.start[~kept_states] > 0).any():
        _refuse(model, bans)
    graph = collapse(model.transitions, model.first_choice, kept_choices)
    kept_states &= reachable(graph, model.start > 0)
    return kept_states, kept_choices & kept_states[_owners(model)]


def _left(model: Model, bans: Sequence[Ban]) -> tuple[Bools, Bools]:
    """(S,) and (N,) what several bans leave, wherever the start is."""
    lost, dropped = np.zeros(model.n_states, bool), np.zeros(model.n_choices, bool)
    for ban in bans:
        lost |= ban.states
        dropped |= ban.choices
    return peeled(model.transitions, model.first_choice, lost, dropped)


def _refuse(model: Model, bans: list[Ban]) -> NoReturn:
    """Name the bans that together leave no plan; bans without which there still is no plan are not named."""
    guilty = list(bans)
    for ban in bans:
        others = [other for other in guilty if other is not ban]
        if (model.start[~_left(model, others)[0]] > 0).any():
            guilty = others
    states = _left(model, guilty)[0]
    where = model.state_name(int(np.flatnonzero((model.start > 0) & ~states)[0]))
    together = " together" if len(guilty) > 1 else ""
    leave = "leave" if len(guilty) > 1 else "leaves"
    raise ModelError(
        f"no plan is left for {model.name}: the ban on {' and on '.join(ban.name for ban in guilty)} {leave} none{together}, "
        f"because from the start in {where!r} every plan has some chance of entering or doing what is banned; ban less"
    )


# ---- from what callers give to masks ----------------------------------------------------------


def _states(model: Model, given: Any) -> Ban:
    mask = mask_of_states(given, _all_states(model), "ban")
    which = [repr(model.state_name(int(s))) for s in np.flatnonzero(mask)[:LISTED]]
    return Ban(_listed("state", which, int(mask.sum())), mask, np.zeros(model.n_choices, bool))


def _label(model: Model, name: str) -> Ban:
    """The states with a label, and the choices that can end an episode in the way of that name: where a model restarts
    within a step, as FrozenLake does at a hole, no state is left that could have the label."""
    known = [*model.labels, *(end for end in model.ends if end not in model.labels)]
    if name not in known:
        unknown_name(name, known, "label", "ban")
    states, ends = model.labels.get(name), model.ends.get(name)
    return Ban(
        f"the label {name!r}",
        np.zeros(model.n_states, bool) if states is None else states,
        np.zeros(model.n_choices, bool) if ends is None else ends > 0,
    )


def _action(model: Model, name: str) -> Ban:
    numbers = [number for number, known in enumerate(model.action_names) if known == name]
    if not numbers:
        unknown_name(name, model.action_names, "action", "ban")
    return Ban(f"the action {name!r}", np.zeros(model.n_states, bool), np.isin(model.actions, numbers))


def _choices(model: Model, given: Any) -> Ban:
    mask = _named_choices(model, given) if are_names(given) else mask_of(given, model.n_choices, "choices")
    which = [
        f"{model.action_names[model.actions[x]]!r} in {model.state_name(int(_owners(model)[x]))!r}"
        for x in np.flatnonzero(mask)[:LISTED]
    ]
    return Ban(_listed("choice", which, int(mask.sum())), np.zeros(model.n_states, bool), mask)


def _named_choices(model: Model, given: Any) -> Bools:
    """(N,) the choices that are given as pairs of names."""
    mask, states = np.zeros(model.n_choices, bool), _all_states(model)
    for state, action in _pairs(given):
        here = np.flatnonzero(where_named([state], states, "state", "ban")[_owners(model)])
        names = [model.action_names[a] for a in model.actions[here]]
        mask[here[where_named([action], names, f"action in state {state!r} called", "ban")]] = True
    return mask


def _pairs(given: Any) -> list[tuple[str, str]]:
    pairs = np.asarray(given)
    if pairs.ndim not in (1, 2) or pairs.shape[-1] != 2:
        raise ModelError(f"choices by name must be pairs (state, action), found {given!r:.80}")
    return [(str(state), str(action)) for state, action in pairs.reshape(-1, 2)]


def _owners(model: Model) -> Ints:
    """(N,) the state of each choice."""
    return np.repeat(np.arange(model.n_states), np.diff(model.first_choice))


def _all_states(model: Model) -> list[str]:
    return [model.state_name(s) for s in range(model.n_states)]


def _listed(noun: str, which: list[str], count: int) -> str:
    more = f" and {count - len(which):,} more" if count > len(which) else ""
    return f"the {noun}{'' if count == 1 else 's'} {', '.join(which)}{more}"
