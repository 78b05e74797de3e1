"""The commands that bring models in and plans out."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest

import manyways as mw
from buildings import office
from manyways.formats.arrays import write_npz
from manyways.gallery import example_file


def manyways(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "manyways", *arguments], check=False, capture_output=True, text=True)


@pytest.fixture(scope="module")
def kept(tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("plans") / "plans.mw"
    mw.plan("four-rooms:0", 2, 8.0).save(path)
    return str(path)


def test_convert(tmp_path):
    answer = manyways("convert", "four-rooms:0", str(tmp_path / "rooms.npz"))
    assert answer.returncode == 0
    assert "361 states, 1,725 choices written to" in answer.stdout
    assert mw.read(tmp_path / "rooms.npz").digest == mw.four_rooms(0).digest


def test_convert_to_something_unknown_is_found_before_the_work(tmp_path):
    answer = manyways("convert", "no-such-model", str(tmp_path / "rooms.xyz"))
    assert answer.returncode == 2
    assert "a model ends in one of .npz" in answer.stderr
    assert "Traceback" not in answer.stderr


def test_export_and_simulate(kept, tmp_path):
    answer = manyways("export", kept, str(tmp_path / "policy.json"), "--plan", "2")
    assert answer.returncode == 0
    plans = mw.load(kept)
    found = mw.load_policy(tmp_path / "policy.json", plans.mdp)
    np.testing.assert_array_equal(found.probabilities, plans.policies[1])
    assert manyways("export", kept, str(tmp_path / "policy.json"), "--plan", "3").returncode == 2

    answer = manyways("simulate", kept, "--plan", "2", "--steps", "20000", "--json")
    run = json.loads(answer.stdout)
    assert run["computed"] == plans.rewards[1]
    assert abs(run["model"]["mean"] - run["computed"]) <= 4 * run["model"]["standard_error"]
    assert "environment" not in run
    assert "run in the model" in manyways("simulate", kept).stdout


def test_export_of_a_route_and_a_layer(tmp_path):
    yaml = pytest.importorskip("yaml")
    plans = mw.plan(office(tmp_path), k=1)
    file = str(plans.save(tmp_path / "plans.mw"))
    answer = manyways("export", file, "--route", str(tmp_path / "way.yaml"), "--layer", str(tmp_path / "time.pgm"))
    assert answer.returncode == 0, answer.stderr
    route = plans[0].route()
    assert f"route of plan 1, {len(route)} points, written to" in answer.stdout
    assert "time.pgm and" in answer.stdout
    path = yaml.safe_load((tmp_path / "way.yaml").read_text())
    assert [pose["pose"]["position"]["x"] for pose in path["poses"]] == [round(x, 6) for x, _ in route.points.tolist()]
    assert (tmp_path / "time.yaml").exists()
    assert not (tmp_path / "way.json").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "nothing to write: give a policy file, --route FILE or --layer FILE"),
        (("--route", "way.txt"), "a route ends in one of .csv, .json, .yaml"),
        (("--layer", "time.png"), "a layer of a map ends in .pgm"),
        (("--layer", "time.pgm"), "has no map with an origin in metres"),
        (("--route", "way.yaml"), "save the route as .csv or .json, in cells"),
    ],
)
def test_what_cannot_be_exported_is_refused(kept, options, message):
    answer = manyways("export", kept, *options)
    assert answer.returncode == 2
    assert message in answer.stderr


def test_export_does_not_write_over_the_model(tmp_path):
    model, file = tmp_path / "guard.csv", str(tmp_path / "plans.mw")
    rows = "state,action,next,reward\nquiet,stay,quiet,1\nquiet,go,away,0\naway,back,quiet,1\n"
    model.write_text(rows)
    mw.plan(model, 1).save(file)
    answer = manyways("export", file, str(model))
    assert answer.returncode == 2
    assert (
        answer.stderr == f"manyways: cannot write {model}: the model of the plans was read from it; give another name\n"
    )
    assert model.read_text() == rows
    assert manyways("export", file, str(tmp_path / "policy.csv")).returncode == 0


@pytest.mark.parametrize("ending", [".npz", ".drn", ".tra"])
def test_a_prism_model_converted_and_read_without_storm_is_the_same(ending, tmp_path):
    pytest.importorskip("stormpy")
    robot = str(example_file("robot.prism"))
    answer = manyways("convert", robot, str(tmp_path / f"robot{ending}"), "--const", "N=4,B=10", "--reward", "gain")
    assert answer.returncode == 0, answer.stderr
    original, again = mw.read(f"{robot}?const=N=4,B=10&reward=gain"), mw.read(tmp_path / f"robot{ending}")
    assert again.digest == original.digest
    assert again.labels.keys() == original.labels.keys()
    assert list(map(again.action_name, range(again.n_choices))) == list(
        map(original.action_name, range(again.n_choices))
    )
    assert again.state_names == original.state_names


def test_options_are_settings_of_the_source(tmp_path):
    (tmp_path / "maze.map").write_text("type octile\nheight 3\nwidth 4\nmap\n....\n.@@.\n....\n")
    maze = str(tmp_path / "maze.map")
    answer = manyways("plan", maze, "--start", "0,0", "--goal", "3,2", "--k", "2", "--json")
    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout)["model"]["digest"] == mw.read(f"{maze}?start=0,0&goal=3,2").digest


def test_a_label_to_restart_at(tmp_path):
    model = mw.MDP.from_transitions(
        [("a", "go", "b", 1.0, 0.0), ("b", "stay", "b", 1.0, 1.0)], labels={"goal": ["b"]}, name="line"
    )
    path = tmp_path / "line.npz"
    write_npz(model, path)
    assert mw.read(f"{path}?restart=goal").digest == model.restarting_at(model.labels["goal"]).digest
    with pytest.raises(mw.SourceError, match="there is no label 'end' to restart at; the model has goal"):
        mw.read(f"{path}?restart=end")


def test_success_within_the_time_limit_is_shown(tmp_path):
    """FrozenLake cuts episodes off after 100 steps; the share is that of the runs below."""
    lake = str(tmp_path / "lake.mw")
    answer = manyways("plan", "gym:FrozenLake-v1", "--k", "1", "--out", lake)
    policy, rng, reached = mw.load(lake)[0].policy, np.random.default_rng(0), []
    for _ in range(2000):
        run = policy.rollout(100, rng)
        ended = np.flatnonzero(run.ends >= 0)
        reached.append(bool(len(ended)) and run.rewards[ended[0]] > 0)
    assert "100 steps" in answer.stdout
    shown = re.search(r"\)\s+│\s+([\d.]+) %\s+│", answer.stdout)
    assert shown is not None, answer.stdout
    assert float(shown[1]) == pytest.approx(100 * np.mean(reached), abs=3.5)
    line = f"computed: reaches goal in 100 steps with a chance of {float(shown[1]):.0f} %"
    assert line in manyways("simulate", lake).stdout
    found = json.loads(manyways("simulate", lake, "--json").stdout)
    assert found["reaches goal in 100 steps"] == pytest.approx(float(shown[1]) / 100, abs=1e-3)
