"""What runs side by side in threads finds the same on one core and on several."""

from __future__ import annotations

import numpy as np
import pytest

import manyways as mw
from manyways.kernels import threads
from manyways.polytope import twins


def test_freedom_and_survival_do_not_depend_on_the_number_of_threads(monkeypatch):
    mdp = mw.read("rooms-50:0")
    assert mdp.n_states >= twins.THREADS_FROM
    plans = mw.plan(mdp, 2, 8.0, method=mw.VertexAscent(starts=1))
    shut = mw.closures(mdp)[:3]
    places = {"left": mdp.choice_state % 50 < 25, "north": mdp.choice_state < 1250, "reward": mdp.reward > 0}
    monkeypatch.setattr(threads.os, "sched_getaffinity", lambda _: {0, 1, 2}, raising=False)
    found = []
    for most in (1, 3):
        with threads.at_most(most):
            assert threads.cores() == most
            ranges = mw.freedom(mdp, 0.1, by=places).ranges
            left = mw.survival(plans, shut)
            found.append(
                ([(r.name, r.least, r.most, r.steps) for r in ranges], left.closed.values, left.replanned.values)
            )
    assert found[0][0] == found[1][0]
    for one, three in zip(found[0][1:], found[1][1:], strict=True):
        assert np.array_equal(one, three, equal_nan=True)


def test_an_error_of_one_thread_arrives():
    def refuse(done: int, _: int) -> None:
        if done:
            raise ValueError("enough")

    with pytest.raises(ValueError, match="enough"):
        mw.freedom("rooms-50:0", 0.1, by="actions", progress=refuse)
