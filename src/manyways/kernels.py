"""The loops that must stay loops, compiled by numba: plain functions on arrays.

They serve `manyways.polytope.sweeps` and `manyways.methods.exchange`, which tell what for. Kept few and
small on purpose: the first call on a new machine compiles them (two to three seconds in all), later ones
load them from the cache.

Names: x is a choice (a row of the transitions), h are relative values, y times to the reference, `order`
lists the states as the sweeps visit them, the reference first. `begin`, `target`, `weight`, `inverse` are
the policy's rows packed in that order: row i's transitions are begin[i]:begin[i+1].
"""

from __future__ import annotations

import gc

import numpy as np
from numba import njit
from numba.core import event

PURE_LOOP = 1e-13
"""A choice that leaves its state with less probability than this is taken as staying for ever."""

LOG_2 = 0.6931471805599453
TRACE = 1e-10
"""Less time than this in a place, and its overlap with other plans there does not count."""


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

# Kernels allocate nothing and nobody calls them from C: without reference counts and wrappers they compile faster.
_compiled = njit(cache=True, nogil=True, error_model="numpy", no_cfunc_wrapper=True, _nrt=False)  # pyright: ignore[reportCallIssue]


@_compiled
def greedy(order, cut, first, indptr, indices, data, c, discount, g, h, choice, margin, passes):
    """Greedy Gauss-Seidel passes over the states in `order`: each takes its best choice and that choice's value,
    so improvements travel whole paths in one pass. Works in place on `h` and `choice`.

    Returns the number of changes of choice, and the last pass's largest change of a value. Choices are compared
    with their self-loops eliminated, and those that never leave are passed over: they cannot lead back. In a cut
    chain the first state's value stays.
    """
    changes, moved = 0, 0.0
    for _ in range(passes):
        before, moved = changes, 0.0
        for i in range(len(order)):
            s = order[i]
            fixed = cut and i == 0
            best, kept, best_x = -np.inf, -np.inf, -1
            for x in range(first[s], first[s + 1]):
                value, leaving = c[x] - g, 1.0
                for t in range(indptr[x], indptr[x + 1]):
                    if indices[t] == s:
                        leaving -= discount * data[t]
                    else:
                        value += discount * data[t] * h[indices[t]]
                if not fixed:
                    if leaving < PURE_LOOP:
                        continue
                    value /= leaving
                if x == choice[s]:
                    kept = value
                if value > best:
                    best, best_x = value, x
            if best > kept + margin:
                choice[s] = best_x
                kept = best
                changes += 1
            if not fixed and kept > -np.inf:
                if abs(kept - h[s]) > moved:
                    moved = abs(kept - h[s])
                h[s] = kept
        if changes == before:
            break
    return changes, moved


@_compiled
def likely_successors(choice, indptr, indices, data, ahead, begin, child):
    """Each state's most likely successor other than itself (itself where there is none), in `ahead`, and the
    reverse: those that have v ahead are child[begin[v]:begin[v + 1]]."""
    n = len(choice)
    for v in range(n + 1):
        begin[v] = 0
    for s in range(n):
        most = 0.0
        ahead[s] = s
        for t in range(indptr[choice[s]], indptr[choice[s] + 1]):
            if data[t] > most and indices[t] != s:
                most = data[t]
                ahead[s] = indices[t]
        begin[ahead[s]] += 1
    for v in range(n):
        begin[v + 1] += begin[v]
    for s in range(n - 1, -1, -1):  # fills each list from its end, and leaves begin at the lists' beginnings
        begin[ahead[s]] -= 1
        child[begin[ahead[s]]] = s


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
def pack(order, place, choice, indptr, indices, data, c, discount, cut, begin, target, weight, inverse, b):
    """Lay the policy's rows and costs out in sweep order. The first state's column is dropped if the chain is
    cut there, and each row's own column is eliminated: it only scales the row, by `inverse`."""
    for i in range(len(order)):
        place[order[i]] = i
    e = 0
    for i in range(len(order)):
        begin[i] = e
        leaving = 1.0
        x = choice[order[i]]
        b[i] = c[x]
        for t in range(indptr[x], indptr[x + 1]):
            j = place[indices[t]]
            if j == 0 and cut:
                continue
            if j == i:
                leaving -= discount * data[t]
            else:
                target[e] = j
                weight[e] = discount * data[t]
                e += 1
        inverse[i] = 1.0 / leaving if leaving > 0.0 else 0.0
    begin[len(order)] = e


@_compiled
def sweep(order, begin, target, weight, inverse, b, shift, values, work, cut, sweeps, tolerance):
    """Gauss-Seidel sweeps of v = b - shift + P v on `values` (by state).

    Returns the last sweep's largest change, and the value at the reference, which stays out of a cut chain.
    """
    n = len(order)
    for i in range(n):
        work[i] = values[order[i]]
    if cut:
        work[0] = 0.0
    change = 0.0
    for _ in range(sweeps):
        change = 0.0
        for i in range(1 if cut else 0, n):
            new = b[i] - shift
            for e in range(begin[i], begin[i + 1]):
                new += weight[e] * work[target[e]]
            new *= inverse[i]
            if abs(new - work[i]) > change:
                change = abs(new - work[i])
            work[i] = new
        if change <= tolerance:
            break
    back = b[0] - shift
    for e in range(begin[0], begin[1]):
        back += weight[e] * work[target[e]]
    for i in range(n):
        values[order[i]] = work[i]
    return change, back


@_compiled
def push(begin, target, weight, inverse, waiting, visits, sweeps, crumb, enough):
    """Push mass on, far to near, adding up `visits`, until at most `enough` of it is on its way.

    Less than a `crumb` is left lying: following it on would end in denormal numbers, which are slow. Mass
    may be negative; with a cut chain, what reaches the first state has left the system.
    """
    left = 0.0
    for _ in range(sweeps):
        left = 0.0
        for i in range(len(inverse) - 1, -1, -1):
            if abs(waiting[i]) > crumb:
                mass = waiting[i] * inverse[i]
                waiting[i] = 0.0
                visits[i] += mass
                for e in range(begin[i], begin[i + 1]):
                    waiting[target[e]] += mass * weight[e]
        for i in range(len(inverse)):
            left += abs(waiting[i])
        if left <= enough:
            break
    return left


@_compiled
def exchange_pass(
    state, taken, tried, first, indptr, indices, data, discount, reference, row_of, from_row, visits, worth,
    reward, occupied, occupied_log, per_reward, per_divergence, value, rise, away, mass, moved,
):  # fmt: skip
    """Exchange the action of every visited state of one plan for every other that is `tried` (N,), and keep what
    raises its contribution from `value` by more than `rise`.

    Columns are the L states `state` that matter to the plan. Works in place on `taken` (L,), their choices, on
    `visits` (L,), and on `from_row` (R, L), the expected visits to each column from the R states that a tried
    action can lead to, found by `row_of` (S,). The chain is cut at state `reference` (-1: not cut). `mass` and
    `moved` (L,) are work space. Returns the number of exchanges kept and the contribution. Choices with which the
    reference would never be met again are marked in `away` (N,) instead.

    The contribution of a plan p is per_reward <r, p> + per_divergence sum_j JSD(p || q_j), with `occupied`
    (k - 1, N) the other plans' occupancies and `occupied_log` q ln q. Where only one has time, JSD is 1/2 ln 2 per
    unit; what is computed is the overlap's difference from that.
    """
    columns, kept, total = len(state), 0, 0.0
    for i in range(columns):
        total += visits[i]
    for c in range(columns):
        s = state[c]
        if visits[c] <= worth * total:
            continue
        for x in range(first[s], first[s + 1]):
            before = taken[c]
            if x == before or not tried[x]:
                continue
            for i in range(columns):
                moved[i] = 0.0
            row, sign = x, discount
            for _ in range(2):
                for t in range(indptr[row], indptr[row + 1]):
                    if indices[t] != reference:
                        source, weight = row_of[indices[t]], sign * data[t]
                        for i in range(columns):
                            moved[i] += weight * from_row[source, i]
                row, sign = before, -discount
            returning = 1.0 - moved[c]
            away[x] = returning <= 1e-9
            if away[x]:
                continue
            factor, after = visits[c] / returning, 0.0
            for i in range(columns):
                mass[i] = visits[i] + factor * moved[i]
                after += mass[i]
            for i in range(columns):
                mass[i] /= after
            taken[c] = x
            earned, spread = 0.0, 0.0
            for i in range(columns):
                p = mass[i]
                if p > TRACE:
                    y = taken[i]
                    earned += p * reward[y]
                    for j in range(len(occupied)):
                        q = occupied[j, y]
                        if q > TRACE:
                            spread += p * np.log(p / (p + q)) + occupied_log[j, y] - q * np.log(p + q)
            now = per_reward * earned + per_divergence * (0.5 * spread + len(occupied) * LOG_2)
            if now <= value + rise:
                taken[c] = before
                continue
            value, total = now, after
            kept += 1
            for i in range(columns):
                visits[i] = mass[i] * after
            for r in range(len(from_row)):
                share = from_row[r, c] / returning
                for i in range(columns):
                    from_row[r, i] += share * moved[i]
    return kept, value
