"""Cheapest ways against SciPy's, and the policies made of them."""

from collections.abc import Iterator

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse import csgraph

import manyways as mw
from manyways import MDP
from manyways.polytope import RenumberedSweeps
from manyways.polytope.ways import LEAST_STEP, Ways
from problems import KINDS, random_accessible_mdp


def likely_graph(mdp: MDP, c: np.ndarray, guess: float) -> np.ndarray:
    """(S, S) the cost of the cheapest move from each state to each other, by a loop; infinite where there is none."""
    graph = np.full((mdp.n_states, mdp.n_states), np.inf)
    for x, s in enumerate(mdp.choice_state):
        row = mdp.transitions[[x]].toarray()[0]
        row[s] = 0.0
        to = int(np.argmax(row))
        if row[to] > 0:
            step = (max(guess - c[x], 0.0) + (LEAST_STEP * abs(guess) or 1.0)) / row[to]
            graph[s, to] = min(graph[s, to], step)
    return graph


def assert_leads(mdp: MDP, choices: np.ndarray, place: int) -> None:
    """From each state the policy reaches the place with a positive chance."""
    count, component = csgraph.connected_components(mdp.transitions[choices], connection="strong")
    edges = mdp.transitions[choices].tocoo()
    leaves = np.zeros(count, bool)
    leaves[component[edges.row][component[edges.row] != component[edges.col]]] = True
    assert np.flatnonzero(~leaves).tolist() == [component[place]]


def steps_of(ways: Ways, place: int) -> Iterator[int]:
    """How many steps each state is away from the place."""
    for start in range(len(ways.ahead)):
        s, steps = start, 0
        while s != place:
            s, steps = int(ways.ahead[s]), steps + 1
            assert steps < len(ways.ahead), "a way leads around in circles"
        yield steps


@pytest.mark.parametrize("spread", [1.0, 1e3])
@pytest.mark.parametrize("guess", [-np.inf, 0.3])
@pytest.mark.parametrize("world", ["four-rooms:3", "rooms-30:1"])
def test_ways_are_the_cheapest_along_likely_moves(world, guess, spread):
    mdp = mw.read(world)
    c = np.random.default_rng(4).normal(size=mdp.n_choices)
    c = np.where(c < -1, spread * c, c)  # many stages without any state, if these are dear
    ways = Ways(mdp)
    target = int(np.argmax(c))
    choices = ways.find(c, target, guess)
    guess = max(guess, np.median(np.maximum.reduceat(c, mdp.first_choice[:-1])))
    expected = csgraph.dijkstra(sparse.csr_array(np.nan_to_num(likely_graph(mdp, c, guess), posinf=0)).T)
    np.testing.assert_allclose(ways._cost, expected[mdp.choice_state[target]], rtol=1e-6)
    assert choices[mdp.choice_state[target]] == target
    assert_leads(mdp, choices, int(mdp.choice_state[target]))


@pytest.mark.parametrize("kind", KINDS)
def test_every_state_leads_to_the_target_of_random_models(kind):
    rng = np.random.default_rng(KINDS.index(kind))
    for _ in range(30):
        mdp = random_accessible_mdp(rng, max_states=8, kind=kind)
        c = rng.normal(size=mdp.n_choices)
        target = mw.polytope.PolicyIteration(mdp, 1.0).most_paying(c)
        ways = Ways(mdp)
        assert_leads(mdp, ways.find(c, target, -np.inf), int(mdp.choice_state[target]))
        assert len(list(steps_of(ways, int(mdp.choice_state[target])))) == mdp.n_states


def test_one_forbidden_choice_does_not_hide_the_other_costs():
    mdp = mw.read("rooms-30:0")
    c = np.array(mdp.reward)
    target = int(np.argmax(c))
    calm = Ways(mdp).find(c, target, -np.inf)
    c[np.flatnonzero(np.isin(np.arange(mdp.n_choices), calm, invert=True))[7]] = -1e10
    np.testing.assert_array_equal(Ways(mdp).find(c, target, -np.inf), calm)


def test_a_policy_that_goes_astray_is_noticed():
    mdp = mw.read("four-rooms:0")
    staying = mdp.first_choice[1:] - 1
    with pytest.raises(AssertionError):
        assert_leads(mdp, staying, 0)


def test_a_copy_is_the_model_and_is_numbered_breadth_first():
    mdp = mw.read("rooms-50:0")
    inside = RenumberedSweeps(mdp, 1.0)._copied()
    assert sorted(inside.states) == list(range(mdp.n_states))
    np.testing.assert_array_equal(inside.number[inside.choices], np.arange(mdp.n_choices))
    assert abs(mdp.transitions[inside.choices][:, inside.states] - inside.mdp.transitions).max() == 0
    ways = Ways(mdp)
    ways.find(np.array(mdp.reward), int(np.argmax(mdp.reward)), -np.inf)
    steps = np.array(list(steps_of(ways, int(mdp.choice_state[np.argmax(mdp.reward)]))))
    assert np.all(np.diff(steps[inside.states]) >= 0)
    assert steps[inside.states[-1]] > 50
