"""Priors over rewards that nobody wrote down."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import manyways as mw
from manyways.preferences import PossibleRewards, PreferencePrior, Preferences, draws
from problems import random_accessible_mdp, random_policy

ROOMS = mw.room_world(9, 2)
PRIORS = {
    "default": Preferences(),
    "smooth": Preferences(zones=False, over=()),
    "zones": Preferences(smooth=False, over=()),
    "labels": Preferences(smooth=False, zones=False, over=[mw.Labels()]),
    "actions": Preferences(smooth=False, zones=False, over=[mw.Actions()]),
}
each_prior = pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS)


def drawn(prior: PreferencePrior, mdp: mw.MDP, count: int = 60, seed: int = 0, unit: float = 1.0):
    return prior.on(mdp, unit).draw(count, np.random.default_rng(seed))


@each_prior
@settings(max_examples=8)
@given(st.integers(0, 2**32 - 1), st.integers(1, 30))
def test_draws_are_rewards(prior, seed, count):
    """What plans earn by a preference is the product with the preference as a reward."""
    mdp, rng = ROOMS, np.random.default_rng(seed)
    x = np.stack([mw.Average().occupancy(mdp, random_policy(rng, mdp)) for _ in range(3)])
    found = drawn(prior, mdp, count, seed)
    rewards = found.rewards(range(count))
    assert len(found) == count
    np.testing.assert_allclose(found.values(x), x @ rewards.T, atol=1e-9)
    np.testing.assert_allclose(found.values(x[0]), found.values(x)[0])
    weights = rng.random(count)
    np.testing.assert_allclose(found.reward(weights), weights @ rewards, atol=1e-9)
    mean, spread = found.moments()
    np.testing.assert_allclose(mean, rewards.mean(axis=0), atol=1e-9)
    np.testing.assert_allclose(spread, rewards.std(axis=0), atol=1e-9)


@each_prior
def test_draws_come_in_pairs_of_opposites(prior):
    rewards = drawn(prior, ROOMS).rewards(range(60))
    np.testing.assert_allclose(rewards[::2], -rewards[1::2], atol=1e-12)


@each_prior
def test_the_same_seed_gives_the_same_draws(prior):
    again = [drawn(prior, ROOMS, seed=seed).rewards(range(60)) for seed in (1, 1, 2)]
    np.testing.assert_array_equal(again[0], again[1])
    assert np.abs(again[0] - again[2]).max() > 0.01


def test_draws_can_be_picked_and_joined():
    found = drawn(Preferences(), ROOMS)
    rewards = found.rewards(range(60))
    numbers = np.array([5, 5, 59, 0, 17])
    np.testing.assert_array_equal(found.taken(numbers).rewards(range(5)), rewards[numbers])
    joined = draws.Draws.joined([found, found.taken(numbers)])
    np.testing.assert_array_equal(joined.rewards(range(65)), np.vstack([rewards, rewards[numbers]]))


def test_smooth_preferences_are_alike_in_neighbouring_cells():
    """And of unit size over the choices, at the strength 1."""
    mdp = mw.room_world(19, 3)
    rewards = drawn(Preferences(zones=False, over=(), strength=1.0), mdp, 200).rewards(range(200))
    assert rewards.std(axis=1).mean() == pytest.approx(1.0, rel=0.15)
    cell = {int(cell): state for state, cell in enumerate(mdp.layout.cells)}
    first = mdp.first_choice[:-1]
    pairs = [(state, cell[c + 1]) for c, state in cell.items() if c + 1 in cell and (c + 1) % 19]
    free = ~mdp.layout.blocked.ravel()[mdp.layout.cells]
    pairs = np.array([pair for pair in pairs if free[list(pair)].all()])
    by_state = rewards[:, first]
    near = np.mean([np.corrcoef(row[pairs[:, 0]], row[pairs[:, 1]])[0, 1] for row in by_state])
    far = np.mean([np.corrcoef(row[pairs[:, 0]], row[np.roll(pairs[:, 1], 40)])[0, 1] for row in by_state])
    assert near > 0.8
    assert abs(far) < 0.3


def test_zones_are_parts_of_any_size():
    rewards = drawn(PRIORS["zones"], ROOMS, 200).rewards(range(200))
    rewards /= np.abs(rewards).max(axis=1, keepdims=True)
    assert set(np.unique(np.round(rewards, 12))) == {-1.0, 1.0}
    shares = (rewards < 0).mean(axis=1)
    assert shares.min() < 0.15
    assert shares.max() > 0.85


@pytest.mark.parametrize("unit", [1.0, 50.0])
def test_strengths_lie_between_the_two_that_are_given(unit):
    prior = Preferences(smooth=False, over=(), strength=(0.1, 0.4))
    size = np.abs(drawn(prior, ROOMS, 400, unit=unit).rewards(range(400))).max(axis=1) / unit
    assert 0.1 <= size.min() < 0.12
    assert 0.35 < size.max() <= 0.4
    assert np.median(size) == pytest.approx(0.2, rel=0.15)  # uniform on a logarithmic scale


def test_every_model_has_something_to_prefer():
    """Without a map, without labels, without moves that can be made both ways, with one state."""
    one_way = mw.MDP.from_transitions([(i, a, (i + 1 + a) % 5, 1.0, float(a)) for i in range(5) for a in (0, 1)])
    single = mw.MDP.from_transitions([("here", "a", "here", 1.0, 1.0), ("here", "b", "here", 1.0, 0.0)])
    for mdp in (one_way, single, random_accessible_mdp(np.random.default_rng(3), kind="dense")):
        rewards = drawn(Preferences(), mdp).rewards(range(60))
        assert np.isfinite(rewards).all()
        assert rewards.any()


def test_large_models_have_few_places_with_worths():
    mdp = mw.grid_world(np.zeros((150, 150)), (0, 0), (149, 149))
    found = drawn(Preferences(over=()), mdp, 40)
    assert max(part.worths.shape[1] for part in found.parts) <= max(draws.MOST_PLACES, 4096)
    rewards = found.rewards(range(4))
    assert rewards.std(axis=1).min() > 0


def test_a_list_of_rewards():
    hall = np.arange(ROOMS.n_states) < 5
    prior = PossibleRewards([0.0 * hall, -2.0 * hall])
    found = drawn(prior, ROOMS, 2)
    np.testing.assert_array_equal(found.rewards([0, 1])[1], -2.0 * hall[ROOMS.choice_state])
    assert len(drawn(prior, ROOMS, 5)) == 5
    sampled = prior.sample(ROOMS, 100, np.random.default_rng(0))
    assert {row.min() for row in sampled} == {0.0, -2.0}


@dataclass(frozen=True)
class Slippery(PreferencePrior):
    """A sampler as a user might write it."""

    def sample(self, mdp, count, rng):
        return -rng.exponential(size=(count, 1)) * (np.arange(mdp.n_states) % 3 == 0)


def test_a_sampler_of_ones_own():
    found = drawn(Slippery(), ROOMS, 50)
    rewards = found.rewards(range(50))
    third = ROOMS.choice_state % 3 == 0
    assert (rewards[:, third] < 0).all()
    assert not rewards[:, ~third].any()
    plans = mw.plan(ROOMS, 2, objective=mw.Representative(Slippery(), draws=50))
    assert plans.certificate.ok


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Preferences(strength=0), "strengths must be positive"),
        (lambda: Preferences(strength=(0.5, 0.1)), "strengths must be positive, the least before the most"),
        (lambda: Preferences(strength=(1, 2, 3)), "one number, or the least and the most"),
        (lambda: Preferences(smooth=False, zones=False, over=()), "must be about something"),
        (lambda: Preferences(over=["doors"]), "behaviour must be an object"),
        (lambda: PossibleRewards([1.0, 2.0]), "a list of at least one reward"),
        (lambda: PossibleRewards([]), "a list of at least one reward"),
        (lambda: drawn(PossibleRewards([[1.0, 2.0]]), ROOMS), r"found shape \(1, 2\)"),
        (lambda: drawn(PossibleRewards(np.full((1, ROOMS.n_states), np.nan)), ROOMS), "finite possible rewards"),
        (lambda: mw.Representative(draws=0), "draws"),
        (lambda: mw.Representative("anything"), "prior must be an object"),
        (lambda: drawn(Preferences(smooth=False, zones=False, over=[mw.Labels(["moon"])]), ROOMS), "no label 'moon'"),
    ],
)
def test_settings_that_make_no_sense(make, message):
    with pytest.raises(mw.SettingError, match=message):
        make()
