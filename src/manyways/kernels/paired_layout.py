"""How the policy of a large model is laid out for sweeps, in chunks (`paired_arrays.Layout`), by one thread or two."""

from __future__ import annotations

from manyways.kernels.announcements import BOTH, FIRST, SECOND, meet, share
from manyways.kernels.compiler import compiled
from manyways.kernels.orders import likeliest, likely_successors, walk
from manyways.kernels.paired_passes import CHUNK, lasts
from manyways.kernels.sweeps import pack_chunk

KNOWN, CHANGED_IN, LEADING = 5, 6, 8
"""Entries of `told`: how many states are known to lead to the reference, how many changed in each half, and whether all of these
lead to the reference."""
PATCHED = 0.01
"""If at most this part of all states changed their choices, the order stays."""


@compiled
def lay_out(part, crew, model, c, choice, reference, layout, b, rows):
    """Order the states from the reference outwards along likely successors, and lay the policy out in this order. Returns how many
    states lead to the reference so; if not all do, nothing is laid out."""
    low, high = share(part, len(choice))
    likely_successors(low, high, choice, model.indptr, model.indices, model.data, layout.likely)
    meet(part, crew.meetings)
    if part != SECOND:
        layout.order[0] = reference
        crew.told[KNOWN] = walk(layout.order, layout.likely, layout.child, layout.sibling)
    meet(part, crew.meetings)
    known = int(crew.told[KNOWN])
    if known == len(choice):
        lay_out_in_order(part, crew, model, c, choice, layout, b, rows)
    return known


@compiled
def lay_out_in_order(part, crew, model, c, choice, layout, b, rows):
    """Lay the policy out in the order that is there."""
    order, room = layout.order, layout.room
    low, high = share(part, len(order))
    for i in range(low, high):
        layout.place[order[i]] = i
        layout.laid[i] = choice[i]
    low, high = share(part, len(layout.last))
    for chunk in range(low, high):
        count = 0
        for i in range(chunk * CHUNK, min((chunk + 1) * CHUNK, len(order))):
            count += layout.longest[order[i]]
        room[chunk + 1] = count
        layout.stale[chunk] = True
    meet(part, crew.meetings)
    if part != SECOND:
        room[0] = 0
        for chunk in range(len(layout.last)):
            room[chunk + 1] += room[chunk]
    meet(part, crew.meetings)
    pack_stale(part, crew, model, c, choice, layout, b, rows)


@compiled
def pack_stale(part, crew, model, c, choice, layout, b, rows):
    """Lay out the chunks that are stale."""
    low, high = share(part, len(layout.last))
    for chunk in range(low, high):
        if layout.stale[chunk]:
            near, far = pack_chunk(
                chunk * CHUNK, min((chunk + 1) * CHUNK, len(choice)), chunk, layout.room[chunk], layout.order, choice,
                model.indptr, model.indices, model.data, c, 1.0, layout.likely, layout.place, b,
                rows.begin, rows.target, rows.weight, rows.inverse, rows.later, rows.ahead,
            )  # fmt: skip
            layout.nearest[chunk] = near // CHUNK
            layout.farthest[chunk] = far // CHUNK
            layout.stale[chunk] = False
    meet(part, crew.meetings)
    if part != SECOND:
        lasts(layout.nearest, layout.farthest, layout.last)
    meet(part, crew.meetings)


@compiled
def patch(part, crew, model, c, choice, layout, b, rows):
    """Lay out again what changed, in the same order: only the values of states that now lead somewhere else travel against it.
    Returns whether that was possible: few states changed, and all still lead to the reference by likely successors."""
    low, high = share(part, len(choice))
    changed, sound = layout.child, layout.sibling  # nobody uses these once there is an order
    count = 0
    for s in range(low, high):
        sound[s] = False
        if choice[s] != layout.laid[s]:
            changed[low + count] = s
            count += 1
    if part == BOTH:
        crew.told[CHANGED_IN + SECOND] = 0
    crew.told[CHANGED_IN + (SECOND if part == SECOND else FIRST)] = count
    meet(part, crew.meetings)
    counts = int(crew.told[CHANGED_IN + FIRST]), int(crew.told[CHANGED_IN + SECOND])
    if counts[FIRST] + counts[SECOND] > PATCHED * len(choice):
        return False
    if part != SECOND:
        begins = 0, share(SECOND, len(choice))[0]
        for half in range(2):
            for i in range(begins[half], begins[half] + counts[half]):
                s = changed[i]
                layout.likely[s], _ = likeliest(s, choice[s], model.indptr, model.indices, model.data)
                layout.laid[s] = choice[s]
                layout.stale[layout.place[s] // CHUNK] = True
        sound[layout.order[0]] = True
        left = len(choice)
        for half in range(2):
            left = steps_left(begins[half], begins[half] + counts[half], changed, layout.likely, sound, left)
        crew.told[LEADING] = left > 0
    meet(part, crew.meetings)
    if crew.told[LEADING] == 0.0:
        return False
    pack_stale(part, crew, model, c, choice, layout, b, rows)
    return True


@compiled
def steps_left(low, high, changed, likely, sound, left):
    """Follow likely successors from each of the states changed[low:high] to one that is known to be `sound`, which all on the way
    then are. Returns how many of the steps that are `left` are not needed; 0 if some state leads to no sound one."""
    for i in range(low, high):
        s = changed[i]
        while not sound[s] and left > 0:
            s = likely[s]
            left -= 1
        if left <= 0:
            return 0
        s = changed[i]
        while not sound[s]:
            sound[s] = True
            s = likely[s]
    return left
