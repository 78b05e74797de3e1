"""The paper's theory section as functions: the lemma's constant and both theorems' bounds.

All of them hold on the restricted domain in which every occupancy is at least delta > 0:
`Polytope(mdp, at_least=delta)`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from manyways.errors import SettingError
from manyways.types import Floats


def lipschitz_constant(tradeoff: float, delta: float) -> float:
    """L of Lemma 1: the gradient of f is L-Lipschitz where every occupancy is at least delta."""
    if not 0 < delta < 1:
        raise SettingError(f"delta must lie strictly between 0 and 1, found {delta}")
    return tradeoff * (1 + delta) / (4 * delta**2)


def projected_gradient_bound(improvement: float, steps: ArrayLike, lipschitz: float) -> Floats:
    """Theorem 1: (T + 1,) what the smallest gradient mapping up to each t is at most.

    Args:
        improvement: f* - f(rho^0), how much there is to gain.
        steps: (T + 1,) the step sizes eta^t, each in (0, 2 / L).
        lipschitz: L.
    """
    eta = np.asarray(steps, dtype=np.float64)
    if not ((eta > 0) & (eta * lipschitz < 2)).all():
        raise SettingError(f"every step must lie strictly between 0 and 2 / L = {2 / lipschitz:.6g}")
    return np.sqrt(max(improvement, 0.0) / np.cumsum(eta * (1 - lipschitz * eta / 2)))


def frank_wolfe_bound(improvement: float, diameter: float, lipschitz: float, iterations: int) -> Floats:
    """Theorem 2: (T + 1,) what the smallest Frank-Wolfe gap up to each t is at most.

    Args:
        improvement: f* - f(rho^0).
        diameter: of the domain of all k occupancies; `diameter_bound` is always enough.
        lipschitz: L.
        iterations: T.
    """
    t = np.arange(iterations + 1)
    return max(2 * improvement, diameter**2 * lipschitz) / np.sqrt(t + 1)


def diameter_bound(k: int) -> float:
    """No two points of k stacked distributions are farther apart than this: sqrt(2 k)."""
    return float(np.sqrt(2 * k))
