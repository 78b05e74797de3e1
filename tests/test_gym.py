"""Gymnasium environments: the tables as models, the rule at the end of an episode, plans run in the real thing."""

import numpy as np
import pytest

import manyways as mw
from manyways.formats.gym import model_of, open_gym
from manyways.portrait import measures

gymnasium = pytest.importorskip("gymnasium")
SOURCES = [
    "gym:FrozenLake-v1",
    "gym:FrozenLake-v1?map_name=8x8&is_slippery=false",
    "gym:CliffWalking-v1",
    "gym:Taxi-v4",
]


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


def test_the_end_of_an_episode_is_the_start_of_the_next():
    mdp = mw.read(Coin())
    assert mdp.n_states == 1, "a state that only ends an episode is never stayed in"
    np.testing.assert_allclose(mdp.transitions.toarray(), [[1.0], [1.0]])
    np.testing.assert_allclose(mdp.reward, [0.5, 0.2])


def test_or_the_end_of_everything():
    mdp = mw.read(Coin(), absorbing=True)
    assert mdp.state_names == ("s0", "end")
    np.testing.assert_allclose(mdp.transitions.toarray(), [[0.5, 0.5], [0.0, 1.0], [0.0, 1.0]])
    np.testing.assert_allclose(mdp.reward, [0.5, 0.2, 0.0])
    plans = mw.plan(Coin(), 1, criterion=mw.Discounted(0.9))
    # Tossing is worth v = 0.5 + 0.9 * 0.5 v.
    assert plans.rewards[0] == pytest.approx(0.1 * 0.5 / (1 - 0.45))


def test_a_reward_at_the_end():
    np.testing.assert_allclose(model_of(Coin(), end_reward=10.0).mdp.reward, [5.5, 10.2])


class Chore(Coin):
    """Nothing pays: work costs 1 and ends with the chance of one half, shirking costs 1 and ends nothing."""

    P = {  # noqa: RUF012
        0: {0: [(0.5, 1, -1.0, True), (0.5, 0, -3.0, False)], 1: [(1.0, 0, -1.0, False)]},
        1: {0: [(1.0, 1, 0.0, True)]},
    }


def test_where_everything_costs_the_end_pays():
    """Otherwise the long-run average would be best served by never getting anywhere."""
    opened = model_of(Chore())
    assert opened.end_reward == 3.0
    np.testing.assert_allclose(opened.mdp.reward, [-2.0 + 0.5 * 3.0, -1.0])
    assert model_of(Chore(), end_reward=0.0).end_reward == 0.0
    assert model_of(Chore(), "absorbing").end_reward == 0.0, "a discounted sum of costs is best ended soon"
    assert model_of(Coin()).end_reward == 0.0


def test_along_the_cliff():
    plans = mw.plan("gym:CliffWalking-v1", 3)
    assert plans.mdp.name == "gym:CliffWalking-v1?end_reward=100&terminal=restart"
    assert mw.read(plans.mdp.name).digest == plans.mdp.digest
    steps = next(measure for measure in measures(plans) if measure.name == "steps to goal")
    np.testing.assert_allclose(steps.values, [13, 15, 17])
    np.testing.assert_allclose(plans.rewards, [(100 - n) / n for n in (13, 15, 17)])
    assert mw.plan("gym:CliffWalking-v1?end_reward=0", 1).rewards[0] == pytest.approx(-1.0)


def test_how_episodes_end():
    np.testing.assert_allclose(mw.read(Coin()).ends["end"], [0.5, 1.0])
    assert mw.read(Coin(), absorbing=True).ends == {}
    lake = mw.read("gym:FrozenLake-v1")
    assert list(lake.ends) == ["goal", "hole"]
    # The goal is in the corner, so that three of the four moves beside it get there one time in three.
    assert sorted(lake.ends["goal"][lake.ends["goal"] > 0]) == pytest.approx([1 / 3] * 3)
    for source in SOURCES:
        opened = open_gym(source)
        for x in range(opened.mdp.n_choices):
            state, action = opened.observations[opened.mdp.choice_state[x]], opened.mdp.actions[x]
            outcomes = opened.env.unwrapped.P[int(state)][int(action)]
            ended = sum(p for p, *_, end in outcomes if end)
            assert sum(chance[x] for chance in opened.mdp.ends.values()) == pytest.approx(ended)


def test_episodes_in_the_environment_end_as_was_computed():
    """Played in the real one: the share of episodes that reach the goal, and how long they last."""
    plans, env = mw.plan("gym:FrozenLake-v1", 2), gymnasium.make("FrozenLake-v1", max_episode_steps=-1)
    found = {measure.name: measure.values for measure in measures(plans)}
    opened, rng = open_gym("gym:FrozenLake-v1"), np.random.default_rng(0)
    state_of = {int(seen): s for s, seen in enumerate(opened.observations)}
    for i in range(2):
        lengths, reached = [], []
        for episode in range(1500):
            seen, ended, steps, reward = env.reset(seed=episode)[0], False, 0, 0.0
            while not ended:
                seen, reward, ended, *_ = env.step(plans.policy(i).act(state_of[int(seen)], rng))
                steps += 1
            lengths.append(steps)
            reached.append(reward)
        for values, name in ((reached, "reaches goal"), (lengths, "steps per episode")):
            assert abs(np.mean(values) - found[name][i]) <= 4 * np.std(values) / np.sqrt(len(values))
        assert found["reaches goal"][i] + found["ends in hole"][i] == pytest.approx(1.0)


def test_runs_tell_how_their_episodes_end():
    plans = mw.plan("gym:FrozenLake-v1", 1)
    mdp, steps = plans.mdp, 40_000
    run = plans.policy(0).rollout(steps, np.random.default_rng(0))
    for number, (kind, chance) in enumerate(mdp.ends.items()):
        count, expected = np.count_nonzero(run.ends == number), steps * plans.occupancies[0] @ chance
        assert abs(count - expected) < 4 * np.sqrt(expected), kind
    ended = np.flatnonzero(run.ends[:-1] >= 0)
    assert (mdp.start[run.states[ended + 1]] > 0).all()
    assert (sum(mdp.ends.values())[run.choices[ended]] > 0).all()
    rooms = mw.plan(mw.four_rooms(0), 1).policy(0).rollout(50, np.random.default_rng(0))
    assert (rooms.ends == -1).all()


@pytest.mark.parametrize("source", SOURCES)
def test_rows_are_those_of_the_table(source):
    """Every choice's expected reward, and its chance of each successor and of an end, straight from the table."""
    opened = open_gym(source)
    mdp, table = opened.mdp, opened.env.unwrapped.P
    start = opened.env.unwrapped.initial_state_distrib
    for x in range(mdp.n_choices):
        outcomes = table[int(opened.observations[mdp.choice_state[x]])][int(mdp.actions[x])]
        assert mdp.reward[x] == pytest.approx(sum(p * (r + opened.end_reward * ended) for p, _, r, ended in outcomes))
        expected = np.zeros(len(table))
        for p, target, _, ended in outcomes:
            expected += p * np.asarray(start) if ended else p * np.eye(1, len(table), target)[0]
        np.testing.assert_allclose(mdp.transitions[[x]].toarray()[0], expected[opened.observations], atol=1e-15)


@pytest.mark.parametrize("source", [*SOURCES, "gym:CliffWalking-v1?end_reward=50"])
def test_a_plan_earns_in_the_environment_what_was_computed(source):
    plans = mw.plan(source, 2)
    assert plans.certificate.ok
    for number in (1, 2):
        run = mw.simulate(plans, number, steps=20_000, seed=number)
        for estimate in (run.model, run.environment):
            assert abs(estimate.mean - run.computed) <= 4 * estimate.standard_error + 1e-3 * abs(run.computed)


def test_a_discounted_plan_too():
    plans = mw.plan("gym:FrozenLake-v1", 2, criterion=mw.Discounted(0.9))
    run = mw.simulate(plans, 1, steps=100_000)
    for estimate in (run.model, run.environment):
        assert abs(estimate.mean - run.computed) <= 4 * estimate.standard_error + 1e-4


def test_a_version_that_was_retired_gives_its_successor():
    assert mw.read("gym:Taxi-v3").digest == mw.read("gym:Taxi-v4").digest


def test_names_labels_and_layout():
    lake = mw.read("gym:FrozenLake-v1")
    assert lake.action_names == ("left", "down", "right", "up")
    assert lake.layout.blocked.sum() == 4
    assert lake.layout.goals.tolist() == [15]
    taxi = mw.read("gym:Taxi-v4")
    assert taxi.labels["carrying"].sum() == 100
    assert taxi.state_name(0).startswith("taxi r0c0")


def test_the_plans_can_be_kept_and_drawn(tmp_path):
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
        ("gym:CartPole-v1", "no table of its dynamics"),
        ("gym:", "Gymnasium cannot make it"),
    ],
)
def test_what_cannot_be_read_is_said(source, message):
    with pytest.raises(mw.SourceError, match=message):
        mw.read(source)


def test_gymnasium_that_is_not_there(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "gymnasium", None)
    with pytest.raises(mw.SettingError, match=r"pip install 'manyways\[gym\]'"):
        mw.read("gym:FrozenLake-v1")
