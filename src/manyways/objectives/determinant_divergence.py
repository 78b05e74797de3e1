"""Mean reward plus tradeoff times the log-determinant of the plans' similarities (DvD).

    f(rho_1..k) = 1/k sum_i <rho_i, r> + tradeoff * D
    D = ln 2 * (L(K) - L(1)) / (L(K0) - L(1)),    L(K) = ln det(K + RIDGE I),    K_ij = exp(-JSD(B rho_i || B rho_j) / scale)

with B the linear map of the behaviour. The determinant of a kernel is the squared volume that the plans span
(Parker-Holder et al. 2020, "Effective diversity in population based reinforcement learning"): a plan that lies between
others adds little, however far it is from each. K is positive semidefinite, because the root of the divergence is a
Hilbert space metric. 1 is the kernel of equal plans, all entries one. K0 is the kernel of disjoint plans, all entries
off the diagonal exp(-ln 2 / scale). The ridge keeps the logarithm finite and makes every pair count where two plans are
equal: without it the determinant is 0 as soon as there are twins, whatever the others do.

So D is 0 if and only if all plans are equal, since the eigenvalues k, 0, .., 0 have the smallest sum of logarithms of all
with the same sum; and it is at most ln 2, for disjoint plans, since L is concave in K and all its derivatives by entries
off the diagonal are negative at K0, the smallest of these matrices. For k = 2 it is a function of the divergence.

D is neither convex nor concave in the plans. It may even fall when two plans move apart while a third stays between
them, so pair weights can be negative: the gradient is exact where the divergences have one, and a generalised one where
they have corners.

The scale ln 2 and the ridge 0.1 are measured on five of the room worlds with one seed: least / mean distance of k = 4 and
k = 6 plans with pure diversity within a slack of 5 and 15 %, and their least distance with a tradeoff of 8:

    scale 0.2, ridge 0.1     0.291 / 0.382    0.360 / 0.529    0.10    0.10
    scale ln 2, ridge 0.02   0.299 / 0.393    0.373 / 0.530    0.32    0.22
    scale ln 2, ridge 0.1    0.300 / 0.394    0.360 / 0.533    0.39    0.29    the default
    scale 2, ridge 0.1       0.278 / 0.411    0.335 / 0.540    0.40    0.31

A small scale makes D flat for all but near pairs; a large one makes it the volume of a simplex.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from manyways.behaviours import LinearMap
from manyways.errors import SettingError, check_number
from manyways.model.mdp import MDP
from manyways.objectives.base import OBJECTIVES
from manyways.objectives.divergence import LARGEST
from manyways.objectives.pairwise import PairwiseOnModel
from manyways.objectives.tradeoff import DiversityObjective
from manyways.types import Floats

RIDGE = 0.1


@OBJECTIVES.add
@dataclass(frozen=True)
class DeterminantDivergence(DiversityObjective):
    """Mean reward + tradeoff x the log-determinant of the matrix of similarities exp(-divergence / scale), scaled to
    0 .. ln 2.

    Attributes:
        tradeoff: how much a nat of diversity is worth in reward per step; `inf` if only diversity counts. By default
            `plan` derives it from the model.
        scale: the divergence, in nats, at which the similarity has fallen to 1 / e.
    """

    measure: ClassVar[str] = "log-determinant of the similarities"

    scale: float = LARGEST

    def __post_init__(self) -> None:
        super().__post_init__()
        if not check_number("the scale", self.scale) > 0:
            raise SettingError(f"the scale must be positive, found {self.scale}")

    def on(self, mdp: MDP, compared: LinearMap) -> DeterminantDivergenceOnModel:
        return DeterminantDivergenceOnModel(mdp, compared, *self.weights, self.scale)


@dataclass(frozen=True, eq=False)
class DeterminantDivergenceOnModel(PairwiseOnModel):
    """Value, gradient and secant costs over stacked (k, N) occupancies."""

    scale: float = LARGEST

    def diversity(self, distances: Floats) -> Floats:
        lowest, unit = self._lowest_and_unit(distances.shape[-1])
        logs = np.linalg.slogdet(self._kernel(distances))[1]
        return np.clip(unit * (logs - lowest), 0.0, LARGEST)  # rounding can leave a little more or less

    def pair_weights(self, distances: Floats) -> Floats:
        k, kernel = len(distances), self._kernel(distances)
        slopes = -2 / self.scale * np.linalg.inv(kernel) * kernel  # of the logarithm, by each distance
        return k * (k - 1) / 2 * self._lowest_and_unit(k)[1] * slopes

    def _kernel(self, distances: Floats) -> Floats:
        """(..., k, k) -> (..., k, k): similarities, with the ridge."""
        return np.exp(-distances / self.scale) + RIDGE * np.eye(distances.shape[-1])

    def _lowest_and_unit(self, k: int) -> tuple[float, float]:
        """The logarithm for equal plans, and what makes disjoint plans worth ln 2."""
        c = np.array([1.0, np.exp(-LARGEST / self.scale)])  # the similarity of equal and of disjoint plans
        lowest, highest = ((k - 1) * np.log(1 - c + RIDGE) + np.log(1 + (k - 1) * c + RIDGE)).tolist()
        return lowest, LARGEST / (highest - lowest)
