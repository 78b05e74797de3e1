"""Neighbourhoods: against powers of dense matrices, built move by move; what is near and what is not."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import manyways as mw
from manyways import MDP, Grid, SettingError, States
from manyways.behaviours import Near, Walking
from manyways.formats.text_maps import world_from_rows
from manyways.objectives.divergence import pairwise_divergences
from problems import KNOWN, random_mdp

OPEN = mw.grid_world(np.zeros((9, 11), bool), (0, 0), (8, 10), enterable_walls=False)
WALLED = ["#########", "#S..#...#", "#...#...#", "#...#...#", "#.......#", "#...#..G#", "#########"]


def two_way(mdp: MDP) -> np.ndarray:
    """(S, S) which moves can be made both ways, by looking at every transition."""
    can = np.zeros((mdp.n_states, mdp.n_states), bool)
    for choice, state in enumerate(mdp.choice_state):
        for target, chance in enumerate(mdp.transitions[[choice]].toarray()[0]):
            can[state, target] |= chance > 0
    if mdp.layout is not None:
        for state, cell in enumerate(mdp.layout.cells):
            if mdp.layout.blocked.ravel()[cell]:
                can[state, :] = can[:, state] = False
    both = can & can.T
    np.fill_diagonal(both, False)
    return both


def walk(graph: np.ndarray, steps: int) -> np.ndarray:
    """The matrix whose column s is where a walk from s ends: a power, by repeated dense products."""
    stay_or_move = graph.astype(float) + np.eye(len(graph))
    return np.linalg.matrix_power(stay_or_move / stay_or_move.sum(axis=0), steps)


def by_state(mdp: MDP) -> np.ndarray:
    return (mdp.choice_state == np.arange(mdp.n_states)[:, None]).astype(float)


def all_in(mdp: MDP, state: int) -> np.ndarray:
    """(N,) all time on the first choice of a state."""
    x = np.zeros(mdp.n_choices)
    x[mdp.first_choice[state]] = 1.0
    return x


def state_at(mdp: MDP, row: int, column: int) -> int:
    return [mdp.layout.position(s) for s in range(mdp.n_states)].index((row, column))


@pytest.mark.parametrize("mdp", [OPEN, mw.four_rooms(1), mw.read("nine-rooms:2")], ids=["open", "four", "nine"])
@pytest.mark.parametrize("radius", [1.0, 2.0, 3.5])
def test_images_are_powers_of_the_walk(mdp, radius):
    graph, compared = two_way(mdp), Near(radius).on(mdp)
    where = np.array([mdp.layout.position(s) for s in range(mdp.n_states)])
    squared = [sum(((where[s] - where[t]) ** 2).sum() for t in np.flatnonzero(row)) for s, row in enumerate(graph)]
    lengths = [total / (1 + row.sum()) for total, row in zip(squared, graph, strict=True) if row.any()]
    steps = round(radius**2 / np.mean(lengths))
    matrix = walk(graph, steps) @ by_state(mdp)
    rng = np.random.default_rng(0)
    x, y = rng.random((3, mdp.n_choices)), rng.random((3, mdp.n_states))
    assert compared.steps == steps
    np.testing.assert_allclose(compared.forward(x), x @ matrix.T, rtol=1e-12)
    np.testing.assert_allclose(compared.backward(y), y @ matrix, rtol=1e-12)


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.5, 1.0, 2.0, 3.0]))
def test_models_without_a_map_count_moves(seed, radius):
    mdp = random_mdp(np.random.default_rng(seed), max_states=6)
    graph = two_way(mdp)
    if not graph.any():
        with pytest.raises(SettingError, match="can be made both ways"):
            Near(radius).on(mdp)
        return
    leaving = [row.sum() / (1 + row.sum()) for row in graph if row.any()]
    matrix = walk(graph, round(radius**2 / np.mean(leaving))) @ by_state(mdp)
    x = np.random.default_rng(seed).random(mdp.n_choices)
    np.testing.assert_allclose(Near(radius).on(mdp).forward(x), matrix @ x, rtol=1e-12)


def test_the_spread_is_the_radius_where_no_walls_are_in_the_way():
    field = mw.grid_world(np.zeros((61, 61), bool), (0, 0), (60, 60), directions=8, enterable_walls=False)
    middle = state_at(field, 30, 30)
    where = np.column_stack(np.divmod(field.layout.cells, 61))
    for radius in (2.0, 5.0, 7.0):
        image = Near(radius).on(field).forward(all_in(field, middle))
        assert np.sqrt(image @ ((where - 30) ** 2).sum(axis=1)) == pytest.approx(radius, rel=0.02)


@pytest.mark.parametrize("enterable_walls", [False, True])
def test_time_spreads_round_walls_and_never_through_them(enterable_walls):
    mdp = world_from_rows(WALLED, "walled", enterable_walls=enterable_walls)
    compared = Near(1.5).on(mdp)  # the way round has more moves than the walk has steps
    left, right = state_at(mdp, 1, 3), state_at(mdp, 1, 5)
    image = compared.forward(all_in(mdp, left))
    assert compared.steps < 8
    assert image[right] == 0.0
    assert image[state_at(mdp, 2, 3)] > 0
    assert Near(4.0).on(mdp).forward(all_in(mdp, left))[right] > 0
    if enterable_walls:
        assert image[state_at(mdp, 1, 4)] == 0.0


def test_the_jump_from_the_goal_to_the_start_joins_no_neighbourhoods():
    goal = int(np.flatnonzero(OPEN.labels["goal"])[0])
    image = Near(3.0).on(OPEN).forward(all_in(OPEN, goal))
    assert image[goal] == 1.0  # nothing leads back from the start, so the goal has no neighbours at all


def test_ways_side_by_side_are_alike_and_ways_apart_are_not():
    rows = [range(state_at(OPEN, row, 0), state_at(OPEN, row, 10)) for row in (1, 2, 7)]
    x = np.stack([np.mean([all_in(OPEN, s) for s in row], axis=0) for row in rows])
    by_cell = pairwise_divergences(States().on(OPEN).forward(x))
    near = pairwise_divergences(Near(2.0).on(OPEN).forward(x))
    np.testing.assert_allclose(by_cell[0, 1:], np.log(2))
    assert near[0, 1] < 0.07
    assert near[0, 2] > 0.5


def test_radius_0_compares_states():
    np.testing.assert_array_equal(Near(0).on(OPEN).groups, OPEN.choice_state)
    np.testing.assert_array_equal(Near(0.0).on(KNOWN["3-cycle"].mdp).groups, KNOWN["3-cycle"].mdp.choice_state)


@pytest.mark.parametrize("radius", [20.0, 100.0, 1e9, 1e300])
def test_a_radius_larger_than_the_map_makes_everything_nearly_the_same(radius):
    x = np.stack([all_in(OPEN, state_at(OPEN, 0, 3)), all_in(OPEN, state_at(OPEN, 8, 7))])
    image = Near(radius).on(OPEN).forward(x)
    np.testing.assert_allclose(image.sum(axis=1), 1.0)
    assert pairwise_divergences(image)[0, 1] < 0.25
    line = MDP.from_transitions(
        [(i, "on", (i + 1) % 6, 1.0, 0.0) for i in range(6)] + [(i, "back", (i - 1) % 6, 1.0, 0.0) for i in range(6)]
    )
    np.testing.assert_allclose(Near(radius).on(line).forward(all_in(line, 2)), 1 / 6)


def test_a_model_with_one_way_moves_only_is_refused_in_the_language_of_the_caller():
    mdp = KNOWN["3-cycle"].mdp
    with pytest.raises(SettingError, match=r"no move of 3-cycle can be made both ways.*Labels\(\) or States") as caught:
        Near().on(mdp)
    assert caught.value.on_command_line.endswith("use --behaviour labels or states")


@pytest.mark.parametrize("radius", [-1, np.nan, np.inf, "2", True, None])
def test_the_radius_must_be_a_number_of_at_least_0(radius):
    with pytest.raises(SettingError, match="the radius must be a finite number of at least 0"):
        Near(radius)


# ---- blocks -------------------------------------------------------------------------------------


def test_cells_are_merged_into_blocks_that_walls_cut():
    """Radius 8: squares of 2 x 2 cells; cells of one square that are joined by moves inside of it are one place."""
    mdp = world_from_rows(WALLED, "walled", enterable_walls=False)
    graph, compared = two_way(mdp), Near(8.0).on(mdp)
    square = [(row // 2, column // 2) for row, column in (mdp.layout.position(s) for s in range(mdp.n_states))]
    block = list(range(mdp.n_states))
    for _ in range(mdp.n_states):  # each state takes the smallest number that it meets in its square
        for s in range(mdp.n_states):
            block[s] = min([block[s]] + [block[t] for t in np.flatnonzero(graph[s]) if square[t] == square[s]])
    place = compared.place[mdp.first_choice[:-1]]
    for s in range(mdp.n_states):
        for t in range(mdp.n_states):
            assert (place[s] == place[t]) == (block[s] == block[t])
    between = np.zeros((place.max() + 1,) * 2, bool)
    for s, t in np.argwhere(graph):
        between[place[s], place[t]] |= place[s] != place[t]
    matrix = walk(between, compared.steps)[:, place] @ by_state(mdp)
    x, y = np.random.default_rng(0).random(mdp.n_choices), np.random.default_rng(1).random(len(between))
    np.testing.assert_allclose(compared.forward(x), matrix @ x, rtol=1e-12)
    np.testing.assert_allclose(compared.backward(y), y @ matrix, rtol=1e-12)


def test_blocks_change_little():
    field = mw.grid_world(np.zeros((48, 48), bool), (0, 0), (47, 47), enterable_walls=False)
    cells = [state_at(field, 24, column) for column in range(14, 34)]
    x = np.stack([all_in(field, s) for s in cells])
    fine, coarse = (pairwise_divergences(Near(radius).on(field).forward(x)) for radius in (7.99, 8.0))
    assert Near(8.0).on(field).forward(x).shape[1] < field.n_states / 3
    assert np.diag(coarse, 1).max() < 0.02
    assert np.abs(fine - coarse).max() < 0.06


# ---- units --------------------------------------------------------------------------------------


def test_on_maps_in_metres_the_radius_is_in_metres():
    cells = Near(3.0).on(OPEN)
    layout = Grid(OPEN.layout.cells, OPEN.layout.blocked, metres_per_cell=0.25)
    details = {"start": OPEN.start, "actions": OPEN.actions, "action_names": OPEN.action_names}
    measured = MDP.from_csr(OPEN.transitions, OPEN.reward, OPEN.first_choice, layout=layout, **details)
    x = np.random.default_rng(0).random(OPEN.n_choices)
    np.testing.assert_array_equal(Near(0.75).on(measured).forward(x), cells.forward(x))


def test_states_in_one_cell_are_a_move_apart():
    layout = Grid(np.zeros(4, np.int64), np.zeros((1, 1), bool))
    rows = [(i, move, (i + move) % 4, 1.0, 0.0) for i in range(4) for move in (-1, 1)]
    mdp = MDP.from_transitions(rows, layout=layout)
    np.testing.assert_allclose(Near(1.0).on(mdp).forward(all_in(mdp, 0)), walk(two_way(mdp), 2)[:, 0])


# ---- the map itself -----------------------------------------------------------------------------


def test_rounding_is_within_the_bound_that_proofs_use():
    """The walk with fractions, which do not round."""
    mdp = world_from_rows(WALLED, "walled", enterable_walls=False)
    graph, compared = two_way(mdp), Near(4.0).on(mdp)
    x = np.random.default_rng(3).dirichlet(np.full(mdp.n_choices, 0.1))
    exact = [sum(map(Fraction, x[mdp.choice_state == s].tolist())) for s in range(mdp.n_states)]
    degree = 1 + graph.sum(axis=1)
    for _ in range(compared.steps):
        sent = [share / int(d) for share, d in zip(exact, degree, strict=True)]
        exact = [sent[s] + sum(sent[t] for t in np.flatnonzero(graph[s])) for s in range(mdp.n_states)]
    for found, wanted in zip(compared.forward(x).tolist(), exact, strict=True):
        assert abs(Fraction(found) - wanted) <= compared.most_terms * Fraction(2) ** -53 * wanted
    assert compared.most_terms < 500


@pytest.mark.parametrize("graph", [[[0, 1], [0, 0]], [[1, 1], [1, 0]]])
def test_the_graph_of_a_walk_must_be_symmetric_without_loops(graph):
    with pytest.raises(SettingError, match="must be symmetric"):
        Walking(np.arange(2), np.array(graph), 1)
