"""DRN, Storm's explicit text format for models.

@type: MDP, @reward_models, @nr_states, @nr_choices, then @model with, per state, a line
`state 0 [reward] init label`, per choice `action name [reward]`, per transition `target : probability`.

Files have millions of lines, so lines are told apart by their first character, all at once, and the numbers
in one kind of line are read in one go (`table`); only the lines of states and actions become Python's strings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from scipy import sparse

from manyways.errors import OutputError, SourceError
from manyways.formats.explicit_text import (
    NEWLINE,
    REWARD,
    check_start,
    chosen_reward,
    first_characters,
    first_misfit,
    kept_apart,
    labels_of,
    numbered,
    one_line,
    one_word,
    read_bytes,
    short,
    split_labels,
    table,
    write_pieces,
)
from manyways.formats.format import FORMATS, Format, any_text
from manyways.model.as_arrays import names_of_states
from manyways.model.mdp import MDP
from manyways.types import Bools, Floats, Ints

STATES_AT_ONCE = 10_000
TYPES = ("MDP", "DTMC")
NO_LABEL = "__NOLABEL__"
"""What Storm writes as the name of a choice that has none, in a model where others have."""
STORM_COMMENT = b"// Exported by storm"
EMPTY_LABELS = "// labels without states:"
"""Such labels have no place in the format, so they stand in a comment, which Storm passes over."""

STATE_LINE = re.compile(r"^[ \t]*+state[ \t]++([0-9]++)(?![^\s\[])(?:[ \t]*+\[([^\]\n]*+)\])?+([^\n]*+)$", re.MULTILINE)
ACTION_LINE = re.compile(r"^[ \t]*+action[ \t]++([^\s\[]\S*+)(?:[ \t]*+\[([^\]\n]*+)\])?+[ \t\r]*+$", re.MULTILINE)
NAME_LINE = re.compile(r"^[ \t]*+//\[([^\n]*)\][ \t\r]*+$", re.MULTILINE)
LABEL = re.compile(r'"((?:[^"\\]|\\.)*+)"|(\S++)')


def read_drn(path: Path, reward: str | None = None) -> MDP:
    """The MDP or DTMC in a DRN file; a choice's reward is that of its state and its own.

    Args:
        path: the file.
        reward: which reward model to take; may be left out where there is only one.
    """
    return _Reading(path).model(reward)


def write_drn(mdp: MDP, path: Path) -> None:
    """Write the model with its reward as the reward model `reward`; the states of its start are labelled `init`."""
    check_start(mdp)
    actions = kept_apart(mdp.action_names, _action_word, "actions")
    names = names_of_states(mdp)
    states = None if names is None else kept_apart(names, one_line, "states")
    labels = {_quoted(label): mask for label, mask in mdp.labels.items()}
    write_pieces(path, _pieces(mdp, actions, states, labels))


# ---- reading ----------------------------------------------------------------------------------


class _Reading:
    """A DRN file, its lines sorted by kind.

    Attributes:
        begin: (lines + 1,) where each line of the model begins, and where the last one ends.
        kind: (lines,) the first character that is no blank; a newline if there is none.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        data = read_bytes(path)
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
            self._refuse(self.states[state], f"state {state} has not exactly one action, as a DTMC must have")
        state_rewards, tails = self._read_states()
        names, choice_rewards = self._read_choices()
        which = self._reward_column(reward, max(_width(state_rewards), _width(choice_rewards)))
        rewards = np.zeros(len(self.choices))
        if which is not None:
            of_state = self._rewards(state_rewards, self.states)[:, which]
            rewards = np.repeat(of_state, np.diff(first_choice)) + self._rewards(choice_rewards, self.choices)[:, which]
        targets, probabilities = self._read_transitions()
        members = labels_of(tails, _labels_in)
        starts, labels = split_labels({label: [] for label in self.empty_labels} | members, n_states)
        if starts is None:
            raise SourceError(f"{self.path}: no state has the label 'init'; give it to the state to start in")
        action_names, actions = numbered(names)
        return MDP.from_csr(
            sparse.csr_array(
                (probabilities, targets, np.append(np.searchsorted(self.transitions, self.choices), len(targets))),
                shape=(len(self.choices), n_states),
            ),
            rewards,
            first_choice,
            start=starts / starts.sum(),
            actions=actions,
            action_names=action_names,
            state_names=self._state_names(),
            labels=labels,
            name=self.path.stem,
        )

    def _read_header(self, lines: list[str]) -> dict[str, str]:
        """What stands behind each @word, or on the line below it; line breaks and comments do not count."""
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
                # Placeholders and parameters may go on for lines; one of them is enough to know that there are any.
                open_key = None if text or open_key == "@reward_models" else open_key
            elif text and not text.startswith("//") and not header.get("@placeholders"):
                raise SourceError(
                    f"{self.path}: line {number}: expected an @word or a comment before '@model', found {short(text)!r}"
                )
        kind = header.get("@type", "")
        if kind.upper() not in TYPES:
            raise SourceError(
                f"{self.path}: the model's type is {short(kind)!r}; only {' and '.join(TYPES)} can be read"
            )
        header["@type"] = kind.upper()
        if header.get("@parameters", "").strip() or header.get("@placeholders", "").strip():
            raise SourceError(f"{self.path}: the model has parameters; give them values before exporting it")
        if (value_type := header.get("@value_type", "double")) != "double":
            raise SourceError(
                f"{self.path}: the model's numbers are of type {short(value_type)!r}, expected 'double'; "
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
                    f"{self.path}: @nr_{what} is {short(declared)!r}, but {len(found)} {what} follow; is the file complete?"
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
            self._refuse(self.transitions[stray[0]], "a transition must stand below an action, this one does not")

    def _read_states(self) -> tuple[list[str], list[str]]:
        """(S,) the text of their rewards, and the rest of the line."""
        found = STATE_LINE.findall(self._text(self.states))
        numbers = table("".join(f"{number}\n" for number, _, _ in found).encode(), b"n\n")
        if len(found) != len(self.states) or numbers is None:
            self._refuse_first(self.states, STATE_LINE, "expected 'state NUMBER [rewards] labels'")
        wrong = np.flatnonzero(numbers[:, 0] != np.arange(len(found)))
        if wrong.size:
            self._refuse(self.states[wrong[0]], f"expected state {wrong[0]}; states must be numbered in order")
        return [rewards for _, rewards, _ in found], [tail for _, _, tail in found]

    def _read_choices(self) -> tuple[list[str], list[str]]:
        """(N,) the names of the actions, and the text of their rewards."""
        found = ACTION_LINE.findall(self._text(self.choices))
        if len(found) != len(self.choices):
            self._refuse_first(self.choices, ACTION_LINE, "expected 'action NAME [rewards]'")
        names = [name for name, _ in found]
        if NO_LABEL in names:  # such choices are called by their rank in their state, as `storm` does
            owner = np.searchsorted(self.states, self.choices) - 1
            rank = np.arange(len(names)) - np.searchsorted(self.choices, self.states)[owner]
            names = [f"a{r}" if name == NO_LABEL else name for name, r in zip(names, rank.tolist(), strict=True)]
        return names, [rewards for _, rewards in found]

    def _read_transitions(self) -> tuple[Ints, Floats]:
        text = self._text_bytes(self.transitions)
        numbers = table(text, b"n:n\n")
        if numbers is None:
            self._refuse(
                self.transitions[first_misfit(text, b"n:n\n")],
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

    def _rewards(self, texts: list[str], lines: Ints) -> Floats:
        """(texts, reward models); no text stands for zeros."""
        columns = len(self.reward_names)
        rewards = np.zeros((len(texts), columns))
        given = np.array([i for i, text in enumerate(texts) if text], dtype=np.int64)
        joined = "".join(f"{text}\n" for text in texts if text).encode()
        pattern = b",".join([b"n"] * columns) + b"\n"
        numbers = table(joined, pattern)
        if numbers is None:
            self._refuse(
                lines[given[first_misfit(joined, pattern)]],
                f"expected {columns} plain numbers in the brackets, one for each reward model",
            )
        if not np.isfinite(numbers).all():
            self._refuse(lines[given[np.flatnonzero(~np.isfinite(numbers).all(axis=1))[0]]], "rewards must be finite")
        rewards[given] = numbers
        return rewards

    def _reward_column(self, reward: str | None, width: int) -> int | None:
        """Which number in the brackets to take: None if there are no rewards at all."""
        line = self.header.get("@reward_models", "")
        # One separator behind each name, and a reward model may have none: " steps " are '' and 'steps'.
        names = re.split(r"[ \t]", line)
        if len(names) == width + 1 and not names[-1]:
            names.pop()
        if len(names) != width:
            names = line.split()
        if width and len(names) != width:
            raise SourceError(
                f"{self.path}: @reward_models names {len(names)} reward models, but there are {width} numbers in brackets"
            )
        self.reward_names = names
        return chosen_reward(names, reward, self.path)

    def _state_names(self) -> list[str] | None:
        """What Storm writes as a comment below each state; None unless all states have it."""
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
        raise SourceError(f"{self.path}: line {self.header_lines + int(line) + 1}: {message}, found {short(text)!r}")


def _width(rewards: list[str]) -> int:
    """How many numbers the first brackets hold."""
    return next((text.count(",") + 1 for text in rewards if text), 0)


def _valuations(comments: list[str]) -> list[str]:
    """(S,) `open=false,x=0` from Storm's `!open & x=0`, in which a tab stands before the `&`.

    Storm writes `!open` for a boolean that is false and nothing for one that is true, so its name is known from states
    in which it is false; one that never is says nothing anyway.
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
    """The file, from the actions, states and labels as it calls them."""
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
    # Python's own numbers are faster to write than numpy's, and repr keeps every digit.
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
    """One word that neither looks like rewards in brackets nor like Storm's word for a choice without a name."""
    word = one_word(name)
    return "_" + word if word.startswith("[") or word == NO_LABEL else word


def _quoted(label: str) -> str:
    if "\n" in label:
        raise OutputError(f"the label {short(label)!r} has a line break, which the format cannot hold; rename it")
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
        example="model.drn",
    )
)
