"""Oracle, walk, draws and plans of one, two and four processes, against one machine."""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from processes import needs_petsc, run
from work import SETTINGS, costs_of, how_many_costs, plans_of

import manyways as mw
from manyways.behaviours import Walking
from manyways.formats.writer import convert, write_model
from manyways.model.graph import recurrent_core
from manyways.model.occupancy import flow_residual, long_run_occupancy
from manyways.polytope import PolicyIteration, Sweeps
from problems import KINDS, random_mdp, two_traps

pytestmark = needs_petsc
SCRIPT = Path(__file__).with_name("work.py")
RANDOM, RANDOM_DISCOUNTED = 10, 6
FLEET = f"{Path(mw.__file__).parent}/gallery/models/fleet.prism?const=W=4"
WALKS = [("rooms-40", 1), ("rooms-40", 3), ("rooms-40", 13), ("rooms-40", 1000), ("prism", 2)]
"""Models and radii: of places that are states, of blocks, of blocks as large as rooms, and without a map."""
DRAWN = ("rooms-40", "prism")


def models():
    """Name -> the model and a discount."""
    for seed in range(RANDOM):  # with and without ways to stand still, periodic, with transient states
        yield f"random{seed}", (_accessible(seed), 1.0)
    for seed in range(RANDOM_DISCOUNTED):
        mdp = random_mdp(np.random.default_rng(seed), max_states=30, min_states=4)
        yield f"discounted{seed}", (mdp, (0.5, 0.95, 0.999)[seed % 3])
    rooms = mw.read("rooms-40:0")
    yield "rooms-40", (rooms, 1.0)
    yield "nine-rooms-discounted", (mw.nine_rooms(3), 0.99)
    yield "standing-still", (mw.read("rooms-40:0?goal_reward=1&step_reward=-4"), 1.0)
    yield "no-stop", (_without_stop(12), 1.0)
    yield "far-loops", (_without_stop(60), 1.0)  # between loops on it, policies change once in 10^15 steps
    yield "farther-loops", (_with_noise(_without_stop(100), 38), 1.0)
    yield "rooms", (mw.read("rooms-100:0"), 1.0)
    yield "hidden", (_with_costs_that_nobody_pays(rooms), 1.0)
    yield "hidden-discounted", (_with_costs_that_nobody_pays(rooms), 0.99)


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


def _without_stop(size: int) -> mw.MDP:
    """A walk on a torus, with moves that slip, on which no choice stays where it is."""
    rng = np.random.default_rng(0)
    paid = rng.normal(size=(size, size))

    def outcomes(state, action):
        row, column = state
        moves = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}
        for name, (a, b) in moves.items():
            target = (row + a) % size, (column + b) % size
            yield (0.85 if name == action else 0.05), target, paid[state]

    return mw.explore((0, 0), lambda _: ["up", "down", "left", "right"], outcomes)


def _with_noise(mdp: mw.MDP, seed: int) -> mw.MDP:
    """Five times the reward, and noise as large as the costs of a search."""
    noise = 0.5 * np.log(2 * np.random.default_rng(seed).random(mdp.n_choices))
    return mdp.with_reward(5 * mdp.reward + noise)


def _with_costs_that_nobody_pays(mdp: mw.MDP) -> mw.MDP:
    """In five states to which the best plan never goes, whatever one does costs 10^9. A bound that is proved relative to
    the largest cost is worth nothing here."""
    time = np.add.reduceat(mw.Polytope(mdp).optimum.occupancy, mdp.first_choice[:-1])
    off = np.random.default_rng(0).choice(np.flatnonzero(time == 0), 5)
    return mdp.with_reward(np.where(np.isin(mdp.choice_state, off), -1e9, mdp.reward))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with models and jobs, and the models: name -> model and discount."""
    folder = tmp_path_factory.mktemp("models")
    made = dict(models())
    for name, (mdp, _) in made.items():
        write_model(mdp, folder / f"{name}.h5")
    convert(FLEET, folder / "prism.h5")
    write_model(two_traps(), folder / "traps.h5")
    made |= {"prism": (mw.read(folder / "prism.h5"), 1.0), "traps": (two_traps(), 1.0)}
    jobs = [("solve", name, discount) for name, (_, discount) in made.items()]
    jobs += [("walk", *walk) for walk in WALKS] + [("draw", name) for name in DRAWN]
    jobs += [("plan", "rooms-40", settings) for settings in SETTINGS]
    (folder / "jobs.json").write_text(json.dumps(jobs))
    return folder, made


def answers_of(processes, folder, out):
    """All answers of so many processes, and the plans by their settings."""
    out.mkdir()
    done = run(processes, sys.executable, SCRIPT, folder, out)
    assert done.returncode == 0, done.stderr
    with np.load(out / "answers.npz") as file:
        return dict(file), {name: mw.load(out / f"{name}.mw") for name in SETTINGS}


@pytest.mark.parametrize("processes", [1, 2, 4])
def test_several_processes_find_what_one_machine_finds(processes, folder, tmp_path):
    files, made = folder
    answers, plans = answers_of(processes, files, tmp_path / "out")
    check_optima(answers, made)
    check_refusals(answers)
    check_walks(answers, made)
    check_draws(answers, made)
    mdp = made["rooms-40"][0]
    for settings, check in CHECKS.items():
        check_plans(plans[settings], mdp)
        check(plans[settings])
    if processes == 2:
        check_bits(answers, plans, *answers_of(2, files, tmp_path / "again"))


def check_optima(answers, made):
    """Values, bounds and occupancies agree with one machine within the proved bounds."""
    compared = 0
    for name, (mdp, discount) in made.items():
        if f"{name}/error" in answers:
            continue
        exact = (PolicyIteration if mdp.n_states < 500 else Sweeps)(mdp, discount)
        for costs in range(how_many_costs(name)):
            c = np.array(costs_of(mdp.n_choices, mdp.reward, costs))
            value, bound, again, *occupancy = answers[f"{name}/{costs}"]
            x, best = np.array(occupancy), exact.best(c)
            size = float(np.abs(c) @ x) + 1e-300
            assert flow_residual(mdp, x, discount) < 1e-9, (name, costs)
            assert value == pytest.approx(float(c @ x), rel=1e-9, abs=1e-9 * size)
            assert bound - value <= 1e-6 * size
            assert best.value <= max(bound, again) + 1e-9 * size, (name, costs)
            assert value <= best.bound + 1e-9 * size, (name, costs)
            compared += 1
    assert compared >= 3 * (RANDOM + RANDOM_DISCOUNTED + 8) - 30


def check_refusals(answers):
    """Only models that cannot be solved are refused."""
    refused = {key: str(value) for key, value in answers.items() if key.endswith("/error")}
    traps = refused.pop("traps/error")
    assert "traps is not weakly accessible" in traps or "too few for 4 processes" in traps
    assert refused == {}


def check_walks(answers, made):
    """`Near` is the same map, with the same places in the same order."""
    for name, radius in WALKS:
        mdp = made[name][0]
        near = mw.Near(radius).on(mdp)
        assert isinstance(near, Walking)
        np.testing.assert_array_equal(answers[f"{name}/{radius}/counts"], [near.places, near.steps, near.most_terms])
        close = partial(np.testing.assert_allclose, rtol=1e-12, atol=1e-15, err_msg=f"{name}, radius {radius}")
        close(answers[f"{name}/{radius}/forward"], near.forward(plans_of(2, mdp.n_choices)))
        worths = np.random.default_rng(1).normal(size=(2, near.places))
        close(answers[f"{name}/{radius}/backward"], near.backward(worths), atol=1e-13)


def check_draws(answers, made):
    """People have the same preferences, whatever the number of processes."""
    for name in DRAWN:
        mdp = made[name][0]
        one = mw.Representative(mw.Preferences(over=()), unit=0.5).on(mdp, mw.Near(1).on(mdp))
        x = plans_of(3, mdp.n_choices)
        np.testing.assert_allclose(answers[f"{name}/worths"], one.worths(x), rtol=1e-11)
        np.testing.assert_allclose(answers[f"{name}/gradient"], one.gradient(x), rtol=1e-11, atol=1e-14)


def check_plans(plans, mdp):
    """A file is that of an ordinary plan set: one machine confirms it with its vectors, and with vectors of its own."""
    assert plans.mdp.digest == mdp.digest
    assert plans.certificate.ok
    assert mw.verify(plans.mdp, plans).ok
    optimum = mw.Polytope(mdp, plans.criterion).optimum
    worth = plans.criterion.values(mdp, optimum.occupancy[None])[0]
    assert plans.optimal_reward == pytest.approx(worth, rel=1e-8)


def check_unlimited(plans):
    for policy, reward in zip(plans.policies, plans.rewards, strict=True):
        assert float(long_run_occupancy(plans.mdp, policy) @ plans.mdp.reward) == pytest.approx(reward, rel=1e-9)
    alone = mw.plan(plans.mdp, 2, 8.0, method=mw.VertexAscent(starts=1, exchanges=False))
    assert plans.objective > 0.98 * alone.objective
    assert plans.diversity > 0.5


def check_within_limits(plans):
    assert "within 5 % of the best possible" in plans.guarantee
    assert plans.rewards.min() >= 0.95 * plans.optimal_reward * (1 - 1e-9)
    assert plans.diversity > 0.1


def check_near(plans):
    assert plans.behaviour == mw.Near(3)
    alone = mw.plan(plans.mdp, 2, 8.0, behaviour=mw.Near(3), method=mw.VertexAscent(starts=1, exchanges=False))
    assert plans.objective > 0.98 * alone.objective
    assert plans.diversity > 0.2


def check_preferences(plans):
    aim = mw.Representative(mw.Preferences(over=()), draws=60)
    alone = mw.plan(plans.mdp, 2, objective=aim, method=mw.VertexAscent(starts=1, exchanges=False))
    assert plans.maximised.preferences == aim.preferences
    assert plans.maximised.unit == pytest.approx(alone.maximised.unit, rel=1e-8)
    assert plans.objective == pytest.approx(alone.objective, rel=5e-3)
    assert plans.rewards.min() >= 0.9 * plans.optimal_reward * (1 - 1e-9)


def check_time_limit(plans):
    assert plans.status is mw.Status.TIME_LIMIT
    np.testing.assert_allclose(plans.rewards, plans.optimal_reward, rtol=1e-8)


CHECKS = {
    "tradeoff": check_unlimited,
    "limits": check_within_limits,
    "near": check_near,
    "preferences": check_preferences,
    "discounted": check_time_limit,
}


def check_bits(answers, plans, answers_again, plans_again):
    """Two runs with as many processes give the same bits."""
    assert answers.keys() == answers_again.keys()
    for name, found in answers.items():
        np.testing.assert_array_equal(found, answers_again[name])
    for one, other in zip(plans.values(), plans_again.values(), strict=True):
        for name in ("policies", "occupancies", "rewards", "distances"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
        assert one.gap == other.gap
