"""What actions are called where the ground is slippery."""

from __future__ import annotations

import numpy as np
import pytest
from given_plans import plan_set

import manyways as mw
from manyways.describe import portraits
from manyways.describe.steering import deeds_of
from manyways.formats.text_maps import world_from_rows


@pytest.mark.parametrize(("correct", "words"), [(1.0, "goes right"), (0.9, "goes right"), (0.3, "takes 'right'")])
def test_a_plan_goes_right_only_if_it_usually_does(correct, words):
    mdp = world_from_rows(["S....", ".....", "....G"], "field", correct_transition=correct)
    plans = mw.plan(mdp, 1)
    assert deeds_of(plans)[mdp.action_names.index("right")] == words
    row, column = np.divmod(mdp.layout.cells, mdp.layout.shape[1])
    moved = time = 0.0
    for x, share in enumerate(plans.occupancies[0]):
        if mdp.action_name(x) == "right":
            ends, origin = mdp.transitions[[x]].tocoo(), mdp.choice_state[x]
            there = (column[ends.col] == column[origin] + 1) & (row[ends.col] == row[origin])
            moved += share * ends.data[there].sum()
            time += share
    assert (moved >= 0.5 * time) == words.startswith("goes")


def test_titles_say_what_is_taken_where_it_misleads():
    pytest.importorskip("gymnasium")
    mdp = mw.read("gym:FrozenLake-v1?map_name=4x4")
    plans = mw.plan(mdp, 3, slack=0.05)
    assert not any("goes " in portrait.title.lower() for portrait in portraits(plans))


def test_without_a_map_names_are_taken_at_their_word():
    mdp = mw.MDP.from_transitions([("a", "left", "b", 1.0, 1.0), ("b", "back", "a", 1.0, 0.0)])
    assert deeds_of(plan_set(mdp, [np.ones(2)])) == ("goes left", "goes back")
