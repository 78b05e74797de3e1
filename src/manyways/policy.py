"""One policy on its own: to act with, to run, to hand on.

Files, by their ending: `.json` and `.csv` name every state, action and probability; `.npz` holds the (N,) array;
`.scheduler` is text as Storm prints schedulers, for deterministic policies one line per state.
"""

from __future__ import annotations

import csv
import io
import json
import re
from bisect import bisect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path

import numpy as np

from manyways.arrays import Floats, Ints, frozen
from manyways.errors import ManywaysError, OutputError, SettingError, SourceError, check_number, check_whole
from manyways.formats.archive import write_whole
from manyways.formats.npz import DAMAGED, Npz, reason, texts
from manyways.mdp import MDP
from manyways.occupancy import check_policy

FORMATS = (".json", ".csv", ".npz", ".scheduler")
COLUMNS = ("state", "action", "probability")


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
    """What to do in each state: (N,) the probability of each choice, summing to one in every state."""

    mdp: MDP
    probabilities: Floats

    def __post_init__(self) -> None:
        object.__setattr__(self, "probabilities", frozen(check_policy(self.mdp, self.probabilities), np.float64))

    @cached_property
    def _table(self) -> tuple[list[int], list[float], list[int], list[int], list[float]]:
        """Cumulative probabilities of choices within states and of targets within choices, as plain lists: what a
        run reads one by one."""
        mdp, matrix = self.mdp, self.mdp.transitions
        before = np.concatenate([[0.0], np.cumsum(self.probabilities)])
        within = np.cumsum(self.probabilities) - before[mdp.first_choice[:-1]][mdp.choice_state]
        row = np.repeat(np.arange(mdp.n_choices), np.diff(matrix.indptr))
        before = np.concatenate([[0.0], np.cumsum(matrix.data)])
        to = np.cumsum(matrix.data) - before[matrix.indptr[:-1]][row]
        return mdp.first_choice.tolist(), within.tolist(), matrix.indptr.tolist(), matrix.indices.tolist(), to.tolist()

    def choose(self, state: int, rng: np.random.Generator) -> int:
        """A choice in a state, at random as the policy says."""
        first, within, *_ = self._table
        low, high = first[state], first[state + 1]
        choice = min(bisect(within, rng.random() * within[high - 1], low, high), high - 1)
        while self.probabilities[choice] == 0:  # rounding at the end of a row
            choice -= 1
        return choice

    @cached_property
    def _state_of(self) -> dict[int, int]:
        seen = range(self.mdp.n_states) if self.mdp.observations is None else self.mdp.observations.tolist()
        return {observation: state for state, observation in enumerate(seen)}

    def act(self, observation: int, rng: np.random.Generator) -> int:
        """The number of an action, as an agent of Gymnasium's is asked: for an observation of the environment that the
        model was read from, or else for the number of a state."""
        state = self._state_of.get(int(observation))
        if state is None:
            raise SettingError(
                f"{observation} is no observation in which {self.mdp.name} has something to do; it has "
                f"{self.mdp.n_states}, from {min(self._state_of)} to {max(self._state_of)}"
            )
        return int(self.mdp.actions[self.choose(state, rng)])

    def rollout(self, steps: int, rng: np.random.Generator) -> Rollout:
        """Run the policy in the model, from a first state drawn from the start distribution."""
        check_whole("steps", steps, 1)
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
        """(T,) which end, if any, came with each choice and the transition taken. An end leads to where episodes begin;
        but so may a step that ends nothing."""
        mdp, ends = self.mdp, np.full(len(choices), -1)
        if mdp.ends:
            restart = mdp.start[mdp.transitions.indices[taken]] / mdp.transitions.data[taken]
            luck = rng.random(len(choices))
            for number, chance in enumerate(mdp.ends.values()):
                share = chance[choices] * restart
                ends[(luck >= 0) & (luck < share)] = number
                luck -= share
        return ends

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the policy; the file's ending says in which form."""
        path = Path(path)
        check_policy_path(path)
        write_whole(path, self.to_bytes(path.suffix))
        return path

    def to_bytes(self, form: str) -> bytes:
        """What `save` writes to a file with the ending `form`."""
        return WRITERS[form](self)

    def rows(self) -> list[tuple[str, str, float]]:
        """(state, action, probability) of every choice that is ever taken."""
        taken = np.flatnonzero(self.probabilities)
        owner = self.mdp.choice_state
        return [
            (self.mdp.state_name(int(owner[x])), self.mdp.action_name(int(x)), float(self.probabilities[x]))
            for x in taken
        ]


def check_policy_path(path: Path) -> None:
    """Find out before the work whether a policy can be written in the form that the ending says."""
    if path.suffix not in FORMATS:
        raise OutputError(f"cannot write {path}: a policy ends in one of {', '.join(FORMATS)}")


def load_policy(path: str | PathLike[str], mdp: MDP) -> Policy:
    """Read a policy that `Policy.save` wrote, for the model that it is a policy of."""
    path = Path(path)
    if path.suffix not in FORMATS:
        raise SourceError(f"cannot read {path}: a policy ends in one of {', '.join(FORMATS)}")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise SourceError(f"cannot read {path}: {error.strerror}") from None
    except ValueError:  # a NUL in the path
        raise SourceError(f"cannot read {str(path)!r}: there can be no such file") from None
    try:
        return Policy(mdp, READERS[path.suffix](content, mdp))
    except ManywaysError as error:
        raise SourceError(f"{path}: {error}") from None
    except (*DAMAGED, csv.Error) as error:
        raise SourceError(f"{path} is not a policy file: {reason(error)}") from None


# ---- the forms --------------------------------------------------------------------------------


def _to_json(policy: Policy) -> bytes:
    _check_names(policy.mdp)
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in policy.rows()]
    return (json.dumps({"model": policy.mdp.digest, "policy": rows}, indent=1) + "\n").encode()


def _from_json(content: bytes, mdp: MDP) -> Floats:
    read = json.loads(content)
    if read["model"] != mdp.digest:
        raise SettingError("the policy belongs to another model")
    return _from_rows([(row["state"], row["action"], row["probability"]) for row in read["policy"]], mdp)


def _to_csv(policy: Policy) -> bytes:
    _check_names(policy.mdp)
    text = io.StringIO(newline="")
    text.write(",".join(COLUMNS) + "\n")
    writer = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL)  # a lone carriage return would end a line
    writer.writerows((state, action, repr(chance)) for state, action, chance in policy.rows())
    return text.getvalue().encode()


def _from_csv(content: bytes, mdp: MDP) -> Floats:
    lines = csv.reader(io.StringIO(content.decode(), newline=""), strict=True)
    if tuple(next(lines, ())) != COLUMNS:
        raise SettingError(f"the first line must be {','.join(COLUMNS)}")
    return _from_rows([(state, action, float(chance)) for state, action, chance in lines], mdp)


def _from_rows(rows: list[tuple[str, str, float]], mdp: MDP) -> Floats:
    _check_names(mdp)
    states = {mdp.state_name(s): s for s in range(mdp.n_states)}
    choice = {(int(mdp.choice_state[x]), mdp.action_name(x)): x for x in range(mdp.n_choices)}
    probabilities, told = np.zeros(mdp.n_choices), set[int]()
    for state, action, chance in rows:
        if state not in states:
            raise SettingError(f"there is no state {str(state)[:60]!r} in {mdp.name}")
        if (states[state], action) not in choice:
            raise SettingError(f"state {state!r} of {mdp.name} offers no action {str(action)[:60]!r}")
        what = f"the probability of action {action[:60]!r} in state {state[:60]!r}"
        x = choice[states[state], action]
        if x in told:
            raise SettingError(f"{what} is told twice")
        told.add(x)
        probabilities[x] = check_number(what, chance)
    return probabilities


def _check_names(mdp: MDP) -> None:
    """Forms that call states and actions by their names need names that tell them apart."""
    seen: set[tuple[int, str]] = set()
    names = [mdp.state_name(s) for s in range(mdp.n_states)]
    if len(set(names)) < len(names):
        raise SettingError("several states have the same name, so names do not tell them apart; use .npz")
    for x, s in enumerate(mdp.choice_state.tolist()):
        name = mdp.action_name(x)
        if (s, name) in seen:
            raise SettingError(
                f"several actions of state {names[s][:60]!r} have the name {name[:60]!r}, so names do not tell them "
                "apart; use .npz"
            )
        seen.add((s, name))


def _to_npz(policy: Policy) -> bytes:
    content = io.BytesIO()
    np.savez_compressed(content, policy=policy.probabilities, model=np.array(policy.mdp.digest))
    return content.getvalue()


def _from_npz(content: bytes, mdp: MDP) -> Floats:
    with Npz(io.BytesIO(content), "the file") as npz:
        for name, shape in {"model": (), "policy": (mdp.n_choices,)}.items():
            if name in npz.members and npz.members[name].shape != shape:
                found = npz.members[name].shape
                raise SettingError(f"{name!r} must have the shape {shape} for {mdp.name}, found {found}")
        arrays = npz.read(["model", "policy"])
    if texts(arrays["model"]) != [mdp.digest]:
        raise SettingError("the policy belongs to another model")
    return arrays["policy"]


def _to_scheduler(policy: Policy) -> bytes:
    """As Storm prints a scheduler: a line per state, `state: choice`, numbered and named."""
    lines = ["model state:    choice(s)"]
    mdp = policy.mdp
    for s in range(mdp.n_states):
        own = range(int(mdp.first_choice[s]), int(mdp.first_choice[s + 1]))
        taken = [x for x in own if policy.probabilities[x] > 0]
        if len(taken) == 1:
            said = _ranked(mdp, taken[0], own.start)
        else:
            said = " + ".join(f"{float(policy.probabilities[x])!r}: {_ranked(mdp, x, own.start)}" for x in taken)
        lines.append(f"{s}:    {said}")
    return ("\n".join(lines) + "\n").encode()


def _ranked(mdp: MDP, choice: int, first: int) -> str:
    """Names are for people, and in one line and one pair of braces, so that a reader finds their end."""
    name = " ".join(mdp.action_name(choice).splitlines()).replace("{", "(").replace("}", ")")
    return f"{choice - first} {{{name}}}"


def _digits(text: str) -> int:
    """A whole number as everybody writes one; Python would take 1_000 as well."""
    if not text.strip().isdecimal():
        raise ValueError(f"expected a whole number, found {text.strip()[:40]!r}")
    return int(text)


def _from_scheduler(content: bytes, mdp: MDP) -> Floats:
    probabilities = np.zeros(mdp.n_choices)
    for number, line in enumerate(content.decode().rstrip("\r\n").split("\n")[1:], start=2):
        state, _, said = re.sub(r"\{[^}]*\}", "", line).partition(":")
        s = _digits(state)
        if not 0 <= s < mdp.n_states:
            raise SettingError(f"line {number}: there is no state {s} in {mdp.name}")
        if probabilities[mdp.first_choice[s] : mdp.first_choice[s + 1]].any():
            raise SettingError(f"line {number}: state {s} is told twice")
        count = int(mdp.first_choice[s + 1] - mdp.first_choice[s])
        for part in said.split(" + "):
            chance, _, rank = part.rpartition(":")
            x = _digits(rank)
            if not 0 <= x < count:
                raise SettingError(f"line {number}: state {s} has choices 0 to {count - 1}, found {x}")
            probabilities[mdp.first_choice[s] + x] = float(chance or 1)
    return probabilities


WRITERS: dict[str, Callable[[Policy], bytes]] = {
    ".json": _to_json,
    ".csv": _to_csv,
    ".npz": _to_npz,
    ".scheduler": _to_scheduler,
}
READERS: dict[str, Callable[[bytes, MDP], Floats]] = {
    ".json": _from_json,
    ".csv": _from_csv,
    ".npz": _from_npz,
    ".scheduler": _from_scheduler,
}
