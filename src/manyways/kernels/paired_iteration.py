"""Modified policy iteration on a large model, by one thread or two.

It is that of `kernels.sweeps.iterate`, with passes in pairs (`paired_passes`), improvements where something still changes, and
policies that are laid out anew only where they changed (`paired_layout`). Two threads run the same calls with different `part`s: both
come to the same decisions, from the same numbers, and meet wherever one needs what the other wrote.
"""

from __future__ import annotations

from manyways.kernels.announcements import APART, BOTH, FIRST, OFF, SECOND, announced, meet, share
from manyways.kernels.compiler import compiled
from manyways.kernels.paired_layout import lay_out, patch
from manyways.kernels.paired_passes import CHANGED, MOVED, TILE, WORK, improve_twice, sweep_twice
from manyways.kernels.sweeps import (
    ASTRAY,
    EVALUATED,
    MAX_SWEEPS,
    NEWTON_STEPS,
    NOTHING,
    PROVED,
    RISES,
    SETTLED,
    STAYING,
    THOROUGH_EVERY,
    THOROUGH_SWEEPS,
    TIMED,
    TOLERANCE,
    UNFINISHED,
    best_choice,
    survey_part,
)

ROOT, CYCLE, SURPLUS, LEAST = 4, 9, 10, 11
"""Entries of `told`: whether the reference changed its choice, how long a round trip takes, its surplus, and how little values
changed."""
RESTLESS, MOST_WORK = 0.01, 3
"""A state is restless if its value changes by more than this part of the largest surplus. Improvements end when no state is, or
after as much work as so many passes over all states."""


@compiled
def iterate_once(
    part, crew, model, c, h, y, choice, layout, rows, tiles, steps, steps_of_times, b, ones, reference,
    g, lower, upper, floor, stays, wanted, fresh, iteration, enough, settled,
):  # fmt: skip
    """Improve the policy, lay it out from the `reference` outwards, and evaluate it, in place on `h`, `y` and `choice`. `settled`
    says whether the last evaluation was completed.

    Returns how it ended, the gain, its bounds, the largest surplus, `enough` and `settled`; see `kernels.sweeps.iterate`. After
    PROVED, the occupancy is left to the caller.
    """
    thorough = (fresh and iteration == 0) or iteration % THOROUGH_EVERY == THOROUGH_EVERY - 1
    top, pairs = NOTHING, 0
    if enough < 0.0:
        scale, height, top, bottom = survey(part, crew, model, c, h, choice, tiles.gains)
        span = scale + height
        goal = min(TOLERANCE * scale, wanted)
        changed, moved = 0.0, EVALUATED * span
        if iteration > 0:
            lower = max(lower, bottom)
            upper = min(upper, top)
            if 0.0 <= top - bottom <= goal:  # it is negative only if values overflowed
                return PROVED, g, lower, upper, top, enough, settled
            if stays and abs(top - floor) <= goal:
                return STAYING, g, lower, upper, top, enough, settled
            changed, moved, pairs = improve(
                part, crew, model, c, g, h, choice, reference, 1e-13 * span, RESTLESS * (top - bottom), tiles
            )
            if changed * changed <= len(choice):  # this may be the last policy, so it is evaluated for the proof
                moved = goal / (2.0 * SETTLED)
        enough = SETTLED * (EVALUATED * span if thorough else moved)
        anew = iteration == 0 or thorough or not settled
        leading = len(choice)
        if anew or (changed > 0 and not patch(part, crew, model, c, choice, layout, b, rows)):
            leading = lay_out(part, crew, model, c, choice, reference, layout, b, rows)
        if leading < len(choice):
            return ASTRAY, g, lower, upper, top, enough, settled
    most = THOROUGH_SWEEPS if thorough else MAX_SWEEPS
    g, settled = evaluate(
        part,
        crew,
        pairs,
        layout.order,
        layout.last,
        rows,
        steps,
        steps_of_times,
        b,
        ones,
        h,
        y,
        g,
        lower,
        upper,
        most,
        enough,
    )
    return UNFINISHED, g, lower, upper, top, -1.0, settled


@compiled
def survey(part, crew, model, c, h, choice, gains):
    """`kernels.sweeps.survey`; `gains` (tiles,) receives the largest surplus of a choice over that of the policy's own in each."""
    scale = height = 0.0
    top, bottom = NOTHING, -NOTHING
    low, high = share(part, len(gains))
    for tile in range(low, high):
        a, b, most, least, gains[tile] = survey_part(
            tile * TILE, min((tile + 1) * TILE, len(choice)), model.first, model.indptr, model.indices, model.data,
            c, 1.0, h, choice,
        )  # fmt: skip
        scale, height, top, bottom = max(scale, a), max(height, b), max(top, most), min(bottom, least)
    if part == BOTH:
        return scale, height, top, bottom
    told, mine, other = crew.told, part * APART, (1 - part) * APART
    told[mine], told[mine + 1], told[mine + 2], told[mine + 3] = scale, height, top, bottom
    meet(part, crew.meetings)
    scale, height = max(scale, told[other]), max(height, told[other + 1])
    return scale, height, max(top, told[other + 2]), min(bottom, told[other + 3])


@compiled
def improve(part, crew, model, c, g, h, choice, reference, margin, enough, tiles):
    """Improve the policy where the last survey found something better by more than `margin`, and around these places. Returns the
    number of changed choices, the largest change of a value, and the pairs of passes made."""
    marked, marks = tiles.marked, tiles.marks
    low, high = share(part, len(marked))
    for tile in range(low, high):
        marked[tile] = tiles.gains[tile] > margin
    changed = work = moved = 0.0
    everything = False
    pairs = 0
    while True:
        for tile in range(low, high):
            marks[FIRST, tile] = marks[SECOND, tile] = False
        meet(part, crew.meetings)
        totals = crew.changes[pairs % 2]
        improve_twice(
            part, pairs, crew.done, crew.meetings, model, c, g, h, choice, reference, margin, enough, tiles, totals
        )
        meet(part, crew.meetings)
        pairs += 1
        if part != SECOND:
            # The reference leads wherever it likes, so it has its turn when nothing else moves.
            kept, best, best_x = best_choice(
                reference, choice[reference], True, model.first, model.indptr, model.indices, model.data, c, 1.0, g, h
            )
            crew.told[ROOT] = best > kept + margin
            if best > kept + margin:
                choice[reference] = best_x
        restless = False
        for tile in range(len(marked)):
            restless |= marks[SECOND, tile]
        for tile in range(low, high):
            marked[tile] = marks[SECOND, tile]
        meet(part, crew.meetings)
        changed += crew.told[ROOT] + totals[FIRST, CHANGED] + totals[SECOND, CHANGED]
        work += totals[FIRST, WORK] + totals[SECOND, WORK]
        moved = max(moved, totals[FIRST, MOVED], totals[SECOND, MOVED])
        if not restless or work >= MOST_WORK * len(choice):
            if changed > 0 or everything or announced(crew.meetings, OFF) != 0:
                return changed, moved, pairs
            # Self-loops hide a little in surveys, so that the marks can be wrong.
            everything = True
            for tile in range(low, high):
                marked[tile] = True


@compiled
def evaluate(
    part, crew, pairs, order, last, rows, steps, steps_of_times, b, ones, h, y, g, lower, upper, most, enough,
):  # fmt: skip
    """Sweep the times to the reference and the values, and take Newton's steps on the gain; see `kernels.sweeps.evaluate`. `pairs`
    of passes were made before in this call. Returns the new gain, and whether the values were swept until they settled.

    The first sweeps of the values do not need the times, so one thread begins with the values while the other one sweeps the times.
    """
    meetings, told = crew.meetings, crew.told
    root = order[0]
    low, high = share(part, len(h))
    if part != FIRST:
        told[CYCLE] = sweep_times(
            meetings, crew.alone[SECOND], crew.changes_alone[SECOND], order, last, rows, steps_of_times, ones, y, most
        )
    if part != SECOND:
        _, told[SURPLUS], told[LEAST] = sweep(
            BOTH,
            meetings,
            crew.alone[FIRST],
            crew.changes_alone[FIRST],
            0,
            order,
            last,
            rows,
            steps,
            b,
            g,
            h,
            2,
            enough,
        )
    meet(part, meetings)
    cycle, surplus, least = told[CYCLE], told[SURPLUS], told[LEAST]
    most -= 2
    for newton in range(NEWTON_STEPS):
        if most > 0 and (newton > 0 or least > enough):
            made, surplus, _ = sweep(
                part, meetings, crew.done, crew.changes, pairs, order, last, rows, steps, b, g, h, most, enough
            )
            pairs += made // 2
            most -= made
        step = min(max(surplus / cycle, lower - g), upper - g)
        g += step
        for s in range(low, high):
            h[s] -= step * y[s]
        meet(part, meetings)
        if abs(step) * cycle <= enough or most <= 0:
            break
    if part != SECOND:
        y[root] = cycle
        h[root] = 0.0
    meet(part, meetings)
    return g, most > 0


@compiled
def sweep_times(meetings, done, changes, order, last, rows, steps, ones, y, most):
    """Sweep the times to the reference, in this thread alone. Returns how long a round trip from the reference takes."""
    pairs = 0
    if y[order[0]] == 0.0:  # nothing is known about them yet
        made, _, _ = sweep(BOTH, meetings, done, changes, pairs, order, last, rows, steps, ones, 0.0, y, 2, 0.0)
        pairs += made // 2
    longest = 1.0
    for s in range(len(y)):
        longest = max(longest, y[s])
    _, cycle, _ = sweep(
        BOTH, meetings, done, changes, pairs, order, last, rows, steps, ones, 0.0, y, most, TIMED * longest
    )
    return cycle


@compiled
def sweep(part, meetings, done, changes, pairs, order, last, rows, steps, b, shift, values, most, enough):
    """Sweep the values of the cut chain in pairs; see `kernels.sweeps.sweep`. `pairs` of passes were made before with these
    counters. Returns the number of sweeps, the value at the reference, and the smaller change of the last two sweeps."""
    meet(part, meetings)
    if part != SECOND:
        values[order[0]] = steps[order[0]] = 0.0
    meet(part, meetings)
    made = rises = 0
    before = least = 0.0
    while made < most:
        trust = 1.0 if rises < RISES else 0.0
        moved = changes[pairs % 2]
        sweep_twice(part, pairs, done, last, meetings, moved, order, rows, steps, b, shift, values, trust)
        meet(part, meetings)
        pairs += 1
        made += 2
        first, second = moved[FIRST, 0], moved[SECOND, 0]
        least = min(first, second)
        if least <= enough or announced(meetings, OFF) != 0:
            break
        rises += (0.0 < before <= first) + (first <= second)
        before = second
    back = b[0] - shift
    for e in range(rows.begin[1]):
        back += rows.weight[e] * values[rows.target[e]]
    meet(part, meetings)
    return made, back, least
