"""What choices say about a person's preference.

A person who is shown some plans takes plan i with a chance proportional to exp(U_i / noise), where U_i = <r + w, rho_i> is
what the plan is worth to them (logit choice). Answers may contradict each other. The posterior of w is a cloud of draws,
made in steps, one answer after the other (a sequential Monte Carlo sampler, Chopin, Biometrika 89, 2002):

- each draw is weighted by the chance of the answer;
- if few draws have most of the weight, they are drawn again by weight, and then moved. A move changes the noise z that a
  draw was made from to sqrt(1 - s^2) z + s times new noise, which leaves the prior as it is, and is kept with the chance
  that Metropolis' rule says (preconditioned Crank-Nicolson, Cotter et al., Statistical Science 28, 2013);
- a prior that knows no moves, such as a user's own sampler, is drawn from again, until enough draws fit the answers.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from manyways.errors import SettingError, check_number
from manyways.kernels.threads import one_blas_thread
from manyways.model.mdp import MDP
from manyways.preferences.base import PREFERENCES, PreferencePrior, Prior
from manyways.preferences.draws import Draws
from manyways.preferences.mixture import Preferences
from manyways.types import Floats, Ints

CLOUD = 1000
ENOUGH = 0.5
"""Draws are renewed if their effective number is less than this share of them."""
MOVES = 12
FIRST_STEP, ACCEPTED = 0.4, 0.3
BATCHES, ENOUGH_SAMPLES = 20, 200
NOISE = 0.01


@PREFERENCES.add
@dataclass(frozen=True, eq=False)
class Posterior(PreferencePrior):
    """What a person may prefer, after their choices.

    Attributes:
        prior: what they may prefer before any choice.
        shown: (T, N) the occupancies of all plans that were shown, question by question.
        question: (T,) the question, from 0, in which each of them was shown.
        taken: (Q,) the row of `shown` that was taken in each question.
        noise: how uncertain choices are, as a share of a typical reward per step: plans whose worths differ by this much
            are chosen by odds of 2.7 to 1.
        seed: of the cloud.
    """

    prior: PreferencePrior = field(default_factory=Preferences)
    shown: Floats = field(default_factory=lambda: np.empty((0, 0)))
    question: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    taken: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    noise: float = NOISE
    seed: int = 0

    def __post_init__(self) -> None:
        PREFERENCES.check(self.prior)
        if not check_number("the noise", self.noise, 0) > 0:
            raise SettingError(f"the noise of choices must be positive, found {self.noise!r}")
        shown, question, taken = (np.asarray(given) for given in (self.shown, self.question, self.taken))
        fits = shown.ndim == 2 and question.shape == shown.shape[:1] and taken.ndim == 1
        if not fits or any(not (0 <= row < len(shown) and question[row] == q) for q, row in enumerate(taken)):
            raise SettingError("each answer must be one of the plans that were shown in its question")

    def sample(self, mdp: MDP, count: int, rng: np.random.Generator) -> Floats:
        return self.on(mdp, 1.0).draw(count, rng).rewards(range(count))

    def on(self, mdp: MDP, unit: float) -> Prior:
        with one_blas_thread():
            return _Cloud(self._cloud(mdp, unit))

    def _cloud(self, mdp: MDP, unit: float) -> Draws:
        rng = np.random.default_rng(self.seed)
        prior = self.prior.on(mdp, unit)
        likelihood = _Likelihood(self, mdp, self.noise * unit)
        draws = prior.draw(CLOUD, rng)
        logs, step = np.zeros(len(draws)), FIRST_STEP
        for answers in range(1, len(self.taken) + 1):
            logs = logs + likelihood.of(draws, range(answers - 1, answers))
            if _effective(logs) >= ENOUGH * len(logs):
                continue
            draws, step = _renewed(prior, likelihood, draws, logs, answers, step, rng)
            logs = np.zeros(len(draws))
        return draws.taken(_by_weight(logs, CLOUD, rng))

    def describe(self) -> str:
        return f"{self.prior.describe()}, after {len(self.taken)} choices"


class _Cloud(Prior):
    """Draws are taken from a cloud, without repeats as long as there are enough."""

    def __init__(self, cloud: Draws) -> None:
        self._cloud = cloud

    def draw(self, count: int, rng: np.random.Generator) -> Draws:
        size = len(self._cloud)
        order = np.concatenate([rng.permutation(size) for _ in range(-(-count // size))])
        return self._cloud.taken(order[:count])


class _Likelihood:
    """The logarithm of the chance of answers, given a preference. The images of the plans are computed once."""

    def __init__(self, given: Posterior, mdp: MDP, noise: float) -> None:
        self._noise, self._shown, self._images = noise, given.shown, {}
        self._known = given.shown @ mdp.reward
        self._rows = [np.flatnonzero(given.question == q) for q in range(len(given.taken))]
        self._taken = given.taken

    def of(self, draws: Draws, questions: range) -> Floats:
        """(M,) of the answers to some questions together."""
        rows = np.concatenate([self._rows[q] for q in questions])
        worth = np.empty((len(rows), len(draws)))
        for part in draws.parts:
            if part.family not in self._images:
                self._images[part.family] = part.family.image(self._shown)
            worth[:, part.numbers] = self._images[part.family][rows] @ part.worths.T
        worth = (worth + self._known[rows, None]) / self._noise
        total = np.zeros(len(draws))
        for q in questions:
            own = worth[np.searchsorted(rows, self._rows[q])]
            top = own.max(axis=0)
            total += worth[np.searchsorted(rows, self._taken[q])] - top - np.log(np.exp(own - top).sum(axis=0))
        return total


def _renewed(
    prior: Prior,
    likelihood: _Likelihood,
    draws: Draws,
    logs: Floats,
    answers: int,
    step: float,
    rng: np.random.Generator,
) -> tuple[Draws, float]:
    """Draws of equal weight that fit the answers so far, and the step of moves that suited them."""
    before, draws = draws, draws.taken(_by_weight(logs, CLOUD, rng))
    level = likelihood.of(draws, range(answers))
    for _ in range(MOVES):
        moved = prior.moved(draws, step, rng)
        if moved is None:
            return _drawn_again(prior, likelihood, before, logs, answers, rng), step
        new = likelihood.of(moved, range(answers))
        kept = np.log(rng.random(len(level))) < new - level
        draws, level = draws.where(kept, moved), np.where(kept, new, level)
        step = float(np.clip(step * np.exp(kept.mean() - ACCEPTED), 0.01, 0.9))
    return draws, step


def _drawn_again(
    prior: Prior, likelihood: _Likelihood, draws: Draws, logs: Floats, answers: int, rng: np.random.Generator
) -> Draws:
    for _ in range(BATCHES):
        if _effective(logs) >= ENOUGH_SAMPLES:
            break
        more = prior.draw(CLOUD, rng)
        logs = np.append(logs, likelihood.of(more, range(answers)))
        draws = Draws.joined([draws, more])
        if len(logs) > 2 * CLOUD:  # the least likely ones are forgotten
            best = np.sort(np.argsort(-logs, kind="stable")[: 2 * CLOUD])
            draws, logs = draws.taken(best), logs[best]
    return draws.taken(_by_weight(logs, CLOUD, rng))


def _effective(logs: Floats) -> float:
    """The effective number of draws with these logarithms of weights."""
    weights = np.exp(logs - logs.max())
    return float(weights.sum() ** 2 / (weights @ weights))


def _by_weight(logs: Floats, count: int, rng: np.random.Generator) -> Ints:
    """(count,) numbers of draws, each about as often as its weight says (systematic resampling)."""
    weights = np.exp(logs - logs.max())
    ends = np.cumsum(weights) / weights.sum()
    return np.minimum(np.searchsorted(ends, (np.arange(count) + rng.random()) / count), len(logs) - 1)
