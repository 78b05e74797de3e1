"""The loops that must stay loops, compiled by numba: plain functions on arrays.

They serve `manyways.polytope.sweeps` and `manyways.methods.exchange`, which tell what for. Kept few and
small on purpose: the first call on a new machine compiles them (about two seconds in all), later ones
load them from the cache.

Names: x is a choice (a row of the transitions), h are relative values, y times to the reference, `order`
lists the states as the sweeps visit them, the reference first. `begin`, `target`, `weight`, `inverse` are
the policy's rows packed in that order: row i's transitions are begin[i]:begin[i+1]. Targets are states.
"""

from __future__ import annotations

import gc

import numpy as np
from numba import njit
from numba.core import event

PURE_LOOP = 1e-13
"""A choice that leaves its state with less probability than this is taken as staying for ever."""

NOTHING = -np.inf
LOG_2 = 0.6931471805599453
TRACE = 1e-10
"""Less time than this in a place, and its overlap with other plans there does not count."""
WORTH_TRYING = 1e-6
"""An exchange in a state visited less than this, as a share of time, cannot change the objective noticeably."""


class _Uncollected(event.Listener):
    """Pauses the garbage collector while one of these kernels compiles: it would take a sixth of the time."""

    depth, before = 0, True

    def on_start(self, event):
        if event.data["dispatcher"].py_func.__module__ == __name__:
            if self.depth == 0:
                self.before = gc.isenabled()
                gc.disable()
            self.depth += 1

    def on_end(self, event):
        if event.data["dispatcher"].py_func.__module__ == __name__:
            self.depth -= 1
            if self.depth == 0 and self.before:
                gc.enable()


event.register("numba:compile", _Uncollected())

# Kernels allocate nothing, hold no array expressions, and nobody calls them from C: without reference counts, rewrites
# and wrappers they compile faster. So they do with few arguments, few loops, and nothing looked up twice.
_compiled = njit(  # pyright: ignore[reportCallIssue]
    cache=True, nogil=True, error_model="numpy", no_rewrites=True, no_cfunc_wrapper=True, _nrt=False
)


@_compiled
def greedy(order, first, indptr, indices, data, c, discount, g, h, choice, margin, passes):
    """Greedy Gauss-Seidel passes over the states in `order`: each takes its best choice and that choice's value,
    so improvements travel whole paths in one pass. Works in place on `h` and `choice`.

    Returns the number of changes of choice, and the last pass's largest change of a value. Choices are compared
    with their self-loops eliminated, and those that never leave are passed over: they cannot lead back. Without
    a discount the chain is cut at the first state, whose value stays.
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


@_compiled
def tree(order, choice, indptr, indices, data, ahead, child, sibling):
    """The states that come to order[0] by likely successors, breadth-first, in `order`; returns how many.

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
            if s != root:  # any other has one state ahead, and is met but once
                order[known] = s
                known += 1
            s = sibling[s]
    return known


@_compiled
def visit(order, known, begin, child, seen):
    """Breadth-first: `order[:known]` are seen; v's children are child[begin[v]:begin[v+1]]. Returns how many get seen."""
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


@_compiled
def on_loop(reference, ahead):
    """The reference if following likely successors from it comes back, else a state of the loop that they end in."""
    s = reference
    for _ in range(len(ahead)):
        s = ahead[s]
        if s == reference:
            break
    return s


@_compiled
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


@_compiled
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


@_compiled
def push(order, begin, target, weight, inverse, waiting, visits, sweeps, crumb, enough):
    """Push mass on, far to near, adding up `visits` (by state), until at most `enough` of it is on its way.

    Less than a `crumb` is left lying: following it on would end in denormal numbers, which are slow. Mass
    may be negative; with a cut chain, what reaches the first state has left the system.
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


@_compiled
def exchange_pass(
    candidate, column, worth, taken, indptr, indices, data, discount, row_of, from_row, total,
    reward, group, occupied, occupied_log, per_reward, per_divergence, value, rise, order, mass, moved, image,
):  # fmt: skip
    """Exchange actions of one plan: try every `candidate`, a choice, in place of the one taken in its `column`, and
    keep what raises the plan's contribution from `value` by more than `rise`.

    Columns are the L states that matter to the plan. Works in place on `taken` (L,), their choices, and on `from_row`
    (1 + R, L), expected visits to each column: first from where the plan begins, `total` in all, then from each of
    the R states that a candidate can lead to, found by `row_of` (S,; -1: the chain is cut there). `mass` and `moved`
    (L,) are work space, and so is `image` (B,), which is zero before and after. Returns the number of exchanges kept
    and the contribution. `worth` gets the contribution with each candidate that was tried, and NaN where one would
    never come back to the cut; where that is not enough to be kept, unless `rise` is infinite, only a bound on it:
    overlap with other plans, summed in the `order` (L,) of the columns, is given up once there is too much of it.

    The contribution of a plan p is per_reward <r, p> + per_divergence sum_j JSD(p || q_j), time being compared by
    `group` (N,), the one of B groups that each choice belongs to, with `occupied` (k - 1, B) the other plans' time
    and `occupied_log` q ln q. Where only one has time, JSD is 1/2 ln 2 per unit; what is computed is the overlap's
    difference from that.
    """
    columns = len(taken)
    others = len(occupied)
    kept = 0
    for n in range(len(candidate)):
        enough = value + rise if rise < np.inf else -np.inf
        x = candidate[n]
        c = column[n]
        before = taken[c]
        if x == before or from_row[0, c] <= WORTH_TRYING * total:
            continue
        for i in range(columns):
            moved[i] = 0.0
        row = x
        sign = discount
        for _ in range(2):
            for t in range(indptr[row], indptr[row + 1]):
                source = row_of[indices[t]]
                if source >= 0:
                    weight = sign * data[t]
                    for i in range(columns):
                        moved[i] += weight * from_row[source, i]
            row = before
            sign = -discount
        returning = 1.0 - moved[c]
        if returning <= 1e-9:
            worth[n] = np.nan
            continue
        factor = from_row[0, c] / returning
        after = 0.0
        for i in range(columns):
            p = from_row[0, i] + factor * moved[i]
            mass[i] = p
            after += p
        taken[c] = x
        earned = 0.0
        for i in range(columns):
            p = mass[i] / after
            if p > TRACE:
                earned += p * reward[taken[i]]
                image[group[taken[i]]] += p
        now = per_reward * earned + per_divergence * others * LOG_2
        for m in range(columns):
            y = group[taken[order[m]]]
            p = image[y]
            image[y] = 0.0  # a group of several columns counts at the first of them
            if p > 0.0 and now > enough:
                overlap = 0.0
                p_log_p = p * np.log(p)
                for j in range(others):
                    q = occupied[j, y]
                    if q > TRACE:
                        overlap += (p + q) * np.log(p + q) - p_log_p - occupied_log[j, y]
                now -= 0.5 * per_divergence * overlap
        worth[n] = now
        if now <= value + rise:
            taken[c] = before
            continue
        value = now
        total = after
        kept += 1
        for r in range(len(from_row)):
            share = from_row[r, c] / returning
            for i in range(columns):
                from_row[r, i] += share * moved[i]
    return kept, value
