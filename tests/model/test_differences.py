"""In what two models differ."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from manyways.model.differences import model_differences, perhaps_reordered
from problems import gamblers_ruin

RUIN = gamblers_ruin(capital=1, target=3).mdp


def test_a_model_does_not_differ_from_itself_nor_from_a_copy():
    assert model_differences(RUIN, RUIN) == []
    assert model_differences(replace(RUIN), RUIN) == []


def test_each_difference_is_named():
    marked = np.arange(RUIN.n_states) == 1
    other_start = np.eye(RUIN.n_states)[1]
    for other, said in {
        RUIN.with_reward(RUIN.reward + 1): ["rewards"],
        RUIN.minimising(): ["what is minimised (the costs)"],
        replace(RUIN, start=other_start): ["start"],
        replace(RUIN, labels={"middle": marked}): ["label 'middle'"],
        gamblers_ruin(capital=1, target=3, win=0.45).mdp: ["transitions"],
        gamblers_ruin(capital=1, target=2).mdp: [
            "number of states (3 instead of 4)",
            "number of choices (5 instead of 6)",
        ],
    }.items():
        assert model_differences(other, RUIN) == said
        assert not perhaps_reordered(other, RUIN)


def test_other_names_for_the_same_numbers_are_a_difference():
    renamed = replace(RUIN, state_names=tuple(f"{name} coins" for name in RUIN.state_names))
    assert renamed.digest == RUIN.digest
    assert model_differences(renamed, RUIN) == ["state names"]
