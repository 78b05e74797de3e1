"""Solves of small models in one compiled call: between several, Python would take as long as the solves.

Groups of arguments are tuples, in the order in which they are unpacked.
"""

from __future__ import annotations

import numpy as np

from manyways.kernels.compiler import compiled
from manyways.kernels.sweeps import PROVED, iterate, spread, well_proved


@compiled
def outlook(c, loops):
    """The best of the pure self-loops `loops`, -1 if there are none, what it earns, and the largest c; without self-loops the
    least c takes the place of what the best one earns."""
    least = most = c[0]
    for x in range(len(c)):
        least = min(least, c[x])
        most = max(most, c[x])
    best = -1
    for loop in loops:
        if best < 0 or c[loop] > c[best]:
            best = loop
    return best, c[best] if best >= 0 else least, most


@compiled
def solve(model, work, c, h, y, choice, reference, g, fresh, most, share, occupancy, choices):
    """The best plan for costs c without a discount, where nothing unusual happens on the way.

    Args:
        model: first, indptr, indices, data and the pure self-loops.
        work: the work space of `iterate`, from `order` to `waiting`.
        h, y, choice: (S,) where the solve starts; worked on in place.
        reference, g, fresh: see `polytope.sweeps.SolveState`.
        most: iterations.
        share: see `well_proved`.
        occupancy, choices: (N,), (S,) receive the plan.

    Returns:
        Whether all went as usual, the gain, the value and a bound for it. If not, nothing that was written means anything.
    """
    first, indptr, indices, data, loops = model
    order, likely, child, sibling, place, begin, target, weight, inverse, later, ahead, steps, b, ones, waiting = work
    stay, floor, upper = outlook(c, loops)
    if g < floor:
        least = c[choice[0]]
        for s in range(len(choice)):
            least = min(least, c[choice[s]])
        g = max(floor, least)
    end, _, g, _, _, top, left = iterate(
        first, indptr, indices, data, c, h, y, choice, reference, order, likely, child, sibling, place,
        begin, target, weight, inverse, later, ahead, steps, b, ones, waiting,
        g, floor, upper, floor, stay >= 0, np.inf, fresh, 0, most, -1.0,
    )  # fmt: skip
    if end != PROVED or not left <= 1.0:
        return False, g, 0.0, 0.0
    for x in range(len(occupancy)):
        occupancy[x] = 0.0
    value = spread(choice, b, c, occupancy, choices)
    bound = max(top, value)
    return well_proved(c, choices, b, bound - value, share), g, value, bound
