"""The linear oracle on one, two and four processes, against exact policy iteration and sweeps on one machine."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from processes import SCRIPT, needs_petsc, run
from solve import costs_of

import manyways as mw
from manyways.formats.writer import convert, write_model
from manyways.model.graph import recurrent_core
from manyways.model.occupancy import flow_residual
from manyways.polytope import PolicyIteration, Sweeps
from problems import KINDS, random_mdp, two_traps

pytestmark = needs_petsc
RANDOM, RANDOM_DISCOUNTED = 20, 6
FLEET = f"{Path(mw.__file__).parent}/gallery/models/fleet.prism?const=W=4"


def models():
    """Name -> the model and a discount."""
    for seed in range(RANDOM):  # with and without ways to stand still, periodic, with transient states
        yield f"random{seed}", (_accessible(seed), 1.0)
    for seed in range(RANDOM_DISCOUNTED):
        mdp = random_mdp(np.random.default_rng(seed), max_states=30, min_states=4)
        yield f"discounted{seed}", (mdp, (0.5, 0.95, 0.999)[seed % 3])
    yield "nine-rooms", (mw.nine_rooms(3), 1.0)
    yield "nine-rooms-discounted", (mw.nine_rooms(3), 0.99)
    yield "standing-still", (mw.read("rooms-40:0?goal_reward=1&step_reward=-4"), 1.0)
    yield "no-stop", (_without_stop(), 1.0)
    yield "rooms", (mw.read("rooms-100:0"), 1.0)


def _accessible(seed: int) -> mw.MDP:
    """A random weakly accessible model of 4 to 16 states."""
    rng = np.random.default_rng(seed)
    kind = KINDS[seed % len(KINDS)]
    while True:
        mdp = random_mdp(rng, 16, 3, kind, min_states=4)
        try:
            recurrent_core(mdp)
        except mw.NotWeaklyAccessible:
            continue
        return mdp


def _without_stop() -> mw.MDP:
    """A walk on a torus, with moves that slip, on which no choice stays where it is."""
    size, rng = 12, np.random.default_rng(0)
    paid = rng.normal(size=(size, size))

    def outcomes(state, action):
        row, column = state
        moves = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}
        for name, (a, b) in moves.items():
            target = (row + a) % size, (column + b) % size
            yield (0.85 if name == action else 0.05), target, paid[state]

    return mw.explore((0, 0), lambda _: ["up", "down", "left", "right"], outcomes)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    made = dict(models())
    for name, (mdp, _) in made.items():
        write_model(mdp, folder / f"{name}.h5")
    convert(FLEET, folder / "prism.h5")
    write_model(two_traps(), folder / "traps.h5")
    made |= {"prism": (mw.read(folder / "prism.h5"), 1.0), "traps": (two_traps(), 1.0)}
    (folder / "discounts.json").write_text(json.dumps({name: discount for name, (_, discount) in made.items()}))
    return folder, made


@pytest.fixture(scope="module")
def answers(folder, tmp_path_factory):
    """Of one, two and four processes, and of two once more."""
    out, found = tmp_path_factory.mktemp("answers"), {}
    for number, processes in enumerate((1, 2, 4, 2)):
        path = out / f"{number}.npz"
        done = run(processes, sys.executable, SCRIPT, folder[0], path)
        assert done.returncode == 0, done.stderr
        with np.load(path) as file:
            found[number] = dict(file)
    return found


@pytest.mark.parametrize("number", range(3), ids=["one", "two", "four"])
def test_answers_agree_with_one_machine_within_the_proved_bounds(number, folder, answers):
    compared = 0
    for name, (mdp, discount) in folder[1].items():
        few = f"{name}/error" in answers[number]
        if few:
            continue
        exact = (PolicyIteration if mdp.n_states < 500 else Sweeps)(mdp, discount)
        for costs in range(3):
            c = np.array(costs_of(mdp.n_choices, mdp.reward, costs))
            value, bound, again, *occupancy = answers[number][f"{name}/{costs}"]
            x, best = np.array(occupancy), exact.best(c)
            size = float(np.abs(c) @ x) + 1e-300
            assert flow_residual(mdp, x, discount) < 1e-9, (name, costs)
            assert value == pytest.approx(float(c @ x), rel=1e-9, abs=1e-9 * size)
            assert bound - value <= 1e-6 * size
            assert best.value <= max(bound, again) + 1e-9 * size, (name, costs)
            assert value <= best.bound + 1e-9 * size, (name, costs)
            compared += 1
    assert compared >= 3 * (RANDOM + RANDOM_DISCOUNTED + 5) - 30


@pytest.mark.parametrize("number", range(3), ids=["one", "two", "four"])
def test_only_models_that_cannot_be_solved_are_refused(number, answers):
    refused = {key: str(value) for key, value in answers[number].items() if key.endswith("/error")}
    traps = refused.pop("traps/error")
    assert "traps is not weakly accessible" in traps or "too few for 4 processes" in traps
    assert refused == {}


def test_two_runs_with_as_many_processes_give_the_same_bits(answers):
    first, second = answers[1], answers[3]
    assert first.keys() == second.keys()
    for name, found in first.items():
        np.testing.assert_array_equal(found, second[name])
