"""Two passes over the states of a large model at once.

Gauss-Seidel passes go through the states in order, in chunks. The second of two passes may follow the first at a distance: it may
take a chunk once the first pass is through with all chunks that lead there, or to which the chunk leads. It then finds exactly
the values that it would find after the whole first pass. One thread makes both passes, and finds the second time what it needs
in the processor's cache; or one thread makes the first pass, and another one the second.

`last` (chunks,) is the last chunk that the first pass must have finished before the second takes each. `done` (2 * APART,) counts
the chunks that each pass has finished, at 0 and at APART, over all `pairs` of passes before and this one.
"""

from __future__ import annotations

import numpy as np

from manyways.kernels.announcements import APART, BOTH, FIRST, LOOKS, OFF, SECOND, announce, announced, let_others_run
from manyways.kernels.compiler import compiled
from manyways.kernels.sweeps import NOTHING, ONE, best_choice, sweep_part

CHUNK = 1024
"""States. A few chunks, with all that belongs to them, fit into the cache of a processor's core."""
TILE = 64
"""States that are improved again together; see `improve_twice`."""
FINISHED = 2
CHANGED, WORK, MOVED = 0, 1, 2


@compiled
def next_pass(part, pairs, done, last, meetings):
    """The pass that takes its next chunk, or `FINISHED`."""
    before = pairs * len(last)
    if part == FIRST:
        return FIRST if done[0] - before < len(last) else FINISHED
    second = done[APART] - before
    if second == len(last):
        return FINISHED
    while True:
        for _ in range(LOOKS):
            if last[second] < announced(done, 0) - before:
                return SECOND
            if part == BOTH:
                return FIRST
        if announced(meetings, OFF) != 0:
            return FINISHED
        let_others_run()


@compiled
def sweep_twice(part, pairs, done, last, meetings, changes, order, rows, steps, b, shift, values, trust):
    """Two sweeps, or one of them; see `kernels.sweeps.sweep`. The chain is cut: the first state is left out. Leaves the largest
    changes in `changes` (2, APART)."""
    n = len(order)
    for turn in range(FIRST, BOTH):
        if part in (turn, BOTH):
            changes[turn, 0] = 0.0
    turn = next_pass(part, pairs, done, last, meetings)
    while turn != FINISHED:
        finished = done[turn * APART]
        chunk = finished - pairs * len(last)
        low, high = max(chunk * CHUNK, 1), min((chunk + 1) * CHUNK, n)
        moved = sweep_part(
            low, high, chunk, order, rows.begin, rows.target, rows.weight, rows.inverse, rows.later, rows.ahead,
            steps, b, shift, values, trust,
        )  # fmt: skip
        changes[turn, 0] = max(changes[turn, 0], moved)
        announce(done, turn * APART, finished + 1)
        turn = next_pass(part, pairs, done, last, meetings)


@compiled
def improve_twice(part, pairs, done, meetings, model, c, g, h, choice, reference, margin, enough, tiles, totals):
    """Two greedy passes, or one of them: each state takes its best choice and that choice's value; see `kernels.sweeps.greedy`.
    The states are passed by their numbers, without the reference, whose value is given.

    The first pass looks at the tiles of states that are `marked`, the second at those that the first marked, and both at those
    that they mark themselves on the way: to which states lead that change their choice, or their value by more than `enough`.
    States mostly lead to those that lead to them. Marks are left in `tiles.marks`.

    Leaves the changed choices, the states looked at and the largest change of a value in `totals` (2, APART).
    """
    n, last = len(choice), tiles.last
    for turn in range(FIRST, BOTH):
        if part in (turn, BOTH):
            totals[turn, CHANGED] = totals[turn, WORK] = totals[turn, MOVED] = 0.0
    turn = next_pass(part, pairs, done, last, meetings)
    while turn != FINISHED:
        finished = done[turn * APART]
        chunk = finished - pairs * len(last)
        for tile in range(chunk * CHUNK // TILE, min((chunk + 1) * CHUNK, n + TILE - 1) // TILE):
            before = tiles.marks[FIRST, tile] if turn == SECOND else tiles.marked[tile]
            if before or tiles.marks[turn, tile]:
                improve_tile(
                    tile, model.first, model.indptr, model.indices, model.data, c, g, h, choice, reference, margin, enough,
                    turn, tiles.marks, totals,
                )  # fmt: skip
        announce(done, turn * APART, finished + 1)
        turn = next_pass(part, pairs, done, last, meetings)


@compiled
def improve_tile(
    tile, first, indptr, indices, data, c, g, h, choice, reference, margin, enough, turn, marks, totals
):  # fmt: skip
    """The states of one tile take their best choices; see `improve_twice`."""
    low, high = tile * TILE, min((tile + 1) * TILE, len(choice))
    totals[turn, WORK] += high - low
    most = totals[turn, MOVED]
    for at in range(low, high):
        s = np.uint32(at)
        if s == reference:
            continue
        kept, best, best_x = best_choice(s, choice[s], False, first, indptr, indices, data, c, 1.0, g, h)
        changed = best > kept + margin
        if changed:
            choice[s] = best_x
            kept = best
            totals[turn, CHANGED] += 1
        if kept > NOTHING:
            step = abs(kept - h[s])
            most = max(most, step)
            h[s] = kept
            if changed or step > enough:
                for x in range(first[s], first[s + ONE]):
                    for t in range(indptr[x], indptr[x + 1]):
                        marks[turn, indices[t] // TILE] = True
    totals[turn, MOVED] = most


@compiled
def reach(first, indptr, indices, reference, nearest, farthest):
    """Of each chunk, the nearest and the farthest chunk that it leads to, or itself. The reference's own choices do not count."""
    n = len(first) - 1
    for chunk in range(len(nearest)):
        near = far = chunk
        for at in range(chunk * CHUNK, min((chunk + 1) * CHUNK, n)):
            s = np.uint32(at)
            if s == reference:
                continue
            for t in range(indptr[first[s]], indptr[first[s + ONE]]):
                to = indices[t] // CHUNK
                near = min(near, to)
                far = max(far, to)
        nearest[chunk] = near
        farthest[chunk] = far


@compiled
def lasts(nearest, farthest, last):
    """`last`, from the nearest and the farthest chunk that each leads to."""
    for chunk in range(len(last)):
        last[chunk] = chunk
    for chunk in range(len(last)):
        last[nearest[chunk]] = max(last[nearest[chunk]], chunk)
    so_far = 0
    for chunk in range(len(last)):
        so_far = max(so_far, last[chunk])
        last[chunk] = max(so_far, farthest[chunk])
