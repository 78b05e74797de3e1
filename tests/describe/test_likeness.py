"""How much alike plans are, in words."""

from __future__ import annotations

from dataclasses import replace
from math import log

import numpy as np
import pytest
from given_plans import EAST, SOUTH, along, commute, going, plan_set, rooms_world

import manyways as mw
from buildings import building
from manyways.describe import GRADES, portraits, survey_of
from manyways.describe.likeness import Likeness, likeness_of
from manyways.formats.text_maps import world_from_rows
from problems import jsd


def pair(own: float, near: float | None = None, passages: bool | None = None, rules: bool | None = None) -> Likeness:
    def matrix(value):
        return None if value is None else np.array([[0.0, value], [value, 0.0]])

    def truths(value):
        return None if value is None else matrix(value) > 0

    return Likeness(matrix(own), matrix(near), "", truths(passages), truths(rules))


@pytest.mark.parametrize(
    ("own", "near", "passages", "words"),
    [
        (0.005, None, None, "nearly the same"),
        (0.09, None, None, "similar"),
        (0.1, None, None, "different"),
        (0.3, None, None, "clearly different"),
        (0.6, None, None, "very different"),
        (0.6, 0.5, None, "very different"),
        (0.6, 0.3, None, "clearly different"),
        (0.6, 0.1, None, "different cell by cell, but near each other most of the way"),
        (0.6, 0.1, True, "different cell by cell, but near each other most of the way"),
        (0.6, 0.09, False, "similar"),
        (0.6, 0.19, False, "different"),
        (0.6, 0.2, False, "clearly different"),
        (0.6, 0.5, True, "very different"),
        (0.3, 0.6, None, "clearly different"),
        (0.15, 0.6, None, "different"),
        (0.1, 0.05, None, "similar"),
        (0.005, 0.0, None, "nearly the same"),
        (0.005, 0.5, None, "the same in what is compared, but on different ways"),
    ],
)
def test_words(own, near, passages, words):
    likeness = pair(own, near, passages)
    assert GRADES[likeness.grade(0, 1)] == words
    assert likeness.same_way(0, 1) == (near is not None and near < 0.2 and passages is not False)
    assert likeness.all_same_way == likeness.same_way(0, 1)


def test_plans_that_act_by_the_same_rule_are_not_called_different():
    assert [GRADES[pair(own, rules=True).grade(0, 1)] for own in (0.005, 0.15, 0.3, 0.6)] == [
        "nearly the same",
        "in different states, but act by the same rule",
        "in different states, but act by the same rule",
        "in different states, but act by the same rule",
    ]
    assert pair(0.6, rules=True).alike(0, 1)
    assert pair(0.6, rules=True).act_alike(0, 1)
    assert not pair(0.09, rules=True).act_alike(0, 1)
    assert GRADES[pair(0.6, rules=False).grade(0, 1)] == "very different"


def test_plans_are_very_different_only_if_both_distances_say_so():
    for own in np.linspace(0.0, log(2), 24):
        for near in np.linspace(0.0, log(2), 24):
            if GRADES[pair(own, near).grade(0, 1)] == "very different":
                assert min(own, near) >= 0.45


def test_the_radius_is_a_sixteenth_of_the_map(tmp_path):
    field = world_from_rows(["S" + "." * 47, *["." * 48] * 30, "." * 47 + "G"], "field", correct_transition=1.0)
    plans = plan_set(field, [along(field, "r" * 47 + "d" * 31), along(field, "d" * 31 + "r" * 47)])
    likeness = likeness_of(plans, [None, None], None)
    images = mw.Near(3.0).on(field).forward(plans.occupancies)
    assert likeness.radius == "3 cells"
    assert likeness.near is not None
    assert likeness.near[0, 1] == pytest.approx(jsd(*images))
    small = world_from_rows(["S.......", *["." * 8] * 6, ".......G"], "small")
    assert likeness_of(plan_set(small, [going(small)]), [None], None).radius == "1 cell"
    narrow = world_from_rows(["S.......", "........", ".......G"], "narrow")  # a row apart is a way of its own
    assert likeness_of(plan_set(narrow, [going(narrow)]), [None], None).near is None
    robot = mw.read(building(tmp_path))  # 100 x 75 cells of 0.2 m
    assert likeness_of(plan_set(robot, [going(robot)]), [None], None).radius == "1.2 m"


def test_near_is_not_known_without_a_map_or_moves_both_ways():
    assert survey_of(plan_set(commute(), [going(commute())])).likeness.near is None
    moves = [("a", "go", "b"), ("b", "go", "c"), ("c", "go", "a"), ("a", "hop", "d"), ("d", "go", "c")]
    mdp = mw.MDP.from_transitions([(*move, 1.0, 0.0) for move in moves])
    mdp = replace(mdp, layout=mw.Grid(np.arange(mdp.n_states), np.zeros((1, mdp.n_states), bool)))
    likeness = survey_of(plan_set(mdp, [going(mdp, ("a", "go")), going(mdp, ("a", "hop"))])).likeness
    assert likeness.near is None
    assert likeness.radius == ""
    assert likeness.apart is likeness.distances


def test_the_same_passages():
    """Ways by the same rooms and doors, ways by others, and a mixture of both."""
    mdp = rooms_world()
    east, other, south = along(mdp, EAST), along(mdp, "drrrrddd"), along(mdp, SOUTH)
    for weight, same in ((0.1, True), (0.4, False)):
        mixed = (1 - weight) * east + weight * along(mdp, "ddddrrrr")
        passages = survey_of(plan_set(mdp, [east, other, south, mixed])).likeness.passages
        assert passages is not None
        assert passages.tolist() == [
            [True, True, False, same],
            [True, True, False, same],
            [False, False, True, False],
            [same, same, False, True],
        ]


def test_plans_alike_only_in_what_is_compared_are_not_called_the_same():
    """By labels, the two ways round a ring are the same; on the map they are not."""
    rows = ["S" + "." * 30 + "G", *["." + "#" * 30 + "."] * 20, "." * 32]
    mdp = world_from_rows(rows, "ring", enterable_walls=False, correct_transition=1.0)
    plans = plan_set(mdp, [along(mdp, "r" * 31), along(mdp, "d" * 21 + "r" * 31 + "u" * 21)])
    plans = replace(plans, distances=np.zeros((2, 2)))
    assert GRADES[survey_of(plans).likeness.grade(0, 1)] == "the same in what is compared, but on different ways"
    assert not any("Nearly the same" in sentence for portrait in portraits(plans) for sentence in portrait.sentences)


def test_plans_that_differ_only_in_actions_of_the_same_effect_are_alike():
    lake = mw.read("gym:FrozenLake-v1")
    first, names = lake.first_choice, lake.action_names
    policies = np.zeros((2, lake.n_choices))
    policies[:, first[:-1]] = 1.0
    for plan, action in enumerate(("down", "right")):  # both lead to the same three places from the start
        here = slice(first[0], first[1])
        policies[plan, here] = [names[lake.actions[x]] == action for x in range(first[0], first[1])]
    likeness = survey_of(plan_set(lake, list(policies))).likeness
    assert likeness.distances[0, 1] > 0.01
    assert likeness.same_effect(0, 1)
    assert likeness.alike(0, 1)
