"""What the explicit text formats of Storm and PRISM share: large tables in text, labels, starts and rewards.

Files have millions of lines, so the numbers in one kind of line are read in one go (`table`).
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from manyways.errors import OutputError, SourceError
from manyways.model.mdp import MDP
from manyways.types import Bools, Floats, Ints

REWARD = "reward"
LARGEST_FILE = 4 * 2**30
MOST_LABEL_MARKS = 4 * 2**30
"""Labels times states: each label is a mask over all states."""
NOT_KEPT = ("init", "deadlock")
"""Labels that the formats themselves give a meaning: the start, and states that a tool has given a self-loop."""
NEWLINE, SPACE, TAB, RETURN = b"\n \t\r"


def read_bytes(path: Path) -> bytes:
    """A text file of reasonable size, ending in a newline."""
    try:
        size = path.stat().st_size
        data = path.read_bytes() if size <= LARGEST_FILE else b""
    except OSError as error:
        raise SourceError(f"cannot read {path}: {error.strerror}") from None
    except ValueError:  # a NUL in the path
        raise SourceError(f"cannot read {str(path)!r}: there can be no such file") from None
    if size > LARGEST_FILE:
        raise SourceError(f"{path} has {size:,} bytes; a model file may have at most {LARGEST_FILE:,}")
    if not data.isascii():
        try:
            data.decode()
        except UnicodeDecodeError as error:
            raise SourceError(f"{path} is not a text file: byte {error.start} is not UTF-8") from None
    return data if data.endswith(b"\n") else data + b"\n"


def first_characters(data: NDArray[np.uint8], begin: Ints) -> NDArray[np.uint8]:
    """(lines,) the first character of each line that is no blank, its newline if there is none."""
    at = begin[:-1].copy()
    blank = np.isin(np.arange(256), [SPACE, TAB, RETURN])
    left = np.flatnonzero(blank[data[at]])
    for _ in range(64):
        at[left] += 1
        left = left[blank[data[at[left]]]]
        if not left.size:
            break
    for line in left:  # so far indented that one line after the other is quicker than one column after the other
        text = data[at[line] : begin[line + 1]]
        at[line] += int(np.argmin(blank[text]))
    return data[at]


def _symbols() -> bytes:
    table = bytearray(b"?" * 256)
    for characters, symbol in ((b"0123456789+-.eE", b"n"), (b" \t\r", b" ")):
        for character in characters:
            table[character] = symbol[0]
    for character in b"\n:,":
        table[character] = character
    return bytes(table)


SYMBOLS = _symbols()
PIECE = 2**18
MOST_DIGITS = 15
"""Whole numbers of so many digits are exact as doubles."""


def table(text: bytes, pattern: bytes) -> Floats | None:
    """(lines, numbers per line) of a text whose every line is like `pattern`, such as `n:n\\n`; None if one is not.

    `n` stands for a number; blanks may be anywhere around it.
    """
    rows, columns = text.count(b"\n"), pattern.count(b"n")
    if len(text) < 2 * columns * rows:  # too short for that many numbers, and for the memory that they would take
        return None
    numbers = np.empty((rows, columns))
    begin = done = 0
    while begin < len(text):
        # In pieces that the processor's cache can hold: half the time, and little memory beside the result.
        end = text.find(b"\n", min(begin + PIECE, len(text) - 1)) + 1 or len(text)
        found = _piece(text[begin:end], pattern)
        if found is None:
            return None
        numbers[done : done + len(found)] = found
        begin, done = end, done + len(found)
    return numbers if done == rows else None


def _piece(text: bytes, pattern: bytes) -> Floats | None:
    """What `table` does, for a text of moderate length."""
    symbols = np.frombuffer(text.translate(SYMBOLS), np.uint8)
    number = symbols == ord("n")
    begins = symbols != SPACE
    begins[1:] &= ~(number[1:] & number[:-1])
    at = np.flatnonzero(begins)
    if len(at) % len(pattern):
        return None
    at, wanted = at.reshape(-1, len(pattern)), np.frombuffer(pattern, np.uint8)
    if (symbols[at] != wanted).any():
        return None
    starts = at[:, wanted == ord("n")]
    ends = np.flatnonzero(number & ~np.append(number[1:], False)).reshape(starts.shape) + 1
    numbers = np.empty(starts.shape)
    data = np.frombuffer(text, np.uint8)
    others = []
    for column in range(starts.shape[1]):
        whole = _whole_numbers(data, starts[:, column], ends[:, column])
        if whole is None:
            others.append(column)
        else:
            numbers[:, column] = whole
    if others:
        found = _any_numbers(data, starts[:, others].ravel(), ends[:, others].ravel())
        if found is None:
            return None
        numbers[:, others] = found.reshape(-1, len(others))
    return numbers


def _whole_numbers(data: NDArray[np.uint8], starts: Ints, ends: Ints) -> Ints | None:
    """The words as numbers if all are of few digits and nothing else: several times as fast as reading any numbers."""
    lengths = ends - starts
    longest = int(lengths.max(initial=0))
    if longest > MOST_DIGITS:
        return None
    total = np.zeros(len(starts), np.int64)
    for place in range(longest):
        inside = place < lengths
        digit = data[np.where(inside, starts + place, starts)] - np.uint8(ord("0"))  # what is below wraps around
        if (digit > 9).any():
            return None
        total = np.where(inside, 10 * total + digit, total)
    return total


def _any_numbers(data: NDArray[np.uint8], starts: Ints, ends: Ints) -> Floats | None:
    """The words as numbers; None if one is none."""
    change = np.zeros(len(data) + 1, np.int8)
    change[starts] += 1
    change[ends] -= 1
    text = np.where(np.cumsum(change[:-1], dtype=np.int8), data, np.uint8(SPACE)).tobytes()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # numpy only warns when it stops at what is no number
        try:
            numbers = np.fromstring(text, sep=" ")
        except (DeprecationWarning, ValueError):
            return None
    # A word such as 1.2.3 is read as several numbers; every word gives one at least, so equality shows that none is.
    return numbers if numbers.size == starts.size else None


def first_misfit(text: bytes, pattern: bytes) -> int:
    """The first line that is not like the pattern, by halving: as quick as reading the text twice."""
    before = 0
    while (lines := text.count(b"\n")) > 1:
        ends = np.flatnonzero(np.frombuffer(text, np.uint8) == NEWLINE)
        middle = int(ends[lines // 2 - 1]) + 1
        if table(text[:middle], pattern) is None:
            text = text[:middle]
        else:
            text, before = text[middle:], before + lines // 2
    return before


def labels_of(tails: Iterable[str], labels_in: Callable[[str], list[str]]) -> dict[str, list[int]]:
    """The states with each label. States are many, different ends of their lines few: each is looked at once."""
    states_with: dict[str, list[int]] = {}
    for state, tail in enumerate(tails):
        states_with.setdefault(tail, []).append(state)
    members: dict[str, list[int]] = {}
    for tail, states in states_with.items():
        for label in labels_in(tail):
            members.setdefault(label, []).extend(states)
    return members


def split_labels(members: dict[str, list[int]], n_states: int) -> tuple[Bools | None, dict[str, Bools]]:
    """The states labelled `init`, None if there are none, and the labels to keep."""
    if len(members) * n_states > MOST_LABEL_MARKS:
        raise SourceError(f"{len(members):,} labels are too many for {n_states:,} states; leave some out")
    masks = {label: np.zeros(n_states, bool) for label in members}
    for label, states in members.items():
        masks[label][states] = True
    starts = masks.get("init")
    kept = {label: mask for label, mask in masks.items() if label not in NOT_KEPT}
    return (starts if starts is not None and starts.any() else None), kept


def chosen_reward(names: list[str], reward: str | None, path: Path) -> int | None:
    """The index of the reward of that name, or of the only one; None if there is none."""
    if reward is None and len(names) <= 1:
        return 0 if names else None
    if reward in names:
        return names.index(reward)
    listed = ", ".join(repr(short(name)) for name in names[:10]) or "none"
    if reward is None:
        raise SourceError(
            f"{path}: there are {len(names)} rewards, say which one to take, as in --reward NAME: {listed}"
        )
    raise SourceError(f"{path}: there is no reward {reward!r}; there is {listed}")


def numbered(names: Iterable[str]) -> tuple[list[str], Ints]:
    """The different names in the order in which they come, and the index of each in them."""
    index: dict[str, int] = {}
    numbers = np.array([index.setdefault(name, len(index)) for name in names], dtype=np.int64)
    return list(index), numbers


def short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


def check_start(mdp: MDP) -> None:
    """These formats mark the states to start in, and all of them are meant to be equally likely."""
    inside = mdp.start > 0
    if np.abs(mdp.start[inside] * inside.sum() - 1).max() > 1e-9:
        raise OutputError(
            "the format cannot say that some states are likelier to start in than others; "
            "add a state whose one action leads to them"
        )
    if "init" in mdp.labels:
        raise OutputError("the format means the start by the label 'init'; give that label of the model another name")
    if "deadlock" in mdp.labels:
        raise OutputError(
            "the format means states without actions by the label 'deadlock'; give that label of the model another name"
        )


def write_pieces(path: Path, pieces: Iterable[str]) -> None:
    try:
        with path.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(pieces)
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror}") from None


def one_word(name: str) -> str:
    """Without blanks and control characters, which end a word."""
    return re.sub(r"[\s\x00-\x20]+", "_", name.strip()) or "_"


def one_line(name: str) -> str:
    return re.sub(r"[\n\r\t]", " ", name)


def kept_apart(names: Sequence[str], write: Callable[[str], str], what: str) -> list[str]:
    """The names as the format writes them; two that would become one are refused."""
    written = [write(name) for name in names]
    meant: dict[str, str] = {}
    for name, text in zip(names, written, strict=True):
        if meant.setdefault(text, name) != name:
            raise OutputError(
                f"the {what} {short(meant[text])!r} and {short(name)!r} would both be called {short(text)!r}, "
                "as the format holds no blanks or line breaks there; rename one of them"
            )
    return written
