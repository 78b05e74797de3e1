"""Remarks that compare a plan with the others: time spent and actions taken."""

from __future__ import annotations

import re

import numpy as np
import pytest
from given_plans import along, commute, going, plan_set, repair_shop, value

import manyways as mw
from manyways.describe import portraits, survey_of
from manyways.describe.comparisons import difference, distinction
from manyways.describe.context import context_of
from manyways.describe.wording import finely, percent
from manyways.formats.text_maps import world_from_rows


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
    assert (
        f"Spends {percent(share)} of its time in states labelled 'down', more than the other plan."
        in careless.sentences
    )
    lost = value(plan_set(mdp, [going(mdp, ("worn", "run"))]), "below optimum")
    assert lost is not None
    assert f"The lower reward of the two, {finely(lost)} below the optimum." in careless.sentences


def test_the_only_plan_of_three():
    mdp = repair_shop()
    careless = going(mdp, ("worn", "run"))
    plans = plan_set(mdp, [going(mdp, ("worn", "repair")), careless, careless])
    first, second, third = portraits(plans)
    assert any(s.startswith("The only plan to take 'repair' in 'worn'") for s in first.sentences)
    assert second.sentences[0] == "Nearly the same as plan 3."
    assert third.sentences[0] == "Nearly the same as plan 2."
    assert len({first.title, second.title, third.title}) == 3


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
    assert "Takes 'hop' in 50 % of its steps; the other plan never does." in hop.sentences
    assert "Never takes 'hop'; the other plan takes it in 50 % of its steps." in skip.sentences
    assert "bridge" not in said


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


def test_labels_are_named_as_labels_where_it_is_said_what_plans_do_there():
    rows = [(f"s{i}", a, f"s{(i + 1) % 4}", 1.0, 1.0) for i in range(4) for a in ("left", "right")]
    mdp = mw.MDP.from_transitions(rows, labels={"at green": ["s0", "s1"]})
    acts = ("left", "left", "right", "right"), ("right", "right", "left", "left")
    left, right = (going(mdp, *((f"s{i}", act) for i, act in enumerate(own))) for own in acts)
    told = [sentence for own in portraits(plan_set(mdp, [left, right])) for sentence in own.sentences]
    assert any("in states labelled 'at green'" in sentence.lower() for sentence in told), told
    assert not any("In 'at green'" in sentence for sentence in told)


OPEN = [
    "S........",
    ".........",
    ".........",
    ".........",
    ".........",
    ".........",
    ".........",
    ".........",
    "........G",
]
NORTH, SOUTH = "r" * 8 + "d" * 8, "d" * 8 + "r" * 8
STAIRS = "rd" * 8


def open_plans(*ways: str) -> mw.PlanSet:
    mdp = world_from_rows(OPEN, "open", correct_transition=1.0)
    return plan_set(mdp, [along(mdp, way) for way in ways])


def test_a_plan_that_does_the_same_is_named():
    """Both plans in the north spend all of their way outside the corners of start and goal along two edges."""
    first, second, _ = portraits(open_plans(NORTH, "r" * 7 + "d" + "r" + "d" * 7, SOUTH))
    for portrait, other in ((first, 2), (second, 1)):
        said = [s for s in portrait.sentences if f", like plan {other}; plan 3 " in s]
        assert said, portrait.sentences
        assert not any("the others" in s and "north-east" in s for s in portrait.sentences)


def test_plans_differ_mainly_where_more_than_half_of_the_divergence_is():
    plans = open_plans(NORTH, SOUTH, STAIRS)
    context = context_of(survey_of(plans))
    for plan in range(3):
        for other in {0, 1, 2} - {plan}:
            p, q = plans.occupancies[[plan, other]]
            terms = [
                0.5 * np.where(own > 0, own * np.log(np.maximum(2 * own, 1e-300) / np.maximum(p + q, 1e-300)), 0)
                for own in (p, q)
            ]
            apart = np.bincount(plans.mdp.choice_state, sum(terms))
            share = {name: apart[mask].sum() / apart.sum() for name, mask in context.regions.items()}
            found = difference(context, plan, [other])
            if found is not None:
                assert found.mainly <= (share[found.where] >= 0.5)
    said = " ".join(s for portrait in portraits(plans) for s in portrait.sentences)
    assert "differ mainly" not in said  # no third of a third has half of it
    assert "; they differ in" not in said


def test_what_is_done_at_the_start_counts():
    """The first move of the plan by the south is down, in the cell of the start, which is in the north-west."""
    plans = open_plans("d" + "r" * 8 + "d" * 7, NORTH)
    first, _ = portraits(plans)
    down = next(f for f in context_of(survey_of(plans)).features if f.title == "'down' in the north-west")
    # In the nine cells of the north-west, it takes one step down and three to the right.
    assert down.values.tolist() == pytest.approx([1 / 4, 0.0])
    assert not any("Never takes 'down' in the north-west" in s for s in first.sentences)
    assert not any("Never takes 'down'" in s for s in first.sentences)


def test_three_parts_of_a_map_are_not_taken_for_one():
    said = " ".join(s for portrait in portraits(open_plans(NORTH, SOUTH)) for s in portrait.sentences)
    assert " side" not in said
    assert "in the north-east, north or east" in said


def test_a_qualifier_holds_against_every_other_plan():
    """Two plans are further north than the third, one of them hardly more than the other: only of the third is it said."""
    plans = open_plans("dd" + "r" * 8 + "d" * 6, "ddd" + "r" * 8 + "d" * 5, "ddr" + "d" + "r" * 7 + "d" * 5)
    context = context_of(survey_of(plans))
    for plan in range(3):
        others = [other for other in range(3) if other != plan]
        found = distinction(context, plan, others)
        if found is None or found.side is None:
            continue
        mask = context.regions[found.where]
        row, column = np.divmod(plans.mdp.layout.cells, plans.mdp.layout.shape[1])
        at = [
            [np.average(axis[mask], weights=time[mask]) for axis in (row, column)] for time in context.survey.by_state
        ]
        for other in others:
            down, right = at[plan][0] - at[other][0], at[plan][1] - at[other][1]
            amount = {"north": -down, "south": down, "west": -right, "east": right}
            assert min(amount[part] for part in found.side.split("-")) >= 0.3
