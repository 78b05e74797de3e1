"""The linear oracle: its contract, and the one place that chooses one.

`best(c)` maximises <c, x> over the feasible set, which is one MDP with reward c. An oracle can be wrapped by another one
with the same contract, such as one that adds a constraint: see `Polytope`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from manyways.polytope.vertex import Answer, Vertex
from manyways.types import Floats

SWEEPS_FROM, RENUMBERED_FROM = 100, 2000
"""From this many states on, the oracle is `Sweeps`. Below, exact `PolicyIteration` takes a millisecond or two and needs
nothing compiled; above, sweeps are ten to a thousand times faster, and fall back on policy iteration where they cannot
finish. Models too large for the processor's cache are swept with their states renumbered (`RenumberedSweeps`)."""


class Oracle(Protocol):
    """Maximises linear functions over a feasible set."""

    def best(self, c: Floats, warm: Vertex | None = None) -> Answer:
        """The maximiser of <c, x> for an (N,) c.

        `warm` is where to start: an earlier answer of this oracle, or a vertex whose policy is known.
        """
        ...


@dataclass
class Pause:
    """Called by oracles between pieces of work; an exception that `check` raises ends the solve."""

    check: Callable[[], None] | None = None

    def __call__(self) -> None:
        if self.check is not None:
            self.check()
