"""The compiled loops of `manyways.polytope.sweeps`.

Names: x is a choice (a row of the transitions), h are relative values, y times to the reference, `order` lists the
states in the order of the sweeps, the reference first. `begin`, `target`, `weight`, `inverse`, `later` and `ahead` are
the policy's rows packed in that order: the transitions of row i are begin[i]:begin[i+1]. Targets are states.

*Predictions.* A sweep knows the new values of the states before state i in the order, and only the old ones of those
after it, to which i moves with the chance later[i]. These states mostly lead through the same places as i, so their
values are about to change as much as that of i's likely successor, ahead[i], has just changed. A sweep that assumes so
carries an error that is the same all along a path away at once. Without the assumption it would shrink by no more than
the chance of such moves along the whole path, and the number of sweeps would grow with the length of the paths.
"""

from __future__ import annotations

import numpy as np

from manyways.kernels.compiler import compiled, compiled_into_callers
from manyways.kernels.orders import tree

PURE_LOOP = 1e-13
"""A choice that leaves its state with a lower probability than this counts as one that never leaves."""

NOTHING = -np.inf
ONE = np.uint32(1)
"""Unsigned numbers plus this are unsigned. Of others numba checks the sign at each use as an index."""

TOLERANCE = 1e-9
"""Of the proved optimum, relative to the largest |c| of the policy's own choices: never of the whole model, in which one
forbidden choice may cost 10^10 times as much as all others."""
NEWTON_STEPS = 4
GREEDY_PASSES = 2
MAX_SWEEPS, SETTLED, TIMED, EVALUATED = 200, 0.01, 1e-2, 0.01
"""Between improvements a policy's values are swept until they change by less than `SETTLED` times the change of the last
greedy pass. Fewer sweeps would mislead the next improvement; more would be wasted on a policy that is about to change."""
THOROUGH_EVERY, THOROUGH_SWEEPS = 40, 2000
"""Now and then a policy is evaluated completely: such a step always rises, even if the quick ones cycle."""
PROVED, STAYING, ASTRAY, UNFINISHED = 0, 1, 2, 3
"""How `iterate` ends."""

MASS_LEFT, MAX_PUSHES = 1e-12, 2000

RISES = 2
"""So many sweeps that change more than the one before show that predictions do not suit the chain."""


@compiled_into_callers
def best_choice(s, own, cut, first, indptr, indices, data, c, discount, g, h):
    """The value of choice `own` of state s, the best value, and whose it is; -inf where there is none.

    Choices are compared with their self-loops eliminated; choices that never leave their state are skipped, because they
    cannot lead back. If the chain is `cut` at s, its value is 0, and staying there is as good as coming back.
    """
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
        if not cut:
            if leaving < PURE_LOOP:
                continue
            if leaving != 1.0:  # divisions are slow
                value /= leaving
        if x == own:
            kept = value
        if value > best:
            best = value
            best_x = x
    return kept, best, best_x


@compiled
def greedy(order, first, indptr, indices, data, c, discount, g, h, choice, margin, passes):
    """Greedy Gauss-Seidel passes over the states in `order`: each state takes its best choice and that choice's
    value, so improvements travel whole paths in one pass. Works in place on `h` and `choice`.

    Returns the number of changed choices and the largest change of a value in the last pass. Without a discount the chain
    is cut at the first state, whose value is not changed.
    """
    changes = 0
    moved = 0.0
    for _ in range(passes):
        before = changes
        moved = 0.0
        fixed = discount == 1.0
        for i in range(len(order)):
            s = order[i]
            kept, best, best_x = best_choice(s, choice[s], fixed, first, indptr, indices, data, c, discount, g, h)
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


@compiled
def survey(first, indptr, indices, data, c, discount, h, choice):
    """The largest |c| of the policy's own choices, the largest |h|, the largest surplus c + discount P h - h of all
    choices, and the smallest of the policy's own."""
    scale, height, top, bottom, _ = survey_part(
        0, len(choice), first, indptr, indices, data, c, discount, h, choice
    )  # fmt: skip
    return scale, height, top, bottom


@compiled
def survey_part(low, high, first, indptr, indices, data, c, discount, h, choice):
    """`survey` of the states from low to high, and the largest surplus of a choice over that of the policy's own there."""
    scale = height = gain = 0.0
    top, bottom = NOTHING, -NOTHING
    for at in range(low, high):
        s = np.uint32(at)
        scale = max(scale, abs(c[choice[s]]))
        height = max(height, abs(h[s]))
        best = own = NOTHING
        for x in range(first[s], first[s + 1]):
            ahead = 0.0
            for t in range(indptr[x], indptr[x + 1]):
                ahead += data[t] * h[indices[t]]
            surplus = discount * ahead + c[x] - h[s]
            best = max(best, surplus)
            if x == choice[s]:
                own = surplus
        top = max(top, best)
        bottom = min(bottom, own)
        gain = max(gain, best - own)
    return scale, height, top, bottom, gain


@compiled
def pack(
    order, choice, indptr, indices, data, c, discount, likely, place, b, begin, target, weight, inverse, later, ahead
):
    """Lay the policy's rows and costs out in sweep order, all in one chunk."""
    for i in range(len(order)):
        place[order[i]] = i
    pack_chunk(
        0, len(order), 0, 0, order, choice, indptr, indices, data, c, discount, likely, place,
        b, begin, target, weight, inverse, later, ahead,
    )  # fmt: skip


@compiled
def pack_chunk(
    low, high, row, e, order, choice, indptr, indices, data, c, discount, likely, place,
    b, begin, target, weight, inverse, later, ahead,
):  # fmt: skip
    """Lay out the rows and costs of the states order[low:high], from entry e on; begin[row + low] is where the first row
    begins. Without a discount the chain is cut at the first state of all, and its column dropped. Each row's own column is
    eliminated: it only scales the row, by `inverse`.

    `likely` are the likely successors by state, `place` the places of the states in the order. Returns the first and the last
    place that the chunk's states, other than the first of all, lead to.
    """
    dropped = order[0] if discount == 1.0 else len(order)
    nearest = low
    farthest = high - 1
    for at in range(low, high):
        i = np.uint32(at)
        begin[i + row] = e
        leaving = 1.0
        unknown = 0.0
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
                there = place[to]
                if there > i:
                    unknown += weight[e]
                if at > 0:
                    nearest = min(nearest, there)
                    farthest = max(farthest, there)
                e += 1
        inverse[i] = 1.0 / leaving if leaving > 0.0 else 0.0
        predicted = likely[s] != dropped and place[likely[s]] < i
        ahead[i] = likely[s] if predicted else order[0]
        later[i] = unknown if predicted else 0.0
    begin[high + row] = e
    return nearest, farthest


@compiled
def sweep(order, begin, target, weight, inverse, later, ahead, steps, b, shift, values, cut, sweeps, tolerance):
    """Gauss-Seidel sweeps of v = b - shift + P v on `values` (by state), with predictions until these mislead.

    Returns the number of sweeps, and the value at the reference, which stays out of a cut chain. The last change of each
    state is left in `steps`.
    """
    outside = 0
    steps[order[0]] = 0.0
    if cut:
        values[order[0]] = 0.0
        outside = 1
    change = 0.0
    rises = 0
    made = 0
    while made < sweeps:
        made += 1
        trust = 1.0 if rises < RISES else 0.0
        before = change
        change = sweep_part(
            outside, len(order), 0, order, begin, target, weight, inverse, later, ahead, steps, b, shift, values, trust
        )
        if change <= tolerance:
            break
        if before > 0.0 and change >= before:
            rises += 1
    back = b[0] - shift
    for e in range(begin[1]):
        back += weight[e] * values[target[e]]
    return made, back


@compiled
def sweep_part(
    low, high, row, order, begin, target, weight, inverse, later, ahead, steps, b, shift, values, trust
):  # fmt: skip
    """One sweep over the states order[low:high], whose rows begin at begin[row + low]; see `pack_chunk`. Predictions have this
    much `trust`, 0 or 1. Returns the largest change."""
    change = 0.0
    skip = np.uint32(row)
    for at in range(low, high):
        i = np.uint32(at)
        s = order[i]
        new = b[i] - shift + trust * later[i] * steps[ahead[i]]
        first = i + skip
        for e in range(begin[first], begin[first + ONE]):
            new += weight[e] * values[target[e]]
        new *= inverse[i]
        step = new - values[s]
        steps[s] = step
        change = max(change, abs(step))
        values[s] = new
    return change


@compiled
def evaluate(
    order,
    begin,
    target,
    weight,
    inverse,
    later,
    ahead,
    steps,
    b,
    ones,
    h,
    y,
    g,
    lower,
    upper,
    sweeps,
    rough,
    tolerance,
):
    """Sweep the times to the reference (until they change by less than `rough` of the longest) and the values of a cut
    chain; take Newton's step on the gain, which must stay between `lower` and `upper`; and sweep on, until neither the
    values nor the surplus of a round trip change by more than `tolerance`, or all `sweeps` are made.

    Returns the new gain.
    """
    root = order[0]
    if y[root] == 0.0:  # nothing is known about them yet
        sweep(order, begin, target, weight, inverse, later, ahead, steps, ones, 0.0, y, True, 1, 0.0)
    longest = 1.0
    for s in range(len(order)):
        longest = max(longest, y[s])
    _, cycle = sweep(
        order, begin, target, weight, inverse, later, ahead, steps, ones, 0.0, y, True, sweeps, rough * longest
    )
    y[root] = cycle
    left = sweeps
    for _ in range(NEWTON_STEPS):
        made, surplus = sweep(
            order, begin, target, weight, inverse, later, ahead, steps, b, g, h, True, left, tolerance
        )
        left -= made
        step = min(max(surplus / cycle, lower - g), upper - g)
        g += step
        for s in range(len(order)):
            h[s] -= step * y[s]
        h[root] = 0.0
        if abs(step) * cycle <= tolerance or left <= 0:
            break
    return g


@compiled
def iterate(
    first, indptr, indices, data, c, h, y, choice, reference, order, likely, child, sibling, place,
    begin, target, weight, inverse, later, ahead, steps, b, ones, waiting,
    g, lower, upper, floor, stays, wanted, fresh, iteration, last, enough,
):  # fmt: skip
    """Modified policy iteration without a discount, from one `iteration` to the `last`: improve the policy, lay it out
    from the `reference` outwards, evaluate it. Works in place on `h`, `y` and `choice`.

    Returns how it ended, the number of the next iteration, the gain, its bounds, the largest surplus, and `enough`:

        PROVED: the gain is optimal, to `TOLERANCE` or `wanted`, whichever is less. The policy's occupancy by state is left
            in `b`; the mass that was still moving (see `push`) is returned in place of `enough`;
        STAYING: so is staying in the best pure self-loop, which earns `floor`; `stays` says whether there is one;
        ASTRAY: not all states lead to the reference by likely successors. The caller lays the policy out by other means,
            and calls again with the `enough` that it received; otherwise that is -1;
        UNFINISHED: the last iteration was made.
    """
    n = len(choice)
    top = -NOTHING
    while iteration < last:
        thorough = (fresh and iteration == 0) or iteration % THOROUGH_EVERY == THOROUGH_EVERY - 1
        if enough < 0.0:
            scale, height, top, bottom = survey(first, indptr, indices, data, c, 1.0, h, choice)
            span = scale + height
            goal = min(TOLERANCE * scale, wanted)
            changes = 0
            moved = EVALUATED * span
            # The current policy is evaluated before it is improved. Its gain is attainable; greedy steps at a gain that
            # is not attainable favour whatever ends the round trip soon, and would break the policy up.
            if iteration > 0:
                lower = max(lower, bottom)
                upper = min(upper, top)
                if 0.0 <= top - bottom <= goal:  # it is negative only if values overflowed
                    for s in range(n):
                        waiting[s] = 0.0
                    # Mass is pushed until the rest is negligible against a whole round trip.
                    negligible = MASS_LEFT * max(y[reference], 1.0)
                    left = push(
                        order, n, begin, target, weight, inverse, later, ahead, steps, waiting, b, True, negligible
                    )  # fmt: skip
                    return PROVED, iteration, g, lower, upper, top, left / negligible
                if stays and abs(top - floor) <= goal:
                    return STAYING, iteration, g, lower, upper, top, enough
                changes, moved = greedy(
                    order, first, indptr, indices, data, c, 1.0, g, h, choice, 1e-13 * span, GREEDY_PASSES
                )
                if changes * changes <= n:  # this may be the last policy, so it is evaluated for the proof
                    moved = goal / (2.0 * SETTLED)
            enough = SETTLED * (EVALUATED * span if thorough else moved)
            if changes > 0 or iteration == 0 or thorough:
                order[0] = reference
                if tree(order, choice, indptr, indices, data, likely, child, sibling) < n:
                    return ASTRAY, iteration, g, lower, upper, top, enough
                pack(
                    order, choice, indptr, indices, data, c, 1.0, likely, place, b,
                    begin, target, weight, inverse, later, ahead,
                )  # fmt: skip
        most = THOROUGH_SWEEPS if thorough else MAX_SWEEPS
        g = evaluate(
            order, begin, target, weight, inverse, later, ahead, steps, b, ones, h, y, g, lower, upper, most, TIMED, enough
        )  # fmt: skip
        enough = -1.0
        iteration += 1
    return UNFINISHED, iteration, g, lower, upper, top, enough


@compiled
def push(order, size, begin, target, weight, inverse, later, ahead, early, waiting, visits, cut, enough):
    """Push the mass `waiting` (by state) along the chain, far to near, adding up `visits`, until at most `enough` is still
    moving; then scale the visits to a sum of one. Returns the mass that was left. The rows are laid out in chunks of this `size`.

    In a cut chain a unit of mass starts at the reference, and what comes back to it has left the system. Crumbs of mass are
    left where they are: following them would end in denormal numbers, which are slow. Mass may be negative.

    Mass that moves against the order has to wait for the next sweep. Sooner or later it comes through the likely
    successor, so it is counted there at once (`early`) and its negative waits there, until the two meet.
    """
    n = len(order)
    crumb = 1e-3 * enough / n
    for s in range(n):
        early[s] = visits[s] = 0.0
    if cut:
        visits[order[0]] = 1.0
        for e in range(begin[1]):
            waiting[target[e]] = weight[e]
    left = 0.0
    rises = 0
    for _ in range(MAX_PUSHES):
        trust = 1.0 if rises < RISES else 0.0
        for chunk in range((n - 1) // size, -1, -1):
            for i in range(min((chunk + 1) * size, n) - 1, chunk * size - 1, -1):
                s = order[i]
                mass = waiting[s] + early[s]
                if abs(mass) > crumb:
                    waiting[s] = -early[s]
                    mass *= inverse[i]
                    visits[s] += mass
                    for e in range(begin[i + chunk], begin[i + chunk + 1]):
                        waiting[target[e]] += mass * weight[e]
                    early[ahead[i]] += trust * later[i] * mass
                early[s] = 0.0
        before = left
        left = 0.0
        for s in range(n):
            left += abs(waiting[s])
        if left <= enough:
            break
        if before > 0.0 and left >= before:
            rises += 1
    total = 0.0
    for i in range(n):  # in this order, rounding does not depend on the numbering
        # What was counted early and has not met its negative can leave less than nothing in places hardly ever visited.
        visits[order[i]] = max(visits[order[i]], 0.0)
        total += visits[order[i]]
    for s in range(n):
        visits[s] /= total
    return left


@compiled
def well_proved(c, choice, visits, gap, share):
    """Whether a gap is at most this `share` of the typical |c| of a policy: of its mean over the `visits` (S,), and of the
    median of its choices that are not zero, where a few choices make up the mean."""
    mean = 0.0
    some = 0
    below = 0
    for s in range(len(choice)):
        size = abs(c[choice[s]])
        mean += visits[s] * size
        if size > 0.0:
            some += 1
            if share * size < gap:
                below += 1
    if mean > 0.0 and gap > share * mean:
        return False
    return below <= some // 2 if some > 0 else gap <= 0.0


@compiled
def spread(choice, visits, c, occupancy, choices):
    """Write the time spent by state as time by choice to `occupancy` (N,), which is zero before, and the policy to
    `choices`, whose numbers are wider. Returns what it earns."""
    earned = 0.0
    for s in range(len(choice)):
        x = choice[s]
        choices[s] = x
        occupancy[x] = visits[s]
        earned += visits[s] * c[x]
    return earned
