"""The compiled loops of `manyways.polytope.sweeps`.

Names: x is a choice (a row of the transitions), h are relative values, y times to the reference, `order` lists the
states in the order of the sweeps, the reference first. `begin`, `target`, `weight` and `inverse` are the policy's rows
packed in that order: the transitions of row i are begin[i]:begin[i+1]. Targets are states.
"""

from __future__ import annotations

import numpy as np

from manyways.kernels.compiler import compiled

PURE_LOOP = 1e-13
"""A choice that leaves its state with a lower probability than this counts as one that never leaves."""

NOTHING = -np.inf


@compiled
def greedy(order, first, indptr, indices, data, c, discount, g, h, choice, margin, passes):
    """Greedy Gauss-Seidel passes over the states in `order`: each state takes its best choice and that choice's
    value, so improvements travel whole paths in one pass. Works in place on `h` and `choice`.

    Returns the number of changed choices and the largest change of a value in the last pass. Choices are compared
    with their self-loops eliminated; choices that never leave their state are skipped, because they cannot lead back.
    Without a discount the chain is cut at the first state, whose value is not changed.
    """
    changes = 0
    moved = 0.0
    for _ in range(passes):
        before = changes
        moved = 0.0
        fixed = discount == 1.0
        for i in range(len(order)):
            s = order[i]
            own = choice[s]
            best = NOTHING
            kept = NOTHING
            best_x = own
            for x in range(first[s], first[s + 1]):
                value = c[x] - g
                leaving = 1.0
                for t in range(indptr[x], indptr[x + 1]):
                    to = indices[t]
                    weight = discount * data[t]
                    if to == s:
                        leaving -= weight
                    else:
                        value += weight * h[to]
                if not fixed:
                    if leaving < PURE_LOOP:
                        continue
                    value /= leaving
                if x == own:
                    kept = value
                if value > best:
                    best = value
                    best_x = x
            if best > kept + margin:
                choice[s] = best_x
                kept = best
                changes += 1
            if not fixed and kept > NOTHING:
                step = abs(kept - h[s])
                if step > moved:
                    moved = step
                h[s] = kept
            fixed = False
        if changes == before:
            break
    return changes, moved


@compiled
def tree(order, choice, indptr, indices, data, ahead, child, sibling):
    """The states that lead to order[0] by most likely successors, breadth first, in `order`; returns how many.

    Each state's most likely successor other than itself (itself where there is none) is left in `ahead`. The
    states that have v ahead are linked: `child` leads from v to the first, `sibling` from each to the next.
    `child` must come as -1 throughout, which is also how the lists end.
    """
    for s in range(len(choice) - 1, -1, -1):
        x = choice[s]
        most = 0.0
        likely = s
        for t in range(indptr[x], indptr[x + 1]):
            if data[t] > most and indices[t] != s:
                most = data[t]
                likely = indices[t]
        ahead[s] = likely
        sibling[s] = child[likely]
        child[likely] = s
    root = order[0]
    known = 1
    head = 0
    while head < known:
        s = child[order[head]]
        head += 1
        while s >= 0:
            if s != root:  # any other state has one successor ahead, so it is met once
                order[known] = s
                known += 1
            s = sibling[s]
    return known


@compiled
def visit(order, known, begin, child, seen):
    """Breadth-first search from `order[:known]`, which are seen; v's children are child[begin[v]:begin[v+1]].

    Returns the number of states seen.
    """
    head = 0
    while head < known:
        v = order[head]
        head += 1
        for e in range(begin[v], begin[v + 1]):
            if not seen[child[e]]:
                seen[child[e]] = True
                order[known] = child[e]
                known += 1
    return known


@compiled
def on_loop(reference, ahead):
    """The reference if following likely successors leads back to it, else a state of the loop in which they end."""
    s = reference
    for _ in range(len(ahead)):
        s = ahead[s]
        if s == reference:
            break
    return s


@compiled
def bounds(first, indptr, indices, data, c, discount, h, choice):
    """The largest surplus c + discount P h - h of all choices, and the smallest of the policy's own."""
    top, bottom = NOTHING, -NOTHING
    for s in range(len(choice)):
        for x in range(first[s], first[s + 1]):
            ahead = 0.0
            for t in range(indptr[x], indptr[x + 1]):
                ahead += data[t] * h[indices[t]]
            surplus = discount * ahead + c[x] - h[s]
            top = max(top, surplus)
            if x == choice[s]:
                bottom = min(bottom, surplus)
    return top, bottom


@compiled
def pack(order, choice, indptr, indices, data, c, discount, begin, target, weight, inverse, b):
    """Lay the policy's rows and costs out in sweep order. Without a discount the chain is cut at the first state,
    and its column dropped. Each row's own column is eliminated: it only scales the row, by `inverse`."""
    dropped = order[0] if discount == 1.0 else -1
    e = 0
    for i in range(len(order)):
        begin[i] = e
        leaving = 1.0
        s = order[i]
        x = choice[s]
        b[i] = c[x]
        for t in range(indptr[x], indptr[x + 1]):
            to = indices[t]
            if to == dropped:
                continue
            if to == s:
                leaving -= discount * data[t]
            else:
                target[e] = to
                weight[e] = discount * data[t]
                e += 1
        inverse[i] = 1.0 / leaving if leaving > 0.0 else 0.0
    begin[len(order)] = e


@compiled
def sweep(order, begin, target, weight, inverse, b, shift, values, cut, sweeps, tolerance):
    """Gauss-Seidel sweeps of v = b - shift + P v on `values` (by state).

    Returns the last sweep's largest change, and the value at the reference, which stays out of a cut chain.
    """
    outside = 0
    if cut:
        values[order[0]] = 0.0
        outside = 1
    change = 0.0
    for _ in range(sweeps):
        change = 0.0
        for i in range(outside, len(order)):
            s = order[i]
            new = b[i] - shift
            for e in range(begin[i], begin[i + 1]):
                new += weight[e] * values[target[e]]
            new *= inverse[i]
            step = abs(new - values[s])
            if step > change:
                change = step
            values[s] = new
        if change <= tolerance:
            break
    back = b[0] - shift
    for e in range(begin[1]):
        back += weight[e] * values[target[e]]
    return change, back


@compiled
def push(order, begin, target, weight, inverse, waiting, visits, sweeps, crumb, enough):
    """Push mass along the chain, far to near, adding up `visits` (by state), until at most `enough` is still moving.

    Mass below `crumb` is left where it is: following it would end in denormal numbers, which are slow. Mass may be
    negative. With a cut chain, mass that reaches the first state has left the system.
    """
    n = len(order)
    left = 0.0
    for _ in range(sweeps):
        for i in range(n - 1, -1, -1):
            s = order[i]
            mass = waiting[s]
            if abs(mass) > crumb:
                waiting[s] = 0.0
                mass *= inverse[i]
                visits[s] += mass
                for e in range(begin[i], begin[i + 1]):
                    waiting[target[e]] += mass * weight[e]
        left = 0.0
        for s in range(n):
            left += abs(waiting[s])
        if left <= enough:
            break
    return left
