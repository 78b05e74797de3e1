"""Passes of large models in pairs, in one thread and in two, against one pass after the other."""

import signal
import threading
import time

import numpy as np
import pytest
from scipy import sparse

import manyways as mw
from manyways import MDP, Polytope
from manyways.kernels import announcements, paired_iteration, paired_layout, paired_push, sweeps
from manyways.kernels import paired_passes as passes
from manyways.kernels.announcements import BOTH
from manyways.kernels.orders import likeliest
from manyways.kernels.paired_arrays import Tiles, new_crew
from manyways.kernels.threads import at_most
from manyways.polytope import Answer, paired_sweeps, renumbering
from manyways.polytope.paired_sweeps import PairedSweeps
from manyways.polytope.renumbering import RenumberedSweeps
from manyways.polytope.sweeps import Sweeps


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


def at_work(mdp: MDP) -> tuple[PairedSweeps, Answer]:
    """Sweeps whose policy is laid out, and their answer."""
    oracle = PairedSweeps(mdp)
    found = oracle.best(np.array(mdp.reward))
    oracle._pack(np.array(mdp.reward), found.memory)
    return oracle, found


def test_sweeps_in_pairs_are_those_of_one_pass_after_the_other(models):
    for mdp in models:
        oracle, found = at_work(mdp)
        values, again, alone = np.zeros(mdp.n_states), np.zeros(mdp.n_states), np.zeros(mdp.n_states)
        c, whole, crew = np.array(mdp.reward), Sweeps(mdp, 1.0), new_crew()
        whole._order[:], whole._likely[:] = oracle._order, oracle._likely
        whole._pack(c, found.memory)  # the same order, in one chunk
        assert (
            oracle._layout.last.max() + 1 - oracle._layout.last.min() > 1
        )  # the second pass need not wait for all chunks
        late = np.full_like(oracle._layout.last, len(oracle._layout.last) - 1)
        for last, into in ((oracle._layout.last, values), (late, again)):
            crew.done[:] = 0
            made, back, _ = paired_iteration.sweep(
                BOTH, crew.meetings, crew.done, crew.changes, 0, oracle._order, last, oracle._packed, oracle._work,
                oracle._b, found.value, into, 4, 0.0,
            )  # fmt: skip
            assert made == 4
        rest = whole._work, whole._b, found.value, alone, True, 4, 0.0
        assert sweeps.sweep(whole._order, *whole._rows, *rest)[1] == back
        np.testing.assert_array_equal(values, again)
        np.testing.assert_array_equal(values, alone)


def test_improvements_in_pairs_do_not_depend_on_how_long_the_second_pass_waits(models):
    for mdp in models:
        oracle, found = at_work(mdp)
        c, reference = np.array(mdp.reward), found.memory.reference
        c[::7] -= 1.0  # something to improve
        reach = oracle._reach_of(reference)
        results = []
        for last in (reach, np.full_like(reach, len(reach) - 1)):
            h, choice = found.memory.h.copy(), found.memory.choice.copy()
            tiles = Tiles(np.full_like(oracle._tiles[0], np.inf), *oracle._tiles[1:], last)
            changed, *_ = paired_iteration.improve(
                BOTH, new_crew(), oracle._model, c, found.value, h, choice, reference, 1e-9, 1e-9, tiles
            )
            assert changed > 0
            results.append((h, choice))
        for one, other in zip(*results, strict=True):
            np.testing.assert_array_equal(one, other)


def test_occupancies_in_pairs_are_stationary(models):
    for mdp in models:
        oracle, found = at_work(mdp)
        policy = sparse.csr_array(
            (np.ones(mdp.n_states), (np.arange(mdp.n_states), np.asarray(found.choices))), (mdp.n_states, mdp.n_choices)
        )
        oracle._push(np.zeros(mdp.n_states), 1.0)
        assert oracle._b.sum() == pytest.approx(1.0, abs=1e-12)
        np.testing.assert_allclose((policy @ mdp.transitions).T @ oracle._b, oracle._b, atol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_mass_is_pushed_into_no_chunk_that_the_first_pass_still_needs(seed):
    rng, chunks = np.random.default_rng(seed), 12
    leads = [sorted({i, *rng.integers(max(0, i - 3), min(chunks, i + 2), size=3).tolist()}) for i in range(chunks)]
    near, far = np.array([to[0] for to in leads]), np.array([to[-1] for to in leads])
    last = np.empty(chunks, np.int64)
    paired_push.backwards(near.copy(), far.copy(), last)
    for number in range(chunks):  # the second pass takes chunk `chunk`; the first has taken all from `waits` on
        chunk, waits = chunks - 1 - number, chunks - 1 - last[number]
        concern = {chunk, *leads[chunk]} | {i for i in range(chunks) if set(leads[i]) & {chunk, *leads[chunk]}}
        assert waits <= min(concern)


def rows_by_state(oracle: PairedSweeps) -> list[tuple]:
    """Where each state leads, as it is laid out."""
    packed, found = oracle._packed, []
    for i, state in enumerate(oracle._order):
        row = i + i // passes.CHUNK
        part = slice(packed.begin[row], packed.begin[row + 1])
        to = sorted(zip(packed.target[part].tolist(), packed.weight[part].tolist(), strict=True))
        found.append((int(state), oracle._b[i], packed.inverse[i], packed.later[i], int(packed.ahead[i]), to))
    return found


def test_a_patched_policy_is_laid_out_as_if_it_were_new(models):
    for mdp in models:
        oracle, found = at_work(mdp)
        c, choice, layout = np.array(mdp.reward), found.memory.choice.copy(), oracle._layout
        order = layout.order.copy()
        patched = 0
        for state in order[5:2000:250]:
            for x in range(mdp.first_choice[state], mdp.first_choice[state + 1]):
                trial = choice.copy()
                trial[state] = x
                policy = oracle._model, c, trial, layout, oracle._b, oracle._packed
                if paired_layout.patch(BOTH, new_crew(), *policy):
                    by_patch, last = rows_by_state(oracle), layout.last.copy()
                    paired_layout.lay_out_in_order(BOTH, new_crew(), *policy)
                    assert by_patch == rows_by_state(oracle)
                    np.testing.assert_array_equal(last, layout.last)
                    choice, patched = trial, patched + 1
                else:  # the state leads to itself, or in a circle
                    layout.likely[state] = oracle_likely(mdp, choice, state)
                    paired_layout.lay_out_in_order(BOTH, new_crew(), oracle._model, c, choice, *policy[3:])
        assert patched > 10
        np.testing.assert_array_equal(order, layout.order)


def oracle_likely(mdp: MDP, choice: np.ndarray, state: int) -> int:
    """The likely successor of a state."""
    return likeliest(state, choice[state], mdp.transitions.indptr, mdp.transitions.indices, mdp.transitions.data)[0]


def test_a_policy_that_changed_much_or_runs_in_a_circle_is_not_patched(models):
    mdp = models[0]
    oracle, found = at_work(mdp)
    c, rest = np.array(mdp.reward), (oracle._layout, oracle._b, oracle._packed)
    much = found.memory.choice.copy()
    some = np.flatnonzero(np.diff(mdp.first_choice) > 1)[: mdp.n_states // 20]
    much[some] = np.where(much[some] == mdp.first_choice[some], much[some] + 1, mdp.first_choice[some])
    assert not paired_layout.patch(BOTH, new_crew(), oracle._model, c, much, *rest)
    oracle._pack(c, found.memory)
    circle, place = found.memory.choice.copy(), 40
    state = int(oracle._order[place])
    behind = next(int(s) for s in oracle._order if oracle._likely[s] == state and s != state)
    leads = [
        x
        for x in range(mdp.first_choice[state], mdp.first_choice[state + 1])
        if likeliest(state, x, mdp.transitions.indptr, mdp.transitions.indices, mdp.transitions.data)[0] == behind
    ]
    assert leads
    circle[state] = leads[0]
    assert not paired_layout.patch(BOTH, new_crew(), oracle._model, c, circle, *rest)


@pytest.mark.parametrize("seed", range(3))
def test_the_second_pass_waits_for_all_chunks_that_concern_it(seed):
    rng = np.random.default_rng(seed)
    chunks = 12
    leads = [{i, *rng.integers(chunks, size=rng.integers(3)).tolist()} for i in range(chunks)]
    last = np.empty(chunks, np.int64)
    passes.lasts(np.array([min(to) for to in leads]), np.array([max(to) for to in leads]), last)
    for chunk in range(chunks):
        concern = leads[chunk] | {other for other in range(chunks) if chunk in leads[other]}
        assert last[chunk] >= max(concern)


def test_improvements_that_a_survey_does_not_see_are_found(models):
    for mdp in models:
        oracle, found = at_work(mdp)
        c, at = np.array(mdp.reward), found.memory
        c[::7] -= 1.0
        unseen = Tiles(np.zeros_like(oracle._tiles[0]), *oracle._tiles[1:], oracle._reach_of(at.reference))
        changed, *_ = paired_iteration.improve(
            BOTH, new_crew(), oracle._model, c, found.value, at.h, at.choice, at.reference, 1e-9, 1e-9, unseen
        )
        assert changed > 0


def test_a_thread_that_is_called_off_ends():
    crew = new_crew()
    announcements.call_off(crew.meetings)
    assert not announcements.meet(announcements.SECOND, crew.meetings)
    late = np.zeros(3, np.int64)
    assert passes.next_pass(announcements.SECOND, 0, crew.done, late, crew.meetings) == passes.FINISHED


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
