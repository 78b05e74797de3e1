"""The distribution of a sum along a chain: one step of all states and all bins at once."""

from __future__ import annotations

from manyways.kernels.compiler import compiled


@compiled
def move(owner, chance, begin, target, weight, whole, part, first_bin, low, high, mass, after, after_low, after_high):
    """One step of a chain that carries a sum, kept in B bins.

    Bin b of state s stands for the sum first_bin[s] + b, in widths of a bin: each state has bins where it needs them. Choice
    u is taken in state owner[u] with a chance; it adds whole[u] and, for the share part[u] of the mass, one more, and its
    transitions are begin[u]:begin[u + 1]. The mass (S, B) of state s is in the bins low[s]:high[s]; that after the step is
    added to `after`. What leaves the bins of a state stays in the first or last one.
    """
    last = mass.shape[1] - 1
    for u in range(len(owner)):
        s = owner[u]
        for t in range(begin[u], begin[u + 1]):
            to = target[t]
            far, near = chance[u] * weight[t] * part[u], chance[u] * weight[t] * (1.0 - part[u])
            shift = first_bin[s] + whole[u] - first_bin[to]
            for b in range(low[s], high[s]):
                here = min(max(b + shift, 0), last)
                after[to, here] += near * mass[s, b]
                if far > 0.0:
                    after[to, min(max(b + shift + 1, 0), last)] += far * mass[s, b]
            if low[s] < high[s]:
                after_low[to] = min(after_low[to], max(low[s] + shift, 0), last)
                after_high[to] = max(after_high[to], min(max(high[s] + shift + 1, 0), last) + 1)
