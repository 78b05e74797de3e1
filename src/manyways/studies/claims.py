"""The paper's claims, each judged by the rows of a study. A claim that does not hold is reported as such.

The rule for each claim was fixed here, in words and in code, before any results were seen. It is the same for every
method.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from manyways.studies.results import Results

CLEAR_TREND = 0.9
"""The least rank correlation, in absolute value, that counts as a rise or a fall along an axis."""
SLIGHT_LOSS = 0.15
"""The largest loss, as a share of the optimal reward, that counts as 'slight'."""


@dataclass(frozen=True)
class Verdict:
    """The judgement of one claim.

    Attributes:
        claim: what the paper says.
        rule: the condition under which the claim holds.
        method: the method whose rows were used.
        paper: the paper's number, or an empty string if it gives none.
        here: this run's number.
        holds: whether the rule is met; None if there are too few rows to decide.
    """

    claim: str
    rule: str
    method: str
    paper: str
    here: str
    holds: bool | None


def methods(found: Results) -> list[Verdict]:
    """Frank-Wolfe has a higher reward, a higher diversity and a lower runtime than projected gradient ascent."""
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
    """Diversity grows with the tradeoff; the reward falls slightly up to a tradeoff of about 8, and sharply there."""
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
    """The plans for the larger tradeoff use more door combinations."""
    verdicts = []
    for method in found.methods():
        values, routes, _ = found.series("tradeoff", "distinct_routes", method)
        if len(values) > 1:
            verdicts.append(
                Verdict(
                    f"With a tradeoff of {values[-1]:g} the plans use more distinct doors than with {values[0]:g}",
                    "there are more distinct door combinations in this trial",
                    method,
                    "",
                    f"{routes[-1]:g} against {routes[0]:g}",
                    bool(routes[-1] > routes[0]),
                )
            )
    return verdicts


def set_size(found: Results) -> list[Verdict]:
    """Mean pairwise diversity falls as the set grows; four plans use four door combinations, six about five."""
    verdicts = []
    for method in found.methods():
        sizes, diversity, _ = found.series("k", "diversity", method)
        verdicts.append(_trend("A larger set lowers the mean pairwise diversity", sizes, diversity, method, -1))
        verdicts.extend(_routes_found(found, method, "on average over the trials"))
    return verdicts


def set_size_maps(found: Results) -> list[Verdict]:
    """Four plans use four door combinations, six about five, in the one trial of the maps."""
    return [verdict for method in found.methods() for verdict in _routes_found(found, method, "in this trial")]


def _routes_found(found: Results, method: str, where: str) -> list[Verdict]:
    verdicts = []
    for k, expected, paper in ((4, 4.0, "4"), (6, 5.0, "5")):
        distinct = found.mean("distinct_routes", method=method, k=k)
        if np.isfinite(distinct):
            verdicts.append(
                Verdict(
                    f"k = {k} gives {'four' if k == 4 else 'about five'} distinct door combinations",
                    f"the number of distinct combinations {where} is at least {expected - 0.5:g}",
                    method,
                    paper,
                    f"{distinct:.3g}",
                    bool(distinct >= expected - 0.5),
                )
            )
    return verdicts


def transition(found: Results) -> list[Verdict]:
    """Diversity is smallest at a correct transition near 0.8, and near its maximum at low values."""
    verdicts = []
    for method in found.methods():
        values, diversity, _ = found.series("correct_transition", "diversity", method)
        if len(values) < 3:
            continue
        least = float(values[np.argmin(diversity)])
        verdicts.append(
            Verdict(
                "Diversity as a function of the correct transition has its minimum near 0.8",
                "the smallest mean lies between 0.75 and 0.85",
                method,
                "0.8",
                f"{least:g} (diversity {diversity.min():.3f})",
                bool(0.75 - 1e-9 <= least <= 0.85 + 1e-9),
            )
        )
        verdicts.append(
            Verdict(
                "At low values the plans are stationary: near-maximal diversity, low reward",
                "at the lowest value the mean diversity is above 0.65 (the maximum is ln 2 = 0.693)",
                method,
                "",
                f"{diversity[0]:.3f} at {values[0]:g}",
                bool(diversity[0] > 0.65),
            )
        )
    return verdicts


def theory(found: Results) -> list[Verdict]:
    """Both theorems' bounds hold at every iteration."""
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
                    "the measured value is at most the bound in every trial and at every iteration",
                    method,
                    "at most 1",
                    f"at most {share:.3g} of the bound",
                    bool(share <= 1),
                )
            )
    return verdicts


def _trend(claim: str, values: np.ndarray, means: np.ndarray, method: str, sign: int) -> Verdict:
    rule = f"the rank correlation of means is {'at least' if sign > 0 else 'at most'} {sign * CLEAR_TREND:g}"
    if len(values) < 3:
        return Verdict(claim, rule, method, "", "too few values to tell", None)
    from scipy.stats import spearmanr  # slow to load

    # Undefined if all means are equal.
    rank = float(spearmanr(values, means).statistic) if np.ptp(means) > 0 else 0.0  # pyright: ignore[reportAttributeAccessIssue]
    here = f"{rank:.2f}; from {means[0]:.3f} to {means[-1]:.3f}"
    return Verdict(claim, rule, method, "", here, bool(sign * rank >= CLEAR_TREND))
