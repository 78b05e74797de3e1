"""PRISM's explicit files: one model in several text files with the same stem and different endings.

`.tra`: a line `states choices transitions`, then `source choice target probability [action]`; for a DTMC
`states transitions`, then `source target probability`. The other files are optional:
`.lab`: `0="init" 1="far"`, then `3: 0 1`. `.sta`: `(x,y)`, then `0:(0,1)`.
`.srew`, rewards of states: `states nonzeros`, then `state reward`.
`.trew`, rewards of transitions: `states choices nonzeros`, then `source choice target reward`.
PRISM numbers the reward files if there are several rewards.

Tables of numbers are read with array operations on the bytes (see explicit_text.py). Measured in processor time on a
`.tra` file with 101,669 choices and 343,621 transitions, relative to `_read_transitions`: numpy.loadtxt with declared
column types took 0.5 times as long and pandas.read_csv 0.17 times as long, both without checks and without building the
matrix. loadtxt cannot read files in which only some lines have an action name, as PRISM writes them, and pandas is an
optional dependency.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import sparse

from manyways.errors import OutputError, SourceError
from manyways.files import atomic, open_regular
from manyways.formats.explicit_text import (
    COMMENTS,
    LARGEST_FILE,
    LINES_AT_ONCE,
    REWARD,
    TableFile,
    check_start,
    distinct_names,
    last_words,
    numbered,
    one_line,
    one_word,
    parts_of_lines,
    reward_index,
    shortened,
    start_and_labels,
    states_by_label,
    with_plain_reward,
    write_pieces,
)
from manyways.formats.format import FORMATS, Format, any_text
from manyways.model.as_arrays import names_of_states
from manyways.model.mdp import MDP
from manyways.model.variables import LONGEST_TEXT, parsed
from manyways.types import Bools, Floats, Ints, Sparse

STATE_REWARDS, TRANSITION_REWARDS = (".srew", ".rews"), (".trew", ".rewt")
REWARD_TITLE = re.compile(r'#\s*Reward structure:?\s*(?:"([^"\n]*)"|(\S+))?', re.IGNORECASE)
LABEL_TITLE = re.compile(r'\s*([0-9]{1,9})\s*=\s*"([^"\n]*)"\s*')
LABEL_LINE = re.compile(r"^[ \t]*+([0-9]++)[ \t]*+:([0-9 \t\r]*+)$", re.MULTILINE)
STATE_LINE = re.compile(r"^[ \t]*+([0-9]++)[ \t]*+:[ \t]*+\(([^\n]*)\)[ \t\r]*+$", re.MULTILINE)
LONGEST_COMMENTS = 2**16
WHOLE_NAME = "name"
"""The variable in `.sta` files of ours whose values are whole names, for names that are not of the form x=0,y=1."""


def read_prism_explicit(tra: Path, reward: str | None = None) -> MDP:
    """The MDP or DTMC in a `.tra` file and the files beside it.

    The reward of a choice is its state's reward plus the expected reward of its transitions. Without a `.lab` file,
    state 0 is the start.

    Args:
        tra: the `.tra` file.
        reward: the reward to use, by its name or number; not needed if there is at most one.
    """
    layout = _read_transitions(tra)
    n_states = layout.n_states
    rewards = np.zeros(len(layout.choice))
    if files := _reward_files(tra, reward):
        states, transitions = files
        rewards += layout.expected_rewards(transitions) if transitions else 0.0
        rewards += _read_state_rewards(states, n_states)[layout.source] if states else 0.0
    labels_file, names_file = tra.with_suffix(".lab"), tra.with_suffix(".sta")
    start, labels = _read_labels(labels_file, n_states) if labels_file.exists() else (None, {})
    names, variables = _read_names(names_file, n_states) if names_file.exists() else (None, {})
    action_names, actions = numbered(layout.action_names)
    return MDP.from_csr(
        layout.matrix,
        rewards,
        np.searchsorted(layout.source, np.arange(n_states + 1)),
        start=start,
        actions=actions,
        action_names=action_names,
        state_names=names,
        variables=variables,
        labels=labels,
        name=tra.stem,
    )


def write_prism_explicit(mdp: MDP, tra: Path) -> None:
    """Write `.tra`, `.lab`, `.srew`, `.trew` and, if the states have names, `.sta`. Existing files are replaced, all
    together after the last one is written.

    A reward that all choices of a state share is written as the state's reward. Any other is written on each transition
    of its choice: the reader takes a reward that all transitions share as it is, so no digit is lost in an expectation.
    """
    check_start(mdp)
    mdp = with_plain_reward(mdp)
    first, rewards = mdp.first_choice[:-1], mdp.reward
    shared = np.minimum.reduceat(rewards, first) == np.maximum.reduceat(rewards, first)
    names = names_of_states(mdp)
    files: dict[str, Iterable[str]] = {
        ".tra": _transition_pieces(mdp, distinct_names(mdp.action_names, one_word, "actions")),
        ".lab": _label_pieces(mdp),
        ".srew": _state_reward_pieces(np.where(shared, rewards[first], 0.0)),
        ".trew": _transition_reward_pieces(mdp, ~shared[mdp.choice_state] & (rewards != 0)),
    }
    if names is not None:
        files[".sta"] = _name_pieces(distinct_names(names, one_line, "states"))
    with ExitStack() as stack:  # keeps every file open until all are written; leaving it renames them
        for ending, pieces in files.items():
            write_pieces(stack.enter_context(atomic(tra.with_suffix(ending))), pieces)
    if names is None:
        tra.with_suffix(".sta").unlink(missing_ok=True)  # one of another model would give its names to this one


# ---- reading ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Layout:
    """The content of a `.tra` file.

    Attributes:
        source: (N,) the state of each choice.
        choice: (N,) the number of each choice in the file.
        matrix: (N, S) CSR, with sorted indices and without duplicates.
    """

    n_states: int
    is_dtmc: bool
    source: Ints
    choice: Ints
    action_names: list[str]
    matrix: Sparse

    def expected_rewards(self, path: Path) -> Floats:
        """(N,) the expected reward of each choice, from a file of transition rewards."""
        file = TableFile.read(path)
        if self.is_dtmc:
            n_states, n_rows = file.sizes({2: "states nonzeros"})
            numbers = file.rows(file.rest, ("source", "target", "reward"), n_rows)
            numbers = np.insert(numbers, 1, 0.0, axis=1)
        else:
            n_states, _, n_rows = file.sizes({3: "states choices nonzeros"})
            numbers = file.rows(file.rest, ("source", "choice", "target", "reward"), n_rows)
        _check_states(file, n_states, self.n_states)
        most = int(self.choice.max()) + 1
        source, target = (file.indices(numbers[:, i], "state", n_states) for i in (0, 2))
        keys = source * most + file.indices(numbers[:, 1], "choice", most)
        row = _positions(self.source * most + self.choice, keys)
        known = (
            np.repeat(np.arange(len(self.choice)) * self.n_states, np.diff(self.matrix.indptr)) + self.matrix.indices
        )
        place = _positions(known, np.where(row < 0, -1, row * self.n_states + target))
        if (place < 0).any():
            file.refuse(int(np.flatnonzero(place < 0)[0]), "the .tra file has no such transition")
        given = np.bincount(place, file.finite(numbers[:, 3], "reward"), minlength=len(known))
        begin = self.matrix.indptr[:-1]
        lowest, highest = np.minimum.reduceat(given, begin), np.maximum.reduceat(given, begin)
        with np.errstate(over="ignore"):  # the model refuses a reward that is not finite
            return np.where(lowest == highest, lowest, np.add.reduceat(given * self.matrix.data, begin))


def _read_transitions(tra: Path) -> _Layout:
    file = TableFile.read(tra)
    sizes = file.sizes({2: "states transitions", 3: "states choices transitions"})
    n_states, n_rows, is_dtmc = sizes[0], sizes[-1], len(sizes) == 2
    columns = ("source", "target", "probability") if is_dtmc else ("source", "choice", "target", "probability")
    begins, names_begin, ends = last_words(file.rest, len(columns))
    every = np.ones(len(ends), bool)
    text = parts_of_lines(file.rest, (begins, names_begin, ends, ends + 1), (every, ~every, every))
    numbers = file.rows(text, columns, n_rows)
    if not 0 < n_states <= n_rows:
        raise SourceError(
            f"{tra}: line {file.lines_before} announces {n_states} states and {n_rows} transitions; "
            "every state needs at least one transition, which may lead to itself"
        )
    if is_dtmc:
        numbers = np.insert(numbers, 1, 0.0, axis=1)
    source, target = (file.indices(numbers[:, i], "state", n_states) for i in (0, 2))
    choice = file.indices(numbers[:, 1], "choice", n_rows)
    probability = file.finite(numbers[:, 3], "probability", least=0)
    rank = source * (int(choice.max()) + 1) + choice
    order = np.arange(n_rows) if (np.diff(rank) >= 0).all() else np.argsort(rank, kind="stable")
    rank = rank[order]
    begin = np.flatnonzero(np.append(True, rank[1:] != rank[:-1]))
    if not is_dtmc and len(begin) != sizes[1]:
        raise SourceError(
            f"{tra}: line {file.lines_before} announces {sizes[1]} choices, but {len(begin)} follow; is the file complete?"
        )
    matrix: Sparse = sparse.csr_array(
        (probability[order], target[order], np.append(begin, n_rows)), shape=(len(begin), n_states)
    )
    matrix.sum_duplicates()
    first = order[begin]
    heads = ~every
    heads[first] = True
    found = parts_of_lines(file.rest, (begins, names_begin, ends + 1), (~every, heads)).decode().split("\n")
    place = (np.cumsum(heads) - 1)[first].tolist()
    names = [found[i].strip() or str(number) for i, number in zip(place, choice[first].tolist(), strict=True)]
    return _Layout(n_states, is_dtmc, source[first], choice[first], names, matrix)


def _positions(known: Ints, wanted: Ints) -> Ints:
    """The position of each wanted number among the known ones, which are sorted; -1 if it is not there."""
    place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    return np.where(known[place] == wanted, place, -1)


def _reward_files(tra: Path, reward: str | None) -> tuple[Path | None, Path | None] | None:
    """The files of the state rewards and the transition rewards of that name; None if the model has no reward."""
    found: dict[str, list[Path | None]] = {}
    # In reverse, so that the endings that we write, .srew and .trew, win over .rews and .rewt.
    for path in sorted(tra.parent.glob("*.*"), reverse=True) if tra.parent.is_dir() else []:
        number = path.stem.removeprefix(tra.stem)
        if path.stem.startswith(tra.stem) and re.fullmatch("[0-9]{0,4}", number):
            for which, endings in enumerate((STATE_REWARDS, TRANSITION_REWARDS)):
                if path.suffix in endings:
                    pair = found.setdefault(number, [None, None])
                    pair[which] = pair[which] or path
    # With both m.srew and m1.srew, the latter belongs to another model, m1.
    if "" in found:
        found = {"": found[""]}
    numbers = sorted(found, key=lambda number: int(number or 0))
    names = [_reward_name(found[number]) or number or REWARD for number in numbers]
    which = reward_index(names, reward, tra)
    return None if which is None else (found[numbers[which]][0], found[numbers[which]][1])


def _reward_name(files: Sequence[Path | None]) -> str | None:
    """The name in the comment that newer versions of PRISM write before the rewards."""
    for path in files:
        if path is not None and (title := REWARD_TITLE.search(_first_comments(path))):
            return title[1] or title[2]
    return None


def _first_comments(path: Path) -> str:
    """The comments at the beginning of a file, without reading all of a large one."""
    with open_regular(path, LARGEST_FILE) as file:
        found = COMMENTS.match(file.read(LONGEST_COMMENTS) + b"\n")
    return found[0].decode(errors="replace") if found else ""


def _read_state_rewards(path: Path, n_states: int) -> Floats:
    file = TableFile.read(path)
    announced, n_rows = file.sizes({2: "states nonzeros"})
    _check_states(file, announced, n_states)
    numbers = file.rows(file.rest, ("state", "reward"), n_rows)
    states = file.indices(numbers[:, 0], "state", n_states)
    return np.bincount(states, file.finite(numbers[:, 1], "reward"), minlength=n_states).astype(np.float64)


def _check_states(file: TableFile, announced: int, n_states: int) -> None:
    if announced != n_states:
        raise SourceError(
            f"{file.path}: line {file.lines_before} announces {announced} states, but the .tra file has {n_states}; "
            "do they belong to the same model?"
        )


def _read_labels(path: Path, n_states: int) -> tuple[Floats, dict[str, Bools]]:
    """(S,) the start and the masks of the labels."""
    file = TableFile.read(path)
    if LABEL_TITLE.sub("", file.title):
        raise SourceError(
            f'{path}: line {file.lines_before}: expected labels such as 0="init", found {shortened(file.title)!r}'
        )
    label = {int(number): name for number, name in LABEL_TITLE.findall(file.title)}
    found = LABEL_LINE.findall(file.rest.decode())
    _check_all_found(file, len(found), LABEL_LINE, "expected 'state: labels' in numbers")
    states = _state_numbers(file, [state for state, _ in found], n_states).tolist()

    def names_in(tail: str) -> list[str]:
        numbers = [int(word) if len(word) < 10 else -1 for word in tail.split()]
        unknown = [number for number in numbers if number not in label]
        if unknown:
            line = next(line for line, (_, other) in enumerate(found) if other == tail)
            file.refuse(line, "the first line has no such label")
        return [label[number] for number in numbers]

    members = states_by_label((tail for _, tail in found), names_in)
    # Labels without states are kept.
    members = {name: [states[line] for line in members.get(name, [])] for name in label.values()}
    return start_and_labels(members, n_states, path)


def _read_names(path: Path, n_states: int) -> tuple[list[str], dict[str, np.ndarray]]:
    """(S,) the names of the states, and by name (S,) the values of their variables."""
    file = TableFile.read(path)
    if not (file.title.startswith("(") and file.title.endswith(")")):
        raise SourceError(
            f"{path}: line {file.lines_before}: expected variables such as (x,y), found {shortened(file.title)!r}"
        )
    variables = file.title[1:-1].split(",")
    found = STATE_LINE.findall(file.rest.decode())
    _check_all_found(file, len(found), STATE_LINE, "expected 'state:(values)'")
    states = _state_numbers(file, [state for state, _ in found], n_states)
    names, rows = [""] * n_states, [[""]] * n_states
    if len(found) != n_states or (np.bincount(states, minlength=n_states) != 1).any():
        raise SourceError(f"{path}: expected a line for each of the {n_states} states, found {len(found)}")
    for line, (state, (_, text)) in enumerate(zip(states.tolist(), found, strict=True)):
        values = text.split(",")
        if variables == [WHOLE_NAME]:
            names[state] = text
        elif len(values) == len(variables):
            names[state] = ",".join([f"{variable}={value}" for variable, value in zip(variables, values, strict=True)])
            rows[state] = values
        else:
            file.refuse(line, f"expected {len(variables)} values")
    titles = [variable.strip() for variable in variables]
    if variables == [WHOLE_NAME] or len(set(titles)) < len(titles) or not all(titles):
        return names, {}
    columns = ([value[:LONGEST_TEXT] for value in column] for column in zip(*rows, strict=True))
    return names, {title: parsed(np.array(column, np.str_)) for title, column in zip(titles, columns, strict=True)}


def _state_numbers(file: TableFile, texts: list[str], n_states: int) -> Ints:
    numbers = np.array([float(text) if len(text) < 16 else np.inf for text in texts], dtype=np.float64)
    return file.indices(numbers, "state", n_states)


def _check_all_found(file: TableFile, n_found: int, pattern: re.Pattern[str], message: str) -> None:
    if n_found != file.rest.count(b"\n"):
        for line, text in enumerate(file.rest.decode().split("\n")):
            if not pattern.search(text):
                file.refuse(line, message)


# ---- writing ----------------------------------------------------------------------------------


def _transition_pieces(mdp: MDP, actions: Sequence[str]) -> Iterator[str]:
    matrix = mdp.transitions
    yield f"{mdp.n_states} {mdp.n_choices} {matrix.nnz}\n"
    heads = _heads(mdp)
    for choices in _parts(mdp.n_choices):
        lengths = np.diff(matrix.indptr[choices.start : choices.stop + 1])
        inside = slice(int(matrix.indptr[choices.start]), int(matrix.indptr[choices.stop]))
        row = np.repeat(np.arange(choices.start, choices.stop), lengths).tolist()
        tails = [actions[action] for action in mdp.actions[choices].tolist()]
        yield "".join(
            [
                f"{heads[x]}{target} {weight!r} {tails[x - choices.start]}\n"
                for x, target, weight in zip(
                    row, matrix.indices[inside].tolist(), matrix.data[inside].tolist(), strict=True
                )
            ]
        )


def _transition_reward_pieces(mdp: MDP, wanted: Bools) -> Iterator[str]:
    """`wanted` (N,) marks the choices whose reward is written."""
    matrix = mdp.transitions
    row = np.repeat(np.arange(mdp.n_choices), np.diff(matrix.indptr))
    chosen = np.flatnonzero(wanted[row])
    yield f"{mdp.n_states} {mdp.n_choices} {len(chosen)}\n"
    heads, rewards = _heads(mdp), mdp.reward.tolist()
    for part in _parts(len(chosen)):
        here = chosen[part]
        yield "".join(
            [
                f"{heads[x]}{target} {rewards[x]!r}\n"
                for x, target in zip(row[here].tolist(), matrix.indices[here].tolist(), strict=True)
            ]
        )


def _heads(mdp: MDP) -> list[str]:
    """(N,) `source choice `, the beginning of each line of a choice."""
    rank = np.arange(mdp.n_choices) - mdp.first_choice[mdp.choice_state]
    return [f"{state} {number} " for state, number in zip(mdp.choice_state.tolist(), rank.tolist(), strict=True)]


def _parts(length: int) -> Iterator[slice]:
    for begin in range(0, length, LINES_AT_ONCE):
        yield slice(begin, min(begin + LINES_AT_ONCE, length))


def _state_reward_pieces(rewards: Floats) -> list[str]:
    states = np.flatnonzero(rewards)
    lines = [f"{s} {reward!r}\n" for s, reward in zip(states.tolist(), rewards[states].tolist(), strict=True)]
    return [f"{len(rewards)} {len(states)}\n", *lines]


def _label_pieces(mdp: MDP) -> list[str]:
    masks = {"init": mdp.start > 0} | dict(mdp.labels)
    for label in masks:
        if '"' in label or "\n" in label:
            raise OutputError(
                f"the label {shortened(label)!r} contains a quote or a line break, which the format cannot hold; rename it"
            )
    numbers = [""] * mdp.n_states
    for number, mask in enumerate(masks.values()):
        for s in np.flatnonzero(mask).tolist():
            numbers[s] += f" {number}"
    return [
        " ".join(f'{number}="{label}"' for number, label in enumerate(masks)) + "\n",
        *[f"{s}:{text}\n" for s, text in enumerate(numbers) if text],
    ]


def _name_pieces(names: Sequence[str]) -> list[str]:
    """The lines of the `.sta` file: variables if all names have the form x=0,y=1, else one variable with the names."""
    split = [[part.partition("=") for part in name.split(",")] for name in names]
    variables = [[variable for variable, _, _ in parts] for parts in split]
    alike = all(these == variables[0] != [WHOLE_NAME] for these in variables)
    proper = all(re.fullmatch(r"[A-Za-z_]\w*", variable) for variable in variables[0])
    if alike and proper and all(re.fullmatch(r"-?[0-9]+|true|false", value) for row in split for _, _, value in row):
        title, values = ",".join(variables[0]), [",".join(value for _, _, value in parts) for parts in split]
    else:
        title, values = WHOLE_NAME, list(names)
    return [f"({title})\n", *[f"{s}:({value})\n" for s, value in enumerate(values)]]


FORMATS.add(
    Format(
        "explicit files of PRISM",
        read_prism_explicit,
        endings=(".tra",),
        settings={"reward": any_text},
        write=write_prism_explicit,
        costs=True,
        example="model.tra",
    )
)
