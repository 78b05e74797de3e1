"""The model: a finite Markov decision process in *choice layout*.

A choice is one available action in one state. The N choices of all S states lie in one row after
the other, sorted by state: those of state `s` are `first_choice[s] : first_choice[s + 1]`. Policies,
occupancies, rewards and gradients all share this `(N,)` layout, so states may offer different
actions without padding, and nothing is ever dense in S x S.

An `MDP` is validated once, when it is made, and its arrays are read-only from then on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from manyways.errors import ModelError
from manyways.model.bans import allowed
from manyways.model.building import (
    default_action_names,
    depends_on_next,
    expected_reward,
    mask_of,
    matrix_of,
    members_mask,
    numbered,
    ranks,
    start_from_states,
    start_or_first,
    summed_by_choice,
)
from manyways.model.checking import (
    check_text,
    checked_ends,
    checked_reward,
    checked_start,
    checked_transitions,
    frozen,
    integers,
    rises,
)
from manyways.model.layout import Grid
from manyways.model.variables import NameVariables, Values, checked_variables, fields_of
from manyways.types import Bools, Floats, Ints, Sparse


@dataclass(frozen=True, eq=False, repr=False)
class MDP:
    """A finite MDP. Make one with `from_csr`, `from_dense`, `from_transitions`, or `manyways.read`.

    Attributes:
        transitions: (N, S) CSR; row x is the distribution of the next state after choice x.
        reward: (N,) expected immediate reward of each choice.
        first_choice: (S + 1,) where each state's choices begin; the last entry is N.
        start: (S,) distribution of the first state.
        actions: (N,) index into `action_names` of each choice's action.
        action_names: the names of all actions.
        state_names: (S,) names, or None for names made up from the grid cell or the index.
        labels: sets of states by name, each an (S,) mask.
        ends: the ways in which an episode may end, by name, where the model restarts in the middle of a step: (N,) the
            probability that the step of a choice ends the episode in this way and leads back to the start.
        layout: where to draw the states, if anywhere.
        observations: (S,) the number that the environment has for each state, if the model was read from one.
        name: what to call the model in tables and titles.
        source: what `manyways.read` read the model from, if it did; reading it again gives the same model.
        time_limit: the number of steps after which the environment ends an episode, if it was read from one that does.
            The model itself has no such end.
        variables: what the states are made of, by name: (S,) integers, floats (NaN: no value), booleans or short texts.
            Those in the names of the states, if none are given and there is no layout; see `manyways.model.variables`.
        costs: whether the reward is minus a cost, which is shown as a cost; see `minimising`.
        averaged: whether the reward of some step depends on where it leads, of which `reward` is the mean.
    """

    transitions: Sparse
    reward: Floats
    first_choice: Ints
    start: Floats
    actions: NDArray[np.int32]
    action_names: tuple[str, ...]
    state_names: tuple[str, ...] | None = None
    labels: Mapping[str, Bools] = field(default_factory=dict)
    ends: Mapping[str, Floats] = field(default_factory=dict)
    layout: Grid | None = None
    observations: Ints | None = None
    name: str = "model"
    source: str | None = None
    time_limit: int | None = None
    costs: bool = False
    variables: Mapping[str, Values] = field(default_factory=dict)
    averaged: bool = False

    @np.errstate(all="ignore")  # what overflows is refused with an error, so no warning is needed
    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "first_choice", frozen(integers(self.first_choice, "first_choice"), np.int64))
        put(self, "actions", integers(self.actions, "actions"))
        put(self, "action_names", tuple(map(str, self.action_names)))
        put(self, "name", str(self.name))
        put(self, "costs", bool(self.costs))
        put(self, "averaged", bool(self.averaged))
        if self.state_names is not None:
            put(self, "state_names", tuple(map(str, self.state_names)))
        named = {"action": self.action_names, "state": self.state_names or (), "label": self.labels, "end": self.ends}
        check_text(**named, model=[self.name, self.source or ""])
        self._check_shape()
        put(self, "actions", frozen(self.actions, np.int32))
        put(self, "reward", checked_reward(self.reward, self.n_choices, self._where))
        put(self, "transitions", checked_transitions(self.transitions, self._where, self.state_name))
        put(self, "start", checked_start(self.start, self.n_states, self.state_name))
        put(self, "labels", {str(label): frozen(mask, np.bool_) for label, mask in self.labels.items()})
        for label, mask in self.labels.items():
            if mask.shape != (self.n_states,):
                raise ModelError(
                    f"label {label!r} must mark {self.n_states} states, found an array of shape {mask.shape}"
                )
        put(self, "ends", checked_ends(self.ends, self.transitions, self.start))
        if self.observations is not None:
            put(self, "observations", frozen(integers(self.observations, "observations"), np.int64))
            if len(np.unique(self.observations)) != self.n_states or len(self.observations) != self.n_states:
                raise ModelError(f"observations must be {self.n_states} different numbers, one for each state")
        if self.layout is not None and self.layout.cells.shape != (self.n_states,):
            raise ModelError(f"the layout places {self.layout.cells.size} states, the model has {self.n_states}")
        put(self, "variables", self._settled_variables())

    def _settled_variables(self) -> Mapping[str, Values]:
        """The variables that were given or, if there are none, those in the names, which are split when first needed."""
        if not isinstance(self.variables, NameVariables) and len(self.variables):
            return checked_variables(self.variables, self.n_states)
        named = self.state_names is not None and self.layout is None
        return NameVariables(self.state_names or ()) if named else {}

    @property
    def given_variables(self) -> Mapping[str, Values]:
        """The variables without those that are only in the names of the states."""
        return {} if isinstance(self.variables, NameVariables) else self.variables

    # ---- constructors -------------------------------------------------------------------------

    @classmethod
    def from_csr(
        cls,
        transitions: Any,
        reward: ArrayLike | Any,
        first_choice: ArrayLike,
        *,
        start: ArrayLike | None = None,
        actions: ArrayLike | None = None,
        action_names: Sequence[str] | None = None,
        **details: Any,
    ) -> MDP:
        """From a sparse (N, S) matrix with one row per choice.

        Args:
            transitions: (N, S) anything that `scipy.sparse.csr_array` takes.
            reward: (N,) per choice, or sparse (N, S) per transition, R(s, a, s').
            first_choice: (S + 1,) where each state's choices begin.
            start: (S,) distribution of the first state; state 0 if not given.
            actions: (N,) action index per choice; its rank within its state if not given.
            action_names: names by action index; `a0`, `a1`, ... if not given.
            details: `state_names`, `labels`, `ends`, `layout`, `observations`, `variables`, `name`, `costs`.
        """
        matrix = matrix_of(transitions)
        details.setdefault("averaged", depends_on_next(matrix, reward))
        begin = integers(first_choice, "first_choice")
        index = ranks(begin, matrix.shape[0]) if actions is None else integers(actions, "actions")
        if action_names is None:
            action_names = default_action_names(index)
        return cls(
            transitions=matrix,
            reward=expected_reward(matrix, reward),
            first_choice=begin,
            start=start_or_first(start, matrix.shape[1]),
            actions=index,  # pyright: ignore[reportArgumentType] (32 bits, once checked)
            action_names=tuple(action_names),
            **details,
        )

    @classmethod
    @np.errstate(all="ignore")
    def from_dense(
        cls,
        transitions: ArrayLike,
        reward: ArrayLike,
        *,
        mask: ArrayLike | None = None,
        **details: Any,
    ) -> MDP:
        """From a dense (S, A, S) array; for models small enough to hold one.

        Args:
            transitions: (S, A, S) probabilities.
            reward: (S,), (S, A) or (S, A, S).
            mask: (S, A) which actions a state offers; all of them if not given. Rows of masked-out
                actions may hold anything.
            details: as for `from_csr`.
        """
        p = np.asarray(transitions, dtype=np.float64)
        if p.ndim != 3 or p.shape[0] != p.shape[2]:
            raise ModelError(f"dense transitions must have shape (S, A, S), found {p.shape}")
        n_states, n_actions, _ = p.shape
        offered = np.ones((n_states, n_actions), bool) if mask is None else np.asarray(mask, dtype=bool)
        if offered.shape != (n_states, n_actions):
            raise ModelError(f"the mask must have shape {(n_states, n_actions)}, found {offered.shape}")
        r = np.asarray(reward, dtype=np.float64)
        if r.shape == (n_states,):
            r = np.repeat(r[:, None], n_actions, axis=1)
        if r.shape == p.shape:
            least, most = r.min(axis=2, where=p != 0, initial=np.inf), r.max(axis=2, where=p != 0, initial=-np.inf)
            details.setdefault("averaged", bool((least < most)[offered].any()))
            r = np.multiply(p, r, where=(p != 0) & offered[:, :, None], out=np.zeros_like(p)).sum(axis=2)
        if r.shape != (n_states, n_actions):
            raise ModelError(f"the reward must have shape (S,), (S, A) or (S, A, S) of {p.shape}, found {r.shape}")
        return cls.from_csr(
            sparse.csr_array(p[offered]),
            r[offered],
            np.concatenate([[0], np.cumsum(offered.sum(axis=1))]),
            actions=np.nonzero(offered)[1],
            **details,
        )

    @classmethod
    @np.errstate(all="ignore")
    def from_transitions(
        cls,
        transitions: Iterable[tuple[Hashable, Hashable, Hashable, float, float]],
        *,
        start: Hashable | Mapping[Hashable, float] | None = None,
        **details: Any,
    ) -> MDP:
        """From a list of `(state, action, next_state, probability, reward)`.

        States and actions may be anything hashable; their `str` becomes their name. States are
        numbered as they first appear, a repeated (state, action, next state) adds up. The fields of states that are
        tuples or dataclasses become variables.

        Args:
            transitions: the list.
            start: a state, or a mapping from states to probabilities; the first state if not given.
            details: `labels` (name -> iterable of states), `layout`, `variables`, `name`.
        """
        states, actions, (s, a, t), (p, r) = numbered(transitions)
        matrix, reward, first, taken, averaged = summed_by_choice(s, a, t, p, r, len(states), len(actions))
        labels = details.pop("labels", {})
        details = {"variables": fields_of(list(states)), "averaged": averaged} | details
        return cls.from_csr(
            matrix,
            reward,
            first,
            start=start_from_states(start, states),
            actions=taken,
            action_names=[str(action) for action in actions],
            state_names=[str(state) for state in states],
            labels={label: members_mask(members, states, label) for label, members in labels.items()},
            **details,
        )

    # ---- sizes and names ----------------------------------------------------------------------

    @property
    def n_states(self) -> int:
        return len(self.first_choice) - 1

    @property
    def n_choices(self) -> int:
        return self.transitions.shape[0]

    @cached_property
    def choice_state(self) -> Ints:
        """(N,) the state that each choice belongs to."""
        return frozen(np.repeat(np.arange(self.n_states), np.diff(self.first_choice)), np.int64)

    def state_name(self, state: int) -> str:
        if self.state_names is not None:
            return self.state_names[state]
        if self.layout is not None:
            return "r{}c{}".format(*self.layout.position(state))
        return f"s{state}"

    def action_name(self, choice: int) -> str:
        return self.action_names[self.actions[choice]]

    @cached_property
    def digest(self) -> str:
        """A SHA-256 of everything that planning depends on; names and the drawing are not part of it."""
        hasher = hashlib.sha256(b"manyways-mdp-1")
        for array in (
            self.first_choice,
            self.transitions.indptr.astype(np.int64),
            self.transitions.indices.astype(np.int64),
            self.transitions.data,
            self.reward,
            self.start,
        ):
            hasher.update(array.size.to_bytes(8, "little"))
            hasher.update(np.ascontiguousarray(array + 0).data)  # -0.0 and 0.0 are one number
        for label in sorted(self.labels):
            hasher.update(label.encode())
            hasher.update(np.packbits(self.labels[label]).data)
        return hasher.hexdigest()

    def __repr__(self) -> str:
        return (
            f"MDP({self.name!r}, {self.n_states:,} states, {self.n_choices:,} choices, "
            f"{self.transitions.nnz:,} transitions, {self.digest[:8]})"
        )

    # ---- derived models -----------------------------------------------------------------------

    def restricted_to(self, keep: Bools) -> MDP:
        """The model on the states marked in `keep` (S,); their choices must not leave these states."""
        keep = mask_of(keep, self.n_states, "states")
        rows = keep[self.choice_state]
        leaving = np.flatnonzero(self.transitions[rows] @ (~keep).astype(float) > 0)
        if leaving.size:
            choice = int(np.flatnonzero(rows)[leaving[0]])
            raise ModelError(f"cannot restrict the model: {self._where(choice)} leads out of the kept states")
        if self.start[~keep].sum() > 0:
            raise ModelError("cannot restrict the model: the start distribution lies partly outside the kept states")
        return self.part(keep, rows)

    def without(self, *, states: Any = None, labels: Any = None, actions: Any = None, choices: Any = None) -> MDP:
        """The model whose plans never enter or do what is banned, with certainty; see `manyways.model.bans`.

        What the start can no longer reach is left out, too.

        Args:
            states: names or indices of states, one or several, or an (S,) mask.
            labels: one or several labels; plans enter no state with one of them, and no episode can end in a way of that
                name (`ends`).
            actions: one or several names of actions.
            choices: pairs (name of a state, name of an action), indices, or an (N,) mask.

        Raises:
            ModelError: if no plan is left, with the bans that leave none.

        Example:
            >>> mdp.without(labels="wall", actions=["left", "up"], choices=[("home", "bus")])
        """
        return self.part(*allowed(self, states, labels, actions, choices))

    def part(self, states: Bools, choices: Bools) -> MDP:
        """The model on the marked states (S,) and choices (N,), which never lead out of these states."""
        counts = np.add.reduceat(choices.astype(np.int64), self.first_choice[:-1])[states]
        return replace(
            self,
            transitions=self.transitions[choices][:, states],
            reward=self.reward[choices],
            first_choice=np.concatenate([[0], np.cumsum(counts)]),
            start=self.start[states],
            actions=self.actions[choices],
            state_names=None if self.state_names is None else tuple(np.array(self.state_names, object)[states]),
            labels={label: mask[states] for label, mask in self.labels.items()},
            ends={end: chance[choices] for end, chance in self.ends.items()},
            layout=None if self.layout is None else self.layout.of(states),
            observations=None if self.observations is None else self.observations[states],
            variables={name: values[states] for name, values in self.given_variables.items()},
            source=None,
        )

    def minimising(self) -> MDP:
        """The model with minus the reward: for rewards that are costs. Twice gives the model itself.

        Plans then cost as little as possible, and tables, pages and titles show costs; `reward` and the rewards of plans
        are minus the cost.
        """
        twin = self.with_reward(0.0 - self.reward)
        object.__setattr__(twin, "costs", not self.costs)
        object.__setattr__(twin, "averaged", self.averaged)
        return twin

    def restarting_at(self, states: ArrayLike, end: str = "end") -> MDP:
        """The model in which every choice in `states` leads back to the start distribution.

        This is what the paper's goal does: the end of one episode is the beginning of the next. Rewards stay as they are. Of the
        choices of such a state that earn the same, only the first is left: they would be decisions that change nothing.

        Args:
            states: indices, or an (S,) mask.
            end: what to call this end of an episode.
        """
        restart = mask_of(states, self.n_states, "states")[self.choice_state]
        ends = {name: np.where(restart, 0.0, chance) for name, chance in self.ends.items()}
        ends[end] = ends.get(end, 0.0) + restart.astype(float)
        again = replace(self, transitions=self.leading_back(restart), ends=ends, source=None)
        _, first = np.unique(np.column_stack([self.choice_state, self.reward]), axis=0, return_index=True)
        different = ~restart
        different[first] = True
        return again if different.all() else again.part(np.ones(self.n_states, bool), different)

    def leading_back(self, choices: Bools) -> Sparse:
        """(N, S) the transitions, if some (N,) choices led back to the start distribution."""
        keep = sparse.diags_array((~choices).astype(float))
        again = sparse.csr_array(choices.astype(float)[:, None]) @ sparse.csr_array(self.start[None, :])
        return sparse.csr_array(keep @ self.transitions + again)

    def with_reward(self, reward: ArrayLike) -> MDP:
        """The same model with another (N,) reward."""
        twin = copy(self)
        object.__setattr__(twin, "reward", checked_reward(reward, self.n_choices, self._where))
        object.__setattr__(twin, "source", None)
        object.__setattr__(twin, "averaged", False)
        vars(twin).pop("digest", None)  # it depends on the reward
        return twin

    def read_from(self, source: str) -> MDP:
        """The same model, with the source that it was read from."""
        twin = copy(self)  # a shallow copy shares the arrays, and is not validated again
        object.__setattr__(twin, "source", source)
        return twin

    # ---- validation ---------------------------------------------------------------------------

    def _where(self, choice: int) -> str:
        action, state = self.action_name(choice), self.state_name(int(self.choice_state[choice]))
        return f"action {_brief(action)!r} in state {_brief(state)!r}"

    def _check_shape(self) -> None:
        begin, (n, s) = self.first_choice, self.transitions.shape
        if begin.ndim != 1 or len(begin) < 2 or n == 0 or s == 0:
            raise ModelError("the model is empty: it needs at least one state with one action")
        if len(begin) != s + 1:
            raise ModelError(f"first_choice has {len(begin)} entries, expected one per state and one more: {s + 1}")
        if self.state_names is not None and len(self.state_names) != s:
            raise ModelError(f"there are {len(self.state_names)} state names for {s} states")
        if begin[0] != 0 or begin[-1] != n or not rises(begin):
            raise ModelError(
                f"first_choice must rise from 0 to the number of choices, {n}; found {begin[0]} to {begin[-1]}"
            )
        without = np.flatnonzero(np.diff(begin) == 0)
        if without.size:
            raise ModelError(
                f"state {self.state_name(int(without[0]))!r} has no action"
                + (f" (and {without.size - 1} others have none)" if without.size > 1 else "")
                + ": add a self-loop, or an action that leads back to the start"
            )
        if self.actions.shape != (n,):
            raise ModelError(
                f"actions must name one action for each of the {n} choices, found shape {self.actions.shape}"
            )
        if self.actions.min() < 0 or self.actions.max() >= len(self.action_names):
            raise ModelError(
                f"action indices must lie in 0..{len(self.action_names) - 1}, found {self.actions.min()}..{self.actions.max()}"
            )


def _brief(name: str) -> str:
    return name if len(name) <= 80 else name[:77] + "..."
