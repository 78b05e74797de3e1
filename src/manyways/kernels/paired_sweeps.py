"""The compiled loops of `manyways.polytope.paired_sweeps`: two passes over the states at once.

Gauss-Seidel passes go through the states in order, in chunks. The second of two passes may follow the first at a distance: it may
take a chunk once the first pass is through with all chunks that lead there, or to which the chunk leads. It then finds exactly
the values that it would find after the whole first pass. One thread makes both passes, and finds the second time what it needs
in the processor's cache; or one thread makes the first pass, and another one the second.

`last` (chunks,) is the last chunk that the first pass must have finished before the second takes each. `done` (2 * APART,) counts
the chunks that each pass has finished, at 0 and at APART.
"""

from __future__ import annotations

import numpy as np

from manyways.kernels.announcements import announce, announced
from manyways.kernels.compiler import compiled
from manyways.kernels.sweeps import NOTHING, ONE, best_choice, pack_chunk, survey_part, sweep_part

CHUNK = 1024
"""States. A few chunks, with all that belongs to them, fit into the cache of a processor's core."""
TILE = 64
"""States that are improved again together; see `improve`."""
FIRST, SECOND, BOTH = 0, 1, 2
"""The passes that a thread makes."""
FINISHED, WAITING = 2, 3
LOOKS = 3000
"""So often the second pass looks whether it may go on before it lets other threads work."""

APART = 16
"""What two threads write lies so many numbers apart, so that no line of the processor's cache holds both."""
CHANGED, WORK, MOVED = 0, 1, 2


@compiled
def next_pass(part, done, last):
    """The pass that takes its next chunk; or `FINISHED`, or `WAITING` in vain."""
    if part == FIRST:
        return FIRST if done[0] < len(last) else FINISHED
    second = done[APART]
    for _ in range(LOOKS):
        if second == len(last):
            return FINISHED
        if last[second] < announced(done, 0):
            return SECOND
        if part == BOTH:
            return FIRST
    return WAITING


@compiled
def sweep_twice(
    part, done, last, changes, order, begin, target, weight, inverse, later, ahead, steps, b, shift, values, trust
):  # fmt: skip
    """Two sweeps, or one of them, as far as possible; see `kernels.sweeps.sweep`. The chain is cut: the first state is left out.
    Leaves the largest changes in `changes` (2, APART), and returns whether this part is finished."""
    n = len(order)
    while True:
        turn = next_pass(part, done, last)
        if turn >= FINISHED:
            return turn == FINISHED
        chunk = done[turn * APART]
        low, high = max(chunk * CHUNK, 1), min((chunk + 1) * CHUNK, n)
        moved = sweep_part(
            low, high, chunk, order, begin, target, weight, inverse, later, ahead, steps, b, shift, values, trust
        )
        changes[turn, 0] = max(changes[turn, 0], moved)
        announce(done, turn * APART, chunk + 1)


@compiled
def survey_tiles(low, high, gains, first, indptr, indices, data, c, discount, h, choice):
    """`kernels.sweeps.survey` of the tiles from low to high; `gains` (tiles,) receives the largest surplus of a choice over that
    of the policy's own in each."""
    scale = height = 0.0
    top, bottom = NOTHING, -NOTHING
    for tile in range(low, high):
        a, b, most, least, gains[tile] = survey_part(
            tile * TILE, min((tile + 1) * TILE, len(choice)), first, indptr, indices, data, c, discount, h, choice
        )  # fmt: skip
        scale, height, top, bottom = max(scale, a), max(height, b), max(top, most), min(bottom, least)
    return scale, height, top, bottom


@compiled
def improve_twice(
    part, done, last, first, indptr, indices, data, c, g, h, choice, reference, margin, enough, marked, marks, totals
):  # fmt: skip
    """Two greedy passes, or one of them, as far as possible: each state takes its best choice and that choice's value; see
    `kernels.sweeps.greedy`. The states are passed by their numbers, without the reference, whose value is given.

    The first pass looks at the tiles of states that are `marked` (tiles,), the second at those that the first marked, and both
    at those that they mark themselves on the way: to which states lead that change their choice, or their value by more than
    `enough`. States mostly lead to those that lead to them. Marks are left in `marks` (2, tiles).

    Adds up changed choices, states looked at and the largest change of a value in `totals` (2, APART), and returns whether this
    part is finished.
    """
    n = len(choice)
    while True:
        turn = next_pass(part, done, last)
        if turn >= FINISHED:
            return turn == FINISHED
        chunk = done[turn * APART]
        for tile in range(chunk * CHUNK // TILE, min((chunk + 1) * CHUNK, n + TILE - 1) // TILE):
            before = marks[FIRST, tile] if turn == SECOND else marked[tile]
            if before or marks[turn, tile]:
                improve_tile(
                    tile, first, indptr, indices, data, c, g, h, choice, reference, margin, enough, marks[turn], totals[turn]
                )  # fmt: skip
        announce(done, turn * APART, chunk + 1)


@compiled
def improve_tile(
    tile, first, indptr, indices, data, c, g, h, choice, reference, margin, enough, marks, totals
):  # fmt: skip
    """The states of one tile take their best choices; see `improve_twice`."""
    low, high = tile * TILE, min((tile + 1) * TILE, len(choice))
    totals[WORK] += high - low
    most = totals[MOVED]
    for at in range(low, high):
        s = np.uint32(at)
        if s == reference:
            continue
        kept, best, best_x = best_choice(s, choice[s], False, first, indptr, indices, data, c, 1.0, g, h)
        changed = best > kept + margin
        if changed:
            choice[s] = best_x
            kept = best
            totals[CHANGED] += 1
        if kept > NOTHING:
            step = abs(kept - h[s])
            most = max(most, step)
            h[s] = kept
            if changed or step > enough:
                for x in range(first[s], first[s + ONE]):
                    for t in range(indptr[x], indptr[x + 1]):
                        marks[indices[t] // TILE] = True
    totals[MOVED] = most


@compiled
def reach(low, high, first, indptr, indices, reference, nearest, farthest):
    """Of the chunks from low to high, the nearest and the farthest chunk that they lead to, or themselves. The reference's own
    choices do not count."""
    for chunk in range(low, high):
        near = far = chunk
        for at in range(chunk * CHUNK, min((chunk + 1) * CHUNK, len(first) - 1)):
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


@compiled
def number(order, place):
    """The places of the states in the order."""
    for i in range(len(order)):
        place[order[i]] = i


@compiled
def lengths(low, high, order, choice, indptr, room):
    """How many transitions the policy has in each of the chunks from low to high, in room[chunk + 1]."""
    for chunk in range(low, high):
        count = 0
        for i in range(chunk * CHUNK, min((chunk + 1) * CHUNK, len(order))):
            x = choice[order[i]]
            count += indptr[x + 1] - indptr[x]
        room[chunk + 1] = count


@compiled
def pack_chunks(
    low, high, room, nearest, farthest, order, choice, indptr, indices, data, c, likely, place,
    b, begin, target, weight, inverse, later, ahead,
):  # fmt: skip
    """Lay out the policy's rows in the chunks from low to high, the transitions of each from room[chunk] on; see
    `kernels.sweeps.pack_chunk`. Leaves the nearest and the farthest chunk that each leads to."""
    for chunk in range(low, high):
        near, far = pack_chunk(
            chunk * CHUNK, min((chunk + 1) * CHUNK, len(order)), chunk, room[chunk], order, choice, indptr, indices, data, c,
            1.0, likely, place, b, begin, target, weight, inverse, later, ahead,
        )  # fmt: skip
        nearest[chunk] = near // CHUNK
        farthest[chunk] = far // CHUNK


@compiled
def lower(low, high, h, step, y):
    """h - step y, in place, for the states from low to high."""
    for s in range(low, high):
        h[s] -= step * y[s]
