"""The policy from which a solve of a large model starts: cheapest ways to the choice that pays most.

The model is treated as a graph in which each choice leads to its most likely successor. A step by choice x costs g - c[x], for a
rough guess g of what a step earns in the long run. Finding the cheapest ways takes about as long as a sweep. Most choices of a
policy that only takes the fewest steps would change, after many sweeps for its values.
"""

from __future__ import annotations

import numpy as np

from manyways.kernels import ways as kernels
from manyways.model.mdp import MDP
from manyways.model.occupancy import choices_towards
from manyways.types import Floats, Ints

SAMPLE = 10_000
"""From so many states, evenly spaced, it is guessed what a step earns."""
LEAST_STEP = 0.01
"""What each step costs besides, in units of the guess: of ways that are as cheap, the shortest is taken."""
STAGE = 16
"""So many typical steps are a stage of the search for cheapest ways."""


class Ways:
    """The likely moves of a model, and work space. `find` leaves the state `ahead` (S,) of each on its way."""

    def __init__(self, mdp: MDP) -> None:
        self.mdp = mdp
        n, matrix = mdp.n_states, mdp.transitions
        begin = np.empty(n + 1, np.uint32)
        move, owner, to = (np.empty(mdp.n_choices, np.uint32) for _ in range(3))
        chance = np.empty(mdp.n_choices, np.float32)
        self._cost, self._waits = np.empty(n), np.empty(n, np.uint8)
        self._near, self._far, self.ahead = (np.empty(n, np.uint32) for _ in range(3))
        arrays = matrix.indptr.astype(np.uint64), matrix.indices.astype(np.uint32), matrix.data
        kernels.likely_moves(mdp.first_choice.astype(np.uint64), *arrays, begin, move, owner, chance, to)
        self._moves = begin, move, owner, chance

    def find(self, c: Floats, target: int, at_least: float) -> Ints:
        """(S,) a policy that takes cheap ways to the choice `target` by the (N,) payments c, and takes it. In the long run a step
        can earn `at_least` so much."""
        mdp, place = self.mdp, int(self.mdp.choice_state[target])
        paid = self._typically_paid(c)
        guess = max(at_least, float(np.median(paid)))
        step = LEAST_STEP * abs(guess) or 1.0
        # The geometric mean, because a few dear steps make up the other one.
        typical = float(np.exp(np.log(np.maximum(guess - paid, 0) + step).mean()))
        choice = np.zeros(mdp.n_states, np.uint32)
        known = kernels.cheapest_ways(
            place, *self._moves, c, guess, step, STAGE * typical, self._cost, self._near, self._far, self._waits, choice, self.ahead
        )  # fmt: skip
        if known < mdp.n_states:  # the others lead there by unlikely moves only
            there = np.zeros(mdp.n_states, bool)
            there[place] = True
            others = np.flatnonzero(np.isinf(self._cost))
            choice[others], self.ahead[others] = choices_towards(mdp, there)[others], place
        choice[place] = target
        return choice.astype(np.int64)

    def _typically_paid(self, c: Floats) -> Floats:
        """What the best choice pays in each of some states."""
        n, first = self.mdp.n_states, self.mdp.first_choice
        some = np.arange(0, n, -(-n // SAMPLE))
        counts = first[some + 1] - first[some]
        begin = np.cumsum(counts) - counts
        own = np.repeat(first[some] - begin, counts) + np.arange(counts.sum())
        return np.maximum.reduceat(c[own], begin)
