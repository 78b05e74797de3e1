"""The compiled loop of `manyways.worlds.coarse`: which parts of a map can be left out without closing a way."""

from __future__ import annotations

from manyways.kernels.compiler import compiled


@compiled
def thin(begin, neighbours, where, queue, kept, scratch):
    """Clear in `kept` (P,) the parts of the map that can be left out, one after the other.

    A part can be left out if its neighbours that are still there are connected among themselves within the 3 x 3 cells
    around it, so that whoever went through it can go around it; this includes parts with a single neighbour or none.

    Args:
        begin, neighbours: CSR form of the symmetric graph of the parts.
        where: (P, 2) row and column of each part's cell.
        queue: (P,) the candidates in the order in which they are tried, then -1.
        kept: (P,) which parts are there.
        scratch: (3, P) integers, all zero.
    """
    waiting, seen, stack = scratch[0], scratch[1], scratch[2]
    count = 0
    while count < len(queue) and queue[count] >= 0:
        waiting[queue[count]] = 1  # 1: in the queue, 2: a candidate that is not in the queue
        count += 1
    head = 0
    stamp = 0
    while count > 0:
        part = queue[head]
        head = (head + 1) % len(queue)
        count -= 1
        waiting[part] = 2
        stamp += 1
        around = 0  # the neighbours of the part
        size = 0
        for i in range(begin[part], begin[part + 1]):
            other = neighbours[i]
            if kept[other]:
                around += 1
                if size == 0:
                    stack[0] = other
                    seen[other] = stamp
                    size = 1
        while size > 0:
            size -= 1
            here = stack[size]
            for i in range(begin[here], begin[here + 1]):
                other = neighbours[i]
                if not kept[other] or other == part or seen[other] == stamp:
                    continue
                if abs(where[other, 0] - where[part, 0]) <= 1 and abs(where[other, 1] - where[part, 1]) <= 1:
                    seen[other] = stamp
                    stack[size] = other
                    size += 1
        for i in range(begin[part], begin[part + 1]):
            if kept[neighbours[i]] and seen[neighbours[i]] == stamp:
                around -= 1
        if around > 0:
            continue
        kept[part] = False
        waiting[part] = 0
        for i in range(begin[part], begin[part + 1]):
            other = neighbours[i]
            if kept[other] and waiting[other] == 2:  # it may have become the end of a dead end
                waiting[other] = 1
                queue[(head + count) % len(queue)] = other
                count += 1
