"""The feasible set of one plan: all occupancies of a model under a criterion.

With E summing choices by state and P the transitions, the polytope is

    (E - discount P)' x = (1 - discount) start,   sum x = 1,   x >= at_least

which for discount = 1 is the paper's Delta_M, and for at_least = delta > 0 its restricted domain
Delta_{M,delta}. A method sees no more of a model than this: the best vertex in a direction, the
nearest point, a random point, and how far off a point is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property

import numpy as np
from scipy import sparse

from manyways.arrays import Floats, Ints, Sparse
from manyways.errors import EmptyDomain, SettingError
from manyways.mdp import MDP
from manyways.occupancy import chain, deterministic, flow_residual, policy_of
from manyways.polytope.criterion import Average, Criterion, Discounted
from manyways.polytope.linear_program import LinearProgram, largest_minimum
from manyways.polytope.policy_iteration import Pause, PolicyIteration, Vertex
from manyways.polytope.projection import Projection
from manyways.polytope.renumbering import RenumberedSweeps
from manyways.polytope.sweeps import Sweeps
from manyways.structure import recurrent_core

__all__ = [
    "Average",
    "Criterion",
    "Discounted",
    "Pause",
    "PolicyIteration",
    "Polytope",
    "RenumberedSweeps",
    "Sweeps",
    "Vertex",
]

WANDERING_STEPS = 50

SWEEPS_FROM, RENUMBERED_FROM = 100, 2000
"""From so many states on, the oracle is `Sweeps`. Below, exact `PolicyIteration` takes a millisecond or
two and needs nothing compiled; above, sweeps are ten to a thousand times faster, and fall back on
policy iteration by themselves where they cannot finish. Models too large for the processor's cache are
swept with their states numbered anew (`RenumberedSweeps`). With `at_least` > 0 none of these applies, and
the oracle is a `LinearProgram`."""

Oracle = PolicyIteration | Sweeps | RenumberedSweeps


class Polytope:
    """All occupancies of `mdp` under `criterion`, each at least `at_least` everywhere.

    Raises:
        NotWeaklyAccessible: if the criterion is the average and the model has none of its own.
        EmptyDomain: if no occupancy is that large everywhere; carries the largest possible value.

    `oracle` overrides the choice of the linear oracle by size: `PolicyIteration`, `Sweeps` or `RenumberedSweeps`.
    `pause` is for those who want to be asked now and then whether to go on; see `pausing`.
    """

    def __init__(
        self,
        mdp: MDP,
        criterion: Criterion | None = None,
        *,
        at_least: float = 0.0,
        oracle: type[Oracle] | None = None,
        pause: Pause | None = None,
    ) -> None:
        self.mdp = mdp
        self.criterion = Average() if criterion is None else criterion
        self.at_least = at_least
        self.pause = pause or Pause()
        self._kind = oracle
        if not 0 <= at_least < 1:
            raise SettingError(f"at_least is a share of time, expected 0 <= at_least < 1, found {at_least}")
        self._oracle: Oracle | LinearProgram
        if at_least == 0:
            self._oracle = (oracle or _oracle_for(mdp))(mdp, self.criterion.discount, self.pause)
        else:
            self._check_not_empty()
            self._oracle = LinearProgram(*self._equalities, at_least)

    @property
    def size(self) -> int:
        """N, the number of choices."""
        return self.mdp.n_choices

    def best(self, c: Floats, warm: Vertex | None = None) -> Vertex:
        """The vertex that maximises <c, x> for an (N,) c; `warm` is an earlier answer to start from."""
        # A copy: a read-only array would be another type to numba, and have everything compiled twice.
        return self._oracle.best(np.array(c, dtype=np.float64), warm)

    @cached_property
    def optimum(self) -> Vertex:
        """The optimal plan for the model's own reward."""
        return self.best(self.mdp.reward)

    def project(self, y: Floats) -> Floats:
        """(N,) the feasible point nearest to y, to a residual of 1e-9."""
        return self._projection(y)

    def project_roughly(self, y: Floats, start: Floats, iterations: int) -> Floats:
        """(N,) the paper's inexact projection: so many SLSQP iterations from a feasible `start`."""
        return self._projection.inexact(y, start, iterations)

    def residual(self, x: Floats) -> float:
        """The largest violation of any constraint at x (N,)."""
        return max(flow_residual(self.mdp, x, self.criterion.discount), float(self.at_least - x.min()))

    def sample(self, rng: np.random.Generator) -> Floats:
        """(N,) the occupancy of a random policy: in each state a uniformly random distribution.

        In a restricted domain, the feasible point nearest to it.
        """
        x = self.criterion.occupancy(self.mdp, self._random_policy(rng))
        return x if x.min() >= self.at_least else self.project(x)

    def _random_policy(self, rng: np.random.Generator) -> Floats:
        weight = rng.exponential(size=self.size)
        return weight / np.add.reduceat(weight, self.mdp.first_choice[:-1])[self.mdp.choice_state]

    def wander(self, rng: np.random.Generator) -> Floats:
        """(N,) where a random policy spends its first steps from the start: a cheap random distribution.

        It is not quite feasible, and takes time linear in the number of transitions: a place to start from.
        """
        policy = self._random_policy(rng)
        step = chain(self.mdp, policy).T
        now = self.mdp.start.copy()
        total = np.zeros_like(now)
        for _ in range(WANDERING_STEPS):
            total += now
            now = step @ now
        return policy * (total / WANDERING_STEPS)[self.mdp.choice_state]

    def vertex_of(self, choices: Ints) -> Vertex:
        """The vertex of a deterministic policy, one choice per state (S,)."""
        policy = deterministic(self.mdp, choices)
        x = self.criterion.occupancy(self.mdp, policy)
        return Vertex(x, float("nan"), float("nan"), choices)

    def twin(self) -> Polytope:
        """The same polytope with work space of its own, for another thread."""
        return Polytope(self.mdp, self.criterion, at_least=self.at_least, oracle=self._kind, pause=self.pause)

    @contextmanager
    def pausing(self, check: Callable[[], None]) -> Iterator[None]:
        """Within, `check` is called now and then during long work, by twins as well; what it raises ends the work."""
        before, self.pause.check = self.pause.check, check
        try:
            yield
        finally:
            self.pause.check = before

    def realise(self, x: Floats) -> tuple[Floats, Floats]:
        """(N,) -> the stationary policy for x, and the occupancy that it has when run from the start.

        They agree with x unless x mixes several recurrent classes: a stationary policy cannot
        always be made to end in each of them with just the right chance.
        """
        policy = policy_of(self.mdp, x)
        return policy, self.criterion.occupancy(self.mdp, policy)

    @cached_property
    def _equalities(self) -> tuple[Sparse, Floats]:
        """The equality constraints with independent rows."""
        mdp, discount = self.mdp, self.criterion.discount
        by_state = sparse.csr_array(
            (np.ones(self.size), (mdp.choice_state, np.arange(self.size))), shape=(mdp.n_states, self.size)
        )
        balance = sparse.csr_array(by_state - discount * mdp.transitions.T)
        # The rows of flow conservation sum to (1 - discount) times: the total is one. That one is worth more
        # than any of them, numerically, so it takes the place of a row of the recurrent core.
        kept = np.ones(mdp.n_states, bool)
        kept[0 if discount < 1 else np.argmax(recurrent_core(mdp))] = False
        total = sparse.csr_array(np.ones((1, self.size)))
        right = np.append((1 - discount) * mdp.start[kept], 1.0)
        return sparse.csc_array(sparse.vstack([balance[kept], total])), right

    @cached_property
    def _projection(self) -> Projection:
        return Projection(*self._equalities, self.at_least)

    def _check_not_empty(self) -> None:
        largest = largest_minimum(*self._equalities)
        if self.at_least > largest * (1 + 1e-9):
            raise EmptyDomain(
                f"no occupancy of {self.mdp.name} is at least {self.at_least:g} everywhere; the largest possible is {largest:.6g}",
                largest,
            )


def _oracle_for(mdp: MDP) -> type[Oracle]:
    if mdp.n_states < SWEEPS_FROM:
        return PolicyIteration
    return Sweeps if mdp.n_states < RENUMBERED_FROM else RenumberedSweeps
