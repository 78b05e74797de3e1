"""Values per episode: against enumeration, value iteration, Storm and runs in the real environments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import manyways as mw
from evaluation import best_by_linear_program, occupancy_of, policies_of, random_episodes, value_of
from manyways.model.episodes import episode_ends
from manyways.polytope import Best, Floor, Polytope
from problems import stop_world


def settled(mdp: mw.MDP, longest: float | None = None) -> tuple[mw.Episodic, Best]:
    return mw.Episodic(longest).settled(Polytope(mdp))


def by_enumeration(mdp: mw.MDP) -> tuple[np.ndarray, np.ndarray]:
    """The values and the mean lengths of the episodes of all deterministic policies that end episodes."""
    ends, found = episode_ends(mdp), []
    for policy in policies_of(mdp):
        x = occupancy_of(mdp, policy)
        if x @ ends > 1e-9:
            found.append((float(x @ mdp.reward) / float(x @ ends), 1 / float(x @ ends)))
    values, lengths = np.array(found).T
    return values, lengths


def never_ending_pays(mdp: mw.MDP) -> bool:
    """Whether a policy earns something without ever ending an episode."""
    ends = episode_ends(mdp)
    occupancies = [occupancy_of(mdp, policy) for policy in policies_of(mdp)]
    return any(x @ ends < 1e-12 and x @ mdp.reward > 0 for x in occupancies)


def loop_or_goal(loop: float, goal: float) -> mw.MDP:
    """Wait at the start, with a reward per step, or go to the goal."""
    rows = [
        ("start", "wait", "start", 1.0, loop),
        ("start", "go", "goal", 1.0, goal),
        ("goal", "on", "start", 1.0, 0.0),
    ]
    return mw.MDP.from_transitions(rows, labels={"goal": ["goal"]}, name="loop or goal")


# ---- the best value ---------------------------------------------------------------------------


@pytest.mark.parametrize("sign", [1, -1, 0], ids=["any rewards", "costs", "rewards of both signs, costs for waiting"])
def test_the_best_value_is_that_of_the_best_deterministic_policy(sign):
    """And by default the longest mean length is twice that of a best plan."""
    compared = 0
    for seed in range(30):
        mdp = random_episodes(np.random.default_rng(seed), 4, 3)
        if sign < 0:
            mdp = mdp.with_reward(-np.abs(mdp.reward))
        elif sign == 0:
            mdp = mdp.with_reward(mdp.reward - mdp.reward.max() + 3 * episode_ends(mdp))
        values, lengths = by_enumeration(mdp)
        if never_ending_pays(mdp):
            with pytest.raises(mw.SettingError, match="the best value per episode is infinite"):
                settled(mdp)
            continue
        compared += 1
        criterion, best = settled(mdp)
        size = 1 + float(np.abs(values).max())
        assert best.value == pytest.approx(values.max(), abs=1e-9 * size)
        x = best.vertex.occupancy
        assert x @ mdp.reward / (x @ episode_ends(mdp)) == pytest.approx(best.value, abs=1e-9 * size)
        halves = lengths[values >= values.max() - 1e-9 * size]
        assert np.abs(criterion.longest / 2 / halves - 1).min() < 1e-6
    print(f"\ncompared: {compared}")
    assert compared >= 15


def test_the_best_value_with_a_longest_mean_length():
    """It is at least that of every deterministic policy within the length, and the optimum of a linear program: no plan
    has (r - v e).x > 0, and some plan has 0."""
    reached = tried = 0
    for seed in range(30):
        mdp = random_episodes(np.random.default_rng(seed), 4, 3)
        values, lengths = by_enumeration(mdp)
        ends = episode_ends(mdp)
        for longest in lengths.min() * np.array([1.0, 1.3, 2.0, 5.0]):
            _, best = settled(mdp, float(longest))
            size = 1 + abs(best.value)
            within = values[lengths <= longest * (1 + 1e-9)].max()
            assert best.value >= within - 1e-9 * size
            x = best.vertex.occupancy
            assert 1 / (x @ ends) <= longest * (1 + 1e-9)
            assert x @ mdp.reward / (x @ ends) == pytest.approx(best.value, abs=1e-9 * size)
            spare = best_by_linear_program(mdp, 1.0, mdp.reward - best.value * ends, [(ends, 1 / longest)])
            assert spare <= 1e-7 * size
            tried += 1
            reached += best.value <= within + 1e-7 * size
    print(f"\nthe best plan is deterministic in {reached} of {tried}")
    assert reached >= 0.5 * tried


@pytest.mark.parametrize("steps", [3, 7, 49, 98, 103])
def test_the_longest_mean_length_may_be_the_shortest_possible_one(steps):
    """1 / 49 * 49 is less than 1 in double precision, and the limit holds all the same."""
    rows = [(i, "go", (i + 1) % steps, 1.0, 0.0) for i in range(steps)]
    rows += [(steps // 2, "wait", steps // 2, 1.0, 1.0)]
    mdp = mw.MDP.from_transitions(rows, labels={"goal": [steps - 1]})
    criterion, best = settled(mdp, float(steps))
    assert criterion.longest == steps
    assert best.value == pytest.approx(0.0, abs=1e-9)
    assert best.vertex.occupancy @ episode_ends(mdp) == pytest.approx(1 / steps)


def test_a_plan_that_never_ends_is_no_best_plan():
    """At the best value a plan that waits forever for nothing has (r - v e).x = 0 as well."""
    criterion, best = settled(loop_or_goal(0.0, -5.0))
    assert best.value == -5.0
    assert best.vertex.occupancy @ np.array([0.0, 0.0, 1.0]) == 0.5
    assert criterion.longest == 4.0
    plans = mw.plan(loop_or_goal(0.0, -5.0), 2, slack=0.1, criterion=mw.Episodic())
    assert plans.certificate.ok
    assert (1 / (plans.occupancies @ episode_ends(plans.mdp)) <= 4.0 + 1e-9).all()


def test_the_time_limit_of_an_environment_bounds_the_length():
    criterion, best = settled(replace(loop_or_goal(1.0, 0.0), time_limit=10))
    assert criterion.longest == 10.0
    assert best.value == pytest.approx(8.0), "8 steps of waiting, then 2 to the goal and back"
    with pytest.raises(mw.SettingError, match="infinite"):
        settled(replace(loop_or_goal(1.0, 0.0), time_limit=1))  # no plan ends that soon, so the limit says nothing


# ---- refusals ---------------------------------------------------------------------------------


def test_a_model_without_episodes():
    with pytest.raises(mw.SettingError, match="stop world has no episodes: no step of it restarts") as caught:
        settled(stop_world().mdp)
    assert "Average()" in str(caught.value)
    assert "--per step" in caught.value.on_command_line


def test_episodes_that_never_end():
    rows = [("a", "stay", "a", 1.0, 0.0), ("goal", "again", "a", 1.0, 0.0)]
    mdp = mw.MDP.from_transitions(rows, labels={"goal": ["goal"]}, name="closed")
    with pytest.raises(mw.SettingError, match="no plan of closed ever ends an episode") as caught:
        settled(mdp)
    assert "criterion=Average()" in str(caught.value)
    assert "--per step" in caught.value.on_command_line


def test_a_value_without_bound():
    with pytest.raises(
        mw.SettingError, match="the longer an episode of loop or goal lasts, the more it earns"
    ) as caught:
        settled(loop_or_goal(0.5, 10.0))
    assert "Episodic(longest=100)" in str(caught.value)
    assert "--per episode --longest 100" in caught.value.on_command_line
    assert settled(loop_or_goal(0.5, 10.0), 100.0)[1].value == pytest.approx(10 + 0.5 * 98)


def test_a_longest_length_that_no_plan_has():
    with pytest.raises(
        mw.SettingError, match=r"has episodes of at most 1\.5 steps on average; the shortest possible"
    ) as e:
        settled(loop_or_goal(0.0, 1.0), 1.5)
    assert str(e.value).endswith("mean length is 2")


@pytest.mark.parametrize("longest", [0.5, 0, -3, float("nan"), float("inf"), "100", True])
def test_lengths_that_are_none(longest):
    with pytest.raises(mw.SettingError, match=r"an episode has at least 1 step|must be a finite number"):
        mw.Episodic(longest)


def test_the_length_must_be_settled_before_values_are_linear():
    with pytest.raises(mw.SettingError, match="not known before planning"):
        mw.Episodic().planned(loop_or_goal(0.0, 1.0), 1.0)


# ---- the linear reward that stands for values --------------------------------------------------


def test_floors_and_values_agree_with_those_of_policies():
    """Every deterministic policy: its value from the linear reward, and whether it meets a floor on the value."""
    for seed in range(20):
        mdp = random_episodes(np.random.default_rng(seed), 4, 3)
        if never_ending_pays(mdp):
            continue
        criterion, best = settled(mdp)
        planned, ends = criterion.planned(mdp, best.value), episode_ends(mdp)
        level = best.value - 0.3 * abs(best.value)
        floor = criterion.value_floor(mdp, best.value, level)
        (length,) = criterion.own_floors(mdp)
        for policy in policies_of(mdp):
            x = occupancy_of(mdp, policy)
            if x @ ends < 1e-6:
                continue
            value = value_of(mdp, policy, criterion, ends)
            found = criterion.values_of(x[None] @ planned.reward, x[None], planned, best.value)[0]
            assert found == pytest.approx(value, rel=1e-6, abs=1e-6)
            assert criterion.values(mdp, x[None])[0] == pytest.approx(value)
            if abs(value - level) > 1e-6 * (1 + abs(level)):
                assert (floor.shortfall(planned, x) <= 0) == (value > level)
            if abs(1 / (x @ ends) / criterion.longest - 1) > 1e-6:
                assert (length.shortfall(planned, x) <= 0) == (1 / (x @ ends) < criterion.longest)


def test_a_plan_that_never_ends_an_episode_has_no_value():
    mdp = loop_or_goal(0.0, 1.0)
    assert mw.Episodic().values(mdp, np.array([[1.0, 0.0, 0.0]])).tolist() == [-np.inf]


def test_the_bound_on_the_value_follows_from_the_bound_on_the_linear_reward():
    """A plan with r~.x = v + d has a value of at most v + 2 d, as at least every `longest`th step ends an episode."""
    mdp = loop_or_goal(1.0, 0.0)
    criterion = mw.Episodic(10.0)
    v = 5.0  # too low: the best value is 8
    planned = criterion.planned(mdp, v)
    polytope = Polytope(planned)
    slice_ = polytope.within([Floor("length", 0.1, extra=episode_ends(mdp))], polytope.best(episode_ends(mdp)))
    assert criterion.value_bound(slice_.best(planned.reward).bound, v) >= 8.0 - 1e-9


# ---- Gymnasium ----------------------------------------------------------------------------------


def best_success(table: dict, start: np.ndarray) -> float:
    """The highest chance to end an episode with a reward of 1, by value iteration without a discount."""
    values = np.zeros(len(table))
    for _ in range(100_000):
        after = np.array(
            [
                max(
                    sum(p * (r + (0.0 if done else values[t])) for p, t, r, done in outcomes)
                    for outcomes in actions.values()
                )
                for actions in table.values()
            ]
        )
        if np.abs(after - values).max() < 1e-12:
            break
        values = after
    return float(start @ values)


@cache
def planned(name: str, **settings: float) -> mw.PlanSet:
    return mw.plan(name, 3, method=mw.VertexAscent(starts=1), **settings)


def returns_in(table: dict, plans: mw.PlanSet, number: int, start: np.ndarray, episodes: int) -> np.ndarray:
    """The returns of episodes, side by side, with the environment's own table of outcomes."""
    rng, mdp = np.random.default_rng(number), plans.mdp
    policy = plans.policies[number].reshape(-1)
    action = np.zeros(len(table), int)
    for state, seen in enumerate(mdp.observations):
        own = np.flatnonzero((policy > 0) & (mdp.choice_state == state))
        assert len(own) == 1, "the plan is deterministic"
        action[seen] = mdp.actions[own[0]]
    most = max(len(outcomes) for actions in table.values() for outcomes in actions.values())
    chance, target, reward, done = np.zeros((4, len(table), most))
    for s, actions in table.items():
        for i, (p, t, r, ended) in enumerate(actions[action[s]]):
            chance[s, i], target[s, i], reward[s, i], done[s, i] = p, t, r, ended
    upper, state = chance.cumsum(axis=1), rng.choice(len(start), episodes, p=start)
    earned, running = np.zeros(episodes), np.arange(episodes)
    while len(running):
        at = state[running]
        outcome = np.minimum((rng.random(len(running))[:, None] >= upper[at]).sum(axis=1), most - 1)
        earned[running] += reward[at, outcome]
        state[running] = target[at, outcome].astype(int)
        running = running[done[at, outcome] == 0]
    return earned


def environment(name: str):
    gymnasium = pytest.importorskip("gymnasium")
    return gymnasium.make(name).unwrapped


def test_the_best_success_rate_of_frozen_lake_is_that_of_value_iteration():
    env = environment("FrozenLake8x8-v1")
    best = best_success(env.P, np.asarray(env.initial_state_distrib))
    plans = planned("gym:FrozenLake8x8-v1")
    assert plans.criterion == mw.Episodic(200.0)
    assert plans.optimal_reward == pytest.approx(best, abs=1e-8)
    small = environment("FrozenLake-v1")
    best = best_success(small.P, np.asarray(small.initial_state_distrib))
    assert settled(mw.read("gym:FrozenLake-v1"))[1].value == pytest.approx(best, abs=1e-8)


@pytest.mark.parametrize("name", ["FrozenLake8x8-v1", "Taxi-v4", "CliffWalking-v1"])
def test_floors_hold_in_the_real_environment(name):
    """10,000 episodes of every plan with the environment's own table, within three standard errors."""
    env = environment(name)
    settings = {"slack": 0.6} if name == "CliffWalking-v1" else {}
    plans = planned(f"gym:{name}", **settings)
    assert plans.certificate.ok
    start = np.asarray(env.initial_state_distrib)
    for number in range(plans.k):
        earned = returns_in(env.P, plans, number, start, 10_000)
        error = 3 * earned.std() / 100
        assert earned.mean() >= plans.limits.floor - error
        assert abs(earned.mean() - plans.rewards[number]) <= error + 1e-9


@pytest.mark.parametrize(
    ("name", "steps"), [("FrozenLake8x8-v1", 20_000), ("Taxi-v4", 27_000), ("CliffWalking-v1", 9_000)]
)
def test_floors_hold_in_runs_of_the_environment_itself(name, steps):
    environment(name)
    settings = {"slack": 0.6} if name == "CliffWalking-v1" else {}
    plans = planned(f"gym:{name}", **settings)
    found = mw.simulate(plans, plans.k, steps=steps, seed=1)
    assert found.computed == plans.rewards[-1]
    for estimate in (found.model, found.environment):
        assert abs(estimate.mean - found.computed) <= 3 * estimate.standard_error + 1e-9
        assert estimate.mean >= plans.limits.floor - 3 * estimate.standard_error - 1e-9


# ---- Storm --------------------------------------------------------------------------------------

DELIVERY = """mdp
// A robot on a line of rooms with two gears; the fast one costs more and may slip back. Doors cost a toll.
const int N = 6;
module robot
  x : [0..N] init 0;
  fast : bool init false;
  [slow] x<N -> 0.8 : (x'=x+1) + 0.2 : true;
  [fast] x<N-1 -> 0.6 : (x'=x+2) & (fast'=true) + 0.4 : (x'=max(x-1,0));
  [rest] x<N & fast -> (fast'=false);
endmodule
label "goal" = x=N;
rewards "cost"
  [slow] !fast : 1;
  [slow] fast : 1.7;
  [fast] true : 1.4;
  [rest] true : 0.25;
  x=3 : 0.5;
endrewards
"""


def storm_least_cost(stormpy, path: Path) -> float:
    program = stormpy.parse_prism_program(path)
    wanted = stormpy.parse_property('R{"cost"}min=? [F "goal"]', program)
    model = stormpy.build_model(program, [wanted])
    result = stormpy.model_checking(model, wanted, environment=stormpy.environments.sound())
    return float(result.get_value(model.initial_states[0]))


@pytest.fixture
def checker() -> Callable[[Path], float]:
    stormpy = pytest.importorskip("stormpy", minversion="2.0")
    return lambda path: storm_least_cost(stormpy, path)


def test_the_least_cost_to_a_goal_is_storms(tmp_path, checker):
    path = tmp_path / "delivery.prism"
    path.write_text(DELIVERY)
    plans = mw.plan(f"{path}?restart=goal&minimise=true", 3, method=mw.VertexAscent(starts=1))
    assert plans.mdp.costs
    assert isinstance(plans.criterion, mw.Episodic)
    assert -plans.optimal_reward == pytest.approx(checker(path), abs=1e-6)
    assert plans.certificate.ok
    assert mw.verify(plans.mdp, plans).ok
    least = -plans.optimal_reward
    costs = [-value_of(plans.mdp, policy, plans.criterion, episode_ends(plans.mdp)) for policy in plans.policies]
    assert max(costs) <= 1.1 * least * (1 + 1e-9)
    assert "costs at most" in plans.guarantee
