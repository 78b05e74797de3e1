"""Orders of the states along the transitions of a policy: what sweeps visit the states in."""

from __future__ import annotations

from manyways.kernels.compiler import compiled


@compiled
def likeliest(s, x, indptr, indices, data):
    """The most likely successor of choice x other than its state s, and its probability; s and 0 if x never leaves."""
    most = 0.0
    likely = s
    for t in range(indptr[x], indptr[x + 1]):
        if data[t] > most and indices[t] != s:
            most = data[t]
            likely = indices[t]
    return likely, most


@compiled
def likely_successors(low, high, choice, indptr, indices, data, ahead):
    """Leave in `ahead` the most likely successor, other than itself, of each state from low to high."""
    for s in range(low, high):
        ahead[s], _ = likeliest(s, choice[s], indptr, indices, data)


@compiled
def walk(order, ahead, child, sibling):
    """The states that lead `ahead` to order[0], breadth first, in `order`; returns how many.

    The states that have v ahead are linked: `child` leads from v to the first, `sibling` from each to the next. The lists end
    with n, which is no state.
    """
    n = len(ahead)
    for s in range(n):
        child[s] = n
    for s in range(n - 1, -1, -1):
        sibling[s] = child[ahead[s]]
        child[ahead[s]] = s
    root = order[0]
    known = 1
    head = 0
    while head < known:
        s = child[order[head]]
        head += 1
        while s < n:
            if s != root:  # any other state has one successor ahead, so it is met once
                order[known] = s
                known += 1
            s = sibling[s]
    return known


@compiled
def tree(order, choice, indptr, indices, data, ahead, child, sibling):
    """The states that lead to order[0] by most likely successors, breadth first, in `order`; returns how many.

    Each state's most likely successor other than itself (itself where there is none) is left in `ahead`; for the rest see
    `walk`.
    """
    likely_successors(0, len(choice), choice, indptr, indices, data, ahead)
    return walk(order, ahead, child, sibling)


@compiled
def visit(order, known, choice, indptr, indices, seen, begin, source):
    """Breadth-first search against the transitions of a policy, from `order[:known]`, which are seen.

    `begin` (S + 1,) and `source` are work space for the transitions by the state that they lead to. Returns the number of
    states seen.
    """
    n = len(choice)
    for s in range(n + 1):
        begin[s] = 0
    for s in range(n):
        for t in range(indptr[choice[s]], indptr[choice[s] + 1]):
            begin[indices[t]] += 1
    for s in range(n):
        begin[s + 1] += begin[s]
    for i in range(n):
        s = n - 1 - i
        for t in range(indptr[choice[s]], indptr[choice[s] + 1]):
            begin[indices[t]] -= 1
            source[begin[indices[t]]] = s
    head = 0
    while head < known:
        v = order[head]
        head += 1
        for e in range(begin[v], begin[v + 1]):
            s = source[e]
            if not seen[s]:
                seen[s] = True
                order[known] = s
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
