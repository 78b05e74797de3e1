"""Sweeps and their knees."""

import csv
from dataclasses import dataclass

import numpy as np
import pytest
from small_studies import timeless

import manyways as mw
from manyways.errors import SettingError
from manyways.methods import METHODS, Status, Trace
from manyways.studies.store import FILE
from manyways.studies.sweeps import _knee, load_sweep
from shared import DATA


def test_the_knee_of_a_bent_curve():
    assert _knee(np.array([0.0, 0.5, 0.6]), np.array([10.0, 9.5, 0.0])) == 1
    assert _knee(np.array([0.0, 0.5, 1.0]), np.array([10.0, 5.0, 0.0])) is None, "a straight line has none"
    assert _knee(np.array([0.0, 0.5]), np.array([10.0, 0.0])) is None
    assert _knee(np.array([0.5, 0.5, 0.5]), np.array([1.0, 1.0, 1.0])) is None


def test_a_sweep_over_a_world_file(tmp_path):
    world = DATA / "worlds" / "four-rooms-100.json"
    found = mw.sweep(world, tradeoff=[0, 4, 8, 16], k=[2, 3], seeds=2, out=tmp_path, workers=1)
    assert len(found.rows) == 16
    tradeoffs, diversity, _ = found.curve(2)
    assert tradeoffs.tolist() == [0, 4, 8, 16]
    assert diversity[-1] >= diversity[0]
    assert {path.name for path in tmp_path.iterdir()} == {FILE, "sweep.csv", "sweep.png", "sweep.svg"}
    with (tmp_path / "sweep.csv").open() as file:
        assert [float(line["objective"]) for line in csv.DictReader(file)] == [row["objective"] for row in found.rows]
    assert found.frame().groupby("k")["objective"].count().tolist() == [8, 8]
    again = mw.sweep(world, tradeoff=[0, 4, 8, 16], k=[2, 3], seeds=2, out=tmp_path, workers=1)
    assert again.rows == found.rows, "even the times are the old ones"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"tradeoff": []}, "at least one tradeoff"),
        ({"tradeoff": [-1.0]}, "a tradeoff"),
        ({"tradeoff": [1.0], "k": [2.5]}, "k must be an integer"),
        ({"tradeoff": [1.0], "seeds": 0}, "seeds must be an integer"),
        ({"tradeoff": [1.0], "method": "guess"}, "no method 'guess'"),
        ({"tradeoff": [1.0], "workers": 0}, "workers must be an integer"),
    ],
)
def test_bad_settings_of_a_sweep(settings, message):
    with pytest.raises(SettingError, match=message):
        mw.sweep("four-rooms:0", **settings)


def test_a_folder_without_a_sweep_is_refused_in_the_callers_terms(tmp_path):
    with pytest.raises(SettingError, match=r"there is no sweep in .* make one with manyways.sweep") as refusal:
        load_sweep(tmp_path, mw.four_rooms(0))
    assert f"'manyways sweep --out {tmp_path}'" in refusal.value.on_command_line


def test_a_sweep_of_another_model_is_refused(tmp_path):
    mw.sweep("four-rooms:0", tradeoff=[0], k=[1], seeds=1, out=tmp_path, workers=1)
    assert len(load_sweep(tmp_path, mw.four_rooms(0)).rows) == 1
    with pytest.raises(SettingError, match="is of another model, four-rooms:0"):
        load_sweep(tmp_path, mw.four_rooms(1))


@dataclass(frozen=True)
class RandomPlans(mw.Method):
    """A method of another package: it takes random plans and keeps no trace."""

    def run(self, polytope, objective, k, seed, watch, fixed=()):
        del objective, watch, fixed
        plans = [polytope.sample(np.random.default_rng([seed, i])) for i in range(k)]
        return mw.Ascent(np.stack(plans), Status.CONVERGED, Trace.of([]))


def test_a_sweep_with_a_method_of_another_package(tmp_path, monkeypatch):
    """Also in worker processes, which have not registered it."""
    monkeypatch.setattr(METHODS, "_classes", dict(METHODS._classes))
    mw.register(RandomPlans)
    options = {"tradeoff": [0, 8], "k": [2], "seeds": 2, "method": "random-plans"}
    found = mw.sweep("four-rooms:0", **options, out=tmp_path, workers=1)
    assert not found.failed, found.failed[0]["error"]
    assert {row["method"] for row in found.rows} == {"random-plans"}
    plans = mw.plan("four-rooms:0", 2, 8.0, seed=1, method=RandomPlans())
    assert found.rows[-1]["objective"] == plans.objective
    assert timeless(mw.sweep("four-rooms:0", **options, workers=2).rows) == timeless(found.rows)
