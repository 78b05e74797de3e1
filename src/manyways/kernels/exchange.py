"""The compiled loop of `manyways.methods.exchange`."""

from __future__ import annotations

import math

import numpy as np

from manyways.kernels.compiler import compiled

LOG_2 = 0.6931471805599453
TRACE = 1e-10
"""Time in a place below this does not count as overlap with other plans."""
WORTH_TRYING = 1e-6
"""Exchanges in states with a smaller share of time than this cannot change the objective noticeably."""
MARGIN = 1e-7
"""Floors are met with this to spare, relative to the size of their terms: the final check is exact."""


NEAR = 0.05
"""Where time changes by less than this share, the overlap is expanded to the third order: its relative error is NEAR^4 / 12."""


@compiled
def solve_transposed(l_begin, l_row, l_data, u_begin, u_row, u_data, x):
    """Solve (L U)' y = x in place for all columns of x (n, E) at once. Both factors are given by columns; L has ones on its
    diagonal."""
    n, columns = x.shape
    for j in range(n):
        diagonal = 1.0
        for t in range(u_begin[j], u_begin[j + 1]):
            i = u_row[t]
            if i == j:
                diagonal = u_data[t]
            elif i < j:
                for e in range(columns):
                    x[j, e] -= u_data[t] * x[i, e]
        for e in range(columns):
            x[j, e] /= diagonal
    for back in range(n):
        j = n - 1 - back
        for t in range(l_begin[j], l_begin[j + 1]):
            i = l_row[t]
            if i > j:
                for e in range(columns):
                    x[j, e] -= l_data[t] * x[i, e]


@compiled
def overlap_of(p, log_p, met, y):
    """By how much the time p > 0 in slot y overlaps with that of other plans, `met` (m, Y), times two."""
    overlap = 0.0
    for j in range(len(met)):
        q = met[j, y]
        if q > TRACE:
            both = p + q
            overlap += both * math.log(both) - p * log_p - q * math.log(q)
    return overlap


@compiled
def expand(y, p, met, base, slopes):
    """Note the overlap of time p > 0 in slot y with the other plans, and its first three derivatives by p."""
    base[y] = p
    log_p = math.log(p)
    first = second = third = 0.0
    for j in range(len(met)):
        q = met[j, y]
        if q > TRACE:
            both = p + q
            first += math.log(both) - log_p
            second += 1.0 / both - 1.0 / p
            third += 1.0 / (p * p) - 1.0 / (both * both)
    slopes[0, y] = overlap_of(p, log_p, met, y)
    slopes[1, y] = first
    slopes[2, y] = second / 2.0
    slopes[3, y] = third / 6.0


@compiled
def without_overlap(now, enough, image, slots, met, base, slopes, per_divergence):
    """A contribution less what the overlap of the `image` with other plans takes away; the sum ends early where no more than
    `enough` is left."""
    for y in range(slots):
        p = image[y]
        step = p - base[y]
        if abs(step) < NEAR * base[y]:
            overlap = slopes[0, y] + step * (slopes[1, y] + step * (slopes[2, y] + step * slopes[3, y]))
            now -= 0.5 * per_divergence * overlap
        elif p > TRACE:
            now -= 0.5 * per_divergence * overlap_of(p, math.log(p), met, y)
        if now <= enough:
            break
    return now


@compiled
def lay_out(taken, from_row, total, group, occupied, slot, slot_of, met, base, slopes):
    """Number the groups of the choices taken by slots, in the order of the columns. Returns the number of slots.

    `slot` (L,) receives the slot of each column, `slot_of` (B,) that of each group, which is -1 before; `met` (m, Y) the time
    of the other plans in each slot; see `exchange_pass` for `base` and `slopes`.
    """
    slots = 0
    for i in range(len(taken)):
        y = group[taken[i]]
        if slot_of[y] < 0:
            slot_of[y] = slots
            for j in range(len(occupied)):
                met[j, slots] = occupied[j, y]
            base[slots] = 0.0
            slots += 1
        slot[i] = slot_of[y]
        base[slot[i]] += from_row[0, i] / total
    for y in range(slots):
        if base[y] > TRACE:
            expand(y, base[y], met, base, slopes)
        else:
            base[y] = 0.0
    return slots


@compiled
def meets(taken, from_row, factor, moved, after, floors, levels):
    """Whether the plan that visits each column from_row[0] + factor x moved times, `after` in all, meets the floors with a
    margin."""
    for f in range(len(levels)):
        held = 0.0
        size = abs(levels[f])
        for i in range(len(taken)):
            term = (from_row[0, i] + factor * moved[i]) / after * floors[f, taken[i]]
            held += term
            size += abs(term)
        if held < levels[f] + MARGIN * size:
            return False
    return True


@compiled
def exchange_pass(
    candidate, column, worth, taken, indptr, indices, data, discount, row_of, from_row, total,
    reward, group, occupied, floors, levels, per_reward, per_divergence, value, rise, space,
):  # fmt: skip
    """Exchange actions of one plan: try each `candidate`, a choice, in place of the one taken in its `column`, and keep
    every exchange that raises the plan's contribution from `value` by more than `rise`.

    The L columns are the states that matter to the plan, best in the order of falling visits. Works in place on

        taken (L,): the choice taken in each column;
        from_row (1 + R, L): expected visits to each column; row 0 from where the plan begins, with the sum `total`, the
            others from the R states that a candidate can lead to. `row_of` (S,) gives the row of a state, -1 where the
            chain is cut.

    `space` is work space: moved (L,), image (L + 1,), slot (L,), slot_of (B,), which is -1 before and after, met (m, L + 1), base
    (L + 1,), slopes (4, L + 1), sums and earnings (1 + R,). See `lay_out`; `base` is the time in each slot with the exchanges kept
    so far, `slopes` expands the overlap around it, `sums` and `earnings` are the sum of each row and what is earned in it.

    Returns the number of exchanges kept and the contribution. `worth` receives the contribution with each candidate
    that was tried, and NaN for candidates after which the chain never returns to the cut. For candidates that are not
    good enough it receives only an upper bound, unless `rise` is infinite: the sum of the overlap with other plans stops as soon
    as the candidate cannot be good enough any more.

    An exchange after which <floors[f], p> < levels[f] for a floor f, with a margin for the states left out, counts as worth
    nothing. The contribution of a plan p is per_reward <r, p> + per_divergence sum_j JSD(p || q_j). Plans are compared by `group`
    (N,), the one of B groups that each choice belongs to, and `occupied` (m, B) is the time q of the m other plans. Where only one
    plan has time, JSD is 1/2 ln 2 per unit; what is computed is how much the overlap reduces that (see
    `objectives.divergence`).
    """
    moved, image, slot, slot_of, met, base, slopes, sums, earnings = space
    columns = len(taken)
    kept = 0
    slots = -1  # not laid out yet
    for r in range(len(from_row)):
        sums[r] = earnings[r] = 0.0
        for i in range(columns):
            sums[r] += from_row[r, i]
            earnings[r] += from_row[r, i] * reward[taken[i]]
    for n in range(len(candidate)):
        enough = value + rise if rise < np.inf else -np.inf
        x = candidate[n]
        c = column[n]
        before = taken[c]
        if x == before or from_row[0, c] <= WORTH_TRYING * total:
            continue
        if slots < 0:
            slots = lay_out(taken, from_row, total, group, occupied, slot, slot_of, met, base, slopes)
        for i in range(columns):
            moved[i] = 0.0
        longer = earning = 0.0
        row = x
        sign = discount
        for _ in range(2):
            for t in range(indptr[row], indptr[row + 1]):
                source = row_of[indices[t]]
                if source >= 0:
                    weight = sign * data[t]
                    longer += weight * sums[source]
                    earning += weight * earnings[source]
                    for i in range(columns):
                        moved[i] += weight * from_row[source, i]
            row = before
            sign = -discount
        returning = 1.0 - moved[c]
        if returning <= 1e-9:
            worth[n] = np.nan
            continue
        factor = from_row[0, c] / returning
        after = total + factor * longer
        taken[c] = x
        if len(levels) > 0 and not meets(taken, from_row, factor, moved, after, floors, levels):
            taken[c] = before
            continue
        there = from_row[0, c] + factor * moved[c]
        earned = (earnings[0] + factor * earning + there * (reward[x] - reward[before])) / after
        share = 1.0 / after
        used = slots  # image is the time in each slot; the choice tried may need one of its own
        new = slot_of[group[x]]
        if new < 0:
            new = slots
            for j in range(len(occupied)):
                met[j, new] = occupied[j, group[x]]
            base[new] = 0.0
            used += 1
        if slots == columns:  # each column has a slot of its own, and the same number
            for i in range(columns):
                image[i] = (from_row[0, i] + factor * moved[i]) * share
        else:
            for y in range(used):
                image[y] = 0.0
            for i in range(columns):
                image[slot[i]] += (from_row[0, i] + factor * moved[i]) * share
        image[slot[c]] -= there * share
        if new == slots:
            image[new] = 0.0
        image[new] += there * share
        now = per_reward * earned + per_divergence * len(occupied) * LOG_2
        now = without_overlap(now, enough, image, used, met, base, slopes, per_divergence)
        worth[n] = now
        if now <= value + rise:
            taken[c] = before
            continue
        value = now
        total = after
        kept += 1
        for i in range(columns):
            slot_of[group[taken[i]]] = -1
        slot_of[group[before]] = -1
        slots = -1
        for r in range(len(from_row)):
            share = from_row[r, c] / returning
            for i in range(columns):
                from_row[r, i] += share * moved[i]
            sums[r] += share * longer
            earnings[r] += share * earning + from_row[r, c] * (reward[x] - reward[before])
    if slots >= 0:
        for i in range(columns):
            slot_of[group[taken[i]]] = -1
    return kept, value
