"""Tables: names as they are, hints on plans that are alike or far from the optimum."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from commands import DONE, PLAN

pytestmark = pytest.mark.usefixtures("here")


def test_one_plan_has_no_other_near_it(manyways):
    answer = manyways(*PLAN, "--k", "1")
    assert answer.code == DONE
    assert answer.out.startswith("map: 1 plan ")


def test_nearly_equal_plans_are_pointed_out(manyways):
    assert "plans 1 and 2 are nearly the same" in manyways(*PLAN, "--tradeoff", "0").words


def test_plans_far_from_the_optimum_come_with_advice(manyways):
    far = manyways("plan", "map.txt", "--k", "2", "--tradeoff", "1000").words
    assert re.search(r"the reward of plan 2 is \d+ % below the optimum; with a smaller --tradeoff \(now 1000\)", far)
    assert "below the optimum" not in manyways("plan", "map.txt", "--k", "2", "--tradeoff", "0").words


def test_a_tradeoff_that_was_not_given_is_not_to_be_made_smaller(manyways, here):
    (here / "two.txt").write_text("S.......G\n.#######.\n.#######.\n.........\n")
    answer = manyways("plan", "two.txt?enterable_walls=false", "--k", "2", "--for", "diversity", "--longer", "90%")
    assert "below the optimum; --slack limits that" in answer.words
    assert "tradeoff (now" not in answer.words


@pytest.mark.parametrize("name", ["[red]room", "a [/b] c", "plain [1]"])
def test_names_are_printed_as_they_are(manyways, here, name):
    (here / "world.json").write_text(json.dumps({"rows": ["S.G"], "name": name}))
    answer = manyways("plan", "world.json", "--k", "2", "--tradeoff", "8", "--out", "plans.mw")
    assert answer.code == DONE
    assert answer.out.startswith(f"{name}: 2 plans")
    assert manyways("show", "plans.mw").out.startswith(f"{name}: 2 plans")


def test_paths_are_printed_as_they_are(manyways):
    answer = manyways(*PLAN, "--out", "plans[b].mw")
    assert Path("plans[b].mw").exists()
    assert "plans written to plans[b].mw" in answer.words
