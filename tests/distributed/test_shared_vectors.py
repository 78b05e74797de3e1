"""Vectors that several processes share: one process with three threads in its place, and what is refused."""

import threading

import numpy as np
import pytest

from manyways.objectives.divergence import divergences_from, pairwise_divergences
from manyways.vectors import SharedVector, over_all, plain, shared


class Threads:
    """Three threads that compute together, as processes do."""

    SIZE = 3

    def __init__(self):
        self.parts, self.barrier = [None] * self.SIZE, threading.Barrier(self.SIZE, timeout=30)

    def _all(self, rank, values):
        self.parts[rank] = np.asarray(values)
        self.barrier.wait()
        found = np.stack(self.parts)
        self.barrier.wait()
        return found

    def member(self, rank):
        team = type("Member", (), {})()
        team.sum = lambda values: self._all(rank, values).sum(axis=0)
        team.max = lambda values: self._all(rank, values).max(axis=0)
        team.min = lambda values: self._all(rank, values).min(axis=0)
        return team


def in_three(work, *vectors):
    """What `work` returns in each of three threads that have parts of the vectors, along the last axis."""
    threads, found = Threads(), [None] * Threads.SIZE

    def run(rank):
        parts = [np.array_split(v, Threads.SIZE, axis=-1)[rank] for v in vectors]
        found[rank] = work(*(shared(part, threads.member(rank)) for part in parts))

    started = [threading.Thread(target=run, args=(rank,)) for rank in range(Threads.SIZE)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    return found


A, B = np.random.default_rng(0).normal(size=(2, 4, 11))
P = np.abs(A) / np.abs(A).sum(axis=1, keepdims=True)
OVER_ALL = {
    "product": lambda a, b: a[0] @ b[0],
    "product with a plain array": lambda a, b: plain(a)[0] @ b[0],
    "rows times vector": lambda a, b: a @ b[0],
    "rows times rows": lambda a, b: a @ b.T,
    "sum": lambda a, _: a.sum(),
    "sums of rows": lambda a, _: a.sum(axis=1),
    "largest": lambda a, _: a[1].max(),
    "smallest": lambda a, b: np.min(a - b),
    "any": lambda a, _: (a[2] > 1.5).any(),
    "all": lambda a, _: (a[2] > -9).all(),
    "distances": lambda a, _: pairwise_divergences(np.abs(a)),
    "distances from": lambda a, _: divergences_from(np.abs(a[0]), np.abs(a)),
}
BY_ENTRY = {
    "difference": lambda a, b: 2 * a[0] - np.abs(b[0]),
    "larger": np.maximum,
    "where": lambda a, b: np.where(a > 0, a, b),
    "rows": lambda a, b: np.stack([a[0], b[1]]),
    "rows below rows": lambda a, b: np.vstack([a, b[0]]),
    "sum of rows": lambda a, _: a.sum(axis=0),
    "mixture of rows": lambda a, _: np.array([0.1, 0.2, 0.3, 0.4]) @ a,
    "without a row": lambda a, _: np.delete(a, 1, axis=0),
}


@pytest.mark.parametrize("what", OVER_ALL)
def test_reductions_are_over_all_processes(what):
    wanted = OVER_ALL[what](A, B)
    for found in in_three(OVER_ALL[what], A, B):
        np.testing.assert_allclose(found, wanted, rtol=1e-13)
        assert not isinstance(found, SharedVector)


@pytest.mark.parametrize("what", BY_ENTRY)
def test_entries_stay_where_they_are(what):
    found = in_three(BY_ENTRY[what], A, B)
    assert all(isinstance(part, SharedVector) for part in found)
    np.testing.assert_allclose(
        np.concatenate([plain(part) for part in found], axis=-1), BY_ENTRY[what](A, B), rtol=1e-14
    )


@pytest.mark.parametrize(
    "work",
    [
        np.argmax,
        np.sort,
        np.median,
        np.flatnonzero,
        np.mean,
        np.cumsum,
        np.multiply.reduce,
        np.add.accumulate,
        lambda v: v.mean(),
        lambda v: v.argmax(),
        lambda v: v.argsort(),
        lambda v: np.stack([v, v], axis=-1),
        lambda v: np.bincount([0, 1, 2], weights=v),
    ],
)
def test_what_would_differ_between_processes_is_refused(work):
    with pytest.raises(TypeError, match="is not defined for vectors that several processes share"):
        work(shared(np.arange(3.0), None))


def test_an_ordinary_vector_is_summed_by_nobody():
    np.testing.assert_array_equal(over_all(np.ones(3), np.array([2.0])), [2.0])
