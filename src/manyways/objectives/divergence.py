"""The Jensen-Shannon divergence, in nats: all its forms are here, in `kernels.divergence` and in `kernels.exchange`.

    JSD(p || q) = 1/2 sum p ln(2p / (p + q)) + 1/2 sum q ln(2q / (p + q)),   0 <= JSD <= ln 2

It is jointly convex. Its gradient d JSD / d p = 1/2 ln(2p / (p + q)) is minus infinity where p = 0 < q, and where both
are zero JSD has a corner. Two smoothed gradients answer two questions:

*All plans move at once* (the paper's algorithms): 1/2 ln(2 (p + d) / (p + q + 2d)). At p = q = 0 it is zero, and zero
is a subgradient there, so a step along it never promises more than it gives.

*One plan moves, the others stay*: 1/2 ln(2 (p + d) / (p + q + d)). At p = q = 0 it is 1/2 ln 2, the true derivative of
JSD(p || 0): going where nobody goes makes plans different. Summed over plans that all move it promises too much,
because two plans may go to the same new place. The default method replaces this one by secants (`secant_worths`), so
only the first is implemented.

Both tend to the gradient as d tends to zero, and differ from it by more than about d / p only where p is not much
larger than d: a Frank-Wolfe gap computed with either is too small by at most about N d.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import rel_entr, xlogy

from manyways.kernels import divergence as kernels
from manyways.types import Floats
from manyways.vectors import over_all, plain

LARGEST = float(np.log(2))
"""The divergence of distributions that share nothing."""


def pairwise_divergences(x: Floats) -> Floats:
    """(k, B) -> (k, k): the divergence of every pair of rows."""
    rows, found = np.array(x, dtype=np.float64, order="C"), np.zeros((len(x), len(x)))
    for i, row in enumerate(rows):
        kernels.divergences(row, rows, i + 1, i, LARGEST, found[i])
    found = np.minimum(over_all(x, found), LARGEST)  # rounding can leave a little more between disjoint rows
    return found + found.T


def divergences_from(row: Floats, others: Sequence[Floats] | Floats, own: int = -1) -> Floats:
    """(B,), m of (B,) -> (m,): the divergence of `row` from each of the others; 0 from its `own` one, if it is replaced.

    Mass in a place where the other distribution has none adds 1/2 ln 2 per unit, so only the overlap needs work.
    """
    images, found = np.asarray(others, dtype=np.float64).reshape(len(others), len(row)), np.empty(len(others))
    kernels.divergences(np.asarray(row, dtype=np.float64), images, 0, own, LARGEST, found)
    return over_all(row, found)


def divergence_from_one_place(q: Floats) -> Floats:
    """(...) -> (...): the divergence between all time in one place and a distribution with time q there."""
    return np.log(2) + (xlogy(q, q) - (1 + q) * np.log1p(q)) / 2


def divergence_by_place(p: Floats, q: Floats) -> Floats:
    """(B,), (B,) -> (B,): the summands of the divergence, which show where two plans differ."""
    both = p + q  # not halved: half of the smallest double is zero
    return (rel_entr(2 * p, both) + rel_entr(2 * q, both)) / 4


def gradient_of_sum(x: Floats, i: int, smoothing: float, weights: Floats) -> Floats:
    """(k, B), (k - 1,) -> (B,): twice the gradient by row i of the weighted sum of its divergences from the other rows,
    when all rows move."""
    own = x[i] + smoothing
    others = np.delete(x, i, axis=0) + smoothing
    return (np.log(2 * own / (own + others)) * weights[:, None]).sum(axis=0)


def secant_worths(mass: Floats, others: Sequence[Floats] | Floats, weights: Floats) -> Floats:
    """(B,), m of (B,), (m,) -> (B,): what a unit of `mass` adds to the weighted sum of divergences if all of the mass is
    put there.

    The divergence is a sum over places of psi(p, q). The gradient is the worth of the next bit of p; this is the worth
    of the whole, (psi(m, q) - psi(0, q)) / m, which with t = q / m is 1/2 (ln 2 - (1 + t) ln(1 + t) + t ln t). It is
    finite everywhere, and exact for a move of just that size.
    """
    worth = np.full(len(mass), float(weights.sum()) * LARGEST)  # as if nobody else were there
    kernels.secants(plain(mass), np.asarray(others), weights, worth)
    return worth / 2


def sum_x_log_x(x: Floats) -> Floats:
    """(..., B) -> (...): minus the entropy of each distribution.

    The joint divergence of k rows is mean(sum_x_log_x(x)) - sum_x_log_x(mean(x)), at most ln k; for two rows it is JSD.
    """
    return xlogy(x, x).sum(axis=-1)


def joint_gradient(x: Floats, smoothing: float) -> Floats:
    """(k, B) -> (k, B): the gradient of the joint divergence when all rows move, 1/k ln(p_i / mean)."""
    own = x + smoothing
    return np.log(own / own.mean(axis=0)) / len(x)


def joint_secant_worths(mass: Floats, others: Floats, k: int) -> Floats:
    """(B,), (B,) -> (B,): `secant_worths` for the joint divergence, with the sum of the k - 1 other rows.

    With t = others / mass it is 1/k (ln k - (1 + t) ln(1 + t) + t ln t).
    """
    t = others / mass
    return (np.log(k) + xlogy(t, t) - (1 + t) * np.log1p(t)) / k
