"""Gymnasium environments: the tables as models, the rule at the end of an episode, and plans run in the environment."""

import io
import zipfile
from typing import ClassVar

import numpy as np
import pytest

import manyways as mw
from manyways.describe import measures
from manyways.formats.gym import TabularEnvironment, model_of, open_gym
from manyways.formats.reader import resolve

gymnasium = pytest.importorskip("gymnasium")
SOURCES = [
    "gym:FrozenLake-v1",
    "gym:FrozenLake-v1?map_name=8x8&is_slippery=false",
    "gym:CliffWalking-v1",
    "gym:Taxi-v4",
]


def opened_from(source: str) -> TabularEnvironment:
    _, place, settings = resolve(source)
    return open_gym(str(place), **settings)


class Coin:
    """A made-up environment: toss until heads, which pays 1 and ends the episode; or leave at once, which pays 0.2."""

    P = {  # noqa: RUF012
        0: {0: [(0.5, 1, 1.0, True), (0.25, 0, 0.0, False), (0.25, 0, 0.0, False)], 1: [(1.0, 1, 0.2, True)]},
        1: {0: [(1.0, 1, 0.0, True)], 1: [(1.0, 1, 0.0, True)]},
    }
    initial_state_distrib = np.array([1.0, 0.0])

    @property
    def unwrapped(self) -> "Coin":
        return self


def test_an_episode_ends_where_the_next_one_starts():
    mdp = mw.read(Coin())
    assert mdp.n_states == 1, "a state that only ends an episode is never stayed in"
    np.testing.assert_allclose(mdp.transitions.toarray(), [[1.0], [1.0]])
    np.testing.assert_allclose(mdp.reward, [0.5, 0.2])


def test_the_end_of_an_episode_can_be_final():
    mdp = mw.read(Coin(), absorbing=True)
    assert mdp.state_names == ("s0", "s1")
    np.testing.assert_allclose(mdp.transitions.toarray(), [[0.5, 0.5], [0.0, 1.0], [0.0, 1.0]])
    np.testing.assert_allclose(mdp.reward, [0.5, 0.2, 0.0])
    plans = mw.plan(Coin(), 1, criterion=mw.Discounted(0.9))
    # Tossing is worth v = 0.5 + 0.9 * 0.5 v.
    assert plans.rewards[0] == pytest.approx(0.5 / (1 - 0.45))


class Turnstile(Coin):
    """Going through ends the episode or leads to a state where it may end later, so that state is not final."""

    P = {  # noqa: RUF012
        0: {0: [(0.5, 1, 1.0, True), (0.5, 1, 0.0, False)]},
        1: {0: [(1.0, 2, 3.0, True)]},
        2: {0: [(1.0, 0, 9.0, False)]},
    }
    initial_state_distrib = np.array([1.0, 0.0, 0.0])


def test_an_end_where_episodes_also_continue():
    mdp = mw.read(Turnstile(), absorbing=True)
    assert mdp.state_names == ("s0", "s1", "s2", "end")
    wanted = [[0, 0.5, 0, 0.5], [0, 0, 1, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    np.testing.assert_allclose(mdp.transitions.toarray(), wanted)
    np.testing.assert_allclose(mdp.reward, [0.5, 3.0, 0.0, 0.0])


@pytest.mark.parametrize("source", ["gym:FrozenLake-v1", "gym:CliffWalking-v1", "gym:Taxi-v4"])
def test_a_discounted_plan_is_drawn_and_has_a_goal(source):
    mdp = mw.read(source, absorbing=True)
    assert mdp.labels["goal"].any()
    assert "end" not in mdp.state_names
    assert (mdp.layout is None) == source.startswith("gym:Taxi")
    for state in np.flatnonzero(mdp.labels["goal"]):
        (choice,) = np.flatnonzero(mdp.choice_state == state)
        assert mdp.transitions[[choice]].indices.tolist() == [state]
        assert mdp.reward[choice] == 0


def test_probabilities_of_a_discounted_plan_in_the_environment():
    plans, env = mw.plan("gym:FrozenLake-v1", 2, criterion=mw.Discounted(0.95)), gymnasium.make("FrozenLake-v1")
    found = {measure.name: measure.values for measure in measures(plans)}
    for i in range(2):
        reached = episodes(env, plans[i].policy, 1000)[0]
        assert abs(np.mean(reached) - found["chance of reaching goal"][i]) <= 4 * np.std(reached) / np.sqrt(1000)
        assert found["chance of reaching goal"][i] + found["chance of touching hole"][i] == pytest.approx(1.0)


def test_a_reward_at_the_end():
    np.testing.assert_allclose(model_of(Coin(), end_reward=10.0).mdp.reward, [5.5, 10.2])


def lake(goal: float, hole: float, step: float, **settings: object) -> object:
    return gymnasium.make("FrozenLake-v1", is_slippery=False, reward_schedule=(goal, hole, step), **settings)


def test_an_end_reward_is_paid_at_the_goal_only():
    """Per step, never reaching the goal would be best if every step costs. Ends in holes pay nothing."""
    mdp = model_of(lake(0, -1, -1), end_reward=1.0).mdp
    assert mdp.name == "FrozenLake-v1"
    assert mdp.source is None
    np.testing.assert_allclose(mdp.reward, -1.0 + 2 * mdp.ends["goal"])  # the last step pays 0 plus the end reward of 1
    plans = mw.plan(mdp, 1, criterion=mw.Average())
    assert {measure.name: measure.values for measure in measures(plans)}["steps per episode"] == pytest.approx([6.0])
    assert plans.occupancies[0] @ mdp.ends["hole"] == 0
    assert plans.rewards == pytest.approx([(-5 + 1) / 6])


@pytest.mark.parametrize(
    ("hole", "steps", "value"), [(-9, 6, -5.0), (-1, 2, -2.0)], ids=["the goal is best", "a hole ends it sooner"]
)
def test_costs_per_episode_are_those_of_the_environment(hole, steps, value):
    """Nothing is added for reaching the goal: what an episode costs is what the environment charges for it."""
    mdp = mw.read(lake(0, hole, -1))
    np.testing.assert_allclose(mdp.reward, -1.0 + mdp.ends["goal"] + (hole + 1) * mdp.ends["hole"])
    plans = mw.plan(mdp, 1)
    assert isinstance(plans.criterion, mw.Episodic)
    assert plans.rewards == pytest.approx([value])
    assert {measure.name: measure.values for measure in measures(plans)}["steps per episode"] == pytest.approx([steps])
    in_hole = plans.occupancies[0] @ mdp.ends["hole"] * steps
    assert in_hole == pytest.approx(float(steps == 2))


@pytest.mark.parametrize(
    ("env", "rule"),
    [(lake(1, 0, -1), "restart"), (lake(0, -1, -1), "restart"), (lake(0, -1, -1), "absorbing"), (Coin(), "restart")],
    ids=["something pays", "every step costs", "a discounted sum of costs", "nobody knows the goal"],
)
def test_no_end_reward_is_added_by_default(env, rule):
    opened = model_of(env, rule)
    assert not opened.end_rewards.any()
    assert opened.end_reward == 0


def test_cliff_walking():
    plans = mw.plan("gym:CliffWalking-v1", 3, slack=0.35)
    assert plans.mdp.name == "CliffWalking-v1"
    assert plans.mdp.source == "gym:CliffWalking-v1?terminal=restart"
    assert mw.read(plans.mdp.source).digest == plans.mdp.digest
    steps = next(measure for measure in measures(plans) if measure.name == "steps to goal")
    np.testing.assert_allclose(plans.rewards, [-n for n in steps.values])
    assert plans.optimal_reward == pytest.approx(-13)
    assert plans.rewards.min() >= -1.35 * 13


def test_cliff_walking_per_step():
    """With a reward at the goal, the paper's average makes sense as well: a shorter way has more ends per step."""
    source, best = "gym:CliffWalking-v1?end_reward=100", (100 - 13) / 13
    plans = mw.plan(source, 3, best, criterion=mw.Average())
    assert plans.mdp.source == "gym:CliffWalking-v1?end_reward=100&terminal=restart"
    assert mw.read(plans.mdp.source).digest == plans.mdp.digest
    steps = next(measure for measure in measures(plans) if measure.name == "steps to goal")
    np.testing.assert_allclose(steps.values, [13, 15, 17])
    np.testing.assert_allclose(plans.rewards, [(100 - n) / n for n in (13, 15, 17)])
    never = mw.plan("gym:CliffWalking-v1", 1, criterion=mw.Average())
    assert never.rewards[0] == pytest.approx(-1.0)


def test_how_episodes_end():
    np.testing.assert_allclose(mw.read(Coin()).ends["end"], [0.5, 1.0])
    assert mw.read(Coin(), absorbing=True).ends == {}
    lake = mw.read("gym:FrozenLake-v1")
    assert list(lake.ends) == ["goal", "hole"]
    # The goal is in the corner, so three of the four moves beside it reach it with probability 1/3.
    assert sorted(lake.ends["goal"][lake.ends["goal"] > 0]) == pytest.approx([1 / 3] * 3)
    for source in SOURCES:
        opened = opened_from(source)
        for x in range(opened.mdp.n_choices):
            state, action = opened.mdp.observations[opened.mdp.choice_state[x]], opened.mdp.actions[x]
            outcomes = opened.env.unwrapped.P[int(state)][int(action)]
            ended = sum(p for p, *_, end in outcomes if end)
            assert sum(chance[x] for chance in opened.mdp.ends.values()) == pytest.approx(ended)


def episodes(env, policy: mw.Policy, count: int) -> tuple[list[float], list[int]]:
    """Run a policy in the environment; returns the last reward and the length of each episode."""
    rng, last, lengths = np.random.default_rng(0), [], []
    for episode in range(count):
        seen, ended, steps, reward = env.reset(seed=episode)[0], False, 0, 0.0
        while not ended:
            seen, reward, ended, *_ = env.step(policy.act(seen, rng))
            steps += 1
        last.append(float(reward))
        lengths.append(steps)
    return last, lengths


def test_episodes_in_the_environment_end_as_computed():
    """The share of episodes that reach the goal, and their length."""
    plans, env = mw.plan("gym:FrozenLake-v1", 2), gymnasium.make("FrozenLake-v1", max_episode_steps=-1)
    found = {measure.name: measure.values for measure in measures(plans)}
    for i in range(2):
        reached, lengths = episodes(env, plans[i].policy, 1500)
        for values, name in ((reached, "reaches goal"), (lengths, "steps per episode")):
            assert abs(np.mean(values) - found[name][i]) <= 4 * np.std(values) / np.sqrt(len(values))
        assert found["reaches goal"][i] + found["ends in hole"][i] == pytest.approx(1.0)


def test_observations_are_those_of_the_environment(tmp_path):
    """Holes are not states of the model, so its numbers differ; a file keeps the observations."""
    plans = mw.plan("gym:FrozenLake-v1", 1)
    again = mw.load(plans.save(tmp_path / "plans.mw"))
    for mdp in (plans.mdp, again.mdp):
        assert mdp.observations.tolist() == [0, 1, 2, 3, 4, 6, 8, 9, 10, 13, 14]
    with pytest.raises(
        mw.SettingError, match="no state with the name or observation 5; it has 11 observations, from 0 to 14"
    ):
        again[0].policy.act(5, np.random.default_rng(0))


def test_runs_record_how_their_episodes_end():
    plans = mw.plan("gym:FrozenLake-v1", 1)
    mdp, steps = plans.mdp, 40_000
    run = plans[0].policy.rollout(steps, np.random.default_rng(0))
    for number, (kind, chance) in enumerate(mdp.ends.items()):
        count, expected = np.count_nonzero(run.ends == number), steps * plans.occupancies[0] @ chance
        assert abs(count - expected) < 4 * np.sqrt(expected), kind
    ended = np.flatnonzero(run.ends[:-1] >= 0)
    assert (mdp.start[run.states[ended + 1]] > 0).all()
    assert (sum(mdp.ends.values())[run.choices[ended]] > 0).all()
    rooms = mw.plan(mw.four_rooms(0), 1)[0].policy.rollout(50, np.random.default_rng(0))
    assert (rooms.ends == -1).all()


@pytest.mark.parametrize("source", SOURCES)
def test_rows_agree_with_the_table(source):
    """The expected reward of every choice, and its probabilities of successors and ends, from the table."""
    opened = opened_from(source)
    mdp, table = opened.mdp, opened.env.unwrapped.P
    start = opened.env.unwrapped.initial_state_distrib
    for x in range(mdp.n_choices):
        outcomes = table[int(opened.mdp.observations[mdp.choice_state[x]])][int(mdp.actions[x])]
        assert mdp.reward[x] == pytest.approx(
            sum(p * (r + opened.end_rewards[t] * ended) for p, t, r, ended in outcomes)
        )
        expected = np.zeros(len(table))
        for p, target, _, ended in outcomes:
            expected += p * np.asarray(start) if ended else p * np.eye(1, len(table), target)[0]
        np.testing.assert_allclose(mdp.transitions[[x]].toarray()[0], expected[mdp.observations], atol=1e-15)


@pytest.mark.parametrize("source", [*SOURCES, "gym:CliffWalking-v1?end_reward=50"])
def test_a_plan_earns_in_the_environment_what_was_computed(source):
    plans = mw.plan(source, 2)
    assert plans.certificate.ok
    for number in (1, 2):
        run = mw.simulate(plans, number, steps=20_000, seed=number)
        for estimate in (run.model, run.environment):
            assert abs(estimate.mean - run.computed) <= 4 * estimate.standard_error + 1e-3 * abs(run.computed)


def test_a_discounted_plan_earns_in_the_environment_what_was_computed():
    plans = mw.plan("gym:FrozenLake-v1", 2, criterion=mw.Discounted(0.9))
    run = mw.simulate(plans, 1, steps=100_000)
    for estimate in (run.model, run.environment):
        assert abs(estimate.mean - run.computed) <= 4 * estimate.standard_error + 1e-4


def test_a_removed_version_is_replaced_by_the_newest():
    assert mw.read("gym:Taxi-v3").digest == mw.read("gym:Taxi-v4").digest


@pytest.mark.parametrize(
    ("source", "name", "full"),
    [
        ("gym:FrozenLake-v1", "FrozenLake-v1", "gym:FrozenLake-v1?terminal=restart"),
        (
            "gym:FrozenLake-v1?map_name=8x8&is_slippery=false",
            "FrozenLake-v1",
            "gym:FrozenLake-v1?map_name=8x8&is_slippery=False&terminal=restart",
        ),
        (
            "gym:FrozenLake-v1?terminal=absorbing&end_reward=0.5",
            "FrozenLake-v1",
            "gym:FrozenLake-v1?end_reward=0.5&terminal=absorbing",
        ),
        ("gym:CliffWalking-v1", "CliffWalking-v1", "gym:CliffWalking-v1?terminal=restart"),
        (
            "gym:CliffWalking-v1?end_reward=100",
            "CliffWalking-v1",
            "gym:CliffWalking-v1?end_reward=100&terminal=restart",
        ),
        ("gym:Taxi-v3", "Taxi-v4", "gym:Taxi-v4?terminal=restart"),
    ],
)
def test_the_name_is_the_id_and_the_source_reads_the_same_model_again(source, name, full):
    mdp = mw.read(source)
    assert (mdp.name, mdp.source) == (name, full)
    again = mw.read(full, absorbing=True)  # the source contains the rule, so this has no effect
    assert (again.digest, again.source) == (mdp.digest, full)


def test_keywords_reach_gymnasium():
    slippery, sure = (mw.read(f"gym:FrozenLake-v1?is_slippery={word}") for word in ("true", "false"))
    assert slippery.transitions.nnz > sure.transitions.nnz == sure.n_choices
    assert mw.read("gym:FrozenLake-v1?map_name=8x8").layout.shape == (8, 8)


def test_an_environment_object_is_the_same_model_as_its_id():
    env = gymnasium.make("FrozenLake-v1", map_name="8x8", is_slippery=False)
    for absorbing in (False, True):
        mdp = mw.read(env, absorbing=absorbing)
        named = mw.read("gym:FrozenLake-v1?map_name=8x8&is_slippery=false", absorbing=absorbing)
        assert (mdp.digest, mdp.name) == (named.digest, "FrozenLake-v1")
        assert mdp.source is None


def test_names_labels_and_layout():
    lake = mw.read("gym:FrozenLake-v1")
    assert lake.action_names == ("left", "down", "right", "up")
    assert lake.layout.blocked.sum() == 4
    assert lake.layout.goals.tolist() == [15]
    taxi = mw.read("gym:Taxi-v4")
    assert taxi.labels["carrying"].sum() == 100
    assert taxi.state_name(0).startswith("taxi r0c0")


def test_plans_can_be_saved_and_drawn(tmp_path):
    plans = mw.plan("gym:FrozenLake-v1", 2)
    again = mw.load(plans.save(tmp_path / "plans.mw"))
    assert again.mdp.layout.goals.tolist() == [15]
    assert again.mdp.layout.blocked_means == "hole"
    assert again.mdp.ends.keys() == plans.mdp.ends.keys()
    np.testing.assert_array_equal(again.mdp.ends["goal"], plans.mdp.ends["goal"])
    assert again.draw(tmp_path / "plans.png").stat().st_size > 1000


def test_a_sweep_over_an_environment(tmp_path):
    found = mw.sweep("gym:FrozenLake-v1", tradeoff=[0.0, 0.01, 0.05], k=[2], seeds=1, out=tmp_path, workers=1)
    assert not found.failed
    assert (tmp_path / "sweep.png").exists()


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("gym:NoSuchLake-v1", "Gymnasium cannot make it"),
        ("gym:FrozenLake-v1?terminal=never", "terminal must be one of restart, absorbing"),
        ("gym:FrozenLake-v1?end_reward=much", "end_reward must be a number"),
        ("gym:FrozenLake-v1?nonsense=1", "Gymnasium cannot make it"),
        ("gym:CartPole-v1", r"no table of its dynamics.*mw\.explore"),
        (
            "gym:FrozenLake-v1?map_name=9x9",
            r"Gymnasium cannot make it: it does not accept map_name=9x9; the maps are 4x4, 8x8",
        ),
        ("gym:", "no world of that name; did you mean something like 'gym:FrozenLake-v1'"),
    ],
)
def test_sources_that_cannot_be_read(source, message):
    with pytest.raises(mw.SourceError, match=message):
        mw.read(source)


def test_an_environment_without_a_table_is_named_as_one():
    with pytest.raises(mw.SourceError, match=r"CartPole-v1 has no table of its dynamics.*mw\.explore"):
        mw.read(gymnasium.make("CartPole-v1"))


def test_without_gymnasium_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "gymnasium", None)
    with pytest.raises(mw.SettingError, match=r"pip install 'manyways\[gym\]'"):
        mw.read("gym:FrozenLake-v1")


@pytest.mark.parametrize(
    ("member", "array"),
    [
        ("model/end0.npy", np.array([1j] * 44)),
        ("model/end0.npy", np.array(["a"] * 44)),
        ("model/end1.npy", np.full(44, -1.0)),
        ("model/observations.npy", np.zeros(11, int)),
        ("model/observations.npy", np.arange(11) * 1.5),
        ("model/goals.npy", np.array(3.0)),
        ("model/goals.npy", np.zeros((2, 2), int)),
        ("model/blocked.npy", np.full((4, 4), 1j)),
        ("policies.npy", np.ones((1, 44))),
    ],
)
def test_a_manipulated_file_is_refused(member, array, tmp_path):
    path, changed = mw.plan("gym:FrozenLake-v1", 1).save(tmp_path / "plans.mw"), tmp_path / "changed.mw"
    content = io.BytesIO()
    np.save(content, array)
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(changed, "w") as new:
        for name in old.namelist():
            new.writestr(name, content.getvalue() if name == member else old.read(name))
    with pytest.raises(mw.PlanFileError, match="is damaged"):
        mw.load(changed)


class _Somewhere(gymnasium.Env):
    """Three states in a ring; it starts in 0 or 1, and says so only by starting there."""

    observation_space, action_space = gymnasium.spaces.Discrete(3), gymnasium.spaces.Discrete(1)
    P: ClassVar = {s: {0: [(1.0, (s + 1) % 3, 1.0, False)]} for s in range(3)}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        return int(self.np_random.integers(2)), {}


def test_a_start_that_only_resetting_shows():
    """500 of 1000 resets, give or take five standard deviations of 16."""
    mdp = mw.read(_Somewhere())
    assert mdp.start[2] == 0
    assert mdp.start.sum() == pytest.approx(1)
    assert 0.42 < mdp.start[0] < 0.58


def test_a_table_with_other_keys_is_refused():
    class Pairs(_Somewhere):
        P: ClassVar = {(0, s): {0: [(1.0, (0, (s + 1) % 3), 1.0, False)]} for s in range(3)}

    class Listed(_Somewhere):
        P: ClassVar = [[(1.0, 0, 1.0, False)]]

    for environment in (Pairs(), Listed()):
        with pytest.raises(mw.SourceError, match=r"must have the form P\[state\]\[action\].*mw\.explore"):
            mw.read(environment)


def test_a_start_that_is_no_state():
    class Elsewhere(_Somewhere):
        def reset(self, **_):
            return np.zeros(2), {}

    with pytest.raises(mw.SourceError, match="not the number of a state"):
        mw.read(Elsewhere())


def test_the_chance_of_the_goal_by_a_linear_system_of_the_environments_own_table():
    """A way apart from the program's model and from simulations: x = gain + stay x, over the states of FrozenLake."""
    table = gymnasium.make("FrozenLake-v1").unwrapped.P
    plans = mw.plan("gym:FrozenLake-v1", 3, slack=0.1)
    for plan in plans:
        stay, gain = np.zeros((16, 16)), np.zeros(16)
        for state in table:
            if all(ended for action in table[state].values() for *_, ended in action):
                continue  # a hole or the goal
            for chance, following, reward, ended in table[state][plan.act(state, np.random.default_rng(0))]:
                gain[state] += chance * reward
                stay[state, following] += 0.0 if ended else chance
        assert np.linalg.solve(np.eye(16) - stay, gain)[0] == pytest.approx(plan.reward, abs=1e-12)
    assert plans.optimal_reward == pytest.approx(14 / 17, abs=1e-12)
