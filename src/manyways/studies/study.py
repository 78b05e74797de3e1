"""What a study consists of: its settings, its trials, figures, tables and claims; its results; and a report of several."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from manyways.errors import check_integer, check_number
from manyways.studies.results import Results
from manyways.studies.trial import Trial
from manyways.studies.verdicts import Verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAPER_METHOD, DEFAULT_METHOD = "frank-wolfe", "vertex-ascent"

S = TypeVar("S")
"""The type of a report's settings: a frozen dataclass of plain values and tuples of them."""


@dataclass(frozen=True)
class Settings:
    """The settings of the paper's studies that a user can change.

    Attributes:
        trials: worlds per point; by default as many as in the paper.
        seed: the seed of the first world; the following worlds have the following seeds. Planning in a world uses the
            world's seed.
        methods: names of the methods to compare: registered names, or keys of `VARIANTS`.
        values: values along the study's axis that replace its own.
        slow: whether to include the paper's inexact projection by SLSQP, which takes minutes per trial.
    """

    trials: int | None = None
    seed: int = 0
    methods: tuple[str, ...] = (PAPER_METHOD, DEFAULT_METHOD)
    values: tuple[float, ...] | None = None
    slow: bool = False

    def __post_init__(self) -> None:
        if self.trials is not None:
            check_integer("trials", self.trials, 1)
        check_integer("seed", self.seed, 0)
        for value in self.values or ():
            check_number("a value", value, 0)

    def worlds(self, usual: int) -> range:
        """The seeds of the worlds; `usual` is the paper's number of trials."""
        return range(self.seed, self.seed + (self.trials or usual))

    def facts(self) -> str:
        """The settings in words, for the page."""
        trials = "" if self.trials is None else f"; {self.trials} {'trial' if self.trials == 1 else 'trials'} per point"
        return f"Seed of the first world: {self.seed}{trials}."


@dataclass(frozen=True)
class StudyResults(Results):
    """The rows of a study, and its claims judged by them.

    Attributes:
        verdicts: one for each claim and method.
    """

    verdicts: tuple[Verdict, ...] = ()


@dataclass(frozen=True)
class Table:
    """A table of a page.

    Attributes:
        caption: what it shows.
        head: the headings of its columns.
        rows: texts, as many in each row as there are headings. The first column is text, the others are numbers.
    """

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Study(Generic[S]):
    """One experiment.

    Attributes:
        title: a heading.
        statement: what the paper says, in its own words or close to them, or what is compared.
        trials: makes the trials for given settings.
        figures: draws figures of the results, by name.
        claims: judges claims by the results.
        values: the usual values along the study's axis, if it has one.
        tables: tables of the results for the page.
        entry: what the entries of lists in rows belong to.
    """

    title: str
    statement: str
    trials: Callable[[S], list[Trial]]
    figures: Callable[[Results, S], dict[str, Figure]]
    claims: Callable[[Results], list[Verdict]] = field(default=lambda _: [])
    values: tuple[float, ...] | None = None
    tables: Callable[[Results], list[Table]] = field(default=lambda _: [])
    entry: str = "iteration"


@dataclass(frozen=True)
class Report(Generic[S]):
    """Studies that share settings, an output folder and a page.

    Attributes:
        name: of the page's file, without its ending.
        title: the heading of the page.
        introduction: paragraphs of text below it.
        settings: the type of the settings; it has a method `facts`.
        studies: the studies by name.
    """

    name: str
    title: str
    introduction: Sequence[str]
    settings: type[S]
    studies: Mapping[str, Study[S]]

    def to_plain(self, settings: S) -> dict[str, Any]:
        """The settings as JSON."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in vars(settings).items()}

    def from_plain(self, plain: Mapping[str, Any]) -> S:
        """The settings that `to_plain` wrote."""
        return self.settings(
            **{name: tuple(value) if isinstance(value, list) else value for name, value in plain.items()}
        )
