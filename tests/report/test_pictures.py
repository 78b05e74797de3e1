"""The maps of the page are the occupancies."""

from __future__ import annotations

import base64

import numpy as np
from page_files import page_data

import manyways as mw
from manyways.model.occupancy import state_occupancy


def test_the_maps_are_the_occupancies(rooms, report):
    data = page_data(report)
    by_state = state_occupancy(rooms.mdp, rooms.occupancies)
    for plan, row in zip(data["plans"], by_state, strict=True):
        level = np.frombuffer(base64.b64decode(plan["time"]), np.uint8) / 255
        np.testing.assert_allclose(level**2 * plan["peak"], row, atol=2 * plan["peak"] / 255)
    walls = np.frombuffer(base64.b64decode(data["world"]["walls"]), np.uint8)
    np.testing.assert_array_equal(walls, 255 * rooms.mdp.labels["wall"])
    assert data["world"]["start"] == np.flatnonzero(rooms.mdp.start).tolist()
    assert data["world"]["goals"] == np.flatnonzero(rooms.mdp.labels["goal"]).tolist()


def test_large_maps_are_drawn_in_blocks(tmp_path):
    plans = mw.plan("rooms-300:0", k=2, tradeoff=8.0, method=mw.FrankWolfe(iterations=0))
    data = page_data(plans.report(tmp_path / "plans.html"))
    assert (data["world"]["rows"], data["world"]["columns"], data["world"]["block"]) == (150, 150, 2)
    level = np.frombuffer(base64.b64decode(data["plans"][0]["time"]), np.uint8).reshape(150, 150) / 255
    own = state_occupancy(plans.mdp, plans.occupancies[0]).reshape(150, 2, 150, 2).sum(axis=(1, 3))
    np.testing.assert_allclose(level**2 * data["plans"][0]["peak"], own, atol=2 * own.max() / 255)
