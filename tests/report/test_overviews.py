"""The first picture of models with and without a map: what is drawn is what the plans do."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import manyways as mw
from manyways.describe import survey_of
from manyways.formats.text_maps import world_from_rows
from manyways.gallery import example_file
from manyways.model.occupancy import chain
from manyways.report import view_of
from manyways.report.graph_drawing import USED, _curve, _Frame, graph_overview
from manyways.report.overview import _inside, _widest_place, directions, map_overview, route_of
from manyways.report.pictures import bars, canvas_of
from manyways.report.table_overview import _parts, _spent, _title, table_overview


@pytest.fixture(scope="module")
def maintenance() -> mw.PlanSet:
    return mw.plan(str(example_file("maintenance.csv")), 3, slack=0.07)


def test_bars_are_the_time_on_the_action_taken(maintenance):
    """Heights, colours and numbers of the boxes over wear and parts, against the occupancies choice by choice."""
    view = view_of(maintenance)["overview"]
    assert (view["kind"], view["form"]) == ("table", "boxes")
    mdp, names = maintenance.mdp, [action["name"] for action in view["actions"]]
    colours = {action["colour"]: action["name"] for action in view["actions"]}
    found = {}
    for bar in view["bars"]:
        column = int(np.argmin(np.abs(np.array(view["columns_at"]) - bar["number_x"])))
        row = int(np.argmin(np.abs(np.array(view["rows_at"]) - (bar["number_y"] - view["box"]["height"] / 2))))
        place = view["down"]["values"][row], view["across"]["values"][column]
        for part in bar["parts"]:
            found[bar["plan"], *place, colours[part["colour"]]] = part["height"]
    most = max(found.values())
    largest = maintenance.occupancies.max()
    seen = 0
    for plan, x in enumerate(maintenance.occupancies):
        for choice in np.flatnonzero(x > 1e-3):
            name = mdp.state_name(int(mdp.choice_state[choice]))  # wear1/parts2
            wear, parts = name.removeprefix("wear").split("/parts")
            values = {"wear": wear, "parts": parts}
            action = mdp.action_name(int(choice))
            height = found[plan, values[view["down"]["name"]], values[view["across"]["name"]], action]
            assert action in names
            assert height / most == pytest.approx(x[choice] / largest, abs=0.03)
            seen += 1
    assert seen > 8


def test_a_bar_has_a_part_for_each_action_and_its_title_says_how_much():
    """Two machines; the one that is not drawn decides what is done, so that a cell holds two actions."""
    rows = []
    for a in range(2):
        for b in range(2):
            here = f"a{a}/b{b}"
            rows += [(here, "run", f"a1/b{b}", 1.0, 1.0), (here, "mend", f"a0/b{1 - b}", 1.0, 1.0)]
    mdp = mw.MDP.from_transitions(rows, start="a0/b0")
    policy = np.array([mdp.action_name(x) == ("run" if mdp.state_name(int(s))[1] == "0" else "mend") for x, s in enumerate(mdp.choice_state)])  # fmt: skip
    x = mw.Average().occupancy(mdp, policy.astype(float))
    spent = _spent(mdp, x, np.zeros(mdp.n_states, np.int64), 1)
    assert _title(mdp, spent[0], 0) == "plan 1 is here 100 % of its time: run 50 %, mend 50 %"
    parts = _parts(spent[0], 1.0, 100.0, [1, 2])
    assert [part["height"] for part in parts] == [34.0, 34.0]
    assert [part["y"] for part in parts] == [66.0, 32.0]


def test_states_without_a_value_are_not_drawn_and_that_is_said():
    """A trip that ends in a state without variables, for half of the time."""
    rows = [(f"l{i}/m{j}", move, "end", 1.0, i + j) for i in range(2) for j in range(2) for move in ("on", "off")]
    rows += [("end", move, f"l{i}/m{j}", 0.25, 0.0) for i in range(2) for j in range(2) for move in ("on", "off")]
    mdp = mw.MDP.from_transitions(rows)
    level = [float(name[1]) if (name := mdp.state_name(s)) != "end" else np.nan for s in range(mdp.n_states)]
    mode = [f"m{name[-1]}" if (name := mdp.state_name(s)) != "end" else "" for s in range(mdp.n_states)]
    plans = mw.plan(replace(mdp, variables={"level": level, "mode": mode}), 2)
    view = table_overview(survey_of(plans), [1, 2])
    assert {tuple(view[side]["values"]) for side in ("down", "across")} == {("0", "1"), ("m0", "m1")}
    assert view["without"]
    heights = sum(part["height"] for bar in view["bars"] for part in bar["parts"] if bar["plan"] == 0)
    assert heights == pytest.approx(4 * 68, abs=1), "the end is in no box"


def test_the_first_row_is_on_top():
    """A robot that goes down the rows of a table: its way to row 2 is drawn downwards, and the axis says so."""
    steps = [(f"row{i}/column{j}", "go", f"row{(i + 1) % 3}/column{j}", 1.0, 1.0) for i in range(3) for j in range(3)]
    turns = [(f"row{i}/column{j}", "turn", f"row{i}/column{(j + 1) % 3}", 1.0, 1.0) for i in range(3) for j in range(3)]
    view = view_of(mw.plan(mw.MDP.from_transitions(steps + turns), 2, slack=0.1))["overview"]
    assert (view["down"]["name"], view["down"]["falls"]) == ("row", True)
    tops = dict(zip(view["down"]["values"], view["rows_at"], strict=True))
    assert tops["0"] < tops["1"] < tops["2"]
    assert not view_of(mw.plan(str(example_file("maintenance.csv")), 2, slack=0.07))["overview"]["down"]["falls"]


def test_many_values_are_drawn_as_small_pictures():
    rows = []
    for a in range(12):
        for b in range(12):
            for name, da, db in (("up", 1, 0), ("right", 0, 1)):
                rows.append((f"a{a}/b{b}", name, f"a{(a + da) % 12}/b{(b + db) % 12}", 1.0, 1.0))
    view = view_of(mw.plan(mw.MDP.from_transitions(rows), 2, slack=0.1))["overview"]
    assert (view["kind"], view["form"]) == ("table", "multiples")
    assert [picture["plan"] for picture in view["pictures"]] == [0, 1]
    for picture in view["pictures"]:
        for cell in picture["cells"]:
            assert picture["frame"]["x"] <= cell["x"] < picture["frame"]["x"] + picture["frame"]["width"]
            assert picture["frame"]["y"] <= cell["y"] < picture["frame"]["y"] + picture["frame"]["height"]


@pytest.fixture(scope="module")
def commute() -> mw.PlanSet:
    rows = [("home", "bike", "work", 0.9, 2.0), ("home", "bike", "home", 0.1, 2.0), ("home", "bus", "stop", 1.0, 1.9)]
    rows += [("stop", "wait", "work", 0.7, 2.2), ("stop", "wait", "stop", 0.3, 2.0), ("work", "back", "home", 1.0, 2.0)]
    return mw.plan(mw.MDP.from_transitions(rows), 2, slack=0.2)


def test_the_graph_shows_the_steps_of_each_plan(commute):
    drawn = graph_overview(commute, survey_of(commute).by_state, [1, 2])
    assert drawn is not None
    assert view_of(commute)["overview"]["kind"] == "graph"
    assert {state["name"] for state in drawn["states"]} == {"home", "work", "stop"}
    assert [state["name"] for state in drawn["states"] if state["start"]] == ["home"]
    for plan in range(2):
        step = chain(commute.mdp, commute.policies[plan]).toarray()
        time = survey_of(commute).by_state[plan]
        wanted = int((step * time[:, None] > USED).sum())
        assert sum(one["plan"] == plan for one in drawn["steps"]) == wanted
    boxes = [(state["x"], state["y"]) for state in drawn["states"]]
    assert len(set(boxes)) == len(boxes)
    half_x, half_y = drawn["box"]["width"] / 2, drawn["box"]["height"] / 2
    for x, y in boxes:
        assert half_x < x < drawn["width"] - half_x
        assert half_y < y < drawn["height"] - half_y


def test_nothing_of_the_graph_is_cut_off():
    """A ring of states: the arc from the last one back to the first goes far around the others."""
    steps = [(f"s{i}", name, f"s{(i + 1) % 6}", 1.0, 1.0) for i in range(6) for name in ("go", "run")]
    plans = mw.plan(mw.MDP.from_transitions(steps), 2, slack=0.1)
    drawn = graph_overview(plans, survey_of(plans).by_state, [1, 2])
    at = np.linspace(0, 1, 21)[:, None]
    weights = np.hstack([(1 - at) ** 3, 3 * at * (1 - at) ** 2, 3 * at**2 * (1 - at), at**3])  # of Bezier's corners
    low = np.array([drawn["left"], drawn["top"]])
    high = low + np.array([drawn["width"], drawn["height"]])
    for step in drawn["steps"]:
        line = weights @ np.array(re.findall(r"-?\d+\.\d", step["d"]), float).reshape(4, 2)
        assert (low < line).all()
        assert (line < high).all()


def test_models_with_many_states_have_no_graph():
    rows = [(f"s{i}", "on", f"s{(i + 1) % 80}", 1.0, 1.0) for i in range(80)]
    plans = mw.plan(mw.MDP.from_transitions(rows), 1)
    assert graph_overview(plans, survey_of(plans).by_state, [1]) is None


@pytest.mark.parametrize("loop", [True, False])
def test_a_graph_of_one_state_and_of_a_layer_of_many(loop):
    rows = [("a", "stay", "a", 1.0, 1.0)] if loop else []
    for i in range(0 if loop else 6):
        rows += [
            ("a", f"to {i}", f"b{i}", 1.0, 1.0),
            (f"b{i}", "back", f"b{(i + 2) % 6}", 0.5, 1.0),
            (f"b{i}", "back", "a", 0.5, 1.0),
        ]
    plans = mw.plan(mw.MDP.from_transitions(rows), 1 if loop else 3, 1.0)
    drawn = graph_overview(plans, survey_of(plans).by_state, [1] * plans.k)
    assert drawn is not None
    assert all("nan" not in step["d"] for step in drawn["steps"])


def test_arrows_point_where_plans_move():
    """By the names of actions where they are directions, and by what happens where they are not."""
    world = world_from_rows(["S..", "##.", "..G"], "corner", correct_transition=1.0)
    plans = mw.plan(world, 1)
    canvas = canvas_of(plans.mdp)
    assert canvas is not None
    by_state = survey_of(plans).by_state[0]
    angle, time = directions(plans, 0, canvas, by_state)
    np.testing.assert_allclose(time.sum(), 1.0)
    assert angle[0] == pytest.approx(0.0)
    assert angle[2] == pytest.approx(np.pi / 2)  # downwards: clockwise from east
    renamed = mw.MDP.from_csr(
        world.transitions,
        world.reward,
        world.first_choice,
        start=world.start,
        labels=world.labels,
        layout=world.layout,
    )
    again, _ = directions(mw.plan(renamed, 1), 0, canvas, by_state)
    assert again[0] == pytest.approx(0.0)
    assert again[2] == pytest.approx(np.pi / 2)


def test_walls_and_marks_lie_where_the_model_has_them(rooms):
    survey, canvas = survey_of(rooms), canvas_of(rooms.mdp)
    assert canvas is not None
    drawn = map_overview(rooms, survey, canvas, [1, 2, 3, 4, 5, 6], route_of(survey, 0, canvas))
    scale, columns = drawn["scale"], rooms.mdp.layout.shape[1]
    start = divmod(int(np.argmax(rooms.mdp.start)), columns)
    assert drawn["starts"] == [{"x": (start[1] + 0.5) * scale, "y": (start[0] + 0.5) * scale}]
    assert sum(
        float(run.split("v")[0]) / scale for wall in drawn["walls"] for run in wall["d"].split("h")[1:]
    ) == np.count_nonzero(rooms.mdp.layout.blocked)
    assert drawn["missing"] == []
    assert {name["text"] for name in drawn["names"]} <= {name.removesuffix(" room") for name in survey.rooms.names}


def test_plans_without_a_likely_way_are_drawn_as_arrows():
    pytest.importorskip("gymnasium")
    view = view_of(mw.plan("gym:FrozenLake-v1", 2))["overview"]
    assert view["routes"] == []
    assert {arrow["plan"] for arrow in view["arrows"]} == {0, 1}
    assert {arrow["turn"] % 90 for arrow in view["arrows"]} == {0}


def test_decisions_and_rules_are_shown_without_a_map(maintenance, rooms):
    view = view_of(maintenance)
    assert view["decisions"]["plans"] == [1, 2, 3]
    mdp = maintenance.mdp
    states = {mdp.state_name(s): s for s in range(mdp.n_states)}
    for row in view["decisions"]["rows"]:
        for plan, cell in enumerate(row["cells"][:3]):
            if cell is not None:
                own = slice(*mdp.first_choice[states[row["name"]] : states[row["name"]] + 2])
                taken = own.start + int(np.argmax(maintenance.policies[plan][own]))
                assert cell["action"] == mdp.action_name(taken)
    assert len(view["rules"]["rows"]) == 3
    assert (view_of(rooms)["rules"], view_of(rooms)["decisions"]) == (None, None)


def test_bars_name_what_a_plan_does_more_than_each_other_plan(maintenance):
    by_state = np.add.reduceat(maintenance.occupancies, maintenance.mdp.first_choice[:-1], axis=1)
    names = [f"{maintenance.mdp.state_name(int(s))}: {maintenance.mdp.action_name(x)}" for x, s in enumerate(maintenance.mdp.choice_state)]  # fmt: skip
    seen = 0
    for i in range(maintenance.k):
        for bar in bars(maintenance, i, by_state):
            if bar["kind"].startswith("Does more than"):
                shares = maintenance.occupancies[:, names.index(bar["name"])]
                assert all(shares[i] > shares[j] for j in range(maintenance.k) if j != i), bar
                seen += 1
    assert seen > 0


def test_labels_that_are_equal_for_all_plans_are_left_out(maintenance):
    labels = {"everywhere": np.arange(maintenance.mdp.n_states) < 1000, "new": np.asarray(maintenance.mdp.variables["wear"]) == 0}  # fmt: skip
    labels["half"] = np.zeros(maintenance.mdp.n_states, bool)
    plans = replace(maintenance, mdp=replace(maintenance.mdp, labels=labels))
    twice = replace(plans, occupancies=np.stack([plans.occupancies[0]] * plans.k))
    by_state = np.add.reduceat(twice.occupancies, twice.mdp.first_choice[:-1], axis=1)
    assert not [bar for bar in bars(twice, 0, by_state) if bar["kind"] == "Labels"]


def test_steps_that_begin_a_new_episode_are_not_drawn():
    rows = [("a", "go", "b", 1.0, -1.0), ("b", "on", "goal", 1.0, -1.0), ("b", "return", "a", 1.0, -1.0)]
    rows += [("goal", "again", "a", 1.0, 0.0)]
    mdp = mw.MDP.from_transitions(rows, start="a", labels={"goal": ["goal"]})
    plans = mw.plan(mdp, 1)
    time = np.add.reduceat(plans.occupancies, mdp.first_choice[:-1], axis=1)
    drawing = graph_overview(plans, time, [1])
    assert drawing["restarts"]
    assert len(drawing["steps"]) == 2, "a to b and b to the goal, not back"


def test_an_arc_back_passes_the_boxes_between_its_ends():
    """Layers a; b and c; d. The step from d back to a goes round the outermost box of the middle layer."""
    along = {0: 0.0, 1: 176.0, 2: 176.0, 3: 352.0}
    aside = {0: 0.0, 1: -31.0, 2: 31.0, 3: 0.0}
    frame = _Frame(True, 176.0, 62.0, 59.0, 17.0)
    _, corners = _curve((3, 0), along, aside, [0], 0, frame)
    share = np.linspace(0, 1, 101)[:, None]
    a, c, d, b = corners
    line = (1 - share) ** 3 * a + 3 * share * (1 - share) ** 2 * c + 3 * share**2 * (1 - share) * d + share**3 * b
    over = (line[:, 0] > 176 - 59) & (line[:, 0] < 176 + 59)
    assert (np.abs(line[over, 1]) > 31 + 17).all()


def test_loops_of_several_plans_lie_round_each_other():
    frame = _Frame(True, 176.0, 62.0, 59.0, 17.0)
    loops = [_curve((0, 0), {0: 0.0}, {0: 0.0}, [0, 1, 2], plan, frame)[1] for plan in range(3)]
    for inner, outer in pairwise(loops):
        assert outer[:, 0].min() < inner[:, 0].min()
        assert outer[:, 1].min() < inner[:, 1].min()


def test_the_name_of_a_ragged_region_stands_at_its_widest_place():
    region = np.zeros((9, 12), bool)
    region[4, :] = True
    region[1:8, 7:12] = True
    place = _widest_place(region, np.zeros(region.shape), 20.0)
    assert (place["x"], place["y"]) == (190.0, 93.0)


def test_the_disc_of_a_number_is_inside_the_picture():
    assert [_inside(at, 30, 20.0, 23.0) for at in (0.1, 15.0, 29.9)] == [15.7, 300.0, 584.3]
