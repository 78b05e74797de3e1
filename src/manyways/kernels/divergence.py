"""The compiled loops of `manyways.objectives.divergence`: plans are zero in most places, and only the others need work."""

from __future__ import annotations

import math

from manyways.kernels.compiler import compiled

LOG_2 = math.log(2.0)


@compiled
def divergences(row, others, first, own, log_2, found):
    """Write to `found` (m,) the divergences of `row` (B,) from `others` (m, B): from the `first` one on, and 0 from its
    `own` one."""
    mass = 0.0
    for b in range(len(row)):
        if row[b] > 0.0:
            mass += row[b]
    for j in range(first, len(others)):
        found[j] = 0.0
        if j == own:
            continue
        both = mass
        overlap = 0.0
        for b in range(len(row)):
            q = others[j, b]
            if q > 0.0:
                both += q
                p = row[b]
                if p > 0.0:
                    overlap += p * math.log(p / (p + q)) + q * math.log(q / (p + q))
        found[j] = max(0.5 * (overlap + log_2 * both), 0.0)


@compiled
def x_log_x(row, found):
    """Write x ln x of a `row` (B,) to `found` (B,)."""
    for b in range(len(row)):
        found[b] = row[b] * math.log(row[b]) if row[b] > 0.0 else 0.0


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


@compiled
def secant_costs(first, row, least, others, others_log, weights, reward, per_reward, per_worth, costs):
    """Write to `costs` (N,) the worth of each choice: per_reward times its reward, and per_worth times the weighted sum over
    `others` (m, N) of ln 2 + t ln t - (1 + t) ln(1 + t), with t = others / mass. The mass is the time of `row` (N,) in
    the choice's state, or `least` if that is more. The choices of state s are first[s]:first[s + 1]; `others_log` is
    others ln others, which saves half of the logarithms."""
    alone = 0.0  # as if nobody else were there
    for j in range(len(others)):
        alone += weights[j] * LOG_2
    for s in range(len(first) - 1):
        mass = 0.0
        for x in range(first[s], first[s + 1]):
            mass += row[x]
        mass = max(mass, least)
        mass_log = mass * math.log(mass)
        for x in range(first[s], first[s + 1]):
            worth = 0.0
            for j in range(len(others)):
                q = others[j, x]
                if q > 0.0:
                    worth += weights[j] * (others_log[j, x] + mass_log - (mass + q) * math.log(mass + q))
            costs[x] = per_reward * reward[x] + per_worth * (alone + worth / mass)
