"""The compiled loops of `manyways.polytope.ways`: cheapest ways to a state along likely moves.

A move is a choice together with its most likely successor. `begin` (S + 1,) and `move` (N,) list the choices by the state that
they most likely lead to; `owner` (N,) has the state of each choice, `chance` (N,) the probability of its move.
"""

from __future__ import annotations

import numpy as np

from manyways.kernels.compiler import compiled
from manyways.kernels.orders import likeliest


@compiled
def likely_moves(first, indptr, indices, data, begin, move, owner, chance, to):
    """Fill in the lists of moves. `to` (N,) receives the most likely successor of each choice, which is the state itself if it
    never leaves."""
    n = len(begin) - 1
    for s in range(n + 1):
        begin[s] = 0
    for s in range(n):
        for x in range(first[s], first[s + 1]):
            owner[x] = s
            to[x], chance[x] = likeliest(s, x, indptr, indices, data)
            begin[to[x]] += 1
    for s in range(n):
        begin[s + 1] += begin[s]
    for i in range(len(to)):
        x = len(to) - 1 - i
        begin[to[x]] -= 1
        move[begin[to[x]]] = x


@compiled
def cheapest_ways(root, begin, move, owner, chance, c, g, step, stage, cost, near, far, waits, choice, ahead):
    """Cheapest ways to `root` against the moves: a step by choice x costs max(g - c[x], 0) + `step`, divided by its chance.

    States up to some cost are settled in a queue, first in, first out, in which a state may be more than once; then those up
    to a `stage` more, and so on. That is faster than a heap where a stage is about as long as some steps.

    For each state that is reached, `choice` receives the first step of its cheapest way, `ahead` where that leads, `cost` its
    cost (infinite for the others). `near`, `far` and `waits` (S,) are work space: a ring and a list of states that wait, and
    where each does.

    Returns the number of states reached.
    """
    n = len(cost)
    nowhere, nearby, farther = 0, 1, 2
    for s in range(n):
        cost[s] = np.inf
        waits[s] = nowhere
    cost[root] = 0.0
    ahead[root] = root
    near[0] = root
    waits[root] = nearby
    head = 0
    queued = 1
    listed = 0
    reached = 1
    limit = stage
    while queued > 0:
        while queued > 0:
            v = near[head]
            head = head + 1 if head + 1 < n else 0
            queued -= 1
            waits[v] = nowhere
            here = cost[v]
            for e in range(begin[v], begin[v + 1]):
                x = move[e]
                s = owner[x]
                if cost[s] <= here:
                    continue
                through = here + (max(g - c[x], 0.0) + step) / chance[x]
                if through < cost[s]:
                    if cost[s] == np.inf:
                        reached += 1
                    cost[s] = through
                    choice[s] = x
                    ahead[s] = v
                    if through <= limit and waits[s] != nearby:
                        tail = head + queued
                        near[tail if tail < n else tail - n] = s
                        waits[s] = nearby
                        queued += 1
                    elif waits[s] == nowhere:
                        far[listed] = s
                        waits[s] = farther
                        listed += 1
        least = np.inf
        for i in range(listed):
            if waits[far[i]] == farther:  # the others have come nearer since
                least = min(least, cost[far[i]])
        limit = max(limit, least) + stage
        rest = 0
        head = 0
        for i in range(listed):
            s = far[i]
            if waits[s] == farther and cost[s] <= limit:
                near[queued] = s
                waits[s] = nearby
                queued += 1
            elif waits[s] == farther:
                far[rest] = s
                rest += 1
        listed = rest
    return reached
