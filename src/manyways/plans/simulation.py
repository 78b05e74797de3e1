"""Runs of a plan, in the model and in the environment that it was read from, compared with the computed reward."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from manyways.errors import SettingError, check_integer
from manyways.formats.gym import PREFIX, TabularEnvironment, open_gym
from manyways.formats.reader import read, resolve
from manyways.model.episodes import episode_ends
from manyways.plans.planset import PlanSet
from manyways.plans.policy import Policy
from manyways.polytope import Episodic
from manyways.types import Floats

FEWEST_STEPS = 100
ROUNDING = 1e-9
NEGLIGIBLE = 1e-4
"""A discounted run ends when what follows counts for less than this."""


@dataclass(frozen=True)
class Estimate:
    """The mean value of runs under a criterion, its standard error, and how much their finite length may have cut off."""

    mean: float
    standard_error: float
    steps: int
    cut_off: float = 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % confidence interval of the true mean."""
        half = 1.96 * self.standard_error + self.cut_off
        return self.mean - half, self.mean + half


@dataclass(frozen=True)
class Simulation:
    """The computed reward of a plan, and what runs of it earned; `environment` only for models from Gymnasium."""

    computed: float
    model: Estimate
    environment: Estimate | None


def simulate(plans: PlanSet, plan: int = 1, steps: int = 10_000, seed: int = 0) -> Simulation:
    """Run a plan of a set, numbered from 1.

    Args:
        plans: the set.
        plan: which one.
        steps: how many in all.
        seed: of every random draw.
    """
    check_integer("steps", steps, FEWEST_STEPS)
    check_integer("seed", seed, 0)
    if not 1 <= check_integer("the plan's number", plan, 1) <= plans.k:
        raise SettingError(f"there are plans 1 to {plans.k}, found {plan}")
    policy = plans[plan - 1].policy
    here, there = np.random.default_rng(seed).spawn(2)
    discount, per_episode = plans.criterion.discount, isinstance(plans.criterion, Episodic)
    largest = float(np.abs(plans.mdp.reward[policy.probabilities > 0]).max())
    if per_episode:
        model = _by_episodes(_episodes_of(plans, policy, steps, here), steps)
    elif discount < 1:
        runs = [policy.rollout(_horizon(discount), here).rewards for _ in _runs(steps, discount)]
        model = _discounted(runs, discount, largest)
    else:
        model = _by_batches(policy.rollout(steps, here).rewards)
    environment = None
    if (opened := _environment(plans)) is not None:
        environment = _in_environment(opened, policy, steps, there, discount, per_episode)
    return Simulation(float(plans.rewards[plan - 1]), model, environment)


def _environment(plans: PlanSet) -> TabularEnvironment | None:
    """The Gymnasium environment that the model was read from, if it was."""
    source = plans.mdp.source
    if source is None or not source.startswith(PREFIX):
        return None
    _, place, settings = resolve(source)
    opened = open_gym(str(place), plans.criterion.discount < 1, **settings)
    if read(source, absorbing=plans.criterion.discount < 1).digest != plans.mdp.digest:
        raise SettingError(f"{source} is no longer the model that was planned for; plan again")
    return opened


def _in_environment(
    opened: TabularEnvironment, policy: Policy, steps: int, rng: np.random.Generator, discount: float, per_episode: bool
) -> Estimate:
    sign = -1.0 if policy.mdp.costs else 1.0

    def episode(limit: float = math.inf) -> list[float]:
        rewards: list[float] = []
        seen, _ = opened.env.reset(seed=int(rng.integers(2**31)))
        while len(rewards) < limit:
            seen, reward, ended, _, _ = opened.env.step(policy.act(seen, rng))
            rewards.append(sign * (float(reward) + opened.end_rewards[seen] * ended))
            if ended:
                break
        return rewards

    if discount < 1:
        runs = [np.array(episode(_horizon(discount))) for _ in _runs(steps, discount)]
        return _discounted(runs, discount, float(np.abs(policy.mdp.reward[policy.probabilities > 0]).max()))
    returns, rewards = [], []
    while len(rewards) < steps:
        run = episode(steps if per_episode else steps - len(rewards))
        rewards += run
        returns.append(sum(run))
    return _by_episodes(np.array(returns), len(rewards)) if per_episode else _by_batches(np.array(rewards))


def _episodes_of(plans: PlanSet, policy: Policy, steps: int, rng: np.random.Generator) -> Floats:
    """The returns of the episodes in a run of so many steps; the last one, which is cut off, is left out."""
    run = policy.rollout(steps, rng)
    ends = episode_ends(plans.mdp)
    ended = run.ends >= 0 if plans.mdp.ends or ends is None else ends[run.choices] > 0
    last = np.flatnonzero(ended)
    sums = np.cumsum(run.rewards)[last]
    return np.diff(sums, prepend=0.0)


def _by_episodes(returns: Floats, steps: int) -> Estimate:
    """The mean return of independent episodes."""
    if len(returns) < 2:
        raise SettingError(f"fewer than two episodes ended within {steps} steps: run more steps")
    return Estimate(float(returns.mean()), float(returns.std(ddof=1) / math.sqrt(len(returns))), steps)


def _by_batches(rewards: Floats) -> Estimate:
    """The mean of one long run; its error from the means of batches long enough to be nearly independent."""
    count = max(10, int(math.sqrt(len(rewards)) / 2))
    means = np.array([part.mean() for part in np.array_split(rewards, count)])
    return Estimate(float(rewards.mean()), float(means.std(ddof=1) / math.sqrt(count)), len(rewards))


def _discounted(runs: list[Floats], discount: float, largest: float) -> Estimate:
    """The discounted sum of rewards, over independent runs.

    Steps after the end of a run have a total weight of `discount ** steps / (1 - discount)` and earn at most the `largest`
    expected reward of any choice; a small amount is added for rounding.
    """
    earned = np.array([run @ discount ** np.arange(len(run)) for run in runs])
    steps = sum(map(len, runs))
    cut_off = (discount ** _horizon(discount) + ROUNDING) * largest / (1 - discount)
    return Estimate(float(earned.mean()), float(earned.std(ddof=1) / math.sqrt(len(runs))), steps, cut_off)


def _horizon(discount: float) -> int:
    return max(1, math.ceil(math.log(NEGLIGIBLE) / math.log(discount)))


def _runs(steps: int, discount: float) -> range:
    return range(max(30, steps // _horizon(discount)))
