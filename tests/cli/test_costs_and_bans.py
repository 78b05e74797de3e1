"""Costs on the command line: what tables show, and the note on rewards that are probably costs."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from commands import DONE

import manyways as mw
from manyways.cli import common
from manyways.cli.common import note_on_costs, note_on_size, note_on_version, with_settings
from manyways.formats import write_model


def errands() -> mw.MDP:
    rows = [
        ("start", "short", "goal", 1.0, 2.0),
        ("start", "long", "middle", 1.0, 2.0),
        ("middle", "on", "goal", 1.0, 1.0),
    ]
    return mw.MDP.from_transitions(
        [*rows, ("goal", "again", "start", 1.0, 0.0)], labels={"goal": ["goal"]}, name="errands"
    )


@pytest.fixture
def costly(here) -> str:
    mw.plan(errands().minimising(), 2, 4.0, criterion=mw.Average()).save(here / "costly.mw")
    return "costly.mw"


def test_the_table_shows_costs(manyways, costly):
    answer = manyways("show", costly)
    assert answer.code == DONE
    assert "cost ┃ above least ┃" in " ".join(answer.out.split())
    assert "minus mean cost + 4" in answer.words
    assert "optimal cost 1.0000" in answer.words
    assert "reward" not in answer.words


def test_json_keeps_rewards_and_says_that_they_are_minus_costs(manyways, costly):
    answer = manyways("show", costly, "--json").json
    assert answer["model"]["costs"] is True
    assert answer["optimal_reward"] == pytest.approx(-1.0)


def test_simulations_show_costs(manyways, costly):
    answer = manyways("simulate", costly, "--steps", "600")
    assert "plan 1, cost per step" in answer.out
    low, high = (float(part) for part in answer.out.split("run in the model")[1].split("│")[2].split(" to "))
    assert low <= 1.0 <= high


def test_a_reward_that_looks_like_a_cost_is_pointed_out(here, capsys):
    write_model(errands(), here / "errands.drn")
    note_on_costs(mw.read("errands.drn"))
    assert capsys.readouterr().err == (
        "manyways: the reward of errands is maximised, although it looks like a cost: to minimise it, use --minimise, "
        "?minimise=true in the source, or mdp.minimising() in Python; --maximise hides this note\n"
    )
    for said in ("errands.drn?minimise=true", "errands.drn?minimise=false", "nine-rooms:7"):
        note_on_costs(mw.read(said))
    assert capsys.readouterr().err == ""


def test_an_action_is_banned(manyways, here):
    write_model(errands(), here / "errands.drn")
    answer = manyways("plan", "errands.drn", "--k", "1", "--without-action", "nothing")
    assert answer.code == 2
    assert "there is no action 'nothing' to ban" in answer.err
    answer = manyways("plan", "errands.drn", "--k", "1", "--without-action", "short", "--out", "long.mw")
    assert answer.code == DONE
    left = mw.load("long.mw").mdp
    assert {left.action_name(x) for x in range(left.n_choices)} == {"long", "on", "again"}


def test_a_state_is_banned_by_its_name(manyways, here):
    mw.plan(errands(), 1).save(here / "errands.mw")
    assert manyways("plan", "errands.mw", "--k", "1", "--without", "middle", "--out", "short.mw").code == DONE
    assert "middle" not in [mw.load("short.mw").mdp.state_name(s) for s in range(2)]


def test_the_ban_is_named_if_no_plan_comes_back(manyways):
    answer = manyways("plan", "four-rooms:3", "--without", "goal")
    assert "four-rooms:3 without 'goal' is not weakly accessible" in answer.err
    assert "ban less than 'goal', use --discount" in answer.err


def test_options_become_settings():
    assert with_settings("a.drn", restart=None, without=None, minimise=None) == "a.drn"
    assert with_settings("a.drn?reward=x", without=["mud", "a wall"], minimise=True) == (
        "a.drn?reward=x&without=mud&without=a+wall&minimise=true"
    )
    assert with_settings("a.drn", without=[], minimise=False) == "a.drn?minimise=false"


def test_another_version_of_an_environment_is_pointed_out(capsys):
    note_on_version("gym:Taxi-v3", mw.read("gym:Taxi-v3"))
    assert re.fullmatch(r"manyways: Gymnasium no longer has Taxi-v3; this is Taxi-v\d\n", capsys.readouterr().err)
    note_on_version("gym:CliffWalking-v1", mw.read("gym:CliffWalking-v1?is_slippery=True"))
    assert capsys.readouterr().err == ""


def test_large_maps_of_robots_can_be_coarsened(capsys, monkeypatch):
    world = mw.grid_world(np.zeros((5, 5), int), (0, 0), (4, 4), name="lab")
    robots = replace(world, layout=replace(world.layout, metres_per_cell=0.05, origin=(0.0, 0.0, 0.0)))
    monkeypatch.setattr(common, "MANY_CELLS", 24)
    note_on_size(world)
    note_on_size(robots.read_from("lab.yaml?coarsen=2"))
    assert capsys.readouterr().err == ""
    note_on_size(robots.read_from("lab.yaml"))
    assert capsys.readouterr().err.startswith(
        "manyways: lab has 25 free cells, for which planning may take minutes: coarsen=2"
    )


def test_staying_for_nothing_is_pointed_out(manyways, here):
    (here / "trip.csv").write_text(
        "state,action,next,prob,cost,labels\nhome,walk,far,1,3,\nhome,ride,shop,1,2,\nfar,walk,shop,1,1,\nshop,stay,shop,1,0,at shop\n"
    )
    answer = manyways("plan", "trip.csv", "--k", "2")
    assert answer.err == (
        "manyways: the best cost per step is 0, that of staying in 'at shop' forever: to plan for the way there, use "
        "--restart 'at shop'\n"
    )
    again = manyways("plan", "trip.csv", "--k", "2", "--restart", "at shop")
    assert (again.code, again.err) == (DONE, "")
    assert "optimal cost 2.0000" in again.words


def test_costs_beyond_a_limit_on_the_way_are_pointed_out(manyways, here):
    """The short way costs 2, the long one 3, with one step more."""
    write_model(errands().minimising(), here / "errands.drn")
    noted = "manyways: --longer limits the number of steps, not the cost"
    source = "errands.drn?minimise=true"
    dear = mw.MDP.from_transitions(
        [
            ("start", "cheap", "goal", 1.0, 1.0),
            ("start", "dear", "goal", 1.0, 5.0),
            ("goal", "again", "start", 1.0, 0.0),
        ],
        labels={"goal": ["goal"]},
        name="dear",
    )
    write_model(dear, here / "dear.drn")
    assert manyways("plan", "dear.drn?minimise=true", "--k", "2", "--longer", "10%").err.startswith(noted)
    assert manyways("plan", "dear.drn?minimise=true", "--k", "2", "--longer", "10%", "--slack", "10%").err == ""
    assert manyways("plan", source, "--k", "1", "--longer", "10%").err == ""
