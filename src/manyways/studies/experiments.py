"""The paper's experiments: the trials, figures and claims of each, and `paper`, which runs them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from manyways.errors import SettingError, check_integer
from manyways.studies import claims, figures
from manyways.studies.results import Results
from manyways.studies.runs import run_studies
from manyways.studies.study import DEFAULT_METHOD, PAPER_METHOD, Report, Settings, Study, StudyResults, Table
from manyways.studies.trial import Trial, method_named

TRADEOFF = 8.0
SMALL_WORLD = "rooms-9:0?correct_transition=0.8"


def _planned(source: str, k: int, tradeoff: float, seed: int, method: str, **more: Any) -> Trial:
    settings = {"source": source, "k": k, "tradeoff": tradeoff, "seed": seed, "method": method}
    return Trial("plan", settings | more)


def _values(settings: Settings, study: str) -> Sequence[float]:
    return settings.values or STUDIES[study].values or ()


def _method_trials(settings: Settings) -> list[Trial]:
    methods = [PAPER_METHOD, "projected-gradient", *(m for m in settings.methods if m != PAPER_METHOD)]
    if settings.slow:
        methods.append("projected-gradient-slsqp")
    worlds = settings.worlds(10)
    return [_planned(f"four-rooms:{s}", 2, TRADEOFF, s, method) for method in dict.fromkeys(methods) for s in worlds]


def _tradeoff_trials(settings: Settings) -> list[Trial]:
    return [
        _planned(f"nine-rooms:{s}", 6, value, s, method)
        for method in settings.methods
        for value in _values(settings, "tradeoff")
        for s in settings.worlds(10)
    ]


def _set_size_trials(settings: Settings) -> list[Trial]:
    return [
        _planned(f"nine-rooms:{s}", _size(value), TRADEOFF, s, method)
        for method in settings.methods
        for value in _values(settings, "set-size")
        for s in settings.worlds(10)
    ]


def _transition_trials(settings: Settings) -> list[Trial]:
    return [
        _planned(
            f"four-rooms:{s}?correct_transition={value:g}", 2, TRADEOFF, s, method, correct_transition=float(value)
        )
        for method in settings.methods
        for value in _values(settings, "transition")
        for s in settings.worlds(20)
    ]


def _size(value: float) -> int:
    return check_integer("a set size", int(value) if value == int(value) else value, 1)


def _tradeoff_map_trials(settings: Settings) -> list[Trial]:
    s = settings.seed
    return [
        _planned(f"nine-rooms:{s}", 6, float(value), s, method)
        for method in settings.methods
        for value in _values(settings, "tradeoff-maps")
    ]


def _set_size_map_trials(settings: Settings) -> list[Trial]:
    s = settings.seed
    return [
        _planned(f"nine-rooms:{s}", _size(value), TRADEOFF, s, method)
        for method in settings.methods
        for value in _values(settings, "set-size-maps")
    ]


def _theory_trials(settings: Settings) -> list[Trial]:
    shared = {"source": SMALL_WORLD, "k": 2, "tradeoff": TRADEOFF, "iterations": 100}
    return [
        Trial("theory", shared | {"seed": s, "method": method})
        for method in (PAPER_METHOD, "projected-gradient")
        for s in settings.worlds(5)
    ]


def _means(found: Results) -> list[Table]:
    """Means per method."""
    columns = {"reward": ".2f", "diversity": ".3f", "objective": ".2f", "seconds": ".3g"}
    rows = [
        [method, *(format(found.mean(column, method=method), form) for column, form in columns.items())]
        for method in found.methods()
    ]
    head = ("Method", "Reward per policy", "Diversity", "Objective", "Seconds")
    return [Table("Means over the worlds", head, rows)]


STUDIES: dict[str, Study[Settings]] = {
    "worlds": Study(
        "Two example worlds",
        "Example realisations of the four-room and nine-room grid worlds: obstacles and walls black, the initial "
        "state red, the goal purple.",
        lambda _: [],
        figures.worlds,
    ),
    "methods": Study(
        "Frank-Wolfe against projected gradient ascent",
        "FW is clearly superior to PGA in both performance and computational efficiency (four rooms, tradeoff 8, "
        "k = 2, correct transition .95, ten trials).",
        _method_trials,
        figures.methods,
        claims.methods,
        tables=_means,
    ),
    "tradeoff": Study(
        "The role of the tradeoff",
        "The pairwise diversity shows a marked increase as a function of the tradeoff parameter. The average reward "
        "decreases slightly until it begins to fall sharply around 8 (nine rooms, k = 6, ten trials).",
        _tradeoff_trials,
        figures.over("tradeoff", "tradeoff"),
        claims.tradeoff,
        (0.0, 1.0, 2.0, 4.0, 6.0, 7.0, 8.0, 9.0, 10.0, 12.0, 14.0, 16.0),
    ),
    "tradeoff-maps": Study(
        "Occupancy maps for two tradeoffs",
        "With a tradeoff of 2 several policies have nearly identical behaviour; with 8 they use increasingly diverse "
        "ways through doors and rooms.",
        _tradeoff_map_trials,
        figures.maps("tradeoff"),
        claims.tradeoff_maps,
        (2.0, 8.0),
    ),
    "set-size": Study(
        "Finding more policies",
        "There is a marked decrease in the average pairwise diversity as the size of the return set grows (nine "
        "rooms, tradeoff 8, ten trials). With k = 4 there are four policies with distinct doors, with k = 6 five.",
        _set_size_trials,
        figures.over("k", "size of the set, k"),
        claims.set_size,
        (2, 3, 4, 5, 6, 7, 8),
    ),
    "set-size-maps": Study(
        "Occupancy maps for two set sizes",
        "With k = 4, four policies that use distinct doors and rooms; with k = 6, five clearly distinct ones.",
        _set_size_map_trials,
        figures.maps("k"),
        claims.set_size_maps,
        (4, 6),
    ),
    "transition": Study(
        "The correct transition parameter",
        "With low values the algorithm finds stationary policies with near-maximal diversity but low reward; the "
        "average diversity decreases before reaching a minimum at .8, then increases (four rooms, twenty trials).",
        _transition_trials,
        figures.over("correct_transition", "correct transition"),
        claims.transition,
        tuple(round(0.5 + 0.05 * i, 2) for i in range(11)),
    ),
    "theory": Study(
        "Both theorems, measured",
        "Theorem 1 bounds the smallest gradient mapping of projected gradient ascent, Theorem 2 the smallest "
        "Frank-Wolfe gap, each on the domain where every occupancy is at least delta.",
        _theory_trials,
        figures.theory,
        claims.theory,
    ),
}

PAPER = Report(
    "paper",
    "The paper's experiments, repeated",
    (
        "This page lists the claims of “Multiple Plans are Better than One: Diverse Stochastic Planning”, the numbers that "
        "the paper gives, and the numbers of this run. frank-wolfe is the paper's Algorithm 2, vertex-ascent is the default "
        "method of this library.",
    ),
    Settings,
    STUDIES,
)


def paper(
    study: str = "all",
    *,
    out: str | Path = "paper",
    trials: int | None = None,
    seed: int = 0,
    methods: Sequence[str] = (PAPER_METHOD, DEFAULT_METHOD),
    values: Sequence[float] | None = None,
    slow: bool = False,
    workers: int | None = None,
    cluster: str | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> dict[str, StudyResults]:
    """Run the paper's studies; write their rows and figures, and a page that compares them with the paper's claims.

    Args:
        study: a key of `STUDIES`, or `all`.
        out: the output folder. Rows that it already holds are not computed again.
        trials, seed, methods, values, slow: see `Settings`.
        workers: the number of processes; by default one per core.
        cluster: address of a Dask scheduler to use instead of processes on this machine.
        progress: called with the study's name and the number of rows computed so far and in total.

    Returns:
        The rows and verdicts of each study, by its name. Failed trials have rows with an `error`; they are not stored,
        so that the next run tries them again.
    """
    if study != "all" and study not in STUDIES:
        raise SettingError(f"there is no study {study!r}; choose from {', '.join(STUDIES)}, all")
    names = list(STUDIES) if study == "all" else [study]
    if values is not None and (study == "all" or STUDIES[study].values is None):
        raise SettingError(f"the study {study!r} has no axis to give values for")
    settings = Settings(trials, seed, tuple(methods), None if values is None else tuple(values), slow)
    for method in settings.methods:
        method_named(method)  # an unknown name is refused before anything is written
    return run_studies(PAPER, names, settings, out, workers=workers, cluster=cluster, progress=progress)
