"""Text maps and JSON world files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import manyways as mw
from manyways.formats.text_maps import world_from_json, world_from_text
from shared import WORLDS

MAP = "S.#.\n.#..\n...G\n"


@pytest.fixture
def write(tmp_path):
    """Writes a file and returns its path."""

    def write(content: str | bytes | dict, name: str = "map.txt") -> Path:
        if isinstance(content, dict):
            content, name = json.dumps(content), "world.json"
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def refusal(source: object) -> str:
    with pytest.raises(mw.SourceError) as caught:
        mw.read(source)
    return str(caught.value)


# ---- text maps --------------------------------------------------------------------------------


def test_text_map(write):
    path = write(MAP, "garden.txt")
    mdp = mw.read(path)
    walls = np.array([[cell == "#" for cell in row] for row in MAP.split()])
    assert mdp.digest == mw.grid_world(walls, (0, 0), (2, 3)).digest
    assert mdp.name == "garden"
    assert mw.read(str(path)).digest == mdp.digest


@pytest.mark.parametrize("text", [MAP.replace("\n", "\r\n"), MAP.rstrip(), MAP + "\n\n  \n"])
def test_line_ends_do_not_matter(write, text):
    assert mw.read(write(text)).digest == world_from_text(MAP, "map").digest


def test_settings_of_a_map(write):
    mdp = mw.read(f"{write(MAP)}?step_reward=-9&correct_transition=1")
    assert mdp.digest == world_from_text(MAP, "map", step_reward=-9.0, correct_transition=1.0).digest


def test_a_file_whose_name_has_a_question_mark(write):
    assert mw.read(write(MAP, "what?.txt")).n_states == 12


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "map: the map is empty or has an empty row"),
        ("\n\n", "map: the map is empty or has an empty row"),
        ("S.\n\n.G", "map: the map is empty or has an empty row"),
        ("..\n.G", "map: the map has 0 cells 'S' (none), expected exactly one start"),
        ("S.\n..", "map: the map has 0 cells 'G' (none), expected exactly one goal"),
        ("S.S\n..G", "the map has 2 cells 'S' (row 1 column 1, row 1 column 3), expected exactly one start"),
        ("S.G\n..G", "the map has 2 cells 'G' (row 1 column 3, row 2 column 3), expected exactly one goal"),
        ("S..\n..\n..G", "map: row 2 of the map has 2 cells, the first has 3; rows must have the same length"),
        ("S..\n.x.\n..G", "unknown character 'x' in row 2, column 2; the characters of a map are # . S G"),
        ("S.. \n..G ", "unknown character ' ' in row 1, column 4"),
        ("S.\t\n..G", "unknown character '\\t' in row 1, column 3"),
        ("s..\n..G", "unknown character 's' in row 1, column 1"),
    ],
)
def test_bad_maps(write, text, message):
    assert message in refusal(write(text))


def test_walled_in_goal(write):
    with pytest.raises(mw.ModelError, match=r"is walled in: no way leads there from the start .* open a door"):
        mw.read(write("S.#.\n..#G\n"))


# ---- world files ------------------------------------------------------------------------------


def test_there_are_twenty_shared_worlds():
    assert len(WORLDS) == 20


@pytest.mark.parametrize("path", WORLDS, ids=lambda path: path.stem)
def test_shared_worlds(path):
    world, mdp = json.loads(path.read_text()), mw.read(path)
    assert mdp.n_states == 361
    assert mdp.name == world["name"] == path.stem
    drawn = np.array([list(row) for row in world["rows"]])
    assert (mdp.layout.blocked == (drawn == "#")).all()
    for label, character in {"wall": "#", "start": "S", "goal": "G"}.items():
        assert (mdp.labels[label] == (drawn == character).ravel()).all()
    reward = mdp.reward[mdp.first_choice[:-1]].reshape(19, 19)
    assert (
        reward
        == np.select(
            [drawn == "#", drawn == "G"], [world["reward"][x] for x in ("wall", "goal")], world["reward"]["step"]
        )
    ).all()


def test_world_file_with_everything(write):
    world = {
        "rows": MAP.split(),
        "name": "garden",
        "correct_transition": 0.5,
        "reward": {"wall": -7, "goal": 11, "step": -0.5},
        "note": "kept for people",
    }
    mdp = mw.read(write(world))
    settings = {"correct_transition": 0.5, "wall_reward": -7.0, "goal_reward": 11.0, "step_reward": -0.5}
    assert mdp.digest == world_from_text(MAP, "garden", **settings).digest
    assert mdp.name == "garden"


def test_world_file_with_rows_alone(write):
    mdp = mw.read(write({"rows": MAP.split()}))
    assert mdp.digest == world_from_text(MAP, "world").digest
    assert mdp.name == "world"


def test_settings_take_precedence_over_the_file(write):
    path = write({"rows": ["S.G"], "correct_transition": 0.5, "reward": {"goal": 3.0, "step": -1.0}})
    expected = world_from_text("S.G", "world", correct_transition=0.75, goal_reward=3.0, step_reward=-2.0)
    assert mw.read(f"{path}?correct_transition=0.75&step_reward=-2").digest == expected.digest


def test_json_is_recognised_by_its_content(write):
    assert mw.read(write('\n {"rows": ["S.G"]}', "world.txt")).n_states == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "world is not a world file: line 1, column 1"),
        ('{\n "rows": [\n  "S.G",,\n ]\n}', "world is not a world file: line 3, column 9"),
        ('{"rows": ["S.G"]', "line 1, column 17"),
        ("[]", "expected a JSON object with the map under 'rows'"),
        ('"S.G"', "expected a JSON object with the map under 'rows'"),
        ("{}", "expected a JSON object with the map under 'rows'"),
        ('{"rows": "S.G"}', "expected a JSON object with the map under 'rows'"),
        ('{"rows": []}', "the map is empty"),
        ('{"rows": [7]}', "the map is empty or has an empty row"),
        ('{"rows": ["S.G", null]}', "the map is empty or has an empty row"),
        ('{"rows": ["S.S"]}', "2 cells 'S'"),
        ('{"rows": ["S.G", ".."]}', "row 2 of the map has 2 cells"),
        ('{"rows": ["S?G"]}', "unknown character '?' in row 1, column 2"),
        ('{"rows": ["S.G"], "name": "inn", "reward": {"goal": "x"}}', "reward.goal must be a finite number, found 'x'"),
        ('{"rows": ["S.G"], "reward": {"goal": NaN}}', "reward.goal must be a finite number, found 'nan'"),
        ('{"rows": ["S.G"], "reward": {"step": -Infinity}}', "reward.step must be a finite number, found '-inf'"),
        ('{"rows": ["S.G"], "reward": {"step": true}}', "reward.step must be a finite number, found 'True'"),
        ('{"rows": ["S.G"], "reward": {"wall": null}}', "reward.wall must be a finite number, found 'None'"),
        ('{"rows": ["S.G"], "reward": {"gaol": 1}}', "unknown reward 'gaol', expected one of wall, goal, step"),
        ('{"rows": ["S.G"], "reward": 5}', "'reward' must be an object with wall, goal and step"),
        ('{"rows": ["S.G"], "correct_transition": "1"}', "correct_transition must be a finite number, found '1'"),
        ('{"rows": ["S.G"], "correct_transition": NaN}', "correct_transition must be a finite number, found 'nan'"),
        (f'{{"rows": ["S.G"], "reward": {{"goal": 1{"0" * 400}}}}}', "reward.goal must be a finite number"),
        (f'{{"rows": ["S.G"], "reward": {{"goal": 1{"0" * 5000}}}}}', "world is not a world file"),
        ("[" * 100_000, "world is not a world file"),
    ],
)
def test_bad_world_files(write, text, message):
    assert message in refusal(write(text, "world.json"))


def test_world_file_with_an_impossible_probability(write):
    with pytest.raises(mw.SettingError, match=r"correct_transition must be a finite number from 0 to 1, found 1\.5"):
        mw.read(write({"rows": ["S.G"], "correct_transition": 1.5}))


# ---- files that are not text ------------------------------------------------------------------


def test_folder(tmp_path):
    assert refusal(tmp_path) == f"{tmp_path} is a folder, expected a file"


@pytest.mark.parametrize("name", ["map.txt", "world.json"])
def test_binary_file(write, name):
    path = write(bytes(range(256)), name)
    assert refusal(path) == (
        f"{path} is not a text file: byte 128 is not UTF-8; expected a text map or a JSON world file"
    )


def test_file_too_large(write, monkeypatch):
    monkeypatch.setattr("manyways.formats.text_maps.LARGEST_MAP", 10)
    assert "has 15 bytes, more than the 10 that are read" in refusal(write(MAP))


# ---- arbitrary input ---------------------------------------------------------------------------

numbers = st.integers() | st.floats()
scalars = st.none() | st.booleans() | numbers | st.text(max_size=5)
anything = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
rows = st.lists(st.text("#.SG", min_size=1, max_size=4), min_size=1, max_size=4)
near_worlds = st.fixed_dictionaries(
    {"rows": rows | st.just(["S.", ".G"]) | anything},
    optional={
        "name": anything,
        "correct_transition": numbers | anything,
        "reward": st.dictionaries(st.sampled_from(["wall", "goal", "step", "other"]), numbers, max_size=4) | anything,
    },
)
near_maps = rows.map("\n".join) | st.text("#.SG\n", max_size=12) | st.text("#.SG \r\n\t\0\x0b\u2028é", max_size=12)


def assert_read_or_refused(reader, text: str) -> None:
    try:
        mdp = reader(text, "anything")
    except mw.ManywaysError:
        return
    assert isinstance(mdp, mw.MDP)


@settings(max_examples=200, deadline=None)
@given(near_maps | st.text())
@example("S.\n.G")
def test_any_text_is_read_or_refused(text):
    assert_read_or_refused(world_from_text, text)


@settings(max_examples=200, deadline=None)
@given(near_worlds.map(json.dumps) | anything.map(json.dumps) | st.text())
@example('{"rows": ["S.G"]}')
def test_any_json_is_read_or_refused(text):
    assert_read_or_refused(world_from_json, text)


@st.composite
def drawn_maps(draw) -> list[str]:
    """Maps with one start and one goal, side by side so that the goal can be reached."""
    height, width = draw(st.integers(1, 5)), draw(st.integers(2, 5))
    cells = draw(st.lists(st.text("#.", min_size=width, max_size=width), min_size=height, max_size=height))
    row, column = draw(st.integers(0, height - 1)), draw(st.integers(0, width - 2))
    cells[row] = cells[row][:column] + draw(st.sampled_from(["SG", "GS"])) + cells[row][column + 2 :]
    return cells


@settings(max_examples=100, deadline=None)
@given(drawn_maps())
def test_a_map_is_read_as_it_is_drawn(cells):
    mdp = world_from_text("\n".join(cells), "drawn")
    again = np.full(mdp.layout.shape, ".")
    for label, character in {"wall": "#", "start": "S", "goal": "G"}.items():
        again[mdp.labels[label].reshape(again.shape)] = character
    assert ["".join(row) for row in again] == cells
    assert world_from_json(json.dumps({"rows": cells}), "drawn").digest == mdp.digest
