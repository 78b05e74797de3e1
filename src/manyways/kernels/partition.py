"""The compiled loops of `manyways.distributed`, each over the part of a model that one process has.

A process has m states with all their choices, numbered from 0, and knows of further states to which these lead, the ghosts,
numbered from m. `first`, `indptr`, `indices` and `data` are the choices of the m states and their transitions; arrays over
states that begin with the own ones and go on with the ghosts are called `known`.
"""

from __future__ import annotations

import numpy as np

from manyways.kernels.compiler import compiled
from manyways.kernels.sweeps import NOTHING, best_choice


@compiled
def improve(order, first, indptr, indices, data, c, discount, g, h, choice, reference, margin, passes):
    """Greedy Gauss-Seidel passes over the own states in `order`: each takes its best choice and that choice's value. Works in
    place on `h` (known) and `choice`; the values of ghosts stay as they are.

    Choices are compared with their self-loops eliminated, and those that never leave their state are skipped, except at the
    `reference` (-1 if it is elsewhere), at which the chain is cut: its value stays as it is. Returns the number of changes.
    """
    changes = 0
    for _ in range(passes):
        before = changes
        for i in range(len(order)):
            s = order[i]
            kept, best, best_x = best_choice(
                s, choice[s], s == reference, first, indptr, indices, data, c, discount, g, h
            )
            if best > kept + margin:
                choice[s] = best_x
                kept = best
                changes += 1
            if s != reference and kept > NOTHING:
                h[s] = kept
        if changes == before:
            break
    return changes


@compiled
def policy_rows(order, place, choice, indptr, indices, data, discount, cut, begin, column, weight):
    """Write I - discount P of a policy as CSR, with the own states in `order` as its rows. place (known) is the global row of
    each state; the column of state `cut` (known; -1 for none) is dropped. The columns of a row are sorted. The diagonal is
    added up from the other entries, without cancellation."""
    e = 0
    for i in range(len(order)):
        begin[i] = e
        s = order[i]
        x = choice[s]
        at = e
        e += 1
        leaving = 0.0
        for t in range(indptr[x], indptr[x + 1]):
            to = indices[t]
            if to != s:
                leaving += data[t]
                if to != cut:
                    column[e] = place[to]
                    weight[e] = -discount * data[t]
                    e += 1
        column[at] = place[s]
        weight[at] = 1.0 if s == cut else (1.0 - discount) + discount * leaving
        for n in range(at + 1, e):
            number, value = column[n], weight[n]
            before = n
            while before > at and column[before - 1] > number:
                column[before], weight[before] = column[before - 1], weight[before - 1]
                before -= 1
            column[before], weight[before] = number, value
    begin[len(order)] = e
    return e


@compiled
def follow(s, ahead, met):
    """Follow likely successors from own state s until they lead to a state that was `met` (m,) before, or to a ghost."""
    while s < len(ahead) and not met[s]:
        met[s] = True
        s = ahead[s]
    return s


@compiled
def arrivals(first, last, indptr, indices, begin, source):
    """Sort transitions by where they lead: choices source[begin[v]:begin[v + 1]] can lead to state v (known).

    The choices are first[i]:last[i] for each i, so that this serves policies and whole models alike.
    """
    for v in range(len(begin)):
        begin[v] = 0
    for i in range(len(first)):
        for x in range(first[i], last[i]):
            for t in range(indptr[x], indptr[x + 1]):
                begin[indices[t]] += 1
    for v in range(1, len(begin)):
        begin[v] += begin[v - 1]
    for i in range(len(first) - 1, -1, -1):
        for x in range(last[i] - 1, first[i] - 1, -1):
            for t in range(indptr[x], indptr[x + 1]):
                begin[indices[t]] -= 1
                source[begin[indices[t]]] = x


@compiled
def spread_back(queue, waiting, begin, source, owner, reached):
    """Mark in `reached` (known) the own states that lead to a marked one; queue[:waiting] are marked and not followed yet."""
    head = 0
    while head < waiting:
        v = queue[head]
        head += 1
        for e in range(begin[v], begin[v + 1]):
            s = owner[source[e]]
            if not reached[s]:
                reached[s] = True
                queue[waiting] = s
                waiting += 1
    return waiting


@compiled
def spread_ahead(queue, waiting, first, last, indptr, indices, reached):
    """Mark in `reached` (known) the states to which own marked ones lead with the choices first[s]:last[s]; queue[:waiting] are
    own states that are marked and not followed yet. Ghosts are marked, and not followed."""
    head = 0
    m = len(first)
    while head < waiting:
        s = queue[head]
        head += 1
        for x in range(first[s], last[s]):
            for t in range(indptr[x], indptr[x + 1]):
                v = indices[t]
                if not reached[v]:
                    reached[v] = True
                    if v < m:
                        queue[waiting] = v
                        waiting += 1
    return waiting


@compiled
def nearest(queue, place, waiting, begin, source, owner, indptr, indices, data, distance):
    """Dijkstra's search against the transitions: distance (known) is lowered to the smallest sum of 1 / probability along a way
    to a state whose distance is known. queue[:waiting] are the states to begin with, in any order; place (known) is -1.

    The queue is a binary heap, and place[v] is where state v is in it.
    """
    count = 0
    for i in range(waiting):
        v = queue[i]
        at = count
        count += 1
        while at > 0:
            up = (at - 1) // 2
            if distance[queue[up]] <= distance[v]:
                break
            queue[at] = queue[up]
            place[queue[at]] = at
            at = up
        queue[at] = v
        place[v] = at
    while count > 0:
        v = queue[0]
        place[v] = -1
        count -= 1
        if count > 0:
            sift_down(queue, place, distance, queue[count], count)
        for e in range(begin[v], begin[v + 1]):
            x = source[e]
            s = owner[x]
            chance = 0.0
            for t in range(indptr[x], indptr[x + 1]):
                if indices[t] == v:
                    chance = data[t]
            new = distance[v] + 1.0 / chance
            if new < distance[s]:
                distance[s] = new
                at = place[s]
                if at < 0:
                    at = count
                    count += 1
                while at > 0:
                    up = (at - 1) // 2
                    if distance[queue[up]] <= new:
                        break
                    queue[at] = queue[up]
                    place[queue[at]] = at
                    at = up
                queue[at] = s
                place[s] = at
    return count


@compiled
def sift_down(queue, place, distance, v, count):
    """Put state v at the top of the heap queue[:count], and restore its order."""
    at = 0
    while True:
        child = 2 * at + 1
        if child >= count:
            break
        if child + 1 < count and distance[queue[child + 1]] < distance[queue[child]]:
            child += 1
        if distance[v] <= distance[queue[child]]:
            break
        queue[at] = queue[child]
        place[queue[at]] = at
        at = child
    queue[at] = v
    place[v] = at


@compiled
def homeward(first, indptr, indices, data, distance, choice, mask):
    """Write to `choice` the choice of each own state of the mask that begins the nearest way; see `nearest`."""
    for s in range(len(mask)):
        if mask[s]:
            best = np.inf
            for x in range(first[s], first[s + 1]):
                for t in range(indptr[x], indptr[x + 1]):
                    if indices[t] != s and data[t] > 0.0:
                        way = distance[indices[t]] + 1.0 / data[t]
                        if way < best:
                            best = way
                            choice[s] = x


@compiled
def avoid(first, indptr, indices, outside):
    """Unmark in `outside` (known) the own states whose choices can all lead to an unmarked state; returns how many."""
    found = 0
    for s in range(len(first) - 1):
        if outside[s]:
            stays = False
            for x in range(first[s], first[s + 1]):
                inside = True
                for t in range(indptr[x], indptr[x + 1]):
                    if not outside[indices[t]]:
                        inside = False
                        break
                if inside:
                    stays = True
                    break
            if not stays:
                outside[s] = False
                found += 1
    return found


@compiled
def pure_loops(first, indptr, indices, c, best):
    """The own choice of highest c among those that never leave their state; -1 if there is none better than `best`."""
    found = -1
    for s in range(len(first) - 1):
        for x in range(first[s], first[s + 1]):
            if indptr[x + 1] - indptr[x] == 1 and indices[indptr[x]] == s and c[x] > best:
                best = c[x]
                found = x
    return found


@compiled
def flow(indptr, indices, data, discount, x, into):
    """Add to `into` (known) where the time x (n,) goes in one step."""
    for y in range(len(x)):
        if x[y] != 0.0:
            for t in range(indptr[y], indptr[y + 1]):
                into[indices[t]] += discount * data[t] * x[y]
