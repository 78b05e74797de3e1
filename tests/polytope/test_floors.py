"""The best plan that meets floors: against enumeration of all deterministic policies, and against linear programs."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
import pytest

import manyways as mw
from evaluation import best_by_linear_program, occupancy_of, policies_of, random_episodes, states_that_randomise
from manyways.errors import SettingError
from manyways.model.episodes import episode_ends
from manyways.polytope import Floor, Polytope, Vertex, feasible_plan
from manyways.polytope.floors import Floored
from problems import random_accessible_mdp, vertices
from shared import WORLDS

CRITERIA = [mw.Average(), mw.Discounted(0.9)]
SLACKS = (0.0, 0.02, 0.1, 0.5)


def value_floor(polytope: Polytope, corners: np.ndarray, slack: float) -> Floor:
    """At least the best value minus a share of the range of values."""
    values = corners @ polytope.mdp.reward
    return Floor("value", polytope.optimum.value - slack * float(np.ptp(values)), per_reward=1.0)


def rows(mdp: mw.MDP, floors: list[Floor]) -> list[tuple[np.ndarray, float]]:
    return [(floor.weights(mdp), floor.level) for floor in floors]


def best_mixture(mdp: mw.MDP, corners: np.ndarray, c: np.ndarray, floor: Floor) -> float:
    """The largest <c, x> of mixtures of two vertices with a common state that meet a floor."""
    heights, worth = corners @ floor.weights(mdp) - floor.level, corners @ c
    states = np.add.reduceat(corners, mdp.first_choice[:-1], axis=1) > 1e-9
    best = float(worth[heights >= -1e-10].max())
    for i, j in product(np.flatnonzero(heights > 0), np.flatnonzero(heights < 0)):
        if (states[i] & states[j]).any():
            share = heights[i] / (heights[i] - heights[j])
            best = max(best, float((1 - share) * worth[i] + share * worth[j]))
    return best


def two_lakes() -> mw.MDP:
    """Two cells a way apart in which one may stay: plans that stay in different cells have no common state."""
    return mw.MDP.from_transitions(
        [
            ("left", "stay", "left", 1.0, 1.0),
            ("left", "go", "middle", 1.0, 0.0),
            ("middle", "go left", "left", 1.0, -1.0),
            ("middle", "go right", "right", 1.0, -1.0),
            ("right", "stay", "right", 1.0, 0.5),
            ("right", "go", "middle", 1.0, 0.0),
        ],
        name="two lakes",
    )


# ---- one floor --------------------------------------------------------------------------------


@pytest.mark.parametrize("criterion", CRITERIA, ids=str)
def test_no_deterministic_policy_that_meets_the_floor_is_better_than_the_bound(criterion):
    """The deterministic answer is the best deterministic policy within the floor in nearly all cases (measured: 97 %)."""
    counts: Counter[str] = Counter()
    for seed in range(40):
        rng = np.random.default_rng(seed)
        mdp = random_accessible_mdp(rng, 4, 3)
        polytope, corners = Polytope(mdp, criterion), vertices(mdp, criterion)
        for slack in SLACKS:
            floor, c = value_floor(polytope, corners, slack), rng.normal(size=mdp.n_choices)
            answer = polytope.within([floor], polytope.optimum).best(c)
            inside = corners[corners @ mdp.reward >= floor.level - 1e-10 * (1 + abs(floor.level))]
            best = float((inside @ c).max())
            assert best <= answer.bound + 1e-9
            assert answer.value <= best + 1e-9, "no deterministic policy is that good"
            assert answer.choices is not None
            x = occupancy_of(mdp, np.isin(np.arange(mdp.n_choices), answer.choices).astype(float), criterion.discount)
            assert x @ mdp.reward >= floor.level - 1e-10 * (1 + abs(floor.level))
            np.testing.assert_allclose(x, answer.occupancy, atol=1e-9)
            counts["best" if answer.value >= best - 1e-9 else "not the best"] += 1
    print(f"\n{criterion}: {dict(counts)}")
    assert counts["best"] >= 0.93 * counts.total()


@pytest.mark.parametrize("criterion", CRITERIA, ids=str)
def test_the_randomised_answer_is_the_optimum_of_the_linear_program(criterion):
    """And it randomises in one state at most. In the long run some optima are mixtures of plans without a common state,
    which no policy has; the bound is the optimum of the program even then."""
    counts: Counter[str] = Counter()
    for seed in range(100, 140):
        rng = np.random.default_rng(seed)
        mdp = random_accessible_mdp(rng, 5, 3)
        polytope, corners = Polytope(mdp, criterion), vertices(mdp, criterion)
        for slack in SLACKS:
            floor, c = value_floor(polytope, corners, slack), rng.normal(size=mdp.n_choices)
            answer = polytope.within([floor], polytope.optimum, randomised=True).best(c)
            optimum = best_by_linear_program(mdp, criterion.discount, c, rows(mdp, [floor]))
            assert answer.bound == pytest.approx(optimum, abs=1e-7)
            assert floor.shortfall(mdp, answer.occupancy) <= 1e-11
            assert polytope.residual(answer.occupancy) <= 1e-9
            assert states_that_randomise(mdp, answer.occupancy) <= 1
            policy, x = polytope.realise(answer.occupancy)
            np.testing.assert_allclose(x, answer.occupancy, atol=1e-7)
            np.testing.assert_allclose(occupancy_of(mdp, policy, criterion.discount), x, atol=1e-7)
            reached = answer.value == pytest.approx(optimum, abs=1e-7)
            counts["reached" if reached else "not reached"] += 1
            assert reached or criterion.discount == 1
            assert reached or best_mixture(mdp, corners, c, floor) < optimum - 1e-8, "some policy has the optimum"
    print(f"\n{criterion}: {dict(counts)}")
    assert counts["reached"] >= 0.85 * counts.total()


def test_with_several_floors_the_randomised_answer_is_the_optimum_of_the_linear_program():
    """Values per episode always have two floors: the least value, and the longest mean length of an episode."""
    reached = binding = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        mdp = random_episodes(rng, 4, 3)
        plain = Polytope(mdp)
        try:
            criterion, best = mw.Episodic().settled(plain)
        except SettingError:  # where never ending pays
            continue
        ends = episode_ends(mdp)
        value = Floor("value", 0.0, per_reward=1.0, extra=-(best.value - 0.2 * abs(best.value)) * ends)
        floors = [*criterion.own_floors(mdp), value]
        feasible = feasible_plan(plain, floors, [best.vertex])
        for _ in range(3):
            c = rng.normal(size=mdp.n_choices)
            answer = plain.within(floors, feasible, randomised=True).best(c)
            optimum = best_by_linear_program(mdp, 1.0, c, rows(mdp, floors))
            assert answer.bound == pytest.approx(optimum, abs=1e-7)
            assert all(floor.shortfall(mdp, answer.occupancy) <= 1e-11 for floor in floors)
            policy, x = plain.realise(answer.occupancy)
            np.testing.assert_allclose(occupancy_of(mdp, policy), answer.occupancy, atol=1e-7)
            np.testing.assert_allclose(x, answer.occupancy, atol=1e-7)
            reached += answer.value == pytest.approx(optimum, abs=1e-7)
            binding += 1
    assert binding > 60
    assert reached >= 0.95 * binding


@pytest.mark.parametrize("world", WORLDS[:1] + WORLDS[10:12], ids=lambda path: path.stem)
def test_the_randomised_answer_on_worlds(world):
    mdp = mw.read(world)
    polytope, rng = Polytope(mdp), np.random.default_rng(0)
    best = polytope.optimum
    for slack in (0.02, 0.1):
        floor = Floor("value", (1 - slack) * best.value, per_reward=1.0)
        c = rng.normal(size=mdp.n_choices)
        answer = polytope.within([floor], best, randomised=True).best(c)
        optimum = best_by_linear_program(mdp, 1.0, c, rows(mdp, [floor]))
        assert answer.bound == pytest.approx(optimum, abs=1e-7)
        assert answer.value == pytest.approx(optimum, abs=1e-7)
        assert states_that_randomise(mdp, answer.occupancy) == 1
        assert answer.occupancy @ mdp.reward == pytest.approx(floor.level, abs=1e-9)
        np.testing.assert_allclose(polytope.realise(answer.occupancy)[1], answer.occupancy, atol=1e-6)


def test_plans_without_a_common_state_are_not_mixed():
    """Half of the time left and half of it right would be best, but a policy that stays in both cells never leaves one."""
    mdp = two_lakes()
    polytope = Polytope(mdp)
    floor = Floor("value", 0.75, per_reward=1.0)
    c = np.array([0.0, 0.0, 0.0, 0.0, 1.0, 0.0])  # time spent at the right
    answer = polytope.within([floor], polytope.optimum, randomised=True).best(c)
    assert best_by_linear_program(mdp, 1.0, c, rows(mdp, [floor])) == pytest.approx(0.5)
    assert answer.bound == pytest.approx(0.5)
    _, x = polytope.realise(answer.occupancy)
    np.testing.assert_allclose(x, answer.occupancy, atol=1e-12)
    assert x @ mdp.reward >= 0.75 - 1e-12


def test_a_floor_that_does_not_bind_changes_nothing():
    rng = np.random.default_rng(3)
    mdp = random_accessible_mdp(rng, 5, 3)
    polytope = Polytope(mdp)
    lowest = float((vertices(mdp, mw.Average()) @ mdp.reward).min())
    slice_ = polytope.within([Floor("value", lowest - 1.0, per_reward=1.0)], polytope.optimum)
    for _ in range(5):
        c = rng.normal(size=mdp.n_choices)
        np.testing.assert_array_equal(slice_.best(c).occupancy, polytope.best(c).occupancy)
        assert slice_.best(c).multipliers.tolist() == [0.0]


def test_a_warm_start_changes_neither_bound_nor_floor():
    """The search starts from the answer to other costs, whatever these were."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        mdp = random_accessible_mdp(rng, 5, 3, "dense")
        polytope = Polytope(mdp)
        floor = value_floor(polytope, vertices(mdp, mw.Average()), 0.1)
        slice_ = polytope.within([floor], polytope.optimum)
        warm = None
        for _ in range(4):
            c = rng.normal(size=mdp.n_choices)
            cold, warm = slice_.best(c), slice_.best(c, warm)
            assert warm.bound == pytest.approx(cold.bound, abs=1e-9)
            assert floor.shortfall(mdp, warm.occupancy) <= 1e-11


def test_a_floor_costs_a_few_solves():
    """Measured: 4 to 7 plain solves for the first costs on a world with nine rooms, fewer when warm."""
    calls: Counter[str] = Counter()

    class Counted:
        def __init__(self, oracle):
            self.oracle = oracle

        def best(self, c, warm=None):
            calls["solves"] += 1
            return self.oracle.best(c, warm)

    mdp = mw.read("nine-rooms:0")
    polytope = Polytope(mdp, wrap=Counted)
    slice_ = polytope.within([Floor("value", 0.9 * polytope.optimum.value, per_reward=1.0)], polytope.optimum)
    rng, warm, c = np.random.default_rng(1), None, np.zeros(mdp.n_choices)
    for number in range(6):
        calls.clear()
        c = c + rng.normal(size=mdp.n_choices) * (1.0 if number == 0 else 0.1)
        warm = slice_.best(c, warm)
        assert 1 <= calls["solves"] <= 15


def test_the_level_can_be_the_optimum_itself():
    """With no slack only the best plans are left: here two of them."""
    rows_ = [("a", "left", "b", 1.0, 0.0), ("a", "right", "c", 1.0, 0.0), ("a", "stay", "a", 1.0, 0.9)]
    rows_ += [("b", "back", "a", 1.0, 2.0), ("c", "back", "a", 1.0, 2.0)]
    mdp = mw.MDP.from_transitions(rows_)
    polytope = Polytope(mdp)
    slice_ = polytope.within([Floor("value", 1.0, per_reward=1.0)], polytope.optimum)
    for wanted in range(5):
        c = np.zeros(5)
        c[wanted] = 1.0
        answer = slice_.best(c)
        assert answer.occupancy @ mdp.reward == 1.0
        assert answer.value == (0.0 if mdp.action_name(wanted) == "stay" else 0.5)
        assert answer.bound == pytest.approx(answer.value, abs=1e-6)


# ---- several floors ---------------------------------------------------------------------------


def test_two_and_three_floors_against_linear_programs():
    """Value, length of episodes, and random weights: the bound is the optimum of the program, the answer meets them all."""
    counts: Counter[str] = Counter()
    for seed in range(36):
        rng = np.random.default_rng(seed)
        mdp = random_episodes(rng, 5, 3)
        polytope, corners, ends = Polytope(mdp), vertices(mdp, mw.Average()), mdp.ends["goal"]
        shortest, w = polytope.best(ends), rng.normal(size=mdp.n_choices)
        for slack in (0.02, 0.1, 0.5, 0.9):
            floors = [
                Floor("length", shortest.value / (1 + 2 * slack), extra=ends),
                value_floor(polytope, corners, slack),
                Floor("third", float(np.quantile(corners @ w, 0.4)), extra=w),
            ][: 2 + seed % 2]
            try:
                feasible = feasible_plan(polytope, floors, [shortest, polytope.optimum])
            except mw.SettingError:
                counts["refused"] += 1
                inside = [all(x @ floor.weights(mdp) >= floor.level + 1e-9 for floor in floors) for x in corners]
                assert len(floors) > 2 or not any(inside)
                continue
            slice_ = polytope.within(floors, feasible)
            for _ in range(2):
                c = rng.normal(size=mdp.n_choices)
                answer = slice_.best(c)
                assert answer.bound == pytest.approx(best_by_linear_program(mdp, 1.0, c, rows(mdp, floors)), abs=1e-7)
                assert answer.value <= answer.bound + 1e-9
                assert all(floor.shortfall(mdp, answer.occupancy) <= 1e-11 for floor in floors)
                counts[f"{np.count_nonzero(answer.multipliers)} bind"] += 1
    print(f"\n{dict(counts)}")
    assert min(counts[f"{n} bind"] for n in (0, 1, 2)) >= 10, "the comparison covers all cases"


def test_limits_that_exclude_each_other_are_named():
    mdp = two_lakes()
    polytope = Polytope(mdp)
    right = np.array([0.0, 0.0, 0.0, 0.0, 1.0, 0.0])
    floors = [Floor("value", 0.9, per_reward=1.0), Floor("time at the right", 0.5, extra=right)]
    with pytest.raises(mw.SettingError, match="no plan of two lakes keeps all limits at once") as caught:
        feasible_plan(polytope, floors, [polytope.optimum])
    assert str(caught.value).endswith("(value and time at the right): allow more slack")


def test_a_known_plan_that_meets_all_floors_is_taken():
    mdp = two_lakes()
    polytope = Polytope(mdp)
    right = polytope.best(np.array([0.0, 0.0, 0.0, 0.0, 1.0, 0.0]))
    floors = [Floor("value", 0.4, per_reward=1.0)]
    assert feasible_plan(polytope, floors, [right, polytope.optimum]) is right


# ---- what floors are --------------------------------------------------------------------------


def test_weights_and_shortfall():
    mdp = two_lakes()
    extra = np.array([0.0, 2.0, 0.0, 0.0, 0.0, 0.0])
    floor = Floor("mixed", 3.0, per_reward=2.0, extra=extra)
    assert floor.weights(mdp).tolist() == [2.0, 2.0, -2.0, -2.0, 1.0, 0.0]
    x = np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    assert floor.shortfall(mdp, x) == pytest.approx((3 - 2) / (3 + 2))
    assert Floor("value", 1.0, per_reward=1.0).shortfall(mdp, x) == 0.0
    assert Floor("nothing", 0.0).shortfall(mdp, x) == 0.0


def test_meets_all_floors_up_to_rounding():
    mdp = two_lakes()
    polytope = Polytope(mdp)
    x = polytope.optimum.occupancy
    for level, met in ((1.0, True), (1 + 1e-13, True), (1 + 1e-10, False)):
        slice_ = polytope.within([Floor("value", level, per_reward=1.0)], Vertex(x))
        assert slice_.meets_floors(x) == met
        assert isinstance(slice_._oracle, Floored)
    assert polytope.meets_floors(0 * x), "without floors everything meets them"


def test_samples_meet_the_floors():
    for seed in range(10):
        rng = np.random.default_rng(seed)
        mdp = random_accessible_mdp(rng, 5, 3)
        polytope = Polytope(mdp)
        floor = value_floor(polytope, vertices(mdp, mw.Average()), 0.1)
        slice_ = polytope.within([floor], polytope.optimum)
        for _ in range(5):
            x = slice_.sample(rng)
            assert floor.shortfall(mdp, x) <= 1e-12
            assert polytope.residual(x) <= 1e-9


def test_deterministic_policies_are_all_counted_in_these_tests():
    """The vertices of the polytope contain the occupancies of all deterministic policies with one recurrent class."""
    rng = np.random.default_rng(5)
    mdp = random_accessible_mdp(rng, 4, 3, "dense")
    corners = vertices(mdp, mw.Average())
    for policy in policies_of(mdp):
        assert np.abs(corners - occupancy_of(mdp, policy)).max(axis=1).min() < 1e-8
