"""Costs in files: the setting `minimise`, and what the writers keep."""

from __future__ import annotations

import numpy as np
import pytest

import manyways as mw
from manyways.formats import write_model
from problems import random_mdp

ENDINGS = (".npz", ".drn", ".tra")


@pytest.mark.parametrize("ending", ENDINGS)
def test_minimise_is_a_setting_of_every_file(ending, tmp_path):
    mdp = random_mdp(np.random.default_rng(3), kind="sparse", min_states=4)
    mdp = mw.MDP.from_csr(mdp.transitions, np.abs(mdp.reward), mdp.first_choice, name="model")
    path = tmp_path / f"model{ending}"
    write_model(mdp, path)
    costly = mw.read(f"{path}?minimise=true")
    assert costly.costs
    assert costly.digest == mdp.minimising().digest
    assert costly.source == f"{path}?minimise=true"
    assert mw.read(f"{path}?minimise=false").digest == mdp.digest


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_written_cost_is_a_positive_number_and_comes_back_as_a_cost(ending, tmp_path):
    mdp = mw.MDP.from_transitions([("a", "go", "b", 1.0, 3.0), ("b", "go", "a", 1.0, 0.0)]).minimising()
    path = tmp_path / f"model{ending}"
    write_model(mdp, path)
    again = mw.read(f"{path}?minimise=true")
    assert again.costs
    assert again.digest == mdp.digest
    plain = mw.read(path)
    assert plain.costs == (ending == ".npz"), "only .npz files say that a reward is a cost"
    assert plain.reward.tolist() == ([-3.0, 0.0] if ending == ".npz" else [3.0, 0.0])
    assert mw.read(f"{path}?minimise=false").reward.tolist() == [3.0, 0.0]


def test_worlds_and_environments_can_be_minimised():
    world = mw.read("four-rooms:3?minimise=true")
    assert world.costs
    assert world.digest == mw.four_rooms(3).minimising().digest
    pytest.importorskip("gymnasium")
    lake = mw.read("gym:FrozenLake-v1?minimise=true")
    assert lake.source == "gym:FrozenLake-v1?terminal=restart&minimise=true"
    assert mw.read(lake.source).digest == lake.digest


def test_minimise_is_true_or_false():
    with pytest.raises(mw.SourceError, match="minimise must be true or false, found 'yes'"):
        mw.read("four-rooms:3?minimise=yes")


@pytest.mark.parametrize(
    ("value", "message"),
    [(np.array([True]), r"'costs' must have the shape \(\)"), (np.array(1), "'costs' must contain booleans")],
)
def test_a_mark_of_another_kind_is_refused(value, message, tmp_path):
    write_model(mw.four_rooms(3).minimising(), tmp_path / "model.npz")
    with np.load(tmp_path / "model.npz") as held:
        arrays = dict(held) | {"costs": value}
    np.savez(tmp_path / "bad.npz", **arrays)
    with pytest.raises(mw.SourceError, match=message):
        mw.read(tmp_path / "bad.npz")
