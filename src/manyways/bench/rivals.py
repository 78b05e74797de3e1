"""What this package is compared with: a cold linear program, the paper's algorithm on top of it, and other solvers."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from manyways.behaviours import StateActions
from manyways.bench.timing import fastest
from manyways.formats.drn import write_drn
from manyways.formats.explicit_text import REWARD
from manyways.model.mdp import MDP
from manyways.objectives import MeanDivergence
from manyways.polytope import Polytope
from manyways.types import Floats


def cold_lp(mdp: MDP, c: Floats) -> Floats:
    """(N,) -> (N,) the oracle as the paper describes it: one linear program, solved from scratch by scipy's HiGHS."""
    by_state = sparse.csr_array((np.ones(mdp.n_choices), (mdp.choice_state, np.arange(mdp.n_choices))))
    balance = sparse.csr_array(by_state - mdp.transitions.T)
    rows = sparse.csr_array(sparse.vstack([balance, np.ones((1, mdp.n_choices))]))
    right = np.append(np.zeros(mdp.n_states), 1.0)
    return np.maximum(linprog(-c, A_eq=rows, b_eq=right, method="highs").x, 0.0)  # HiGHS may return -1e-10


def literal_frank_wolfe(mdp: MDP, k: int, tradeoff: float, seed: int) -> float:
    """Algorithm 2 with a cold linear program per plan and iteration; returns the objective reached."""
    polytope, objective = Polytope(mdp), MeanDivergence(tradeoff).on(mdp, StateActions().on(mdp))
    x = np.stack([polytope.sample(np.random.default_rng([seed, i])) for i in range(k)])
    for _ in range(31):
        gradient = objective.gradient(x)
        direction = np.stack([cold_lp(mdp, row) for row in gradient]) - x
        if (direction * gradient).sum() <= 1e-3:
            break
        size, value = 1.0, objective.value(x)
        while size > 1e-6 and objective.value(x + size * direction) <= value:
            size /= 2
        x = x + size * direction
    return objective.value(x)


def seconds_of_quantecon(mdp: MDP) -> float | None:
    """The time of quantecon's policy iteration with discount 0.99; None if it is not installed."""
    try:
        from quantecon.markov import DiscreteDP  # pyright: ignore[reportMissingImports]
    except ImportError:
        return None
    model = DiscreteDP(mdp.reward, sparse.csr_matrix(mdp.transitions), 0.99, mdp.choice_state, mdp.actions)
    model.solve(method="policy_iteration")
    return fastest(lambda: model.solve(method="policy_iteration"))[0]


def seconds_of_mdpsolver(mdp: MDP) -> float | None:
    """The time of mdpsolver's default algorithm with discount 0.99; None if it is not installed."""
    try:
        import mdpsolver  # pyright: ignore[reportMissingImports]
    except ImportError:
        return None
    matrix, first = mdp.transitions, mdp.first_choice
    span = [range(first[s], first[s + 1]) for s in range(mdp.n_states)]
    rows = [[matrix.indptr[x : x + 2] for x in own] for own in span]
    weights = [[matrix.data[a:b].tolist() for a, b in own] for own in rows]
    columns = [[matrix.indices[a:b].tolist() for a, b in own] for own in rows]
    rewards = [[float(mdp.reward[x]) for x in own] for own in span]
    models = [mdpsolver.model() for _ in range(3)]  # solving a model again starts from its last solution
    for model in models:
        model.mdp(discount=0.99, rewards=rewards, tranMatProbs=weights, tranMatColumns=columns)
    fresh = iter(models)
    return fastest(lambda: next(fresh).solve(tolerance=1e-9), rounds=len(models))[0]


def seconds_of_storm(mdp: MDP) -> float | None:
    """The time in which Storm finds the optimal long-run average reward; None if it is not installed."""
    try:
        import stormpy  # pyright: ignore[reportMissingImports]
    except ImportError:
        return None
    with tempfile.TemporaryDirectory() as folder:
        write_drn(mdp, Path(folder) / "model.drn")
        model = stormpy.build_model_from_drn(str(Path(folder) / "model.drn"))
    formula = stormpy.parse_properties(f'R{{"{REWARD}"}}max=? [LRA]')[0]
    return fastest(lambda: stormpy.model_checking(model, formula))[0]
