"""Sweeps of a large model, which start from the cheapest ways (`ways`)."""

from __future__ import annotations

import numpy as np

from manyways.model.mdp import MDP
from manyways.polytope.oracle import Pause
from manyways.polytope.sweeps import SolveState, Sweeps
from manyways.polytope.ways import Ways
from manyways.types import Floats


class LargeSweeps(Sweeps):
    """The oracle of one model and one discount (1 for the average)."""

    def __init__(self, mdp: MDP, discount: float, pause: Pause | None = None, chunk: int | None = None) -> None:
        super().__init__(mdp, discount, pause, chunk)
        self._found_ways: Ways | None = None

    def _start(self, c: Floats) -> SolveState:
        """A policy that takes cheap ways to the choice of highest c."""
        if self._found_ways is None:
            self._found_ways = Ways(self.mdp)
        target = self.exact.most_paying(c)
        at_least = float(c[self._loops].max()) if self._loops.size else -np.inf
        choices, place = self._found_ways.find(c, target, at_least), int(self.mdp.choice_state[target])
        return self._started(choices, place)
