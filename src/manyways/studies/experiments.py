"""The paper's experiments: the trials, figures and claims of each, and `paper`, which runs them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from manyways.errors import SettingError, check_integer
from manyways.planning import library_versions
from manyways.studies import claims, figures
from manyways.studies.engine import run_trials
from manyways.studies.page import Unfinished, write_page
from manyways.studies.results import Results
from manyways.studies.store import Store
from manyways.studies.study import DEFAULT_METHOD, PAPER_METHOD, Settings, Study, StudyResults
from manyways.studies.trial import Row, Trial, method_named

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


STUDIES: dict[str, Study] = {
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
    settings = Settings(trials, seed, tuple(methods), _tuple(values), slow)
    for method in settings.methods:
        method_named(method)  # an unknown name is refused before anything is written
    folder = Path(out)
    found: dict[str, StudyResults] = {}
    with Store(folder) as store:
        for name in names:
            planned = STUDIES[name].trials(settings)
            store.begin(name, {"manyways": library_versions()["manyways"], **_described(settings)})
            report = (lambda done, total, name=name: progress(name, done, total)) if progress else None
            rows = run_trials(name, planned, store, workers=workers, cluster=cluster, progress=report)
            found[name] = _judged(name, rows)
            found[name].write_csv(folder / f"{name}.csv")
            figures.save_all(STUDIES[name].figures(found[name], settings), folder)
        earlier, unfinished = _stored(store, [name for name in STUDIES if name not in found])
        results = found | earlier
        write_page(
            folder, settings, [(STUDIES[name], results[name]) for name in STUDIES if name in results], unfinished
        )
    return found


def _judged(name: str, rows: list[Row]) -> StudyResults:
    return StudyResults(name, rows, tuple(STUDIES[name].claims(Results(name, rows))))


def _stored(store: Store, names: list[str]) -> tuple[dict[str, StudyResults], list[Unfinished]]:
    """Studies that earlier runs left in the same folder: the finished ones by name, and the others."""
    finished: dict[str, StudyResults] = {}
    unfinished = []
    for name in names:
        begun = store.settings(name)
        if begun is None:
            continue
        settings = Settings(
            begun["trials"], begun["seed"], tuple(begun["methods"]), _tuple(begun["values"]), begun["slow"]
        )
        planned, rows = STUDIES[name].trials(settings), store.rows(name)
        done = [rows[trial.key] for trial in planned if trial.key in rows]
        if len(done) == len(planned):
            finished[name] = _judged(name, done)
        else:
            unfinished.append(Unfinished(name, len(done), len(planned)))
    return finished, unfinished


def _tuple(values: Sequence[float] | None) -> tuple[float, ...] | None:
    return None if values is None else tuple(values)


def _described(settings: Settings) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in vars(settings).items()}
