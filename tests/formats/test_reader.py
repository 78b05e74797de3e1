"""`read`: names of worlds, settings after a question mark, and messages for everything else."""

from __future__ import annotations

import numpy as np
import pytest

import manyways as mw


def refusal(source: object) -> str:
    with pytest.raises(mw.SourceError) as caught:
        mw.read(source)
    return str(caught.value)


@pytest.mark.parametrize(
    ("source", "make"),
    [
        ("four-rooms:3", lambda: mw.four_rooms(3)),
        ("nine-rooms:12", lambda: mw.nine_rooms(12)),
        ("nine-rooms", lambda: mw.nine_rooms(0)),
        ("four-rooms:3?correct_transition=0.8", lambda: mw.four_rooms(3, correct_transition=0.8)),
        ("nine-rooms?step_reward=-2", lambda: mw.nine_rooms(0, step_reward=-2.0)),
        (
            "nine-rooms:1?wall_reward=-1e2&goal_reward=50&step_reward=-.5&correct_transition=1",
            lambda: mw.nine_rooms(1, wall_reward=-100.0, goal_reward=50.0, step_reward=-0.5, correct_transition=1.0),
        ),
    ],
)
def test_worlds_by_name(source, make):
    assert mw.read(source).digest == make().digest


def test_a_model_is_its_own_source():
    mdp = mw.grid_world(np.zeros((1, 2), bool), (0, 0), (0, 1))
    assert mw.read(mdp) is mdp


@pytest.mark.parametrize(
    ("source", "hint"),
    [
        ("nine-room:7", "did you mean something like 'nine-rooms:7'?"),
        ("nine_rooms:7", "did you mean something like 'nine-rooms:7'?"),
        ("four-roms", "did you mean something like 'four-rooms:7'?"),
        ("Four-Rooms:2?step_reward=1", "did you mean something like 'four-rooms:7'?"),
        ("labyrinth", "names are gym:FrozenLake-v1, four-rooms:7, nine-rooms:7, rooms-100:7"),
        ("no/such/map.txt", "there is no file 'no/such/map.txt'"),
    ],
)
def test_unknown_names_get_a_hint(source, hint):
    assert hint in refusal(source)


@pytest.mark.parametrize("length", [300, 5000])
def test_names_that_are_too_long_for_a_file(length):
    assert "there is no file" in refusal("x" * length)


@pytest.mark.parametrize("seed", ["x", "-1", "1.5", "1e3", "7:8", "9" * 5000])
def test_bad_seeds(seed):
    message = refusal(f"nine-rooms:{seed}")
    assert "the seed after the colon must be an integer of at least 0" in message
    assert f"found {seed[:60]!r}" in message
    assert len(message) < 200


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("colour=3", "unknown setting 'colour', expected one of correct_transition, wall_reward, goal_reward"),
        ("name=3", "unknown setting 'name'"),
        ("step_reward=cheap", "step_reward must be a number, found 'cheap'"),
        ("step_reward=", "step_reward must be a number, found ''"),
        ("step_reward", "step_reward must be a number, found ''"),
        ("goal_reward=1&wall_reward=1,5", "wall_reward must be a number, found '1,5'"),
    ],
)
def test_bad_settings(query, message):
    source = f"four-rooms:0?{query}"
    assert refusal(source).startswith(f"{source}: {message}")


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("step_reward=nan", "step_reward must be a finite number, found nan"),
        ("goal_reward=inf", "goal_reward must be a finite number, found inf"),
        ("correct_transition=1.5", "correct_transition must be a finite number from 0 to 1, found 1.5"),
        ("correct_transition=nan", "correct_transition must be a finite number from 0 to 1, found nan"),
    ],
)
def test_settings_out_of_range(query, message):
    with pytest.raises(mw.ManywaysError, match=message):
        mw.read(f"four-rooms:0?{query}")


@pytest.mark.parametrize("source", [7, None, b"nine-rooms:7", ["S.G"], {"rows": ["S.G"]}])
def test_sources_of_another_type(source):
    message = refusal(source)
    assert message.startswith(
        f"cannot read a model from {type(source).__name__}; expected an MDP, a Gymnasium environment"
    )


def test_a_plan_file_is_a_source_of_its_model(tmp_path):
    plans = mw.plan("four-rooms:1", 2, 8.0)
    plans.save(tmp_path / "plans.mw")
    mdp = mw.read(tmp_path / "plans.mw")
    assert mdp.digest == plans.mdp.digest
    assert mdp.source == "four-rooms:1"
    again = mw.plan(tmp_path / "plans.mw", 3, 8.0, keep=plans.policies[:1])
    assert again.kept == (0,) or (again.policies[list(again.kept)] == plans.policies[:1]).all()
    (tmp_path / "broken.mw").write_bytes(b"PK")
    with pytest.raises(mw.ManywaysError, match=r"broken\.mw"):
        mw.read(tmp_path / "broken.mw")


def test_a_file_of_an_unknown_kind(tmp_path):
    (tmp_path / "model.xml").write_text("<model/>\n")
    with pytest.raises(mw.SourceError, match=r"end in \.xml are not known.*\.npz.*table of transitions as \.csv"):
        mw.read(tmp_path / "model.xml")
    (tmp_path / "map.grid").write_text("S..\n..G\n")
    assert mw.read(tmp_path / "map.grid").n_states == 6
