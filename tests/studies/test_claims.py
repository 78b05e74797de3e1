"""Claims can hold and can fail."""

import numpy as np
import pytest

from manyways.studies import claims
from manyways.studies.results import Results
from manyways.studies.verdicts import Verdict

WORLDS = 6


def rows_of(axis: str, column: str, numbers: dict[float, float], noise: float = 0.0, **more: object) -> Results:
    """Rows of six worlds in which the numbers differ by about the noise."""
    base = {"method": "m", "error": None, "optimal_reward": 10.0, "reward": 9.0, "diversity": 0.5, "distinct_routes": 3}
    rng = np.random.default_rng(0)
    return Results(
        "study",
        [
            base | more | {axis: value, column: number + noise * rng.standard_normal(), "seed": seed}
            for value, number in numbers.items()
            for seed in range(WORLDS)
        ],
    )


def verdict(verdicts: list[Verdict], words: str) -> bool | None:
    (found,) = [v for v in verdicts if words in v.claim]
    return found.holds


@pytest.mark.parametrize(
    ("diversity", "expected"), [([0.1, 0.2, 0.3, 0.4], True), ([0.4, 0.1, 0.2, 0.1], False), ([0.2] * 4, False)]
)
def test_diversity_grows(diversity, expected):
    found = rows_of("tradeoff", "diversity", dict(zip([0.0, 2.0, 4.0, 9.0], diversity, strict=True)))
    assert verdict(claims.tradeoff(found), "Diversity grows") is expected


@pytest.mark.parametrize(
    ("rewards", "slight", "sharp"),
    [
        ([10, 9.9, 9.8, 9.7, 5, 4.9], True, True),
        ([10, 5, 4.9, 4.8, 4.7, 4.6], False, False),
        ([10, 9.9, 9.8, 9.7, 9.6, 9.5], True, False),
    ],
)
def test_reward_falls_around_eight(rewards, slight, sharp):
    found = rows_of("tradeoff", "reward", dict(zip([0.0, 2.0, 4.0, 7.0, 9.0, 12.0], rewards, strict=True)))
    verdicts = claims.tradeoff(found)
    assert verdict(verdicts, "decreases slightly") is slight
    assert verdict(verdicts, "fall sharply") is sharp


@pytest.mark.parametrize(("at_four", "expected"), [(4, True), (3.6, True), (3.4, False)])
def test_routes_per_set_size(at_four, expected):
    found = rows_of("k", "distinct_routes", {2: 2, 4: at_four, 6: 5})
    assert verdict(claims.set_size(found), "k = 4 gives four") is expected
    assert verdict(claims.set_size_maps(found), "k = 4 gives four") is expected
    assert verdict(claims.set_size_maps(found), "k = 6 gives about five") is True


@pytest.mark.parametrize(("least", "expected"), [(0.8, True), (0.5, False)])
def test_the_least_diversity_near_point_eight(least, expected):
    numbers = {value: 0.1 if value == least else 0.68 for value in (0.5, 0.8, 1.0)}
    found = rows_of("correct_transition", "diversity", numbers)
    assert verdict(claims.transition(found), "minimum near 0.8") is expected
    assert verdict(claims.transition(found), "At low values") is expected


def test_frank_wolfe_against_projected_gradient():
    ours = {"method": "frank-wolfe", "reward": 2.0, "diversity": 0.1, "seconds": 3.0, "error": None}
    theirs = ours | {"method": "projected-gradient", "reward": 1.0, "diversity": 0.2, "seconds": 4.0}
    rows = [row | {"seed": seed} for seed in range(5) for row in (ours, theirs)]
    verdicts = claims.methods(Results("methods", rows))
    assert [v.holds for v in verdicts] == [True, False, True]
    assert verdicts[0].here == "2 against 1, a difference of 1 to 1"
    assert [v.holds for v in claims.methods(Results("methods", rows[:8]))] == [None] * 3, "four worlds are too few"


def test_frank_wolfe_is_compared_in_the_same_worlds():
    """The difference is 0.1 in every world, and small against the differences between worlds."""
    rows = [
        {"method": method, "reward": 10.0 * seed + more, "diversity": 0.1, "seconds": 1.0, "error": None, "seed": seed}
        for seed in range(6)
        for method, more in (("frank-wolfe", 0.1), ("projected-gradient", 0.0))
    ]
    rows.append(rows[1] | {"seed": 99, "reward": 1e6})
    assert [v.holds for v in claims.methods(Results("methods", rows))] == [True, False, False]


@pytest.mark.parametrize(("noise", "expected"), [(0.001, True), (0.05, None)])
def test_noise_decides_whether_the_least_diversity_can_be_told(noise, expected):
    numbers = {0.5: 0.69, 0.6: 0.69, 0.7: 0.6, 0.8: 0.5, 0.9: 0.51, 1.0: 0.53}
    found = rows_of("correct_transition", "diversity", numbers, noise)
    assert verdict(claims.transition(found), "minimum near 0.8") is expected


@pytest.mark.parametrize(("measured", "expected"), [([2.0, 1.0], True), ([2.0, 1.6], False)])
def test_a_bound_that_is_broken_is_noticed(measured, expected):
    rows = [{"method": "frank-wolfe", "measured": measured, "bound": [2.0, 1.5], "error": None}]
    assert [v.holds for v in claims.theory(Results("theory", rows))] == [expected]


def test_equal_means_share_their_rank():
    """The rank correlation of 1, 2, 3, 4 and 1, 2.5, 2.5, 4 is 0.9487, which counts as a trend."""
    found = rows_of("tradeoff", "diversity", dict(zip([0.0, 2.0, 4.0, 9.0], [0.1, 0.2, 0.2, 0.3], strict=True)))
    (trend,) = [v for v in claims.tradeoff(found) if "Diversity grows" in v.claim]
    assert trend.holds
    assert trend.here == "0.95; from 0.100 to 0.300"


def test_two_values_are_too_few_for_a_trend():
    found = rows_of("k", "diversity", {2: 0.5, 4: 0.4})
    (trend,) = [v for v in claims.set_size(found) if "lowers" in v.claim]
    assert trend.holds is None
    assert trend.rule == "the rank correlation of means is at most -0.9"
