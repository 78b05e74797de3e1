"""One policy on its own: to act with, to run, to save."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyways.errors import ManywaysError, SettingError, SourceError, check_integer
from manyways.files import write_bytes
from manyways.model.checking import frozen
from manyways.model.graph import reachable
from manyways.model.mdp import MDP
from manyways.model.occupancy import chain, check_policy
from manyways.plans import policy_files
from manyways.plans.route import Route, likely_route
from manyways.types import Floats, Ints

Observation = Hashable | Sequence[Any] | Mapping[str, Any] | NDArray[Any]
"""What a policy acts on: an observation, a state or its number, name or variables, or a position (x, y)."""


@dataclass(frozen=True, eq=False)
class Rollout:
    """One run.

    Attributes:
        states: (T,) those visited.
        choices: (T,) those taken there.
        rewards: (T,) what they paid on average.
        ends: (T,) which of the model's `ends` came with a step, by number; -1 for none.
    """

    states: Ints
    choices: Ints
    rewards: Floats
    ends: Ints


@dataclass(frozen=True, eq=False)
class Policy:
    """What to do in each state.

    Attributes:
        mdp: the model.
        probabilities: (N,) of each choice, summing to one in every state.
        title: what it is called if it is kept in a set of plans; by default what sets it apart there.
    """

    mdp: MDP
    probabilities: Floats
    title: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "probabilities", frozen(check_policy(self.mdp, self.probabilities), np.float64))

    @cached_property
    def _table(self) -> tuple[list[int], list[float], list[int], list[int], list[float]]:
        """Cumulative probabilities of choices within states and of targets within choices, as plain lists, which a run
        reads faster one by one than arrays."""
        mdp, matrix = self.mdp, self.mdp.transitions
        before = np.concatenate([[0.0], np.cumsum(self.probabilities)])
        within = np.cumsum(self.probabilities) - before[mdp.first_choice[:-1]][mdp.choice_state]
        row = np.repeat(np.arange(mdp.n_choices), np.diff(matrix.indptr))
        before = np.concatenate([[0.0], np.cumsum(matrix.data)])
        to = np.cumsum(matrix.data) - before[matrix.indptr[:-1]][row]
        return mdp.first_choice.tolist(), within.tolist(), matrix.indptr.tolist(), matrix.indices.tolist(), to.tolist()

    def choose(self, state: int, rng: np.random.Generator) -> int:
        """A choice in a state, drawn from the policy."""
        first, within, *_ = self._table
        low, high = first[state], first[state + 1]
        choice = min(bisect(within, rng.random() * within[high - 1], low, high), high - 1)
        while self.probabilities[choice] == 0:  # rounding at the end of a row
            choice -= 1
        return choice

    def act(self, observation: Observation, rng: np.random.Generator | None = None) -> int:
        """The number of an action, drawn from the policy, as a Gymnasium agent needs it; its name is
        `mdp.action_names[number]`. Where all actions are named by integers, it is that integer.

        Args:
            observation: one of the environment that the model was read from. For other models the name of a state, as tables
                and files show it, such as "r3c3"; the state that was given to `explore`, if it is named by its `str`; the
                values of all variables of a state by their names; the number of a state, unless all states are named by
                integers; or a position (x, y) on the map of the model: metres in the frame of the map if the map has an
                origin, as those of Nav2 do, otherwise column and row of a cell, counted from 0 at the top left.
            rng: the source of random draws; a new one by default. Plans that always do the same in a state need none.

        Raises:
            SettingError: if there is no such state. For a position in a blocked cell or outside the map, it names the
                nearest free cell.
        """
        rng = np.random.default_rng() if rng is None else rng
        choice = self.choose(self._state_seen(observation), rng)
        return self._numbers_of_actions[self.mdp.actions[choice]]

    def _state_seen(self, observation: Any) -> int:
        """The state with an observation."""
        seen = _plain(observation)
        if isinstance(seen, Mapping):
            values = [_plain(seen.get(name)) for name in self.mdp.variables]
            state = self._state_by_variables.get(tuple(str(v) if isinstance(v, list) else v for v in values))
        elif isinstance(seen, list) or type(seen) is tuple:
            if self.mdp.layout is not None:
                return self.mdp.layout.state_at(*_position(seen))
            state = self._state_named.get(str(tuple(seen)), self._state_named.get(str(tuple(map(_plain, seen)))))
        elif type(seen) is int:
            state = self._state_numbered.get(seen)
        else:
            state = self._state_named.get(str(seen))
            if state is None and isinstance(seen, float):
                state = self._state_numbered.get(seen)
        if state is None:
            numbers = self._state_numbered
            raise SettingError(
                f"{self.mdp.name} has no state with the name or observation {observation!r:.60}; it has {len(numbers)} "
                f"observations, from {min(numbers)} to {max(numbers)}, and names such as {self.mdp.state_name(0)!r}"
                + ("" if self.mdp.layout else ", but no map with positions")
            )
        return state

    @cached_property
    def _state_named(self) -> dict[str, int]:
        return {self.mdp.state_name(state): state for state in range(self.mdp.n_states)}

    @cached_property
    def _state_numbered(self) -> dict[float, int]:
        names = self.mdp.state_names
        numbers = _integers(names) if self.mdp.observations is None else self.mdp.observations.tolist()
        return {number: state for state, number in enumerate(numbers or range(self.mdp.n_states))}

    @cached_property
    def _state_by_variables(self) -> dict[tuple[Any, ...], int]:
        """The states by the values of their variables; none if these do not tell all states apart."""
        values = [column.tolist() for column in self.mdp.variables.values()]
        found = {those: state for state, those in enumerate(zip(*values, strict=True))}
        return found if len(found) == self.mdp.n_states else {}

    @cached_property
    def _numbers_of_actions(self) -> Sequence[int]:
        return _integers(self.mdp.action_names) or range(len(self.mdp.action_names))

    def route(self) -> Route:
        """The most likely way from the start to the goal, as waypoints on the map; see `manyways.plans.route`."""
        return likely_route(self.mdp, self.probabilities)

    def rollout(self, steps: int, rng: np.random.Generator) -> Rollout:
        """Run the policy in the model, from a first state drawn from the start distribution."""
        check_integer("steps", steps, 1)
        _, _, begin, target, to = self._table
        state = int(rng.choice(self.mdp.n_states, p=self.mdp.start))
        states, choices, taken = (np.empty(steps, np.int64) for _ in range(3))
        for step in range(steps):
            choice = self.choose(state, rng)
            low, high = begin[choice], begin[choice + 1]
            transition = min(bisect(to, rng.random() * to[high - 1], low, high), high - 1)
            states[step], choices[step], taken[step] = state, choice, transition
            state = target[transition]
        return Rollout(states, choices, self.mdp.reward[choices], self._ends(choices, taken, rng))

    def _ends(self, choices: Ints, taken: Ints, rng: np.random.Generator) -> Ints:
        """(T,) the end, if any, that came with each choice and transition. Ends lead to the start, but steps that end
        nothing may lead there too, so which of the two it was is drawn at random."""
        mdp, ends = self.mdp, np.full(len(choices), -1)
        if mdp.ends:
            restart = mdp.start[mdp.transitions.indices[taken]] / mdp.transitions.data[taken]
            luck = rng.random(len(choices))
            for number, chance in enumerate(mdp.ends.values()):
                share = chance[choices] * restart
                ends[(luck >= 0) & (luck < share)] = number
                luck -= share
        return ends

    def on(self, mdp: MDP) -> Policy:
        """The same policy for another model with the same names, such as the one that a ban leaves.

        States that the policy never comes to from the start of that model may differ: there it takes the first choice.

        Raises:
            SettingError: if the policy comes to a state or does an action that the other model does not have.
        """
        policy_files.check_names(self.mdp)
        policy_files.check_names(mdp)
        states = {self.mdp.state_name(s): s for s in range(self.mdp.n_states)}
        own = {
            (int(self.mdp.choice_state[x]), self.mdp.action_name(x)): x
            for x in np.flatnonzero(self.probabilities).tolist()
        }
        found = np.zeros(mdp.n_choices)
        for x in range(mdp.n_choices):
            state = states.get(mdp.state_name(int(mdp.choice_state[x])))
            if state is not None and (state, mdp.action_name(x)) in own:
                found[x] = self.probabilities[own[state, mdp.action_name(x)]]
        taken = np.add.reduceat(found, mdp.first_choice[:-1])
        missing = np.abs(taken - 1) > 1e-9
        found[missing[mdp.choice_state]] = 0.0
        found[mdp.first_choice[:-1][missing]] = 1.0
        reached = missing & reachable(chain(mdp, found), mdp.start > 0)
        if reached.any():
            where = mdp.state_name(int(np.argmax(reached)))
            if where not in states:
                raise SettingError(f"the plan does not know the state {where!r:.60} of {mdp.name}")
            raise SettingError(
                f"the plan takes {self._likeliest(states[where])!r:.60} in {where!r:.60}, which is banned or not known in "
                f"{mdp.name}"
            )
        return Policy(mdp, found, self.title)

    def _likeliest(self, state: int) -> str:
        """The action that the policy takes most often in a state."""
        low, high = self.mdp.first_choice[state], self.mdp.first_choice[state + 1]
        return self.mdp.action_name(int(low + np.argmax(self.probabilities[low:high])))

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the policy in the format that the ending says (.json, .csv, .npz, .scheduler); returns the path."""
        path = Path(path)
        policy_files.check_policy_path(path)
        write_bytes(path, self.to_bytes(path.suffix))
        return path

    def to_bytes(self, ending: str) -> bytes:
        """The content of a file with this ending."""
        return policy_files.to_bytes(self.mdp, self.probabilities, ending)


def load_policy(path: str | PathLike[str], mdp: MDP) -> Policy:
    """Read a policy that `Policy.save` wrote, for the model that it belongs to."""
    probabilities = policy_files.read_file(Path(path), mdp)
    try:
        return Policy(mdp, probabilities)
    except ManywaysError as error:
        raise SourceError(f"{path}: {error}") from None


def _integers(names: Sequence[str] | None) -> list[int] | None:
    """The numbers that names are; None if some name is not an integer, or none are given."""
    if not names or not all(name.removeprefix("-").isdecimal() and str(int(name)) == name for name in names):
        return None
    return [int(name) for name in names]


def _plain(value: Any) -> Any:
    """Numbers and lists of Python for those of NumPy; anything else as it is."""
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value


def _position(given: Any) -> tuple[float, float]:
    try:
        x, y = (float(part) for part in given)
    except (TypeError, ValueError, OverflowError):
        raise SettingError(f"a position must be two numbers (x, y), found {given!r:.60}") from None
    return x, y
