"""What `plan` says before and after the work."""

import signal
import threading
from fractions import Fraction

import numpy as np
import pytest

import manyways as mw
from manyways.methods import Halted, Watch
from manyways.model.occupancy import policy_of
from manyways.planning import plan_or_interrupt
from manyways.polytope import PolicyIteration, Polytope, RenumberedSweeps, Sweeps
from rational import solve


def test_more_plans_than_the_model_has_are_said_to_be_equal():
    only = mw.MDP.from_transitions([("a", "go", "b", 1.0, 1.0), ("b", "back", "a", 1.0, 0.0)])
    plans = mw.plan(only, 3)
    assert plans.status is mw.Status.FEWER_PLANS
    assert plans.status.converged
    assert plans.diversity == 0


def test_the_memory_that_is_not_there_is_named_before_the_work(monkeypatch):
    monkeypatch.setattr("os.sysconf", lambda _: 10)
    with pytest.raises(mw.SettingError, match=r"needs about .* GiB, .* GiB are free"):
        mw.plan(mw.four_rooms(0), 2)


def test_ctrl_c_while_the_gap_is_computed_keeps_the_plans(tmp_path):
    def impatient(now: mw.Progress) -> None:
        if now.doing == "verifying":
            signal.raise_signal(signal.SIGINT)

    mdp = mw.four_rooms(0)
    plans = mw.plan(mdp, 2, 8.0, progress=impatient)
    assert plans.status == mw.Status.INTERRUPTED
    assert plans.gap == float("inf")
    assert plans.certificate.ok
    again = mw.load(plans.save(tmp_path / "plans.mw"))
    assert again.gap == float("inf")
    assert mw.verify(mdp, again).ok
    assert plans.objective == mw.plan(mdp, 2, 8.0).objective


def test_ctrl_c_while_searching_still_has_the_plans_verified():
    def impatient(now: mw.Progress) -> None:
        if now.doing == "planning" and now.done >= 1 and not pressed:
            pressed.append(signal.raise_signal(signal.SIGINT))

    pressed: list[None] = []
    plans = mw.plan(mw.four_rooms(0), 2, 8.0, progress=impatient)
    assert plans.status == mw.Status.INTERRUPTED
    assert np.isfinite(plans.gap)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_when_the_search_is_just_over_is_not_lost(monkeypatch):
    run = mw.VertexAscent.run

    def late(*arguments):
        found = run(*arguments)
        signal.raise_signal(signal.SIGINT)
        return found

    monkeypatch.setattr(mw.VertexAscent, "run", late)
    plans = mw.plan(mw.four_rooms(0), 2, 8.0)
    assert (plans.status, plans.gap) == (mw.Status.INTERRUPTED, float("inf"))
    with pytest.raises(KeyboardInterrupt):
        plan_or_interrupt(mw.four_rooms(0), 2, 8.0)


def test_a_method_that_does_not_see_to_its_end_leaves_the_optimum():
    class Stubborn(mw.Method):
        def run(self, polytope, *_):
            while True:
                polytope.best(polytope.mdp.reward)

    plans = mw.plan(mw.four_rooms(0), 2, 8.0, method=Stubborn(), time_limit_s=0.05)
    assert plans.status == mw.Status.TIME_LIMIT
    np.testing.assert_allclose(plans.rewards, plans.optimal_reward)


def test_settings_are_refused_before_the_first_solve(monkeypatch):
    monkeypatch.setattr(Polytope, "best", lambda *_: pytest.fail("solved before it was refused"))
    rooms = mw.four_rooms(0)
    for settings in (
        {"behaviour": mw.Labels(["nowhere"])},
        {"tradeoff": -1.0},
        {"keep": np.zeros((1, 3))},
        {"avoid": policy_of(rooms, np.ones(rooms.n_choices))[None], "method": mw.FrankWolfe()},
    ):
        with pytest.raises(mw.ManywaysError):
            mw.plan(rooms, 2, **settings)


def test_ctrl_c_twice_is_an_exception():
    def determined(_: mw.Progress) -> None:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        mw.plan(mw.four_rooms(0), 2, 8.0, progress=determined)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_program_that_has_a_use_for_ctrl_c_keeps_it():
    pressed: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: pressed.append(number))
    try:
        plans = mw.plan(mw.four_rooms(0), 2, 8.0, progress=lambda _: signal.raise_signal(signal.SIGINT))
    finally:
        signal.signal(signal.SIGINT, before)
    assert pressed
    assert plans.status.converged


def test_a_plan_in_a_thread_leaves_signals_alone():
    found: list[mw.PlanSet] = []
    thread = threading.Thread(target=lambda: found.append(mw.plan(mw.four_rooms(0), 2, 8.0)))
    thread.start()
    thread.join()
    assert found[0].status.converged


@pytest.mark.parametrize("oracle", [PolicyIteration, Sweeps, RenumberedSweeps])
@pytest.mark.parametrize("criterion", [mw.Average(), mw.Discounted(0.9)], ids=str)
def test_a_solve_can_be_ended_at_each_of_its_iterations(oracle, criterion):
    """And the oracle is as good as new afterwards. Sweeps of models with less than 1,000 states are one compiled call."""
    mdp = mw.read("rooms-33:0")
    polytope = Polytope(mdp, criterion, oracle=oracle)
    polytope.best(mdp.reward)  # later ones may be on a copy of the model, and round otherwise
    wanted = polytope.best(mdp.reward)
    asked: list[None] = []
    with polytope.pausing(lambda: asked.append(None)):
        assert polytope.best(mdp.reward).value == wanted.value
    assert len(asked) > 1
    for n in range(1, len(asked) + 1):
        left = iter(range(n - 1))

        def check(left=left) -> None:
            if next(left, None) is None:
                raise Halted(mw.Status.TIME_LIMIT)

        with polytope.pausing(check), pytest.raises(Halted):
            polytope.twin().best(mdp.reward)
        with polytope.pausing(check), pytest.raises(Halted):
            polytope.best(mdp.reward)
        assert polytope.best(mdp.reward).value == wanted.value


@pytest.mark.parametrize("method", [mw.VertexAscent(), mw.VertexAscent(starts=2, workers=2), mw.FrankWolfe()], ids=str)
@pytest.mark.parametrize("source", ["four-rooms:0", "rooms-50:0"])
def test_time_may_be_up_in_the_middle_of_a_solve(source, method, monkeypatch):
    """Whenever that is, there are k feasible plans."""
    mdp = mw.read(source)
    for n in (0, 1, 2, 5, 10):
        asked = iter(range(n))
        monkeypatch.setattr(Watch, "expired", lambda _, asked=asked: next(asked, None) is None)
        plans = mw.plan(mdp, 3, 8.0, method=method, time_limit_s=1e9)
        assert plans.status == mw.Status.TIME_LIMIT
        assert plans.k == 3
        assert plans.certificate.ok


def test_a_method_that_cannot_limit_the_length_of_episodes_is_refused():
    pytest.importorskip("gymnasium")
    settings = {"k": 2, "method": mw.ProjectedGradient(iterations=1)}
    with pytest.raises(mw.SettingError, match=r"cannot limit the length of episodes.*; use criterion=Average\(\)"):
        mw.plan("gym:FrozenLake-v1", **settings)
    assert mw.plan("gym:FrozenLake-v1", **settings, criterion=mw.Average()).certificate.ok


def test_a_kept_plan_that_never_ends_an_episode_is_refused():
    """Its value per episode is not a number."""
    pytest.importorskip("gymnasium")
    mdp = mw.read("gym:FrozenLake-v1?is_slippery=false")
    left = np.array(mdp.actions == 0, float)  # against the wall of the start, without end
    with pytest.raises(mw.SettingError, match="plan 2 of those to keep never ends an episode"):
        mw.plan(mdp, 3, keep=[mw.plan(mdp, 1).policies[0], left])
    assert mw.plan(mdp, 2, 1.0, keep=[left], criterion=mw.Average()).rewards[1] == 0.0


def test_progress_never_goes_back():
    seen: list[mw.Progress] = []
    mw.plan(mw.nine_rooms(0), 3, 8.0, method=mw.VertexAscent(starts=2), progress=seen.append)
    planning = [now.done / now.total for now in seen if now.doing == "planning"]
    assert planning == sorted(planning)
    assert planning[-1] == 1.0
    assert [(now.done, now.total) for now in seen if now.doing == "verifying"] == [(0, 3), (1, 3), (2, 3)]


def barely_connected(seed: int) -> mw.MDP:
    """Two rings of places, between which a step leads with a probability of about 1e-11."""
    rng, n = np.random.default_rng(seed), 12
    rows = np.zeros((2 * n, 2 * n))
    for s in range(2 * n):
        own = s // n * n + rng.choice(n, 3, replace=False)
        rows[s, own] += 0.5 * rng.dirichlet(np.ones(3))
        rows[s, s // n * n + (s + 1) % n] += 0.5
        rows[s, (s + n) % (2 * n)] += 1e-11 * rng.random()
    return mw.MDP.from_csr(rows, rng.random(2 * n), np.arange(2 * n + 1))


@pytest.mark.parametrize("seed", range(3))
def test_time_in_parts_that_are_hardly_ever_left_is_known_exactly(seed):
    mdp = barely_connected(seed)
    plans = mw.plan(mdp, 1, tradeoff=1.0)
    assert plans.status is not mw.Status.NOT_VERIFIED
    p = [[Fraction(float(value)) for value in row] for row in mdp.transitions.toarray()]
    p = [[value / sum(row) for value in row] for row in p]
    balance = [[p[j][i] - (i == j) for j in range(len(p))] for i in range(len(p))]
    exact = solve([*balance[:-1], [Fraction(1)] * len(p)], [*[Fraction(0)] * (len(p) - 1), Fraction(1)])
    np.testing.assert_allclose(plans.occupancies[0], [float(value) for value in exact], atol=1e-9)
