"""One policy: to act with, to run, to write and read in every form; the commands for it."""

import csv
import io
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import manyways as mw
from fuzzing import read_or_refusal
from manyways.model.graph import reachable_from_start
from manyways.plans import Policy, load_policy
from manyways.plans.policy_files import FORMATS
from problems import random_mdp


def random_policy(seed: int) -> Policy:
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, max_states=5, kind="dense")
    weight = rng.exponential(size=mdp.n_choices) * (rng.random(mdp.n_choices) < 0.7)
    weight[mdp.first_choice[:-1]] += 0.1
    return Policy(mdp, weight / np.add.reduceat(weight, mdp.first_choice[:-1])[mdp.choice_state])


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), ending=st.sampled_from(FORMATS))
def test_written_and_read_is_the_same_policy(seed, ending, tmp_path_factory):
    policy = random_policy(seed)
    path = policy.save(tmp_path_factory.mktemp("policy") / f"policy{ending}")
    np.testing.assert_array_equal(load_policy(path, policy.mdp).probabilities, policy.probabilities)


FORMULAS = ["=1", "'=1", "''", "'", "+", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1", " =1"]
NAMES = (
    st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
    | st.sampled_from(["{", "b}{", "a + b", "0.5: 1 {x}", "} + 0.5: 1 {", "a\nb", "c\rd", "e\u2028f", '"', "", "1:"])
    | st.sampled_from(FORMULAS)
)


@settings(max_examples=200, deadline=None)
@given(
    states=st.lists(NAMES, min_size=1, max_size=3, unique=True),
    actions=st.lists(NAMES, min_size=1, max_size=3, unique=True),
    ending=st.sampled_from(FORMATS),
    alone=st.booleans(),
)
def test_whatever_the_names_it_is_the_same_policy(states, actions, ending, alone, tmp_path_factory):
    mdp = mw.MDP.from_transitions([(s, a, s, 1.0, 0.0) for s in states for a in actions])
    row = np.eye(len(actions))[-1] if alone else np.full(len(actions), 1 / len(actions))
    policy = Policy(mdp, np.tile(row, len(states)))
    path = policy.save(tmp_path_factory.mktemp("policy") / f"policy{ending}")
    np.testing.assert_array_equal(load_policy(path, mdp).probabilities, policy.probabilities)


@settings(max_examples=200, deadline=None)
@given(
    states=st.lists(NAMES, min_size=1, max_size=3, unique=True),
    actions=st.lists(NAMES, min_size=1, max_size=3, unique=True),
)
def test_spreadsheets_do_not_evaluate_names(states, actions):
    mdp = mw.MDP.from_transitions([(s, a, s, 1.0, 0.0) for s in states for a in actions])
    content = Policy(mdp, np.full(mdp.n_choices, 1 / len(actions))).to_bytes(".csv").decode()
    _, *rows = csv.reader(io.StringIO(content, newline=""), strict=True)
    assert len(rows) == mdp.n_choices
    for *names, chance in rows:
        assert all(name[:1] not in tuple("=+-@\t\r\n") for name in names)
        assert float(chance) == 1 / len(actions)


def test_a_name_that_looks_like_a_formula_gets_a_quote():
    mdp = mw.MDP.from_transitions([("=cmd|' /C calc'!A0", "@SUM(1)", "=cmd|' /C calc'!A0", 1.0, 0.0)])
    assert Policy(mdp, np.ones(1)).to_bytes(".csv").decode() == (
        "state,action,probability\n" + """"'=cmd|' /C calc'!A0","'@SUM(1)","1.0"\n"""
    )


@pytest.mark.parametrize("ending", [".json", ".csv"])
@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"state_names": ["a", "a"]}, "several states have the same name"),
        ({"action_names": ["go", "go"]}, "several actions of state 's0' have the name 'go'"),
    ],
)
def test_names_that_do_not_tell_apart_are_not_written(names, message, ending, tmp_path):
    mdp = mw.MDP.from_dense(np.full((2, 2, 2), 0.5), np.eye(2), **names)
    with pytest.raises(mw.ManywaysError, match=message):
        Policy(mdp, np.full(4, 0.5)).save(tmp_path / f"p{ending}")
    assert not list(tmp_path.iterdir())


def test_a_probability_beyond_all_numbers(tmp_path):
    mdp = mw.MDP.from_dense(np.ones((1, 1, 1)), [0.0])
    text = Policy(mdp, np.ones(1)).to_bytes(".json").decode().replace("1.0", "9" * 400)
    (tmp_path / "p.json").write_text(text)
    with pytest.raises(mw.SourceError, match="the probability of action 'a0' in state 's0' must be a finite number"):
        load_policy(tmp_path / "p.json", mdp)


def test_an_array_for_another_number_of_choices_is_not_unpacked(tmp_path):
    mdp = mw.MDP.from_dense(np.ones((1, 1, 1)), [0.0])
    np.savez_compressed(tmp_path / "p.npz", model=np.array(mdp.digest), policy=np.zeros(10**6))
    with pytest.raises(mw.SourceError, match=r"'policy' must have the shape \(1,\) for model, found \(1000000,\)"):
        load_policy(tmp_path / "p.npz", mdp)


@pytest.mark.parametrize("discount", [0.5, 0.9, 0.99])
def test_the_interval_of_a_plan_without_chance_holds_what_was_computed(discount):
    mdp = mw.MDP.from_transitions([("a", "go", "b", 1.0, 1.0), ("b", "stay", "b", 1.0, 5.0)])
    run = mw.simulate(mw.plan(mdp, 1, criterion=mw.Discounted(discount)), 1)
    low, high = run.model.interval
    assert low <= run.computed <= high
    assert high - low < 1e-3 * run.computed


@pytest.mark.parametrize("ending", FORMATS)
def test_a_plan_of_a_set(ending, tmp_path):
    plans = mw.plan("four-rooms:0", 2, 8.0)
    path = plans[1].policy.save(tmp_path / f"policy{ending}")
    np.testing.assert_array_equal(mw.load_policy(path, plans.mdp).probabilities, plans.policies[1])


def test_a_run_visits_states_as_often_as_computed():
    plans = mw.plan("four-rooms:0", 1)
    run = plans[0].policy.rollout(50_000, np.random.default_rng(0))
    seen = np.bincount(run.choices, minlength=plans.mdp.n_choices) / 50_000
    assert np.abs(seen - plans.occupancies[0]).sum() < 0.1
    assert run.rewards.mean() == pytest.approx(plans.rewards[0], rel=0.05)
    assert (plans.mdp.choice_state[run.choices] == run.states).all()


def test_actions_come_as_often_as_the_policy_says():
    mdp = mw.MDP.from_dense(np.ones((1, 3, 1)), np.zeros((1, 3)))
    policy = Policy(mdp, np.array([0.2, 0.0, 0.8]))
    rng = np.random.default_rng(0)
    seen = np.bincount([policy.act(0, rng) for _ in range(5000)], minlength=3) / 5000
    assert seen[1] == 0
    assert seen[0] == pytest.approx(0.2, abs=0.03)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("p.json", b"{}", "not a policy file"),
        ("p.json", b'{"model": "x", "policy": []}', "belongs to another model"),
        ("p.csv", b"a,b\n", "the first line must be state,action,probability"),
        ("p.csv", b"state,action,probability\nnowhere,stop,1\n", "no state 'nowhere'"),
        ("p.csv", b"state,action,probability\nr1c1,fly,1\n", "offers no action 'fly'"),
        ("p.csv", b"state,action,probability\nr1c1,stop,0.5\n", "sum to 1"),
        ("p.npz", b"PK", "not a policy file"),
        ("p.scheduler", b"head\n999: 0 {x}\n", "line 2: there is no state 999"),
        ("p.scheduler", b"head\n0: 17 {x}\n", "line 2: state 0 has choices"),
        ("p.txt", b"", "a policy ends in one of"),
    ],
)
def test_files_that_hold_no_policy(name, content, message, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(mw.SourceError, match=message):
        load_policy(tmp_path / name, mw.four_rooms(0))


@settings(max_examples=150, deadline=None)
@given(content=st.binary(max_size=200), ending=st.sampled_from(FORMATS))
def test_anything_else_only_raises_our_errors(content, ending, tmp_path_factory):
    path = tmp_path_factory.mktemp("fuzz") / f"policy{ending}"
    path.write_bytes(content)
    mdp = mw.MDP.from_dense(np.ones((1, 1, 1)), [0.0])
    assert isinstance(read_or_refusal(load_policy, path, mdp), Policy | str)


def test_a_simulation_that_makes_no_sense():
    plans = mw.plan("four-rooms:0", 1)
    with pytest.raises(mw.SettingError, match="plans 1 to 1, found 2"):
        mw.simulate(plans, 2)
    with pytest.raises(mw.SettingError, match="steps must be an integer of at least 100"):
        mw.simulate(plans, 1, steps=3)


@pytest.mark.parametrize(
    ("ending", "text", "message"),
    [
        (".csv", "state,action,probability\nr0c0,right,0\nr0c0,right,1\n", "is given twice"),
        (".scheduler", "model state: choice(s)\n0: 0\n0: 1\n", "line 3: state 0 is given twice"),
        (".scheduler", "model state: choice(s)\n0_0: 0\n", "expected an integer, found '0_0'"),
    ],
)
def test_a_policy_that_says_things_twice_or_strangely(ending, text, message, tmp_path):
    mdp = mw.grid_world([[False, False]], (0, 0), (0, 1))
    (tmp_path / f"policy{ending}").write_text(text)
    with pytest.raises(mw.SourceError, match=message):
        mw.load_policy(tmp_path / f"policy{ending}", mdp)


def test_states_by_the_names_that_tables_and_files_show():
    plans, rng = mw.plan("four-rooms:1", 2, 8.0), np.random.default_rng(0)
    policy = plans[0].policy
    for state in range(0, plans.mdp.n_states, 7):
        assert policy.act(plans.mdp.state_name(state)) == policy.act(state, rng)
        assert policy.act(plans.mdp.state_name(state), rng) == policy.act(state, rng)
    with pytest.raises(mw.SettingError, match="names such as 'r0c0'"):
        policy.act("r99c0", rng)


@pytest.mark.parametrize("seed", range(5))
def test_a_policy_on_the_model_that_a_ban_leaves(seed):
    """It does the same wherever it comes from the start, and it is refused exactly if it ever does what is banned."""
    rng = np.random.default_rng(seed)
    rows = [(f"s{i}", f"a{j}", f"s{rng.integers(6)}", 1.0, float(rng.random())) for i in range(6) for j in range(3)]
    mdp = mw.MDP.from_transitions(rows)
    mdp = mdp.restricted_to(reachable_from_start(mdp))
    banned = mdp.without(choices=[(mdp.state_name(0), "a0")])
    for choices in itertools.islice(itertools.product(range(3), repeat=mdp.n_states), 0, None, 7):
        policy = np.zeros(mdp.n_choices)
        policy[mdp.first_choice[:-1] + np.array(choices)] = 1.0
        own = mw.Policy(mdp, policy)
        if choices[0] == 0:  # the start
            with pytest.raises(mw.SettingError, match=r"takes .* which is banned or not known"):
                own.on(banned)
            continue
        there = own.on(banned)
        runs = [one.rollout(30, np.random.default_rng(1)) for one in (own, there)]
        names = [[one.mdp.state_name(int(s)) for s in run.states] for one, run in zip((own, there), runs, strict=True)]
        assert names[0] == names[1]
        actions = [
            [one.mdp.action_name(int(x)) for x in run.choices] for one, run in zip((own, there), runs, strict=True)
        ]
        assert actions[0] == actions[1]
