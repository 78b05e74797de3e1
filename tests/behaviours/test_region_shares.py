"""Time per room and passage."""

import numpy as np
import pytest

import manyways as mw
from manyways import SettingError
from manyways.behaviours import Regions
from manyways.model.regions import find_regions
from problems import KNOWN


def test_regions_add_up_the_time_of_their_states():
    mdp = mw.four_rooms(0)
    found = find_regions(mdp)
    x = np.random.default_rng(0).random(mdp.n_choices)
    expected = np.zeros(len(found.names) + 1)
    for choice, state in enumerate(mdp.choice_state):
        expected[found.of_state[state]] += x[choice]  # -1, the walls, is the last
    np.testing.assert_allclose(Regions().on(mdp).forward(x), expected)


def test_without_a_map_labels_are_named():
    with pytest.raises(SettingError, match=r"use Labels\(\)"):
        Regions().on(KNOWN["single"].mdp)


def test_an_open_field_names_near():
    field = mw.grid_world(np.zeros((12, 12), bool), (0, 0), (11, 11))
    with pytest.raises(SettingError, match=r"no narrow places that divide it into regions; use Near\(2.0\)") as caught:
        Regions().on(field)
    assert "use --behaviour near" in caught.value.on_command_line
