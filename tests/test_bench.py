"""The benchmarks run, measure what they say, and their stand-ins for others are right."""

import json

import numpy as np
import pytest

import manyways as mw
from manyways import bench
from manyways.polytope import Polytope


def test_the_cold_linear_program_finds_what_best_finds():
    mdp = mw.tiled_rooms(12)
    assert bench.cold_lp(mdp, mdp.reward) @ mdp.reward == pytest.approx(
        Polytope(mdp).optimum.value, rel=1e-5
    )  # HiGHS' own tolerance


def test_algorithm_2_with_cold_programs_ends_no_higher_than_the_default():
    mdp = mw.four_rooms(0)
    reached = bench.literal_frank_wolfe(mdp, 2, 8.0, seed=0)
    assert 0.9 * mw.plan(mdp, 2, 8.0).objective < reached <= mw.plan(mdp, 2, 8.0).objective


def test_the_fastest_of_each_is_taken():
    calls = []
    times = bench.fastest(lambda: calls.append("a"), lambda: calls.append("b"), rounds=3)
    assert calls == ["a", "b"] * 3
    assert len(times) == 2
    assert all(seconds >= 0 for seconds in times)


def test_results_are_written_with_table_plot_and_data(tmp_path):
    shown: list[str] = []
    results = bench.run(["others", "growth", "memory"], [9, 12], tmp_path, shown.append)
    assert len(shown) == 3
    assert json.loads((tmp_path / "results.json").read_text()).keys() == results.keys()
    report = (tmp_path / "RESULTS.md").read_text()
    assert "manyways bench others growth memory --sizes 9,12" in report
    assert all(table in report for table in shown)
    assert (tmp_path / "growth.png").read_bytes().startswith(b"\x89PNG")
    assert [row["choices"] for row in results["growth"]] == [mw.tiled_rooms(n).n_choices for n in (9, 12)]
    assert np.isfinite(results["growth"][1]["cold exponent"])
    assert all(row["HiGHS cold / best cold"] > 0 for row in results["others"])
    assert all(row["peak of one best, MiB"] > 50 for row in results["memory"])
