"""Sums of products with proved error bounds: the arithmetic of `manyways.plans.checker`.

Every product of two doubles is split into two doubles whose sum it is (Dekker), every sum likewise (Knuth), and the parts
are added with compensation (Ogita, Rump and Oishi, SIAM J. Sci. Comput. 26, 2005, proposition 4.5): the result of adding
n terms differs from the exact sum S by at most u |S| + gamma^2 sum |terms|, with u = 2^-53 and gamma = n u / (1 - n u). So
terms that are 10^15 times as large as their sum may cancel without harm.

A compensated sum is a row (sum, compensation, sum of sizes, number of terms) of an array (n, 4) that starts as zeros.

Assumed: IEEE doubles rounded to nearest, no flush to zero, all numbers below 1e140 (which the checker ensures).
"""

from __future__ import annotations

import math

import numpy as np

from manyways.kernels.compiler import compiled

U = 2.0**-53
TINY = 1e-290
"""Added to every error bound, because the last digits of products may have underflowed."""
SPLITTER = 134217729.0
"""2^27 + 1, which cuts a double into two halves."""


@compiled
def _add(total, at, term):
    """Add a double."""
    before = total[at, 0]
    now = before + term
    kept = now - before
    total[at, 0] = now
    total[at, 1] += (before - (now - kept)) + (term - kept)
    total[at, 2] += abs(term)
    total[at, 3] += 1.0


@compiled
def _interval(whole, lost, size, count):
    """The lower and upper end of a compensated sum."""
    value = whole + lost
    gamma = 1.01 * count * U
    error = 1.01 * (2.0 * U * abs(value) + gamma * gamma * size) + TINY
    return np.nextafter(value - error, -np.inf), np.nextafter(value + error, np.inf)


@compiled
def ends(total, low, high):
    """The lower and upper ends (n,) of n compensated sums (n, 4)."""
    for i in range(len(total)):
        low[i], high[i] = _interval(total[i, 0], total[i, 1], total[i, 2], total[i, 3])


@compiled
def whole_sum(values):
    """The lower and upper end of the sum of values (n,)."""
    whole = 0.0  # the same as `_add`, in registers
    lost = 0.0
    size = 0.0
    for i in range(len(values)):
        term = values[i]
        now = whole + term
        kept = now - whole
        lost += (whole - (now - kept)) + (term - kept)
        whole = now
        size += abs(term)
    return _interval(whole, lost, size, len(values))


@compiled
def _rest(a, b, product):
    """What is missing from fl(a b) = product: a b = product + rest, exactly."""
    c = SPLITTER * a
    a_high = c - (c - a)
    a_low = a - a_high
    c = SPLITTER * b
    b_high = c - (c - b)
    b_low = b - b_high
    return a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low)


@compiled
def surpluses(rows, indptr, indices, data, state, c, h, left, least, most, terms, low, high):
    """For each of the rows, the ends (rows,) of the sum of p_j (c + h_j - h_s - (1 - discount) h_j) over its transitions,
    divided by the sum of the p_j, which is between `least` and `most` (N,): c + discount P h - h.

    h (m, S) is an unevaluated sum of m vectors; 1 - discount is left[0] + left[1], exactly; rewards c (N,); `terms`
    (1 + 6 m,) is work space.
    """
    for i in range(len(rows)):
        x = rows[i]
        s = state[x]
        terms[0] = c[x]
        whole = 0.0  # the same as `_add`, in registers
        lost = 0.0
        size = 0.0
        count = 0
        for t in range(indptr[x], indptr[x + 1]):
            j = indices[t]
            n = 1
            for m in range(len(h)):
                a = h[m, j]
                difference = a - h[m, s]
                kept = difference - a
                terms[n] = difference
                terms[n + 1] = (a - (difference - kept)) + (-h[m, s] - kept)
                n += 2
                for part in range(2):
                    if left[part] != 0.0:
                        product = -left[part] * a
                        terms[n] = product
                        terms[n + 1] = _rest(-left[part], a, product)
                        n += 2
            for m in range(n):
                term = data[t] * terms[m]
                if term != 0.0:
                    rest = _rest(data[t], terms[m], term)
                    for _ in range(2):
                        now = whole + term
                        kept = now - whole
                        lost += (whole - (now - kept)) + (term - kept)
                        whole = now
                        size += abs(term)
                        term = rest
                    count += 2
        a, b = _interval(whole, lost, size, count)
        low[i] = np.nextafter(min(a / least[x], a / most[x]), -np.inf)
        high[i] = np.nextafter(max(b / least[x], b / most[x]), np.inf)


@compiled
def flows(rows, indptr, indices, data, state, w, by_row, into, net):
    """The flow w_x p_j, added up by row (rows, 4), into each state (S, 4), and net out of each state (S, 4).

    w (m, N) is an unevaluated sum of m vectors. An empty `into` (0, 4) is left out.
    """
    for i in range(len(rows)):
        x = rows[i]
        s = state[x]
        for t in range(indptr[x], indptr[x + 1]):
            j = indices[t]
            for m in range(len(w)):
                term = w[m, x] * data[t]
                rest = _rest(w[m, x], data[t], term)
                for _ in range(2):
                    _add(by_row, i, term)
                    if len(into):
                        _add(into, j, term)
                    if j != s:
                        _add(net, s, term)
                        _add(net, j, -term)
                    term = rest


@compiled
def sums(values, group, total):
    """The sums of values (n,) by group (n,)."""
    for i in range(len(values)):
        _add(total, group[i], values[i])


@compiled
def reach(seen, queue, known, first, choices, indptr, indices):
    """Mark in `seen` (S,) what can be reached by the marked choices (N,) from queue[:known]; `queue` (S,) is work space."""
    head = 0
    while head < known:
        s = queue[head]
        head += 1
        for x in range(first[s], first[s + 1]):
            if choices[x]:
                for t in range(indptr[x], indptr[x + 1]):
                    j = indices[t]
                    if not seen[j]:
                        seen[j] = True
                        queue[known] = j
                        known += 1


@compiled
def overlap(p, q):
    """The sum of p ln(p / (p + q)) + q ln(q / (p + q)) over places (B,), and the sum of all p and q."""
    shared = 0.0
    shared_lost = 0.0
    mass = 0.0
    mass_lost = 0.0
    for b in range(len(p)):
        both = p[b] + q[b]
        if both > 0.0:
            for part in range(2):
                term = q[b] if part else p[b]
                now = mass + term
                kept = now - mass
                mass_lost += (mass - (now - kept)) + (term - kept)
                mass = now
            if p[b] > 0.0 and q[b] > 0.0:
                term = p[b] * math.log(p[b] / both) + q[b] * math.log(q[b] / both)
                now = shared + term
                kept = now - shared
                shared_lost += (shared - (now - kept)) + (term - kept)
                shared = now
    return shared + shared_lost, mass + mass_lost


@compiled
def slopes(own, others, i, sign, smoothing, total):
    """Add to `total` (B,) an end of the sum of ln(2 (own + d) / (own + others_j + 2 d)) over j other than i, for the
    smoothing d: the upper one if `sign` is 1, the lower one if it is -1. Where nobody has time, the slope is zero."""
    for j in range(len(others)):
        if j != i:
            for b in range(len(own)):
                if own[b] > 0.0 or others[j, b] > 0.0:
                    slope = math.log(2.0 * (own[b] + smoothing) / (own[b] + others[j, b] + 2.0 * smoothing))
                    total[b] += slope + sign * 8.0 * U * (1.0 + abs(slope))
