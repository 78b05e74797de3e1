"""What every objective owes: consistent values, gradients, costs and contributions; a working set that keeps up.

Registered objectives are covered by themselves with their default settings; others join in `EXAMPLES`.
"""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import manyways as mw
from manyways import MDP, MeanDivergence, Polytope, SetObjective
from manyways.objectives import OBJECTIVES, SpreadDivergence
from manyways.objectives.divergence import divergences_from
from problems import random_accessible_mdp, random_policy


@dataclass(frozen=True)
class SquaredDistance(mw.Objective):
    """Mean reward + squared distances: the smallest objective, of which all but value and gradient is the default."""

    def on(self, mdp, compared):
        return SquaredDistanceOnModel(mdp, compared)


@dataclass(frozen=True, eq=False)
class SquaredDistanceOnModel(SetObjective):
    def value(self, x):
        image = self.compared.forward(x)
        return float((x @ self.mdp.reward).mean() + ((image[:, None] - image[None]) ** 2).sum() / 4)

    def gradient(self, x, smoothing=0.0):  # noqa: ARG002
        image = self.compared.forward(x)
        return self.mdp.reward / len(x) + self.compared.backward(len(x) * image - image.sum(axis=0))


EXAMPLES = {word: OBJECTIVES.named(word)() for word in OBJECTIVES.words()} | {
    "strong": MeanDivergence(8.0),
    "pure": SpreadDivergence(float("inf")),
    "squared": SquaredDistance(),
}
CONVEX = {word: EXAMPLES[word] for word in ("mean", "joint", "representative", "strong", "squared")}
COMPARED = {
    "state-actions": mw.StateActions(),
    "states": mw.States(),
}
TEAMS = ("congestion", "coverage")
"""What equal plans are worth to a team is tested with the objectives themselves."""
each_objective = pytest.mark.parametrize("objective", EXAMPLES.values(), ids=EXAMPLES)
each_convex_objective = pytest.mark.parametrize("objective", CONVEX.values(), ids=CONVEX)
each_behaviour = pytest.mark.parametrize("behaviour", COMPARED.values(), ids=COMPARED)
seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=10)


def settled(objective: mw.Objective, mdp: MDP, behaviour: mw.Behaviour) -> SetObjective:
    return objective.settled(2.0).on(mdp, behaviour.on(mdp))


def occupancies(rng: np.random.Generator, mdp: MDP, k: int) -> np.ndarray:
    """(k, N) inside the polytope."""
    return np.stack([mw.Average().occupancy(mdp, random_policy(rng, mdp)) for _ in range(k)])


def model(seed: int) -> tuple[np.random.Generator, MDP]:
    rng = np.random.default_rng(seed)
    return rng, random_accessible_mdp(rng, kind="dense")


@each_objective
@each_behaviour
@few
@given(seeds, st.integers(1, 4))
def test_gradients_agree_with_differences(objective, behaviour, seed, k):
    rng, mdp = model(seed)
    worth, x = settled(objective, mdp, behaviour), occupancies(rng, mdp, k)
    towards = occupancies(rng, mdp, k) - x  # both ends are distributions, so that the values are defined
    step = 1e-5
    slope = (worth.value(x + step * towards) - worth.value(x - step * towards)) / (2 * step)
    assert slope == pytest.approx(float((worth.gradient(x) * towards).sum()), abs=1e-4 * (1 + abs(worth.value(x))))


@each_convex_objective
@each_behaviour
@few
@given(seeds, st.integers(1, 4))
def test_gradients_never_promise_more_than_a_step_gives(objective, behaviour, seed, k):
    """Convexity: f(y) >= f(x) + <gradient, y - x>, also between plans that share nothing."""
    rng, mdp = model(seed)
    worth, polytope = settled(objective, mdp, behaviour), Polytope(mdp)
    x, y = (np.stack([polytope.best(rng.normal(size=mdp.n_choices)).occupancy for _ in range(k)]) for _ in range(2))
    promised = worth.value(x) + float((worth.gradient(x) * (y - x)).sum())
    assert worth.value(y) >= promised - 1e-9 * (1 + abs(worth.value(y)))


@each_objective
@each_behaviour
@few
@given(seeds, st.integers(1, 4))
def test_contributions_change_as_the_value_does(objective, behaviour, seed, k):
    rng, mdp = model(seed)
    worth, x, new = settled(objective, mdp, behaviour), occupancies(rng, mdp, k), occupancies(rng, mdp, k)
    for i in range(k):
        moved = x.copy()
        moved[i] = new[i]
        change = worth.contribution(list(x), i, new[i]) - worth.contribution(list(x), i, x[i])
        assert worth.value(moved) - worth.value(x) == pytest.approx(change, abs=1e-9)


@each_objective
@each_behaviour
@few
@given(seeds, st.integers(1, 4))
def test_a_working_set_keeps_up_with_the_value(objective, behaviour, seed, k):
    rng, mdp = model(seed)
    worth, x = settled(objective, mdp, behaviour), occupancies(rng, mdp, k)
    working = worth.working_set(list(x))
    assert working.value == pytest.approx(worth.value(x), abs=1e-9)
    for i in rng.integers(k, size=5):
        offer = working.offer(int(i), occupancies(rng, mdp, 1)[0])
        before = working.value
        assert working.value == before  # an offer changes nothing
        working.accept(offer)
        assert working.value - before == pytest.approx(offer.rise, abs=1e-9)
        assert working.value == pytest.approx(worth.value(np.stack(working.rows)), abs=1e-9)
        np.testing.assert_array_equal(working.rows[i], offer.row)


@each_objective
@each_behaviour
@few
@given(seeds, st.integers(1, 4))
def test_candidates_contribute_as_plans_do(objective, behaviour, seed, k):
    rng, mdp = model(seed)
    worth, rows = settled(objective, mdp, behaviour), occupancies(rng, mdp, 6)
    members = rng.choice(6, k, replace=False)
    candidates = worth.candidates(rows)
    for i in range(k):
        found = candidates.contributions(members, i)
        values = [worth.value(rows[[*members[:i], j, *members[i + 1 :]]]) for j in range(6)]
        np.testing.assert_allclose(found - found[0], np.subtract(values, values[0]), atol=1e-9)


@each_objective
@each_behaviour
@few
@given(seeds, st.integers(1, 4), st.sampled_from([1e-6, 1e-3, 1.0]))
def test_costs_are_finite_everywhere(objective, behaviour, seed, k, least):
    rng, mdp = model(seed)
    polytope = Polytope(mdp)
    rows = [polytope.best(rng.normal(size=mdp.n_choices)).occupancy for _ in range(k)]  # with zeros
    worth = settled(objective, mdp, behaviour)
    for i in range(k):
        costs = worth.costs(rows, i, least)
        assert costs.shape == (mdp.n_choices,)
        assert np.isfinite(costs).all()


@each_objective
@each_behaviour
@few
@given(seeds)
def test_distances_are_symmetric_and_zero_between_equal_plans(objective, behaviour, seed):
    rng, mdp = model(seed)
    x = occupancies(rng, mdp, 3)
    x[2] = x[0]
    distances = settled(objective, mdp, behaviour).distances(x)
    np.testing.assert_array_equal(distances, distances.T)
    assert distances[0, 2] == pytest.approx(0.0, abs=1e-12)
    assert distances.min() >= 0


@each_objective
@few
@given(seeds, st.permutations(range(4)))
def test_the_order_of_the_plans_does_not_count(objective, seed, order):
    rng, mdp = model(seed)
    worth, x = settled(objective, mdp, mw.StateActions()), occupancies(rng, mdp, 4)
    assert worth.value(x[list(order)]) == pytest.approx(worth.value(x), abs=1e-9)


@each_objective
def test_settled_objectives_stay_as_they_are(objective):
    once = objective.settled(3.0)
    assert once.settled(7.0) == once
    assert once.describe()
    assert objective.describe()


@pytest.mark.parametrize("objective", [EXAMPLES[word] for word in EXAMPLES if word not in TEAMS])
@pytest.mark.parametrize("k", [1, 3])
def test_equal_plans_have_no_diversity(objective, k):
    """With one plan or only equal ones, what counts is the reward, or nothing."""
    rng, mdp = model(7)
    x = np.repeat(occupancies(rng, mdp, 1), k, axis=0)
    pure = k > 1 and getattr(objective, "tradeoff", None) == float("inf")
    expected = 0.0 if pure else float(x[0] @ mdp.reward)
    assert settled(objective, mdp, mw.StateActions()).value(x) == pytest.approx(expected, abs=1e-12)


@each_objective
@few
@given(seeds, st.integers(2, 3))
def test_exchanges_see_the_contribution(objective, seed, k):
    """Where exchanges apply, contributions have the form that they assume."""
    rng, mdp = model(seed)
    worth, x = settled(objective, mdp, mw.States()), occupancies(rng, mdp, k)
    form = worth.exchange_form(k)
    if form is None:
        return
    image = np.stack([np.bincount(form.groups, row) for row in x])
    apart = divergences_from(image[0], list(image[1:])).sum()
    expected = form.per_reward * float(x[0] @ mdp.reward) + form.per_divergence * apart
    assert worth.contribution(list(x), 0, x[0]) == pytest.approx(expected, abs=1e-9)


@each_objective
@few
@given(seeds, st.integers(1, 3))
def test_the_mean_form_gives_the_value(objective, seed, k):
    """Where an objective says that it is a sum of mean reward and mean divergence, it is."""
    rng, mdp = model(seed)
    worth, x = settled(objective, mdp, mw.States()), occupancies(rng, mdp, k)
    form = worth.mean_form
    if form is None:
        return
    apart = worth.distances(x).sum() / (k * (k - 1)) if k > 1 else 0.0
    expected = form.per_reward * float((x @ mdp.reward).mean()) + form.per_divergence * apart
    assert worth.value(x) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("k", [2, 3])
def test_the_default_method_works_with_any_objective(k):
    """Also with one that offers nothing but value and gradient."""
    mdp = mw.room_world(9, 2)
    plans = mw.plan(mdp, k, objective=SquaredDistance())
    assert plans.status.converged
    assert plans.certificate is not None and plans.certificate.ok  # noqa: PT018
    assert plans.tradeoff is None
    assert plans.objective >= (plans.rewards).mean()
