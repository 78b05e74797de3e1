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
def cheapest_ways(root, begin, move, owner, chance, c, g, step, cost, heap, slot, choice, ahead, order):
    """Dijkstra's algorithm from `root` (S numbers it) against the moves: a step by choice x costs max(g - c[x], 0) + `step`,
    divided by its chance.

    For each state that is reached, `choice` receives the first step of its cheapest way, `ahead` where that leads, `cost` its
    cost (infinite for the others). `order` receives the states by cost. `heap` and `slot` (S,) are work space.

    Returns the number of states reached.
    """
    n = len(cost)
    new, done = n, n + 1
    for s in range(n):
        cost[s] = np.inf
        slot[s] = new
    cost[root] = 0.0
    ahead[root] = root
    heap[0] = root
    waiting = 1
    known = 0
    while waiting > 0:
        v = heap[0]
        order[known] = v
        known += 1
        slot[v] = done
        waiting -= 1
        last = heap[waiting]  # moves down from the top
        i = 0
        while 2 * i + 1 < waiting:
            j = 2 * i + 1
            if j + 1 < waiting and cost[heap[j + 1]] < cost[heap[j]]:
                j += 1
            if cost[heap[j]] >= cost[last]:
                break
            heap[i] = heap[j]
            slot[heap[i]] = i
            i = j
        if waiting > 0:
            heap[i] = last
            slot[last] = i
        for e in range(begin[v], begin[v + 1]):
            x = move[e]
            s = owner[x]
            if slot[s] == done:
                continue
            through = cost[v] + (max(g - c[x], 0.0) + step) / chance[x]
            if through < cost[s]:
                cost[s] = through
                choice[s] = x
                ahead[s] = v
                i = slot[s]
                if i == new:
                    i = waiting
                    waiting += 1
                while i > 0:
                    j = (i - 1) // 2
                    if cost[heap[j]] <= through:
                        break
                    heap[i] = heap[j]
                    slot[heap[i]] = i
                    i = j
                heap[i] = s
                slot[s] = i
    return known
