"""Runs trials: in this process, in several, or on a Dask cluster, with the same rows in the end.

Rows are kept one by one as they arrive (`store`), so a run that ends early, in whatever way, is taken up where it
was. The order of arrival does not matter: rows are handed out in the order of the trials.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from manyways.errors import ManywaysError, SettingError, check_integer
from manyways.model.mdp import MDP
from manyways.studies.store import Store
from manyways.studies.trial import Row, Trial, perform

SCHEDULER_ANSWERS_WITHIN = "5s"


class RunStopped(ManywaysError, RuntimeError):
    """A run ended before its trials did; the message tells how to go on."""


def run_trials(
    study: str,
    trials: Sequence[Trial],
    store: Store,
    *,
    workers: int | None = None,
    cluster: str | None = None,
    model: MDP | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[Row]:
    """The rows of all trials: those that the store has, and the others as they get done.

    Args:
        study: under what name the store keeps them.
        trials: what to compute.
        store: where rows are kept.
        workers: processes; by default one per core.
        cluster: address of a Dask scheduler, instead of processes here.
        model: stands in for the trials' source.
        progress: called with the number of rows there are and will be.
    """
    if workers is not None:
        check_integer("workers", workers, 1)
    known = store.rows(study)
    waiting = [trial for trial in trials if trial.key not in known]
    tell = progress or (lambda *_: None)
    done = len(trials) - len(waiting)
    tell(done, len(trials))
    for trial, row in _performed(waiting, workers or _cores(), cluster, model):
        store.add(study, trial.key, row)
        known[trial.key] = row
        done += 1
        tell(done, len(trials))
    return [known[trial.key] for trial in trials]


def _performed(
    trials: Sequence[Trial], workers: int, cluster: str | None, model: MDP | None
) -> Iterator[tuple[Trial, Row]]:
    if not trials:
        return iter(())
    if cluster is not None:
        return _on_cluster(trials, cluster, model)
    if workers == 1 or len(trials) == 1:
        return ((trial, perform(trial, model)) for trial in trials)
    return _in_processes(trials, min(workers, len(trials)), model)


def _in_processes(trials: Sequence[Trial], workers: int, model: MDP | None) -> Iterator[tuple[Trial, Row]]:
    from joblib import Parallel, delayed
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    pool: Any = Parallel(n_jobs=workers, batch_size=1, return_as="generator_unordered")  # pyright: ignore[reportArgumentType]
    try:
        yield from pool(delayed(_with_trial)(trial, model) for trial in trials)
    except TerminatedWorkerError:
        raise RunStopped(
            "a worker process was ended from outside, perhaps for want of memory; the rows written so far are kept: "
            "run the same command again, with fewer --workers if memory was short"
        ) from None


def _on_cluster(trials: Sequence[Trial], address: str, model: MDP | None) -> Iterator[tuple[Trial, Row]]:
    try:
        from distributed import Client, as_completed
    except ImportError:
        raise SettingError("a cluster needs Dask: pip install 'manyways[cluster]'") from None
    try:
        client = Client(address, timeout=SCHEDULER_ANSWERS_WITHIN, set_as_default=False)
    except (OSError, ValueError) as error:
        raise SettingError(
            f"no Dask scheduler answers at {address} ({type(error).__name__}); start one with `dask scheduler` and "
            "workers with `dask worker ADDRESS`, then run the same command again"
        ) from None
    with client:
        shared = None if model is None else client.scatter(model, broadcast=True)
        futures = client.map(_with_trial, list(trials), model=shared, pure=False)
        for future in as_completed(futures, loop=client.loop):
            yield future.result()


def _with_trial(trial: Trial, model: MDP | None) -> tuple[Trial, Row]:
    return trial, perform(trial, model)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
