"""What choices say about a preference: closed forms, integrals, and people with known preferences."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from scipy import integrate, stats

import manyways as mw
from manyways.preferences import Posterior, PreferencePrior, Preferences

SIZE = 0.5
"""The strength of the preference in `two_places`."""


@pytest.fixture(scope="module")
def two_places() -> mw.MDP:
    """Stay in the garden or in the house, or change; only the garden pays."""
    moves = [(a, b, b, 1.0, 1.0 if a == "garden" else 0.0) for a in ("garden", "house") for b in ("garden", "house")]
    return mw.MDP.from_transitions(moves, labels={"green": ["garden"]})


def occupancies(mdp: mw.MDP, shares: list[float]) -> np.ndarray:
    """(T, N) plans that spend these shares of time in the garden."""
    return np.stack([np.where(mdp.labels["green"][mdp.choice_state], share, 1 - share) / 2 for share in shares])


LABELS = Preferences(smooth=False, zones=False, over=[mw.Labels(["green"])], strength=SIZE)


@dataclass(frozen=True)
class OwnSampler(PreferencePrior):
    """The same prior, known by samples only."""

    def sample(self, mdp, count, rng):
        house, garden = SIZE * rng.standard_normal((2, count, 1))
        return np.where(mdp.labels["green"], garden, house)


def liking(prior: PreferencePrior, mdp: mw.MDP, count: int = 1000) -> np.ndarray:
    """(count,) how much more a step in the garden is worth than one in the house, by the preference alone."""
    rewards = prior.on(mdp, 1.0).draw(count, np.random.default_rng(5)).rewards(range(count))
    green = mdp.labels["green"][mdp.choice_state]
    return rewards[:, green][:, 0] - rewards[:, ~green][:, 0]


@pytest.mark.parametrize("prior", [LABELS, OwnSampler()], ids=["moved", "drawn again"])
@pytest.mark.parametrize(("taken", "level"), [(0, -1.0), (1, -1.0), (1, -1.6)])
def test_a_choice_without_noise_cuts_the_prior(two_places, prior, taken, level):
    """Garden against house: the garden is taken if liking + 1 > 0. A normal distribution cut there has a known mean.

    `level` = -1.6: the reward of the garden is 1.6, so that choosing the house is rare.
    """
    mdp = two_places.with_reward(-level * two_places.reward)
    shown = occupancies(mdp, [1.0, 0.0])
    answer = Posterior(prior, shown, np.zeros(2, int), np.array([taken]), noise=1e-6)
    spread = SIZE * np.sqrt(2)
    low, high = (level / spread, np.inf) if taken == 0 else (-np.inf, level / spread)
    exact = stats.truncnorm(low, high, scale=spread)
    found = liking(answer, mdp)
    assert (found > level).mean() == pytest.approx(1.0 - taken, abs=0.01)
    assert found.mean() == pytest.approx(exact.mean(), abs=6 * exact.std() / np.sqrt(300))
    assert found.std() == pytest.approx(exact.std(), rel=0.3)


@pytest.mark.parametrize("prior", [LABELS, OwnSampler()], ids=["moved", "drawn again"])
def test_noisy_choices_that_contradict_each_other(two_places, prior):
    """Three answers between two or three plans, the last against the first; the posterior mean is an integral."""
    mdp, noise = two_places, 0.3
    questions = [([1.0, 0.0], 1), ([0.8, 0.5, 0.1], 2), ([1.0, 0.2], 0)]
    rows = [occupancies(mdp, shares) for shares, _ in questions]
    starts = np.cumsum([0, *(len(part) for part in rows[:-1])])
    taken = np.array([start + own for start, (_, own) in zip(starts, questions, strict=True)])
    question = np.repeat(np.arange(3), [len(part) for part in rows])
    answer = Posterior(prior, np.concatenate(rows), question, taken, noise=noise)

    def density(like: float) -> float:
        product = stats.norm.pdf(like, scale=SIZE * np.sqrt(2))
        for shares, own in questions:
            worth = np.array(shares) * (1 + like) / noise
            product *= np.exp(worth[own] - worth.max()) / np.exp(worth - worth.max()).sum()
        return product

    total = integrate.quad(density, -6, 6)[0]
    mean = integrate.quad(lambda like: like * density(like), -6, 6)[0] / total
    second = integrate.quad(lambda like: like**2 * density(like), -6, 6)[0] / total
    found = liking(answer, mdp)
    assert found.mean() == pytest.approx(mean, abs=6 * np.sqrt(second - mean**2) / np.sqrt(300))
    assert found.std() == pytest.approx(np.sqrt(second - mean**2), rel=0.2)


def test_without_answers_it_is_the_prior(two_places):
    found = liking(Posterior(LABELS, np.empty((0, two_places.n_choices))), two_places)
    assert found.std() == pytest.approx(SIZE * np.sqrt(2), rel=0.1)


def test_a_list_of_rewards_is_weighted_exactly(two_places):
    """Of three possible rewards, only one makes the house better."""
    mdp = two_places
    listed = mw.PossibleRewards(np.outer([0.0, 0.5, -2.0], mdp.labels["green"]))
    answer = Posterior(listed, occupancies(mdp, [1.0, 0.0]), np.zeros(2, int), np.array([1]), noise=0.01)
    np.testing.assert_allclose(liking(answer, mdp), -2.0)


def test_ten_rounds_reveal_a_known_preference():
    """People with smooth preferences of their own; each takes the best of six, ten times."""
    agreement = []
    for seed in range(3):
        talk = mw.Conversation(mw.room_world(13, 2, seed=seed), 6, slack=0.2)
        mdp, unit = talk.plans.mdp, talk.plans.maximised.unit
        prior = Preferences(zones=False, over=(), strength=0.4)
        wish = prior.on(mdp, unit).draw(2, np.random.default_rng(100 + seed)).rewards([0])[0]
        for _ in range(10):
            talk.choose(int(np.argmax(talk.plans.occupancies @ (mdp.reward + wish))))
        learned = talk.preference
        visited = np.concatenate([one.plans.occupancies for one in talk.rounds]).max(axis=0) > 1e-3
        agreement.append(np.corrcoef(learned.mean[visited], wish[visited])[0, 1])
        assert learned.spread.min() > 0
    assert min(agreement) > 0.1, agreement
    assert np.mean(agreement) > 0.2, agreement


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"noise": 0.0}, "noise of choices must be positive"),
        ({"taken": np.array([2])}, "must be one of the plans that were shown"),
        ({"question": np.zeros(3, int)}, "must be one of the plans that were shown"),
    ],
)
def test_answers_that_make_no_sense(two_places, change, message):
    good = {"shown": occupancies(two_places, [1.0, 0.0]), "question": np.zeros(2, int), "taken": np.array([0])}
    with pytest.raises(mw.SettingError, match=message):
        Posterior(LABELS, **(good | change))
