"""Titles: what plans do in their main part, and nothing that they do for a small share of their time."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from given_plans import along, going, plan_set, repair_shop, rooms_world, value
from hypothesis import given, settings
from hypothesis import strategies as st

import manyways as mw
from buildings import building, open_field, passages_of
from manyways.describe import GRADES, portraits, survey_of
from manyways.formats.text_maps import world_from_rows
from manyways.model.occupancy import chain
from manyways.report import view_of
from problems import random_accessible_mdp, random_policy


@pytest.fixture(scope="module")
def robot(tmp_path_factory) -> mw.MDP:
    return mw.read(building(tmp_path_factory.mktemp("building")))


def test_plans_through_one_passage_are_not_given_names_of_different_ways(robot):
    """The default compares cell by cell, and all its plans take the middle passage."""
    plans = mw.plan(robot, 4, tradeoff=8.0)
    assert passages_of(plans) == ["middle"] * 4
    assert plans.distances[np.triu_indices(4, 1)].min() > 0.6
    survey = survey_of(plans)
    found = portraits(survey)
    for portrait in found:
        assert re.match(r"(Like plan \d, |Highest reward|[\d.]+ % below the optimum)", portrait.title), portrait.title
        assert "Stays near all the others most of the way." in portrait.sentences  # all passages are those of all plans
    words = {GRADES[survey.likeness.grade(i, j)] for i in range(4) for j in range(i)}
    assert words == {"different cell by cell, but near each other most of the way"}
    shown = view_of(plans)
    assert shown["difference"].startswith("All of them stay near each other most of the way")
    assert all(shown["data"]["likeness"][i][j] == survey.likeness.grade(i, j) for i in range(4) for j in range(4))
    for i, portrait in enumerate(found):  # what a title says of a loss holds
        if loss := re.search(r"([\d.]+) % below", portrait.title):
            assert float(loss[1]) == pytest.approx(100 * (1 - plans.rewards[i] / plans.optimal_reward), abs=0.05)


def test_different_passages_are_the_titles(robot):
    plans = mw.plan(robot, 3, slack=0.15, behaviour=mw.Near(1.0))
    taken = passages_of(plans)
    assert sorted(taken) == ["east", "middle", "west"]
    for where, portrait in zip(taken, portraits(plans), strict=True):
        assert portrait.title == f"Through the {where} passage"
        assert f"The only plan through the {where} passage." in portrait.sentences
    likeness = survey_of(plans).likeness
    assert not likeness.all_same_way
    assert {GRADES[likeness.grade(i, j)] for i, j in ((0, 1), (0, 2), (1, 2))} <= {
        "clearly different",
        "very different",
    }


def time_by_third(plans: mw.PlanSet, plan: int) -> np.ndarray:
    """(3, 3) the share of all time in each ninth of a square map without walls around it, start and goal left out."""
    mdp = plans.mdp
    assert mdp.layout is not None
    found, side = np.zeros((3, 3)), mdp.layout.shape[0]
    for x, time in enumerate(plans.occupancies[plan]):
        state = int(mdp.choice_state[x])
        if not (mdp.labels["start"][state] or mdp.labels["goal"][state]):
            row, column = mdp.layout.position(state)
            found[3 * row // side, 3 * column // side] += time
    return found


def share_said(words: str, time: np.ndarray) -> float:
    """The time in the part of the map that "by the north-east" or "through the middle" names: the ninth, or the three
    ninths on that side."""
    if "middle" in words:
        return time[1, 1]
    around = [(0, 0), (0, 1), (0, 2), (1, 2), (2, 2), (2, 1), (2, 0), (1, 0)]
    names = ["north-west", "north", "north-east", "east", "south-east", "south", "south-west", "west"]
    at = names.index(words.split(" the ")[1])
    return sum(time[around[(at + step) % 8]] for step in (-1, 0, 1))


@pytest.mark.parametrize("behaviour", [mw.StateActions(), mw.Near()])
def test_titles_on_an_open_field_name_a_quarter_of_the_time(behaviour, tmp_path):
    plans = mw.plan(mw.read(open_field(tmp_path)), 4, slack=0.1, behaviour=behaviour)
    found = portraits(plans)
    assert len({portrait.title for portrait in found}) == 4
    times = [time_by_third(plans, plan) for plan in range(4)]
    for plan, portrait in enumerate(found):
        words = portrait.title.lower().partition(" — ")[0].replace(" and the ", " and by the ").split(" and ")
        assert sum(share_said(part, times[plan]) for part in words) >= 0.25
        for part in words:
            others = [share_said(part, times[other]) for other in range(4) if other != plan]
            assert np.mean(others) < share_said(part, times[plan])


def without_doors(source: str) -> mw.MDP:
    mdp = mw.read(source)
    return replace(mdp, labels={name: mask for name, mask in mdp.labels.items() if name != "door"})


@pytest.mark.parametrize("source", ["nine-rooms:8", "four-rooms:0"])
def test_chances_of_regions_against_dense_absorbing_chains(source):
    """The chance of meeting each region before the goal, with a dense solve for each."""
    mdp = without_doors(source)
    plans = mw.plan(mdp, 2, slack=0.1)
    survey = survey_of(plans)
    assert survey.regions is not None
    for policy, fact in zip(plans.policies, survey.facts, strict=True):
        assert fact.regions is not None
        step, goal = chain(mdp, policy).toarray(), mdp.labels["goal"]
        for region, chance in enumerate(fact.regions):
            target = survey.regions.of_state == region
            ended = target | goal
            hit = np.zeros(mdp.n_states)
            hit[target] = 1.0
            inside = np.flatnonzero(~ended)
            # A little more than 1, because states that meet neither would make the system singular.
            system = (1 + 1e-11) * np.eye(len(inside)) - step[np.ix_(inside, inside)]
            hit[inside] = np.linalg.solve(system, step[np.ix_(inside, np.flatnonzero(target))].sum(axis=1))
            assert hit @ mdp.start - 1e-7 <= chance <= hit @ mdp.start + 1.001e-3


def test_rooms_without_labels_are_found_and_named():
    plans = mw.plan(without_doors("nine-rooms:8"), 6, slack=0.1)
    survey = survey_of(plans)
    assert survey.regions is not None
    names = survey.regions.names
    for portrait, fact in zip(portraits(survey), survey.facts, strict=True):
        said = re.match(r"Through the (.*) rooms", portrait.title)
        assert said, portrait.title
        assert fact.regions is not None
        for room in re.split(", | and ", said[1]):
            assert fact.regions[names.index(f"{room} room")] > 0.5
        assert not any(re.search(r"(room|passage) \d", sentence) for sentence in portrait.sentences)


def test_chances_of_regions_where_the_goal_may_be_missed(monkeypatch):
    """A walk that goes anywhere but never leaves one cell of the first room."""
    mdp = without_doors("four-rooms:0")
    walk = np.concatenate([np.full(n, 1 / n) for n in np.diff(mdp.first_choice)])
    trap = int(mdp.first_choice[int(np.argmax(mdp.start)) + 1])
    stay = mdp.first_choice[mdp.choice_state[trap] + 1] - 1
    walk[mdp.choice_state == mdp.choice_state[trap]] = 0.0
    walk[stay] = 1.0
    plans = plan_set(mdp, [mw.plan(mdp, 1).policies[0], walk])
    found = survey_of(plans).facts[1]
    assert found.reaches is not None
    assert 0 < found.reaches < 1
    assert found.regions is not None
    step, survey = chain(mdp, walk).toarray(), survey_of(plans)
    assert survey.regions is not None
    for region in range(len(survey.regions.names)):
        at, chance = mdp.start.copy(), 0.0
        target = survey.regions.of_state == region
        for _ in range(4_000):
            chance += at[target].sum()
            at = np.where(target | mdp.labels["goal"], 0.0, at) @ step
        assert found.regions[region] == pytest.approx(chance, abs=1e-3)
    monkeypatch.setattr("manyways.describe.survey.VISITED", 0)
    survey = survey_of(plans)
    assert survey.facts[1].regions is None
    assert survey.likeness.passages is None


def test_maps_with_many_regions_are_described_without_them(monkeypatch):
    monkeypatch.setattr("manyways.describe.survey.REGIONS_AT_MOST", 3)
    survey = survey_of(mw.plan(without_doors("four-rooms:0"), 2, slack=0.1))
    assert survey.regions is None
    assert survey.likeness.passages is None


def test_labels_on_the_way():
    rows = [("start", way, way, 1.0, 0.0) for way in ("bridge", "ferry")]
    rows += [("bridge", "on", "goal", 1.0, 0.0), ("ferry", "on", "goal", 1.0, 0.0), ("goal", "again", "wait", 1.0, 1.0)]
    rows += [(f"wait{i or ''}", "on", f"wait{i + 1}" if i < 8 else "start", 1.0, 0.0) for i in range(9)]
    mdp = mw.MDP.from_transitions(rows, labels={"goal": ["goal"], "toll": ["bridge"]}, start="start")
    over, by = portraits(plan_set(mdp, [going(mdp, ("start", "bridge")), going(mdp, ("start", "ferry"))]))
    assert over.title == "Through toll"
    assert by.title != "Ferry"  # one step of twelve


def test_what_takes_less_than_a_quarter_of_the_time_is_no_title():
    """Repairs are one step in six."""
    mdp = repair_shop()
    plans = plan_set(mdp, [going(mdp, ("worn", "repair")), going(mdp, ("worn", "run"))])
    titles = [portrait.title for portrait in portraits(plans)]
    assert titles[0] == "Highest reward"
    assert not any("repair" in title.lower() for title in titles)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_actions_and_states_in_titles_take_a_quarter_of_the_time(seed):
    rng = np.random.default_rng(seed)
    mdp = random_accessible_mdp(rng)
    plans = plan_set(mdp, [random_policy(rng, mdp) for _ in range(int(rng.integers(2, 5)))])
    actions = {mdp.action_name(x): x for x in range(mdp.n_choices)}
    states = {mdp.state_name(s): s for s in range(mdp.n_states)}
    for plan, full in enumerate(plans.titles):
        title = full.partition(" — ")[0]
        words = re.sub(r"^(mostly|more often|more time|often) (in )?|^mostly in | \(\d\)$|'", "", title.lower())
        time = 1.0
        if words in states and " in " in title:
            time = plans.occupancies[plan][mdp.choice_state == states[words]].sum()
        elif words.removeprefix("takes ") in actions:
            same = [x for x in range(mdp.n_choices) if mdp.action_name(x) == words.removeprefix("takes ")]
            time = plans.occupancies[plan][same].sum()
        elif departs := re.fullmatch(r"(like plan (\d), but )?takes (\w+) in (\w+)", words):
            here = np.flatnonzero(mdp.choice_state == states[departs[4]])
            action = next(x for x in here if mdp.action_name(x) == departs[3])
            others = [int(departs[2]) - 1] if departs[2] else [i for i in range(plans.k) if i != plan]
            assert plans.policies[plan][action] > 0.95
            assert all(plans.policies[other][action] <= 0.95 for other in others)
        else:
            assert re.match(
                r"Like plan|The same as plan|Highest reward|Optimal|Stays|Earns|[\d.]+ % below|[Uu]nder", title
            ), title
        assert time >= 0.25


def test_plans_like_another_say_so_only_if_they_are():
    for source, slack in (("gym:FrozenLake-v1?map_name=8x8", 0.1), ("four-rooms:0", 0.05)):
        plans = (
            mw.plan(source, 4, slack=slack) if source.startswith("four") else mw.plan(mw.read(source), 4, slack=slack)
        )
        assert plans.mdp.layout is not None
        near = mw.Near(max(max(plans.mdp.layout.shape) / 16, 1.0)).on(plans.mdp).forward(plans.occupancies)
        for plan, title in enumerate(plans.titles):
            if like := re.match(r"Like plan (\d)", title):
                other = int(like[1]) - 1
                middle = (near[plan] + near[other]) / 2
                apart = sum(
                    0.5 * float((p[p > 0] * np.log(p[p > 0] / middle[p > 0])).sum()) for p in (near[plan], near[other])
                )
                assert apart < 0.2
                assert not plans.titles[other].startswith("Like plan")


def test_a_route_that_most_ways_do_not_take_is_no_title():
    """Each of three ways is taken in about a third of all rounds."""
    mdp = rooms_world()
    by_east, by_south = along(mdp, "rdrrrddd"), along(mdp, "ddddrrrr")
    usual, rare = portraits(plan_set(mdp, [by_east, 0.5 * by_east + 0.5 * by_south]))
    assert usual.title == "By the north-east room"
    assert rare.title not in ("By the north-east room", "By the south-west room")


def test_one_plan_is_named_by_its_passages():
    rows = ["#" * 30, *["#" + "." * 28 + "#"] * 9, "#" * 14 + ".." + "#" * 14, *["#" + "." * 28 + "#"] * 9, "#" * 30]
    rows[1], rows[-2] = rows[1][:1] + "S" + rows[1][2:], rows[-2][:-2] + "G#"
    mdp = world_from_rows(rows, "halls", enterable_walls=False, correct_transition=1.0)
    (portrait,) = portraits(mw.plan(mdp, 1))
    assert portrait.title == "Through the passage"


def test_the_only_plan_that_keeps_away_from_the_cliff_is_called_safest():
    plans = mw.plan("gym:CliffWalking-v1", 3, slack=0.4)
    mdp = plans.mdp
    cells = [(s, *divmod(s, 12)) for s in range(48)]
    beside = [
        s for s, row, column in cells if row == 2 and 1 <= column <= 10
    ]  # the cliff is below, start and goal beside it
    way = [s for s, row, column in cells if (row, column) not in ((3, 0), (3, 11))]
    names = {f"r{s // 12}c{s % 12}": s for s in range(48)}
    of_choice = np.array([names.get(mdp.state_name(int(s)), -1) for s in mdp.choice_state])
    shares = [x[np.isin(of_choice, beside)].sum() / x[np.isin(of_choice, way)].sum() for x in plans.occupancies]
    assert [value(plans, "way beside cliff", i) for i in range(3)] == pytest.approx(shares)
    safest = [title == "Safest: never beside the cliff" for title in plans.titles]
    assert safest == [share < 1e-12 for share in shares]
    assert sum(safest) == 1
    assert len(set(plans.titles)) == 3
    sentences = [portrait.sentences for portrait in portraits(plans)]
    assert "Safest: never beside the cliff, except at the start and the goal." in sentences[safest.index(True)]
