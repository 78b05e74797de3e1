"""Values of policies by dense linear algebra, from the policies alone, and random models with episodes."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog

from manyways import MDP, Discounted, Episodic
from problems import (
    KINDS,
    all_deterministic_policies,
    choices_of,
    is_weakly_accessible,
    random_mdp,
    recurrent_classes,
    stationary,
)


def policy_from(mdp: MDP, choices: np.ndarray) -> np.ndarray:
    """(S,) one choice per state -> (N,) policy."""
    policy = np.zeros(mdp.n_choices)
    policy[choices] = 1.0
    return policy


def chain_of(mdp: MDP, policy: np.ndarray) -> np.ndarray:
    """(S, S) dense."""
    by_state = np.zeros((mdp.n_states, mdp.n_choices))
    by_state[mdp.choice_state, np.arange(mdp.n_choices)] = policy
    return by_state @ mdp.transitions.toarray()


def occupancy_of(mdp: MDP, policy: np.ndarray, discount: float = 1.0) -> np.ndarray:
    """(N,) the occupancy of an (N,) policy; several recurrent classes are mixed by the chance to end in each."""
    p, n = chain_of(mdp, policy), mdp.n_states
    if discount < 1:
        visits = np.linalg.solve(np.eye(n) - discount * p.T, (1 - discount) * mdp.start)
        return policy * visits[mdp.choice_state]
    classes = recurrent_classes(p)
    recurrent = np.zeros(n, bool)
    recurrent[np.concatenate(classes)] = True
    before = np.flatnonzero(~recurrent)
    visits = np.linalg.solve(np.eye(len(before)) - p[np.ix_(before, before)].T, mdp.start[before])
    found = np.zeros(n)
    for states in classes:
        arriving = mdp.start[states].sum() + visits @ p[np.ix_(before, states)].sum(axis=1)
        found[states] = arriving * stationary(p[np.ix_(states, states)])
    return policy * found[mdp.choice_state]


def value_of(mdp: MDP, policy: np.ndarray, criterion: object, ends: np.ndarray | None = None) -> float:
    """The value of an (N,) policy; `ends` (N,) is needed for values per episode."""
    discount = criterion.discount if isinstance(criterion, Discounted) else 1.0
    x = occupancy_of(mdp, policy, discount)
    if isinstance(criterion, Episodic):
        assert ends is not None
        return float(x @ mdp.reward) / float(x @ ends)
    return float(x @ mdp.reward) / (1 - discount if discount < 1 else 1.0)


def policies_of(mdp: MDP) -> list[np.ndarray]:
    """All deterministic policies, each (N,)."""
    return [policy_from(mdp, choices) for choices in all_deterministic_policies(mdp)]


def random_episodes(
    rng: np.random.Generator, max_states: int = 4, max_actions: int = 3, *, midway: bool | None = None
) -> MDP:
    """A random weakly accessible model with episodes.

    Either a goal leads back to the start, or (`midway`) any step may end an episode. Some plan reaches the end.
    """
    midway = bool(rng.random() < 0.5) if midway is None else midway
    while True:
        mdp = random_mdp(rng, max_states, max_actions, KINDS[rng.integers(len(KINDS))], min_states=2)
        if midway:
            chance = np.where(rng.random(mdp.n_choices) < 0.4, rng.random(mdp.n_choices), 0.0)
            rows = mdp.transitions.toarray() * (1 - chance)[:, None] + chance[:, None] * mdp.start
            mdp = MDP.from_csr(
                rows, mdp.reward, mdp.first_choice, start=mdp.start, ends={"goal": chance}, name="random ends"
            )
        else:
            goal = int(rng.integers(mdp.n_states))
            mdp = mdp.restarting_at([goal], "goal")
        if is_weakly_accessible(mdp) and any(occupancy_of(mdp, p) @ mdp.ends["goal"] > 1e-6 for p in policies_of(mdp)):
            return mdp


def best_by_linear_program(mdp: MDP, discount: float, c: np.ndarray, floors: list[tuple[np.ndarray, float]]) -> float:
    """The largest <c, x> of any occupancy x with <w, x> >= level for all floors (w, level), by HiGHS."""
    by_state = np.zeros((mdp.n_states, mdp.n_choices))
    by_state[mdp.choice_state, np.arange(mdp.n_choices)] = 1.0
    equal = np.vstack([by_state - discount * mdp.transitions.toarray().T, np.ones(mdp.n_choices)])
    right = np.append((1 - discount) * mdp.start, 1.0)
    sizes = [float(np.abs(w).max()) for w, _ in floors]
    rows = np.array([-w / size for (w, _), size in zip(floors, sizes, strict=True)])
    levels = np.array([-level / size + 1e-13 for (_, level), size in zip(floors, sizes, strict=True)])
    options = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    found = linprog(-c, rows, levels, equal, right, method="highs-ds", options=options)
    assert found.status == 0, found.message
    return -float(found.fun)


def states_that_randomise(mdp: MDP, x: np.ndarray) -> int:
    """In how many states an (N,) occupancy takes several choices."""
    return sum(np.count_nonzero(x[list(choices_of(mdp, s))] > 1e-9) > 1 for s in range(mdp.n_states))
