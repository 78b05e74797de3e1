"""The surest plan of a model's trips, and among the surest the one whose trips cost least: policy iteration on first visits.

The largest chance h of reaching the goal is the least solution of h = max (P h + goal). Policy iteration that changes a choice
only where that is strictly better, from a policy with which every state that can reach the goal does so with some chance, keeps
that property and ends at it. If trips surely reach the goal, the second search is the same over the choices that keep h, with the
cost of each step in place of the chance.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from manyways.errors import SolverError
from manyways.kernels import chains
from manyways.model.mdp import MDP
from manyways.model.occupancy import deterministic, factors_of
from manyways.model.trips import Trips
from manyways.types import Bools, Floats, Ints, Sparse

MOST_ROUNDS = 500
GAIN = 1e-9
"""A choice is changed if the new one is better by more than this share of the values around."""
SURE = 1e-9


def surest_policy(trips: Trips, reward: Floats) -> Floats:
    """(N,) a policy with which trips reach the goal with the largest chance and, if that is 1, with the largest sum of (N,) `reward`
    on the way among all such policies. Rewards on the way must not let a loop earn anything."""
    mdp = trips.mdp
    step = trips.with_end[: mdp.n_choices][:, : mdp.n_states]
    everything = np.ones(mdp.n_choices, bool)
    first = _towards(mdp, step, trips.goal, everything)
    chance, choice = largest_total(mdp.first_choice, step, trips.goal, first)
    sure = chance >= 1 - SURE
    if not sure[mdp.start > 0].all():
        return deterministic(mdp, choice)
    keeping = sure[mdp.choice_state] & (step @ chance + trips.goal >= 1 - SURE)
    first = _towards(mdp, step, trips.goal, keeping)
    _, choice = largest_total(
        mdp.first_choice, step, np.where(keeping, reward, -np.inf), np.where(sure, first, -1), choice
    )
    return deterministic(mdp, choice)


def largest_total(
    first_choice: Ints, step: Sparse, gain: Floats, first: Ints, elsewhere: Ints | None = None
) -> tuple[Floats, Ints]:
    """(S,) the largest expected sum of (N,) gains, and (S,) the choices that earn it.

    Args:
        first_choice: (S + 1,) where the choices of each state begin.
        step: (N, S) how likely each choice leads on to each state; what is missing to 1 is the chance that it is the last one.
        gain: of each choice; minus infinity for those that must not be taken.
        first: (S,) the choices to begin with, with which it surely ends; -1 in states that do not count, where the sum is 0.
        elsewhere: (S,) the choices in these; the first ones by default.
    """
    live = first >= 0
    choice = np.where(live, first, first_choice[:-1] if elsewhere is None else elsewhere)
    owner = np.repeat(np.arange(len(first)), np.diff(first_choice))
    going_on = sparse.diags_array(live.astype(np.float64), format="csr")
    for _ in range(MOST_ROUNDS):
        value = _sums(sparse.csr_array(going_on @ step[choice]), np.where(live, gain[choice], 0.0))
        score = step @ value + gain
        best = np.maximum.reduceat(score, first_choice[:-1])
        better = live & (best > value + GAIN * (1 + np.abs(value)))
        if not np.isfinite(value).all():
            raise SolverError("the best sum over a trip is not finite")
        if not better.any():
            return value, choice
        attaining = np.flatnonzero(score == best[owner])
        found = attaining[np.searchsorted(owner[attaining], np.arange(len(first)))]
        choice = np.where(better, found, choice)
    raise SolverError(f"no best sum over a trip was found in {MOST_ROUNDS} rounds")


def _sums(step: Sparse, gain: Floats) -> Floats:
    """(S,) the expected sums of (S,) gains along a chain that ends with what is missing to 1 in each row."""
    n = len(gain)
    ending = np.maximum(1.0 - step.sum(axis=1), 0.0)
    ending[ending < 1e-12] = 0.0  # rounding
    whole = sparse.block_array(
        [[step, sparse.csr_array(ending[:, None])], [None, sparse.csr_array([[1.0]])]], format="csr"
    )
    return factors_of(sparse.csr_array(whole), cut_at=np.array([n])).solve(np.append(gain, 0.0))[:n]


def _towards(mdp: MDP, step: Sparse, gain: Floats, allowed: Bools) -> Ints:
    """(S,) the allowed choice most likely to get nearer to a gain; -1 where none leads to one."""
    ending = np.zeros(mdp.n_states, bool)
    ending[mdp.choice_state[allowed & (gain > 0)]] = True
    level, order = np.where(ending, 0, -1).astype(np.int64), np.empty(mdp.n_states, np.int64)
    known = np.flatnonzero(ending)
    order[: len(known)] = known
    usable = sparse.csr_array(sparse.diags_array(allowed.astype(np.float64)) @ step)
    usable.eliminate_zeros()
    arrivals = usable.tocsc()
    chains.levels(order, len(known), arrivals.indptr, arrivals.indices, mdp.choice_state, level)
    level[level < 0] = mdp.n_states + 1
    rows = np.repeat(np.arange(mdp.n_choices), np.diff(usable.indptr))
    nearer = np.where(level[usable.indices] < level[mdp.choice_state[rows]], usable.data, 0.0)
    likely = np.bincount(rows, weights=nearer, minlength=mdp.n_choices)
    likely = np.where(ending[mdp.choice_state], np.where(allowed, gain, 0.0), likely)
    best = np.maximum.reduceat(likely, mdp.first_choice[:-1])
    attaining = np.flatnonzero(likely == best[mdp.choice_state])
    found = attaining[np.searchsorted(mdp.choice_state[attaining], np.arange(mdp.n_states))]
    return np.where(level <= mdp.n_states, found, -1)
