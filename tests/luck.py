"""Trips by luck: many episodes of a deterministic policy at once, with dense tables and nothing of the library but the model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from manyways import MDP


@dataclass(frozen=True)
class Trips:
    """What happened on each of M trips: whether it ended and how, its return and length, and (M, S) which states it met."""

    reached: np.ndarray
    ended: np.ndarray
    returns: np.ndarray
    steps: np.ndarray
    met: np.ndarray


def trips_by_luck(
    mdp: MDP, policy: np.ndarray, ends: np.ndarray, count: int, most: int, seed: int = 0, goal: np.ndarray | None = None
) -> Trips:
    """Run `count` trips of at most `most` steps.

    Args:
        ends: (N,) the chance that the step of a choice ends the trip and leads back to the start.
        goal: (N,) the chance that it ends it at the goal; all ends by default.
    """
    goal = ends if goal is None else goal
    rng, n = np.random.default_rng(seed), mdp.n_states
    assert set(policy) <= {0.0, 1.0}
    taken = np.flatnonzero(policy)  # one choice for each state
    going_on = np.cumsum(np.clip(mdp.transitions.toarray() - ends[:, None] * mdp.start, 0, None), axis=1)
    at = rng.choice(n, count, p=mdp.start)
    met = np.zeros((count, n), bool)
    met[np.arange(count), at] = True
    returns, steps = np.zeros(count), np.zeros(count, np.int64)
    reached, going = np.zeros(count, bool), np.ones(count, bool)
    for _ in range(most):
        who = np.flatnonzero(going)
        if not len(who):
            break
        choice = taken[at[who]]
        returns[who] += mdp.reward[choice]
        steps[who] += 1
        luck = rng.random(len(who))
        reached[who] = luck < goal[choice]
        ended = luck < ends[choice]
        going[who[ended]] = False
        on, row = who[~ended], choice[~ended]
        at[on] = (rng.random(len(on))[:, None] * going_on[row, -1:] >= going_on[row]).sum(axis=1)
        met[on, at[on]] = True
    return Trips(reached, ~going, returns, steps, met)


def within(value: float, sample: np.ndarray, errors: float = 3.0) -> bool:
    """Whether a value lies within so many standard errors of the mean of a sample."""
    error = sample.std(ddof=1) / np.sqrt(len(sample))
    return abs(float(sample.mean()) - value) <= errors * error + 1e-9
