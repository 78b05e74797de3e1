"""DRN files: Storm's files, round trips, and the messages for malformed files."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fuzzing
import manyways as mw
from manyways.formats import drn, explicit_text
from manyways.formats.drn import read_drn, write_drn
from problems import random_mdp

STORM = """// Exported by storm
// Original model type: MDP
@type: MDP
@value_type: double
@parameters

@reward_models
 steps\x20
@nr_states
3
@nr_choices
4
@model
state 0 [0, 1] init
//[x=0\t& y=0]
	action east [0, 1.5]
		0 : 0.1
		1 : 0.9
	action stay [0, 0]
		0 : 1
state 1 [0.5, 0] far "my \\"label\\""
//[x=1\t& y=0]
	action 0 [0.25, -2e-1]
		1 : 0.5
		2 : 5e-1
state 2 [0, 0] deadlock far
//[x=2\t& y=0]
	action 0 [0, 0]
		2 : 1
"""


@pytest.fixture
def read(tmp_path):
    """Reads a text as a DRN file."""

    def read(text: str | bytes, reward: str | None = None) -> mw.MDP:
        path = tmp_path / "model.drn"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_drn(path, reward)

    return read


@pytest.fixture
def refusal(read):
    def refusal(text: str | bytes, reward: str | None = "steps") -> str:
        with pytest.raises(mw.SourceError) as caught:
            read(text, reward)
        return str(caught.value)

    return refusal


def uniform_start(mdp: mw.MDP, starts: np.ndarray, **details: object) -> mw.MDP:
    return mw.MDP.from_csr(
        mdp.transitions,
        mdp.reward,
        mdp.first_choice,
        start=starts / starts.sum(),
        actions=mdp.actions,
        action_names=mdp.action_names,
        **details,
    )


# ---- reading ----------------------------------------------------------------------------------


def test_what_storm_writes(read):
    mdp = read(STORM, "steps")
    assert mdp.name == "model"
    assert mdp.first_choice.tolist() == [0, 2, 3, 4]
    assert mdp.transitions.toarray().tolist() == [[0.1, 0.9, 0], [1, 0, 0], [0, 0.5, 0.5], [0, 0, 1]]
    assert mdp.reward.tolist() == [2.5, 1, -0.2, 0]
    assert mdp.start.tolist() == [1, 0, 0]
    assert [mdp.action_name(x) for x in range(4)] == ["east", "stay", "0", "0"]
    assert mdp.state_names == ("x=0,y=0", "x=1,y=0", "x=2,y=0")
    assert {name: mask.tolist() for name, mask in mdp.labels.items()} == {
        "far": [False, True, True],
        'my "label"': [False, True, False],
    }


def test_choices_without_a_label_are_named_by_their_rank(read):
    text = STORM.replace("action stay", "action __NOLABEL__").replace("action 0", "action __NOLABEL__")
    mdp = read(text, "steps")
    assert [mdp.action_name(x) for x in range(4)] == ["east", "a1", "a0", "a0"]
    assert mdp.digest == read(STORM, "steps").digest


@pytest.mark.parametrize(
    ("comments", "names"),
    [
        (("!open\t& x=0", "\t& x=1", "!open\t& x=2"), ("open=false,x=0", "open=true,x=1", "open=false,x=2")),
        (("!open", "", "open"), ("open=false", "open=true", "open=true")),
        (("\t& x=0", "\t& x=1", "\t& x=2"), ("x=0", "x=1", "x=2")),  # true everywhere, so its name is not in the file
        (("!a\t& x=0", "!b\t& x=1", "x=2"), ("!a,x=0", "!b,x=1", "x=2")),
        (("!a", "!b", ""), ("!a", "!b", "")),
    ],
)
def test_booleans_that_storm_writes_only_where_they_are_false(read, comments, names):
    text = STORM
    for x, comment in enumerate(comments):
        text = text.replace(f"//[x={x}\t& y=0]", f"//[{comment}]")
    assert read(text, "steps").state_names == names
    ours = read(text.replace("// Exported by storm\n", ""), "steps").state_names
    assert ours == tuple(comment.replace("\t& ", ",") for comment in comments), "names of others are left alone"


def test_the_unnamed_reward_model(read):
    assert read(STORM, "").reward.tolist() == [0, 0, 0.75, 0]


@pytest.mark.parametrize("line", ["steps  ", "steps\t\t", "steps "])
def test_the_unnamed_reward_model_may_come_last(read, line):
    assert read(STORM.replace(" steps ", line, 1).replace("[0, 1.5]", "[1.5, 0]"), "").reward[0] == 1


def test_names_with_several_blanks_between_them(read):
    assert read(STORM.replace(" steps ", "energy   steps", 1), "energy").reward.tolist() == [0, 0, 0.75, 0]


@pytest.mark.parametrize(
    ("reward", "message"),
    [
        (None, "model.drn has 2 rewards, '', 'steps'; choose one, as in model.drn?reward=steps"),
        ("step", "model.drn has no reward 'step'; it has '', 'steps'"),
    ],
)
def test_one_reward_model_must_be_chosen(refusal, reward, message):
    assert message in refusal(STORM, reward)


SMALL = "@type: MDP\n@model\nstate 0 init\n\taction a\n\t\t0 : 1\n"


def test_a_file_without_rewards_sizes_and_names(read, refusal):
    mdp = read(SMALL)
    assert mdp.reward.tolist() == [0]
    assert mdp.state_names is None
    assert "has no reward 'steps'; it has none" in refusal(SMALL)


def test_the_only_reward_model_needs_no_name(read):
    text = SMALL.replace("@model", "@reward_models\ncost\n@model").replace("action a", "action a [7]")
    assert read(text).reward.tolist() == [7]
    assert read(text, "cost").reward.tolist() == [7]


def test_a_reward_model_without_any_number_is_zero(read):
    assert read(SMALL.replace("@model", "@reward_models\ncost \n@model"), "cost").reward.tolist() == [0]


def test_brackets_may_be_missing_where_the_reward_is_zero(read):
    assert read(STORM.replace("action stay [0, 0]", "action stay"), "steps").reward.tolist() == [2.5, 1, -0.2, 0]


def test_a_markov_chain(read):
    mdp = read(SMALL.replace("MDP", "DTMC"))
    assert mdp.n_choices == 1


def test_windows_line_ends_odd_indentation_and_no_last_newline(read):
    expected = read(STORM, "steps").digest
    assert read(STORM.replace("\n", "\r\n"), "steps").digest == expected
    assert read(STORM.replace("\t", " " * 99), "steps").digest == expected
    assert read(STORM.rstrip(), "steps").digest == expected
    assert read(STORM.replace(" : ", ":"), "steps").digest == expected


def test_several_starts_are_equally_likely(read):
    assert read(STORM.replace("deadlock far", "init"), "steps").start.tolist() == [0.5, 0, 0.5]


def test_names_of_only_some_states_are_ignored(read):
    assert read(STORM.replace("//[x=1\t& y=0]\n", ""), "steps").state_names is None


# ---- refusals ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("@model\n", "", "model.drn is not a DRN file: it has no line '@model'"),
        ("@type: MDP\n", "", "the type of the model is ''; expected MDP or DTMC"),
        ("@type: MDP", "@type: POMDP", "the type of the model is 'POMDP'; expected MDP or DTMC"),
        ("@type: MDP", "@type: CTMC", "the type of the model is 'CTMC'"),
        ("@type: MDP", "@type: MA", "the type of the model is 'MA'"),
        ("@type: MDP", "@type: DTMC", "line 14: a state of a DTMC must have exactly one action, state 0 does not"),
        ("@parameters\n", "@parameters\np q", "the model has parameters; export it with values for them"),
        ("@nr_states", "@placeholders\n$0 : 1/p\n$1 : p\n@nr_states", "the model has parameters"),
        ("double", "rational", "the numbers of the model are of type 'rational', expected 'double'"),
        ("double", "double-interval", "the numbers of the model are of type 'double-interval', expected 'double'"),
        ("@type", "hello\n@type", "line 3: expected an @word or a comment before '@model', found 'hello'"),
        ("@nr_states\n3", "@nr_states\n4", "@nr_states is '4', but 3 states follow; is the file complete?"),
        ("@nr_states\n3", "@nr_states\n" + "9" * 5000, "@nr_states is '9999"),
        ("@nr_choices\n4", "@nr_choices\n3", "@nr_choices is '3', but 4 choices follow; is the file complete?"),
        (" steps ", "a b c", "@reward_models has 3 names, but there are 2 numbers in brackets"),
        ("state 0", "action 0", "@nr_states is '3', but 2 states follow"),
        ("state 1", "state 2", "line 21: expected state 1; states must be numbered in order, found 'state 2 ["),
        ("state 1", "state one", "line 21: expected 'state NUMBER [rewards] labels', found 'state one"),
        ("state 1", "stat 1", "line 21: expected 'state NUMBER"),
        ("action stay", "action", "line 19: expected 'action NAME [rewards]', found 'action [0, 0]'"),
        ("stay [0, 0]", "stay [0, 0", "line 19: expected 'action NAME [rewards]'"),
        ("stay [0, 0]", "stay [0]", "line 19: expected 2 plain numbers in the brackets, one for each reward model"),
        ("stay [0, 0]", "stay [0, p]", "line 19: expected 2 plain numbers in the brackets"),
        ("stay [0, 0]", "stay [0, 1e999]", "line 19: rewards must be finite, found"),
        ("[0.5, 0]", "[0.5, 1/3]", "line 21: expected 2 plain numbers in the brackets"),
        ("\t\t0 : 1\n", "\t\t0 : p\n", "line 20: expected 'target : probability' with plain numbers"),
        ("\t\t0 : 1\n", "\t\t0 : [0.1, 0.2]\n", "line 20: expected 'target : probability' with plain numbers"),
        ("\t\t0 : 1\n", "\t\t0 : 1/1\n", "line 20: expected 'target : probability' with plain numbers"),
        ("\t\t0 : 1\n", "\t\t0 : 1.0.0\n", "line 20: expected 'target : probability' with plain numbers"),
        ("\t\t0 : 1\n", "\t\t0 : e\n", "line 20: expected 'target : probability' with plain numbers"),
        ("\t\t0 : 1\n", "\t\t0 1 :\n", "line 20: expected 'target : probability' with plain numbers"),
        ("\t\t0 : 1\n", "\t\t0 : 1 1\n", "line 20: expected 'target : probability' with plain numbers"),
        ("1 : 0.9", "3 : 0.9", "line 18: there is no such state; states are 0..2, found '3 : 0.9'"),
        ("1 : 0.9", "1.5 : 0.9", "line 18: there is no such state"),
        ("1 : 0.9", "1 : -0.9", "line 18: a probability must be finite and not negative"),
        ("1 : 0.9", "1 : 1e999", "line 18: a probability must be finite and not negative"),
        ("\taction stay", "\t\tx : 1\n\taction stay", "line 19: expected 'state', 'action', 'target : probability'"),
        ("state 2 [0, 0] deadlock far\n", "state 2\n2 : 1\n", "line 27: a transition must follow an action"),
        ("init", "", "no state has the label 'init'; add it to the state to start in"),
    ],
)
def test_malformed_files(refusal, old, new, message):
    assert old in STORM
    assert message in refusal(STORM.replace(old, new, 1))


def test_a_file_that_ends_after_the_header(refusal):
    assert "there is no state after '@model'" in refusal("@type: MDP\n@model\n")
    assert "line 3: expected 'state 0' first, found '0 : 1'" in refusal("@type: MDP\n@model\n0 : 1\nstate 0 init\n")


def test_an_invalid_model_raises_a_model_error(read):
    with pytest.raises(mw.ModelError, match=r"sum to 0\.9"):
        read(STORM.replace("0 : 1\n", "0 : 0.9\n", 1), "steps")
    with pytest.raises(mw.ModelError, match="has no action"):
        read("@type: MDP\n@model\nstate 0 init\n\taction a\n\t\t0 : 1\nstate 1\n")


def test_the_first_of_many_bad_lines_is_named(refusal):
    lines = ["\t\t0 : 1"] * 1000
    lines[700] = lines[900] = "\t\t0 : x"
    text = "@type: MDP\n@model\nstate 0 init\n\taction a\n" + "\n".join(lines)
    assert "line 705: expected 'target : probability'" in refusal(text, None)


def test_files_that_cannot_be_read(refusal, tmp_path, monkeypatch):
    with pytest.raises(mw.SourceError, match=r"there is no file .*none\.drn"):
        read_drn(tmp_path / "none.drn")
    with pytest.raises(mw.SourceError, match="is a folder, expected a file"):
        read_drn(tmp_path)
    assert "is not a text file: byte 2 is not UTF-8" in refusal(b"//\xff")
    monkeypatch.setattr(explicit_text, "LARGEST_FILE", 10)
    assert "bytes, more than the 10 that are read" in refusal(STORM)


def test_labels_that_would_exhaust_memory(refusal, monkeypatch):
    monkeypatch.setattr(explicit_text, "MOST_LABEL_ENTRIES", 5)
    assert "4 labels are too many for 3 states" in refusal(STORM)


# ---- round trips ------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), data=st.data())
def test_a_written_model_is_read_back(tmp_path_factory, seed, data):
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, max_states=6)
    starts = rng.random(mdp.n_states) < 0.5
    starts[rng.integers(mdp.n_states)] = True
    text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=5)
    label = text.filter(lambda name: name not in explicit_text.RESERVED_LABELS)
    labels = {name: np.arange(mdp.n_states) < i for i, name in enumerate(data.draw(st.sets(label, max_size=3)))}
    mdp = uniform_start(mdp, starts, labels=labels, state_names=[f"x={s}, [y]" for s in range(mdp.n_states)])
    path = tmp_path_factory.mktemp("drn") / "model.drn"
    write_drn(mdp, path)
    back = read_drn(path, explicit_text.REWARD)
    assert back.digest == mdp.digest
    assert back.state_names == mdp.state_names
    assert [back.action_name(x) for x in range(back.n_choices)] == [mdp.action_name(x) for x in range(mdp.n_choices)]


def test_models_written_in_several_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(drn, "STATES_AT_ONCE", 7)
    mdp = mw.nine_rooms(3)
    write_drn(mdp, tmp_path / "model.drn")
    assert read_drn(tmp_path / "model.drn").digest == mdp.digest


def test_action_names_become_single_words(tmp_path):
    mdp = mw.MDP.from_transitions([(0, "go on", 0, 1.0, 0.0), (0, "", 0, 1.0, 0.0)])
    write_drn(mdp, tmp_path / "model.drn")
    assert read_drn(tmp_path / "model.drn").action_names == ("go_on", "_")


@pytest.mark.parametrize(("name", "written"), [("[c]", "_[c]"), ("__NOLABEL__", "___NOLABEL__"), ("c[1]", "c[1]")])
def test_action_names_that_look_like_something_else(tmp_path, name, written):
    write_drn(mw.MDP.from_transitions([(0, name, 0, 1.0, 0.0)]), tmp_path / "model.drn")
    assert read_drn(tmp_path / "model.drn").action_names == (written,)


# ---- arbitrary input ---------------------------------------------------------------------------

PIECES = st.sampled_from([*fuzzing.PIECES, "@model\n", "state ", "action ", "//["]) | st.text(max_size=4)


@settings(max_examples=150, deadline=None)
@given(text=fuzzing.damaged(STORM, PIECES), reward=st.sampled_from(["steps", "", None]))
def test_damaged_files_are_read_or_refused(tmp_path_factory, text, reward):
    assert isinstance(read_text(tmp_path_factory, text, reward), mw.MDP | str)


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=60) | st.text("01s: \n\t[]/", max_size=60).map(lambda text: SMALL + text))
def test_arbitrary_text_is_read_or_refused(tmp_path_factory, text):
    assert isinstance(read_text(tmp_path_factory, text, None), mw.MDP | str)


def read_text(tmp_path_factory, text: str, reward: str | None) -> mw.MDP | str:
    path = tmp_path_factory.getbasetemp() / "fuzz.drn"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    return fuzzing.read_or_refusal(read_drn, path, reward)
