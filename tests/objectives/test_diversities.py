"""The diversities least, spread, joint and determinant: values against other formulas, gradients against differences.

What holds for every objective is in tests/contracts/test_objectives.py.
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from math import log
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manyways import MDP, Average, Behaviour, Labels, MeanDivergence, SettingError, StateActions, States, VertexAscent
from manyways.methods import Watch
from manyways.objectives import (
    OBJECTIVES,
    DeterminantDivergence,
    JointDivergence,
    LeastDivergence,
    MeanForm,
    Objective,
    SpreadDivergence,
)
from manyways.objectives.determinant_divergence import RIDGE
from manyways.polytope import Polytope
from problems import KNOWN, jsd, random_accessible_mdp, random_policy, vertices

LN2, INF = log(2), float("inf")
seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=20)
CLASSES = (MeanDivergence, LeastDivergence, SpreadDivergence, JointDivergence, DeterminantDivergence)
each_class = pytest.mark.parametrize("kind", CLASSES)
behaviours = pytest.mark.parametrize("behaviour", [StateActions(), States()], ids=str)


def model(seed: int) -> MDP:
    return random_accessible_mdp(np.random.default_rng(seed), kind="dense")


def occupancies(rng: np.random.Generator, mdp: MDP, k: int) -> np.ndarray:
    """(k, N) inside the polytope."""
    return np.stack([Average().occupancy(mdp, random_policy(rng, mdp)) for _ in range(k)])


def on(objective: Objective, mdp: MDP, behaviour: Behaviour | None = None) -> Any:
    return objective.on(mdp, (behaviour or StateActions()).on(mdp))


def images(behaviour: Behaviour, mdp: MDP, x: np.ndarray) -> np.ndarray:
    """(k, N) -> (k, B): time added up by groups."""
    group = behaviour.on(mdp).groups
    assert group is not None
    return np.stack([np.bincount(group, row) for row in x])


# ---- values: independent formulas -------------------------------------------------------------


def pairs(image: np.ndarray) -> list[float]:
    return [jsd(p, q) for p, q in combinations(image, 2)]


def entropy(p: np.ndarray) -> float:
    return -sum(a * log(a) for a in p.tolist() if a > 0)


def least(image: np.ndarray) -> float:
    return min(pairs(image))


def spread(image: np.ndarray, offset: float = 0.02) -> float:
    def scaled(d: float) -> float:
        return (log(d + offset) - log(offset)) / (log(LN2 + offset) - log(offset)) * LN2

    return float(np.mean([scaled(d) for d in pairs(image)]))


def joint(image: np.ndarray) -> float:
    k = len(image)
    return (entropy(image.mean(axis=0)) - sum(map(entropy, image)) / k) * LN2 / log(k)


def determinant(image: np.ndarray, scale: float = LN2) -> float:
    k = len(image)

    def volume(distance: Callable[[int, int], float]) -> float:
        kernel = [[np.exp(-distance(i, j) / scale) if i != j else 1.0 for j in range(k)] for i in range(k)]
        return log(np.linalg.det(np.array(kernel) + RIDGE * np.eye(k)))

    found = volume(lambda i, j: jsd(image[i], image[j]))
    equal, disjoint = volume(lambda *_: 0.0), volume(lambda *_: LN2)
    return LN2 * (found - equal) / (disjoint - equal)


FORMULAS = {
    "least": (LeastDivergence(3.0), least),
    "spread": (SpreadDivergence(3.0), spread),
    "wide": (SpreadDivergence(3.0, offset=0.5), lambda image: spread(image, 0.5)),
    "joint": (JointDivergence(3.0), joint),
    "determinant": (DeterminantDivergence(3.0), determinant),
    "sharp": (DeterminantDivergence(3.0, scale=0.2), lambda image: determinant(image, 0.2)),
}
each_formula = pytest.mark.parametrize(("objective", "formula"), FORMULAS.values(), ids=FORMULAS)


@each_formula
@behaviours
@few
@given(seeds, st.integers(2, 5))
def test_values_by_formula(objective, formula, behaviour, seed, k):
    rng = np.random.default_rng(seed)
    mdp = random_accessible_mdp(rng, kind="dense")
    x = occupancies(rng, mdp, k)
    diversity = formula(images(behaviour, mdp, x))
    expected = float((x @ mdp.reward).mean()) + 3.0 * diversity
    assert on(objective, mdp, behaviour).value(x) == pytest.approx(expected, abs=1e-9)
    pure = replace(objective, tradeoff=INF)
    assert on(pure, mdp, behaviour).value(x) == pytest.approx(diversity, abs=1e-9)


@each_class
@pytest.mark.parametrize("k", [2, 3])
def test_plans_that_share_nothing_have_a_diversity_of_ln_2(kind, k):
    mdp = KNOWN["bandit"].mdp
    assert on(kind(INF), mdp).value(np.eye(3)[:k]) == pytest.approx(LN2, abs=1e-12)


@each_class
@few
@given(seeds, st.integers(2, 5))
def test_diversity_is_at_most_ln_2_and_at_least_0(kind, seed, k):
    rng = np.random.default_rng(seed)
    mdp = random_accessible_mdp(rng)
    polytope = Polytope(mdp)
    x = np.stack([polytope.best(rng.normal(size=mdp.n_choices)).occupancy for _ in range(k)])
    assert -1e-12 <= on(kind(INF), mdp).value(x) <= LN2 + 1e-12


@each_class
@few
@given(seeds)
def test_for_two_plans_all_are_functions_of_their_divergence(kind, seed):
    """Increasing ones, and the divergence itself for mean, least and joint."""
    rng = np.random.default_rng(seed)
    mdp = random_accessible_mdp(rng, kind="dense")
    x, y = occupancies(rng, mdp, 2), occupancies(rng, mdp, 2)
    worth = on(kind(INF), mdp)
    near, far = sorted([x, y], key=lambda pair: jsd(*pair))
    assert worth.value(near) <= worth.value(far) + 1e-12
    if kind in (MeanDivergence, LeastDivergence, JointDivergence):
        assert worth.value(x) == pytest.approx(jsd(*x), abs=1e-12)


def test_a_large_offset_gives_the_mean():
    mdp = model(3)
    x = occupancies(np.random.default_rng(3), mdp, 4)
    wide, mean = on(SpreadDivergence(INF, offset=1e6), mdp), on(MeanDivergence(INF), mdp)
    assert wide.value(x) == pytest.approx(mean.value(x), rel=1e-5)


@pytest.mark.parametrize("kind", [LeastDivergence, SpreadDivergence, DeterminantDivergence])
def test_twins_are_worth_less_than_the_same_mean_distance(kind):
    """Two groups of twins, against four plans at the same distance from each other."""
    mean = on(MeanDivergence(INF), KNOWN["bandit"].mdp)
    twins = np.array([[1.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 1, 0]])
    distances = np.full((4, 4), mean.value(twins)) * (1 - np.eye(4))
    worth = on(kind(INF), KNOWN["bandit"].mdp)
    assert worth.value(twins) < float(worth.diversity(distances)) - 0.01


# ---- weights of reward and diversity ----------------------------------------------------------


@each_class
def test_an_infinite_tradeoff_leaves_the_reward_out(kind):
    mdp = model(5)
    x = occupancies(np.random.default_rng(5), mdp, 3)
    pure, one, nothing = (on(kind(t), mdp) for t in (INF, 1.0, 0.0))
    assert pure.value(x) == pytest.approx(one.value(x) - nothing.value(x), abs=1e-12)
    np.testing.assert_allclose(pure.gradient(x), one.gradient(x) - nothing.gradient(x), atol=1e-12)
    np.testing.assert_allclose(
        pure.costs(list(x), 1, 1e-3), one.costs(list(x), 1, 1e-3) - nothing.costs(list(x), 1, 1e-3), atol=1e-12
    )
    assert pure.size(100.0) == 1.0
    assert one.size(-100.0) == 101.0
    assert kind(INF).settled(3.0) == kind(INF)
    assert "without the reward" in kind(INF).describe()


@each_class
def test_an_open_tradeoff_is_settled(kind):
    assert kind().settled(3.0) == kind(3.0)
    assert kind(2).tradeoff == 2.0
    assert "3 ×" in kind(3.0).describe()


def test_the_mean_form_has_both_weights():
    mdp = model(0)
    assert on(MeanDivergence(8.0), mdp).mean_form == MeanForm(1.0, 8.0)
    assert on(MeanDivergence(INF), mdp).mean_form == MeanForm(0.0, 1.0)
    assert all(on(kind(8.0), mdp).mean_form is None for kind in CLASSES[1:])


@each_class
@pytest.mark.parametrize("tradeoff", [-0.1, float("nan"), -INF, "8"])
def test_bad_tradeoffs_are_refused(kind, tradeoff):
    with pytest.raises(SettingError, match="the tradeoff must be a finite number of at least 0"):
        kind(tradeoff)


@pytest.mark.parametrize("value", [0, -1.0, float("nan"), INF])
def test_bad_offsets_and_scales_are_refused(value):
    with pytest.raises(SettingError, match="the offset must be"):
        SpreadDivergence(1.0, offset=value)
    with pytest.raises(SettingError, match="the scale must be"):
        DeterminantDivergence(1.0, scale=value)


def test_words():
    found = {kind: word for word in OBJECTIVES.words() for kind in [OBJECTIVES.named(word)]}
    assert [found[kind] for kind in CLASSES] == ["mean", "least", "spread", "joint", "determinant"]


# ---- gradients --------------------------------------------------------------------------------


def difference_quotient(f, x: np.ndarray, step: float = 1e-6) -> np.ndarray:
    """Central differences of f at x, entry by entry."""
    slope = np.zeros_like(x)
    for place in np.ndindex(x.shape):
        nudge = np.zeros_like(x)
        nudge[place] = step
        slope[place] = (f(x + nudge) - f(x - nudge)) / (2 * step)
    return slope


@each_formula
@behaviours
@pytest.mark.parametrize("k", [2, 3, 4])
def test_gradients_agree_with_differences(objective, formula, behaviour, k):
    """Of the formulas above, away from corners."""
    mdp = model(2)
    x = occupancies(np.random.default_rng(k), mdp, k)
    slope = 3.0 * difference_quotient(lambda x: formula(images(behaviour, mdp, x)), x) + mdp.reward / k
    # The formulas do not normalise, so a nudge also changes the total time: compare along directions that keep it.
    flat = slope - slope.mean(axis=1, keepdims=True)
    found = on(objective, mdp, behaviour).gradient(x)
    np.testing.assert_allclose(found - found.mean(axis=1, keepdims=True), flat, atol=2e-5)


@few
@given(seeds)
def test_between_equally_near_pairs_the_gradient_is_their_mean(seed):
    rng = np.random.default_rng(seed)
    mdp = random_accessible_mdp(rng, kind="dense")
    a, b = occupancies(rng, mdp, 2)
    x = np.stack([a, b, a, b])  # the pairs of twins are at distance 0, where the divergence has the gradient 0
    np.testing.assert_allclose(on(LeastDivergence(INF), mdp).gradient(x), 0.0, atol=1e-9)
    weights = on(LeastDivergence(INF), mdp).pair_weights(
        np.array([[0, 1, 2, 1], [1, 0, 3, 1], [2, 3, 0, 4], [1, 1, 4, 0]]) / 10
    )
    np.testing.assert_allclose(weights[np.triu_indices(4, 1)] / 6, [1 / 3, 0, 1 / 3, 0, 1 / 3, 0])


@few
@given(seeds, st.integers(2, 4))
def test_spread_gradients_promise_no_more_than_a_short_step_gives(seed, k):
    """Also from vertices, where the divergences have corners."""
    rng = np.random.default_rng(seed)
    mdp = random_accessible_mdp(rng, kind="dense")
    polytope, worth = Polytope(mdp), on(SpreadDivergence(2.0), mdp)
    x, y = (np.stack([polytope.best(rng.normal(size=mdp.n_choices)).occupancy for _ in range(k)]) for _ in range(2))
    step = 1e-4
    promised = step * float((worth.gradient(x) * (y - x)).sum())
    assert worth.value(x + step * (y - x)) - worth.value(x) >= promised - 50 * step**2


# ---- costs ------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize("least_time", [1e-6, 1e-2, 1.0])
def test_joint_costs_are_secants(k, least_time):
    """What the joint divergence gains, place by place, if all of the plan's time in a state is spent on one choice."""
    mdp = model(4)
    x = occupancies(np.random.default_rng(k), mdp, k)
    x[0] = Polytope(mdp).best(mdp.reward).occupancy  # one with zeros

    def in_place(values: list[float]) -> float:
        mean = sum(values) / len(values)
        return sum(v * log(v) for v in values if v > 0) / len(values) - (mean * log(mean) if mean > 0 else 0.0)

    for i in range(k):
        cost = on(JointDivergence(3.0), mdp).costs(list(x), i, least_time)
        for choice in range(mdp.n_choices):
            m = max(x[i][mdp.choice_state == mdp.choice_state[choice]].sum(), least_time)
            others = [float(x[j, choice]) for j in range(k) if j != i]
            worth = (in_place([m, *others]) - in_place([0.0, *others])) / m
            assert cost[choice] == pytest.approx(mdp.reward[choice] / k + 3.0 * LN2 / log(k) * worth, abs=1e-9)


@pytest.mark.parametrize("kind", [LeastDivergence, JointDivergence])
def test_for_two_plans_costs_are_those_of_the_mean(kind):
    mdp = model(6)
    x = list(occupancies(np.random.default_rng(6), mdp, 2))
    np.testing.assert_allclose(on(kind(3.0), mdp).costs(x, 0, 1e-2), on(MeanDivergence(3.0), mdp).costs(x, 0, 1e-2))


@pytest.mark.parametrize("kind", [SpreadDivergence, DeterminantDivergence])
@few
@given(seeds)
def test_pair_weights_are_derivatives(kind, seed):
    rng = np.random.default_rng(seed)
    mdp = random_accessible_mdp(rng, kind="dense")
    worth, k, step = on(kind(INF), mdp), 4, 1e-6
    distances = worth.distances(occupancies(rng, mdp, k))
    weights = worth.pair_weights(distances)
    for i, j in combinations(range(k), 2):
        nudge = np.zeros((k, k))
        nudge[i, j] = nudge[j, i] = step
        slope = float(worth.diversity(distances + nudge) - worth.diversity(distances - nudge)) / (2 * step)
        if distances[i, j] > step:
            assert weights[i, j] * 2 / (k * (k - 1)) == pytest.approx(slope, rel=1e-3, abs=1e-4)


def test_the_least_distance_pushes_plans_from_their_nearest():
    weights = on(LeastDivergence(INF), model(0)).cost_weights(
        np.array([[0, 0.1, 0.6, 0.6], [0.1, 0, 0.3, 0.5], [0.6, 0.3, 0, 0.2], [0.6, 0.5, 0.2, 0]]), 0
    )
    assert weights[0] > 5 * weights[1] == pytest.approx(5 * weights[2])
    assert 3 <= weights.sum() <= 6


# ---- exchanges --------------------------------------------------------------------------------


def test_the_least_distance_of_two_plans_can_be_judged_in_exchanges():
    mdp = model(0)
    assert on(LeastDivergence(3.0), mdp).exchange_form(2).per_divergence == 3.0
    assert on(LeastDivergence(3.0), mdp).exchange_form(3) is None
    assert on(LeastDivergence(INF), mdp).exchange_form(2).per_reward == 0.0
    assert on(MeanDivergence(INF), mdp).exchange_form(3).per_reward == 0.0


def test_labels_are_compared_too():
    mdp = model(1)
    labelled = MDP.from_csr(
        mdp.transitions, mdp.reward, mdp.first_choice, labels={"wet": np.arange(mdp.n_states) % 2 == 0}
    )
    x = occupancies(np.random.default_rng(1), labelled, 3)
    assert (
        0 < on(LeastDivergence(INF), labelled, Labels(["wet"])).value(x) < on(LeastDivergence(INF), labelled).value(x)
    )


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("tradeoff", [2.0, INF])
def test_the_least_distance_reaches_the_best_of_all_sets(k, tradeoff):
    """At least 95 % of random small models, against all sets of different vertices; never above."""
    reached = judged = 0
    for seed in range(60):
        mdp = random_accessible_mdp(np.random.default_rng(seed), 4, 3)
        corners = vertices(mdp, Average())
        if len(corners) < k:
            continue
        worth, sets = on(LeastDivergence(tradeoff), mdp), np.array(list(combinations(range(len(corners)), k)))
        apart = worth.distances(corners)
        least = np.min([apart[sets[:, i], sets[:, j]] for i, j in combinations(range(k), 2)], axis=0)
        reward = (corners @ mdp.reward)[sets].mean(axis=1)
        best = float((least if tradeoff == INF else reward + tradeoff * least).max())
        found = worth.value(VertexAscent().run(Polytope(mdp), worth, k, 0, Watch()).point)
        assert found <= best + 1e-9
        reached += found >= best - 1e-7
        judged += 1
    assert judged >= 40
    assert reached >= 0.95 * judged
