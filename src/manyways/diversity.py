"""How different k behaviours are: the mean pairwise Jensen-Shannon divergence, in nats.

    JSD(p || q) = 1/2 sum p ln(2p / (p + q)) + 1/2 sum q ln(2q / (p + q)),   0 <= JSD <= ln 2

It is jointly convex. Its gradient d JSD / d p = 1/2 ln(2p / (p + q)) is minus infinity where
p = 0 < q, and where both are zero JSD has a corner. Two smoothed gradients answer two questions:

*All plans move at once* (the paper's algorithms): 1/2 ln(2 (p + d) / (p + q + 2d)). At p = q = 0 it is
zero, and zero is a subgradient there, so that a step along it never promises more than it gives.

*One plan moves, the others stay*: 1/2 ln(2 (p + d) / (p + q + d)). At p = q = 0 it is 1/2 ln 2, the true
derivative of JSD(p || 0): going where nobody goes makes plans different. Summed over plans that all
move it promises too much, because two may go to the same new place.

Both tend to the gradient as d does to zero, and differ from it by more than about d / p only where p is
not much larger than d: a Frank-Wolfe gap computed with either is too small by at most about N d.
"""

from __future__ import annotations

import numpy as np
from scipy.special import xlogy

from manyways.arrays import Floats


def pairwise_distances(x: Floats) -> Floats:
    """(k, B) -> (k, k): the Jensen-Shannon divergence of every pair of rows."""
    k = len(x)
    own = xlogy(x, x).sum(axis=1)
    distances = np.zeros((k, k))
    for i in range(k):
        middle = (x[i] + x[i + 1 :]) / 2
        distances[i, i + 1 :] = (own[i] + own[i + 1 :]) / 2 - xlogy(middle, middle).sum(axis=1)
    # Rounding can leave -1e-17 between equal rows, or a hair above ln 2 between disjoint ones.
    distances = np.clip(distances, 0.0, np.log(2))
    return distances + distances.T


def mean_distance(x: Floats) -> float:
    """(k, B) -> the mean over all pairs; zero for a single row."""
    k = len(x)
    return float(pairwise_distances(x).sum() / (k * (k - 1))) if k > 1 else 0.0


def joint_gradient(x: Floats, smoothing: float) -> Floats:
    """(k, B) -> (k, B): the gradient of `mean_distance` when all rows may move at once."""
    return np.stack([_pull(x, i, smoothing, smoothing) for i in range(len(x))])


def block_gradient(x: Floats, i: int, smoothing: float) -> Floats:
    """(k, B) -> (B,): the gradient of `mean_distance` by row i, when the other rows stay."""
    return _pull(x, i, smoothing, 0.0)


def secant_pull(mass: Floats, others: list[Floats]) -> Floats:
    """(B,), k - 1 of (B,) -> (B,): what a unit of `mass` is worth, were all of the mass put there.

    The divergence is a sum over b of terms psi(p_b, q_b). Where the gradient asks what the next grain of
    p_b is worth, this asks for the whole, (psi(m, q) - psi(0, q)) / m, which with t = q / m is
    1/2 (ln 2 - (1 + t) ln(1 + t) + t ln t): finite everywhere, and exact for a move of just that size.
    """
    total = np.zeros_like(mass)
    for q in others:
        there = np.flatnonzero(q)  # most of a plan's choices are never taken: t = 0 there
        t = q[there] / mass[there]
        total[there] += xlogy(t, t) - (1 + t) * np.log1p(t)
    return (total + len(others) * np.log(2)) / 2


def divergences(row: Floats, others: list[Floats]) -> Floats:
    """(B,), k - 1 of (B,) -> (k - 1,): JSD(row || other) of each.

    A distribution's mass where the other has none adds 1/2 ln 2 per unit, so only the overlap needs work.
    """
    there = np.flatnonzero(row)
    p = row[there]
    result = np.empty(len(others))
    for j, other in enumerate(others):
        q = other[there]
        met = np.flatnonzero(q)
        a, b = p[met], q[met]
        both = a + b
        shared = (a * np.log(a / both) + b * np.log(b / both)).sum() / 2
        result[j] = shared + np.log(2) / 2 * (row.sum() + other.sum())
    return np.clip(result, 0.0, None)


def _pull(x: Floats, i: int, raise_own: float, raise_others: float) -> Floats:
    k = len(x)
    if k == 1:
        return np.zeros_like(x[0])
    own = x[i] + raise_own
    others = np.delete(x, i, axis=0) + raise_others
    return np.log(2 * own / (own + others)).sum(axis=0) / (k * (k - 1))
