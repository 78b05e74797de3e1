"""Solves in blocks: against the exact oracle, the same bits with any number of threads, and the cuts themselves."""

import numpy as np
import pytest
from test_sweeps import assert_as_good, two_wells

import manyways as mw
from manyways import MDP, Polytope
from manyways.kernels import blocks as loops
from manyways.kernels.threads import at_most, cores, side_by_side
from manyways.polytope import PolicyIteration, RenumberedSweeps, blocks, large_sweeps
from manyways.polytope.ways import Ways
from problems import KINDS, random_accessible_mdp


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of two states, so that small models have several."""
    monkeypatch.setattr(blocks, "STATES_OF_A_BLOCK", 2)


@pytest.fixture
def in_blocks(monkeypatch) -> list[int]:
    """The number of blocks of each solve in several."""
    seen: list[int] = []
    solve = large_sweeps.LargeSweeps._in_blocks

    def noted(self, found, *rest):
        seen.append(found.count)
        return solve(self, found, *rest)

    monkeypatch.setattr(large_sweeps.LargeSweeps, "_in_blocks", noted)
    return seen


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("kind", KINDS)
def test_random_models_in_blocks_cold_and_warm(kind, in_blocks):
    rng = np.random.default_rng(10 + KINDS.index(kind))
    for _ in range(15):
        mdp = random_accessible_mdp(rng, max_states=12, kind=kind)
        swept, exact = Polytope(mdp, oracle=RenumberedSweeps), Polytope(mdp, oracle=PolicyIteration)
        c, other = rng.normal(size=(2, mdp.n_choices))
        cold = swept.best(c)
        assert_as_good(swept, c, cold, exact.best(c).value)
        for warm in (swept.best(other), exact.best(other)):
            assert_as_good(swept, c, swept.best(c, warm), exact.best(c).value)
        for scaled in (1e6 * other, np.round(other), np.full(mdp.n_choices, -3.0)):
            assert_as_good(swept, scaled, swept.best(scaled, cold), exact.best(scaled).value)
    assert max(in_blocks) > 3


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("world", ["four-rooms:2", "nine-rooms:7"])
def test_a_chain_of_costs_in_blocks(world, in_blocks):
    """Small changes, large ones, noise, one forbidden choice, and standing still."""
    mdp = mw.read(world)
    swept, exact = Polytope(mdp, oracle=RenumberedSweeps), Polytope(mdp, oracle=PolicyIteration)
    rng = np.random.default_rng(3)
    forbidden, resting = np.array(mdp.reward), np.array(mdp.reward)
    forbidden[swept.optimum.choices[40]] = -1e10
    resting[mdp.first_choice[41] - 1] = 1e4
    warm = None
    for c in (mdp.reward, mdp.reward + rng.normal(size=mdp.n_choices), 10 * rng.normal(size=mdp.n_choices), resting):
        for start in (None, warm):
            warm = swept.best(c, start)
            assert_as_good(swept, c, warm, exact.best(c).value)
    found = swept.best(forbidden)
    assert found.value == pytest.approx(exact.best(forbidden).value, rel=1e-6)
    assert found.bound - found.value <= 1e-5 * abs(found.value)
    assert max(in_blocks) == blocks.MOST_BLOCKS


@pytest.mark.usefixtures("small_blocks")
def test_two_wells_that_hardly_mix_in_blocks():
    mdp = two_wells(1e-3)
    swept = Polytope(mdp, oracle=RenumberedSweeps)
    assert_as_good(swept, mdp.reward, swept.best(mdp.reward), 0.85)


def answers(mdp: MDP) -> list[np.ndarray]:
    """All numbers of a cold solve, a warm one and one of noise."""
    polytope = Polytope(mdp)
    c = mdp.reward + np.random.default_rng(0).normal(size=mdp.n_choices)
    found = [polytope.best(mdp.reward)]
    found += [polytope.best(c, found[0]), polytope.best(1.0 * c - mdp.reward)]
    return [part for one in found for part in (one.occupancy, one.choices, one.dual, np.array([one.value, one.bound]))]


@pytest.mark.parametrize("size", [60, 201])
def test_the_number_of_threads_changes_no_bit(size, monkeypatch, in_blocks):
    if size == 60:
        monkeypatch.setattr(blocks, "STATES_OF_A_BLOCK", 500)
    monkeypatch.setattr("manyways.kernels.threads.os.sched_getaffinity", lambda _: set(range(4)))
    mdp = mw.read(f"rooms-{size}:0")
    found = []
    for threads in (1, 2, 3):
        with at_most(threads):
            assert cores() == threads
            found.append(answers(mdp))
    for other in found[1:]:
        for one, two in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(one, two)
    assert min(in_blocks) == (7 if size == 60 else 2)


def test_jobs_side_by_side_share_the_cores(monkeypatch):
    monkeypatch.setattr("manyways.kernels.threads.os.sched_getaffinity", lambda _: set(range(4)))
    assert side_by_side(lambda _: cores(), range(4), 4) == [1, 1, 1, 1]
    assert side_by_side(lambda _: cores(), range(2), 4) == [2, 2]
    assert side_by_side(lambda _: cores(), range(1), 3) == [3]
    assert side_by_side(lambda _: cores(), range(3), 1) == [1, 1, 1]
    assert side_by_side(lambda _: cores(), [], 2) == []


def test_a_solve_in_threads_can_be_interrupted():
    """An exception from a pause ends the solve, and the next one is as if nothing had happened."""
    mdp = mw.read("rooms-201:0")
    polytope, calls = Polytope(mdp), []
    with at_most(2):
        whole = polytope.optimum

        def stop() -> None:
            calls.append(1)
            if len(calls) == 3:
                raise KeyboardInterrupt

        with polytope.pausing(stop), pytest.raises(KeyboardInterrupt):
            polytope.best(mdp.reward)
        assert len(calls) == 3
        np.testing.assert_array_equal(polytope.best(mdp.reward).occupancy, whole.occupancy)


# ---- cuts -------------------------------------------------------------------------------------


def tree(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A random tree: an order in which states come after the one ahead of them."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(n).astype(np.uint32)
    ahead = np.zeros(n, np.uint32)
    ahead[order[0]] = order[0]
    for i in range(1, n):
        ahead[order[i]] = order[rng.integers(max(0, i - 3), i)]
    return order, ahead


@pytest.mark.parametrize("seed", range(4))
def test_branches_stay_whole(seed):
    n, count, most = 60, 3, 9
    order, ahead = tree(n, seed)
    longest = np.random.default_rng(seed).integers(1, 5, n).astype(np.uint32)
    size, place, out = (np.empty(n, np.uint32) for _ in range(3))
    block, starts, room = np.empty(n, np.uint8), np.zeros(count + 2, np.int64), np.zeros(count + 2, np.int64)
    loops.split(order, ahead, size, most, longest, block, starts, room, out, place)
    assert sorted(out) == list(range(n))
    np.testing.assert_array_equal(out[place], np.arange(n))
    for b in range(count + 1):
        members = out[starts[b] : starts[b + 1]]
        assert np.all(block[members] == b)
        assert room[b + 1] - room[b] == longest[members].sum()
    for s in order[1:]:
        assert block[ahead[s]] in (0, block[s])
        assert block[s] > 0 or size[s] > most
        assert block[s] == 0 or size[s] <= most
        assert place[ahead[s]] < place[s]


def test_a_walk_takes_whole_branches():
    order, ahead = tree(40, 9)
    size, place = np.empty(40, np.uint32), np.empty(40, np.uint32)
    loops.preorder(order, ahead, size, place)
    assert sorted(place) == list(range(40))
    for s in range(40):
        upstream = [place[v] for v in range(40) if s in path(v, ahead)]
        assert sorted(upstream) == list(range(place[s], place[s] + len(upstream)))


def path(s: int, ahead: np.ndarray) -> list[int]:
    """The states on the way from s to the root, s included."""
    states = [s]
    while ahead[states[-1]] != states[-1]:
        states.append(int(ahead[states[-1]]))
    return states


def test_states_are_numbered_by_range_and_the_ways_of_a_range_hardly_leave_it(monkeypatch):
    monkeypatch.setattr(blocks, "STATES_OF_A_BLOCK", 600)
    mdp = mw.read("rooms-60:0")
    polytope = Polytope(mdp)
    inside = polytope._oracle._copied()
    assert sorted(inside.states) == list(range(mdp.n_states))
    np.testing.assert_array_equal(inside.number[inside.choices], np.arange(mdp.n_choices))
    rebuilt = mdp.transitions[inside.choices][:, inside.states]
    assert abs(rebuilt - inside.mdp.transitions).max() == 0
    bounds = blocks.bounds_of(mdp.n_states)
    assert len(bounds) == 7
    ways = Ways(mdp)
    ways.find(np.array(mdp.reward), int(np.argmax(mdp.reward)), -np.inf)
    number = np.empty(mdp.n_states, np.int64)
    number[inside.states] = np.arange(mdp.n_states)
    which = np.searchsorted(bounds, number, side="right")
    assert np.mean(which != which[ways.ahead]) < 0.03
