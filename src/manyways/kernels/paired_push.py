"""The occupancy of a policy that is laid out in chunks (`paired_layout`), by passes in pairs (`paired_passes`), the last chunk first.

A pass adds mass to the states that a chunk leads to. So the second pass may take a chunk once the first is through with all chunks
that lead to the same places: it then finds the same masses as after the whole first pass, and no two threads add to the same state.
"""

from __future__ import annotations

from manyways.kernels.announcements import APART, BOTH, FIRST, SECOND, announce, meet, share
from manyways.kernels.compiler import compiled
from manyways.kernels.paired_passes import CHUNK, FINISHED, next_pass
from manyways.kernels.sweeps import MAX_PUSHES, RISES


@compiled
def push(part, crew, layout, rows, early, waiting, visits, enough):
    """Leave the time spent in each state in `visits` (S,), with a sum of one; see `kernels.sweeps.push`. `early` and `waiting` (S,)
    are work space, and so are the nearest, farthest and last chunks of the layout from then on. Returns the mass that was left."""
    order, last, told = layout.order, layout.last, crew.told
    n = len(order)
    crumb = 1e-3 * enough / n
    low, high = share(part, n)
    for s in range(low, high):
        early[s] = waiting[s] = visits[s] = 0.0
    meet(part, crew.meetings)
    if part != SECOND:
        visits[order[0]] = 1.0
        for e in range(rows.begin[1]):
            waiting[rows.target[e]] = rows.weight[e]
        backwards(layout.nearest, layout.farthest, last)
    meet(part, crew.meetings)
    left = 0.0
    rises = 0
    for pairs in range(MAX_PUSHES // 2):
        trust = 1.0 if rises < RISES else 0.0
        turn = next_pass(part, pairs, crew.done, last, crew.meetings)
        while turn != FINISHED:
            finished = crew.done[turn * APART]
            push_chunk((pairs + 1) * len(last) - 1 - finished, order, rows, early, waiting, visits, crumb, trust)
            announce(crew.done, turn * APART, finished + 1)
            turn = next_pass(part, pairs, crew.done, last, crew.meetings)
        if not meet(part, crew.meetings):
            break
        for half in range(2):
            if part in (half, BOTH):
                told[half * APART] = 0.0
                first, end = share(half, n)
                for s in range(first, end):
                    told[half * APART] += abs(waiting[s])
        meet(part, crew.meetings)
        before = left
        left = told[FIRST] + told[APART]
        if left <= enough:
            break
        if before > 0.0 and left >= before:
            rises += 1
    for half in range(2):
        if part in (half, BOTH):
            told[half * APART + 1] = sum_of_visits(half, order, visits)
    meet(part, crew.meetings)
    total = told[1] + told[APART + 1]
    for s in range(low, high):
        visits[s] /= total
    meet(part, crew.meetings)
    return left


@compiled
def sum_of_visits(half, order, visits):
    """Add up the visits of one half, in an order in which rounding does not depend on the numbering."""
    total = 0.0
    low, high = share(half, len(order))
    for i in range(low, high):
        # What was counted early and has not met its negative can leave less than nothing in places hardly ever visited.
        visits[order[i]] = max(visits[order[i]], 0.0)
        total += visits[order[i]]
    return total


@compiled
def push_chunk(chunk, order, rows, early, waiting, visits, crumb, trust):
    """Push the mass of the states of one chunk along; see `kernels.sweeps.push`."""
    begin, target, weight, ahead = rows.begin, rows.target, rows.weight, rows.ahead
    for i in range(min((chunk + 1) * CHUNK, len(order)) - 1, chunk * CHUNK - 1, -1):
        s = order[i]
        mass = waiting[s] + early[s]
        if abs(mass) > crumb:
            waiting[s] = -early[s]
            mass *= rows.inverse[i]
            visits[s] += mass
            for e in range(begin[i + chunk], begin[i + chunk + 1]):
                waiting[target[e]] += mass * weight[e]
            if rows.later[i] > 0.0:
                early[ahead[i]] += trust * rows.later[i] * mass
        early[s] = 0.0


@compiled
def backwards(nearest, farthest, last):
    """`last` of `paired_passes`, from the nearest and the farthest chunk that each leads to, for passes in which the last chunk comes
    first: it has the number 0 there."""
    chunks = len(last)
    for chunk in range(chunks):
        last[chunk] = farthest[chunk]
    # The first chunk that leads to each chunk or beyond it:
    leading = 0
    for chunk in range(chunks):
        while last[leading] < chunk:
            leading += 1
        farthest[chunk] = leading
    for chunk in range(chunks):
        last[chunks - 1 - chunk] = chunks - 1 - farthest[nearest[chunk]]
    for chunk in range(1, chunks):
        last[chunk] = max(last[chunk], last[chunk - 1])
