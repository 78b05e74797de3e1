"""One policy on its own: to act with, to run, to save."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
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

Observation = int | str | Sequence[float] | NDArray[Any]
"""What a policy acts on: an observation or the number of a state, the name of a state, or a position (x, y)."""


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

    @cached_property
    def _state_of(self) -> dict[int | str, int]:
        seen = range(self.mdp.n_states) if self.mdp.observations is None else self.mdp.observations.tolist()
        named = {self.mdp.state_name(state): state for state in range(self.mdp.n_states)}
        return {**named, **{observation: state for state, observation in enumerate(seen)}}

    def act(self, observation: Observation, rng: np.random.Generator | None = None) -> int:
        """The number of an action, drawn from the policy, as a Gymnasium agent needs it; its name is
        `mdp.action_names[number]`.

        Args:
            observation: one of the environment that the model was read from; for other models, the number of a state. It
                may also be the name of a state, as tables and files show it, such as "r3c3", or a position (x, y) on the
                map of the model: metres in the frame of the map if the map has an origin, as those of Nav2 do, otherwise
                column and row of a cell, counted from 0 at the top left.
            rng: the source of random draws; a new one by default. Plans that always do the same in a state need none.

        Raises:
            SettingError: if there is no such state. For a position in a blocked cell or outside the map, it names the
                nearest free cell.
        """
        seen: Any = observation
        rng = np.random.default_rng() if rng is None else rng
        if isinstance(seen, (tuple, list)) or np.shape(seen) == (2,):
            return int(self.mdp.actions[self.choose(self._state_at(seen), rng)])
        state = self._state_of.get(seen if isinstance(seen, str) else int(seen))
        if state is None:
            known = [observation for observation in self._state_of if isinstance(observation, int)]
            raise SettingError(
                f"{self.mdp.name} has no state with the name or observation {observation!r:.60}; it has {self.mdp.n_states} "
                f"observations, from {min(known)} to {max(known)}, and names such as {self.mdp.state_name(0)!r}"
            )
        return int(self.mdp.actions[self.choose(state, rng)])

    def _state_at(self, position: Any) -> int:
        """The state at a position (x, y)."""
        if self.mdp.layout is None:
            raise SettingError(f"{self.mdp.name} has no map, so a state cannot be given by its position")
        try:
            x, y = (float(part) for part in position)
        except (TypeError, ValueError, OverflowError):
            raise SettingError(f"a position must be two numbers (x, y), found {position!r:.60}") from None
        return self.mdp.layout.state_at(x, y)

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
