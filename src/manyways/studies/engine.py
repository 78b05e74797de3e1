"""Runs trials in this process, in several processes, or on a Dask cluster. The rows are the same in each case.

Each row is stored as soon as it is computed (`store`), so a run that ends early can be resumed. Rows of failed trials
are returned but not stored, so a resumed run computes them again: the cause, such as a lack of memory, may have passed.
Rows arrive in any order and are returned in the order of the trials.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from threading import Thread
from typing import Any

from manyways.cluster import connected, failing
from manyways.errors import ManywaysError, check_integer
from manyways.kernels.threads import at_most, cores
from manyways.methods import Method
from manyways.model.mdp import MDP
from manyways.studies.store import Store
from manyways.studies.trial import Row, Trial, method_named, perform

PARENT_POLL_S = 0.5

Task = tuple[Trial, Method | None]


class RunStopped(ManywaysError, RuntimeError):
    """A run ended before all its trials did; the message says how to resume it."""


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
    """The rows of all trials: stored ones are reused, the others are computed, and stored unless they failed.

    Args:
        study: the name under which the store keeps the rows.
        trials: what to compute. Equal trials are computed once.
        store: where rows are kept.
        workers: the number of processes; by default one per core.
        cluster: address of a Dask scheduler to use instead of processes on this machine.
        model: replaces the model that the trials name.
        progress: called with the number of rows computed so far and in total.
    """
    if workers is not None:
        check_integer("workers", workers, 1)
    distinct = {trial.key: trial for trial in trials}
    known = store.rows(study)
    named = {trial.settings["method"] for trial in trials if "method" in trial.settings}
    methods = {name: method_named(name) for name in named}
    waiting = [
        (trial, methods.get(trial.settings.get("method"))) for key, trial in distinct.items() if key not in known
    ]
    report = progress or (lambda *_: None)
    done = len(distinct) - len(waiting)
    report(done, len(distinct))
    for trial, row in _performed(waiting, workers or cores(), cluster, model):
        if row["error"] is None:
            store.add(study, trial.key, row)
        known[trial.key] = row
        done += 1
        report(done, len(distinct))
    return [known[trial.key] for trial in trials]


def _performed(
    tasks: Sequence[Task], workers: int, cluster: str | None, model: MDP | None
) -> Iterator[tuple[Trial, Row]]:
    if not tasks:
        return iter(())
    if cluster is not None:
        return _on_cluster(tasks, cluster, model)
    if workers == 1 or len(tasks) == 1:
        return (_perform_task(task, model) for task in tasks)
    return _in_processes(tasks, min(workers, len(tasks)), model)


def _in_processes(tasks: Sequence[Task], workers: int, model: MDP | None) -> Iterator[tuple[Trial, Row]]:
    from joblib import Parallel, delayed
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    pool: Any = Parallel(
        n_jobs=workers,
        batch_size=1,  # pyright: ignore[reportArgumentType] (joblib has no types)
        return_as="generator_unordered",
        initializer=_end_with_parent,
        initargs=(os.getpid(),),
    )
    try:
        yield from pool(delayed(_perform_beside_others)(task, model) for task in tasks)
    except TerminatedWorkerError:
        raise RunStopped(
            "a worker process was killed, possibly because memory ran out; the rows computed so far are stored. "
            "Run the study again to resume it",
            in_python="; if memory was short, use fewer workers",
            on_command_line="; if memory was short, use a smaller number of --workers",
        ) from None


def _end_with_parent(parent: int) -> None:
    """End this worker process soon after its parent, even if the parent is killed and cannot end it.

    A process whose parent has ended gets another one. (On Windows it does not, and an idle worker waits for minutes.)
    """

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(PARENT_POLL_S)
        os._exit(1)

    Thread(target=watch, daemon=True).start()


def _on_cluster(tasks: Sequence[Task], address: str, model: MDP | None) -> Iterator[tuple[Trial, Row]]:
    def stopped(what: str) -> RunStopped:
        return RunStopped(
            f"{what}; the rows computed so far are stored. Check its scheduler and workers, and run the study again to "
            "resume it"
        )

    with connected(address, "run the study again") as client, failing(address, stopped):
        from distributed import as_completed

        shared = None if model is None else client.scatter(model, broadcast=True)
        futures = client.map(_perform_beside_others, list(tasks), model=shared, pure=False)
        for future in as_completed(futures, loop=client.loop):
            yield future.result()


def _perform_task(task: Task, model: MDP | None) -> tuple[Trial, Row]:
    """The method, if there is one, comes as an object because a worker process may not have registered it."""
    trial, method = task
    return trial, perform(trial, model=model, method=method)


def _perform_beside_others(task: Task, model: MDP | None) -> tuple[Trial, Row]:
    """`_perform_task` in one thread: the other cores have tasks of their own."""
    with at_most(1):
        return _perform_task(task, model)
