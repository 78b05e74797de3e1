"""What the explicit text formats of Storm and PRISM share: tables of numbers, labels, starts and rewards.

Files have millions of lines, so the numbers of all lines of one kind are read at once (`read_table`), with array
operations on the bytes. Measured in processor time on the 343,621 transitions of a `.tra` file with 101,669 choices,
without action names, relative to `read_table`: numpy.loadtxt took 1.4 times as long with all columns as floats and 0.7
times as long with declared integer columns; pandas.read_csv took 0.13 times as long, but pandas is an optional
dependency. So the hand-written table is faster only than loadtxt with floats, the variant with the same interface.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NoReturn

import numpy as np
from numpy.typing import NDArray

from manyways.errors import OutputError, SourceError
from manyways.files import read_bytes
from manyways.model.mdp import MDP
from manyways.types import Bools, Floats, Ints

REWARD = "reward"
"""The name of the reward in files that we write."""
LARGEST_FILE = 4 * 2**30
MOST_LABEL_ENTRIES = 4 * 2**30
"""Labels times states: each label is a mask over all states."""
RESERVED_LABELS = ("init", "deadlock")
"""Labels with a meaning in the formats: the start, and states to which a tool has added a self-loop."""
NEWLINE, SPACE, TAB, RETURN = b"\n \t\r"
LINES_AT_ONCE = 100_000
COMMENTS = re.compile(rb"(?:[ \t\r]*+(?:#[^\n]*+)?\n)*+")
"""The comments and blank lines at the beginning of a file of PRISM."""


# ---- lines of text ----------------------------------------------------------------------------


def read_lines(path: Path) -> bytes:
    """The content of a UTF-8 text file, with a newline at its end."""
    content = read_bytes(path, LARGEST_FILE)
    if not content.isascii():
        try:
            content.decode()
        except UnicodeDecodeError as error:
            raise SourceError(f"{path} is not a text file: byte {error.start} is not UTF-8") from None
    return content if content.endswith(b"\n") else content + b"\n"


def first_characters(data: NDArray[np.uint8], begin: Ints) -> NDArray[np.uint8]:
    """(lines,) the first character of each line that is not a blank; the newline of lines that have only blanks."""
    at = begin[:-1].copy()
    blank = np.isin(np.arange(256), [SPACE, TAB, RETURN])
    left = np.flatnonzero(blank[data[at]])
    for _ in range(64):
        at[left] += 1
        left = left[blank[data[at[left]]]]
        if not left.size:
            break
    for line in left:  # few lines are indented that far, so each is searched by itself
        text = data[at[line] : begin[line + 1]]
        at[line] += int(np.argmin(blank[text]))
    return data[at]


def last_words(text: bytes, columns: int) -> tuple[Ints, Ints, Ints]:
    """(lines,) the positions where each line begins, where the word after its columns begins, and where it ends.

    In lines without a word after the columns, the second position is the end.
    """
    data = np.frombuffer(text, np.uint8)
    ends = np.flatnonzero(data == NEWLINE)
    begins = np.append(0, ends + 1)[: len(ends)]
    names = ends.copy()
    for low in range(0, len(ends), LINES_AT_ONCE):  # the positions of all words at once would need the most memory
        lines = slice(low, low + LINES_AT_ONCE)
        offset = begins[low]
        part = data[offset : ends[lines][-1] + 1]
        word = part > SPACE
        word[1:] &= part[:-1] <= SPACE
        words = np.flatnonzero(word) + offset
        until = np.searchsorted(words, ends[lines])
        named = np.diff(until, prepend=0) == columns + 1
        names[lines][named] = words[until[named] - 1]
    return begins, names, ends


def parts_of_lines(text: bytes, cuts: Sequence[Ints], wanted: Sequence[Bools]) -> bytes:
    """The parts of lines between each cut and the next, for the lines where that part is wanted.

    Args:
        text: the lines.
        cuts: (lines,) positions each, one more than there are parts; together the parts make up the whole text.
        wanted: (lines,) for each part, in which lines it is wanted.
    """
    lengths = np.diff(np.stack(cuts, axis=1), axis=1).ravel()
    return np.frombuffer(text, np.uint8)[np.repeat(np.stack(wanted, axis=1).ravel(), lengths)].tobytes()


def shortened(text: str) -> str:
    """A text for a message, of at most 60 characters."""
    return text if len(text) <= 60 else text[:57] + "..."


# ---- tables of numbers ------------------------------------------------------------------------


def _symbol_table() -> bytes:
    """(256,) for each byte: n for a part of a number, a space for a blank, itself for a separator, ? for all others."""
    table = bytearray(b"?" * 256)
    for characters, symbol in ((b"0123456789+-.eE", b"n"), (b" \t\r", b" ")):
        for character in characters:
            table[character] = symbol[0]
    for character in b"\n:,":
        table[character] = character
    return bytes(table)


SYMBOLS = _symbol_table()
BYTES_AT_ONCE = 2**18
MOST_DIGITS = 15
"""Integers with at most this many digits are exact in floating point."""


def read_table(text: bytes, pattern: bytes) -> Floats | None:
    """(lines, numbers per line) of a text in which every line matches `pattern`, such as `n:n\\n`; None otherwise.

    `n` stands for a number; blanks may surround it.
    """
    rows, columns = text.count(b"\n"), pattern.count(b"n")
    if len(text) < 2 * columns * rows:  # too short for so many numbers, so do not allocate memory for them
        return None
    numbers = np.empty((rows, columns))
    begin = done = 0
    while begin < len(text):
        # Pieces that fit into the processor's cache halve the time, and need little memory besides the result.
        end = text.find(b"\n", min(begin + BYTES_AT_ONCE, len(text) - 1)) + 1 or len(text)
        found = _read_piece(text[begin:end], pattern)
        if found is None:
            return None
        numbers[done : done + len(found)] = found
        begin, done = end, done + len(found)
    return numbers if done == rows else None


def first_mismatch(text: bytes, pattern: bytes) -> int:
    """The first line that does not match the pattern, by bisection; as fast as reading the text twice."""
    before = 0
    while (lines := text.count(b"\n")) > 1:
        ends = np.flatnonzero(np.frombuffer(text, np.uint8) == NEWLINE)
        middle = int(ends[lines // 2 - 1]) + 1
        if read_table(text[:middle], pattern) is None:
            text = text[:middle]
        else:
            text, before = text[middle:], before + lines // 2
    return before


def _read_piece(text: bytes, pattern: bytes) -> Floats | None:
    """As `read_table`, for a text of moderate length."""
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
        integers = _parse_integers(data, starts[:, column], ends[:, column])
        if integers is None:
            others.append(column)
        else:
            numbers[:, column] = integers
    if others:
        found = _parse_numbers(data, starts[:, others].ravel(), ends[:, others].ravel())
        if found is None:
            return None
        numbers[:, others] = found.reshape(-1, len(others))
    return numbers


def _parse_integers(data: NDArray[np.uint8], starts: Ints, ends: Ints) -> Ints | None:
    """The words as integers if all consist of few digits, else None; several times as fast as `_parse_numbers`."""
    lengths = ends - starts
    longest = int(lengths.max(initial=0))
    if longest > MOST_DIGITS:
        return None
    total = np.zeros(len(starts), np.int64)
    for place in range(longest):
        inside = place < lengths
        digit = data[np.where(inside, starts + place, starts)] - np.uint8(ord("0"))  # below "0" it wraps around
        if (digit > 9).any():
            return None
        total = np.where(inside, 10 * total + digit, total)
    return total


def _parse_numbers(data: NDArray[np.uint8], starts: Ints, ends: Ints) -> Floats | None:
    """The words as numbers; None if one of them is not a number."""
    change = np.zeros(len(data) + 1, np.int8)
    change[starts] += 1
    change[ends] -= 1
    text = np.where(np.cumsum(change[:-1], dtype=np.int8), data, np.uint8(SPACE)).tobytes()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # numpy only warns when it stops at a word that is not a number
        try:
            numbers = np.fromstring(text, sep=" ")
        except (DeprecationWarning, ValueError):
            return None
    # numpy reads a word such as 1.2.3 as several numbers, so the counts agree only if every word is one number.
    return numbers if numbers.size == starts.size else None


@dataclass(frozen=True)
class TableFile:
    """A file of PRISM after its comments: the first line, and the rest, whose lines all have the same form.

    Attributes:
        title: the first line.
        rest: the other lines.
        lines_before: the number of lines before the rest.
    """

    path: Path
    title: str
    rest: bytes
    lines_before: int

    @classmethod
    def read(cls, path: Path) -> TableFile:
        data = read_lines(path)
        begins = COMMENTS.match(data)
        comments = data[: begins.end() if begins else 0]
        end = data.find(b"\n", len(comments)) + 1
        if not end:
            raise SourceError(f"{path} is empty, expected a line with its sizes or names")
        rest = data[end:].rstrip()
        return cls(
            path,
            data[len(comments) : end].decode().strip(),
            rest + b"\n" if rest else b"",
            comments.count(b"\n") + 1,
        )

    def sizes(self, expected: dict[int, str]) -> list[int]:
        """The integers in the first line; `expected` describes them, by their count."""
        words = self.title.split()
        if len(words) not in expected or not all(re.fullmatch("[0-9]{1,15}", word) for word in words):
            wanted = " or ".join(repr(what) for what in expected.values())
            raise SourceError(
                f"{self.path}: line {self.lines_before}: expected {wanted}, found {shortened(self.title)!r}"
            )
        return [int(word) for word in words]

    def rows(self, text: bytes, columns: Sequence[str], n_rows: int) -> Floats:
        """(n_rows, columns) the numbers in a text, which must have `n_rows` lines."""
        pattern = b"n" * len(columns) + b"\n"
        numbers = read_table(text, pattern)
        if numbers is None:
            self.refuse(first_mismatch(text, pattern), f"expected '{' '.join(columns)}' in plain numbers")
        if len(numbers) != n_rows:
            raise SourceError(
                f"{self.path}: line {self.lines_before} announces {n_rows} lines, but {len(numbers)} follow; "
                "is the file complete?"
            )
        return numbers

    def indices(self, numbers: Floats, what: str, below: int) -> Ints:
        """A column as integers; refuses numbers that are not integers from 0 to `below` - 1."""
        bad = np.flatnonzero((numbers != np.floor(numbers)) | (numbers < 0) | (numbers >= below))
        if bad.size:
            self.refuse(int(bad[0]), f"the {what} must be an integer from 0 to {below - 1}")
        return numbers.astype(np.int64)

    def finite(self, numbers: Floats, what: str, least: float = -np.inf) -> Floats:
        bad = np.flatnonzero(~(np.isfinite(numbers) & (numbers >= least)))
        if bad.size:
            self.refuse(int(bad[0]), f"the {what} must be finite{' and not negative' if least == 0 else ''}")
        return np.ascontiguousarray(numbers)

    def refuse(self, line: int, message: str) -> NoReturn:
        text = self.rest.split(b"\n", line + 1)[line].decode().strip()
        raise SourceError(f"{self.path}: line {self.lines_before + line + 1}: {message}, found {shortened(text)!r}")


# ---- labels, rewards and names ----------------------------------------------------------------


def states_by_label(tails: Iterable[str], labels_in: Callable[[str], list[str]]) -> dict[str, list[int]]:
    """The states with each label, from the ends of their lines. `labels_in` is called once for each distinct end."""
    states_with: dict[str, list[int]] = {}
    for state, tail in enumerate(tails):
        states_with.setdefault(tail, []).append(state)
    members: dict[str, list[int]] = {}
    for tail, states in states_with.items():
        for label in labels_in(tail):
            members.setdefault(label, []).extend(states)
    return members


def start_and_labels(members: dict[str, list[int]], n_states: int, path: Path) -> tuple[Floats, dict[str, Bools]]:
    """(S,) the start, uniform over the states with the label `init`, and the masks of the labels that are kept."""
    if len(members) * n_states > MOST_LABEL_ENTRIES:
        raise SourceError(f"{path}: {len(members):,} labels are too many for {n_states:,} states; remove some")
    masks = {label: np.zeros(n_states, bool) for label in members}
    for label, states in members.items():
        masks[label][states] = True
    starts = masks.get("init")
    if starts is None or not starts.any():
        raise SourceError(f"{path}: no state has the label 'init'; add it to the state to start in")
    return starts / starts.sum(), {label: mask for label, mask in masks.items() if label not in RESERVED_LABELS}


def reward_index(names: list[str], reward: str | None, path: Path) -> int | None:
    """The index of the reward of that name, or of the only one; None if the model has no reward."""
    if reward is None and len(names) <= 1:
        return 0 if names else None
    if reward in names:
        return names.index(reward)
    listed = ", ".join(repr(shortened(name)) for name in names[:10]) or "none"
    if reward is None:
        raise SourceError(
            f"{path} has {len(names)} rewards, {listed}; choose one, as in {path.name}?reward={shortened(names[-1])}"
        )
    raise SourceError(f"{path} has no reward {reward!r}; it has {listed}")


def numbered(names: Iterable[str]) -> tuple[list[str], Ints]:
    """The distinct names in order of appearance, and the index of each name in them."""
    index: dict[str, int] = {}
    numbers = np.array([index.setdefault(name, len(index)) for name in names], dtype=np.int64)
    return list(index), numbers


# ---- writing ----------------------------------------------------------------------------------


def with_plain_reward(mdp: MDP) -> MDP:
    """The model to write where a file cannot say that a reward is minus a cost: its reward is the cost itself."""
    return mdp.minimising() if mdp.costs else mdp


def check_start(mdp: MDP) -> None:
    """Refuse to write a start that is not uniform, and labels that the formats reserve."""
    inside = mdp.start > 0
    if np.abs(mdp.start[inside] * inside.sum() - 1).max() > 1e-9:
        raise OutputError(
            "the format cannot hold a start in which some states are likelier than others; "
            "add a state with one action that leads to them"
        )
    if "init" in mdp.labels:
        raise OutputError("the format marks the start with the label 'init'; rename the model's label of that name")
    if "deadlock" in mdp.labels:
        raise OutputError(
            "the format marks states without actions with the label 'deadlock'; rename the model's label of that name"
        )


def write_pieces(file: BinaryIO, pieces: Iterable[str]) -> None:
    file.writelines(piece.encode() for piece in pieces)


def one_word(name: str) -> str:
    """The name with blanks and control characters, which end a word, replaced by underscores."""
    return re.sub(r"[\s\x00-\x20]+", "_", name.strip()) or "_"


def one_line(name: str) -> str:
    """The name with line breaks and tabs replaced by spaces."""
    return re.sub(r"[\n\r\t]", " ", name)


def distinct_names(names: Sequence[str], write: Callable[[str], str], what: str) -> list[str]:
    """The names as the format writes them; refuses two different names that would be written the same."""
    written = [write(name) for name in names]
    original: dict[str, str] = {}
    for name, text in zip(names, written, strict=True):
        if original.setdefault(text, name) != name:
            raise OutputError(
                f"the {what} {shortened(original[text])!r} and {shortened(name)!r} would both be written as "
                f"{shortened(text)!r}, because the format cannot hold blanks or line breaks there; rename one of them"
            )
    return written
