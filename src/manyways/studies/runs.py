"""Runs the studies of a report: rows into the folder's store, then CSV files, figures and the page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from manyways.planning import library_versions
from manyways.studies import figures
from manyways.studies.engine import run_trials
from manyways.studies.page import Unfinished, write_page
from manyways.studies.results import Results
from manyways.studies.store import Store
from manyways.studies.study import Report, S, StudyResults
from manyways.studies.trial import Row

VERSION = "manyways"
"""The name under which the store keeps the version of this package among the settings of a study."""


def run_studies(
    report: Report[S],
    names: Sequence[str],
    settings: S,
    out: str | Path,
    *,
    workers: int | None = None,
    cluster: str | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> dict[str, StudyResults]:
    """Run some of a report's studies, and write its page, with studies that earlier runs left in the same folder.

    Args:
        report: the studies.
        names: of those to run.
        settings: of all of them.
        out: the output folder. Rows that it already holds are not computed again.
        workers: the number of processes; by default one per core.
        cluster: address of a Dask scheduler to use instead of processes on this machine.
        progress: called with the study's name and the number of rows computed so far and in total.

    Returns:
        The rows and verdicts of each study, by its name.
    """
    folder = Path(out)
    found: dict[str, StudyResults] = {}
    with Store(folder) as store:
        for name in names:
            study = report.studies[name]
            planned = study.trials(settings)
            store.begin(name, {VERSION: library_versions()["manyways"], **report.to_plain(settings)})
            tell = (lambda done, total, name=name: progress(name, done, total)) if progress else None
            rows = run_trials(name, planned, store, workers=workers, cluster=cluster, progress=tell)
            found[name] = _judged(report, name, rows)
            found[name].write_csv(folder / f"{name}.csv", study.entry)
            figures.save_all(study.figures(found[name], settings), folder)
        earlier, unfinished = _stored(report, store, [name for name in report.studies if name not in found])
        write_page(folder, report, settings, found | earlier, unfinished)
    return found


def _judged(report: Report[S], name: str, rows: list[Row]) -> StudyResults:
    return StudyResults(name, rows, tuple(report.studies[name].claims(Results(name, rows))))


def _stored(report: Report[S], store: Store, names: list[str]) -> tuple[dict[str, StudyResults], list[Unfinished]]:
    """Studies that earlier runs left in the same folder: the finished ones by name, and the others."""
    finished: dict[str, StudyResults] = {}
    unfinished = []
    for name in names:
        begun = store.settings(name)
        if begun is None:
            continue
        settings = report.from_plain({key: value for key, value in begun.items() if key != VERSION})
        planned, rows = report.studies[name].trials(settings), store.rows(name)
        done = [rows[trial.key] for trial in planned if trial.key in rows]
        if len(done) == len(planned):
            finished[name] = _judged(report, name, done)
        else:
            unfinished.append(Unfinished(name, len(done), len(planned)))
    return finished, unfinished
