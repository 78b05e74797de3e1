"""PRISM and JANI files through Storm: exact small models, Storm's own long-run averages, and every error."""

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from manyways.errors import SettingError, SourceError
from manyways.formats.drn import read_drn, write_drn
from manyways.formats.storm import _actions, read_storm
from manyways.gallery import example_file
from manyways.model.mdp import MDP
from manyways.polytope import Polytope
from manyways.worlds import four_rooms
from shared import MODELS

ROBOT, FLEET, TOLL = example_file("robot.prism"), example_file("fleet.prism"), MODELS / "toll.jani"


@pytest.fixture
def stormpy():
    return pytest.importorskip("stormpy", minversion="2.0")


def write(folder: Path, text: str, name: str = "model.prism") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def rows(mdp):
    """The model by names: {(state, action): ({next state: probability}, reward)}."""
    matrix = mdp.transitions
    return {
        (mdp.state_name(int(s)), mdp.action_name(x)): (
            {
                mdp.state_name(int(matrix.indices[t])): matrix.data[t]
                for t in range(matrix.indptr[x], matrix.indptr[x + 1])
            },
            mdp.reward[x],
        )
        for x, s in enumerate(mdp.choice_state)
    }


def storm_average(stormpy, path: Path, constants: str) -> float:
    """Storm's own value of the best long-run average of `gain`."""
    program, _ = stormpy.instantiate_constants(stormpy.parse_prism_program(path), constants)
    wanted = stormpy.parse_property('R{"gain"}max=? [LRA]', program)
    model = stormpy.build_model(program, [wanted])
    result = stormpy.model_checking(model, wanted, environment=stormpy.environments.sound())
    return result.get_value(model.initial_states[0])


TINY = """mdp
module lift
  level : [0..1] init 0;
  open : bool init false;
  [move] !open -> 0.75 : (level'=1-level) + 0.25 : true;
  [door] true -> (open'=!open);
  [] open -> true;
endmodule
label "up" = level=1;
rewards "comfort"
  open : 1;
  [move] level=0 : 2;
  level=1 : -0.5;
endrewards
"""


@pytest.mark.usefixtures("stormpy")
def test_a_small_model_exactly(tmp_path):
    mdp = read_storm(write(tmp_path, TINY, "lift.prism"))
    at = "open={1},level={0}".format  # Storm puts booleans first
    assert rows(mdp) == {
        (at(0, "false"), "move"): ({at(1, "false"): 0.75, at(0, "false"): 0.25}, 2),
        (at(0, "false"), "door"): ({at(0, "true"): 1}, 0),
        (at(1, "false"), "move"): ({at(0, "false"): 0.75, at(1, "false"): 0.25}, -0.5),
        (at(1, "false"), "door"): ({at(1, "true"): 1}, -0.5),
        (at(0, "true"), "door"): ({at(0, "false"): 1}, 1),
        (at(0, "true"), mdp.action_names[0]): ({at(0, "true"): 1}, 1),
        (at(1, "true"), "door"): ({at(1, "false"): 1}, 0.5),
        (at(1, "true"), mdp.action_names[0]): ({at(1, "true"): 1}, 0.5),
    }
    assert mdp.action_names[0] in ("a0", "a1")  # the unlabelled choice, by its rank
    assert set(mdp.action_names[1:]) == {"door", "move"}
    assert list(mdp.labels) == ["up"]
    assert [mdp.state_name(s) for s in np.flatnonzero(mdp.labels["up"])] == [
        name for name in mdp.state_names or () if name.endswith("level=1")
    ]
    assert mdp.state_name(int(np.argmax(mdp.start))) == at(0, "false")
    assert mdp.start.max() == 1
    assert mdp.name == "lift"


@pytest.mark.usefixtures("stormpy")
def test_constants_labels_and_the_chosen_reward():
    gain, moves = (read_storm(ROBOT, "N=3,B=6", name) for name in ("gain", "moves"))
    assert list(gain.labels) == ["empty", "work"]
    assert set(gain.action_names) == {"charge", "east", "north", "south", "tow", "west", "work"}
    by_name = rows(gain)
    assert by_name["x=2,y=2,b=2", "work"] == ({"x=2,y=2,b=1": 1}, 5)
    assert by_name["x=1,y=0,b=0", "tow"] == ({"x=0,y=0,b=0": 0.5, "x=1,y=0,b=0": 0.5}, -3)
    assert by_name["x=0,y=0,b=5", "charge"] == ({"x=0,y=0,b=6": 1}, 0)
    east, reward = rows(moves)["x=0,y=0,b=6", "east"]
    assert east == pytest.approx({"x=1,y=0,b=5": 0.9, "x=0,y=0,b=5": 0.1})
    assert reward == 1


@pytest.mark.usefixtures("stormpy")
def test_several_initial_states_share_the_start(tmp_path):
    text = "mdp\nmodule m\n x : [0..3];\n [] true -> (x'=mod(x+1,4));\nendmodule\ninit x<2 endinit\n"
    mdp = read_storm(write(tmp_path, text))
    assert {mdp.state_name(s): mdp.start[s] for s in range(4)} == {"x=0": 0.5, "x=1": 0.5, "x=2": 0, "x=3": 0}
    assert not mdp.reward.any()
    assert mdp.action_names == ("a0",)


@pytest.mark.usefixtures("stormpy")
def test_a_markov_chain_has_one_choice_in_each_state(tmp_path):
    text = (
        "dtmc\nmodule m\n x : [0..2] init 0;\n [] x<2 -> 0.5 : (x'=x+1) + 0.5 : true;\n [] x=2 -> (x'=0);\nendmodule\n"
    )
    mdp = read_storm(write(tmp_path, text + "rewards\n x=2 : 3;\nendrewards\n", "chain.pm"))
    assert (mdp.n_states, mdp.n_choices) == (3, 3)
    assert Polytope(mdp).best(mdp.reward).value == pytest.approx(3 / 5)


@pytest.mark.usefixtures("stormpy")
def test_a_deterministic_model(tmp_path):
    """UMB omits the arrays that are trivial here."""
    text = "mdp\nmodule m\n x : [0..2] init 0;\n [on] true -> (x'=mod(x+1,3));\n [off] true -> (x'=0);\nendmodule\n"
    by_name = rows(read_storm(write(tmp_path, text)))
    assert {key: next(iter(row)) for key, (row, _) in by_name.items()} == {
        (f"x={x}", action): f"x={(x + 1) % 3 if action == 'on' else 0}" for x in range(3) for action in ("on", "off")
    }


def test_choices_with_several_labels_or_none():
    marked = {"b": [0, 3], "a": [0, 2], "c": [0]}
    labelling = SimpleNamespace(get_labels=lambda: set(marked), get_choices=marked.__getitem__)
    model = SimpleNamespace(has_choice_labeling=lambda: True, choice_labeling=labelling)
    actions, names = _actions(model, np.array([0, 2, 5]))
    assert [names[a] for a in actions] == ["a+b+c", "a1", "a", "b", "a2"]


@pytest.mark.usefixtures("stormpy")
def test_rewards_of_transitions_in_jani_become_their_expectation():
    mdp = read_storm(TOLL, "p=0.25")
    assert rows(mdp) == {("x=0", "go"): ({"x=1": 0.25, "x=0": 0.75}, 2), ("x=1", "back"): ({"x=0": 1}, 0)}
    assert list(mdp.labels) == ["there"]
    assert Polytope(mdp).best(mdp.reward).value == pytest.approx(8 / 5)


def test_prism_written_as_jani_is_the_same_model(stormpy, tmp_path):
    program, _ = stormpy.parse_prism_program(ROBOT).to_jani([])
    stormpy.io.export_jani_to_file(tmp_path / "robot.jani", program)
    jani, prism = read_storm(tmp_path / "robot.jani", "N=3,B=6", "gain"), read_storm(ROBOT, "N=3,B=6", "gain")
    assert rows(jani) == rows(prism)
    assert list(jani.labels) == list(prism.labels)


def exported(stormpy, program_file: Path, constants: str, folder: Path, digits: int | None = 17) -> Path:
    """A PRISM program's model as Storm builds it and writes it to a DRN file."""
    program, _ = stormpy.instantiate_constants(stormpy.parse_prism_program(program_file), constants)
    building = stormpy.BuilderOptions()
    for part in ("choice_labels", "state_valuations", "all_labels", "all_reward_models"):
        getattr(building, f"set_build_{part}")(True)
    writing = stormpy.io.DirectEncodingExporterOptions()
    if digits is not None:
        writing.output_precision = digits
    path = folder / f"{program_file.stem}.drn"
    stormpy.io.export_to_drn(stormpy.build_model(program, options=building), path, options=writing)
    return path


@pytest.mark.parametrize(
    ("program", "constants", "reward"),
    [(TINY, "", None), (ROBOT, "N=3,B=6", "gain"), (ROBOT, "N=3,B=6", "moves"), (FLEET, "W=4", "gain")],
    ids=["lift", "robot gain", "robot moves", "fleet"],
)
def test_a_drn_file_of_storm_is_the_same_model_as_its_program(stormpy, tmp_path, program, constants, reward):
    path = program if isinstance(program, Path) else write(tmp_path, program, "lift.prism")
    theirs, ours = read_storm(path, constants, reward), read_drn(exported(stormpy, path, constants, tmp_path), reward)
    assert ours.digest == theirs.digest, "transitions, rewards, labels and start to the last bit"
    assert ours.state_names == theirs.state_names
    assert [ours.action_name(x) for x in range(ours.n_choices)] == [
        theirs.action_name(x) for x in range(theirs.n_choices)
    ]
    assert not any("NOLABEL" in name for name in ours.action_names)
    assert ours.name == theirs.name


def test_the_ten_digits_that_storm_writes_by_default_are_enough(stormpy, tmp_path):
    text = TINY.replace("0.75 :", "2/3 :").replace("0.25 :", "1/3 :")
    program = write(tmp_path, text, "lift.prism")
    file = exported(stormpy, program, "", tmp_path, digits=None)
    assert "0.6666666667" in file.read_text()
    ours, theirs = read_drn(file), read_storm(program)
    np.testing.assert_allclose(ours.transitions.toarray(), theirs.transitions.toarray(), atol=1e-9)
    np.testing.assert_array_equal(ours.reward, theirs.reward)


def test_choices_that_storm_exports_without_labels_are_named_by_their_rank(stormpy, tmp_path):
    program = write(tmp_path, TINY, "lift.prism")
    model = stormpy.build_model(stormpy.parse_prism_program(program))
    stormpy.io.export_to_drn(model, tmp_path / "plain.drn")
    mdp = read_drn(tmp_path / "plain.drn")
    assert mdp.action_names == ("0", "1")
    assert mdp.state_names is None
    assert mdp.digest == read_storm(program).digest


def odd_names() -> MDP:
    """Two states with labels, names and actions that are difficult for a text format."""
    return MDP.from_csr(
        sparse.csr_array([[1 / 3, 2 / 3], [1, 0], [0.1, 0.9]]),
        [1e-3, -2.5, 1 / 7],
        [0, 2, 3],
        actions=[0, 1, 2],
        action_names=["go on", "a[b]", "0:1"],
        state_names=["!one", "[two] // three"],
        labels={"a b": np.array([True, True]), "none": np.array([False, True])},
    )


def parsed_by_storm(stormpy, path: Path):
    """A DRN file as Storm reads it."""
    options = stormpy.io.DirectEncodingParserOptions()
    options.build_choice_labeling = True
    return stormpy.build_model_from_drn(path, options=options)


@pytest.mark.parametrize("make", [lambda: four_rooms(0), odd_names], ids=["four rooms", "odd names"])
def test_storm_reads_our_drn_as_it_was_written(stormpy, tmp_path, make):
    mdp = make()
    write_drn(mdp, tmp_path / "model.drn")
    model = parsed_by_storm(stormpy, tmp_path / "model.drn")
    assert list(model.nondeterministic_choice_indices) == mdp.first_choice.tolist()
    matrix = model.transition_matrix
    found = np.zeros((mdp.n_choices, mdp.n_states))
    for x in range(mdp.n_choices):
        for entry in matrix.get_row(x):
            found[x, entry.column] = entry.value
    np.testing.assert_allclose(found, mdp.transitions.toarray(), atol=1e-12)
    rewards = model.reward_models["reward"]
    earned = np.array(rewards.state_action_rewards)
    if rewards.has_state_rewards:
        earned = earned + np.repeat(np.array(rewards.state_rewards), np.diff(mdp.first_choice))
    np.testing.assert_array_equal(earned, mdp.reward)
    assert sorted(model.initial_states) == np.flatnonzero(mdp.start).tolist()


@pytest.mark.parametrize("make", [lambda: four_rooms(0), odd_names], ids=["four rooms", "odd names"])
def test_storm_reads_our_drn_and_agrees_on_the_best_average(stormpy, tmp_path, make):
    mdp = make()
    write_drn(mdp, tmp_path / "model.drn")
    model = parsed_by_storm(stormpy, tmp_path / "model.drn")
    assert (model.nr_states, model.nr_choices, model.nr_transitions) == (
        mdp.n_states,
        mdp.n_choices,
        mdp.transitions.nnz,
    )
    assert set(model.labeling.get_labels()) == {"init", *mdp.labels}
    for label, mask in mdp.labels.items():
        assert sorted(model.labeling.get_states(label)) == np.flatnonzero(mask).tolist()
    assert [model.choice_labeling.get_labels_of_choice(x) for x in range(mdp.n_choices)] == [
        {"_".join(mdp.action_name(x).split())} for x in range(mdp.n_choices)
    ]
    wanted = stormpy.parse_properties('R{"reward"}max=? [LRA]')[0]
    best = stormpy.model_checking(model, wanted, environment=stormpy.environments.sound())
    assert Polytope(mdp).best(mdp.reward).value == pytest.approx(best.get_value(model.initial_states[0]), rel=1e-6)


@pytest.mark.parametrize(
    ("path", "constants", "states"),
    [(ROBOT, "N=6,B=20", 576), (FLEET, "W=9", 10_000), (FLEET, "W=17", 104_976)],
    ids=["robot", "fleet of 10,000", "fleet of 105,000"],
)
def test_the_best_average_agrees_with_storm(stormpy, path, constants, states):
    """Storm with its sound methods at its default precision; the fleet, because robot N=12,B=80 takes Storm too long."""
    mdp = read_storm(path, constants, "gain")
    assert mdp.n_states == states
    assert Polytope(mdp).best(mdp.reward).value == pytest.approx(storm_average(stormpy, path, constants), rel=1e-6)


ROUNDED = """mdp
const int TOP;
formula good = 0.9 - 0.6 * w / 9;
module m
  w : [0..9] init 0;
  q : [0..3] init 0;
  [go] true -> 0.2*(1-good) : (q'=min(TOP,q+1)) + 0.8*good : (w'=min(9,w+1)) + 0.2*good+0.8*(1-good) : true;
  [stop] true -> (q'=0)&(w'=0);
endmodule
"""


@pytest.mark.usefixtures("stormpy")
def test_rounding_errors_are_accepted_but_leaving_a_range_is_not(tmp_path):
    path = write(tmp_path, ROUNDED)
    mdp = read_storm(path, "TOP=3")
    assert mdp.n_states == 40
    assert mdp.state_name(0) == "w=0,q=0"
    with pytest.raises(SourceError, match="leaves its range"):
        read_storm(path, "TOP=9")


@pytest.mark.usefixtures("stormpy")
@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.prism", "mdp\nmodule m\n x : [0..1 init 0;\nendmodule\n", r'3:\d+: expecting "\]"'),
        ("a.prism", "mdp\nmodule m\n x : [0..3] init 0;\n [] true -> (x'=x+1);\nendmodule\n", "out-of-bounds"),
        (
            "a.prism",
            "ctmc\nmodule m\n x : [0..1] init 0;\n [] true -> 2 : (x'=1-x);\nendmodule\n",
            "type CTMC, expected",
        ),
        ("a.prism", "mdp\nmodule m\n x : [0..1] init 0;\n [] true -> 0.4 : (x'=1-x);\nendmodule\n", "sum"),
        ("a.jani", "mdp", "parse error"),
    ],
)
def test_files_that_cannot_be_read(tmp_path, capfd, name, text, message):
    with pytest.raises(ValueError, match=message) as caught:
        read_storm(write(tmp_path, text, name))
    assert "\n" not in str(caught.value)
    assert capfd.readouterr() == ("", "")


@pytest.mark.usefixtures("stormpy")
def test_settings_that_do_not_fit(tmp_path, capfd):
    with pytest.raises(SourceError, match=r"does not define N, B; .*robot\.prism\?const=N=3,B=3"):
        read_storm(ROBOT)
    with pytest.raises(SourceError, match="does not define B;"):
        read_storm(ROBOT, "N=3")
    with pytest.raises(SourceError, match="unknown undefined constant 'Q'"):
        read_storm(ROBOT, "N=3,B=4,Q=1")
    with pytest.raises(SourceError, match="syntax error"):
        read_storm(ROBOT, "N3")
    with pytest.raises(
        SettingError, match=r"has 2 reward structures, 'gain', 'moves'; choose one, as in robot\.prism\?reward=gain"
    ):
        read_storm(ROBOT, "N=3,B=4")
    with pytest.raises(SettingError, match="no reward structure 'gold'; it has 'gain', 'moves'"):
        read_storm(ROBOT, "N=3,B=4", "gold")
    with pytest.raises(SourceError, match=r"there is no file .*a\.prism"):
        read_storm(tmp_path / "a.prism")
    assert capfd.readouterr() == ("", "")


def test_without_stormpy_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "stormpy", None)
    with pytest.raises(
        SettingError, match=r"PRISM's language or JANI needs stormpy, .* pip install 'manyways\[storm\]'"
    ):
        read_storm(ROBOT, "N=3,B=4", "gain")


def test_the_example_for_a_constant_is_of_its_type(tmp_path):
    text = "mdp\nconst int N;\nconst double loss;\nconst bool fair;\nmodule m\n x:[0..N];\n [a] fair -> loss:(x'=0)+1-loss:(x'=N);\nendmodule"
    (tmp_path / "link.prism").write_text(text)
    with pytest.raises(SourceError, match=r"link\.prism\?const=N=3,loss=0\.5,fair=true"):
        read_storm(tmp_path / "link.prism")
