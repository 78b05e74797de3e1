"""Portraits: every number by a second path, every sentence on models whose truth is known by hand."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import manyways as mw
from manyways.describe import measures, measuring, portraits
from manyways.describe.first_visits import chance_of_reaching, chance_of_visiting, round_to, run_of
from manyways.describe.measures import survey
from manyways.describe.places import (
    Passage,
    Route,
    compass_direction,
    likely_path,
    rooms_of,
    route_of,
    sectors_of,
    shares_by_sector,
)
from manyways.describe.wording import counted, distinct, joined, number, percent, plain, quantity, short
from manyways.formats.text_maps import world_from_rows
from manyways.model.layout import Grid
from manyways.model.occupancy import chain, deterministic, state_occupancy
from manyways.worlds.rooms import tiled_rooms
from problems import gamblers_ruin, jsd, random_accessible_mdp, random_mdp, random_policy, single


def plan_set(mdp: mw.MDP, policies: list[np.ndarray], criterion=None) -> mw.PlanSet:
    """A set of given policies, in the given order."""
    criterion = criterion or mw.Average()
    base = mw.plan(mdp, 1, criterion=criterion)
    occupancies = np.stack([criterion.occupancy(base.mdp, policy) for policy in policies])
    distances = np.array([[jsd(p, q) for q in occupancies] for p in occupancies])
    return replace(
        base,
        policies=np.stack(policies),
        occupancies=occupancies,
        rewards=occupancies @ mdp.reward,
        distances=distances,
    )


def value(plans: mw.PlanSet, name: str, plan: int = 0) -> float | None:
    return next(measure for measure in measures(plans) if measure.name == name).values[plan]


def names(plans: mw.PlanSet) -> list[str]:
    return [measure.name for measure in measures(plans)]


def going(mdp: mw.MDP, *moves: tuple[object, str]) -> np.ndarray:
    """(N,) the policy that takes the given action in each named state, elsewhere the last action on offer."""
    choices = mdp.first_choice[1:] - 1
    index = {mdp.state_name(s): s for s in range(mdp.n_states)}
    for state, action in moves:
        s = index[str(state)]
        here = range(mdp.first_choice[s], mdp.first_choice[s + 1])
        choices[s] = next(x for x in here if mdp.action_name(x) == action)
    return deterministic(mdp, choices)


def along(mdp: mw.MDP, moves: str) -> np.ndarray:
    """(N,) the policy that goes right, left, up and down as `moves` says, from the start of a grid world."""
    words = {"r": ("right", 0, 1), "l": ("left", 0, -1), "u": ("up", -1, 0), "d": ("down", 1, 0)}
    assert mdp.layout is not None
    row, column = mdp.layout.position(int(np.argmax(mdp.start)))
    taken = []
    for move in moves:
        action, down, right = words[move]
        taken.append((f"r{row}c{column}", action))
        row, column = row + down, column + right
    return going(mdp, *taken)


ROOMS = ["#######", "#S.#..#", "#..+..#", "#+###+#", "#..#..#", "#..+.G#", "#######"]
EAST, SOUTH = "rdrrrddd", "rdlddrdrrr"
"""Two ways through the rooms: 8 steps by the east, 10 by the south."""


def rooms_world(rows: list[str] | None = None, correct: float = 1.0) -> mw.MDP:
    """Rooms from text, + for doors."""
    rows = rows or ROOMS
    mdp = world_from_rows([row.replace("+", ".") for row in rows], "rooms", correct_transition=correct)
    return replace(mdp, labels=dict(mdp.labels) | {"door": np.array([c == "+" for row in rows for c in row])})


def repair_shop() -> mw.MDP:
    return mw.MDP.from_transitions(
        [
            ("good", "run", "good", 0.8, 3.0),
            ("good", "run", "worn", 0.2, 3.0),
            ("worn", "run", "worn", 0.7, 2.0),
            ("worn", "run", "broken", 0.3, 2.0),
            ("worn", "repair", "good", 1.0, 0.5),
            ("broken", "replace", "good", 1.0, -4.0),
        ],
        labels={"down": ["broken"]},
        name="shop",
    )


# ---- first visits -----------------------------------------------------------------------------


def absorbed(p: np.ndarray, start: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """(S,) where a dense chain is after ever so many steps if it stays at the ends."""
    p = np.where(ends[:, None], np.eye(len(p)), p)
    for _ in range(60):
        p = p @ p
        p /= p.sum(axis=1, keepdims=True)
    return start @ p


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_chances_and_steps_against_dense_algebra(seed):
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, 6)
    policy = random_policy(rng, mdp)
    if rng.random() < 0.5:
        policy = deterministic(
            mdp,
            np.array([rng.integers(a, b) for a, b in pairwise(mdp.first_choice)]),
        )
    target, before = rng.random((2, mdp.n_states)) < 0.3
    before &= ~target
    run = run_of(mdp, chain(mdp, policy), target)
    dense = chain(mdp, policy).toarray()
    here, there = target[run.states], before[run.states]

    ever = absorbed(dense, mdp.start, target)[target].sum()
    assert chance_of_reaching(run, here) == pytest.approx(ever, abs=1e-7)
    first = absorbed(dense, mdp.start, target | before)[before].sum()
    assert chance_of_reaching(run, there, here) == pytest.approx(first, abs=1e-7)

    either = absorbed(dense, mdp.start, target | before)[before].sum()
    assert chance_of_visiting(run, round_to(run, here), here, there) == pytest.approx(either, abs=1e-7)
    mixed = there | (here & (rng.random(len(here)) < 0.5))  # some goals belong to the place as well
    marked = np.zeros(mdp.n_states, bool)
    marked[run.states] = mixed
    either = absorbed(dense, mdp.start, target | before)[marked].sum()
    assert chance_of_visiting(run, round_to(run, here), here, mixed) == pytest.approx(either, abs=1e-7)

    found = round_to(run, here)
    assert (found is None) == (ever < 1 - 1e-7)
    if found is not None:
        outside = ~here
        block = dense[np.ix_(run.states[outside], run.states[outside])]
        visits = run.start[outside] @ np.linalg.inv(np.eye(outside.sum()) - block)
        assert found.steps == pytest.approx(visits.sum())
        assert chance_of_reaching(run, there, here, surely_ends=True) == pytest.approx(first, abs=1e-7)
        for state in range(len(run.states)):
            alone = np.zeros(mdp.n_states, bool)
            alone[run.states[state]] = ~target[run.states[state]]
            passing = absorbed(dense, mdp.start, target | alone)[alone].sum()
            assert found.chances(np.array([state]))[0] == pytest.approx(passing, abs=1e-7)


def test_the_gamblers_chance():
    known = gamblers_ruin()
    rich = next(s for s in range(known.mdp.n_states) if known.mdp.state_name(s) == "5")
    mdp = replace(known.mdp, labels={"goal": np.arange(known.mdp.n_states) == rich})
    plans = plan_set(mdp, [known.policy])
    assert value(plans, "chance of reaching goal") == pytest.approx(known.long_run[mdp.choice_state == rich].sum())
    assert "steps to goal" not in names(plans)  # it is not surely reached


@pytest.mark.parametrize("leave", [1.0, 0.25, 1e-6])
def test_waiting_for_the_goal_takes_one_over_the_chance(leave):
    rows = [("here", "wait", "there", leave, 0.0), ("there", "on", "here", 1.0, 1.0)]
    if leave < 1:
        rows.append(("here", "wait", "here", 1 - leave, 0.0))
    mdp = mw.MDP.from_transitions(rows, labels={"goal": ["there"]})
    plans = plan_set(mdp, [np.ones(2)])
    assert value(plans, "steps to goal") == pytest.approx(1 / leave)
    assert "chance of reaching goal" not in names(plans)


def test_a_chance_that_rounding_hides_is_left_out():
    """The way out is so unlikely that staying is 1 in floating point: the system is singular."""
    mdp = mw.MDP.from_transitions(
        [("here", "wait", "here", 1.0, 0.0), ("here", "wait", "there", 1e-18, 0.0), ("there", "on", "here", 1.0, 1.0)],
        labels={"goal": ["there"]},
    )
    plans = replace(mw.plan(mdp, 1), policies=np.ones((1, 2)), occupancies=np.array([[1.0, 0.0]]), rewards=np.zeros(1))
    assert survey(plans).facts[0].steps is None
    assert len(portraits(plans)[0].sentences) >= 2


def test_what_comes_after_the_goal_does_not_count():
    """The goal leads to where one stays for ever: it is met all the same."""
    mdp = mw.MDP.from_transitions(
        [("a", "on", "goal", 1.0, 0.0), ("goal", "on", "end", 1.0, 1.0), ("end", "on", "end", 1.0, 0.0)],
        labels={"goal": ["goal"], "end": ["end"]},
    )
    plans = plan_set(mdp, [np.ones(3)])
    assert value(plans, "steps to goal") == 1.0
    assert value(plans, "chance of touching end") == 0.0
    assert value(plans, "time in end") == 1.0


def test_a_goal_at_the_start_takes_no_steps():
    mdp = mw.MDP.from_transitions([("a", "on", "b", 1.0, 0.0), ("b", "on", "a", 1.0, 1.0)], labels={"goal": ["a"]})
    assert value(plan_set(mdp, [np.ones(2)]), "steps to goal") == 0.0


# ---- measures ---------------------------------------------------------------------------------


def test_measures_against_simulation():
    """Steps, walls, doors and time shares of the nine rooms' best plans, from long runs."""
    plans = mw.plan("nine-rooms:7", 2, 8.0, time_limit_s=60)
    mdp = plans.mdp
    for plan in range(plans.k):
        states = plans[plan].policy.rollout(60_000, np.random.default_rng(plan)).states
        ends = np.flatnonzero(mdp.labels["goal"][states])
        rounds = [states[a + 1 : b] for a, b in pairwise(ends)]

        def close(computed: float | None, seen: list[float]) -> None:
            error = np.std(seen) / np.sqrt(len(seen))
            assert computed == pytest.approx(np.mean(seen), abs=4.5 * error + 1e-3)

        close(value(plans, "steps to goal", plan), [len(way) for way in rounds])
        close(value(plans, "chance of touching wall", plan), [mdp.labels["wall"][way].any() for way in rounds])
        close(value(plans, "chance of touching door", plan), [mdp.labels["door"][way].any() for way in rounds])
        shares = [part.mean() for part in np.array_split(mdp.labels["wall"][states], 100)]
        close(value(plans, "time in wall", plan), shares)
        facts, rooms = survey(plans).facts[plan], survey(plans).rooms
        assert facts.doors is not None
        assert facts.rooms is not None
        assert rooms is not None
        for door, chance in facts.doors.items():
            close(chance, [bool((way == door).any()) for way in rounds])
        for room, chance in facts.rooms.items():
            ended = [np.append(way, states[ends[0]]) for way in rounds]
            close(chance, [bool((rooms.of_state[way] == room).any()) for way in ended])


def test_large_models_get_the_same_steps_from_the_occupancy(monkeypatch):
    plans = mw.plan("nine-rooms:7", 2, 8.0)
    exact = [value(plans, "steps to goal", plan) for plan in range(2)]
    monkeypatch.setattr("manyways.describe.measures.FACTORISED", 0)
    again = replace(plans)
    assert [value(again, "steps to goal", plan) for plan in range(2)] == pytest.approx(exact)
    assert not any(name.startswith("chance of") for name in names(again))
    assert value(again, "time in wall") == value(plans, "time in wall")
    assert len(portraits(again)[0].sentences) >= 2
    stopped = plan_set(plans.mdp, [going(plans.mdp)])  # 'stop' is the last action everywhere
    assert value(stopped, "chance of reaching goal") == 0.0


def test_reward_and_loss():
    mdp = repair_shop()
    plans = plan_set(mdp, [going(mdp, ("worn", "repair")), going(mdp, ("worn", "run"))])
    reward, loss = measures(plans)[:2]
    # Good 5/6 of the time and worn 1/6; or, per round, 5 steps good, 10/3 worn and one broken.
    assert reward.values == pytest.approx([(5 * 3 + 0.5) / 6, (15 + 20 / 3 - 4) / (5 + 10 / 3 + 1)])
    assert loss.unit == "share"
    assert loss.values == pytest.approx([0.0, 1 - reward.values[1] / reward.values[0]])
    assert (reward.better, loss.better) == (1, -1)


def test_loss_against_an_optimum_of_zero_is_in_reward():
    mdp = mw.MDP.from_transitions([("a", "idle", "a", 1.0, 0.0), ("a", "pay", "a", 1.0, -2.0)])
    plans = plan_set(mdp, [np.array([1.0, 0.0]), np.array([0.0, 1.0])])
    loss = measures(plans)[1]
    assert loss.unit == "reward"
    assert loss.values == pytest.approx([0.0, 2.0], abs=1e-8)
    assert "The lower reward of the two, -2 per step where 0 is possible." in portraits(plans)[1].sentences


def test_labels_are_judged_by_rewards_not_by_names():
    rows = [(s, "go", (s + 1) % 8, 1.0, {0: -5.0, 1: 7.0}.get(s, 1.0)) for s in range(8)]
    labels = {"nice": [0], "awful": [1], "plain": [2], "start": [3], "everywhere": range(8), "nowhere": []}
    plans = plan_set(mw.MDP.from_transitions(rows, labels=labels), [np.ones(8)])
    judged = {measure.name: measure.better for measure in measures(plans)[2:]}
    assert judged == {"time in nice": -1, "time in awful": 1, "time in plain": 0}


def test_at_most_twelve_labels_those_that_tell_most():
    n = 20
    rows = [(0, f"to {s}", s, 1.0, 0.0) for s in range(1, n)] + [(s, "back", 0, 1.0, 1.0) for s in range(1, n)]
    mdp = mw.MDP.from_transitions(rows, labels={f"l{s}": [s] for s in range(1, n)})
    plans = plan_set(mdp, [going(mdp, (0, "to 3")), going(mdp, (0, "to 17"))])
    kept = [name for name in names(plans) if name.startswith("time in")]
    assert len(kept) == 12
    assert {"time in l3", "time in l17"} <= set(kept)


def test_discounted_shares_say_so():
    mdp = repair_shop()
    criterion = mw.Discounted(0.9)
    policy = going(mdp, ("worn", "run"))
    plans = plan_set(mdp, [policy], criterion)
    dense = chain(mdp, policy).toarray()
    visits = sum(0.1 * 0.9**t * (mdp.start @ np.linalg.matrix_power(dense, t)) for t in range(400))
    assert value(plans, "time in down") == pytest.approx(visits[mdp.labels["down"]].sum())
    assert all(
        "discount 0.9" in measure.meaning for measure in measures(plans) if measure.name in ("reward", "time in down")
    )
    assert any("discounted" in sentence for sentence in portraits(plans)[0].sentences)


# ---- places -----------------------------------------------------------------------------------


def test_rooms_have_compass_names():
    four = rooms_of(rooms_world())
    assert four is not None
    assert four.names == ("north-west room", "north-east room", "south-west room", "south-east room")
    nine = rooms_of(mw.read("nine-rooms:7"))
    assert nine is not None
    assert [name.removesuffix(" room") for name in nine.names] == [
        "north-west", "north", "north-east", "west", "middle", "east", "south-west", "south", "south-east",
    ]  # fmt: skip
    assert nine.listed([1]) == "the north-west room"
    assert nine.listed([2, 5, 6]) == "the north, middle and east rooms"


def test_rooms_without_order_have_numbers():
    rows = ["########", "#S.+...#", "####...#", "#..+..G#", "########"]
    rooms = rooms_of(rooms_world(rows))
    assert rooms is not None
    assert rooms.names == ("room 1", "room 2", "room 3")
    assert (rooms.name(2), rooms.listed([1, 3])) == ("room 2", "rooms 1 and 3")
    assert rooms_of(rooms_world(["#####", "#S..#", "#..G#", "#####"])) is None  # no doors


def test_more_than_nine_rooms_are_numbered_in_reading_order():
    rooms = rooms_of(tiled_rooms(37, 1))
    assert rooms is not None
    assert rooms.names[-1] == "room 16"


def test_the_route_of_a_path():
    mdp = rooms_world()
    rooms = rooms_of(mdp)
    assert rooms is not None
    for moves, visited, turns in ((EAST, (1, 2, 4), ["east", "south"]), (SOUTH, (1, 3, 4), ["south", "east"])):
        path = likely_path(mdp, chain(mdp, along(mdp, moves)))
        assert path is not None
        route = route_of(mdp, rooms, path)
        assert route.rooms == visited
        assert [step.direction for step in route.passages] == turns
        assert all(step.door is not None and mdp.labels["door"][step.door] for step in route.passages)
    through = likely_path(mdp, chain(mdp, along(mdp, "rddddrrr")))  # down through the wall at r3c2
    assert through is not None
    assert [step.door is None for step in route_of(mdp, rooms, through).passages] == [True, False]
    back = [8, 9, 16, 17, 16, 9]  # into the east door and out again
    assert route_of(mdp, rooms, back).passages == ()


def test_directions():
    assert compass_direction(-2, 0) == "north"
    assert compass_direction(1, 1) == "south-east"
    assert compass_direction(1, -5) == "west"
    assert compass_direction(0, 0) == ""


def test_sectors_are_thirds_without_start_and_goal():
    mdp = world_from_rows(["S" + "." * 8] + ["." * 9] * 7 + ["." * 8 + "G"], "field", enterable_walls=False)
    sectors = sectors_of(mdp)
    assert sectors is not None
    by_hand = (np.arange(81) // 9 // 3) * 3 + np.arange(81) % 9 // 3
    by_hand[[0, 80]] = -1
    assert (sectors.of_state == by_hand).all()
    assert sectors.names[:2] == ("north-west", "north")
    time = np.random.default_rng(0).dirichlet(np.ones(81), size=2)
    shares, edges = shares_by_sector(sectors, time)
    way = time[:, 1:80].sum(axis=1)
    assert shares.sum(axis=1) == pytest.approx(1.0)
    assert shares[:, 4] == pytest.approx(time[:, by_hand == 4].sum(axis=1) / way)
    assert edges["north"] == pytest.approx(time[:, 1:9].sum(axis=1) / way)


@pytest.mark.parametrize(
    ("rows", "expected"), [(["S.G"], ("west", "middle", "east")), (["S", "G"], ("north", "south"))]
)
def test_sectors_of_narrow_maps(rows, expected):
    sectors = sectors_of(world_from_rows(rows, "narrow"))
    assert sectors is not None
    assert sectors.names == expected


# ---- sentences --------------------------------------------------------------------------------


def test_two_ways_through_rooms():
    mdp = rooms_world()
    east, south = portraits(plan_set(mdp, [along(mdp, EAST), along(mdp, SOUTH)]))
    assert (east.title, south.title) == ("East, south", "South, east")
    assert east.sentences[:2] == (
        "Goes through the north-east room: east, south.",
        "The only plan through the north-east room.",
    )
    assert not any("Avoids" in sentence for sentence in east.sentences)  # said by what is its own
    assert "The shorter of the two: 8 steps to the goal on average." in east.sentences
    assert "25 % longer than the other plan (10 steps on average against 8)." in south.sentences


def test_a_way_through_a_wall_is_called_one():
    mdp = rooms_world()
    (portrait,) = portraits(plan_set(mdp, [along(mdp, "rddddrrr")]))
    assert portrait.sentences[0] == (
        "Goes through the south-west room: south, east, once through a wall instead of a door."
    )
    assert "Touches 'wall' on every way to the goal." in portrait.sentences


def test_slips_make_a_route_usual():
    mdp = rooms_world(correct=0.95)
    (portrait,) = portraits(mw.plan(mdp, 1))
    assert portrait.sentences[0].startswith("Usually goes through")


def test_same_doors_are_told_apart():
    mdp = rooms_world()
    first, second = portraits(plan_set(mdp, [along(mdp, EAST), along(mdp, "drrrrddd")]))
    assert first.title != second.title
    assert first.title.startswith("East, south — ")
    assert first.sentences[1].startswith(
        "Takes the same doors as plan 2, but keeps further north-east in the north-west room"
    )
    assert second.sentences[1].startswith("Takes the same doors as plan 1, but keeps further south-west")


def test_a_corridor_with_two_ways():
    mdp = world_from_rows(
        ["S......", ".#####.", ".#####.", "......G"], "ring", enterable_walls=False, correct_transition=1.0
    )
    north, south = portraits(plan_set(mdp, [along(mdp, "rrrrrrddd"), along(mdp, "dddrrrrrr")]))
    assert (north.title, south.title) == ("Along the north edge", "Along the south edge")
    # Eight cells between start and goal, six of them along the edge.
    assert "Spends 75 % of its way along the north edge; the other plan is never there." in north.sentences
    assert "Spends none of its way along the north edge, where the other plan spends 75 %." in south.sentences


def test_a_shop_without_a_map():
    mdp = repair_shop()
    careful, careless = portraits(plan_set(mdp, [going(mdp, ("worn", "repair")), going(mdp, ("worn", "run"))]))
    assert "Takes 'repair' in 'worn', where the other plan takes 'run'." in careful.sentences
    assert "The higher reward of the two, and no plan can earn more." in careful.sentences
    assert "The only plan that never enters 'down'." in careful.sentences
    share = 1 / (5 + 10 / 3 + 1)
    assert f"Spends {percent(share)} of its time in 'down', more than the other plan." in careless.sentences
    lost = value(plan_set(mdp, [going(mdp, ("worn", "run"))]), "below optimum")
    assert lost is not None
    assert f"The lower reward of the two, {percent(lost)} below the optimum." in careless.sentences


def test_the_only_plan_of_three():
    mdp = repair_shop()
    careless = going(mdp, ("worn", "run"))
    plans = plan_set(mdp, [going(mdp, ("worn", "repair")), careless, careless])
    first, second, third = portraits(plans)
    assert any(s.startswith("The only plan to take 'repair' in 'worn'") for s in first.sentences)
    assert second.sentences[0] == "Nearly the same as plan 3."
    assert third.sentences[0] == "Nearly the same as plan 2."
    assert len({first.title, second.title, third.title}) == 3


def test_plans_that_stay():
    mdp = rooms_world()
    stays, goes = portraits(plan_set(mdp, [going(mdp), along(mdp, EAST)]))
    assert stays.title == "Stays at r1c1"
    assert stays.sentences[:2] == ("Stays at r1c1 for good.", "Never reaches the goal.")
    assert "Takes 8 steps to the goal on average." in goes.sentences
    assert "steps to goal" in names(plan_set(mdp, [going(mdp), along(mdp, EAST)]))


def lottery() -> mw.MDP:
    """A ticket wins one time in four and loses as often, a gamble wins always; one may also wait for ever."""
    mdp = mw.MDP.from_transitions(
        [
            ("home", "ticket", "home", 1.0, 0.5),
            ("home", "sure thing", "far", 1.0, 0.0),
            ("far", "on", "home", 1.0, 1.0),
            ("home", "wait", "away", 1.0, 0.0),
            ("away", "stay", "away", 1.0, 0.9),
            ("away", "back", "home", 1.0, 0.0),
        ],
        name="lottery",
    )
    choice = {mdp.action_name(x): x for x in range(mdp.n_choices)}
    goal, ruin = np.zeros(mdp.n_choices), np.zeros(mdp.n_choices)
    goal[choice["ticket"]], ruin[choice["ticket"]], goal[choice["on"]] = 0.25, 0.25, 1.0
    return replace(mdp, ends={"goal": goal, "ruin": ruin})


def test_how_episodes_end():
    mdp = lottery()
    plans = plan_set(
        mdp, [going(mdp, ("home", "sure thing")), going(mdp, ("home", "ticket")), going(mdp, ("away", "stay"))]
    )
    assert [value(plans, "reaches goal", i) for i in range(3)] == pytest.approx([1.0, 0.5, 0.0])
    assert [value(plans, "ends in ruin", i) for i in range(3)] == [0.0, pytest.approx(0.5), None]
    assert [value(plans, "steps per episode", i) for i in range(3)] == [2.0, 2.0, None]
    better = {measure.name: measure.better for measure in measures(plans)}
    assert (better["reaches goal"], better["ends in ruin"], better["steps per episode"]) == (1, -1, 0)
    sure, ticket, wait = (words.sentences for words in portraits(plans))
    assert "The only plan that always reaches the goal." in sure
    assert "Reaches the goal in 50 % of its episodes." in ticket
    assert "Never reaches the goal." in wait
    both = plan_set(mdp, [going(mdp, ("home", "sure thing"))] * 2)
    assert "reaches goal" not in names(both), "what is always so tells nothing"
    alone = replace(mdp, ends={"goal": mdp.ends["goal"]})
    assert "steps to goal" in names(plan_set(alone, [going(alone, ("home", "ticket"))]))
    assert value(plan_set(alone, [going(alone, ("home", "ticket"))]), "steps to goal") == pytest.approx(4.0)
    discounted = plan_set(mdp, [going(mdp, ("home", "ticket"))], mw.Discounted(0.9))
    assert names(discounted) == ["reward", "below optimum"], "episodes are counted in the long run"


def test_one_state_and_one_plan():
    (portrait,) = portraits(plan_set(single().mdp, [np.ones(1)]))
    assert portrait.title == "Stays in 'here'"
    assert portrait.sentences == ("Stays in 'here' for good.", "Earns 2.5 per step, and no plan can earn more.")


def test_one_plan_is_compared_with_none():
    mdp = repair_shop()
    (portrait,) = portraits(plan_set(mdp, [going(mdp, ("worn", "repair"))]))
    assert portrait.title == "Mostly in good"
    assert not any(word in " ".join(portrait.sentences) for word in ("other", "set", "plans"))


def test_what_is_done_only_once_is_not_called_never():
    """From the start one goes over a bridge and never back: in the long run, no plan is on the bridge."""
    rows = [("start", "go", "bridge", 1.0, 0.0), ("bridge", "go", "a", 1.0, 0.0)]
    rows += [
        (x, act, y, 1.0, r)
        for x, act, y, r in (
            ("a", "hop", "b", 1.0),
            ("a", "skip", "c", 1.0),
            ("b", "on", "a", 1.0),
            ("c", "on", "a", 1.0),
        )
    ]
    mdp = mw.MDP.from_transitions(rows)
    hop, skip = portraits(plan_set(mdp, [going(mdp, ("a", "hop")), going(mdp, ("a", "skip"))]))
    said = " ".join(hop.sentences + skip.sentences)
    assert "Takes 'hop' in 50 % of its steps; the other plan 0 % in the long run." in hop.sentences
    assert "Never takes 'hop' in the long run; the other plan takes it in 50 % of its steps." in skip.sentences
    assert "bridge" not in said


def test_other_plans_now_and_then_in_a_room_count():
    """A plan that crosses a room in half of its rounds is not forgotten because its likeliest way is another."""
    mdp = rooms_world()
    east, south = along(mdp, EAST), along(mdp, "ddddrrrr")
    both = 0.45 * east + 0.55 * south
    first, second = portraits(plan_set(mdp, [east, both]))
    assert second.title == "South, east"
    assert not any("only plan through the north-east" in s or "east door" in s for s in first.sentences)
    assert "The only plan through the south-west room." in second.sentences
    chances = survey(plan_set(mdp, [both])).facts[0].doors
    assert chances
    assert sorted(round(chance, 9) for chance in chances.values()) == [0.45, 0.45, 0.55, 0.55]


def spread_rooms(correct: float = 1.0) -> mw.MDP:
    """The rooms, with a start anywhere in the goal's room or, now and then, at the usual place."""
    mdp = rooms_world(correct=correct)
    start = np.zeros(mdp.n_states)
    start[[4 * 7 + 4, 4 * 7 + 5, 8]] = [0.8, 0.1, 0.1]  # r4c4, r4c5, r1c1
    return replace(mdp, start=start)


def test_one_room_is_said_only_of_what_stays_there():
    mdp = spread_rooms()
    policy = going(mdp, ("r4c4", "right"), ("r4c5", "down"), *[(f"r{r}c{c}", a) for r, c, a in
        ((1, 1, "right"), (1, 2, "down"), (2, 2, "right"), (2, 3, "right"), (2, 4, "right"), (2, 5, "down"), (3, 5, "down"))])  # fmt: skip
    for chance, said in ((0.0, "Stays"), (0.1, "Usually stays"), (0.7, "Its likeliest way stays")):
        start = np.zeros(mdp.n_states)
        start[[4 * 7 + 4, 4 * 7 + 5, 8]] = [1 - chance, 0.0, chance]
        if chance > 0.5:  # two starts in other rooms, each less likely than the one at hand
            start[[8, 9, 4 * 7 + 4]] = [0.35, 0.25, 0.4]
        (portrait,) = portraits(plan_set(replace(mdp, start=start), [policy]))
        assert portrait.sentences[0] == f"{said} in one room from the start to the goal."
        assert (portrait.title == "Within one room") == (chance < 0.5)


def test_rooms_of_large_models_are_those_of_the_likeliest_way(monkeypatch):
    monkeypatch.setattr("manyways.describe.measures.VISITED", 0)
    mdp = rooms_world()
    east, south = portraits(plan_set(mdp, [along(mdp, EAST), along(mdp, SOUTH)]))
    assert east.sentences[1] == "The only plan whose likeliest way goes through the north-east room."
    assert not any("Avoids" in sentence for sentence in east.sentences + south.sentences)


def test_most_of_three_avoid_a_room():
    mdp = rooms_world()
    east = along(mdp, EAST)
    _, _, south = portraits(plan_set(mdp, [east, along(mdp, "drrrrddd"), along(mdp, SOUTH)]))
    assert "Avoids the north-east room, which all the others cross." in south.sentences
    half = 0.45 * east + 0.55 * along(mdp, "ddddrrrr")
    _, _, south = portraits(plan_set(mdp, [half, half, along(mdp, SOUTH)]))
    assert not any("Avoids" in sentence or "only plan" in sentence for sentence in south.sentences)


def commute() -> mw.MDP:
    rows = [("home", "bus", "work", 1, -3), ("home", "bike", "work", 0.9, -1), ("home", "bike", "home", 0.1, -5)]
    return mw.MDP.from_transitions([*rows, ("work", "go home", "home", 1, 10)])


def test_an_action_of_its_own_is_the_title():
    mdp = commute()
    plans = plan_set(mdp, [going(mdp, ("home", "bike")), going(mdp, ("home", "bus"))])
    assert [portrait.title for portrait in portraits(plans)] == ["Bike", "Bus"]


def test_never_means_never():
    """A plan that takes the bus once in a while is not one that never does, nor is the other the only one."""
    mdp = commute()
    bike, bus = going(mdp, ("home", "bike")), going(mdp, ("home", "bus"))
    rarely = 0.996 * bike + 0.004 * bus
    first, second, third = portraits(plan_set(mdp, [rarely, bus, rarely]))
    said = " ".join(first.sentences + second.sentences + third.sentences)
    assert "Hardly ever takes 'bus'" in " ".join(first.sentences)
    assert not re.search("(Never|only plan to) take[s ]* ?'bus'", said)
    _, both = portraits(plan_set(mdp, [rarely, bus]))
    assert not any("in 'home', where" in sentence for sentence in both.sentences)


def test_discounted_steps_are_called_so():
    mdp = commute()
    plans = plan_set(mdp, [going(mdp, ("home", "bike")), going(mdp, ("home", "bus"))], mw.Discounted(0.9))
    said = [s for portrait in portraits(plans) for s in portrait.sentences]
    assert any(s.startswith("Never takes 'bike'; ") and s.endswith("discounted steps.") for s in said)
    assert not any(re.search("(its|their) steps", s) for s in said)


def test_titles_use_the_words_of_the_sentences():
    plans = mw.plan("nine-rooms:7", 6, 8.0, time_limit_s=60)
    found = portraits(plans)
    rewards, steps = plans.rewards, [value(plans, "steps to goal", plan) for plan in range(plans.k)]
    for plan, portrait in enumerate(found):
        _, _, words = portrait.title.partition(" — ")
        if words.startswith("further"):
            assert any(words in sentence for sentence in portrait.sentences)
        if words == "shortest":
            assert steps[plan] == min(steps)
        said = " ".join(portrait.sentences)
        assert ("reward" in said) == (rewards[plan] in (rewards.min(), rewards.max())) or len(portrait.sentences) == 2


NASTY = [
    "{x}",
    "{}",
    "a{",
    "a{0.__class__}",
    "{{ 7 }}",
    "Neverland",
    "Never",
    "%s",
    "\u202eabc",
    "a\nb",
    "",
    " ",
]


@pytest.mark.parametrize("name", NASTY)
def test_any_name_can_be_told(name):
    shown = short(name)
    rows = [("good", name, name, 1.0, 1.0), ("good", "go", "bad", 0.9, 2.0), ("good", "go", name, 0.1, 2.0)]
    rows += [("bad", "go", "good", 1.0, -3.0), (name, "go", "good", 1.0, 0.5), (name, name, "bad", 1.0, 0.0)]
    for labels in ({name: ["bad"]}, {name: [name], "goal": ["good"]}, {"goal": ["bad"], name: ["good"]}):
        mdp = mw.MDP.from_transitions(rows, labels=labels)
        for k in (1, 2, 3):
            rng = np.random.default_rng(k)
            mixed = random_policy(rng, mdp)
            policies = [going(mdp, ("good", name)), going(mdp, ("good", "go")), mixed][:k]
            for criterion in (mw.Average(), mw.Discounted(0.9)):
                plans = plan_set(mdp, policies, criterion)
                said = [s for p in portraits(plans) for s in (p.title, *p.sentences)]
                said += [text for row in measures(plans) for text in (row.name, row.meaning)]
                assert any(shown in text for text in said)
                for text in said:
                    assert text.encode()
                    assert not set(text) & set("\u202e\n")
                    assert "Hardly everland" not in text


def test_short_names_are_one_harmless_line():
    assert short("\u202eab\u2066c\u200f\u061c") == "abc"
    assert short("a\nb\tc\x00d\u2028e") == "a b c d e"
    assert short("x\ud800") == "x?"
    assert (plain("word"), plain("two words"), plain("two\nwords"), plain("")) == (
        "word",
        "'two words'",
        "'two words'",
        "''",
    )


def test_labels_that_look_the_same_keep_apart():
    long = "x" * 60
    labels = {long + "1": [0], long + "2": [1], "hot pan": [2], "goal": [3]}
    mdp = mw.MDP.from_transitions([(s, "go", (s + 1) % 4, 1.0, 1.0) for s in range(4)], labels=labels)
    plans = plan_set(mdp, [np.ones(4)])
    found = names(plans)
    assert len(set(found)) == len(found)
    assert {"time in 'hot pan'", "chance of touching 'hot pan'"} <= set(found)
    assert {f"time in {short(long)}", f"time in {short(long)} (2)"} <= set(found)
    assert distinct(["a", "b", "c"], lambda _: "z") == {"a": "z", "b": "z (2)", "c": "z (3)"}
    assert len(portraits(plans)[0].sentences) >= 2


def test_an_optimum_of_rounding_is_zero():
    mdp = mw.MDP.from_transitions(
        [("a", "idle", "a", 1.0, 0.0), ("a", "pay", "a", 1.0, -0.003), ("a", "lots", "a", 1.0, -1.0)]
    )
    policies = [np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0])]
    plans = replace(plan_set(mdp, policies), optimal_reward=5.6e-17, rewards=np.array([-1e-13, -0.003]))
    loss = measures(plans)[1]
    assert (loss.unit, loss.values) == ("reward", pytest.approx([0.0, 0.003]))
    first, second = portraits(plans)
    assert "The higher reward of the two, and no plan can earn more." in first.sentences
    assert "The lower reward of the two, -0.003 per step where 0 is possible." in second.sentences
    assert "%" not in second.sentences[1]


def test_long_routes_are_shortened():
    rooms = rooms_of(tiled_rooms(37, 1))
    assert rooms is not None
    assert rooms.listed(list(range(1, 10))) == "rooms 1, 2, 3, 4, 5 and 4 more"
    steps = [Passage(None, direction, 1, 2) for direction in ["east"] * 4 + ["south"] * 3]
    assert Route((1,) * 8, tuple(steps)).turns == "east ×4, south ×3"
    assert Route((1,) * 3, tuple(steps[3:5])).turns == "east, south"


def test_long_names_are_cut():
    long = "x" * 100
    mdp = mw.MDP.from_transitions([("a", long, long, 1.0, 0.0), (long, "back", "a", 1.0, 1.0)], labels={long: [long]})
    plans = plan_set(mdp, [np.ones(2)])
    said = " ".join([*(s for p in portraits(plans) for s in p.sentences), *names(plans)])
    assert "x" * 39 + "…" in said
    assert "x" * 40 not in said


# ---- wording ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("share", "shown"),
    [(0, "0 %"), (-1e-17, "0 %"), (1e-5, "under 0.1 %"), (0.004, "0.4 %"), (0.03, "3 %"), (0.0995, "10 %"), (0.342, "34 %"),
     (0.9994, "99.9 %"), (0.99999, "over 99.9 %"), (1 - 1e-12, "100 %"), (1.234, "123 %")],
)  # fmt: skip
def test_percent(share, shown):
    assert percent(share) == shown


def test_numbers_and_lists():
    assert [number(x) for x in (0.0, -0.0, 31.24, 12345.6, 0.00934, -2.0, 99.96)] == [
        "0", "0", "31.2", "12,346", "0.00934", "-2", "100",
    ]  # fmt: skip
    assert [counted(x, "step") for x in (1.0, 1.04, 2, 0, 31.24, 1500)] == [
        "1 step", "1 step", "2 steps", "0 steps", "31.2 steps", "1,500 steps",
    ]  # fmt: skip
    assert [joined(items) for items in (["a"], ["a", "b"], ["a", "b", "c"])] == ["a", "a and b", "a, b and c"]


# ---- whatever comes ---------------------------------------------------------------------------


def random_plans(rng: np.random.Generator) -> mw.PlanSet:
    """A random model with random labels and perhaps a map, and random plans for it, some alike."""
    discounted = rng.random() < 0.5
    mdp = random_mdp(rng, 7) if discounted else random_accessible_mdp(rng, 5)
    labels = {
        name: rng.random(mdp.n_states) < 0.4 for name in ("goal", "start", "door", "wall", "b c") if rng.random() < 0.6
    }
    layout = None
    if rng.random() < 0.6:
        shape = (int(rng.integers(1, 5)), int(rng.integers(1, 5)))
        layout = Grid(rng.integers(0, shape[0] * shape[1], mdp.n_states), rng.random(shape) < 0.3)
    mdp = replace(mdp, labels=labels, layout=layout)
    policies = []
    for _ in range(int(rng.integers(1, 5))):
        policy = random_policy(rng, mdp)
        choices = [rng.integers(a, b) for a, b in pairwise(mdp.first_choice)]
        policies.append(
            policies[0]
            if policies and rng.random() < 0.2
            else policy
            if rng.random() < 0.5
            else deterministic(mdp, np.array(choices))
        )
    return plan_set(mdp, policies, mw.Discounted(0.9) if discounted else None)


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_any_plans_have_portraits(seed):
    plans = random_plans(np.random.default_rng(seed))
    found, rows = portraits(plans), measures(plans)
    assert len({portrait.title for portrait in found}) == len(found) == plans.k
    for row in rows:
        assert len(row.values) == plans.k
        known = [number for number in row.values if number is not None]
        assert np.isfinite(known).all()
        if row.unit == "share" and row.name != "below optimum":
            assert all(-1e-9 <= share <= 1 + 1e-9 for share in known)
    steps = next((row.values for row in rows if row.name == "steps to goal"), (None,) * plans.k)
    for plan, portrait in enumerate(found):
        assert 2 <= len(portrait.sentences) <= 5
        assert len(set(portrait.sentences)) == len(portrait.sentences)
        for sentence in portrait.sentences:
            assert sentence[0].isupper() or sentence[0].isdigit()
            assert sentence.endswith(".")
            assert not re.search(r"-0(\.0*)? |nan|inf\b|None|\{|  |(?<![\d.,])1 steps", sentence), sentence
            check_steps(sentence, steps, plan)


def check_steps(sentence: str, steps: tuple[float | None, ...], plan: int) -> None:
    """A sentence on length quotes the plan's own steps, and the fewest of the set."""
    own, known = steps[plan], [value for value in steps if value is not None]
    if match := re.search(r"([\d.,]+) steps? to the goal", sentence):
        assert own is not None
        assert match[1] == quantity(own)
    if match := re.search(r"\(([\d.,]+) steps? on average against ([\d.,]+)\)", sentence):
        assert own is not None
        assert (match[1], match[2]) == (quantity(own), quantity(min(known)))
        if more := re.match(r"(?:The longest, )?([\d.]+) % longer", sentence):
            assert float(more[1]) == pytest.approx(100 * (own / min(known) - 1), rel=0.06, abs=0.06)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_routes_say_what_the_path_does(seed):
    """The rooms and turns of a route sentence, against a walk of the path cell by cell."""
    rng = np.random.default_rng(seed)
    mdp = mw.read(f"nine-rooms:{rng.integers(50)}")
    plans = mw.plan(mdp, 2, float(rng.choice([0.5, 8.0])), time_limit_s=10)
    assert mdp.layout is not None
    line = {0: "north", 1: "", 2: "south"}, {0: "west", 1: "", 2: "east"}
    for plan, portrait in enumerate(portraits(plans)):
        step, at, way = chain(mdp, plans.policies[plan]).toarray(), int(np.argmax(mdp.start)), []
        while not mdp.labels["goal"][at] and len(way) < 400:
            way.append(at)
            at = int(np.argmax(step[at]))
        if len(way) == 400:
            continue
        rooms = []
        for state in [*way, at]:
            row, column = mdp.layout.position(state)
            if row % 6 and column % 6 and not mdp.layout.blocked[row, column]:
                name = "-".join(filter(None, (line[0][row // 6], line[1][column // 6]))) or "middle"
                rooms += [name] if not rooms or rooms[-1] != name else []
        said = portrait.sentences[0]
        between = rooms[1:-1]
        assert f"through the {joined(between)} room{'s' if len(between) > 1 else ''}: " in said
        assert len(said.split(": ")[1].split(", ")) >= len(rooms) - 1


def test_numbers_and_sentences_look_once(monkeypatch):
    """The chains are solved once for both."""
    plans = mw.plan(repair_shop(), 2)
    calls = []
    monkeypatch.setattr(measuring, "chain", lambda *given: calls.append(1) or chain(*given))
    measures(plans)
    portraits(plans)
    assert len(calls) == 2


def test_two_hundred_plans_are_quick():
    """About a second; the bound leaves room for a busy machine."""
    from time import process_time

    base = mw.plan("nine-rooms:7", 2, 8.0)
    rng = np.random.default_rng(0)
    mixed = [
        base.policies[0] * (1 - w) + base.policies[1] * w
        for w in rng.random(200)[:, None] * np.ones(base.mdp.n_choices)
    ]
    occupancies = np.stack([base.criterion.occupancy(base.mdp, policy) for policy in mixed])
    distances = np.abs(state_occupancy(base.mdp, occupancies) @ rng.random((base.mdp.n_states, 1)))
    plans = replace(
        base, policies=np.stack(mixed), occupancies=occupancies, rewards=occupancies @ base.mdp.reward,
        distances=np.abs(distances - distances.T),
    )  # fmt: skip
    begin = process_time()
    measures(plans)
    assert len({portrait.title for portrait in portraits(plans)}) == 200
    assert process_time() - begin < 6
