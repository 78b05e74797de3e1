"""RDDL through pyRDDLGym: exact probabilities, comparison with the simulator, and every error."""

import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog

from manyways.errors import SettingError, SourceError
from manyways.formats.rddl import read_rddl
from manyways.polytope import Polytope
from shared import MODELS

DOMAIN, INSTANCE = MODELS / "maintenance_domain.rddl", MODELS / "maintenance_instance.rddl"

WALK = """domain walk {{
    pvariables {{
        LIMIT : {{ non-fluent, int, default = 2 }};
        x : {{ state-fluent, {type}, default = 0 }};
        go : {{ action-fluent, bool, default = false }};
    }};
    cpfs {{ x' = {cpf}; }};
    reward = {reward};
    {more}
}}
"""
WALK_INSTANCE = """non-fluents walk_0 {
    domain = walk;
    non-fluents { LIMIT = 3; };
}
instance walk_1 {
    domain = walk;
    non-fluents = walk_0;
    init-state { x = 0; };
    max-nondef-actions = 1;
    horizon = 5;
    discount = 1.0;
}
"""


@pytest.fixture
def rddl():
    """pyRDDLGym and its dependencies may warn, which does not concern these tests."""
    return pytest.importorskip("pyRDDLGym")


pytestmark = pytest.mark.filterwarnings("default")


def walk(folder: Path, cpf: str, reward: str = "x", more: str = "", type: str = "int") -> tuple[Path, Path]:
    domain, instance = folder / "walk.rddl", folder / "walk_1.rddl"
    domain.write_text(WALK.format(cpf=cpf, reward=reward, more=more, type=type))
    instance.write_text(WALK_INSTANCE)
    return domain, instance


def row(mdp, state: str, action: str) -> tuple[dict[str, float], float]:
    s = (mdp.state_names or ()).index(state)
    (x,) = [x for x in range(*mdp.first_choice[s : s + 2]) if mdp.action_name(x) == action]
    begin, end = mdp.transitions.indptr[x : x + 2]
    reached = [mdp.state_name(int(t)) for t in mdp.transitions.indices[begin:end]]
    return dict(zip(reached, mdp.transitions.data[begin:end].tolist(), strict=True)), float(mdp.reward[x])


@pytest.mark.usefixtures("rddl")
def test_a_small_model_exactly(capfd):
    mdp = read_rddl(DOMAIN, INSTANCE)
    at = "running(m1)={},running(m2)={},shift={}".format
    assert mdp.n_states == 12
    assert mdp.action_names == ("noop", "repair(m1)", "repair(m2)")
    assert mdp.n_choices == 8 * 3 + 4  # no repairs in the last shift
    assert mdp.state_name(int(np.argmax(mdp.start))) == at("true", "false", 0)
    reached, reward = row(mdp, at("false", "true", 0), "noop")
    # m1 is down and damages m2 with probability 1/2; otherwise m2 keeps running with probability 0.9.
    assert reached == pytest.approx({at("false", "true", 1): 0.45, at("false", "false", 1): 0.55})
    assert reward == 1
    reached, reward = row(mdp, at("true", "true", 1), "repair(m2)")
    assert reached == pytest.approx({at("true", "true", 2): 0.9, at("false", "true", 2): 0.1})
    assert reward == 1.5
    reached, reward = row(mdp, at("true", "true", 2), "noop")
    assert reached[at("true", "true", 0)] == pytest.approx(0.81)
    assert reward == 1
    assert capfd.readouterr() == ("", "")


@pytest.mark.usefixtures("rddl")
def test_the_best_average_is_that_of_a_linear_program():
    mdp = read_rddl(DOMAIN, INSTANCE)
    flow = np.eye(mdp.n_states)[mdp.choice_state] - mdp.transitions.toarray()
    solved = linprog(-mdp.reward, A_eq=np.vstack([flow.T, np.ones(mdp.n_choices)]), b_eq=[0] * mdp.n_states + [1])
    assert Polytope(mdp).best(mdp.reward).value == pytest.approx(-solved.fun, abs=1e-8)


@pytest.mark.usefixtures("rddl")
def test_the_simulator_agrees():
    """pyRDDLGym's own simulator, an independent interpreter, takes only transitions of the model, as often as their probabilities say."""
    from pyRDDLGym.core.env import RDDLEnv

    mdp = read_rddl(DOMAIN, INSTANCE)
    number = {name: s for s, name in enumerate(mdp.state_names or ())}
    env = RDDLEnv(str(DOMAIN), str(INSTANCE))
    rng = np.random.default_rng(0)

    def state_of(seen) -> int:
        shown = [f"running({m})={str(bool(seen[f'running___{m}'])).lower()}" for m in ("m1", "m2")]
        return number[",".join([*shown, f"shift={int(seen['shift'])}"])]

    counts = np.zeros((mdp.n_choices, mdp.n_states))
    for episode in range(150):
        state = state_of(env.reset(seed=episode)[0])
        ended = False
        while not ended:
            x = int(rng.integers(*mdp.first_choice[state : state + 2]))
            action = mdp.action_name(x)
            given = {} if action == "noop" else {action.replace("(", "___").rstrip(")"): 1}
            seen, reward, over, cut, _ = env.step(given)
            assert reward == pytest.approx(mdp.reward[x])
            state = state_of(seen)
            counts[x, state] += 1
            ended = over or cut
    exact = mdp.transitions.toarray()
    assert not counts[exact == 0].any()
    tries = counts.sum(axis=1, keepdims=True)
    spread = np.sqrt(np.maximum(exact * (1 - exact), 1e-12) * np.maximum(tries, 1))
    assert (np.abs(counts - tries * exact) < 4.5 * spread + 1).all()


@pytest.mark.usefixtures("rddl")
def test_random_terms_anywhere_and_rewards_of_the_next_state(tmp_path):
    cpf = "if (go) then min[LIMIT, x + Bernoulli(0.5) + Bernoulli(0.5)] else (if (Bernoulli(0.25)) then 0 else x)"
    mdp = read_rddl(*walk(tmp_path, cpf, "x' - go"))
    assert row(mdp, "x=0", "go") == ({"x=0": 0.25, "x=1": 0.5, "x=2": 0.25}, 0)
    assert row(mdp, "x=2", "go") == ({"x=2": 0.25, "x=3": 0.75}, 1.75)
    assert row(mdp, "x=2", "noop") == ({"x=0": 0.25, "x=2": 0.75}, 1.5)


@pytest.mark.usefixtures("rddl")
def test_terminal_states_stay(tmp_path):
    mdp = read_rddl(*walk(tmp_path, "x + go", "1", "termination { x == 2; };"))
    assert mdp.labels["terminal"].tolist() == [False, False, True]
    assert row(mdp, "x=2", "noop") == ({"x=2": 1}, 0)
    assert mdp.n_choices == 5


@pytest.mark.usefixtures("rddl")
@pytest.mark.parametrize(
    ("walk_settings", "message"),
    [
        ({"cpf": "x + 1"}, "the model has more than 50 states .* raise most_states"),
        ({"cpf": "Normal(0, 1)", "type": "real"}, "x is of type real; expected bool or int"),
        ({"cpf": "Poisson(2)"}, "the distribution Poisson is not supported"),
        (
            {"cpf": "if (Bernoulli(1.5 + x)) then 1 else 0"},
            r"in x': Bernoulli needs a probability from 0 to 1, found 1.5",
        ),
        ({"cpf": "x / 2 + 0.5"}, r"x' must be an integer, found the value 0.5"),
        ({"cpf": "1 / x"}, "division by zero"),
        ({"cpf": "round[cos[x]]"}, "'cos' is not supported"),
        ({"cpf": "x", "more": "action-preconditions { x > 0; };"}, "no action is allowed in state x=0"),
        ({"cpf": "x +"}, "pyRDDLGym cannot read it"),
        ({"cpf": "y"}, "walk.rddl with .*walk_1.rddl"),
    ],
)
def test_models_that_cannot_be_read(tmp_path, walk_settings, message):
    with pytest.raises(SourceError, match=message) as caught:
        read_rddl(*walk(tmp_path, **walk_settings), most_states=50)
    assert "\n" not in str(caught.value)


@pytest.mark.usefixtures("rddl")
def test_an_instance_without_its_non_fluents(tmp_path):
    domain, instance = walk(tmp_path, "x")
    instance.write_text(WALK_INSTANCE[WALK_INSTANCE.index("instance") :])
    with pytest.raises(SourceError, match=r"non.fluents.* missing"):
        read_rddl(domain, instance)


def test_missing_files(tmp_path):
    with pytest.raises(SourceError, match=r"there is no file .*none\.rddl"):
        read_rddl(DOMAIN, tmp_path / "none.rddl")


def test_without_pyrddlgym_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyRDDLGym", None)
    monkeypatch.setitem(sys.modules, "pyRDDLGym.core.compiler.levels", None)
    with pytest.raises(SettingError, match=r"pip install 'manyways\[rddl\]'"):
        read_rddl(DOMAIN, INSTANCE)
