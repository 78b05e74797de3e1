"""The benchmarks run and measure what they say, and the algorithms that they compare with are correct."""

import json
import re

import numpy as np
import pytest
import typer

import manyways as mw
from manyways import bench
from manyways.bench import models, rivals
from manyways.bench.timing import fastest
from manyways.cli.program import app
from manyways.formats.writer import write_model
from manyways.polytope import Polytope


def test_the_cold_linear_program_finds_what_best_finds():
    mdp = mw.tiled_rooms(12)
    assert rivals.cold_lp(mdp, mdp.reward) @ mdp.reward == pytest.approx(
        Polytope(mdp).optimum.value, rel=1e-5
    )  # HiGHS' own tolerance


def test_algorithm_2_with_cold_programs_ends_no_higher_than_the_default():
    mdp = mw.four_rooms(0)
    reached = rivals.literal_frank_wolfe(mdp, 2, 8.0, seed=0)
    assert 0.9 * mw.plan(mdp, 2, 8.0).objective < reached <= mw.plan(mdp, 2, 8.0).objective


def test_the_fastest_of_each_is_taken():
    calls = []
    times = fastest(lambda: calls.append("a"), lambda: calls.append("b"), rounds=3)
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


def test_the_help_names_every_benchmark():
    command = typer.main.get_command(app).commands["bench"]  # pyright: ignore[reportAttributeAccessIssue]
    said = next(one.help for one in command.params if one.name == "parts")
    assert re.findall(r"\w+", said.removeprefix("Any of: ").partition(";")[0]) == list(bench.PARTS)


def test_reading_is_measured_for_every_format_and_size(monkeypatch):
    pytest.importorskip("yaml")
    pytest.importorskip("PIL")
    monkeypatch.setattr("manyways.bench.measurements.REPEATS", 1)
    rows = bench.PARTS["reading"].run([12, 24])
    sizes = dict.fromkeys(("drn", "tra", "npz"), (12, 24)) | dict.fromkeys(("map", "yaml"), (6, 12, 24))
    assert [row["file"] for row in rows] == [
        f"{'map' if len(those) == 3 else 'model'}-{n}.{name}" for name, those in sizes.items() for n in those
    ]
    assert all(row["s"] > 0 and row["choices"] > 0 for row in rows)
    assert rows[1]["choices"] == 4 * 24 * 24
    assert rows[1]["choices / choices before"] == 4
    assert all(row["then Polytope and best, s"] > 0 for row in rows if row["file"].startswith("map"))


@pytest.mark.parametrize("side", [6, 64])
def test_both_maps_of_the_benchmark_are_the_same_world_in_one_piece(tmp_path, side):
    pytest.importorskip("yaml")
    pytest.importorskip("PIL")
    blocked = models.obstacles(side)
    octile, robot = (mw.read(source) for source in models.write_maps(blocked, tmp_path / "map"))
    assert octile.digest == robot.digest
    assert octile.n_states == (~blocked).sum()
    assert 0 < blocked.mean() < 0.9
    assert Polytope(octile).best(octile.reward).value > 0, "the goal can be reached from everywhere"


def test_the_model_of_the_benchmark_is_the_same_in_every_format(tmp_path):
    model = models.scattered_model(100)
    assert (model.n_choices, model.transitions.nnz) == (400, 1600)
    for ending in (".drn", ".tra", ".npz"):
        write_model(model, tmp_path / f"model{ending}")
        assert mw.read(tmp_path / f"model{ending}").digest == model.digest


def test_reading_of_tables(monkeypatch):
    monkeypatch.setattr("manyways.bench.measurements.REPEATS", 1)
    (row,) = bench.PARTS["tables"].run([12])
    assert row["rows"] == 16 * 144
    assert row["table / (.npz + pandas)"] > 0


def test_the_search_is_judged_by_the_best_known_value():
    rows = bench.PARTS["sure"].run([19])
    assert [row["search"] for row in rows] == ["default", "search of 0.1.0"] * 2
    assert all(0.9 < row["worst"] <= row["mean of best known"] <= 1 for row in rows)
    assert all(row["runs more than 0.05 % below 0.1.0"] == 0 for row in rows[1::2])
