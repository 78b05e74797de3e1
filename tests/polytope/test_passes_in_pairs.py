"""Passes of large models in pairs, in one thread and in two, against one pass after the other."""

import signal
import threading
import time

import numpy as np
import pytest
from scipy import sparse

import manyways as mw
from manyways import MDP, Polytope
from manyways.kernels import paired_sweeps as loops
from manyways.kernels.threads import at_most
from manyways.polytope import Answer, paired_sweeps, renumbering
from manyways.polytope.paired_sweeps import PairedSweeps
from manyways.polytope.renumbering import RenumberedSweeps


def far_jumps(mdp: MDP, seed: int) -> MDP:
    """The same model, of which one choice in fifty now and then leads anywhere."""
    rng = np.random.default_rng(seed)
    jumps = rng.random(mdp.n_choices) < 0.02
    to = np.where(jumps, rng.integers(mdp.n_states, size=mdp.n_choices), mdp.choice_state)
    chance = sparse.diags_array(np.where(jumps, 0.1, 0.0))
    anywhere = sparse.csr_array((np.ones(mdp.n_choices), to, np.arange(mdp.n_choices + 1)), mdp.transitions.shape)
    return MDP.from_csr(mdp.transitions + chance @ (anywhere - mdp.transitions), mdp.reward, mdp.first_choice)


def solve(mdp: MDP, threads: int) -> list[Answer]:
    """A cold solve and a chain of warm ones."""
    polytope, rng = Polytope(mdp, oracle=RenumberedSweeps), np.random.default_rng(5)
    with at_most(threads):
        found = [polytope.best(mdp.reward)]
        for _ in range(3):
            found.append(polytope.best(mdp.reward + rng.normal(size=mdp.n_choices), found[-1]))
    return found


def assert_same_bits(some: list[Answer], others: list[Answer]) -> None:
    for a, b in zip(some, others, strict=True):
        assert (a.value, a.bound) == (b.value, b.bound)
        np.testing.assert_array_equal(a.occupancy, b.occupancy)
        np.testing.assert_array_equal(a.dual, b.dual)


@pytest.fixture
def models(monkeypatch) -> list[MDP]:
    monkeypatch.setattr(renumbering, "PAIRED_FROM", 1)
    rooms = mw.read("rooms-60:0")
    return [rooms, far_jumps(rooms, 1)]


def test_two_threads_find_the_same_bits_as_one(models, monkeypatch):
    monkeypatch.setattr(paired_sweeps, "THREADS_FROM", 1)
    for mdp in models:
        assert_same_bits(solve(mdp, 1), solve(mdp, 2))


def test_pairs_find_the_same_bits_as_one_pass_after_the_other(models, monkeypatch):
    in_pairs = [solve(mdp, 1) for mdp in models]
    lasts, waited = loops.lasts, []

    def wait_for_all(nearest, farthest, last):
        lasts(nearest, farthest, last)
        waited.append(int(last.max() + 1 - last.min()))
        last[:] = len(last) - 1

    monkeypatch.setattr(loops, "lasts", wait_for_all)
    for mdp, found in zip(models, in_pairs, strict=True):
        assert_same_bits(found, [*solve(mdp, 1)])
    assert max(waited) > 1  # there were chunks before the last that the second pass could take


@pytest.mark.parametrize("seed", range(3))
def test_the_second_pass_waits_for_all_chunks_that_concern_it(seed):
    rng = np.random.default_rng(seed)
    chunks = 12
    leads = [{i, *rng.integers(chunks, size=rng.integers(3)).tolist()} for i in range(chunks)]
    last = np.empty(chunks, np.int64)
    loops.lasts(np.array([min(to) for to in leads]), np.array([max(to) for to in leads]), last)
    for chunk in range(chunks):
        concern = leads[chunk] | {other for other in range(chunks) if chunk in leads[other]}
        assert last[chunk] >= max(concern)


def test_improved_policies_keep_their_proof_when_hardly_anything_is_restless(models, monkeypatch):
    monkeypatch.setattr(paired_sweeps, "RESTLESS", np.inf)
    for mdp in models:
        for found, usual in zip(solve(mdp, 1), solve(mdp, 1), strict=True):
            assert found.value == pytest.approx(usual.value, rel=1e-9)
            assert found.bound - found.value <= 1e-6 * abs(found.value)


def test_improvements_that_a_survey_does_not_see_are_found(models, monkeypatch):
    usual = [solve(mdp, 1) for mdp in models]
    survey = PairedSweeps._survey

    def blind(self, c, at):
        found = survey(self, c, at)
        self._gains[:] = 0.0
        return found

    monkeypatch.setattr(PairedSweeps, "_survey", blind)
    for mdp, expected in zip(models, usual, strict=True):
        for found, other in zip(solve(mdp, 1), expected, strict=True):
            assert found.value == pytest.approx(other.value, rel=1e-9)


def solve_until_interrupted(polytope: Polytope, press: threading.Timer) -> None:
    press.start()
    until = time.monotonic() + 60
    while time.monotonic() < until:
        polytope.best(polytope.mdp.reward)


def test_an_interrupt_ends_both_threads(monkeypatch):
    monkeypatch.setattr(renumbering, "PAIRED_FROM", 1)
    monkeypatch.setattr(paired_sweeps, "THREADS_FROM", 1)
    mdp = mw.read("rooms-100:0")
    before = threading.active_count()
    for wait in (0.01, 0.013, 0.02):
        polytope = Polytope(mdp, oracle=RenumberedSweeps)
        polytope.best(mdp.reward)
        press = threading.Timer(wait, signal.raise_signal, [signal.SIGINT])
        with at_most(2), pytest.raises(KeyboardInterrupt):
            solve_until_interrupted(polytope, press)
        press.join()
        until = time.monotonic() + 60
        while threading.active_count() > before and time.monotonic() < until:
            time.sleep(0.01)
        assert threading.active_count() == before
