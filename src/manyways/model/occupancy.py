"""From policies to their occupancies, and back.

A policy is an (N,) array: the probability of each choice within its state. Its occupancy is the
(N,) share of time spent on each choice,

    long run:    rho(s, a) = lim 1/T sum_{t=1..T} Pr(s_t = s, a_t = a)          (paper, section 2)
    discounted:  rho(s, a) = (1 - discount) sum_{t>=0} discount^t Pr(s_t = s, a_t = a)

both from the model's start distribution. The long-run limit is taken in the mean, so periodic chains need no special
care; a multichain policy mixes its recurrent classes by the probability of ending in each. All linear systems are solved
by sparse direct factorisation.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import SuperLU, splu

from manyways.errors import SettingError, SolverError
from manyways.kernels import chains
from manyways.model.graph import closed_components, levels_towards
from manyways.model.mdp import MDP
from manyways.types import Bools, Floats, Ints, Sparse

VISITED = 1e-12
"""A state with less occupancy counts as never visited, because its shares would be rounding errors."""

WELL_CHOSEN = 1e-4
"""A reference state visited less than this times the busiest one makes the solve ill-conditioned."""
MOST_CUTS = 10
"""How many references are tried. With probabilities near the smallest double each may seem worse than the last one."""
TOO_SLOW = (
    "the chain of a policy mixes too slowly for double precision: a state is left with a probability that rounding loses; "
    "scale the model, or leave out what practically never happens"
)


def state_occupancy(mdp: MDP, occupancy: Floats) -> Floats:
    """(..., N) -> (..., S): time spent in each state."""
    return np.add.reduceat(occupancy, mdp.first_choice[:-1], axis=-1)


def flow_residual(mdp: MDP, occupancy: Floats, discount: float = 1.0) -> float:
    """How far an (N,) array is from being an occupancy: the largest violation of flow
    conservation, of summing to one, and of not being negative."""
    imbalance = (
        state_occupancy(mdp, occupancy) - discount * (mdp.transitions.T @ occupancy) - (1 - discount) * mdp.start
    )
    return float(max(np.abs(imbalance).max(), abs(occupancy.sum() - 1), -occupancy.min(), 0.0))


def chain(mdp: MDP, policy: Floats) -> Sparse:
    """(S, S) CSR: the transition matrix under an (N,) policy."""
    weights = sparse.csr_array(
        (policy.copy(), np.arange(mdp.n_choices), mdp.first_choice.copy()), shape=(mdp.n_states, mdp.n_choices)
    )
    weights.eliminate_zeros()
    product = sparse.csr_array(weights @ mdp.transitions)
    product.eliminate_zeros()
    return product


def check_policy(mdp: MDP, policy: Floats) -> Floats:
    """The (N,) policy as floats; raises a `SettingError` that names the first state where it is not a distribution."""
    policy = np.asarray(policy, dtype=np.float64)
    if policy.shape != (mdp.n_choices,):
        raise SettingError(
            f"a policy has one probability for each of the {mdp.n_choices} choices, found shape {policy.shape}"
        )
    total = np.add.reduceat(policy, mdp.first_choice[:-1])
    wrong = ~(np.abs(total - 1) < 1e-9)
    wrong[mdp.choice_state[~(policy >= 0)]] = True
    if wrong.any():
        state = int(np.argmax(wrong))
        raise SettingError(
            f"the policy's probabilities in state {mdp.state_name(state)!r} must be >= 0 and sum to 1, found {total[state]:.10g}"
        )
    return policy


def long_run_occupancy(mdp: MDP, policy: Floats) -> Floats:
    """(N,) the long-run occupancy of an (N,) policy; the chain may be multichain, periodic or absorbing."""
    policy = check_policy(mdp, policy)
    p = chain(mdp, policy)
    component, closed = closed_components(p)
    recurrent = closed[component]
    share = stationary_distributions(p, component, recurrent)
    weight = np.bincount(component, weights=_absorbed(p, mdp.start, recurrent), minlength=len(closed))
    return _spread(mdp, policy, share * weight[component])


def discounted_occupancy(mdp: MDP, policy: Floats, discount: float) -> Floats:
    """(N,) the discounted occupancy of an (N,) policy, normalised to sum to one."""
    policy = check_policy(mdp, policy)
    visits = factors_of(chain(mdp, policy), discount).solve((1 - discount) * mdp.start, trans="T")
    return _spread(mdp, policy, np.maximum(visits, 0.0))


def stationary_distributions(p: Sparse, component: Ints, recurrent: Bools) -> Floats:
    """(S,) the stationary distribution of every recurrent class at once, zero on transient states.

    One state of each class is fixed at one and the rest solved for; all classes form one
    block-diagonal system. Where a fixed state turns out to be rarely visited, its class is solved
    again with its busiest state fixed, because rounding errors grow with that ratio.
    """
    states = np.flatnonzero(recurrent)
    _, member = np.unique(component[states], return_inverse=True)
    block = p[states][:, states]
    fixed = _argmax_by_group(dominance(block), member, int(member.max()) + 1)
    mass = np.empty(0)
    for _ in range(MOST_CUTS):
        mass = _renewal_measure(block, fixed)
        busiest = _argmax_by_group(mass, member, len(fixed))
        worse = mass[fixed] < WELL_CHOSEN * mass[busiest]
        if not worse.any() or (busiest == fixed).all():
            break
        fixed = np.where(worse, busiest, fixed)
    if not np.isfinite(mass).all():
        raise SolverError(TOO_SLOW)
    distribution = np.zeros(p.shape[0])
    distribution[states] = mass / np.bincount(member, weights=mass)[member]
    return distribution


def dominance(p: Sparse) -> Floats:
    """(S,) how many states end up on each one by following most likely successors.

    A state with a high count lies on a loop that the chain keeps running round, so it is a good
    place to cut the chain; a state picked at random may be visited once in 10^30 steps.
    """
    likely = _argmax_by_group(p.data, np.repeat(np.arange(p.shape[0]), np.diff(p.indptr)), p.shape[0])
    ahead = p.indices[likely]
    for _ in range(p.shape[0].bit_length()):
        ahead = ahead[ahead]
    return np.bincount(ahead, minlength=p.shape[0]).astype(float)


def policy_of(mdp: MDP, occupancy: Floats) -> Floats:
    """(N,) the stationary policy that realises an (N,) occupancy.

    In visited states, pi(s, a) = rho(s, a) / rho(s). In states that are never visited the occupancy does not determine
    the policy; there it takes the choice most likely to get a step nearer to the visited states, so that it is never
    stuck. A state that cannot get there (only discounted models have such states) takes its first choice.
    """
    by_state = state_occupancy(mdp, occupancy)
    visited = by_state > VISITED
    policy = np.where(visited[mdp.choice_state], occupancy, 0.0)
    policy = np.maximum(policy, 0.0)
    total = np.add.reduceat(policy, mdp.first_choice[:-1])
    policy /= np.where(visited, total, 1.0)[mdp.choice_state]
    if not visited.all():
        homeward = choices_towards(mdp, visited)
        policy[homeward[~visited]] = 1.0
    return policy


def choices_towards(mdp: MDP, targets: Bools) -> Ints:
    """(S,) for each state the choice most likely to get a step nearer to `targets` (S,)."""
    level = levels_towards(mdp, targets)
    level[level < 0] = mdp.n_states
    source = np.repeat(mdp.choice_state, np.diff(mdp.transitions.indptr))
    nearer = np.where(level[mdp.transitions.indices] < level[source], mdp.transitions.data, 0.0)
    chance = np.add.reduceat(nearer, mdp.transitions.indptr[:-1])
    return first_best(mdp, chance)


def first_best(mdp: MDP, score: Floats) -> Ints:
    """(N,) -> (S,): the first choice of highest score in each state."""
    top = np.maximum.reduceat(score, mdp.first_choice[:-1])
    attaining = np.flatnonzero(score == top[mdp.choice_state])
    return attaining[np.searchsorted(mdp.choice_state[attaining], np.arange(mdp.n_states))]


def deterministic(mdp: MDP, choices: Ints) -> Floats:
    """(S,) one choice per state -> (N,) policy."""
    policy = np.zeros(mdp.n_choices)
    policy[choices] = 1.0
    return policy


def _spread(mdp: MDP, policy: Floats, by_state: Floats) -> Floats:
    total = by_state.sum()
    if not 0 < total < np.inf:
        raise SolverError(TOO_SLOW)
    by_state = by_state / total
    return policy * by_state[mdp.choice_state]


def _absorbed(p: Sparse, start: Floats, recurrent: Bools) -> Floats:
    """(S,) the chance that each recurrent state is the first recurrent one met."""
    arriving = np.where(recurrent, start, 0.0)
    transient = np.flatnonzero(~recurrent)
    if transient.size and start[transient].any():
        entered = np.where(recurrent, 0.0, start)
        visits = np.maximum(factors_of(p, cut_at=np.flatnonzero(recurrent)).solve(entered, trans="T"), 0.0)
        visits[recurrent] = 0.0
        arriving += np.where(recurrent, p.T @ visits, 0.0)
    return arriving


def _renewal_measure(block: Sparse, fixed: Ints) -> Floats:
    """Expected visits to each state between visits to its class's fixed state (itself 1)."""
    unit = np.zeros(block.shape[0])
    unit[fixed] = 1.0
    return np.maximum(factors_of(block, cut_at=fixed).solve(unit, trans="T"), 0.0)


def factors_of(
    p: Sparse, discount: float = 1.0, cut_at: Ints | None = None, rows: Ints | None = None, states: Ints | None = None
) -> SuperLU:
    """LU factors of `system_of` the same."""
    return factorised(system_of(p, discount, cut_at, rows, states))


def system_of(
    p: Sparse, discount: float = 1.0, cut_at: Ints | None = None, rows: Ints | None = None, states: Ints | None = None
) -> Sparse:
    """(R, R) CSC of I - discount P for a chain P, with the columns of the states `cut_at` dropped from P.

    The diagonal 1 - discount p_ss is computed from the other entries of the row, without cancellation: a state that is
    left with a probability of 1e-300 is still left.

    Args:
        p: (m, S) transitions.
        discount: 1 for none.
        cut_at: positions among the R states.
        rows: (R,) the row of p by which each state moves; by default p has one row for each state.
        states: (R,) those that the chain is about and does not leave, in order; all S by default.
    """
    rows = np.arange(p.shape[0]) if rows is None else rows
    n = len(rows)
    place = np.arange(n)
    if states is not None:
        place = np.zeros(p.shape[1], np.int64)
        place[states] = np.arange(n)
    cut = np.zeros(n, bool)
    if cut_at is not None:
        cut[cut_at] = True
    first = np.zeros(n + 1, np.int64)
    chains.count_entries(rows, place, cut, p.indptr, p.indices, first)
    first = np.cumsum(first)
    index, value = np.empty(first[-1], np.int32), np.empty(first[-1])
    chains.cut_system(rows, place, cut, p.indptr, p.indices, p.data, discount, first[:-1].copy(), index, value)
    return sparse.csc_array((value, index, first.astype(np.int32)), shape=(n, n))


def factorised(system: Sparse) -> SuperLU:
    """Sparse LU factors of a system from `system_of`.

    It is an M-matrix with a dominant diagonal, so diagonal pivots are stable without scaling, and an ordering for
    symmetric patterns leaves about half of the fill of scipy's default. The factors have hardly any dense blocks, so narrow
    panels are a third faster.

    Raises:
        SolverError: if the system is singular in double precision.
    """
    try:
        return splu(
            system,
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=0.0,
            relax=4,
            panel_size=1,
            options={"SymmetricMode": True, "Equil": False},
        )
    except RuntimeError:
        raise SolverError(TOO_SLOW) from None


def _argmax_by_group(values: Floats, group: Ints, count: int) -> Ints:
    order = np.lexsort((-values, group))
    return order[np.searchsorted(group[order], np.arange(count))]
