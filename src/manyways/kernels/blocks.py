"""The compiled loops that only models in several blocks need; see `manyways.polytope.blocks`.

`order` lists the states in blocks: first the trunk, whose end is `trunk`, then the others; `place` is its inverse. `starts` are
where the blocks begin. `values` has two halves: a sweep writes to one, beginning at `now` (0 or half of its length, a power of two),
and finds in the other the values of the last sweep. A target is the number of a state if its value of this sweep is wanted, plus
`half` if that of the last is.
"""

from __future__ import annotations

from manyways.kernels.compiler import compiled


@compiled
def preorder(order, ahead, size, place):
    """Places in a walk through a tree, given by the next state `ahead` of each on the way to order[0], in which each state comes
    right before all that lead through it. States come after the one ahead of them in `order`. `size` (S,) is work space."""
    n = len(order)
    count_upstream(order, ahead, size)
    # From here on, `size` of a state that was passed is the place of the next one to lead there.
    place[order[0]] = 0
    size[order[0]] = 1
    for i in range(1, n):
        s = order[i]
        upstream = size[s]
        place[s] = size[ahead[s]]
        size[ahead[s]] += upstream
        size[s] = place[s] + 1


@compiled
def count_upstream(order, ahead, size):
    """Leave in `size` how many states lead through each, itself included. States come after the one ahead of them."""
    n = len(order)
    for s in range(n):
        size[s] = 1
    for i in range(n - 1, 0, -1):
        size[ahead[order[i]]] += size[order[i]]


@compiled
def split(walk, ahead, size, most, longest, block, starts, room, order, place):
    """Cut the tree of likely successors, whose states are in `walk`, into the trunk, which are the states through which more than
    `most` others lead, and blocks of about the same size, made of whole branches. Leaves the states in `order`, and where
    the blocks begin in `starts` (blocks + 2,). `room` (blocks + 2,) receives where their transitions may begin if each state has at
    most the `longest` of its rows."""
    n = len(walk)
    blocks = len(starts) - 2
    count_upstream(walk, ahead, size)
    for b in range(len(starts)):
        starts[b] = room[b] = 0
    for i in range(n):
        s = walk[i]
        if i == 0 or (size[s] > most and block[ahead[s]] == 0):
            block[s] = 0
        elif block[ahead[s]] > 0:
            block[s] = block[ahead[s]]
        else:
            least = 1
            for b in range(2, blocks + 1):
                if starts[b] < starts[least]:
                    least = b
            block[s] = least
            starts[least] += size[s]
        room[block[s] + 1] += longest[s]
    for b in range(blocks + 1):
        room[b + 1] += room[b]
    trunk = n
    for b in range(1, blocks + 1):
        trunk -= starts[b]
    begins = trunk
    for b in range(1, blocks + 1):  # from lengths to beginnings
        length = starts[b]
        starts[b] = begins
        begins += length
    starts[blocks + 1] = n
    for i in range(n):  # starts[b] moves on to the end of its block
        b = block[walk[i]]
        order[starts[b]] = walk[i]
        place[walk[i]] = starts[b]
        starts[b] += 1
    for b in range(blocks, 0, -1):
        starts[b] = starts[b - 1]
    starts[0] = 0


@compiled
def sort_by_range(walk, number, starts, order):
    """The states of a walk in `order`, each in the range whose `number` it has; `starts` are where the ranges begin, and are
    moved on to their ends."""
    for i in range(len(walk)):
        r = number[walk[i]]
        order[starts[r]] = walk[i]
        starts[r] += 1


@compiled
def lay_out(
    order, low, high, trunk, place, choice, indptr, indices, data, c, root, likely, half, b, begin, target, weight,
    inverse, later, ahead,
):  # fmt: skip
    """Lay out the rows of the block order[low : high] in this order; see `kernels.sweeps.pack`. The other arrays are the block's
    own."""
    e = 0
    for i in range(low, high):
        k = i - low
        begin[k] = e
        leaving = 1.0
        unknown = 0.0
        s = order[i]
        x = choice[s]
        b[k] = c[x]
        for t in range(indptr[x], indptr[x + 1]):
            to = indices[t]
            if to == root:
                continue
            if to == s:
                leaving -= data[t]
                continue
            weight[e] = data[t]
            at = place[to]
            if at < i and (at >= low or at < trunk):
                target[e] = to
            else:
                target[e] = to + half
                unknown += data[t]
            e += 1
        inverse[k] = 1.0 / leaving if leaving > 0.0 else 0.0
        at = place[likely[s]]
        predicted = likely[s] != root and at < i and (at >= low or at < trunk)
        ahead[k] = likely[s] if predicted else root
        later[k] = unknown if predicted else 0.0
    begin[high - low] = e


@compiled
def sweep_block(order, begin, target, weight, inverse, later, ahead, b, steps, shift, values, now, half, cut, trust):
    """One sweep of a block; see `kernels.sweeps.sweep`. The first state of a `cut` block is the reference, whose value is 0.
    Returns the largest change."""
    change = 0.0
    before = now ^ half
    for i in range(1 if cut else 0, len(order)):
        s = order[i]
        new = b[i] - shift + trust * later[i] * steps[ahead[i]]
        for e in range(begin[i], begin[i + 1]):
            new += weight[e] * values[target[e] ^ now]
        new *= inverse[i]
        step = new - values[s ^ before]
        steps[s] = step
        change = max(change, abs(step))
        values[s ^ now] = new
    return change


@compiled
def refresh(values, inside):
    """Copy values of states to the places in which other ranges read them."""
    n = len(values) - len(inside)
    for j in range(len(inside)):
        values[n + j] = values[inside[j]]
