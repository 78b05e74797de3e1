"""The theory section, measured: the lemma's constant and both theorems hold on real runs."""

import numpy as np
import pytest

from manyways import MDP, EmptyDomain, FrankWolfe, Polytope, ProjectedGradient, SetObjective, SettingError
from manyways.methods import Watch
from manyways.methods.theory import diameter_bound, frank_wolfe_bound, lipschitz_constant, projected_gradient_bound
from manyways.polytope import largest_at_least
from problems import random_accessible_mdp
from shared import paper_objective

TRADEOFF = 4.0
K = 2


def small_world() -> MDP:
    """Two states, two actions each, everything possible."""
    return MDP.from_dense([[[0.8, 0.2], [0.3, 0.7]], [[0.4, 0.6], [0.9, 0.1]]], [[0.0, 1.0], [0.5, -0.5]])


def models() -> list[MDP]:
    rng = np.random.default_rng(0)
    found = (random_accessible_mdp(rng, 3, 2, "dense") for _ in range(100))
    return [small_world(), *[mdp for mdp in found if mdp.n_choices >= 4][:3]]


@pytest.fixture(params=range(4), ids=lambda number: f"model {number}")
def restricted(request) -> Polytope:
    """A model with the restricted domain of a delta that leaves some room: half the largest."""
    mdp = models()[request.param]
    largest = largest_at_least(mdp)
    with pytest.raises(EmptyDomain) as refusal:
        Polytope(mdp, at_least=largest * 1.001)
    assert refusal.value.largest == largest
    return Polytope(mdp, at_least=largest / 2)


def best_known(polytope: Polytope, objective: SetObjective) -> float:
    """The best value that many runs find: at most f*, so that bounds computed from it are only stricter."""
    runs = (FrankWolfe(tolerance=0).run(polytope, objective, K, seed, Watch()) for seed in range(20))
    return max(objective.value(run.point) for run in runs)


# ---- lemma 1 ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tradeoff", "delta", "expected"), [(1.0, 0.5, 1.5), (8.0, 0.1, 220.0), (2.0, 0.01, 5050.0), (0.0, 0.1, 0.0)]
)
def test_the_constant_of_the_lemma(tradeoff, delta, expected):
    assert lipschitz_constant(tradeoff, delta) == pytest.approx(expected)


@pytest.mark.parametrize("k", [2, 3, 4])
def test_the_gradient_changes_no_faster_than_the_lemma_says(restricted, k):
    objective = paper_objective(restricted.mdp, TRADEOFF)
    lipschitz = lipschitz_constant(TRADEOFF, restricted.at_least)
    rng = np.random.default_rng(k)

    def point() -> np.ndarray:
        corners = [restricted.best(rng.normal(size=restricted.size)).occupancy for _ in range(k)]
        return np.stack(corners) if rng.random() < 0.5 else np.stack([restricted.sample(rng) for _ in range(k)])

    for _ in range(30):
        x, y = point(), point()
        near = x + rng.uniform(0, 0.01) * (y - x)
        for other in (y, near):
            change = np.linalg.norm(objective.gradient(other) - objective.gradient(x))
            assert change <= lipschitz * np.linalg.norm(other - x) * (1 + 1e-9) + 1e-12


def test_the_lemma_is_not_vacuous():
    """Where one plan is at its smallest and the other is not, the quotient comes near the constant."""
    x = np.array([[0.1, 0.9], [0.9, 0.1]])
    objective = paper_objective(MDP.from_transitions([(0, 0, 0, 1.0, 0.0), (0, 1, 0, 1.0, 0.0)]), 1.0)
    y = x + np.array([[1e-6, -1e-6], [0, 0]])
    quotient = np.linalg.norm(objective.gradient(y) - objective.gradient(x)) / np.linalg.norm(y - x)
    assert 0.1 * lipschitz_constant(1.0, 0.1) < quotient <= lipschitz_constant(1.0, 0.1)


# ---- theorem 1 --------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1])
def test_theorem_1_bounds_the_gradient_mapping(restricted, seed):
    objective = paper_objective(restricted.mdp, TRADEOFF)
    lipschitz = lipschitz_constant(TRADEOFF, restricted.at_least)
    method = ProjectedGradient(iterations=60, steps=1 / lipschitz, tolerance=0)
    run = method.run(restricted, objective, K, seed, Watch())
    improvement = max(best_known(restricted, objective), objective.value(run.point)) - run.trace.objective[0]
    bound = projected_gradient_bound(improvement, run.trace.step, lipschitz)
    assert len(run.trace) > 1
    assert (np.minimum.accumulate(run.trace.measure) <= bound + 1e-9).all()


def test_theorem_1_with_steps_of_one_over_l():
    """sqrt(2 L (f* - f0) / (T + 1))."""
    np.testing.assert_allclose(
        projected_gradient_bound(3.0, np.full(4, 0.1), 10.0), np.sqrt(2 * 10.0 * 3.0 / np.arange(1, 5))
    )


def test_theorem_1_with_other_steps():
    eta = np.array([0.1, 0.05, 0.15])
    expected = np.sqrt(3.0 / np.cumsum(eta * (1 - 10.0 * eta / 2)))
    np.testing.assert_allclose(projected_gradient_bound(3.0, eta, 10.0), expected)


# ---- theorem 2 --------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1])
def test_theorem_2_bounds_the_frank_wolfe_gap(restricted, seed):
    objective = paper_objective(restricted.mdp, TRADEOFF)
    lipschitz = lipschitz_constant(TRADEOFF, restricted.at_least)
    run = FrankWolfe(iterations=60, tolerance=0).run(restricted, objective, K, seed, Watch())
    improvement = max(best_known(restricted, objective), objective.value(run.point)) - run.trace.objective[0]
    bound = frank_wolfe_bound(improvement, diameter_bound(K), lipschitz, len(run.trace) - 1)
    assert len(run.trace) > 1
    assert (np.minimum.accumulate(run.trace.measure) <= bound + 1e-9).all()
    # Each full step of a convex objective gains at least its gap, so even this much holds:
    assert (np.minimum.accumulate(run.trace.measure) <= improvement / np.arange(1, len(run.trace) + 1) + 1e-9).all()


def test_theorem_2_in_numbers():
    np.testing.assert_allclose(frank_wolfe_bound(3.0, 2.0, 10.0, 3), 40.0 / np.sqrt([1, 2, 3, 4]))
    np.testing.assert_allclose(frank_wolfe_bound(30.0, 2.0, 10.0, 1), 60.0 / np.sqrt([1, 2]))


@pytest.mark.parametrize("k", [1, 2, 5])
def test_the_diameter_of_k_distributions(k):
    x, y = np.tile([1.0, 0.0], (k, 1)), np.tile([0.0, 1.0], (k, 1))
    assert diameter_bound(k) == pytest.approx(np.linalg.norm(x - y))


# ---- refusals ---------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, float("nan")])
def test_a_delta_outside_zero_and_one_is_refused(delta):
    with pytest.raises(SettingError, match="delta must lie strictly between 0 and 1"):
        lipschitz_constant(1.0, delta)


@pytest.mark.parametrize("steps", [[0.0], [0.2], [0.1, 0.2], [-0.1], [float("nan")]])
def test_steps_that_the_theorem_does_not_cover_are_refused(steps):
    with pytest.raises(SettingError, match=r"strictly between 0 and 2 / L = 0\.2"):
        projected_gradient_bound(1.0, steps, 10.0)
