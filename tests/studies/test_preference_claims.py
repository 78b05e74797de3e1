"""The rules of the preference study, on made-up rows."""

from __future__ import annotations

import numpy as np
import pytest

from manyways.studies.contestants import FRANK_WOLFE, REPRESENTATIVE
from manyways.studies.preference_claims import round_claims, set_claims
from manyways.studies.results import Results

FAMILIES = ["smooth-4", "smooth-12", "smooth-40", "spots"]


def sets(shares: dict[str, list[float]], noise: float = 0.0, worlds: int = 8) -> Results:
    """Each set with its share of the possible gain, which is 1, for each of the families."""
    rng = np.random.default_rng(0)
    rows = []
    for number in range(worlds):
        shared = {"source": f"a:{number}", "error": None}
        ones = [1.0] * len(FAMILIES)
        who = {"family": FAMILIES, "strength": ones, "unit": 1.0}
        rows.append(shared | who | {"possible": ones, "possible_within": ones})
        for name, own in shares.items():
            gain = (np.array(own) + noise * rng.standard_normal(len(own))).tolist()
            rows.append(shared | {"contestant": name, "k": 4, "gain": gain})
    return Results("sets", rows)


def verdicts(found: Results, words: str) -> list[bool | None]:
    """Of all plans, and of the plans within the slack."""
    return [verdict.holds for verdict in set_claims(found) if words in verdict.claim]


@pytest.mark.parametrize(
    ("others", "noise", "expected"),
    [
        ({"near": [0.4] * 4, "k-best": [0.1] * 4}, 0.01, [True, True]),
        ({"near": [0.4] * 4, "k-best": [0.7] * 4}, 0.01, [False, False]),
        ({"near": [0.4] * 4, FRANK_WOLFE: [0.7] * 4}, 0.01, [False, True]),
        ({"near": [0.49] * 4}, 0.2, [None, None]),
        ({"near": [0.4, 0.4, 0.4, 0.9]}, 0.01, [True, True]),
    ],
)
def test_more_than_every_other_set_for_smooth_preferences(others, noise, expected):
    """A set without limits is a rival only where all plans count."""
    assert verdicts(sets({REPRESENTATIVE: [0.5] * 4} | others, noise), "recover more") == expected


@pytest.mark.parametrize(
    ("other", "noise", "expected"), [(0.53, 0.005, True), (0.57, 0.005, False), (0.55, 0.1, None), (0.1, 0.05, True)]
)
def test_not_far_behind_for_any_family(other, noise, expected):
    found = sets({REPRESENTATIVE: [0.5] * 4, "near": [0.5, 0.5, 0.5, other]}, noise)
    assert verdicts(found, "For spots preferences") == [expected] * 2


def test_four_worlds_are_too_few():
    found = sets({REPRESENTATIVE: [0.5] * 4, "near": [0.1] * 4}, worlds=4)
    assert {verdict.holds for verdict in set_claims(found)} == {None}


def test_the_best_other_set_is_named():
    found = set_claims(sets({REPRESENTATIVE: [0.5] * 4, "near": [0.25] * 4, "k-best": [0.0] * 4}))
    assert found[0].here == "0.50 [0.50, 0.50]; best other: near 0.25 [0.25, 0.25]; ahead by 0.25 [0.25, 0.25]"


@pytest.mark.parametrize(("third", "noise", "expected"), [(0.8, 0.01, True), (0.7, 0.01, False), (0.75, 0.1, None)])
def test_the_third_round(third, noise, expected):
    rng = np.random.default_rng(0)
    base = {"error": None, "rounds": 3, "unit": 1.0, "family": FAMILIES, "strength": [1.0] * 4, "chooser": "exact"}
    low = [0.1] * 4
    rows = [
        base
        | {"source": f"a:{number}", "possible": [2.0] * 4, "possible_within": [1.0] * 4, "round_1": low, "round_2": low}
        | {"round_3": (third + noise * rng.standard_normal(4)).tolist()}
        for number in range(8)
    ]
    within, of_all = round_claims(Results("rounds", rows))
    assert within.holds is expected
    assert of_all.holds is False, "of all plans it is half as much"
    assert "exact answers" in within.claim


def test_without_rows_there_are_no_verdicts():
    failed = Results("sets", [{"source": "a", "error": "no"}])
    assert set_claims(failed) == round_claims(failed) == []
    two = {"source": "a", "error": None, "rounds": 2, "chooser": "exact", "unit": 1.0, "family": ["smooth-4"]}
    two |= {"strength": [1.0], "possible": [1.0], "possible_within": [1.0], "round_1": [0.1], "round_2": [0.2]}
    assert round_claims(Results("rounds", [two])) == []
