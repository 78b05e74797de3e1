"""Chains of policies: their linear system, laid out for a sparse factorisation in one pass, their first steps, and ways."""

from __future__ import annotations

from manyways.kernels.compiler import compiled


@compiled
def count_entries(rows, place, cut, indptr, indices, size):
    """Count in `size` (R + 1,) the entries of each column of the system, at the next position."""
    for i in range(len(rows)):
        size[i + 1] += 1
        for t in range(indptr[rows[i]], indptr[rows[i] + 1]):
            j = place[indices[t]]
            if j != i and not cut[j]:
                size[j + 1] += 1


@compiled
def cut_system(rows, place, cut, indptr, indices, data, discount, free, index, value):
    """Write I - discount P by columns, without the columns of P that are `cut` (R,).

    State i moves by row rows[i] of the transitions, and place[s] (S,) is the position of state s. `free` (R,) is where the
    next entry of each column goes. The diagonal is added up from the other entries of its row, without cancellation.
    """
    for i in range(len(rows)):
        leaving = 0.0
        at = free[i]
        free[i] += 1
        for t in range(indptr[rows[i]], indptr[rows[i] + 1]):
            j = place[indices[t]]
            if j != i:
                leaving += data[t]
                if not cut[j]:
                    index[free[j]] = i
                    value[free[j]] = -discount * data[t]
                    free[j] += 1
        index[at] = i
        value[at] = 1.0 if cut[i] else (1.0 - discount) + discount * leaving


@compiled
def merged(first, indptr, indices, data, policy, begin, target, weight, place):
    """Lay out the chain of a policy (N,): its transitions from state s are begin[s]:begin[s + 1], one for each target.

    `place` (S,) must come as -1 throughout.
    """
    e = 0
    for s in range(len(place)):
        begin[s] = e
        for x in range(first[s], first[s + 1]):
            for t in range(indptr[x], indptr[x + 1]):
                to = indices[t]
                if place[to] < begin[s]:
                    place[to] = e
                    target[e] = to
                    weight[e] = 0.0
                    e += 1
                weight[place[to]] += policy[x] * data[t]
    begin[len(place)] = e


@compiled
def first_steps(begin, target, weight, now, steps, then, total):
    """Add up in `total` (S,) where a chain is in each of its first steps, from the distribution `now`."""
    for _ in range(steps):
        for s in range(len(now)):
            total[s] += now[s]
            then[s] = 0.0
        for s in range(len(now)):
            if now[s] > 0.0:
                for e in range(begin[s], begin[s + 1]):
                    then[target[e]] += now[s] * weight[e]
        for s in range(len(now)):
            now[s] = then[s]


@compiled
def followed(begin, target, weight, goal, now, then, steps, hardly, unfinished, visits, arrived):
    """Follow trips for at most `steps` steps, or until at most `unfinished` of them are on their way, from the distribution
    `now` (R + 1,), whose last state is the end.

    Adds to `visits` (R,) the visits to each state, and to `arrived` (2,) the chance that a step ended a trip at the goal, by
    `goal` (R + 1,), and the same times the number of its step. Where at most `hardly` of the trips are, nothing goes on.
    Afterwards `now` is where the trips are.
    """
    end = len(visits)
    for step in range(1, steps + 1):
        left = 0.0
        for s in range(end + 1):
            then[s] = 0.0
        for s in range(end):
            here = now[s]
            if here > hardly:
                left += here
                visits[s] += here
                arrived[0] += here * goal[s]
                arrived[1] += here * goal[s] * step
                for e in range(begin[s], begin[s + 1]):
                    then[target[e]] += here * weight[e]
        for s in range(end + 1):
            now[s] = then[s]
        if left <= unfinished:
            break


@compiled
def levels(order, known, begin, arriving, choice_state, level):
    """Breadth-first search against all transitions, from the states order[:known], whose `level` (S,) is 0; that of states
    that are not known yet is -1. The choices that can lead to state s are arriving[begin[s]:begin[s + 1]]."""
    head = 0
    while head < known:
        s = order[head]
        head += 1
        for t in range(begin[s], begin[s + 1]):
            before = choice_state[arriving[t]]
            if level[before] < 0:
                level[before] = level[s] + 1
                order[known] = before
                known += 1
