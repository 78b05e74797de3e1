"""Routes of plans in world coordinates, layers for maps, and policies that act on positions."""

from __future__ import annotations

import csv
import json
import math
from itertools import pairwise, permutations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import manyways as mw
from buildings import OFFICE_PASSAGES, office
from manyways.formats.nav2 import parse_yaml, read_image, read_nav2
from manyways.formats.text_maps import world_from_rows
from manyways.formats.writer import write_model
from manyways.model.occupancy import chain, deterministic, state_occupancy
from manyways.plans.route import likeliest_path, likely_route

yaml = pytest.importorskip("yaml")

RNG = np.random.default_rng(0)
SIDE = 0.5


def small_map(folder: Path, origin: tuple[float, float, float], rows: int = 5, columns: int = 7) -> Path:
    """An open nav2 map with pixels of half a metre."""
    pixels = np.full((rows, columns), 254, np.uint8)
    pixels[2, 3] = 0
    (folder / "small.pgm").write_bytes(f"P5 {columns} {rows} 255\n".encode() + pixels.tobytes())
    (folder / "small.yaml").write_text(f"image: small.pgm\nresolution: {SIDE}\norigin: {list(origin)}\nnegate: 0\n")
    return folder / "small.yaml"


def parsed_pgm(path: Path) -> np.ndarray:
    """A raw PGM image, read by hand."""
    kind, size, most, pixels = path.read_bytes().split(b"\n", 3)
    columns, rows = map(int, size.split())
    assert (kind, most) == (b"P5", b"255")
    return np.frombuffer(pixels, np.uint8).reshape(rows, columns)


@pytest.fixture(scope="module")
def offices(tmp_path_factory) -> mw.PlanSet:
    """Three plans for a robot's map of two rooms and three passages, turned by 0.3 rad."""
    mdp = mw.read(office(tmp_path_factory.mktemp("office"), 0.3))
    return mw.plan(mdp, k=3, slack=0.1, behaviour=mw.Near(1.0))


# ---- coordinates ------------------------------------------------------------------------------------


@pytest.mark.parametrize("yaw", [0.0, 0.3, math.pi / 2, -2.5])
def test_coordinates_on_a_turned_map_by_plain_trigonometry(tmp_path, yaw):
    """The lower left corner is at (-3, 2); a cell's centre is so far away from it, at such an angle."""
    source = small_map(tmp_path, (-3.0, 2.0, yaw))
    layout = read_nav2(source, start=(0, 4), goal=(6, 0), unit="cells").layout
    assert (layout.origin, layout.metres_per_cell, layout.unit) == ((-3.0, 2.0, yaw), SIDE, "m")
    for state, (x, y) in enumerate(layout.coordinates()):
        row, column = layout.position(state)
        right, up = SIDE * (column + 0.5), SIDE * (5 - row - 0.5)
        distance, angle = math.hypot(right, up), math.atan2(up, right) + yaw
        assert x == pytest.approx(-3 + distance * math.cos(angle), abs=1e-12)
        assert y == pytest.approx(2 + distance * math.sin(angle), abs=1e-12)
        assert layout.state_at(x, y) == state
    start, goal = layout.coordinates([layout.cells.tolist().index(4 * 7), layout.cells.tolist().index(6)])
    again = read_nav2(source, start=tuple(start), goal=tuple(goal))
    assert again.digest == read_nav2(source, start=(0, 4), goal=(6, 0), unit="cells").digest


def test_a_quarter_turn(tmp_path):
    """Turned left by 90 degrees, the bottom row of the image goes up from the origin, and rows go to the left."""
    layout = read_nav2(small_map(tmp_path, (10, 20, math.pi / 2)), start="0,4", goal="6,0", unit="cells").layout
    places = {layout.position(state): tuple(np.round(layout.coordinates([state])[0], 9)) for state in range(34)}
    assert places[4, 0] == (9.75, 20.25)
    assert places[4, 6] == (9.75, 23.25)
    assert places[0, 0] == (7.75, 20.25)


@pytest.mark.parametrize("coarsen", [2, 3, 4])
def test_cells_that_reach_below_the_image_keep_their_place(tmp_path, coarsen):
    """The corner of the coarse grid lies below that of the image, so that a pixel stays where it is."""
    source = small_map(tmp_path, (-3.0, 2.0, 0.3))
    layout = read_nav2(source, start="0,4", goal="6,0", unit="cells", coarsen=coarsen).layout
    assert layout.metres_per_cell == coarsen * SIDE
    fine = read_nav2(source, start="0,4", goal="6,0", unit="cells").layout
    for state in range(len(fine.cells)):
        row, column = fine.position(state)
        assert layout.cell_at(*fine.coordinates([state])[0]) == (row // coarsen, column // coarsen)


def test_ways_on_coarse_maps_begin_and_end_where_they_were_asked_to(tmp_path):
    mdp = read_nav2(small_map(tmp_path, (0, 0, 0)), start="0,4", goal="6,0", unit="cells", coarsen=3)
    route = mw.plan(mdp, k=1)[0].route()
    np.testing.assert_allclose(route.points[[0, -1]], [[0.25, 0.25], [3.25, 2.25]])


def test_the_origin_is_kept_in_plan_files(offices, tmp_path):
    layout = mw.load(offices.save(tmp_path / "plans.mw")).mdp.layout
    assert layout.origin == offices.mdp.layout.origin
    np.testing.assert_array_equal(layout.offsets, offices.mdp.layout.offsets)
    np.testing.assert_array_equal(layout.coordinates(), offices.mdp.layout.coordinates())


def test_the_map_is_kept_in_npz_files(offices, tmp_path):
    mdp = offices.mdp
    write_model(mdp, tmp_path / "office.npz")
    again = mw.read(tmp_path / "office.npz")
    assert again.digest == mdp.digest
    assert [again.state_name(s) for s in range(again.n_states)] == [mdp.state_name(s) for s in range(mdp.n_states)]
    for name in ("cells", "blocked", "goals", "offsets"):
        np.testing.assert_array_equal(getattr(again.layout, name), getattr(mdp.layout, name))
    for name in ("origin", "metres_per_cell", "blocked_means"):
        assert getattr(again.layout, name) == getattr(mdp.layout, name)
    with np.load(tmp_path / "office.npz") as file:
        arrays = dict(file)
    for change, message in (
        ({"map:origin": np.zeros(2)}, "'map:origin' must have the shape"),
        ({"map:blocked": None}, "a map needs the arrays map:cells and map:blocked, found map:cells"),
        ({"map:cells": arrays["map:cells"].astype(float)}, "'map:cells' has the wrong type, float64"),
        ({"map:cells": arrays["map:cells"] + 10**6}, "grid cells must lie in"),
    ):
        changed = {name: array for name, array in (arrays | change).items() if array is not None}
        np.savez(tmp_path / "damaged.npz", **changed)
        with pytest.raises(mw.ManywaysError, match=message):
            mw.read(tmp_path / "damaged.npz")


def test_models_with_fewer_states_keep_the_places_of_the_others(offices):
    mdp = offices.mdp
    part = mdp.without(states=[mdp.state_name(40)])
    names = [mdp.state_name(s) for s in range(mdp.n_states)]
    old = [names.index(part.state_name(s)) for s in range(part.n_states)]
    np.testing.assert_array_equal(part.layout.coordinates(), mdp.layout.coordinates()[old])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"origin": (0, 0)}, r"`origin` must be three finite numbers \(x, y, yaw\), found '\(0, 0\)'"),
        ({"origin": (0, math.inf, 0)}, "`origin` must be three finite numbers"),
        ({"origin": "abc"}, "`origin` must be three finite numbers"),
        ({"origin": (0, 0, 0), "metres_per_cell": None}, "a grid with an `origin` needs `metres_per_cell`"),
        ({"offsets": [[0.0, 0.0]]}, r"offsets must have the shape \(2, 2\), found \(1, 2\)"),
        ({"offsets": [[0.0, 0.6], [0, 0]]}, r"offsets must lie in -0.5..0.5"),
        ({"offsets": [["a", "b"], ["c", "d"]]}, "offsets must be numbers"),
    ],
)
def test_impossible_origins_and_offsets_are_refused(change, message):
    with pytest.raises(mw.ModelError, match=message):
        mw.Grid(np.arange(2), np.zeros((1, 2), bool), **({"metres_per_cell": 1.0} | change))


# ---- which way ----------------------------------------------------------------------------------------


def best_by_enumeration(step: np.ndarray, start: int, goal: np.ndarray) -> float:
    """The largest probability of a path without repeated states from the start to a goal."""
    best, others = 0.0, [s for s in range(len(step)) if s != start]
    for length in range(len(step)):
        for middle in permutations(others, length):
            path = (start, *middle)
            if goal[path[-1]]:
                best = max(best, math.prod(step[a, b] for a, b in pairwise(path)))
    return best


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 6))
def test_the_likeliest_path_of_small_chains(seed, size):
    rng = np.random.default_rng(seed)
    step = rng.dirichlet(np.full(size, 0.4), size) * (rng.random((size, size)) < 0.6)
    goal = np.arange(size) == size - 1
    path = likeliest_path(sparse.csr_array(step), 0, goal)
    best = best_by_enumeration(step, 0, goal)
    if path is None:
        assert best == 0
    else:
        assert len(set(path.tolist())) == len(path)
        assert math.prod(step[a, b] for a, b in pairwise(path)) == pytest.approx(best, rel=1e-9)


def test_a_route_follows_what_the_plan_aims_for_and_not_slips():
    """A plan that goes down a long column and up the next one: a slip at the top would be a shortcut of 200 steps, and is
    likelier than going all the way; the plan means to go all the way."""
    rows = ["SG", *[".."] * 100]
    mdp = world_from_rows(rows, "ditch")
    action = {"down": 0, "left": 1, "up": 2, "right": 3}
    wanted = []
    for state in range(mdp.n_states):
        row, column = mdp.layout.position(state)
        name = "up" if column else "down" if row < 100 else "right"
        own = range(mdp.first_choice[state], mdp.first_choice[state + 1])
        wanted.append(next((x for x in own if mdp.actions[x] == action[name]), own[0]))
    policy = deterministic(mdp, np.array(wanted))
    route = likely_route(mdp, policy)
    assert len(route) == 202
    step = chain(mdp, policy)
    assert route.probability == pytest.approx(math.prod(step[a, b] for a, b in pairwise(route.states.tolist())))
    slipped = likeliest_path(step, 0, mdp.labels["goal"])
    assert len(slipped) == 2
    assert route.unit == "cells"
    np.testing.assert_array_equal(route.points[[0, 1, -1]], [[0, 0], [0, 1], [1, 0]])


def test_where_aims_do_not_lead_to_the_goal_slips_count():
    """Every step aims back to the start, and slips forward."""
    mdp = mw.MDP.from_transitions(
        [
            (0, "go", 1, 1.0, 0.0),
            (1, "go", 0, 0.7, 0.0),
            (1, "go", 2, 0.3, 0.0),
            (2, "return", 0, 1.0, 1.0),
        ],
        labels={"goal": [2]},
        layout=mw.Grid(np.arange(3), np.zeros((1, 3), bool)),
    )
    route = mw.plan(mdp, k=1)[0].route()
    assert route.states.tolist() == [0, 1, 2]
    assert route.probability == pytest.approx(0.3)


def test_waiting_is_no_part_of_a_route():
    mdp = mw.MDP.from_transitions(
        [(0, "try", 0, 0.9, 0.0), (0, "try", 1, 0.1, 0.0), (1, "return", 0, 1.0, 1.0)],
        labels={"goal": [1]},
        layout=mw.Grid(np.arange(2), np.zeros((1, 2), bool)),
    )
    route = mw.plan(mdp, k=1)[0].route()
    assert (route.states.tolist(), route.probability) == ([0, 1], pytest.approx(1.0))
    assert route.length == 1.0


def test_plans_without_a_route_say_why():
    mdp = world_from_rows(["S.G"], "line")
    stays = np.isin(mdp.actions, mdp.action_names.index("stop")).astype(float)
    with pytest.raises(mw.SettingError, match="the plan never reaches the goal of line, so it has no route"):
        mw.Policy(mdp, stays).route()
    ring = mw.MDP.from_transitions([(0, "on", 1, 1.0, 1.0), (1, "on", 0, 1.0, 0.0)], name="ring")
    with pytest.raises(mw.SettingError, match="ring has no map, so its plans have no routes"):
        mw.plan(ring, k=1)[0].route()
    drawn = mw.MDP.from_transitions(
        [(0, "on", 1, 1.0, 1.0), (1, "on", 0, 1.0, 0.0)],
        name="ring",
        layout=mw.Grid(np.arange(2), np.zeros((1, 2), bool)),
    )
    with pytest.raises(mw.SettingError, match="ring has no goal, so its plans have no routes"):
        mw.plan(drawn, k=1)[0].route()


def test_routes_on_environments_that_end_at_the_goal():
    pytest.importorskip("gymnasium")
    plans = mw.plan("gym:FrozenLake-v1?is_slippery=false", k=1)
    route = plans[0].route()
    assert route.names[0] == "r0c0"
    assert route.names[-1] in ("r3c2", "r2c3"), "beside the goal, which is no state"
    assert len(route) == 6


def test_routes_on_large_maps():
    """A quarter of a million states; the way is known."""
    walls = np.zeros((500, 500), bool)
    mdp = mw.grid_world(walls, (0, 0), (0, 499), enterable_walls=False)
    column = np.arange(mdp.n_states) % 500
    name = np.where(column == 499, mdp.action_names.index("up"), mdp.action_names.index("right"))
    name[499] = mdp.action_names.index("stop")
    policy = mw.Policy(mdp, (mdp.actions == name[mdp.choice_state]).astype(float))
    route = policy.route()
    np.testing.assert_array_equal(route.points, np.column_stack([np.arange(500), np.zeros(500)]))
    assert route.probability == pytest.approx(0.95**499)


# ---- a robot's map ------------------------------------------------------------------------------------


def test_three_plans_go_through_three_passages_and_their_waypoints_are_free(offices):
    folder = Path(offices.mdp.source.partition("?")[0]).parent
    pixels = parsed_pgm(folder / "office.pgm")
    taken = []
    for plan in offices:
        for x, y in plan.route().points:
            away, angle = math.hypot(x + 3, y - 1.5), math.atan2(y - 1.5, x + 3) - 0.3
            column, row = int(away * math.cos(angle) / 0.05), 299 - int(away * math.sin(angle) / 0.05)
            assert pixels[row, column] == 254
            if 195 <= column < 205:
                taken += [name for name, (top, width) in OFFICE_PASSAGES.items() if top <= row < top + width]
    assert set(taken) == {"north", "middle", "south"}
    assert (offices.rewards >= 0.9 * offices.optimal_reward - 1e-9).all()


def test_what_a_plan_loses_is_what_its_route_is_longer(offices):
    """10 % below the best is a way about 9 % longer, in metres."""
    lengths = np.array([plan.route().length for plan in offices])
    assert 14.9 < lengths.min() < 15.6, "the straight line has 15 m"
    assert lengths.max() < 1.12 * lengths.min()


# ---- files ----------------------------------------------------------------------------------------------


def test_the_files_of_a_route_agree(offices, tmp_path):
    route = offices[1].route()
    for ending in (".csv", ".json", ".yaml"):
        assert route.save(tmp_path / f"route{ending}") == tmp_path / f"route{ending}"
    with (tmp_path / "route.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["step", "x", "y", "state"]
    assert [int(row["step"]) for row in rows] == list(range(len(route)))
    assert [row["state"] for row in rows] == list(route.names)
    np.testing.assert_allclose([[float(row["x"]), float(row["y"])] for row in rows], route.points, atol=1e-6)

    read = json.loads((tmp_path / "route.json").read_text())
    assert (read["unit"], read["frame_id"]) == ("m", "map")
    assert read["probability"] == route.probability
    assert [(point["x"], point["y"], point["state"]) for point in read["waypoints"]] == [
        (float(row["x"]), float(row["y"]), row["state"]) for row in rows
    ]

    path = yaml.safe_load((tmp_path / "route.yaml").read_text())
    assert path["header"] == {"stamp": {"sec": 0, "nanosec": 0}, "frame_id": "map"}
    assert len(path["poses"]) == len(route)
    poses = [pose["pose"] for pose in path["poses"]]
    for before, after in pairwise(poses):
        x, y = (after["position"][along] - before["position"][along] for along in "xy")
        z, w = before["orientation"]["z"], before["orientation"]["w"]
        assert z * z + w * w == pytest.approx(1, abs=1e-9)
        turned = (1 - 2 * z * z, 2 * z * w)  # the x axis, rotated by the quaternion
        np.testing.assert_allclose(turned, np.array([x, y]) / math.hypot(x, y), atol=1e-4)
    assert poses[-1]["orientation"] == poses[-2]["orientation"]
    assert all(pose["header"] == path["header"] for pose in path["poses"])


def test_routes_in_cells(tmp_path):
    route = mw.plan(world_from_rows(["S.", ".G"], "square"), k=1)[0].route()
    read = json.loads(route.save(tmp_path / "route.json").read_text())
    assert (read["unit"], read["frame_id"]) == ("cells", None)
    with pytest.raises(mw.OutputError, match=r"a path of ROS is in metres, and the map has no origin"):
        route.save(tmp_path / "route.yaml")
    with pytest.raises(mw.OutputError, match=r"a route ends in one of .csv, .json, .yaml"):
        route.save(tmp_path / "route.txt")
    assert [path.name for path in tmp_path.iterdir()] == ["route.json"]


def test_a_layer_lies_on_the_map(offices, tmp_path):
    plan = offices[2]
    plan.save_layer(tmp_path / "time.pgm")
    said = yaml.safe_load((tmp_path / "time.yaml").read_text())
    layout = offices.mdp.layout
    assert said["resolution"] == layout.metres_per_cell == pytest.approx(0.3)
    assert tuple(said["origin"]) == layout.origin
    assert (said["image"], said["mode"], said["negate"]) == ("time.pgm", "scale", 0)
    time = layout.image(state_occupancy(offices.mdp, plan.occupancy))
    dark = (255 - parsed_pgm(tmp_path / "time.pgm").astype(float)) / 255
    np.testing.assert_allclose(dark, time / time.max(), atol=0.5 / 255 + 1e-12)
    # Our own reader of maps takes it, too.
    described = parse_yaml((tmp_path / "time.yaml").read_text(), "time")
    assert described.origin == layout.origin
    assert read_image((tmp_path / "time.pgm").read_bytes(), "time")[0].shape == layout.shape
    # The darkest pixels of a layer, in metres by its own YAML file, are near the route.
    row, column = np.unravel_index(np.argmax(dark), dark.shape)
    right, up = (column + 0.5) * said["resolution"], (len(dark) - row - 0.5) * said["resolution"]
    x, y, yaw = said["origin"]
    at = (x + math.cos(yaw) * right - math.sin(yaw) * up, y + math.sin(yaw) * right + math.cos(yaw) * up)
    assert np.hypot(*(plan.route().points - at).T).min() < 0.3


def test_layers_need_a_place_in_the_world(tmp_path):
    plan = mw.plan(world_from_rows(["S.", ".G"], "square"), k=1)[0]
    with pytest.raises(mw.SettingError, match="square has no map with an origin in metres"):
        plan.save_layer(tmp_path / "time.pgm")
    with pytest.raises(mw.OutputError, match=r"a layer of a map ends in .pgm"):
        plan.save_layer(tmp_path / "time.png")
    assert not list(tmp_path.iterdir())


# ---- positions ------------------------------------------------------------------------------------------


def test_policies_act_on_positions_in_metres(offices):
    plan, layout = offices[0], offices.mdp.layout
    for state in plan.route().states:
        x, y = layout.coordinates([state])[0]
        for observation in ((x, y), [x, y], np.array([x, y])):
            assert plan.act(observation, RNG) == plan.act(int(state), RNG)
    with pytest.raises(mw.SettingError, match=r"the position \(0 m, 0 m\) lies outside the map; the nearest free cell"):
        plan.act((0.0, 0.0), RNG)


def test_a_position_in_a_wall_names_the_nearest_free_cell(tmp_path):
    mdp = read_nav2(small_map(tmp_path, (0, 0, 0)), start="0,4", goal="6,0", unit="cells")
    plan = mw.plan(mdp, k=1)[0]
    message = r"the position \(1.76 m, 1.4 m\) lies in a cell that plans cannot enter; the nearest free cell is row 1, column 3 at \(1.75 m, 1.75 m\)"
    with pytest.raises(mw.SettingError, match=message):
        plan.act((1.76, 1.4), RNG)
    for far in (1e300, -1e300):
        with pytest.raises(mw.SettingError, match="outside the map; the nearest free cell is row "):
            plan.act((far, 1.0), RNG)


def test_policies_act_on_cells_of_maps_without_an_origin():
    plan = mw.plan(world_from_rows(["S..", "##.", "G.."], "hook", enterable_walls=False), k=1)[0]
    names = plan.plans.mdp.action_names
    assert names[plan.act((0, 0), RNG)] == "right"
    assert names[plan.act((2, 1), RNG)] == "down", "column 2, row 1"
    with pytest.raises(mw.SettingError, match=r"\(column 1, row 1\) lies in a cell that .* is \(column 1, row 0\)"):
        plan.act((1, 1), RNG)
    with pytest.raises(mw.SettingError, match=r"must be column and row of a cell, two integers; found 0\.5, 1"):
        plan.act((0.5, 1), RNG)
    with pytest.raises(mw.SettingError, match=r"outside the map; the nearest free cell is \(column 2, row 2\)"):
        plan.act((7, 2), RNG)
    for odd in ((1,), (1, 2, 3), ("a", "b")):
        with pytest.raises(mw.SettingError, match=r"a position must be two numbers \(x, y\)"):
            plan.act(odd, RNG)
    with pytest.raises(mw.SettingError, match="two finite numbers"):
        plan.act((math.nan, 0.0), RNG)
    ring = mw.MDP.from_transitions([(0, "on", 1, 1.0, 1.0), (1, "on", 0, 1.0, 0.0)], name="ring")
    with pytest.raises(
        mw.SettingError, match=r"ring has no state with the name or observation \(0, 0\).* no map with positions"
    ):
        mw.plan(ring, k=1)[0].act((0, 0), RNG)


def test_of_two_states_in_one_cell_the_nearer_one_acts():
    layout = mw.Grid(
        [0, 0], np.zeros((1, 1), bool), metres_per_cell=1.0, origin=(0, 0, 0), offsets=[[-0.4, 0.0], [0.4, 0.0]]
    )
    assert [layout.state_at(x, 0.5) for x in (0.05, 0.45, 0.55, 0.99)] == [0, 0, 1, 1]
