"""A method from outside the package: plans that are optimal for random rewards, the best of several tries."""

from dataclasses import dataclass

import numpy as np

import manyways as mw
from manyways.methods import Halted, Trace


@mw.register
@dataclass(frozen=True)
class RandomVertices(mw.Method):
    tries: int = 20

    def run(self, polytope, objective, k, seed, watch, fixed=()) -> mw.Ascent:
        rng, rows, status = np.random.default_rng(seed), [], mw.Status.ITERATION_LIMIT
        best = np.stack([polytope.optimum.occupancy] * k)
        value = objective.value(best)
        try:
            for number in range(self.tries):
                watch.check()
                x = np.stack([polytope.best(rng.normal(size=polytope.size)).occupancy for _ in range(k)])
                best, value = max((best, value), (x, objective.value(x)), key=lambda pair: pair[1])
                rows.append((value, 0.0, 1.0, watch.elapsed(), k * (number + 1)))
                watch.tell(number + 1, self.tries, value)
        except Halted as end:
            status = end.status
        return mw.Ascent(best, status, Trace.of(rows))
