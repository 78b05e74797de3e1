"""Verdicts with uncertainty: a claim holds, does not hold, or cannot be told at this number of trials.

Each claim has a rule, a condition on means over worlds. Other worlds would have given other means, so the rule is applied
to 1000 resamplings of the worlds (bootstrap: as many worlds, drawn with replacement; each keeps all its trials, so that
comparisons within a world stay paired). The claim holds if at least 97.5 % of the resamplings meet the rule, and does not
hold if at most 2.5 % do: for a rule on one number, that is whether its 95 % percentile interval lies on one side of the
limit. Otherwise, and with fewer than five worlds, it cannot be told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from manyways.types import Floats

RESAMPLINGS = 1000
DOUBT = 0.025
FEWEST_WORLDS = 5
WORDS = {True: "holds", False: "does not hold", None: "cannot be told"}


@dataclass(frozen=True)
class Verdict:
    """The judgement of one claim.

    Attributes:
        claim: what is claimed.
        rule: the condition under which the claim holds.
        method: the method, or the set of plans, whose rows were used.
        paper: the paper's number, or an empty string if it gives none.
        here: this run's number.
        holds: whether the rule is met; None if that cannot be told at this number of trials.
    """

    claim: str
    rule: str
    method: str
    paper: str
    here: str
    holds: bool | None


@dataclass(frozen=True, eq=False)
class Estimate:
    """A number of a study, and how much it depends on the worlds.

    Attributes:
        value: the number; NaN if there is none.
        samples: (R,) the same for each resampling of the worlds.
    """

    value: float
    samples: Floats

    def __str__(self) -> str:
        low, high = interval(self.samples) if np.isfinite(self.samples).any() else (np.nan, np.nan)
        return f"{self.value:.2f} [{low:.2f}, {high:.2f}]"

    def __sub__(self, other: Estimate) -> Estimate:
        """The difference of two numbers over the same worlds."""
        return Estimate(self.value - other.value, self.samples - other.samples)


def mean_estimate(estimates: Sequence[Estimate]) -> Estimate:
    """The mean of several numbers over the same worlds."""
    return Estimate(
        float(np.mean([one.value for one in estimates])), np.mean([one.samples for one in estimates], axis=0)
    )


def least_lead(own: Estimate, others: Mapping[str, Estimate]) -> Floats:
    """(R,) by how much a number is larger than the largest of others, in each resampling."""
    return np.min([(own - other).samples for other in others.values()], axis=0)


def against(own: Estimate, others: Mapping[str, Estimate]) -> str:
    """The number, the best of the others, and the interval of the difference."""
    name = max(others, key=lambda name: others[name].value)
    return f"{own}; best other: {name} {others[name]}; ahead by {own - others[name]}"


def resampled_worlds(kinds: Sequence[str]) -> Floats:
    """(R, W) how often each of W worlds is drawn in each resampling. Each kind of world keeps its number of worlds."""
    rng = np.random.default_rng(0)
    weights = np.zeros((RESAMPLINGS, len(kinds)))
    for kind in dict.fromkeys(kinds):
        own = np.flatnonzero([other == kind for other in kinds])
        for row in weights:
            row[own] = np.bincount(rng.integers(len(own), size=len(own)), minlength=len(own))
    return weights


def judged(worlds: int, met: Sequence[bool] | np.ndarray) -> bool | None:
    """Whether a claim holds, from whether each resampling of so many worlds meets its rule; None if it cannot be told."""
    share = float(np.mean(met))
    if worlds < FEWEST_WORLDS or DOUBT < share < 1 - DOUBT:
        return None
    return share >= 1 - DOUBT


def judged_means(table: Floats, rule: Callable[[Floats], bool]) -> bool | None:
    """(..., W) numbers of W worlds: whether their means (...) over the worlds meet a rule; missing numbers are NaN."""
    worlds = table.shape[-1]
    return judged(worlds, [rule(means) for means in resampled_means(table)])


def resampled_means(table: Floats) -> Floats:
    """(..., W) -> (R, ...): the means over each resampling of the worlds; NaN where it has no number."""
    weights, known = resampled_worlds([""] * table.shape[-1]), ~np.isnan(table)
    totals = np.moveaxis(np.where(known, table, 0.0) @ weights.T, -1, 0)
    counts = np.moveaxis(known @ weights.T, -1, 0)
    return np.divide(totals, counts, where=counts > 0, out=np.full(totals.shape, np.nan))


def interval(samples: Floats) -> tuple[float, float]:
    """The 95 % percentile interval of the numbers that resamplings gave."""
    low, high = np.nanquantile(samples, [DOUBT, 1 - DOUBT])
    return float(low), float(high)
