"""The paper's claims, each judged by the rows of a study. A claim that does not hold is reported as such.

The rule for each claim was fixed here, in words and in code, before any results were seen. It is the same for every
method. Rules on means over worlds have verdicts with uncertainty (`verdicts`). Rules on a single trial (the maps), or on
every trial (the theorems' bounds), need none.
"""

from __future__ import annotations

import numpy as np

from manyways.studies.results import Results
from manyways.studies.verdicts import Verdict, interval, judged_means, resampled_means
from manyways.types import Floats

CLEAR_TREND = 0.9
"""The least rank correlation, in absolute value, that counts as a rise or a fall along an axis."""
SLIGHT_LOSS = 0.15
"""The largest loss, as a share of the optimal reward, that counts as 'slight'."""


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
            pair = _in_common_worlds(found, column, ("frank-wolfe", rival))
            ours, theirs = pair.mean(axis=1)
            low, high = interval(np.subtract(*resampled_means(pair).T))
            verdicts.append(
                Verdict(
                    f"Frank-Wolfe has a better {name} than projected gradient ascent",
                    "the mean over worlds is better",
                    f"frank-wolfe / {rival}",
                    paper,
                    f"{ours:.4g} against {theirs:.4g}, a difference of {low:.3g} to {high:.3g}",
                    judged_means(pair, lambda means, sign=sign: bool(sign * means[0] > sign * means[1])),
                )
            )
    return verdicts


def _in_common_worlds(found: Results, column: str, methods: tuple[str, str]) -> Floats:
    """(2, W): a column for two methods in the worlds in which both have a row."""
    by_seed = [{row["seed"]: float(row[column]) for row in found.good if row["method"] == method} for method in methods]
    return np.array([[one[seed] for seed in by_seed[0] if seed in by_seed[1]] for one in by_seed])


def tradeoff(found: Results) -> list[Verdict]:
    """Diversity grows with the tradeoff; the reward falls slightly up to a tradeoff of about 8, and sharply there."""
    verdicts = []
    for method in found.methods():
        values, diversity = found.by_world("tradeoff", "diversity", method)
        _, reward = found.by_world("tradeoff", "reward", method)
        _, optimal = found.by_world("tradeoff", "optimal_reward", method)
        verdicts.append(_trend("Diversity grows with the tradeoff", values, diversity, method, 1))
        before = values < 8
        if not before.any() or not (values >= 8).any():
            continue
        both = np.stack([reward[before], optimal[before]])
        verdicts.append(
            Verdict(
                "Up to a tradeoff of about 8 the reward decreases slightly",
                f"below 8 the mean reward stays within {SLIGHT_LOSS:.0%} of the optimum",
                method,
                "",
                f"at most {_loss(np.nanmean(both, axis=-1)):.1%} below",
                judged_means(both, lambda means: _loss(means) <= SLIGHT_LOSS),
            )
        )
        means = np.nanmean(reward, axis=1)
        steepest, fall, usual = _steepest(values, means)
        verdicts.append(
            Verdict(
                "Around 8 the reward begins to fall sharply",
                "the steepest fall between neighbouring values lies between 6 and 10, and is at least three times the median fall",
                method,
                "8",
                f"steepest from {values[steepest]:g} to {values[steepest + 1]:g}: {fall:.3g} per unit, median {usual:.3g}",
                judged_means(reward, lambda means, values=values: _falls_around_eight(values, means)),
            )
        )
    return verdicts


def _loss(means: Floats) -> float:
    """(2, V) mean rewards and mean optimal rewards -> the largest loss, as a share of the optimal reward."""
    return float(1 - (means[0] / means[1]).min())


def _steepest(values: Floats, reward: Floats) -> tuple[int, float, float]:
    """Where the reward falls most per unit of the axis, by how much, and the median fall."""
    fall = -np.diff(reward) / np.diff(values)
    return int(np.argmax(fall)), float(fall.max()), float(np.median(fall))


def _falls_around_eight(values: Floats, reward: Floats) -> bool:
    steepest, fall, usual = _steepest(values, reward)
    return bool(values[steepest] >= 6 and values[steepest + 1] <= 10 and fall >= 3 * max(usual, 0.0))


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
        sizes, diversity = found.by_world("k", "diversity", method)
        verdicts.append(_trend("A larger set lowers the mean pairwise diversity", sizes, diversity, method, -1))
        sizes, routes = found.by_world("k", "distinct_routes", method)
        for k, expected in ROUTES.items():
            if k in sizes:
                own = routes[sizes == k]
                low, high = interval(resampled_means(own))
                here = f"{np.nanmean(own):.3g}, between {low:.3g} and {high:.3g}"
                met = judged_means(own, lambda means, least=expected - 0.5: bool(means[0] >= least))
                verdicts.append(_routes_verdict(k, "on average over the worlds", method, here, met))
    return verdicts


def set_size_maps(found: Results) -> list[Verdict]:
    """Four plans use four door combinations, six about five, in the one trial of the maps."""
    verdicts = []
    for method in found.methods():
        for k, expected in ROUTES.items():
            distinct = found.mean("distinct_routes", method=method, k=k)
            if np.isfinite(distinct):
                met = bool(distinct >= expected - 0.5)
                verdicts.append(_routes_verdict(k, "in this trial", method, f"{distinct:.3g}", met))
    return verdicts


ROUTES = {4: 4.0, 6: 5.0}
"""The number of door combinations that the paper found, by k."""


def _routes_verdict(k: int, where: str, method: str, here: str, met: bool | None) -> Verdict:
    return Verdict(
        f"k = {k} gives {'four' if k == 4 else 'about five'} distinct door combinations",
        f"the number of distinct combinations {where} is at least {ROUTES[k] - 0.5:g}",
        method,
        f"{ROUTES[k]:g}",
        here,
        met,
    )


def transition(found: Results) -> list[Verdict]:
    """Diversity is smallest at a correct transition near 0.8, and near its maximum at low values."""
    verdicts = []
    for method in found.methods():
        values, diversity = found.by_world("correct_transition", "diversity", method)
        if len(values) < 3:
            continue
        means = np.nanmean(diversity, axis=1)
        where = values[resampled_means(diversity).argmin(axis=1)]
        verdicts.append(
            Verdict(
                "Diversity as a function of the correct transition has its minimum near 0.8",
                "the smallest mean lies between 0.75 and 0.85",
                method,
                "0.8",
                f"{values[means.argmin()]:g}, between {where.min():g} and {where.max():g} (diversity {means.min():.3f})",
                judged_means(
                    diversity, lambda means, values=values: bool(abs(values[means.argmin()] - 0.8) < 0.05 + 1e-9)
                ),
            )
        )
        low, high = interval(resampled_means(diversity[:1]))
        verdicts.append(
            Verdict(
                "At low values the plans are stationary: near-maximal diversity, low reward",
                "at the lowest value the mean diversity is above 0.65 (the maximum is ln 2 = 0.693)",
                method,
                "",
                f"{means[0]:.3f}, between {low:.3f} and {high:.3f}, at {values[0]:g}",
                judged_means(diversity[:1], lambda means: bool(means[0] > 0.65)),
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


def _trend(claim: str, values: Floats, table: Floats, method: str, sign: int) -> Verdict:
    """Whether the means of (V, W) numbers rise or fall along an axis."""
    rule = f"the rank correlation of means is {'at least' if sign > 0 else 'at most'} {sign * CLEAR_TREND:g}"
    if len(values) < 3:
        return Verdict(claim, rule, method, "", "too few values to tell", None)
    means = np.nanmean(table, axis=1)
    here = f"{_rank_correlation(values, means):.2f}; from {means[0]:.3f} to {means[-1]:.3f}"
    met = judged_means(table, lambda means: sign * _rank_correlation(values, means) >= CLEAR_TREND)
    return Verdict(claim, rule, method, "", here, met)


def _rank_correlation(values: Floats, means: Floats) -> float:
    if not np.ptp(means) > 0:  # undefined if all means are equal
        return 0.0
    from scipy.stats import rankdata  # slow to load

    return float(np.corrcoef(rankdata(values), rankdata(means))[0, 1])
