"""The feasible set: the best vertex in a direction, the nearest point, a random point."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import linprog, minimize

import manyways as mw
from manyways import MDP, Average, Discounted, EmptyDomain, Polytope, SettingError
from manyways.model.occupancy import chain, deterministic
from manyways.polytope import Answer, Oracle, Vertex
from problems import KINDS, KNOWN, random_accessible_mdp, random_mdp, vertices
from shared import WORLDS

CRITERIA = [Average(), Discounted(0.9), Discounted(0.999)]
MODELS_OF_A_KIND = 40  # times five kinds and three criteria: 600 linear programs

seeds = st.integers(0, 2**32 - 1)


def a_model(rng: np.random.Generator, criterion, kind: str | None = None, **sizes) -> MDP:
    make = random_accessible_mdp if isinstance(criterion, Average) else random_mdp
    return make(rng, kind=kind, **sizes)


def equalities(mdp: MDP, criterion) -> tuple[sparse.csr_array, np.ndarray]:
    """Flow conservation and the total, as the paper writes them: one row too many, none left out."""
    d = criterion.discount
    by_state = (mdp.choice_state[None, :] == np.arange(mdp.n_states)[:, None]).astype(float)
    balance = sparse.csr_array(by_state) - d * mdp.transitions.T
    total = sparse.csr_array(np.ones((1, mdp.n_choices)))
    return sparse.csr_array(sparse.vstack([balance, total])), np.append((1 - d) * mdp.start, 1.0)


def best_by_linear_program(mdp: MDP, criterion, c: np.ndarray, at_least: float = 0.0, tight: bool = False) -> float:
    left, right = equalities(mdp, criterion)
    options = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10} if tight else {}
    answer = linprog(-c, A_eq=left, b_eq=right, bounds=(at_least, None), method="highs", options=options)
    assert answer.status == 0, answer.message
    return -answer.fun


# ---- best -------------------------------------------------------------------------------------


def assert_best(polytope: Polytope, c: np.ndarray, vertex, expected: float) -> None:
    scale = np.abs(c).max()
    assert vertex.value == pytest.approx(expected, abs=1e-7 * scale)
    assert vertex.value == pytest.approx(c @ vertex.occupancy, abs=1e-12 * scale)
    assert vertex.bound >= vertex.value
    assert vertex.bound - vertex.value <= 1e-8 * scale
    assert polytope.residual(vertex.occupancy) <= 1e-9


@pytest.mark.parametrize("criterion", CRITERIA, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_best_is_what_a_linear_program_finds(kind, criterion):
    rng = np.random.default_rng(KINDS.index(kind))
    for _ in range(MODELS_OF_A_KIND):
        mdp = a_model(rng, criterion, kind, max_states=5)
        polytope = Polytope(mdp, criterion)
        c, other = rng.normal(size=(2, mdp.n_choices))
        expected = best_by_linear_program(mdp, criterion, c)
        for warm in (None, polytope.best(other), polytope.best(-c)):
            vertex = polytope.best(c, warm)
            assert_best(polytope, c, vertex, expected)
            occupancy = criterion.occupancy(mdp, deterministic(mdp, vertex.choices))
            np.testing.assert_allclose(occupancy, vertex.occupancy, atol=1e-9)


@pytest.mark.parametrize("criterion", CRITERIA, ids=str)
def test_best_is_the_best_of_all_vertices_also_with_ties_and_odd_scales(criterion):
    rng = np.random.default_rng(1)
    for _ in range(60):
        mdp = a_model(rng, criterion)
        polytope = Polytope(mdp, criterion)
        corners = vertices(mdp, criterion)
        for c in (
            rng.integers(-1, 2, size=mdp.n_choices).astype(float) + 1e-300,
            1e9 * rng.normal(size=mdp.n_choices),
            1e-9 * rng.normal(size=mdp.n_choices),
            np.full(mdp.n_choices, -27.0),
            np.where(rng.random(mdp.n_choices) < 0.5, -27.0, rng.normal(size=mdp.n_choices)),
        ):
            assert_best(polytope, c, polytope.best(c), (corners @ c).max())


@pytest.mark.parametrize("name", KNOWN)
@pytest.mark.parametrize("criterion", CRITERIA, ids=str)
def test_best_reward_in_closed_form(name, criterion):
    problem = KNOWN[name]
    vertex = Polytope(problem.mdp, criterion).best(problem.mdp.reward)
    assert_best(Polytope(problem.mdp, criterion), problem.mdp.reward, vertex, problem.best(criterion))


def slow_climb() -> MDP:
    """Against the wind it takes seven million steps to the top, where one may rest, or earn a millionth a step."""
    rows = []
    for i in range(7):
        rows += [(i, "climb", i + 1, 0.1, -1.0), (i, "climb", max(i - 1, 0), 0.9, -1.0)]
    rows += [(7, "rest", 7, 1.0, 0.0), (7, "earn", 7, 1.0, 1e-6), (7, "jump", 6, 1.0, 0.0)]
    return MDP.from_transitions(rows, name="slow climb")


def test_best_does_not_lose_its_digits_to_states_that_it_leaves():
    mdp = slow_climb()
    polytope = Polytope(mdp)
    resting = polytope.best((np.array([mdp.action_name(x) for x in range(mdp.n_choices)]) == "rest").astype(float))
    assert_best(polytope, mdp.reward, polytope.best(mdp.reward), 1e-6)
    assert_best(polytope, mdp.reward, polytope.best(mdp.reward, warm=resting), 1e-6)


def open_grid(size: int) -> MDP:
    return mw.grid_world(np.zeros((size, size), bool), (0, 0), (size - 1, size - 1), name=f"open grid {size}")


@pytest.mark.parametrize(
    ("mdp", "directions"),
    [pytest.param(open_grid(size), 40, id=f"open grid {size}") for size in (5, 6, 7)]
    + [pytest.param(mw.four_rooms(0), 5, id="four rooms")],
)
def test_best_is_proved_where_many_vertices_are_as_good(mdp, directions):
    """Where y projects to x, c = y - x is the same on all vertices of the face that x lies in, as
    gradients at stationary points are: a policy iteration without care runs in circles there."""
    polytope = Polytope(mdp)
    rng = np.random.default_rng(mdp.n_states)
    for _ in range(directions):
        y = polytope.sample(rng) + 0.1 * rng.normal(size=polytope.size)
        x = polytope.project(y)
        assert_best(polytope, y - x, polytope.best(y - x), (y - x) @ x)


@pytest.mark.parametrize("path", WORLDS, ids=lambda path: path.stem)
def test_best_reward_of_the_shared_worlds(path):
    mdp = mw.read(path)
    polytope = Polytope(mdp)
    vertex = polytope.best(mdp.reward)
    assert_best(polytope, mdp.reward, vertex, best_by_linear_program(mdp, Average(), mdp.reward, tight=True))


def test_there_are_twenty_shared_worlds():
    assert len(WORLDS) == 20


def test_the_helper_that_judges_an_answer_can_fail():
    problem = KNOWN["losses"]
    polytope, c = Polytope(problem.mdp), problem.mdp.reward
    good = polytope.best(c)
    assert_best(polytope, c, good, -1.25)
    wrong = [
        Answer(good.occupancy, good.choices, value=good.value, bound=good.value - 1e-3),
        Answer(good.occupancy, good.choices, value=good.value, bound=good.value + 1e-3),
        Answer(good.occupancy, good.choices, value=good.value + 1e-3, bound=good.value + 1e-3),
        Answer(problem.long_run, good.choices, value=float(c @ problem.long_run), bound=good.bound),
        Answer(good.occupancy[[1, 0, 3, 2]], good.choices, value=good.value, bound=good.bound),
    ]
    for vertex in wrong:
        with pytest.raises(AssertionError):
            assert_best(polytope, c, vertex, -1.25)


# ---- project ----------------------------------------------------------------------------------


def assert_nearest(polytope: Polytope, y: np.ndarray, x: np.ndarray, farthest: float) -> None:
    """x is nearest to y exactly if no feasible z has <y - x, z - x> > 0; `farthest` is the maximum of <y - x, z>."""
    assert polytope.residual(x) <= 1e-9
    assert farthest - (y - x) @ x <= 1e-11 * max(1.0, np.abs(y).max())  # then they are within 3e-6 of each other


@pytest.mark.parametrize("criterion", CRITERIA, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_the_projection_is_the_nearest_point(kind, criterion):
    rng = np.random.default_rng(10 + KINDS.index(kind))
    for _ in range(15):
        mdp = a_model(rng, criterion, kind)
        polytope = Polytope(mdp, criterion)
        corners = vertices(mdp, criterion)
        for scale in (0.01, 0.1, 1.0):  # the same polytope again: the solver is kept between calls
            y = scale * rng.normal(size=mdp.n_choices)
            x = polytope.project(y)
            assert_nearest(polytope, y, x, (corners @ (y - x)).max())


@pytest.mark.parametrize("name", KNOWN)
def test_the_projection_with_a_far_horizon(name):
    """The flow rows then sum to almost nothing, and the total must hold all the same."""
    mdp, criterion = KNOWN[name].mdp, Discounted(0.9999)
    polytope, corners = Polytope(mdp, criterion), vertices(KNOWN[name].mdp, criterion)
    rng = np.random.default_rng(0)
    for _ in range(5):
        y = rng.normal(size=mdp.n_choices)
        x = polytope.project(y)
        assert_nearest(polytope, y, x, (corners @ (y - x)).max())


def test_the_projection_agrees_with_another_solver():
    rng = np.random.default_rng(3)
    for criterion in (Average(), Discounted(0.9)):
        for _ in range(6):
            mdp = a_model(rng, criterion, "dense")
            left, right = equalities(mdp, criterion)
            y = rng.normal(size=mdp.n_choices)
            dense = left.toarray()[1:]  # the rows without the first are independent
            answer = minimize(
                lambda x, y=y: ((x - y) ** 2).sum(),
                criterion.occupancy(mdp, np.repeat(1 / np.diff(mdp.first_choice), np.diff(mdp.first_choice))),
                jac=lambda x, y=y: 2 * (x - y),
                bounds=[(0, None)] * mdp.n_choices,
                constraints={
                    "type": "eq",
                    "fun": lambda x, a=dense, b=right[1:]: a @ x - b,
                    "jac": lambda _, a=dense: a,
                },
                method="SLSQP",
                options={"maxiter": 1000, "ftol": 1e-15},
            )
            np.testing.assert_allclose(Polytope(mdp, criterion).project(y), answer.x, atol=1e-6)


@given(seeds, st.sampled_from(CRITERIA))
def test_a_feasible_point_is_its_own_projection(seed, criterion):
    rng = np.random.default_rng(seed)
    mdp = a_model(rng, criterion)
    polytope = Polytope(mdp, criterion)
    for x in (polytope.sample(rng), polytope.best(rng.normal(size=mdp.n_choices)).occupancy):
        np.testing.assert_allclose(polytope.project(x), x, atol=1e-6)


def test_the_projection_on_a_four_room_world():
    mdp = mw.four_rooms(0)
    polytope = Polytope(mdp)
    rng = np.random.default_rng(0)
    for scale in (1e-3, 1e-1):
        y = polytope.sample(rng) + scale * rng.normal(size=polytope.size)
        x = polytope.project(y)
        assert polytope.residual(x) <= 1e-8
        assert_nearest(polytope, y, x, polytope.best(y - x).value)


def test_the_projection_in_a_restricted_domain():
    rng = np.random.default_rng(4)
    mdp = random_accessible_mdp(rng, 3, 2, "dense")
    delta = largest_delta(mdp, Average()) / 2
    polytope = Polytope(mdp, at_least=delta)
    y = rng.normal(size=mdp.n_choices)
    x = polytope.project(y)
    assert x.min() >= delta
    assert_nearest(polytope, y, x, best_by_linear_program(mdp, Average(), y - x, at_least=delta))


def test_the_helper_that_judges_a_projection_can_fail():
    problem = KNOWN["losses"]
    polytope, corners = Polytope(problem.mdp), vertices(problem.mdp, Average())
    y = np.array([1.0, 0.0, 0.0, 0.0])
    assert_nearest(polytope, y, y, (corners @ (y - y)).max())
    for x in (corners[0], corners.mean(axis=0), y + 1e-6):
        if not np.allclose(x, y, atol=1e-9):
            with pytest.raises(AssertionError):
                assert_nearest(polytope, y, x, (corners @ (y - x)).max())


# ---- the restricted domain --------------------------------------------------------------------


@cache
def largest_delta(mdp: MDP, criterion) -> float:
    """max delta such that x >= delta: one more column in the linear program."""
    left, right = equalities(mdp, criterion)
    columns = mdp.n_choices
    above = sparse.hstack([-sparse.eye_array(columns), np.ones((columns, 1))])
    answer = linprog(
        -np.eye(columns + 1)[-1],
        A_ub=sparse.csr_array(above),
        b_ub=np.zeros(columns),
        A_eq=sparse.csr_array(sparse.hstack([left, np.zeros((len(right), 1))])),
        b_eq=right,
        bounds=(0, None),
        method="highs",
    )
    assert answer.status == 0, answer.message
    return -answer.fun


@pytest.mark.parametrize("criterion", [Average(), Discounted(0.9)], ids=str)
def test_the_largest_possible_minimum_is_named_and_right(criterion):
    rng = np.random.default_rng(6)
    for _ in range(15):
        mdp = a_model(rng, criterion, "dense", max_states=3)
        largest = largest_delta(mdp, criterion)
        if mdp.n_choices == 1:  # always there
            assert largest == pytest.approx(1.0)
            continue
        with pytest.raises(EmptyDomain, match=f"everywhere; the largest possible is {largest:.5f}"[:-4]) as refusal:
            Polytope(mdp, criterion, at_least=largest * (1 + 1e-6))
        assert refusal.value.largest == pytest.approx(largest, rel=1e-9)
        polytope = Polytope(mdp, criterion, at_least=largest * (1 - 1e-6))
        assert polytope.residual(polytope.sample(rng)) <= 1e-8


@pytest.mark.parametrize("criterion", [Average(), Discounted(0.9)], ids=str)
def test_best_in_a_restricted_domain_is_what_a_linear_program_finds(criterion):
    rng = np.random.default_rng(7)
    for _ in range(30):
        mdp = a_model(rng, criterion, "dense", max_states=3)
        delta = largest_delta(mdp, criterion) * rng.uniform(0.01, 0.99)
        polytope = Polytope(mdp, criterion, at_least=delta)
        for c in rng.normal(size=(3, mdp.n_choices)):  # the solver is kept between calls
            vertex = polytope.best(c)
            assert vertex.occupancy.min() >= delta
            assert_best(polytope, c, vertex, best_by_linear_program(mdp, criterion, c, at_least=delta))


def test_a_state_that_is_always_transient_leaves_no_room_for_a_minimum():
    with pytest.raises(EmptyDomain) as refusal:
        Polytope(KNOWN["discounted chain"].mdp, at_least=1e-6)
    assert refusal.value.largest == pytest.approx(0.0, abs=1e-9)


def test_the_residual_sees_the_minimum():
    mdp = mw.grid_world(np.zeros((1, 2), bool), (0, 0), (0, 1))
    polytope = Polytope(mdp, at_least=0.05)
    vertex = Polytope(mdp).best(mdp.reward).occupancy
    assert polytope.residual(vertex) == pytest.approx(0.05)


# ---- sample and realise -----------------------------------------------------------------------


@pytest.mark.parametrize("criterion", CRITERIA, ids=str)
def test_samples_are_feasible_and_come_from_the_generator_alone(criterion):
    rng = np.random.default_rng(8)
    for _ in range(40):
        mdp = a_model(rng, criterion)
        polytope = Polytope(mdp, criterion)
        x, same = (polytope.sample(np.random.default_rng(1)) for _ in range(2))
        assert polytope.residual(x) <= 1e-9
        np.testing.assert_array_equal(x, same)
    bandit = Polytope(KNOWN["bandit"].mdp, criterion)
    assert not np.array_equal(bandit.sample(rng), bandit.sample(rng))


def test_samples_of_a_restricted_domain_stay_in_it():
    mdp = random_accessible_mdp(np.random.default_rng(4), 3, 2, "dense")
    polytope = Polytope(mdp, at_least=0.99 * largest_delta(mdp, Average()))
    for seed in range(5):
        assert polytope.residual(polytope.sample(np.random.default_rng(seed))) <= 1e-8


@pytest.mark.parametrize("criterion", CRITERIA, ids=str)
def test_a_vertex_is_realised_by_its_policy(criterion):
    rng = np.random.default_rng(9)
    for _ in range(40):
        mdp = a_model(rng, criterion)
        polytope = Polytope(mdp, criterion)
        vertex = polytope.best(rng.normal(size=mdp.n_choices))
        policy, occupancy = polytope.realise(vertex.occupancy)
        np.testing.assert_allclose(occupancy, vertex.occupancy, atol=1e-9)
        np.testing.assert_allclose(criterion.occupancy(mdp, policy), occupancy, atol=1e-15)


# ---- refusals ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("discount", "message"),
    [
        *[(d, f"the discount must lie strictly between 0 and 1, found {d}") for d in (0.0, 1.0, -0.5, 1.5)],
        *[(d, f"the discount must be a finite number, found {d}") for d in (float("nan"), float("inf"))],
    ],
)
def test_a_discount_outside_zero_and_one_is_refused(discount, message):
    with pytest.raises(SettingError, match=message):
        Discounted(discount)


def test_a_discount_of_one_is_told_about_the_average():
    with pytest.raises(SettingError, match=r"use Average\(\)"):
        Discounted(1.0)


@pytest.mark.parametrize("at_least", [-0.1, 1.0, float("nan")])
def test_a_minimum_that_is_no_share_of_time_is_refused(at_least):
    with pytest.raises(SettingError, match="0 <= at_least < 1"):
        Polytope(KNOWN["losses"].mdp, at_least=at_least)


# ---- wrapping ---------------------------------------------------------------------------------


class Counting:
    """An oracle around another one that counts the calls."""

    def __init__(self, oracle: Oracle) -> None:
        self.oracle, self.calls = oracle, 0

    def best(self, c: np.ndarray, warm: Vertex | None = None) -> Answer:
        self.calls += 1
        return self.oracle.best(c, warm)


def test_an_oracle_can_be_wrapped():
    made: list[Counting] = []

    def wrap(oracle: Oracle) -> Oracle:
        made.append(Counting(oracle))
        return made[-1]

    mdp = KNOWN["stop world"].mdp
    polytope = Polytope(mdp, wrap=wrap)
    assert polytope.optimum.value == pytest.approx(KNOWN["stop world"].best_average)
    assert made[0].calls == 1
    twin = polytope.twin()
    twin.best(mdp.reward, polytope.optimum)
    assert [oracle.calls for oracle in made] == [1, 1]


def test_a_walk_is_where_a_random_policy_is_in_its_first_steps():
    for seed in range(5):
        mdp = random_mdp(np.random.default_rng(seed), max_states=8)
        polytope = Polytope(mdp, mw.Discounted(0.9))
        found = polytope.wander(np.random.default_rng(seed))
        policy = polytope._random_policy(np.random.default_rng(seed))
        now, total, step = mdp.start.copy(), np.zeros(mdp.n_states), chain(mdp, policy).T
        for _ in range(50):
            total, now = total + now, step @ now
        np.testing.assert_allclose(found, policy * (total / 50)[mdp.choice_state], rtol=1e-12, atol=1e-15)
