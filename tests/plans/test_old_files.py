"""Files of earlier versions still load, verify, and give the same plans again."""

import numpy as np
import pytest

import manyways as mw
from shared import DATA

OLD = DATA / "old_files"


@pytest.mark.parametrize("path", sorted(OLD.glob("*.mw")), ids=lambda path: path.stem)
def test_files_of_version_0_1_0_load_and_verify(path, tmp_path):
    plans = mw.load(path)
    assert plans.versions["manyways"] == "0.1.0"
    assert isinstance(plans.maximised, mw.MeanDivergence)
    assert mw.verify(plans.mdp, plans).ok
    again = mw.load(plans.save(tmp_path / path.name))
    assert again.maximised == plans.maximised
    np.testing.assert_array_equal(again.policies, plans.policies)


def test_settings_of_version_0_1_0():
    doors, lake, rooms = (mw.load(OLD / f"{name}-0.1.0.mw") for name in ("doors", "lake", "rooms"))
    assert doors.behaviour == mw.Labels(["door"])
    assert doors.criterion == mw.Discounted(0.97)
    assert lake.method == mw.FrankWolfe(iterations=10)
    assert lake.tradeoff == 0.05
    assert len(rooms.kept) == 1


def test_plans_of_version_0_1_0_are_found_again():
    old = mw.load(OLD / "doors-0.1.0.mw")
    settings = {"behaviour": old.behaviour, "criterion": old.criterion, "method": old.method}
    new = mw.plan(old.mdp, old.k, old.tradeoff, seed=old.seed, **settings)
    assert new.objective == pytest.approx(old.objective, rel=1e-9)


def test_an_environment_of_version_0_1_0_is_opened_again():
    found = mw.simulate(mw.load(OLD / "lake-0.1.0.mw"), steps=200)
    assert found.environment is not None
