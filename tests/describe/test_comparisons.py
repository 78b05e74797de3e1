"""Remarks that compare a plan with the others: time spent and actions taken."""

from __future__ import annotations

import re

from given_plans import along, commute, going, plan_set, repair_shop, value

import manyways as mw
from manyways.describe import portraits
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
