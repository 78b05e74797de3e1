"""Files of one policy, by their ending.

`.json` and `.csv` name every state, action and probability, `.csv` so that spreadsheets show names and do not evaluate
them (`files.spreadsheet_cells`); `.npz` holds the (N,) array; `.scheduler` is text as Storm
prints schedulers, one line per state for deterministic policies.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np

from manyways.errors import ManywaysError, OutputError, SettingError, SourceError, check_number
from manyways.files import read_bytes
from manyways.files.spreadsheet_cells import cell, text_of
from manyways.files.zipped_arrays import DAMAGED, Npz, reason, texts
from manyways.model.mdp import MDP
from manyways.types import Floats

FORMATS = (".json", ".csv", ".npz", ".scheduler")
COLUMNS = ("state", "action", "probability")
LARGEST = 4 * 2**30


def check_policy_path(path: Path) -> None:
    """Raise an `OutputError` unless the ending of `path` is one of a policy file; called before the work."""
    if path.suffix not in FORMATS:
        raise OutputError(f"cannot write {path}: a policy ends in one of {', '.join(FORMATS)}")


def to_bytes(mdp: MDP, probabilities: Floats, ending: str) -> bytes:
    """The content of a policy file with this ending, for an (N,) policy."""
    return WRITERS[ending](mdp, probabilities)


def read_file(path: Path, mdp: MDP) -> Floats:
    """(N,) the policy in a file, for the model that it belongs to; not yet checked to be one."""
    if path.suffix not in FORMATS:
        raise SourceError(f"cannot read {path}: a policy ends in one of {', '.join(FORMATS)}")
    content = read_bytes(path, LARGEST)
    try:
        return READERS[path.suffix](content, mdp)
    except ManywaysError as error:
        raise SourceError(f"{path}: {error}") from None
    except (*DAMAGED, csv.Error) as error:
        raise SourceError(f"{path} is not a policy file: {reason(error)}") from None


def _rows(mdp: MDP, probabilities: Floats) -> list[tuple[str, str, float]]:
    """(state, action, probability) of every choice that is ever taken."""
    owner = mdp.choice_state
    return [
        (mdp.state_name(int(owner[x])), mdp.action_name(int(x)), float(probabilities[x]))
        for x in np.flatnonzero(probabilities)
    ]


def _to_json(mdp: MDP, probabilities: Floats) -> bytes:
    check_names(mdp)
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in _rows(mdp, probabilities)]
    return (json.dumps({"model": mdp.digest, "policy": rows}, indent=1) + "\n").encode()


def _from_json(content: bytes, mdp: MDP) -> Floats:
    read = json.loads(content)
    if read["model"] != mdp.digest:
        raise SettingError("the policy belongs to another model")
    return _from_rows([(row["state"], row["action"], row["probability"]) for row in read["policy"]], mdp)


def _to_csv(mdp: MDP, probabilities: Floats) -> bytes:
    check_names(mdp)
    text = io.StringIO(newline="")
    text.write(",".join(COLUMNS) + "\n")
    writer = csv.writer(
        text, lineterminator="\n", quoting=csv.QUOTE_ALL
    )  # unquoted, a carriage return would end a line
    rows = _rows(mdp, probabilities)
    writer.writerows((cell(state), cell(action), repr(chance)) for state, action, chance in rows)
    return text.getvalue().encode()


def _from_csv(content: bytes, mdp: MDP) -> Floats:
    lines = csv.reader(io.StringIO(content.decode(), newline=""), strict=True)
    if tuple(next(lines, ())) != COLUMNS:
        raise SettingError(f"the first line must be {','.join(COLUMNS)}")
    return _from_rows([(text_of(state), text_of(action), float(chance)) for state, action, chance in lines], mdp)


def _from_rows(rows: list[tuple[str, str, float]], mdp: MDP) -> Floats:
    check_names(mdp)
    states = {mdp.state_name(s): s for s in range(mdp.n_states)}
    choice = {(int(mdp.choice_state[x]), mdp.action_name(x)): x for x in range(mdp.n_choices)}
    probabilities, given = np.zeros(mdp.n_choices), set[int]()
    for state, action, chance in rows:
        if state not in states:
            raise SettingError(f"there is no state {str(state)[:60]!r} in {mdp.name}")
        if (states[state], action) not in choice:
            raise SettingError(f"state {state!r} of {mdp.name} offers no action {str(action)[:60]!r}")
        what = f"the probability of action {action[:60]!r} in state {state[:60]!r}"
        x = choice[states[state], action]
        if x in given:
            raise SettingError(f"{what} is given twice")
        given.add(x)
        probabilities[x] = check_number(what, chance)
    return probabilities


def check_names(mdp: MDP) -> None:
    """Files that name states and actions need names that are unique."""
    seen: set[tuple[int, str]] = set()
    names = [mdp.state_name(s) for s in range(mdp.n_states)]
    if len(set(names)) < len(names):
        raise SettingError("several states have the same name; save the policy as .npz")
    for x, s in enumerate(mdp.choice_state.tolist()):
        name = mdp.action_name(x)
        if (s, name) in seen:
            raise SettingError(
                f"several actions of state {names[s][:60]!r} have the name {name[:60]!r}; save the policy as .npz"
            )
        seen.add((s, name))


def _to_npz(mdp: MDP, probabilities: Floats) -> bytes:
    content = io.BytesIO()
    np.savez_compressed(content, policy=probabilities, model=np.array(mdp.digest))
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


def _to_scheduler(mdp: MDP, probabilities: Floats) -> bytes:
    """As Storm prints a scheduler: a line per state, `state: choice`, numbered and named."""
    lines = ["model state:    choice(s)"]
    for s in range(mdp.n_states):
        own = range(int(mdp.first_choice[s]), int(mdp.first_choice[s + 1]))
        taken = [x for x in own if probabilities[x] > 0]
        if len(taken) == 1:
            said = _ranked(mdp, taken[0], own.start)
        else:
            said = " + ".join(f"{float(probabilities[x])!r}: {_ranked(mdp, x, own.start)}" for x in taken)
        lines.append(f"{s}:    {said}")
    return ("\n".join(lines) + "\n").encode()


def _ranked(mdp: MDP, choice: int, first: int) -> str:
    """Rank and name of a choice; the name is put on one line without braces, so that readers find its end."""
    name = " ".join(mdp.action_name(choice).splitlines()).replace("{", "(").replace("}", ")")
    return f"{choice - first} {{{name}}}"


def _digits(text: str) -> int:
    """An integer in plain digits; Python would take 1_000 as well."""
    if not text.strip().isdecimal():
        raise ValueError(f"expected an integer, found {text.strip()[:40]!r}")
    return int(text)


def _from_scheduler(content: bytes, mdp: MDP) -> Floats:
    probabilities = np.zeros(mdp.n_choices)
    for number, line in enumerate(content.decode().rstrip("\r\n").split("\n")[1:], start=2):
        state, _, said = re.sub(r"\{[^}]*\}", "", line).partition(":")
        s = _digits(state)
        if not 0 <= s < mdp.n_states:
            raise SettingError(f"line {number}: there is no state {s} in {mdp.name}")
        if probabilities[mdp.first_choice[s] : mdp.first_choice[s + 1]].any():
            raise SettingError(f"line {number}: state {s} is given twice")
        count = int(mdp.first_choice[s + 1] - mdp.first_choice[s])
        for part in said.split(" + "):
            chance, _, rank = part.rpartition(":")
            x = _digits(rank)
            if not 0 <= x < count:
                raise SettingError(f"line {number}: state {s} has choices 0 to {count - 1}, found {x}")
            probabilities[mdp.first_choice[s] + x] = float(chance or 1)
    return probabilities


WRITERS: dict[str, Callable[[MDP, Floats], bytes]] = {
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
