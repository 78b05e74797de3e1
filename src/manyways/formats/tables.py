"""Tables of transitions: CSV and Excel files, and data frames of pandas and polars.

A row is one transition: `state, action, next, prob, reward`. Columns are found by their names, in any order and in any of
the spellings of `SPELLINGS`, whatever their capitals, blanks and underscores. `prob` and `reward` may be left out: moves are
certain then, and nothing is earned. A column `cost` in place of `reward` gives a model whose costs are minimised. Optional:

- `label`: labels of the row's `state`, separated by `|`;
- `start`: of the row's `state`, `yes`, `true` or a number, in proportion to which the model starts there. Without the column,
  it starts in the state of the first row;
- any further column that says the same in all rows of a state: a variable of the states (`MDP.variables`), with numbers,
  booleans or texts of at most 60 characters. `state_wear` is called `wear`. An empty cell says nothing. Columns whose names
  begin with `next` are left out, and so are those that say the same about all states, unless they are called `state_...`.

A state without rows of its own is an end: it has the label "end" and an action "stay" that leads back to it. The setting
`restart=end` starts the next episode there.

Columns are separated by commas, semicolons, tabs or bars. With semicolons, numbers may have a decimal comma, as spreadsheets
write them in many countries.
"""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from manyways.errors import ModelError, SettingError, SourceError
from manyways.files import atomic, open_regular, read_bytes
from manyways.files.data_frames import the_pandas
from manyways.files.spreadsheet_cells import cell, text_of
from manyways.formats.format import FORMATS, Format, any_text
from manyways.model.as_arrays import names_of_states
from manyways.model.building import summed_by_choice
from manyways.model.graph import END
from manyways.model.mdp import MDP
from manyways.model.variables import LONGEST_TEXT, Values, parsed
from manyways.types import Floats, Ints

SPELLINGS = {
    "state": ("state", "s", "from", "fromstate", "source", "current", "currentstate"),
    "action": ("action", "a", "act", "choice", "decision"),
    "next": ("next", "nextstate", "to", "tostate", "target", "successor", "snext", "sprime"),
    "prob": ("prob", "probability", "p", "pr", "chance"),
    "reward": ("reward", "r", "gain", "payoff", "profit"),
    "cost": ("cost", "costs", "c", "expense"),
    "label": ("label", "labels"),
    "start": ("start", "initial", "isstart"),
}
"""The columns, with the names that each may have, without capitals and anything but letters and digits."""
NEEDED = ("state", "action", "next")
COLUMNS = ("state", "action", "next", "prob", "reward", "start", "label")
SEPARATORS = ",;\t|"
STAY = "stay"
CHUNK = 200_000
LARGEST_TABLE, LARGEST_WORKBOOK = 2**33, 2**28
"""In bytes. A table is read piece by piece; a workbook, which is compressed, is read as a whole."""
PREFIXED = re.compile(r"(?i)^state[ _.]+(?=\S)")
FURTHER_AT_MOST = 50
"""Further columns that are looked at."""
YES, NO = ("yes", "true", "y", "x"), ("", "no", "false", "n")


def read_csv(path: Path) -> MDP:
    """A model from a table of transitions in a CSV file."""
    pd = the_pandas()
    with open_regular(path, LARGEST_TABLE) as file, warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)  # rows with more cells than columns
        warnings.simplefilter("ignore", pd.errors.DtypeWarning)  # text among numbers, which is looked at below
        separator = ""
        try:
            separator = _separator(file.readline().decode("utf-8-sig"))
            file.seek(0)
            options: dict[str, Any] = {
                "sep": separator,
                "encoding": "utf-8-sig",
                "na_filter": False,
                "index_col": False,
            }
            header = pd.read_csv(file, nrows=0, **options)
            file.seek(0)
            table = _Table(str(path), list(header.columns), decimal_comma=separator == ";")
            names = {table.title[column]: object for column in (*NEEDED, "label") if column in table.title}
            with pd.read_csv(file, chunksize=CHUNK, dtype=names, **options) as pieces:  # pyright: ignore
                return _model(table, pieces, path.stem)
        except UnicodeDecodeError:
            raise SourceError(f"{path} is not UTF-8 text; save it as 'CSV UTF-8'") from None
        except (pd.errors.ParserError, pd.errors.EmptyDataError, pd.errors.ParserWarning) as problem:
            raise SourceError(
                f"{path} is not a CSV table with a line of column names: {_reason(problem, separator)}"
            ) from None


def read_workbook(path: Path, sheet: str | None = None) -> MDP:
    """A model from a table of transitions on a sheet of an Excel workbook, the first one by default."""
    pd = the_pandas()
    try:
        from python_calamine import CalamineError, CalamineWorkbook
    except ImportError:
        raise SettingError(
            "reading Excel workbooks needs python-calamine: pip install 'manyways[data]', or save the sheet as CSV"
        ) from None
    content = io.BytesIO(read_bytes(path, LARGEST_WORKBOOK))
    try:
        book = CalamineWorkbook.from_filelike(content)
        if sheet is not None and sheet not in book.sheet_names:
            raise SourceError(f"{path} has no sheet {sheet!r}; it has {', '.join(book.sheet_names)}")
        found = book.get_sheet_by_index(0) if sheet is None else book.get_sheet_by_name(sheet)
        header, *rows = found.to_python(skip_empty_area=True) or [[]]
    except (CalamineError, OSError, ValueError) as problem:
        raise SourceError(f"{path} is not an Excel workbook that can be read: {problem}") from None
    titles = list(map(str, header))
    return _model(_Table(str(path), titles), [pd.DataFrame(rows, columns=titles, dtype=object)], path.stem)


def from_frame(frame: Any, name: str = "table") -> MDP:
    """A model from a data frame of pandas or polars with one transition in each row."""
    return _model(_Table("the data frame", list(frame.columns)), [frame], name)


def write_csv(mdp: MDP, path: Path) -> None:
    """Write a model as a table of transitions. Ends of episodes and the drawing are not part of it.

    Variables are columns of their own, except for those that are only in the names of the states.
    """
    matrix, names = mdp.transitions, names_of_states(mdp) or [mdp.state_name(s) for s in range(mdp.n_states)]
    shown = [cell(name) for name in names]
    actions = [cell(action) for action in mdp.action_names]
    marks = ["|".join(label for label, mask in mdp.labels.items() if mask[s]) for s in range(mdp.n_states)]
    amount = "cost" if mdp.costs else "reward"
    columns = [amount if column == "reward" else column for column in COLUMNS]
    titles, told = _variable_columns(mdp)
    with atomic(path) as file:
        text = io.TextIOWrapper(file, "utf-8", newline="")
        rows = csv.writer(text, lineterminator="\n")
        rows.writerow([*columns, *titles])
        text.flush()
        for x, (s, a, r) in enumerate(zip(mdp.choice_state, mdp.actions, mdp.reward, strict=True)):
            part = slice(matrix.indptr[x], matrix.indptr[x + 1])
            tail = (
                repr(float(-r if mdp.costs else r)),
                repr(float(mdp.start[s])),
                cell(marks[s]),
                *(values[s] for values in told),
            )
            for to, p in zip(matrix.indices[part], matrix.data[part], strict=True):
                rows.writerow((shown[s], actions[a], shown[to], repr(float(p)), *tail))
        text.detach()  # without closing the file, which `atomic` does


def _variable_columns(mdp: MDP) -> tuple[list[str], list[list[str]]]:
    """The titles of the columns of variables, and for each its (S,) cells. All are called `state_...`, so that none of them
    is taken for another column."""
    given = mdp.given_variables
    return [cell(f"state_{name}") for name in given], [_variable_cells(values) for values in given.values()]


def _variable_cells(values: Values) -> list[str]:
    if values.dtype.kind == "U":
        return [cell(value) for value in values.tolist()]
    return ["" if value != value else repr(value).lower() for value in values.tolist()]


class _Table:
    """The header of a table: which column holds what."""

    def __init__(self, name: str, header: Sequence[str], *, decimal_comma: bool = False) -> None:
        self.name, self.decimal_comma = name, decimal_comma
        # A unit in brackets, as in "profit (EUR)", is no part of the name.
        plain = [re.sub(r"[^a-z0-9]", "", re.sub(r"\(.*?\)|\[.*?\]", "", title.lower())) for title in header]
        self.title: dict[str, str] = {}
        for column, spellings in SPELLINGS.items():
            found = [i for i, title in enumerate(plain) if title in spellings]
            if len(found) > 1:
                titles = " and ".join(repr(header[i]) for i in found)
                raise SourceError(f"{name}: both {titles} could be the column {column!r}; rename one of them")
            if found:
                self.title[column] = header[found[0]]
        known = set(self.title.values())
        self.further = [
            title
            for title, bare in zip(header, plain, strict=True)
            if title not in known and bare and not bare.startswith("next") and list(header).count(title) == 1
        ][:FURTHER_AT_MOST]
        missing = [column for column in NEEDED if column not in self.title]
        if missing:
            raise SourceError(
                f"{name} is not a table of transitions: there is no column {' and none called '.join(map(repr, missing))} "
                f"among {', '.join(map(repr, header[:20])) or 'its 0 columns'}; the first line must name the columns "
                "state, action, next, prob, reward"
            )
        if "reward" in self.title and "cost" in self.title:
            raise SourceError(f"{name} has a reward and a cost; subtract one from the other, and leave one column")

    def numbers(self, column: str, cells: Any, first_row: int) -> Floats:
        """The numbers of a column."""
        if np.asarray(cells).dtype.kind in "iuf":
            amounts = np.asarray(cells, dtype=np.float64)
            if np.isnan(amounts).any():
                raise self._no_number(column, first_row + int(np.argmax(np.isnan(amounts))), "")
            return amounts
        found: list[float] = []
        for row, value in enumerate(cells, first_row):
            text = _text(value)
            plain = text.replace(",", ".") if self.decimal_comma else text
            try:
                found.append(float(plain))
            except ValueError:
                raise self._no_number(column, row, text) from None
            if np.isnan(found[-1]):
                raise self._no_number(column, row, text)
        return np.array(found)

    def _no_number(self, column: str, row: int, text: str) -> SourceError:
        missing = text.lower() in ("", "nan")
        remedy = "; write 0 if nothing is earned or paid there" if missing and column != "prob" else ""
        return SourceError(f"{self.name}, row {row}: {column} must be a number, found {text!r:.60}{remedy}")

    def weight(self, value: Any) -> float:
        """What a cell of the column `start` means."""
        text = _text(value).lower()
        if text in YES or text in NO:
            return float(text in YES)
        try:
            return float(text.replace(",", ".") if self.decimal_comma else text)
        except ValueError:
            raise SourceError(f"{self.name}: start must be yes, no or a number, found {text!r:.60}") from None


class _Variable:
    """What a further column says about states, as long as it says the same in all rows of each state."""

    def __init__(self, title: str, decimal_comma: bool) -> None:
        self.name = PREFIXED.sub("", title.strip())
        self.at_least = 1 if self.name != title.strip() else 2
        self.decimal_comma = decimal_comma
        self.fits = True
        self.said: dict[str, int] = {"": 0}
        self.of_state: Ints = np.zeros(0, np.int64)

    def add(self, states: Ints, cells: Any) -> None:
        """Rows of the table: (rows,) the numbers of the states, and the cells."""
        codes, values = the_pandas().factorize(np.asarray(cells, dtype=object), use_na_sentinel=False)
        texts = [self._shown(value) for value in values]
        if max(map(len, texts), default=0) > LONGEST_TEXT:
            self.fits = False
            return
        code = np.array([self.said.setdefault(text, len(self.said)) for text in texts], np.int64)[codes]
        missing = int(states.max()) + 1 - len(self.of_state)
        self.of_state = np.append(self.of_state, np.zeros(max(missing, 0), np.int64))
        says = code > 0
        states, code = states[says], code[says]
        before = self.of_state[states]
        self.of_state[states] = code  # the last of several; if they differ, some row does not agree with it
        self.fits = bool((self.of_state[states] == code).all() and ((before == 0) | (before == code)).all())

    def _shown(self, value: Any) -> str:
        text = "" if value is None or value != value else _name(value)
        number = text.replace(",", ".") if self.decimal_comma else text
        if re.fullmatch(r"[-+]?[0-9]{1,18}", number):
            return str(int(number))  # 07, +7 and 7 are one value
        if re.fullmatch(r"[-+]?[0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]{1,2})?", number):
            return f"{float(number):.17g}"
        return text

    def values(self, n_states: int) -> Values | None:
        """(S,) the values; None if the column is not a variable."""
        codes = np.append(self.of_state, np.zeros(n_states - len(self.of_state), np.int64))
        if not self.fits or len(np.unique(codes[codes > 0])) < self.at_least:
            return None
        return parsed(np.array(list(self.said), np.str_)[codes])


class _Names:
    """Names, numbered in the order in which they first appear."""

    def __init__(self) -> None:
        self.all: dict[str, int] = {}

    def of(self, cells: Any) -> Ints:
        codes, different = the_pandas().factorize(np.asarray(cells, dtype=object), use_na_sentinel=False)
        return np.array([self.all.setdefault(_name(value), len(self.all)) for value in different])[codes]


def _text(value: Any) -> str:
    """A cell as text; empty ones are None, NaN or blank, depending on who read the table."""
    return "" if value is None or value != value else text_of(str(value).strip())


def _name(value: Any) -> str:
    """A cell as a name; a whole number from a workbook or a data frame has no decimals."""
    if isinstance(value, str):
        return text_of(value.strip())
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _different(states: Ints, cells: Any) -> list[tuple[int, Any]]:
    """The different pairs of a state and a cell, in the order in which they first appear."""
    codes, values = the_pandas().factorize(np.asarray(cells, dtype=object), use_na_sentinel=False)
    pairs = the_pandas().unique(states * len(values) + codes)
    return [(int(pair // len(values)), values[pair % len(values)]) for pair in pairs]


def _separator(header: str) -> str:
    """The most frequent of the separators in the first line."""
    return max(SEPARATORS, key=header.count)


def _reason(problem: Exception, separator: str) -> str:
    """Why pandas cannot read a table."""
    text = str(problem).strip()
    longer = re.search(r"Length of header|Expected \d+ fields", text)
    if separator != "," or longer is None:
        return text
    return f"rows have more cells than there are columns ({text}); where numbers have a decimal comma, use semicolons between columns"


def _model(table: _Table, frames: Iterable[Any], name: str) -> MDP:
    """The model of the rows of all frames of a table. They are turned into numbers one by one, so that a large table is
    never text as a whole."""
    states, actions, nexts = _Names(), _Names(), _Names()
    pieces: list[tuple[Ints, Ints, Ints]] = []
    amounts: list[tuple[Floats, Floats]] = []
    labels: dict[str, set[int]] = {}
    starts: dict[int, float] = {}
    variables = {title: _Variable(title, table.decimal_comma) for title in table.further}
    row = 2  # the header is row 1
    for frame in frames:
        columns = {column: frame[title].to_numpy() for column, title in table.title.items()}
        rows = len(frame)
        numbers = states.of(columns["state"]), actions.of(columns["action"]), nexts.of(columns["next"])
        pieces.append(numbers)
        chance = table.numbers("prob", columns["prob"], row) if "prob" in columns else np.ones(rows)
        what = "cost" if "cost" in columns else "reward"
        worth = table.numbers(what, columns[what], row) if what in columns else np.zeros(rows)
        amounts.append((chance, worth))
        # A state has many rows that say the same about it, so each different one is looked at once.
        if "label" in columns:
            for state, marks in _different(numbers[0], columns["label"]):
                for mark in filter(None, map(str.strip, _text(marks).split("|"))):
                    labels.setdefault(mark, set()).add(state)
        if "start" in columns:
            for state, value in _different(numbers[0], columns["start"]):
                starts[state] = max(starts.get(state, 0.0), table.weight(value))
        for title in [title for title, variable in variables.items() if variable.fits and rows]:
            variables[title].add(numbers[0], frame[title].to_numpy())
        row += rows
    if row == 2:
        raise SourceError(f"{table.name} has a header, and no transitions")
    s, a, to = (np.concatenate(part) for part in zip(*pieces, strict=True))
    chance, worth = (np.concatenate(part) for part in zip(*amounts, strict=True))
    with_rows = len(states.all)
    t = states.of(list(nexts.all))[to]
    ends = np.arange(with_rows, len(states.all))
    if ends.size:
        s, t, a = np.append(s, ends), np.append(t, ends), np.append(a, np.repeat(actions.of([STAY]), ends.size))
        chance, worth = np.append(chance, np.ones(ends.size)), np.append(worth, np.zeros(ends.size))
        labels.setdefault(END, set()).update(map(int, ends))
    found = {variable.name: variable.values(len(states.all)) for variable in variables.values()}
    told = {name: values for name, values in found.items() if values is not None}
    return _built(table, name, (states, actions), (s, a, t), (chance, worth), labels, starts, told)


def _built(
    table: _Table,
    name: str,
    names: tuple[_Names, _Names],
    numbers: tuple[Ints, Ints, Ints],
    amounts: tuple[Floats, Floats],
    labels: dict[str, set[int]],
    starts: dict[int, float],
    variables: dict[str, Values],
) -> MDP:
    states, actions = names
    n = len(states.all)
    start = np.zeros(n)
    for state, weight in starts.items():
        start[state] = weight
    if not starts:
        start[0] = 1.0
    if not (np.isfinite(start).all() and start.min() >= 0 and start.sum() > 0):
        raise SourceError(f"{table.name}: the column start must mark a state, with yes or a positive number")
    try:
        matrix, reward, first, taken, averaged = summed_by_choice(
            *numbers, *amounts, n, len(actions.all), as_given=True
        )
        mdp = MDP.from_csr(
            matrix,
            reward,
            first,
            start=start / start.sum(),
            actions=taken,
            action_names=list(actions.all),
            state_names=list(states.all),
            labels={label: np.isin(np.arange(n), list(members)) for label, members in labels.items()},
            variables=variables,
            averaged=averaged,
            name=name,
        )
    except ModelError as problem:
        certain = "" if "prob" in table.title else "; without a column prob, each row is a move that is certain"
        raise SourceError(f"{table.name}: {problem}{certain}") from None
    return mdp.minimising() if "cost" in table.title else mdp


def read_table(source: Any) -> MDP:
    """A model from a CSV file or from a data frame."""
    return read_csv(source) if isinstance(source, Path) else from_frame(source)


def _is_frame(source: Any) -> bool:
    return type(source).__name__ == "DataFrame" and hasattr(source, "columns")


FORMATS.add(
    Format(
        "a table of transitions",
        read_table,
        endings=(".csv", ".tsv"),
        write=write_csv,
        takes=_is_frame,
        example="transitions.csv",
    )
)
FORMATS.add(
    Format(
        "a table of transitions in an Excel workbook",
        read_workbook,
        endings=(".xlsx",),
        settings={"sheet": any_text},
        example="transitions.xlsx",
    )
)
