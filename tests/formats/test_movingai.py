"""Maps of the MovingAI benchmark."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import manyways as mw
from fuzzing import damaged, read_or_refusal
from manyways.errors import ManywaysError
from manyways.formats.movingai import read_movingai, world_from_movingai
from manyways.formats.placed_maps import OPEN_GRID

MAZE = "type octile\nheight 3\nwidth 5\nmap\n..@..\n.T.G.\n..S.W\n"


def drawn(*rows: str) -> np.ndarray:
    return np.array([[cell == "#" for cell in row] for row in rows])


def position(mdp: mw.MDP, label: str) -> tuple[int, int]:
    return mdp.layout.position(int(np.flatnonzero(mdp.labels[label])[0]))


def test_a_small_movingai_map(tmp_path):
    path = tmp_path / "maze.map"
    path.write_bytes(MAZE.replace("\n", "\r\n").encode())
    mdp = read_movingai(path, start="0,1", goal=(4, 0), step_reward=-1.0)
    walls = drawn("..#..", ".#...", "....#")
    assert mdp.name == "maze"
    assert (position(mdp, "start"), position(mdp, "goal")) == ((1, 0), (0, 4))
    assert (mdp.layout.blocked == walls).all()
    same = mw.grid_world(walls, (1, 0), (0, 4), step_reward=-1.0, **OPEN_GRID)
    assert mdp.digest == same.digest
    entered = read_movingai(path, start="0,1", goal=(4, 0), directions=4, enterable_walls=True)
    assert entered.digest == mw.grid_world(walls, (1, 0), (0, 4)).digest


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("map\n", "", "m is not a MovingAI map: expected the lines 'type octile'"),
        ("octile", "tile", "expected a MovingAI map of type octile, found type 'tile'"),
        ("height 3", "", "expected a line 'height N' with an integer of at least 1 before 'map', found ''"),
        ("width 5", "width five", "expected a line 'width N' .* found 'five'"),
        ("width 5", "width 0", "expected a line 'width N' .* found '0'"),
        ("height 3", "height 2", "the header says height 2, but 3 rows follow"),
        ("width 5", "width 4", "the header says width 4, but row 1 has 5 cells"),
        (".T.G.", ".T.G", "the header says width 5, but row 2 has 4 cells"),
        ("height 3\nwidth 5", "height 99999\nwidth 99999", "99999 x 99999 cells are too many"),
        (
            ".T.G.",
            ".T.x.",
            "unknown character 'x' in row 2, column 4 of the map; free cells are . G S, blocked ones @ O",
        ),
    ],
)
def test_damaged_movingai_maps_are_refused(old, new, message):
    assert old in MAZE
    with pytest.raises(mw.SourceError, match=message):
        world_from_movingai(MAZE.replace(old, new), "m", start="0,0", goal="4,0")


@pytest.mark.parametrize(
    ("start", "goal", "message"),
    [
        (None, "1,1", r"does not contain the start; give start and goal, as in m.map\?start=1,2&goal=30,40"),
        ("0,0", None, "does not contain the goal"),
        ("0", "1,0", "the start must be two numbers x,y; found '0'"),
        ("0,0", "a,b", "the goal must be two numbers x,y; found 'a,b'"),
        ("0,nan", "1,0", "the start must be two numbers x,y; found '0,nan'"),
        ((1, 2, 3), "1,0", r"the start must be two numbers x,y; found '\(1, 2, 3\)'"),
        (7, "1,0", "the start must be two numbers x,y; found '7'"),
        ("0.5,0", "1,0", "the start must be a cell, two integers x,y; found 0.5,0"),
        ("0,3", "1,0", r"the start \(x 0, y 3\) lies outside the map, which has 5 columns \(x\) and 3 rows \(y\)"),
        ("0,0", "-1,0", r"the goal \(x -1, y 0\) lies outside"),
        ("0,0", "4,2", r"the goal \(x 4, y 2\) lies in a blocked cell"),
        ("0,0", "0,0", "start and goal are the same cell"),
    ],
)
def test_impossible_starts_and_goals_of_movingai_maps_are_refused(start, goal, message):
    with pytest.raises(ManywaysError, match=message):
        world_from_movingai(MAZE, "m", start=start, goal=goal)


def test_files_that_cannot_be_read(tmp_path):
    ends: dict[str, Any] = {"start": "0,0", "goal": "1,1"}
    with pytest.raises(mw.SourceError, match=r"there is no file .*nothing"):
        read_movingai(tmp_path / "nothing", **ends)
    with pytest.raises(mw.SourceError, match="is a folder, expected a file"):
        read_movingai(tmp_path, **ends)
    with pytest.raises(mw.SourceError, match="cannot read"):
        read_movingai("a\0b", **ends)
    (tmp_path / "binary").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(mw.SourceError, match="is not a text file"):
        read_movingai(tmp_path / "binary", **ends)
    with (tmp_path / "large").open("wb") as file:
        os.truncate(file.fileno(), 2**29)
    with pytest.raises(mw.SourceError, match=r"has 536,870,912 bytes, more than the [0-9,]+ that are read"):
        read_movingai(tmp_path / "large", **ends)


def test_a_map_that_would_exhaust_memory_is_refused():
    text = "type octile\nheight 2000\nwidth 2001\nmap\n" + ("." * 2001 + "\n") * 2000
    with pytest.raises(
        mw.SourceError, match="map has 4,002,000 free cells; it may have at most 4,000,000: cut the map"
    ):
        world_from_movingai(text, "m", start="0,0", goal="1,1")


# ---- arbitrary input ---------------------------------------------------------------------------

PIECES = st.one_of(st.text(max_size=8), st.sampled_from(["map", "\n", "height 1", "-1", "1e999"]))


@settings(max_examples=150, deadline=None)
@given(st.one_of(damaged(MAZE, PIECES), st.text(max_size=80)))
def test_any_text_is_a_movingai_map_or_refused(text):
    read = read_or_refusal(world_from_movingai, text, "m", start="0,0", goal="4,0")
    assert isinstance(read, mw.MDP | str)
