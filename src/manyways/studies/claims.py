"""The paper's claims, one by one, held against rows. A claim that does not hold here is reported as such.

Each rule is fixed here, in words and in code, before any numbers are seen, and is the same for every method.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from manyways.studies.results import Results

CLEAR_TREND = 0.9
"""Rank correlation from which on means rise, or fall, along an axis."""
SLIGHT_LOSS = 0.15
"""'Slightly': up to this share of the optimal reward."""


@dataclass(frozen=True)
class Verdict:
    """One claim and what became of it.

    Attributes:
        claim: what the paper says.
        rule: when it counts as holding here.
        method: of which the numbers are.
        paper: the paper's number, where it gives one.
        here: this run's number.
        holds: whether the rule is met; None if this run cannot tell.
    """

    claim: str
    rule: str
    method: str
    paper: str
    here: str
    holds: bool | None


def methods(found: Results) -> list[Verdict]:
    numbers = {
        "reward": ("reward per policy", "13.24 against -39.02", 1),
        "diversity": ("diversity", "0.50 against 0.34", 1),
        "seconds": ("runtime", "26.90 s against 1488.76 s", -1),
    }
    verdicts = []
    for rival in ("projected-gradient", "projected-gradient-slsqp"):
        if rival not in found.methods() or "frank-wolfe" not in found.methods():
            continue
        for column, (name, paper, sign) in numbers.items():
            ours, theirs = (found.mean(column, method=method) for method in ("frank-wolfe", rival))
            verdicts.append(
                Verdict(
                    f"Frank-Wolfe has a better {name} than projected gradient ascent",
                    "the mean over trials is better",
                    f"frank-wolfe / {rival}",
                    paper,
                    f"{ours:.4g} against {theirs:.4g}",
                    bool(sign * ours > sign * theirs),
                )
            )
    return verdicts


def tradeoff(found: Results) -> list[Verdict]:
    verdicts = []
    for method in found.methods():
        values, diversity, _ = found.series("tradeoff", "diversity", method)
        _, reward, _ = found.series("tradeoff", "reward", method)
        _, optimal, _ = found.series("tradeoff", "optimal_reward", method)
        verdicts.append(_trend("Diversity grows with the tradeoff", values, diversity, method, 1))
        before = values < 8
        if not before.any() or not (values >= 8).any():
            continue
        loss = float(1 - (reward / optimal)[before].min())
        verdicts.append(
            Verdict(
                "Up to a tradeoff of about 8 the reward decreases slightly",
                f"below 8 the mean reward stays within {SLIGHT_LOSS:.0%} of the optimum",
                method,
                "",
                f"at most {loss:.1%} below",
                loss <= SLIGHT_LOSS,
            )
        )
        fall = -np.diff(reward) / np.diff(values)
        steepest = int(np.argmax(fall))
        usual = float(np.median(fall))
        verdicts.append(
            Verdict(
                "Around 8 the reward begins to fall sharply",
                "the steepest fall between neighbouring values lies between 6 and 10, and is at least three times the median fall",
                method,
                "8",
                f"steepest from {values[steepest]:g} to {values[steepest + 1]:g}: {fall[steepest]:.3g} per unit, median {usual:.3g}",
                bool(values[steepest] >= 6 and values[steepest + 1] <= 10 and fall[steepest] >= 3 * max(usual, 0.0)),
            )
        )
    return verdicts


def tradeoff_maps(found: Results) -> list[Verdict]:
    verdicts = []
    for method in found.methods():
        values, routes, _ = found.series("tradeoff", "distinct_routes", method)
        if len(values) > 1:
            verdicts.append(
                Verdict(
                    f"With a tradeoff of {values[-1]:g} the plans use more distinct doors than with {values[0]:g}",
                    "more distinct door combinations in this trial",
                    method,
                    "",
                    f"{routes[-1]:g} against {routes[0]:g}",
                    bool(routes[-1] > routes[0]),
                )
            )
    return verdicts


def set_size(found: Results) -> list[Verdict]:
    verdicts = []
    for method in found.methods():
        sizes, diversity, _ = found.series("k", "diversity", method)
        verdicts.append(_trend("A larger set lowers the mean pairwise diversity", sizes, diversity, method, -1))
        verdicts.extend(_routes_found(found, method, "on average over the trials"))
    return verdicts


def set_size_maps(found: Results) -> list[Verdict]:
    return [verdict for method in found.methods() for verdict in _routes_found(found, method, "in this trial")]


def _routes_found(found: Results, method: str, where: str) -> list[Verdict]:
    verdicts = []
    for k, expected, paper in ((4, 4.0, "4"), (6, 5.0, "5")):
        distinct = found.mean("distinct_routes", method=method, k=k)
        if np.isfinite(distinct):
            verdicts.append(
                Verdict(
                    f"k = {k} gives {'four' if k == 4 else 'about five'} distinct door combinations",
                    f"{where} within half a combination of {expected:g}, or more",
                    method,
                    paper,
                    f"{distinct:.3g}",
                    bool(distinct >= expected - 0.5),
                )
            )
    return verdicts


def transition(found: Results) -> list[Verdict]:
    verdicts = []
    for method in found.methods():
        values, diversity, _ = found.series("correct_transition", "diversity", method)
        if len(values) < 3:
            continue
        least = float(values[np.argmin(diversity)])
        verdicts.append(
            Verdict(
                "Diversity against the correct transition has its minimum near 0.8",
                "the smallest mean lies between 0.75 and 0.85",
                method,
                "0.8",
                f"{least:g} (diversity {diversity.min():.3f})",
                bool(0.75 - 1e-9 <= least <= 0.85 + 1e-9),
            )
        )
        verdicts.append(
            Verdict(
                "At low values plans are stationary: near-maximal diversity, low reward",
                "at the lowest value the mean diversity is above 0.65 (the maximum is ln 2 = 0.693)",
                method,
                "",
                f"{diversity[0]:.3f} at {values[0]:g}",
                bool(diversity[0] > 0.65),
            )
        )
    return verdicts


def theory(found: Results) -> list[Verdict]:
    verdicts = []
    for method, name in (
        ("frank-wolfe", "Theorem 2: the Frank-Wolfe gap"),
        ("projected-gradient", "Theorem 1: the gradient mapping"),
    ):
        rows = [row for row in found.good if row["method"] == method]
        if rows:
            share = max(float(np.max(np.array(row["measured"]) / np.array(row["bound"]))) for row in rows)
            verdicts.append(
                Verdict(
                    f"{name} stays below its bound for every T",
                    "in every trial and at every iteration",
                    method,
                    "at most 1",
                    f"at most {share:.3g} of the bound",
                    bool(share <= 1),
                )
            )
    return verdicts


def _trend(claim: str, values: np.ndarray, means: np.ndarray, method: str, sign: int) -> Verdict:
    if len(values) < 3:
        return Verdict(claim, "", method, "", "too few values to tell", None)
    rank = float(np.corrcoef(_ranks(values), _ranks(means))[0, 1]) if np.ptp(means) > 0 else 0.0
    return Verdict(
        claim,
        f"the rank correlation of means is {'at least' if sign > 0 else 'at most'} {sign * CLEAR_TREND:g}",
        method,
        "",
        f"{rank:.2f}; from {means[0]:.3f} to {means[-1]:.3f}",
        bool(sign * rank >= CLEAR_TREND),
    )


def _ranks(numbers: np.ndarray) -> np.ndarray:
    """Equal numbers share the mean of their ranks."""
    _, place, counts = np.unique(numbers, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[place]
