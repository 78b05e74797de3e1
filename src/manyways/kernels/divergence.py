"""The compiled loops of `manyways.objectives.divergence`: plans are zero in most places, and only the others need work."""

from __future__ import annotations

import math

from manyways.kernels.compiler import compiled


@compiled
def divergences(row, others, first, own, log_2, found):
    """Write to `found` (m,) the divergences of `row` (B,) from `others` (m, B): from the `first` one on, and 0 from its
    `own` one."""
    for j in range(first, len(others)):
        found[j] = 0.0
    mass = 0.0
    for b in range(len(row)):
        p = row[b]
        if p > 0.0:
            mass += p
            for j in range(first, len(others)):
                q = others[j, b]
                if q > 0.0 and j != own:
                    found[j] += p * math.log(p / (p + q)) + q * math.log(q / (p + q))
    for j in range(first, len(others)):
        if j != own:
            both = mass
            for b in range(len(row)):
                both += others[j, b]
            found[j] = max(0.5 * (found[j] + log_2 * both), 0.0)


@compiled
def secants(mass, others, weights, worth):
    """Add to `worth` (B,) the sum over `others` (m, B) of weight (t ln t - (1 + t) ln(1 + t)) with t = others / mass."""
    for j in range(len(others)):
        weight = weights[j]
        if weight != 0.0:
            for b in range(len(mass)):
                q = others[j, b]
                if q > 0.0:
                    t = q / mass[b]
                    worth[b] += weight * (t * math.log(t) - (1.0 + t) * math.log(1.0 + t))
