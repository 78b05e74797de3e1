"""The share of the possible gain, against loops over persons."""

from __future__ import annotations

import numpy as np
import pytest

from manyways.studies.contestants import FRANK_WOLFE, REPRESENTATIVE
from manyways.studies.results import Results
from manyways.studies.shares import ALL, WITHIN, Shares, shares_of_rounds, shares_of_sets
from manyways.studies.verdicts import mean_estimate, resampled_worlds

SOURCES = ["a:0", "a:1", "a:2", "b:0", "c"]
CELLS = [(family, strength) for family in ("smooth-4", "spots") for strength in (0.1, 1.0) for _ in range(3)]


@pytest.fixture
def made_up() -> Results:
    """Rows of five worlds; in c, nobody has spots."""
    rng = np.random.default_rng(0)
    rows = []
    for source in SOURCES:
        cells = [cell for cell in CELLS if source != "c" or cell[0] != "spots"]
        possible = rng.uniform(1, 4, len(cells)).tolist()
        shared = {"source": source, "error": None, "persons": 3}
        who = {"family": [family for family, _ in cells], "strength": [strength for _, strength in cells]}
        rows.append(shared | who | {"unit": 2.0, "possible": possible, "possible_within": [p / 2 for p in possible]})
        for name in (REPRESENTATIVE, "near", FRANK_WOLFE):
            gain = (np.array(possible) * rng.uniform(-0.2, 0.4, len(cells))).tolist()
            rows.append(shared | {"contestant": name, "k": 2, "gain": gain, "worst_plan": 0.9, "seconds": 1.0})
    return Results("sets", rows)


def shares_of(found: Results) -> Shares:
    shares = shares_of_sets(found)
    assert shares is not None
    return shares


def brute_force(found: Results, name: str, family: str, drawn: list[str]) -> float:
    """The mean over strengths of the ratio of sums, of all plans."""
    ratios = []
    for strength in (0.1, 1.0):
        got = possible = 0.0
        for source in drawn:
            people = next(row for row in found.rows if row["source"] == source and "possible" in row)
            own = next(row for row in found.rows if row["source"] == source and row.get("contestant") == name)
            for i in range(len(people["family"])):
                if (people["family"][i], people["strength"][i]) == (family, strength):
                    got += own["gain"][i]
                    possible += people["possible"][i]
        ratios.append(got / possible)
    return float(np.mean(ratios))


@pytest.mark.parametrize("name", [REPRESENTATIVE, "near"])
@pytest.mark.parametrize("family", ["smooth-4", "spots"])
def test_a_share_is_a_ratio_of_sums_per_cell(made_up, name, family):
    share = shares_of(made_up).of((name, 2), [family], ALL)
    assert share.value == pytest.approx(brute_force(made_up, name, family, SOURCES))
    weights = resampled_worlds(["a", "a", "a", "b", "c"])
    for i in range(20):
        drawn = [source for source, count in zip(SOURCES, weights[i], strict=True) for _ in range(int(count))]
        assert share.samples[i] == pytest.approx(brute_force(made_up, name, family, drawn))


def test_families_are_averaged(made_up):
    shares = shares_of(made_up)
    both = shares.of(("near", 2), ["smooth-4", "spots"], ALL)
    apart = [shares.of(("near", 2), [family], ALL) for family in ("smooth-4", "spots")]
    assert both.value == pytest.approx(mean_estimate(apart).value)
    assert both.samples == pytest.approx(mean_estimate(apart).samples)


def test_the_best_plan_within_the_slack_is_the_best_that_any_limited_set_found(made_up):
    for row in made_up.rows:
        if row.get("contestant") == FRANK_WOLFE:
            row["gain"] = [9.0] * len(row["gain"])
    row = next(row for row in made_up.rows if row.get("contestant") == "near")
    row["gain"][0] = 5.0
    possible = shares_of(made_up).possible[WITHIN]
    assert possible[0] == 5.0 / 2, "in units"
    assert possible[1] == made_up.rows[0]["possible_within"][1] / 2


def test_cells_with_next_to_nothing_to_gain_are_left_out(made_up):
    for row in made_up.rows:
        if "possible" in row:
            tiny = np.array(row["strength"]) == 0.1
            row["possible"] = np.where(tiny, 1e-3, row["possible"]).tolist()
    shares = shares_of(made_up)
    got, possible = shares.gains["near", 2], shares.possible[ALL]
    counted = (shares.family == "spots") & (shares.strength == 1.0)
    share = shares.of(("near", 2), ["spots"], ALL)
    assert share.value == pytest.approx(got[counted].sum() / possible[counted].sum())
    assert not shares.counts(["walls"], ALL)
    assert np.isnan(shares.of(("near", 2), ["walls"], ALL).value)


def test_the_worst_tenth(made_up):
    shares = shares_of(made_up)
    people = sorted(
        (got / possible, got, possible)
        for got, possible, family in zip(shares.gains["near", 2], shares.possible[ALL], shares.family, strict=True)
        if family == "smooth-4"
    )
    worst = people[: len(people) // 10]
    assert len(worst) == 3
    expected = sum(got for _, got, _ in worst) / sum(possible for *_, possible in worst)
    assert shares.worst_tenth(("near", 2), ["smooth-4"], ALL) == pytest.approx(expected)


def test_a_world_with_a_failed_trial_is_left_out(made_up):
    made_up.rows.append({"source": "a:1", "contestant": "near", "k": 2, "error": "MemoryError: "})
    assert shares_of(made_up).worlds == ["a:0", "a:2", "b:0", "c"]
    assert shares_of_sets(Results("sets", [row | {"error": "no"} for row in made_up.rows])) is None


def test_shares_of_rounds():
    base = {"error": None, "rounds": 2, "unit": 4.0, "family": ["smooth-4"] * 2, "strength": [0.4] * 2}
    rows = [
        base
        | {"source": source, "chooser": chooser, "possible": [8.0, 4.0], "possible_within": [4.0, 4.0]}
        | {"round_1": [2.0, low], "round_2": [4.0, 6.0]}
        for source in ("a:0", "a:1")
        for chooser, low in (("exact", 1.0), ("noisy", -1.0))
    ]
    shares = shares_of_rounds(Results("rounds", rows))
    assert shares is not None
    assert shares.of(("exact", 1), ["smooth-4"], ALL).value == pytest.approx(3 / 12)
    assert shares.of(("noisy", 1), ["smooth-4"], ALL).value == pytest.approx(1 / 12)
    assert shares.of(("exact", 2), ["smooth-4"], WITHIN).value == pytest.approx(10 / 10), (
        "6 is possible, as somebody got it"
    )
    failed = [*rows, rows[0] | {"source": "a:1", "error": "no"}]
    assert shares_of_rounds(Results("rounds", failed)).worlds == ["a:0"]
    assert shares_of_rounds(Results("rounds", failed[-1:])) is None
