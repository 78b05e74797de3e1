"""The feasible set of one plan: all occupancies of a model under a criterion.

With E summing choices by state and P the transitions, the polytope is

    (E - discount P)' x = (1 - discount) start,   sum x = 1,   x >= at_least

which for discount = 1 is the paper's Delta_M, and for at_least = delta > 0 its restricted domain Delta_{M,delta}. A
method sees no more of a model than this: the best vertex in a direction, the nearest point, a random point, and how
far off a point is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from functools import cached_property

import numpy as np
from scipy import sparse

from manyways.errors import EmptyDomain, SettingError, SolverError
from manyways.kernels import chains
from manyways.model.graph import closed_components, reachable, recurrent_core
from manyways.model.mdp import MDP
from manyways.model.occupancy import deterministic, flow_residual, policy_of
from manyways.polytope.criterion import Average, Criterion
from manyways.polytope.floors import Floor, Floored
from manyways.polytope.linear_program import LinearProgram, largest_minimum
from manyways.polytope.oracle import RENUMBERED_FROM, SWEEPS_FROM, Oracle, Pause
from manyways.polytope.policy_iteration import PolicyIteration
from manyways.polytope.projection import Projection
from manyways.polytope.renumbering import RenumberedSweeps
from manyways.polytope.sweeps import Sweeps
from manyways.polytope.vertex import Answer, Vertex
from manyways.types import Floats, Ints, Sparse

WANDERING_STEPS = 50


class Polytope:
    """All occupancies of `mdp` under `criterion`, each at least `at_least` everywhere.

    Args:
        mdp: the model.
        criterion: `Average()` by default.
        at_least: the smallest occupancy that any choice may have.
        oracle: replaces the choice of the linear oracle by size: `PolicyIteration`, `Sweeps` or `RenumberedSweeps`.
        wrap: puts another oracle around the chosen one, such as one that counts calls.
        pause: called by oracles during long work; see `pausing`.

    Raises:
        NotWeaklyAccessible: if the criterion is the average and the long-run average depends on the start.
        EmptyDomain: if no occupancy is that large everywhere; it has the largest possible value.
    """

    def __init__(
        self,
        mdp: MDP,
        criterion: Criterion | None = None,
        *,
        at_least: float = 0.0,
        oracle: Callable[[MDP, float, Pause], Oracle] | None = None,
        wrap: Callable[[Oracle], Oracle] | None = None,
        pause: Pause | None = None,
    ) -> None:
        if not 0 <= at_least < 1:
            raise SettingError(f"at_least is a share of time, expected 0 <= at_least < 1, found {at_least}")
        self.mdp = mdp
        self.criterion = Average() if criterion is None else criterion
        self.at_least = at_least
        self.pause = pause or Pause()
        self.floors: tuple[Floor, ...] = ()
        self._kind, self._wrap, self._randomised = oracle, wrap, False
        self._optimum: Answer | None = None
        self._ceiling: Answer | None = None
        self._chosen = self._chosen_oracle()
        self._oracle = self._plain = self._chosen if wrap is None else wrap(self._chosen)

    def _chosen_oracle(self) -> Oracle:
        """The one place where the linear oracle is chosen; `polytope.oracle` says why by size."""
        if self.at_least > 0:  # then the maximiser need not be the occupancy of a deterministic policy
            self._check_not_empty()
            return LinearProgram(*_equalities(self.mdp, self.criterion.discount), self.at_least)
        by_size = Sweeps if self.mdp.n_states < RENUMBERED_FROM else RenumberedSweeps
        kind = self._kind or (PolicyIteration if self.mdp.n_states < SWEEPS_FROM else by_size)
        return kind(self.mdp, self.criterion.discount, self.pause)

    @property
    def size(self) -> int:
        """N, the number of choices."""
        return self.mdp.n_choices

    def best(self, c: Floats, warm: Vertex | None = None) -> Answer:
        """The vertex that maximises <c, x> for an (N,) c; `warm` is an earlier answer, or a vertex, to start from."""
        # A read-only array, or one with gaps, is another type to numba, which would compile everything twice.
        return self._oracle.best(np.require(c, np.float64, ["C", "W"]), warm)

    @property
    def optimum(self) -> Answer:
        """The best plan for the model's own reward."""
        if self._optimum is None:
            self._optimum = self.best(self.mdp.reward)
        return self._optimum

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

        In a restricted domain, the feasible point nearest to it; with floors, a mixture of it and the best plan.
        """
        x = self.criterion.occupancy(self.mdp, self._random_policy(rng))
        if self.floors:
            return self._towards_optimum(x)
        return x if x.min() >= self.at_least else self.project(x)

    def _towards_optimum(self, x: Floats) -> Floats:
        """The point nearest to x (N,) on the line from the best plan to it that meets all floors."""
        best, share = self.optimum.occupancy, 1.0
        for floor in self.floors:
            weights = floor.weights(self.mdp)
            spare, height = float(weights @ best) - floor.level, float(weights @ x) - floor.level
            if height < 0:
                share = min(share, max(spare, 0.0) / (spare - height)) if spare > height else 0.0
        return best + share * (x - best)

    def _random_policy(self, rng: np.random.Generator) -> Floats:
        weight = rng.exponential(size=self.size)
        return weight / np.add.reduceat(weight, self.mdp.first_choice[:-1])[self.mdp.choice_state]

    def wander(self, rng: np.random.Generator) -> Floats:
        """(N,) where a random policy spends its first steps from the start: a cheap random distribution.

        It is not quite feasible, and takes time linear in the number of transitions: a place to start from.
        """
        policy, matrix, n = self._random_policy(rng), self.mdp.transitions, self.mdp.n_states
        chain = np.empty(n + 1, np.int64), np.empty(matrix.nnz, np.int32), np.empty(matrix.nnz)
        arrays = self.mdp.first_choice, matrix.indptr, matrix.indices, matrix.data
        chains.merged(*arrays, policy, *chain, np.full(n, -1))
        now, then, total = self.mdp.start.copy(), np.empty(n), np.zeros(n)
        chains.first_steps(*chain, now, WANDERING_STEPS, then, total)
        return policy * (total / WANDERING_STEPS)[self.mdp.choice_state]

    def vertex_of(self, choices: Ints) -> Vertex:
        """The vertex of a deterministic policy, one choice per state (S,)."""
        policy = deterministic(self.mdp, choices)
        x = self.criterion.occupancy(self.mdp, policy)
        return Vertex(x, choices)

    def occupancy_around(self, choices: Ints, reference: int) -> Floats:
        """(S,) -> (N,) the occupancy of a deterministic policy that keeps coming back to the `reference`: by sweeps, where
        the oracle has them, which take a fraction of the time of an exact solve."""
        quick = getattr(self._chosen, "occupancy_of", None)
        found = None if quick is None else quick(choices, reference)
        return self.vertex_of(choices).occupancy if found is None else found

    def twin(self) -> Polytope:
        """The same polytope with work space of its own, for another thread."""
        again = getattr(self._chosen, "twin", None)
        own = Polytope(
            self.mdp,
            self.criterion,
            at_least=self.at_least,
            oracle=self._kind if again is None else lambda *_: again(),
            wrap=self._wrap,
            pause=self.pause,
        )
        own._kind = self._kind
        return (
            own.within(self.floors, self.optimum, randomised=self._randomised, ceiling=self.ceiling)
            if self.floors
            else own
        )

    def with_reward_of(self, mdp: MDP) -> Polytope:
        """The same polytope, with the same work space, for the same model with another reward."""
        other = copy(self)
        if mdp is not self.mdp:
            other.mdp, other._optimum = mdp, None
        return other

    def within(
        self, floors: Sequence[Floor], feasible: Vertex, *, randomised: bool = False, ceiling: Answer | None = None
    ) -> Polytope:
        """The part of the polytope that meets some floors, with the same work space.

        Args:
            floors: at least one.
            feasible: a plan that meets them.
            randomised: whether the best plans may randomise; otherwise they are deterministic policies.
            ceiling: see the property; by default the optimum of this polytope.
        """
        slice_ = copy(self)
        slice_._optimum = None
        slice_._ceiling = self.optimum if ceiling is None else ceiling
        discount, plain = self.criterion.discount, self._plain
        slice_.floors, slice_._randomised = tuple(floors), randomised
        slice_._oracle = Floored(
            plain, self.mdp, discount, floors, feasible, self.vertex_of_one_class, randomised=randomised
        )
        return slice_

    @property
    def ceiling(self) -> Answer:
        """The best plan for the model's reward, whatever limits were set to plans."""
        return self.optimum if self._ceiling is None else self._ceiling

    def unlimited_best(self, c: Floats) -> Answer:
        """The vertex that maximises <c, x>, whether it meets the floors or not."""
        return self._plain.best(np.array(c, dtype=np.float64), None)

    def meets_floors(self, x: Floats) -> bool:
        """Whether x (N,) meets all floors, up to rounding."""
        return not isinstance(self._oracle, Floored) or self._oracle.meets(x)

    def vertex_of_one_class(self, choices: Ints) -> Vertex | None:
        """The vertex of a policy; None if it has several recurrent classes, or mixes too slowly for double precision."""
        if self.criterion.discount == 1:
            p = self.mdp.transitions[choices]
            component, closed = closed_components(p)
            if len(np.unique(component[reachable(p, self.mdp.start > 0) & closed[component]])) > 1:
                return None
        try:
            with np.errstate(all="ignore"):
                vertex = self.vertex_of(choices)
        except SolverError:
            return None
        return vertex if np.isfinite(vertex.occupancy).all() else None

    @contextmanager
    def pausing(self, check: Callable[[], None]) -> Iterator[None]:
        """Within the block, long work calls `check` now and then, twins do as well; an exception from it ends the work."""
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

    def realised(self, vertex: Vertex) -> tuple[Floats, Floats]:
        """The policy of a vertex, and its occupancy; with its choices known, it has one recurrent class."""
        if vertex.choices is None:
            return self.realise(vertex.occupancy)
        return deterministic(self.mdp, vertex.choices), vertex.occupancy

    @cached_property
    def _projection(self) -> Projection:
        return Projection(*_equalities(self.mdp, self.criterion.discount), self.at_least)

    def _check_not_empty(self) -> None:
        largest = largest_at_least(self.mdp, self.criterion)
        if self.at_least > largest * (1 + 1e-9):
            raise EmptyDomain(
                f"no occupancy of {self.mdp.name} is at least {self.at_least:g} everywhere; the largest possible is {largest:.6g}",
                largest,
            )


def largest_at_least(mdp: MDP, criterion: Criterion | None = None) -> float:
    """The largest `at_least` for which the polytope of a model is not empty."""
    return largest_minimum(*_equalities(mdp, 1.0 if criterion is None else criterion.discount))


def _equalities(mdp: MDP, discount: float) -> tuple[Sparse, Floats]:
    """The equality constraints with independent rows."""
    by_state = sparse.csr_array(
        (np.ones(mdp.n_choices), (mdp.choice_state, np.arange(mdp.n_choices))), shape=(mdp.n_states, mdp.n_choices)
    )
    balance = sparse.csr_array(by_state - discount * mdp.transitions.T)
    # The rows of flow conservation add up to (1 - discount) times the condition that the total is one. Numerically
    # that condition is worth more than any of them, so it takes the place of a row of the recurrent core.
    kept = np.ones(mdp.n_states, bool)
    kept[0 if discount < 1 else np.argmax(recurrent_core(mdp))] = False
    total = sparse.csr_array(np.ones((1, mdp.n_choices)))
    right = np.append((1 - discount) * mdp.start[kept], 1.0)
    return sparse.csc_array(sparse.vstack([balance[kept], total])), right
