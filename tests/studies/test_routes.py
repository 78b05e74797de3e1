"""Routes: the doors that a plan goes through."""

import numpy as np

import manyways as mw
from manyways.formats.text_maps import world_from_rows
from manyways.studies.routes import routes


def two_doors() -> mw.MDP:
    mdp = world_from_rows(["S...", ".##.", "...G"], "two ways", correct_transition=1.0)
    doors = np.zeros(mdp.n_states, bool)
    doors[[3, 8]] = True  # the corners top right and bottom left
    return mw.MDP(
        mdp.transitions, mdp.reward, mdp.first_choice, mdp.start, mdp.actions, mdp.action_names,
        labels=dict(mdp.labels) | {"door": doors}, layout=mdp.layout,
    )  # fmt: skip


def test_the_doors_of_each_plan():
    mdp = two_doors()
    plans = mw.plan(mdp, 2, 100.0)
    found = routes(mdp, plans.policies)
    assert sorted(found) == sorted([mdp.state_name(3), mdp.state_name(8)])


def test_a_plan_that_stays_has_no_route():
    mdp = two_doors()
    stay = np.zeros(mdp.n_choices)
    last = mdp.first_choice[1:] - 1  # 'stop' is the last action everywhere
    stay[last] = 1.0
    assert routes(mdp, stay[None]) == [None]


def test_without_doors_there_are_no_routes():
    mdp = world_from_rows(["S.G"], "corridor")
    assert routes(mdp, mw.plan(mdp, 1).policies) is None
