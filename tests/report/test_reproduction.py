"""The command or program on the page gives the same plans again."""

from __future__ import annotations

import math
import shlex
from pathlib import Path

import numpy as np
import pytest
from breadth_objective import Breadth
from typer.testing import CliRunner

import manyways as mw
from manyways.cli.program import app
from manyways.report.reproduction import facts, reproduction


@pytest.mark.parametrize(
    ("source", "settings", "expected"),
    [
        (
            "nine-rooms:7",
            {"k": 2, "tradeoff": 8.0},
            "manyways plan nine-rooms:7 --k 2 --seed 0 --tradeoff 8.0",
        ),
        (
            "four-rooms:1?correct_transition=0.9",
            {"k": 2, "tradeoff": 1.5, "seed": 3, "criterion": mw.Discounted(0.9), "behaviour": mw.States()},
            "manyways plan 'four-rooms:1?correct_transition=0.9' --k 2 --seed 3 --tradeoff 1.5 --discount 0.9 --behaviour states",
        ),
        (
            "four-rooms:1",
            {"k": 2, "tradeoff": 1.0, "method": mw.VertexAscent(starts=2, workers=2), "behaviour": mw.Labels()},
            "manyways plan four-rooms:1 --k 2 --seed 0 --tradeoff 1.0 --behaviour labels --starts 2",
        ),
        (
            "four-rooms:1",
            {"k": 2, "tradeoff": 1.0, "method": mw.FrankWolfe()},
            "manyways plan four-rooms:1 --k 2 --seed 0 --tradeoff 1.0 --method frank-wolfe",
        ),
        (
            "four-rooms:1",
            {"k": 2, "tradeoff": math.inf, "slack": 0.05, "randomised": True},
            "manyways plan four-rooms:1 --k 2 --seed 0 --slack 0.05 --randomised --tradeoff inf",
        ),
        (
            "four-rooms:1",
            {"k": 2, "tradeoff": 1.0, "floor": 6.5, "longer": 0.2},
            "manyways plan four-rooms:1 --k 2 --seed 0 --floor 6.5 --longer 0.2 --tradeoff 1.0",
        ),
        (
            "four-rooms:1",
            {"k": 2, "objective": mw.LeastDivergence(2.0), "behaviour": mw.Near(3.0)},
            "manyways plan four-rooms:1 --k 2 --seed 0 --diversity least --tradeoff 2.0 --behaviour near --apart 3.0",
        ),
        (
            "four-rooms:1",
            {"k": 2, "tradeoff": 1.0, "criterion": mw.Episodic(60)},
            "manyways plan four-rooms:1 --k 2 --seed 0 --tradeoff 1.0 --per episode --longest 60.0",
        ),
        (
            "gym:FrozenLake-v1",
            {"k": 2, "tradeoff": 1.0, "criterion": mw.Average()},
            "manyways plan 'gym:FrozenLake-v1?terminal=restart' --k 2 --seed 0 --tradeoff 1.0 --per step",
        ),
    ],
)
def test_the_command_gives_the_same_plans_again(tmp_path, source, settings, expected):
    plans = mw.plan(source, **settings)
    assert reproduction(plans, None) == {"kind": "command", "text": expected}
    assert_the_command_repeats(plans, tmp_path)


@pytest.mark.parametrize("fewer", [False, True])
@pytest.mark.parametrize(
    ("source", "limit", "criterion"),
    [
        ("nine-rooms:7", "--slack 0.1", ""),
        ("four-rooms:1?goal_reward=150", "--longer 0.1", ""),
        ("gym:FrozenLake-v1", "--slack 0.1", " --per episode --longest {longest}"),
        ("gym:CliffWalking-v1", "--slack 0.1", " --per episode --longest {longest}"),
    ],
)
def test_the_command_gives_the_plans_of_default_settings_again(tmp_path, source, limit, criterion, fewer):
    """A tradeoff that was derived from the model is no option: with one, clones would not be replaced."""
    plans = mw.plan(source, 4, fewer=fewer)
    more = criterion.format(longest=getattr(plans.criterion, "longest", None))
    expected = f" --k 4 --seed 0{'' if fewer else ' --exactly-k'} {limit}{more}"
    assert reproduction(plans, None)["text"].endswith(expected)
    assert_the_command_repeats(plans, tmp_path)


def test_a_set_of_fewer_plans_than_asked_for(tmp_path):
    plans = mw.plan("gym:CliffWalking-v1", 3, 1.0, slack=0.1, fewer=True)
    assert plans.k == 1
    assert " --k 3 --seed 0 --fewer --slack 0.1 --tradeoff 1.0 " in reproduction(plans, None)["text"]
    assert_the_command_repeats(plans, tmp_path)


def assert_the_command_repeats(plans: mw.PlanSet, folder: Path) -> None:
    command = shlex.split(reproduction(plans, None)["text"])[1:]
    assert CliRunner().invoke(app, [*command, "--out", str(folder / "again.mw")]).exit_code == 0
    again = mw.load(folder / "again.mw")
    np.testing.assert_array_equal(again.policies, plans.policies)
    assert again.limits == plans.limits
    assert again.criterion == plans.criterion
    assert reproduction(again, None) == reproduction(plans, None)


@pytest.mark.parametrize("change", ["model", "kept", "method", "behaviour", "objective", "limits"])
def test_what_no_command_can_say_is_a_call_that_gives_the_same_plans_again(tmp_path, change, monkeypatch):
    source = mw.four_rooms(1) if change in ("model", "limits") else "four-rooms:1"
    more = {
        "method": {"method": mw.VertexAscent(stages=(1.0, 0.1))},
        "behaviour": {"behaviour": mw.Labels(("door",))},
        "objective": {"tradeoff": None, "objective": Breadth()},
        "limits": {"tradeoff": None, "slack": 0.02, "longer": 0.5, "randomised": True, "fewer": True},
    }.get(change, {})
    plans = mw.plan(source, 2, **({"tradeoff": 3.0} | more))
    if change == "kept":
        plans = mw.plan(source, 2, 3.0, keep=plans.policies[:1], avoid=plans.policies[1:])
    monkeypatch.chdir(tmp_path)
    for file in (None, plans.save(tmp_path / "of my own.mw")):
        shown = reproduction(plans, file)
        assert shown["kind"] == "call"
        plans.save("plans.mw")
        names: dict = {}
        exec(shown["text"], names)
        np.testing.assert_array_equal(names["again"].policies, plans.policies)
        Path("plans.mw").unlink()


def test_classes_from_outside_are_imported_by_the_program():
    plans = mw.plan("four-rooms:1", 2, objective=Breadth())
    assert reproduction(plans, None)["text"].startswith("import manyways as mw\nimport breadth_objective\n")


def test_the_facts_are_what_was_set_and_found():
    plans = mw.plan("four-rooms:1", 2, objective=Breadth(), seed=3)
    found = dict(facts(plans))
    assert "mean reward + coverage of the choices; mean reward" in found["Objective"]
    assert found["What counts as different"] == "what is done where: StateActions()"
    assert found["Highest reward of any plan"] == f"{plans.optimal_reward:.6g} per step (proved)"
    assert f"seed 3: {plans.status}" in found["Search"]
