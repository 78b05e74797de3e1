"""PRISM's explicit files: PRISM's own files, round trips, and the messages for malformed files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fuzzing
import manyways as mw
from manyways.errors import OutputError
from manyways.formats import explicit_text, prism_explicit
from manyways.formats.prism_explicit import read_prism_explicit, write_prism_explicit
from problems import random_mdp

MDP_FILES = {
    ".tra": "3 4 6\n0 0 0 0.1 east\n0 0 1 0.9 east\n0 1 0 1 stay\n1 0 1 0.5\n1 0 2 5e-1\n2 0 2 1\n",
    ".lab": '0="init" 1="deadlock" 2="far" 3="my label" 4="never"\n0: 0\n1: 2 3\n2: 1 2\n',
    ".sta": "(x,y)\n0:(0,true)\n1:(1,true)\n2:(-2,false)\n",
    ".srew": '# Reward structure "steps"\n# State rewards\n3 2\n0 1\n1 0.5\n',
    ".trew": '# Reward structure "steps"\n# Transition rewards\n3 4 3\n0 0 1 10\n1 0 1 0.1\n1 0 2 0.1\n',
}
DTMC_FILES = {
    ".tra": "2 3\n0 0 0.5\n0 1 0.5\n1 1 1\n",
    ".srew": "2 1\n1 3\n",
    ".trew": "2 1\n0 1 4\n",
}


def put(folder: Path, files: dict[str, str | bytes]) -> Path:
    """Writes the files and returns the path of the transitions."""
    for ending, content in files.items():
        (folder / f"model{ending}").write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder / "model.tra"


@pytest.fixture
def read(tmp_path):
    def read(files: dict[str, str | bytes], reward: str | None = None) -> mw.MDP:
        return read_prism_explicit(put(tmp_path, files), reward)

    return read


@pytest.fixture
def refusal(read):
    def refusal(files: dict[str, str | bytes], reward: str | None = None) -> str:
        with pytest.raises(mw.SourceError) as caught:
            read(files, reward)
        return str(caught.value)

    return refusal


# ---- reading ----------------------------------------------------------------------------------


def test_what_prism_writes(read):
    mdp = read(MDP_FILES)
    assert mdp.name == "model"
    assert mdp.first_choice.tolist() == [0, 2, 3, 4]
    assert mdp.transitions.toarray().tolist() == [[0.1, 0.9, 0], [1, 0, 0], [0, 0.5, 0.5], [0, 0, 1]]
    assert mdp.reward.tolist() == [10, 1, 0.6, 0]
    assert mdp.start.tolist() == [1, 0, 0]
    assert [mdp.action_name(x) for x in range(4)] == ["east", "stay", "0", "0"]
    assert mdp.state_names == ("x=0,y=true", "x=1,y=true", "x=-2,y=false")
    assert {name: mask.tolist() for name, mask in mdp.labels.items()} == {
        "far": [False, True, True],
        "my label": [False, True, False],
        "never": [False, False, False],
    }


def test_a_chain(read):
    mdp = read(DTMC_FILES)
    assert mdp.transitions.toarray().tolist() == [[0.5, 0.5], [0, 1]]
    assert mdp.reward.tolist() == [2, 3]
    assert mdp.start.tolist() == [1, 0]
    assert mdp.state_names is None


def test_transitions_alone(read):
    mdp = read({".tra": MDP_FILES[".tra"]})
    assert mdp.reward.tolist() == [0, 0, 0, 0]
    assert mdp.labels == {}


def test_lines_may_come_in_any_order(read):
    lines = MDP_FILES[".tra"].splitlines()
    assert read(MDP_FILES).digest == read(MDP_FILES | {".tra": "\n".join([lines[0], *lines[:0:-1]])}).digest


def test_windows_line_ends_and_blank_lines_around(read):
    expected = read(MDP_FILES)
    found = read({ending: "\n\n" + text.replace("\n", "\r\n") + "\n\n" for ending, text in MDP_FILES.items()})
    assert found.digest == expected.digest
    assert found.state_names == expected.state_names
    assert found.action_names == expected.action_names


def test_several_starts_are_equally_likely(read):
    assert read(MDP_FILES | {".lab": '0="init"\n0: 0\n2: 0\n'}).start.tolist() == [0.5, 0, 0.5]


def test_the_other_endings_of_reward_files(read):
    assert read({".tra": DTMC_FILES[".tra"], ".rews": "2 1\n1 3\n", ".rewt": "2 1\n0 1 4\n"}).reward.tolist() == [2, 3]


def test_our_endings_of_reward_files_take_precedence(read):
    """Otherwise a model that is written over another one would get its rewards."""
    assert read(DTMC_FILES | {".rews": "2 1\n1 7\n", ".rewt": "2 1\n0 1 7\n"}).reward.tolist() == [2, 3]


def test_the_reward_by_its_name(read, refusal):
    assert read(MDP_FILES, "steps").reward.tolist() == [10, 1, 0.6, 0]
    assert "has no reward 'energy'; it has 'steps'" in refusal(MDP_FILES, "energy")


def test_a_reward_without_a_name(read, refusal):
    assert read(DTMC_FILES, "reward").reward.tolist() == [2, 3]
    assert "has no reward 'energy'; it has 'reward'" in refusal(DTMC_FILES, "energy")


def test_several_rewards_in_numbered_files(read, refusal):
    files = {".tra": DTMC_FILES[".tra"], "1.srew": "2 1\n1 3\n", "2.srew": '# Reward structure "cost"\n2 1\n1 -3\n'}
    assert read(files, "cost").reward.tolist() == [0, -3]
    assert read(files, "1").reward.tolist() == [0, 3]
    assert "model.tra has 2 rewards, '1', 'cost'; choose one, as in model.tra?reward=cost" in refusal(files)


# ---- refusals ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ending", "old", "new", "message"),
    [
        (
            ".tra",
            "3 4 6",
            "3",
            "model.tra: line 1: expected 'states transitions' or 'states choices transitions', found",
        ),
        (".tra", "3 4 6", "3 4 x", "model.tra: line 1: expected 'states transitions' or"),
        (".tra", "3 4 6", "3 4 7", "model.tra: line 1 announces 7 lines, but 6 follow; is the file complete?"),
        (".tra", "3 4 6", "3 5 6", "model.tra: line 1 announces 5 choices, but 4 follow; is the file complete?"),
        (".tra", "3 4 6", "999999999999999 4 6", "announces 999999999999999 states and 6 transitions; every state"),
        (".tra", "3 4 6", "0 4 6", "announces 0 states and 6 transitions"),
        (".tra", "3 4 6", "3 6", "model.tra: line 2: expected 'source target probability' in plain numbers, found"),
        (".tra", "1 0.9", "3 0.9", "model.tra: line 3: the state must be an integer from 0 to 2, found '0 0 3 0.9"),
        (".tra", "1 0.9", "0.5 0.9", "model.tra: line 3: the state must be an integer"),
        (".tra", "0 0 1", "0 -1 1", "model.tra: line 3: the choice must be an integer from 0 to 5"),
        (".tra", "1 0.9", "1 -0.9", "model.tra: line 3: the probability must be finite and not negative"),
        (".tra", "1 0.9", "1 1e999", "model.tra: line 3: the probability must be finite and not negative"),
        (".tra", "1 0.9", "1 [0.8,0.9]", "model.tra: line 3: expected 'source choice target probability' in plain"),
        (".tra", "1 0.9", "1 p", "model.tra: line 3: expected 'source choice target probability' in plain"),
        (".tra", "0.9 east", "0.9 east west", "model.tra: line 3: expected 'source choice target probability'"),
        (".tra", "0 1 0 1 stay", "", "model.tra: line 4: expected 'source choice target probability'"),
        (".lab", '0="init"', '0="begin"', "model.lab: no state has the label 'init'; add it to the state to start in"),
        (".lab", "0: 0", "", "model.lab: line 2: expected 'state: labels' in numbers, found ''"),
        (".lab", '0="init"', "init", 'model.lab: line 1: expected labels such as 0="init", found \'init 1='),
        (".lab", "2: 1", "3: 1", "model.lab: line 4: the state must be an integer from 0 to 2, found '3: 1 2'"),
        (".lab", "2: 1", "9" * 5000 + ": 1", "model.lab: line 4: the state must be an integer from 0 to 2"),
        (".lab", "1: 2 3", "1: 2 5", "model.lab: line 3: the first line has no such label, found '1: 2 5'"),
        (".lab", "1: 2 3", "1: 2 " + "5" * 5000, "model.lab: line 3: the first line has no such label"),
        (".lab", "1: 2 3", "1: far", "model.lab: line 3: expected 'state: labels' in numbers, found '1: far'"),
        (".sta", "(x,y)", "x,y", "model.sta: line 1: expected variables such as (x,y), found 'x,y'"),
        (".sta", "1:(1,true)", "1:(1)", "model.sta: line 3: expected 2 values, found '1:(1)'"),
        (".sta", "1:(1,true)", "1:1", "model.sta: line 3: expected 'state:(values)', found '1:1'"),
        (".sta", "1:(1,true)", "2:(1,true)", "model.sta: expected a line for each of the 3 states, found 3"),
        (".sta", "2:(-2,false)", "", "model.sta: expected a line for each of the 3 states, found 2"),
        (
            ".srew",
            "3 2",
            "4 2",
            "model.srew: line 3 announces 4 states, but the .tra file has 3; do they belong to the same model?",
        ),
        (".srew", "3 2", "3 3", "model.srew: line 3 announces 3 lines, but 2 follow; is the file complete?"),
        (".srew", "3 2", "3 4 2", "model.srew: line 3: expected 'states nonzeros', found '3 4 2'"),
        (".srew", "1 0.5", "3 0.5", "model.srew: line 5: the state must be an integer from 0 to 2, found '3 0.5'"),
        (".srew", "1 0.5", "1 1e999", "model.srew: line 5: the reward must be finite, found '1 1e999'"),
        (".srew", "1 0.5", "1 1.2.3", "model.srew: line 5: expected 'state reward' in plain numbers, found '1 1.2.3'"),
        (".trew", "3 4 3", "3 3", "model.trew: line 3: expected 'states choices nonzeros', found '3 3'"),
        (".trew", "3 4 3", "4 4 3", "model.trew: line 3 announces 4 states, but the .tra file has 3"),
        (".trew", "0 0 1 10", "0 0 2 10", "model.trew: line 4: the .tra file has no such transition, found"),
        (".trew", "0 0 1 10", "2 1 1 10", "model.trew: line 4: the .tra file has no such transition"),
        (".trew", "0 0 1 10", "0 9 1 10", "model.trew: line 4: the choice must be an integer from 0 to 1"),
    ],
)
def test_malformed_files(refusal, ending, old, new, message):
    assert old in MDP_FILES[ending]
    assert message in refusal(MDP_FILES | {ending: MDP_FILES[ending].replace(old, new, 1)})


@pytest.mark.parametrize("ending", MDP_FILES)
@pytest.mark.parametrize("text", ["", "\n\n", "# nothing\n"])
def test_empty_files(refusal, ending, text):
    assert f"model{ending} is empty" in refusal(MDP_FILES | {ending: text})


@pytest.mark.parametrize("ending", MDP_FILES)
def test_files_that_are_not_text(refusal, ending):
    assert f"model{ending} is not a text file: byte 1 is not UTF-8" in refusal(MDP_FILES | {ending: b"1\xff"})


def test_files_that_cannot_be_read(tmp_path, refusal, monkeypatch):
    with pytest.raises(mw.SourceError, match=r"there is no file .*none\.tra"):
        read_prism_explicit(tmp_path / "none.tra")
    with pytest.raises(mw.SourceError, match="is a folder, expected a file"):
        read_prism_explicit(tmp_path)
    monkeypatch.setattr(explicit_text, "LARGEST_FILE", 10)
    assert "bytes, more than the 10 that are read" in refusal(MDP_FILES)


def test_an_invalid_model_raises_a_model_error(read):
    with pytest.raises(mw.ModelError, match="sum to 1"):
        read({".tra": "1 1 2\n0 0 0 1\n0 0 0 0.5\n"})
    with pytest.raises(mw.ModelError, match="state 's1' has no action"):
        read({".tra": "2 1 2\n0 0 0 0.5\n0 0 1 0.5\n"})


# ---- round trips ------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), data=st.data())
def test_a_written_model_is_read_back(tmp_path_factory, seed, data):
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, max_states=6)
    starts = rng.random(mdp.n_states) < 0.5
    starts[rng.integers(mdp.n_states)] = True
    text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters='\n"'), max_size=5)
    label = text.filter(lambda name: name not in explicit_text.RESERVED_LABELS)
    labels = {name: rng.random(mdp.n_states) < 0.5 for name in data.draw(st.sets(label, max_size=3))}
    names = data.draw(st.sampled_from([None, "x={0},y=-{0}", "room {0}, (left)", "x={0},y", "name={0}"]))
    mdp = mw.MDP.from_csr(
        mdp.transitions,
        rng.choice([0.0, 0.1, 1e-300, *rng.normal(size=3)], size=mdp.n_choices),
        mdp.first_choice,
        start=starts / starts.sum(),
        labels=labels,
        state_names=names and [names.format(s) for s in range(mdp.n_states)],
    )
    tra = tmp_path_factory.mktemp("prism") / "model.tra"
    write_prism_explicit(mdp, tra)
    back = read_prism_explicit(tra)
    assert back.digest == mdp.digest
    assert back.state_names == mdp.state_names
    assert [back.action_name(x) for x in range(back.n_choices)] == [mdp.action_name(x) for x in range(mdp.n_choices)]


def test_models_written_in_several_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(prism_explicit, "LINES_AT_ONCE", 7)
    mdp = mw.nine_rooms(3)
    rewards = np.random.default_rng(0).normal(size=mdp.n_choices)
    mdp = mw.MDP.from_csr(mdp.transitions, rewards, mdp.first_choice, start=mdp.start, labels=mdp.labels)
    write_prism_explicit(mdp, tmp_path / "model.tra")
    assert read_prism_explicit(tmp_path / "model.tra").digest == mdp.digest


def test_odd_names(tmp_path):
    names = ["a\rb=1", " s ", "(x)", "\u2028", "a,b"]
    mdp = mw.MDP.from_transitions(
        [(name, action, name, 1.0, 0.0) for name in names for action in ("#a", "[b]", "c\0d")]
    )
    write_prism_explicit(mdp, tmp_path / "model.tra")
    back = read_prism_explicit(tmp_path / "model.tra")
    assert back.state_names == ("a b=1", *names[1:])
    assert back.action_names == ("#a", "[b]", "c_d")


def test_existing_files_are_replaced(tmp_path):
    named = mw.MDP.from_transitions([(s, "a", 0, 1.0, 1.0) for s in range(3)])
    unnamed = mw.MDP.from_csr(np.ones((1, 1)), [0.0], [0, 1])
    for mdp in (named, unnamed):
        write_prism_explicit(mdp, tmp_path / "model.tra")
    back = read_prism_explicit(tmp_path / "model.tra")
    assert back.digest == unnamed.digest
    assert back.state_names is None


def test_a_quote_in_a_label(tmp_path):
    mdp = mw.MDP.from_transitions([(0, "a", 0, 1.0, 0.0)], labels={'a"b': [0]})
    with pytest.raises(OutputError, match="contains a quote or a line break"):
        write_prism_explicit(mdp, tmp_path / "model.tra")


# ---- arbitrary input ---------------------------------------------------------------------------

FILES = st.sampled_from(list(MDP_FILES))
PIECES = st.sampled_from(fuzzing.PIECES) | st.text(max_size=4)


@settings(max_examples=150, deadline=None)
@given(ending=FILES, data=st.data())
def test_damaged_files_are_read_or_refused(tmp_path_factory, ending, data):
    text = data.draw(fuzzing.damaged(MDP_FILES[ending], PIECES))
    assert isinstance(read_text(tmp_path_factory, ending, text), mw.MDP | str)


@settings(max_examples=150, deadline=None)
@given(ending=FILES, text=st.text(max_size=60) | st.text('012: \n\t()="#', max_size=60))
def test_arbitrary_text_is_read_or_refused(tmp_path_factory, ending, text):
    assert isinstance(read_text(tmp_path_factory, ending, text), mw.MDP | str)


def read_text(tmp_path_factory, ending: str, text: str) -> mw.MDP | str:
    tra = put(tmp_path_factory.getbasetemp(), MDP_FILES | {ending: text.encode("utf-8", "surrogatepass")})
    return fuzzing.read_or_refusal(read_prism_explicit, tra)
