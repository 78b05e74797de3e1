"""What a study of the paper consists of: its settings, its trials, figures and claims, and its results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from manyways.errors import check_integer, check_number
from manyways.studies.claims import Verdict
from manyways.studies.results import Results
from manyways.studies.trial import Trial

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAPER_METHOD, DEFAULT_METHOD = "frank-wolfe", "vertex-ascent"


@dataclass(frozen=True)
class Settings:
    """The settings of a study that a user can change.

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


@dataclass(frozen=True)
class StudyResults(Results):
    """The rows of one of the paper's studies, and its claims judged by them.

    Attributes:
        verdicts: one for each claim and method.
    """

    verdicts: tuple[Verdict, ...] = ()


@dataclass(frozen=True)
class Study:
    """One experiment of the paper.

    Attributes:
        title: a heading.
        statement: what the paper says, in its own words or close to them.
        trials: makes the trials for given settings.
        figures: draws figures of the results, by name.
        claims: judges the paper's claims by the results.
        values: the usual values along the study's axis, if it has one.
    """

    title: str
    statement: str
    trials: Callable[[Settings], list[Trial]]
    figures: Callable[[Results, Settings], dict[str, Figure]]
    claims: Callable[[Results], list[Verdict]] = field(default=lambda _: [])
    values: tuple[float, ...] | None = None
