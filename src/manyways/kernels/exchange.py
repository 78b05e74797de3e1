"""The compiled loop of `manyways.methods.exchange`."""

from __future__ import annotations

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
def expand(y, p, occupied, occupied_log, base, slopes):
    """Note the overlap of time p > 0 in group y with the other plans, and its first three derivatives by p."""
    base[y] = p
    log_p = np.log(p)
    value = first = second = third = 0.0
    for j in range(len(occupied)):
        q = occupied[j, y]
        if q > TRACE:
            both = p + q
            log_both = np.log(both)
            value += both * log_both - p * log_p - occupied_log[j, y]
            first += log_both - log_p
            second += 1.0 / both - 1.0 / p
            third += 1.0 / (p * p) - 1.0 / (both * both)
    slopes[0, y] = value
    slopes[1, y] = first
    slopes[2, y] = second / 2.0
    slopes[3, y] = third / 6.0


@compiled
def exchange_pass(
    candidate, column, worth, taken, indptr, indices, data, discount, row_of, from_row, total,
    reward, group, occupied, occupied_log, floors, levels, per_reward, per_divergence, value, rise, order, mass, moved, image,
    base, slopes,
):  # fmt: skip
    """Exchange actions of one plan: try each `candidate`, a choice, in place of the one taken in its `column`, and keep
    every exchange that raises the plan's contribution from `value` by more than `rise`.

    The L columns are the states that matter to the plan. Works in place on

        taken (L,): the choice taken in each column;
        from_row (1 + R, L): expected visits to each column; row 0 from where the plan begins, with the sum `total`, the
            others from the R states that a candidate can lead to. `row_of` (S,) gives the row of a state, -1 where the
            chain is cut.

    `mass`, `moved` (L,), `image`, `base` (B,) and `slopes` (4, B) are work space; `image` and `base` are zero before, and
    `image` after. `base` is the time in each group with the exchanges kept so far, and `slopes` expands the overlap around it.

    Returns the number of exchanges kept and the contribution. `worth` receives the contribution with each candidate
    that was tried, and NaN for candidates after which the chain never returns to the cut. For candidates that are not
    good enough it receives only an upper bound, unless `rise` is infinite: the overlap with other plans is summed in the
    `order` (L,) of the columns, and the sum stops as soon as the candidate cannot be good enough any more.

    An exchange after which <floors[f], p> < levels[f] for a floor f, with a margin for the states left out, counts as worth
    nothing. The contribution of a plan p is per_reward <r, p> + per_divergence sum_j JSD(p || q_j). Plans are compared by `group`
    (N,), the one of B groups that each choice belongs to. `occupied` (k - 1, B) is the time q of the other plans and
    `occupied_log` is q ln q. Where only one plan has time, JSD is 1/2 ln 2 per unit; what is computed is how much the
    overlap reduces that (see `objectives.divergence`).
    """
    columns = len(taken)
    others = len(occupied)
    kept = 0
    stale = True
    for n in range(len(candidate)):
        enough = value + rise if rise < np.inf else -np.inf
        x = candidate[n]
        c = column[n]
        before = taken[c]
        if x == before or from_row[0, c] <= WORTH_TRYING * total:
            continue
        if stale:
            for i in range(columns):
                image[group[taken[i]]] += from_row[0, i] / total
            for i in range(columns):
                y = group[taken[i]]
                if image[y] > TRACE:
                    expand(y, image[y], occupied, occupied_log, base, slopes)
                image[y] = 0.0
            stale = False
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
        meets = True
        for f in range(len(levels)):
            held = 0.0
            size = abs(levels[f])
            for i in range(columns):
                term = mass[i] / after * floors[f, taken[i]]
                held += term
                size += abs(term)
            if held < levels[f] + MARGIN * size:
                meets = False
        if not meets:
            taken[c] = before
            continue
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
            image[y] = 0.0  # a group with several columns counts at the first of them
            if p > 0.0 and now > enough:
                step = p - base[y]
                if abs(step) < NEAR * base[y]:
                    overlap = slopes[0, y] + step * (slopes[1, y] + step * (slopes[2, y] + step * slopes[3, y]))
                else:
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
        stale = True
        base[group[before]] = 0.0
        for r in range(len(from_row)):
            share = from_row[r, c] / returning
            for i in range(columns):
                from_row[r, i] += share * moved[i]
    return kept, value
