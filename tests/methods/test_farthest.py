"""The plan that is farthest from given ones."""

from math import inf
from pathlib import Path

import numpy as np
import pytest

import manyways as mw
from manyways.methods import farthest
from manyways.objectives import LeastDivergence
from manyways.planning import asked_limits, default_aim
from manyways.polytope import Polytope, Vertex
from manyways.tasks import settled_task
from problems import jsd, random_accessible_mdp


def within(mdp: mw.MDP, slack: float) -> Polytope:
    limits = asked_limits(slack, None, None, randomised=False)
    return settled_task(Polytope(mdp), default_aim(mw.VertexAscent())(), limits).polytope


def away(plan: Vertex, others: list[Vertex]) -> float:
    return min(jsd(plan.occupancy, other.occupancy) for other in others)


@pytest.mark.parametrize("seed", range(12))
def test_no_single_action_within_the_limits_leads_farther_away(seed, monkeypatch):
    monkeypatch.setattr(farthest, "CHANGES", 100)
    mdp = random_accessible_mdp(np.random.default_rng(seed), 12, 3)
    polytope = within(mdp, 0.3)
    known = [polytope.optimum]
    least = LeastDivergence(inf).on(mdp, mw.StateActions().on(mdp))
    found = farthest.farthest_plan(polytope, least, known, 0)
    changed = farthest._changed(polytope, polytope.optimum, lambda plan: away(plan, known), None)
    assert polytope.meets_floors(changed.occupancy)
    assert away(found, known) >= away(changed, known) - 1e-8
    time = np.add.reduceat(changed.occupancy, mdp.first_choice[:-1])
    for state in np.flatnonzero(time > farthest.VISITED):
        for x in range(mdp.first_choice[state], mdp.first_choice[state + 1]):
            choices = np.array(changed.choices)
            choices[state] = x
            trial = polytope.vertex_of_one_class(choices)
            if trial is not None and polytope.meets_floors(trial.occupancy):
                assert away(trial, known) <= away(changed, known) + 1e-8


def test_who_replaces_a_plan_gets_another_one():
    """Machines that age, and spares: running slowly in one state is best for no combination of costs, and yet another way."""
    mdp = mw.read(str(Path(__file__).parents[1] / "data" / "machines.csv"))
    plans = mw.plan(mdp, 3, slack=0.05, fewer=True)
    again = mw.plan(mdp, 3, slack=0.05, fewer=True, keep=[plans[0], plans[1]], avoid=[plans[2]])
    assert len(again) == 3
    x = again.occupancies
    assert (again.rewards >= again.limits.floor - 1e-9).all()
    assert min(jsd(x[i], x[j]) for i in range(3) for j in range(i)) >= 0.1
    assert min(jsd(row, plans.occupancies[2]) for row in x) >= 0.1
