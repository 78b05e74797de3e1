"""DRN, the explicit text format of Storm.

The header has @type: MDP, @reward_models, @nr_states and @nr_choices. After @model, each state has a line
`state 0 [reward] init label`, each of its choices `action name [reward]`, each transition `target : probability`.

Files have millions of lines, so lines are classified by their first character, all at once, and the numbers of all
lines of one kind are read at once; only the lines of states and actions become Python strings. Measured in processor
time on a model with 101,669 choices and 343,621 transitions, relative to `read_drn`: Storm's own parser
(stormpy.build_model_from_drn) took 1.6 times as long, without handing the model to Python, and a loop over the lines in
Python 1.6 times as long, without checks and without building the model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from scipy import sparse

from manyways.errors import OutputError, SourceError
from manyways.files import atomic
from manyways.formats.explicit_text import (
    NEWLINE,
    REWARD,
    check_start,
    distinct_names,
    first_characters,
    first_mismatch,
    numbered,
    one_line,
    one_word,
    read_lines,
    read_table,
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
from manyways.types import Bools, Floats, Ints

STATES_AT_ONCE = 10_000
TYPES = ("MDP", "DTMC")
NO_LABEL = "__NOLABEL__"
"""Storm's name for a choice without a label, in a model where other choices have one."""
STORM_COMMENT = b"// Exported by storm"
EMPTY_LABELS = "// labels without states:"
"""The format has no place for such labels, so they are written in a comment, which Storm ignores."""

STATE_LINE = re.compile(r"^[ \t]*+state[ \t]++([0-9]++)(?![^\s\[])(?:[ \t]*+\[([^\]\n]*+)\])?+([^\n]*+)$", re.MULTILINE)
ACTION_LINE = re.compile(r"^[ \t]*+action[ \t]++([^\s\[]\S*+)(?:[ \t]*+\[([^\]\n]*+)\])?+[ \t\r]*+$", re.MULTILINE)
NAME_LINE = re.compile(r"^[ \t]*+//\[([^\n]*)\][ \t\r]*+$", re.MULTILINE)
LABEL = re.compile(r'"((?:[^"\\]|\\.)*+)"|(\S++)')


def read_drn(path: Path, reward: str | None = None) -> MDP:
    """The MDP or DTMC in a DRN file; the reward of a choice is its state's reward plus its own.

    Args:
        path: the file.
        reward: the reward model to use; not needed if there is at most one.
    """
    return _DrnFile(path).model(reward)


def write_drn(mdp: MDP, path: Path) -> None:
    """Write the model, with its reward as the reward model `reward` and the label `init` for the states of its start."""
    check_start(mdp)
    mdp = with_plain_reward(mdp)
    actions = distinct_names(mdp.action_names, _action_word, "actions")
    names = names_of_states(mdp)
    states = None if names is None else distinct_names(names, one_line, "states")
    labels = {_quoted(label): mask for label, mask in mdp.labels.items()}
    with atomic(path) as file:
        write_pieces(file, _pieces(mdp, actions, states, labels))


# ---- reading ----------------------------------------------------------------------------------


class _DrnFile:
    """A DRN file, its lines classified by their first character.

    Attributes:
        begin: (lines + 1,) where each line of the model begins, and where the last one ends.
        kind: (lines,) the first character that is not a blank; a newline if there is none.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        data = read_lines(path)
        found = re.search(rb"^[ \t]*+@model[ \t\r]*+\n", data, re.MULTILINE)
        if not found:
            raise SourceError(f"{path} is not a DRN file: it has no line '@model'")
        self.by_storm = STORM_COMMENT in data[: found.start()]
        header = data[: found.start()].decode().split("\n")[:-1]
        self.header_lines = len(header) + 1
        self.empty_labels: list[str] = []
        self.header = self._read_header(header)
        self.bytes = np.frombuffer(data, np.uint8, offset=found.end())
        self.begin = np.concatenate([[0], np.flatnonzero(self.bytes == NEWLINE) + 1])
        self.kind = first_characters(self.bytes, self.begin)
        self.states, self.choices = self._lines_of(b"s"), self._lines_of(b"a")
        self.transitions = self._lines_of(b"0123456789")

    def model(self, reward: str | None) -> MDP:
        self._check_order()
        n_states = len(self.states)
        first_choice = np.append(np.searchsorted(self.choices, self.states), len(self.choices))
        if self.header["@type"] == "DTMC" and (np.diff(first_choice) != 1).any():
            state = int(np.flatnonzero(np.diff(first_choice) != 1)[0])
            self._refuse(self.states[state], f"a state of a DTMC must have exactly one action, state {state} does not")
        state_rewards, tails = self._read_states()
        names, choice_rewards = self._read_choices()
        reward_names = self._reward_names(max(_width(state_rewards), _width(choice_rewards)))
        which = reward_index(reward_names, reward, self.path)
        rewards = np.zeros(len(self.choices))
        if which is not None:
            of_state = self._rewards(state_rewards, self.states, len(reward_names))[:, which]
            own = self._rewards(choice_rewards, self.choices, len(reward_names))[:, which]
            rewards = np.repeat(of_state, np.diff(first_choice)) + own
        targets, probabilities = self._read_transitions()
        members = {label: [] for label in self.empty_labels} | states_by_label(tails, _labels_in)
        start, labels = start_and_labels(members, n_states, self.path)
        action_names, actions = numbered(names)
        return MDP.from_csr(
            sparse.csr_array(
                (probabilities, targets, np.append(np.searchsorted(self.transitions, self.choices), len(targets))),
                shape=(len(self.choices), n_states),
            ),
            rewards,
            first_choice,
            start=start,
            actions=actions,
            action_names=action_names,
            state_names=self._state_names(),
            labels=labels,
            name=self.path.stem,
        )

    def _read_header(self, lines: list[str]) -> dict[str, str]:
        """The value of each @word, which follows a colon or is the next line that is neither blank nor a comment."""
        header: dict[str, str] = {}
        open_key = None
        for number, line in enumerate(lines, start=1):
            text = line.strip()
            if text.startswith(EMPTY_LABELS):
                self.empty_labels = _labels_in(text.removeprefix(EMPTY_LABELS))
            elif text.startswith("@"):
                key, colon, value = text.partition(":")
                header[key.strip()] = value.strip()
                open_key = None if colon else key.strip()
            elif open_key is not None and not text.startswith("//"):
                header[open_key] = line.rstrip("\r")
                # Placeholders and parameters may take several lines; the first one shows that there are any.
                open_key = None if text or open_key == "@reward_models" else open_key
            elif text and not text.startswith("//") and not header.get("@placeholders"):
                raise SourceError(
                    f"{self.path}: line {number}: expected an @word or a comment before '@model', found {shortened(text)!r}"
                )
        kind = header.get("@type", "")
        if kind.upper() not in TYPES:
            raise SourceError(
                f"{self.path}: the type of the model is {shortened(kind)!r}; expected {' or '.join(TYPES)}"
            )
        header["@type"] = kind.upper()
        if header.get("@parameters", "").strip() or header.get("@placeholders", "").strip():
            raise SourceError(f"{self.path}: the model has parameters; export it with values for them")
        if (value_type := header.get("@value_type", "double")) != "double":
            raise SourceError(
                f"{self.path}: the numbers of the model are of type {shortened(value_type)!r}, expected 'double'; "
                "export it with plain numbers"
            )
        return header

    def _lines_of(self, characters: bytes) -> Ints:
        return np.flatnonzero(np.isin(self.kind, np.frombuffer(characters, np.uint8)))

    def _check_order(self) -> None:
        known = np.isin(self.kind, np.frombuffer(b"sa/\n0123456789", np.uint8))
        if not known.all():
            line = np.flatnonzero(~known)[0]
            self._refuse(line, "expected 'state', 'action', 'target : probability' or a comment")
        for what, found in (("states", self.states), ("choices", self.choices)):
            declared = self.header.get(f"@nr_{what}", "").strip()
            if declared and declared.lstrip("0") != (str(len(found)) if len(found) else ""):
                raise SourceError(
                    f"{self.path}: @nr_{what} is {shortened(declared)!r}, but {len(found)} {what} follow; is the file complete?"
                )
        if not self.states.size:
            raise SourceError(f"{self.path}: there is no state after '@model'")
        early = np.concatenate([self.choices[:1], self.transitions[:1]])
        if early.size and early.min() < self.states[0]:
            self._refuse(early.min(), "expected 'state 0' first")
        heads = np.sort(np.concatenate([self.states, self.choices]))
        owner = heads[np.searchsorted(heads, self.transitions) - 1]
        stray = np.flatnonzero(self.kind[owner] != ord("a"))
        if stray.size:
            self._refuse(self.transitions[stray[0]], "a transition must follow an action, this one does not")

    def _read_states(self) -> tuple[list[str], list[str]]:
        """(S,) the text of each state's rewards, and the rest of its line."""
        found = STATE_LINE.findall(self._text(self.states))
        numbers = read_table("".join(f"{number}\n" for number, _, _ in found).encode(), b"n\n")
        if len(found) != len(self.states) or numbers is None:
            self._refuse_first(self.states, STATE_LINE, "expected 'state NUMBER [rewards] labels'")
        wrong = np.flatnonzero(numbers[:, 0] != np.arange(len(found)))
        if wrong.size:
            self._refuse(self.states[wrong[0]], f"expected state {wrong[0]}; states must be numbered in order")
        return [rewards for _, rewards, _ in found], [tail for _, _, tail in found]

    def _read_choices(self) -> tuple[list[str], list[str]]:
        """(N,) the name of each choice's action, and the text of its rewards."""
        found = ACTION_LINE.findall(self._text(self.choices))
        if len(found) != len(self.choices):
            self._refuse_first(self.choices, ACTION_LINE, "expected 'action NAME [rewards]'")
        names = [name for name, _ in found]
        if NO_LABEL in names:  # such choices are named by their rank in their state, as in storm.py
            owner = np.searchsorted(self.states, self.choices) - 1
            rank = np.arange(len(names)) - np.searchsorted(self.choices, self.states)[owner]
            names = [f"a{r}" if name == NO_LABEL else name for name, r in zip(names, rank.tolist(), strict=True)]
        return names, [rewards for _, rewards in found]

    def _read_transitions(self) -> tuple[Ints, Floats]:
        text = self._text_bytes(self.transitions)
        numbers = read_table(text, b"n:n\n")
        if numbers is None:
            self._refuse(
                self.transitions[first_mismatch(text, b"n:n\n")],
                "expected 'target : probability' with plain numbers (no parameters, fractions or intervals)",
            )
        targets, probabilities = numbers[:, 0], np.ascontiguousarray(numbers[:, 1])
        outside = np.flatnonzero((targets >= len(self.states)) | (targets != np.floor(targets)))
        if outside.size:
            self._refuse(self.transitions[outside[0]], f"there is no such state; states are 0..{len(self.states) - 1}")
        improper = np.flatnonzero(~((probabilities >= 0) & np.isfinite(probabilities)))
        if improper.size:
            self._refuse(self.transitions[improper[0]], "a probability must be finite and not negative")
        return targets.astype(np.int64), probabilities

    def _rewards(self, texts: list[str], lines: Ints, columns: int) -> Floats:
        """(texts, columns) the numbers in brackets; an empty text means zeros."""
        rewards = np.zeros((len(texts), columns))
        given = np.array([i for i, text in enumerate(texts) if text], dtype=np.int64)
        joined = "".join(f"{text}\n" for text in texts if text).encode()
        pattern = b",".join([b"n"] * columns) + b"\n"
        numbers = read_table(joined, pattern)
        if numbers is None:
            self._refuse(
                lines[given[first_mismatch(joined, pattern)]],
                f"expected {columns} plain numbers in the brackets, one for each reward model",
            )
        if not np.isfinite(numbers).all():
            self._refuse(lines[given[np.flatnonzero(~np.isfinite(numbers).all(axis=1))[0]]], "rewards must be finite")
        rewards[given] = numbers
        return rewards

    def _reward_names(self, width: int) -> list[str]:
        """The names of the reward models, one for each of the `width` numbers in brackets."""
        line = self.header.get("@reward_models", "")
        # A separator follows each name, and a name may be empty: " steps " means '' and 'steps'.
        names = re.split(r"[ \t]", line)
        if len(names) == width + 1 and not names[-1]:
            names.pop()
        if len(names) != width:
            names = line.split()
        if width and len(names) != width:
            raise SourceError(
                f"{self.path}: @reward_models has {len(names)} names, but there are {width} numbers in brackets"
            )
        return names

    def _state_names(self) -> list[str] | None:
        """(S,) from the comment that Storm writes below each state; None unless all states have one."""
        below = self.states + 1
        if below[-1] >= len(self.kind) or (self.kind[below] != ord("/")).any():
            return None
        names = NAME_LINE.findall(self._text(below))
        if len(names) != len(below):
            return None
        return _valuations(names) if self.by_storm else [name.replace("\t& ", ",") for name in names]

    def _text_bytes(self, lines: Ints) -> bytes:
        wanted = np.zeros(len(self.kind), bool)
        wanted[lines] = True
        return self.bytes[np.repeat(wanted, np.diff(self.begin))].tobytes()

    def _text(self, lines: Ints) -> str:
        return self._text_bytes(lines).decode()

    def _refuse_first(self, lines: Ints, pattern: re.Pattern[str], message: str) -> NoReturn:
        for line, text in zip(lines, self._text(lines).split("\n"), strict=False):
            if not pattern.search(text):
                self._refuse(line, message)
        raise SourceError(f"{self.path}: {message}")

    def _refuse(self, line: Any, message: str) -> NoReturn:
        text = bytes(self.bytes[self.begin[line] : self.begin[line + 1]]).decode().strip()
        raise SourceError(
            f"{self.path}: line {self.header_lines + int(line) + 1}: {message}, found {shortened(text)!r}"
        )


def _width(rewards: list[str]) -> int:
    """The count of numbers in the first brackets."""
    return next((text.count(",") + 1 for text in rewards if text), 0)


def _valuations(comments: list[str]) -> list[str]:
    """(S,) `open=false,x=0` from Storm's `!open & x=0`, which has a tab before the `&`.

    Storm writes `!open` for a boolean that is false and nothing for one that is true. The name of a boolean is therefore
    taken from the states where it is false; one that is true everywhere is left out.
    """
    rows = [comment.split("\t& ") for comment in comments]
    if len({len(row) for row in rows}) != 1:
        return [",".join(row) for row in rows]
    columns = []
    for column in zip(*rows, strict=True):
        different = set(column)
        negated = {value[1:] for value in different if value.startswith("!")}
        if len(negated) == 1 and different <= {"", *negated, *("!" + name for name in negated)}:
            (name,) = negated
            columns.append([f"{name}={'false' if value.startswith('!') else 'true'}" for value in column])
        elif different != {""}:
            columns.append(column)
    return [",".join(parts) for parts in zip(*columns, strict=True)] or comments


def _labels_in(tail: str) -> list[str]:
    return [word or re.sub(r"\\(.)", r"\1", quoted) for quoted, word in LABEL.findall(tail)]


# ---- writing ----------------------------------------------------------------------------------


def _pieces(mdp: MDP, actions: list[str], names: list[str] | None, labels: dict[str, Bools]) -> Iterator[str]:
    """The text of the file, in pieces, with actions, states and labels as the format writes them."""
    if empty := [label for label, mask in labels.items() if not mask.any()]:
        yield f"{EMPTY_LABELS} {' '.join(empty)}\n"
    yield f"@type: MDP\n@parameters\n\n@reward_models\n{REWARD}\n"
    yield f"@nr_states\n{mdp.n_states}\n@nr_choices\n{mdp.n_choices}\n@model\n"
    tails = [""] * mdp.n_states
    for label, mask in ({"init": mdp.start > 0} | labels).items():
        for s in np.flatnonzero(mask).tolist():
            tails[s] += f" {label}"
    tails = [tail + "\n" for tail in tails]
    if names is not None:
        tails = [f"{tail}//[{name}]\n" for tail, name in zip(tails, names, strict=True)]
    for begin in range(0, mdp.n_states, STATES_AT_ONCE):
        yield from _states(mdp, range(begin, min(begin + STATES_AT_ONCE, mdp.n_states)), tails, actions)


def _states(mdp: MDP, states: range, tails: list[str], actions: list[str]) -> Iterator[str]:
    # Python numbers are faster to write than numpy's, and repr keeps every digit.
    first = mdp.first_choice[states.start : states.stop + 1].tolist()
    begin = mdp.transitions.indptr[first[0] : first[-1] + 1]
    inside = slice(int(begin[0]), int(begin[-1]))
    begin = (begin - begin[0]).tolist()
    targets, weights = mdp.transitions.indices[inside].tolist(), mdp.transitions.data[inside].tolist()
    lines = [f"\t\t{target} : {weight!r}\n" for target, weight in zip(targets, weights, strict=True)]
    choices = [
        f"\taction {actions[action]} [{reward!r}]\n" + "".join(lines[low:high])
        for action, reward, low, high in zip(
            mdp.actions[first[0] : first[-1]].tolist(),
            mdp.reward[first[0] : first[-1]].tolist(),
            begin[:-1],
            begin[1:],
            strict=True,
        )
    ]
    for s, low, high in zip(states, first[:-1], first[1:], strict=True):
        yield f"state {s} [0]{tails[s]}"
        yield "".join(choices[low - first[0] : high - first[0]])


def _action_word(name: str) -> str:
    """One word that looks neither like rewards in brackets nor like Storm's name for a choice without a label."""
    word = one_word(name)
    return "_" + word if word.startswith("[") or word == NO_LABEL else word


def _quoted(label: str) -> str:
    if "\n" in label:
        raise OutputError(
            f"the label {shortened(label)!r} contains a line break, which the format cannot hold; rename it"
        )
    if re.fullmatch(r'[^\s"\[\]\\]+', label):
        return label
    return '"' + re.sub(r'(["\\])', r"\\\1", label) + '"'


FORMATS.add(
    Format(
        "DRN, the explicit text format of Storm",
        read_drn,
        endings=(".drn",),
        settings={"reward": any_text},
        write=write_drn,
        costs=True,
        example="model.drn",
    )
)
